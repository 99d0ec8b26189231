"""ReadIndex (thesis §6.4): a read is confirmed by a quorum's answers to heartbeats sent after it came."""

from __future__ import annotations

import random

import pytest

from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, HardState, Message, MessageType, SnapshotMetadata
from storage.raft.rawnode import Config, RawNode, ReadIndexDroppedError, ReadState, Role
from tests.storage.raft.cluster import Cluster


def heartbeats(cluster: Cluster) -> list[Message]:
    return cluster.on_the_way(MessageType.HEARTBEAT)


def test_thesis_6_4_a_leader_confirms_a_read_with_one_round_of_heartbeats() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.node(1).propose(b"a")
    cluster.stabilize()
    cluster.node(1).read_index(b"read")
    cluster.work(1)
    assert cluster.members[1].read_states == []
    assert len(heartbeats(cluster)) == 2
    cluster.stabilize()
    assert cluster.members[1].read_states == [ReadState(2, b"read")]


def test_thesis_6_4_one_round_confirms_all_reads_that_came_before_it() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    for number in range(100):
        cluster.node(1).read_index(b"%d" % number)
    cluster.work(1)
    assert len(heartbeats(cluster)) == 2
    cluster.stabilize()
    assert cluster.members[1].read_states == [ReadState(1, b"%d" % number) for number in range(100)]


def test_thesis_6_4_a_round_does_not_confirm_reads_that_came_after_it() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.node(1).read_index(b"first")
    cluster.work(1)
    for member in (2, 3):
        cluster.node(member).step(next(message for message in heartbeats(cluster) if message.to == member))
        cluster.work(member)
    answers = cluster.on_the_way(MessageType.HEARTBEAT_RESPONSE)
    cluster.network.clear()
    cluster.node(1).read_index(b"second")
    cluster.node(1).step(answers[0])
    cluster.node(1).step(answers[0])  # the same answer twice is one
    cluster.work(1)
    assert [state.context for state in cluster.members[1].read_states] == [b"first"]
    cluster.stabilize()
    assert [state.context for state in cluster.members[1].read_states] == [b"first", b"second"]


def test_thesis_6_4_a_later_round_confirms_reads_whose_round_was_lost() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.node(1).read_index(b"lost")
    cluster.work(1)
    cluster.network.clear()
    cluster.node(1).tick()  # a heartbeat is due anyway, it repeats the round
    cluster.stabilize()
    assert cluster.members[1].read_states == [ReadState(1, b"lost")]


def test_thesis_6_4_a_cut_off_leader_answers_no_read() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.isolate(1)
    cluster.elect(2)
    cluster.node(2).propose(b"new")
    cluster.stabilize()
    cluster.node(1).read_index(b"stale")
    for _ in range(5):
        cluster.node(1).tick()
        cluster.stabilize()
    assert cluster.members[1].read_states == []
    cluster.heal()
    cluster.node(2).tick()
    cluster.stabilize()
    assert cluster.node(1).status().role is Role.FOLLOWER
    assert cluster.members[1].read_states == []


def test_paper_8_a_read_waits_until_an_entry_of_the_term_is_committed() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.node(1).propose(b"of term 1")
    cluster.stabilize()
    cluster.node(2).campaign()
    cluster.work_until(lambda: cluster.node(2).status().role is Role.LEADER)
    cluster.node(2).read_index(b"early")
    assert cluster.node(2).status().committed == 2
    cluster.stabilize()
    assert cluster.members[2].read_states == [ReadState(3, b"early")]


def test_thesis_6_4_a_single_voter_answers_once_its_term_has_a_committed_entry() -> None:
    """The commit index is not synced on its own: a restarted single voter may know an older one than it acknowledged."""
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1,))), HardState(1, 1, 1))
    storage.append([Entry(1, 1, b"known"), Entry(1, 2, b"acknowledged, but the commit was not written")])
    node = RawNode(Config(id=1), storage, random.Random(0))
    node.campaign()
    states: list[ReadState] = []
    asked = False
    while node.has_ready():
        ready = node.ready()
        states += ready.read_states
        storage.append(ready.entries)
        node.advance_persisted(ready)
        if node.status().role is Role.LEADER and not asked:
            node.read_index(b"read")
            asked = True
    assert states == [ReadState(3, b"read")]


def test_thesis_6_4_a_follower_asks_the_leader() -> None:
    cluster = Cluster(3, learners=(3,))
    cluster.elect(1)
    cluster.node(2).read_index(b"of 2")
    cluster.node(3).read_index(b"of 3")
    cluster.stabilize()
    assert cluster.members[2].read_states == [ReadState(1, b"of 2")]
    assert cluster.members[3].read_states == [ReadState(1, b"of 3")]
    assert cluster.members[1].read_states == []


def test_reads_that_nobody_will_answer_are_refused_at_once() -> None:
    cluster = Cluster(3)
    with pytest.raises(ReadIndexDroppedError, match="no leader"):
        cluster.node(1).read_index(b"x")
    cluster.node(1).campaign()
    with pytest.raises(ReadIndexDroppedError, match="election"):
        cluster.node(1).read_index(b"x")


def test_waiting_reads_are_bounded() -> None:
    cluster = Cluster(3, pending_reads_max=2)
    cluster.elect(1)
    for _ in range(2):
        cluster.node(1).read_index(b"x")
    with pytest.raises(ReadIndexDroppedError, match="2 reads"):
        cluster.node(1).read_index(b"x")
    cluster.stabilize()
    cluster.node(1).read_index(b"x")
    cluster.stabilize()
    assert len(cluster.members[1].read_states) == 3


def test_reads_end_with_the_leadership() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.isolate(1)
    cluster.node(1).read_index(b"x")
    cluster.work(1)
    cluster.node(1).step(Message(type=MessageType.APPEND, sender=2, to=1, term=2))
    cluster.heal()
    cluster.elect(1)
    cluster.stabilize()
    assert cluster.members[1].read_states == []


def test_answers_of_learners_confirm_nothing() -> None:
    cluster = Cluster(4, learners=(4,))
    cluster.elect(1)
    cluster.isolate(2)
    cluster.isolate(3)
    cluster.node(1).read_index(b"x")
    cluster.stabilize()
    assert cluster.members[1].read_states == []
