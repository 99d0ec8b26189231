"""Snapshots to members that lag or are new (Raft §7), and the order of what a Ready with one asks for."""

from __future__ import annotations

import random

import pytest

from storage.raft.log_storage import LogCompactedError, MemoryLogStorage, SnapshotUnavailableError
from storage.raft.messages import ConfState, Entry, HardState, Message, MessageType, Snapshot, SnapshotMetadata
from storage.raft.progress import Progress, ProgressState
from storage.raft.rawnode import Config, RawNode
from tests.storage.raft.cluster import Cluster

THREE = ConfState((1, 2, 3))


def snapshot_message(index: int, term: int, *, conf_state: ConfState = THREE, message_term: int = 2) -> Message:
    return Message(
        type=MessageType.SNAPSHOT,
        sender=2,
        to=1,
        term=message_term,
        snapshot=Snapshot(metadata=SnapshotMetadata(conf_state, index, term)),
    )


def follower(entries: list[Entry], commit: int = 0) -> tuple[RawNode, MemoryLogStorage]:
    storage = MemoryLogStorage(SnapshotMetadata(THREE), HardState(1, 0, commit))
    storage.append(entries)
    node = RawNode(Config(id=1), storage, random.Random(0))
    return node, storage


def lagging(*, keep: int = 0) -> Cluster:
    """Member 3 was cut off; what it lacks is compacted at the leader, 1."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.isolate(3)
    for number in range(10):
        cluster.node(1).propose(b"%d" % number)
    cluster.stabilize()
    cluster.members[1].snapshot(keep=keep)
    cluster.heal()
    return cluster


def progress(cluster: Cluster, member: int) -> Progress:
    return cluster.node(1).raft.tracker.progress[member]


def test_paper_7_a_member_that_lacks_compacted_entries_gets_a_snapshot_and_goes_on() -> None:
    cluster = lagging()
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(3) == cluster.applied_data(1)
    assert cluster.members[3].storage.first_index() == 12
    assert progress(cluster, 3).state is ProgressState.REPLICATE
    cluster.node(1).propose(b"after")
    cluster.stabilize()
    assert cluster.applied_data(3)[-1] == b"after"


def test_paper_7_a_member_that_lags_less_gets_entries() -> None:
    cluster = lagging(keep=10)
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(3) == cluster.applied_data(1)
    assert cluster.members[3].storage.first_index() == 1


def test_no_append_is_sent_while_a_snapshot_is_under_way() -> None:
    cluster = lagging()
    cluster.node(1).tick()
    cluster.work_until(lambda: bool(cluster.on_the_way(MessageType.SNAPSHOT)))
    assert (progress(cluster, 3).state, progress(cluster, 3).pending_snapshot) == (ProgressState.SNAPSHOT, 11)
    under_way = cluster.on_the_way(MessageType.SNAPSHOT)
    cluster.network.clear()
    cluster.node(1).propose(b"more")
    cluster.node(1).tick()
    cluster.work(1)
    assert not [message for message in cluster.on_the_way(MessageType.APPEND) if message.to == 3]
    cluster.network.extend(under_way)
    cluster.stabilize()
    assert cluster.applied_data(3)[-1] == b"more"


def test_a_snapshot_that_failed_is_sent_again_after_a_heartbeat() -> None:
    cluster = lagging()
    sent = 0
    for _ in range(3):
        cluster.node(1).tick()
        for _ in range(4):
            for member in cluster.members:
                cluster.work(member)
            lost = cluster.on_the_way(MessageType.SNAPSHOT)
            for message in lost:
                cluster.network.remove(message)
                cluster.node(1).report_snapshot(3, False)
            sent += len(lost)
            cluster.deliver()
    assert sent == 3
    assert (progress(cluster, 3).state, progress(cluster, 3).next) == (ProgressState.PROBE, progress(cluster, 3).match + 1)
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(3) == cluster.applied_data(1)


def test_no_snapshot_is_sent_to_a_member_that_is_not_heard() -> None:
    cluster = lagging()
    cluster.node(1).raft.tracker.progress[3].recent_active = False
    cluster.node(1).propose(b"x")
    cluster.work(1)
    assert not cluster.on_the_way(MessageType.SNAPSHOT)


def test_a_snapshot_that_is_not_there_yet_is_asked_for_again() -> None:
    cluster = lagging()
    storage = cluster.members[1].storage
    metadata, storage._snapshot = storage._snapshot, SnapshotMetadata()
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(3) == []
    storage._snapshot = metadata
    cluster.node(1).tick()
    cluster.stabilize()
    assert cluster.applied_data(3) == cluster.applied_data(1)


def test_a_newer_snapshot_than_the_pending_one_serves_as_well() -> None:
    """The state travels beside the message and may be newer than the message was."""
    cluster = lagging()
    node = cluster.node(1)
    progress(cluster, 3).become_snapshot(11)
    node.propose(b"x")
    node.propose(b"y")
    node.step(Message(type=MessageType.APPEND_RESPONSE, sender=3, to=1, term=1, index=12))
    assert (progress(cluster, 3).state, progress(cluster, 3).match) == (ProgressState.REPLICATE, 12)
    node.report_snapshot(3, True)
    assert progress(cluster, 3).state is ProgressState.REPLICATE


def test_a_ready_with_a_snapshot_comes_before_entries_and_without_committed_ones() -> None:
    node, storage = follower([Entry(1, 1, b"old"), Entry(1, 2, b"older")], commit=1)
    node.step(snapshot_message(10, 2))
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=2, index=10, log_term=2, entries=(Entry(2, 11, b"k"),), commit=11))
    ready = node.ready()
    assert ready.snapshot is not None
    assert ready.snapshot.metadata.index == 10
    assert ready.must_sync
    assert ready.hard_state == HardState(2, 0, 11)
    assert [entry.index for entry in ready.entries] == [11]
    assert ready.committed_entries == []
    assert [message.index for message in ready.messages_after_append] == [10, 11]
    assert not node.has_ready()
    with pytest.raises(LogCompactedError):
        node.raft.log.term(9)
    assert node.raft.log.term(10) == 2
    storage.apply_snapshot(ready.snapshot.metadata)
    storage.append(ready.entries)
    node.advance_persisted(ready)
    assert node.status().applied == 10
    ready = node.ready()
    assert [entry.data for entry in ready.committed_entries] == [b"k"]


def test_entries_at_the_disk_when_a_snapshot_comes_are_not_taken_for_durable_parts_of_the_new_log() -> None:
    node, storage = follower([])
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=2, entries=(Entry(2, 1, b"a"), Entry(2, 2, b"b"))))
    first = node.ready()
    node.step(snapshot_message(10, 2))
    storage.append(first.entries)
    node.advance_persisted(first)
    assert node.raft.log.last_index() == 10
    second = node.ready()
    assert second.snapshot is not None
    storage.apply_snapshot(second.snapshot.metadata)
    node.advance_persisted(second)
    assert (node.raft.log.first_index(), node.raft.log.last_index(), node.status().applied) == (11, 10, 10)


def test_a_second_snapshot_while_the_first_is_being_installed() -> None:
    node, storage = follower([])
    node.step(snapshot_message(10, 2))
    first = node.ready()
    node.step(snapshot_message(20, 2))
    assert first.snapshot is not None
    storage.apply_snapshot(first.snapshot.metadata)
    node.advance_persisted(first)
    assert (node.status().applied, node.status().last_index) == (10, 20)
    second = node.ready()
    assert second.snapshot is not None
    assert second.snapshot.metadata.index == 20
    storage.apply_snapshot(second.snapshot.metadata)
    node.advance_persisted(second)
    assert node.status().applied == 20
    assert not node.has_ready()


def test_a_snapshot_of_what_the_log_holds_only_moves_the_commit_index() -> None:
    node, _ = follower([Entry(1, 1), Entry(1, 2), Entry(1, 3)])
    node.step(snapshot_message(2, 1))
    ready = node.ready()
    assert ready.snapshot is None
    assert ready.hard_state == HardState(2, 0, 2)
    assert [message.index for message in ready.messages_after_append] == [2]
    assert node.raft.log.last_index() == 3


def test_a_snapshot_older_than_the_commit_index_is_answered_with_that() -> None:
    node, _ = follower([Entry(1, 1), Entry(1, 2), Entry(1, 3)], commit=3)
    node.step(snapshot_message(2, 1))
    ready = node.ready()
    assert ready.snapshot is None
    assert [message.index for message in ready.messages_after_append] == [3]


def test_a_snapshot_whose_configuration_lacks_this_member_is_refused() -> None:
    node, _ = follower([])
    node.step(snapshot_message(10, 2, conf_state=ConfState((2, 3, 4))))
    ready = node.ready()
    assert ready.snapshot is None
    assert [(message.type, message.index) for message in ready.messages_after_append] == [(MessageType.APPEND_RESPONSE, 0)]
    assert node.conf_state() == THREE


def test_the_configuration_of_a_snapshot_is_in_force() -> None:
    node, _ = follower([])
    joint = ConfState((2, 3), (4,), (1, 2, 3), (1,), auto_leave=True)
    node.step(snapshot_message(10, 2, conf_state=joint))
    assert node.conf_state() == joint
    assert node.status().config == joint


def test_a_member_does_not_stand_for_election_while_its_snapshot_is_installed() -> None:
    node, storage = follower([])
    node.step(snapshot_message(10, 2))
    ready = node.ready()
    for _ in range(40):
        node.tick()
    assert node.status().term == 2
    assert ready.snapshot is not None
    storage.apply_snapshot(ready.snapshot.metadata)
    node.advance_persisted(ready)
    for _ in range(40):
        node.tick()
    assert any(message.type is MessageType.PRE_VOTE for message in node.ready().messages)


@pytest.mark.parametrize("installed", [False, True])
def test_a_snapshot_survives_a_crash_whole_or_not_at_all(installed: bool) -> None:
    cluster = lagging()
    cluster.node(1).tick()
    member = cluster.members[3]
    cluster.work_until(lambda: bool(cluster.on_the_way(MessageType.SNAPSHOT)))
    cluster.deliver()
    ready = member.take_ready()
    assert ready.snapshot is not None
    assert list(member.at_disk) == [ready]
    if installed:
        member.persist_one()
    member.crash()
    assert len(cluster.applied_data(3)) == (10 if installed else 0)
    for _ in range(2):
        cluster.node(1).tick()
        cluster.stabilize()
    assert cluster.applied_data(3) == cluster.applied_data(1)


def test_memory_log_storage_gives_no_snapshot_that_the_log_cannot_follow() -> None:
    storage = MemoryLogStorage(SnapshotMetadata(THREE))
    with pytest.raises(SnapshotUnavailableError):
        storage.snapshot()
    storage.append([Entry(1, index) for index in range(1, 11)])
    storage.set_snapshot(SnapshotMetadata(THREE, 5, 1))
    storage.compact(4)
    assert storage.snapshot().metadata.index == 5
    storage.set_snapshot(SnapshotMetadata(THREE, 3, 1))
    assert storage.snapshot().metadata.index == 5
    storage.compact(8)
    with pytest.raises(SnapshotUnavailableError):
        storage.snapshot()


def test_an_entry_that_is_brought_back_while_its_overwriting_is_at_the_disk_is_written_again() -> None:
    """1. X is at the disk. 2. A newer leader replaces it by Y. 3. A still newer one brings X back. 4. The disk reports the first X."""
    node, storage = follower([])

    def append(term: int, entry: Entry, commit: int = 0) -> None:
        node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=term, entries=(entry,), commit=commit))

    append(2, Entry(2, 1, b"X"))
    first = node.ready()
    append(3, Entry(3, 1, b"Y"))
    second = node.ready()
    append(4, Entry(2, 1, b"X"), commit=1)
    for ready in (first, second):
        storage.append(ready.entries)
        node.advance_persisted(ready)
    third = node.ready()
    assert third.committed_entries == []
    assert [entry.data for entry in third.entries] == [b"X"]
    storage.append(third.entries)
    node.advance_persisted(third)
    assert [entry.data for entry in node.ready().committed_entries] == [b"X"]
