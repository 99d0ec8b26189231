"""How fast a leader sends: windows, batches, probes (thesis §10.2.1, §10.2.2; etcd's Progress)."""

from __future__ import annotations

from typing import Any

import pytest

from storage.raft.inflights import Inflights
from storage.raft.messages import Message, MessageType
from storage.raft.progress import Progress, ProgressState
from storage.raft.rawnode import Config, ProposalDroppedError
from tests.storage.raft.cluster import Cluster


def led(**settings: Any) -> Cluster:
    cluster = Cluster(3, **settings)
    cluster.elect(1)
    return cluster


def progress(cluster: Cluster, member: int = 2) -> Progress:
    return cluster.node(1).raft.tracker.progress[member]


def sent(cluster: Cluster, member: int = 2) -> list[Message]:
    """Take what the leader wants to send to ``member``; the network loses it."""
    ready = cluster.members[1].take_ready()
    return [message for message in ready.messages if message.to == member]


def answer(cluster: Cluster, **fields: Any) -> None:
    cluster.node(1).step(Message(sender=2, to=1, term=1, **fields))


def test_inflights_are_bounded_in_messages_and_bytes() -> None:
    window = Inflights(count_max=3, bytes_max=100)
    window.add(5, 10)
    window.add(7, 10)
    assert not window.is_full()
    window.add(9, 10)
    assert window.is_full()
    window.free_up_to(8)
    assert (len(window), window.bytes) == (1, 10)
    window.add(10, 500)
    assert window.is_full()
    window.free_up_to(9)
    assert window.is_full()
    window.free_up_to(10)
    assert (len(window), window.bytes, window.is_full()) == (0, 0, False)
    unbounded = Inflights(count_max=2, bytes_max=0)
    unbounded.add(1, 1 << 40)
    assert not unbounded.is_full()
    unbounded.clear()
    assert (len(unbounded), unbounded.bytes) == (0, 0)


def test_appends_are_sent_ahead_of_the_answers_up_to_the_window() -> None:
    cluster = led(in_flight_max=3)
    for number in range(6):
        cluster.node(1).propose(b"%d" % number)
    messages = sent(cluster)
    assert [len(message.entries) for message in messages] == [1, 1, 1]
    assert (len(progress(cluster).inflights), progress(cluster).is_paused()) == (3, True)
    # One answer makes place for all that waits, in one message.
    answer(cluster, type=MessageType.APPEND_RESPONSE, index=2)
    assert [[entry.index for entry in message.entries] for message in sent(cluster)] == [[5, 6, 7]]
    assert progress(cluster).is_paused()


def test_the_window_is_bounded_in_bytes() -> None:
    cluster = led(in_flight_bytes_max=100, message_bytes_max=50)
    for _ in range(6):
        cluster.node(1).propose(bytes(40))
    assert [len(message.entries) for message in sent(cluster)] == [1, 1, 1]
    assert progress(cluster).inflights.bytes == 120
    answer(cluster, type=MessageType.APPEND_RESPONSE, index=3)
    assert [len(message.entries) for message in sent(cluster)] == [1, 1]


def test_batches_are_bounded_by_bytes_and_a_larger_entry_travels_alone() -> None:
    cluster = led(message_bytes_max=100)
    cluster.isolate(2)
    cluster.node(1).propose_many([bytes(40), bytes(40), bytes(40), bytes(500), bytes(10)])
    cluster.stabilize()
    cluster.node(1).report_unreachable(2)
    answer(cluster, type=MessageType.HEARTBEAT_RESPONSE)
    probe = sent(cluster)
    assert [[len(entry.data) for entry in message.entries] for message in probe] == [[40, 40]]
    answer(cluster, type=MessageType.APPEND_RESPONSE, index=3)
    assert [[len(entry.data) for entry in message.entries] for message in sent(cluster)] == [[40], [500], [10]]


def test_a_full_window_whose_appends_were_lost_recovers_by_a_heartbeat() -> None:
    cluster = led(in_flight_max=2)
    for number in range(5):
        cluster.node(1).propose(b"%d" % number)
    cluster.work(1)
    cluster.network.clear()
    assert progress(cluster).is_paused()
    answer(cluster, type=MessageType.HEARTBEAT_RESPONSE)
    (probe,) = sent(cluster)
    assert (probe.entries, probe.index) == ((), 3)
    answer(cluster, type=MessageType.HEARTBEAT_RESPONSE)
    cluster.stabilize()
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(2) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_full_window_whose_answers_were_lost_recovers_by_a_heartbeat() -> None:
    cluster = led(in_flight_max=2)
    cluster.blocked.add((2, 1))
    for number in range(5):
        cluster.node(1).propose(b"%d" % number)
    cluster.stabilize()
    assert (progress(cluster).match, progress(cluster).is_paused()) == (1, True)
    cluster.heal()
    cluster.node(1).tick()
    cluster.stabilize()
    assert progress(cluster).match == 6
    assert cluster.applied_data(2) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_member_that_cannot_be_reached_is_probed_with_one_append_at_a_time() -> None:
    cluster = led()
    cluster.node(1).propose(b"a")
    sent(cluster)
    cluster.node(1).report_unreachable(2)
    assert (progress(cluster).state, progress(cluster).next) == (ProgressState.PROBE, 2)
    for _ in range(3):
        cluster.node(1).propose(b"b")
    assert [len(message.entries) for message in sent(cluster)] == [2]
    answer(cluster, type=MessageType.HEARTBEAT_RESPONSE)
    assert [len(message.entries) for message in sent(cluster)] == [4]
    answer(cluster, type=MessageType.APPEND_RESPONSE, index=5)
    assert (progress(cluster).state, progress(cluster).match) == (ProgressState.REPLICATE, 5)


def test_a_gap_is_found_and_filled() -> None:
    cluster = led()
    for number in range(4):
        cluster.node(1).propose(b"%d" % number)
    cluster.work(1)
    lost = [message for message in cluster.on_the_way(MessageType.APPEND) if message.to == 2][1]
    cluster.network.remove(lost)
    cluster.stabilize()
    assert cluster.applied_data(2) == [b"0", b"1", b"2", b"3"]


def test_doubled_and_late_answers_change_nothing() -> None:
    cluster = led()
    for number in range(4):
        cluster.node(1).propose(b"%d" % number)
    cluster.stabilize()
    before = cluster.node(1).status()
    for index in (0, 2, 5, 3):
        answer(cluster, type=MessageType.APPEND_RESPONSE, index=index)
    answer(cluster, type=MessageType.APPEND_RESPONSE, index=3, reject=True, reject_hint=1)
    assert cluster.node(1).status() == before


def test_a_late_refusal_does_not_disturb_a_probe() -> None:
    one = Progress(match=3, next=8, in_flight_max=4)
    assert not one.maybe_decrease(5, 2)
    assert one.maybe_decrease(7, 5)
    assert one.next == 6
    one.become_snapshot(20)
    assert not one.maybe_decrease(20, 2)
    assert (one.state, one.pending_snapshot, one.next) == (ProgressState.SNAPSHOT, 20, 21)


def test_a_commit_is_told_once() -> None:
    """Each would cost a message and its answer."""
    cluster = led()
    cluster.node(1).propose(b"a")
    cluster.work(1)
    said = 0
    for _ in range(10):
        for member in cluster.members:
            cluster.work(member)
        said += sum(1 for message in cluster.on_the_way(MessageType.APPEND) if message.to == 2)
        cluster.deliver()
    assert said == 2  # the entry, and that it is committed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"id": 0}, "id"),
        ({"election_ticks": 1}, "heartbeat_ticks"),
        ({"heartbeat_ticks": 0}, "heartbeat_ticks"),
        ({"message_bytes_max": 0}, "message_bytes_max"),
        ({"committed_bytes_max": 0}, "committed_bytes_max"),
        ({"uncommitted_bytes_max": 0}, "uncommitted_bytes_max"),
        ({"in_flight_max": 0}, "in_flight_max"),
        ({"in_flight_bytes_max": 10}, "in_flight_bytes_max"),
        ({"pending_reads_max": 0}, "pending_reads_max"),
        ({"applied": -1}, "applied"),
    ],
)
def test_settings_are_checked(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Config(**{"id": 1, **settings}).validate()  # type: ignore[arg-type]
    Config(id=1).validate()


def test_a_follower_forwards_proposals_unless_told_not_to() -> None:
    cluster = led()
    cluster.node(2).propose(b"forwarded")
    cluster.stabilize()
    assert cluster.applied_data(3) == [b"forwarded"]
    cluster = led(forward_proposals=False)
    with pytest.raises(ProposalDroppedError, match="not the leader"):
        cluster.node(2).propose(b"x")
