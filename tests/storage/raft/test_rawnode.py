"""The Ready and advance loop: pipelined writes, bounds, a single voter, restart."""

from __future__ import annotations

import random
from typing import Any

import pytest

from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, HardState, Message, MessageType, SnapshotMetadata
from storage.raft.rawnode import Config, ProposalDroppedError, RawNode, Role


def single(**settings: Any) -> tuple[RawNode, MemoryLogStorage]:
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1,))))
    return RawNode(Config(id=1, **settings), storage, random.Random(0)), storage


def test_a_single_voter_leads_once_its_vote_is_durable_and_commits_what_is_durable() -> None:
    node, storage = single()
    assert not node.has_ready()
    node.campaign()
    vote = node.ready()
    assert vote.must_sync
    assert vote.hard_state == HardState(1, 1, 0)
    node.advance_persisted(vote)
    assert node.leads_alone()
    node.propose(b"a")
    append = node.ready()
    assert [entry.data for entry in append.entries] == [b"", b"a"]
    assert not node.has_ready()
    storage.append(append.entries)
    node.advance_persisted(append)
    commit = node.ready()
    assert [entry.data for entry in commit.committed_entries] == [b"", b"a"]
    assert commit.hard_state == HardState(1, 1, 2)
    assert not commit.must_sync


def lead(node: RawNode, storage: MemoryLogStorage) -> None:
    node.campaign()
    while node.has_ready():
        ready = node.ready()
        storage.append(ready.entries)
        if ready.committed_entries:
            node.advance_applied(ready.committed_entries[-1].index)
        node.advance_persisted(ready)


def test_several_readys_are_at_the_disk_at_a_time() -> None:
    node, storage = single()
    lead(node, storage)
    flying = []
    for data in (b"a", b"b", b"c"):
        node.propose(data)
        flying.append(node.ready())
    assert [[entry.data for entry in ready.entries] for ready in flying] == [[b"a"], [b"b"], [b"c"]]
    assert node.status().committed == 1
    for count, ready in enumerate(flying, 1):
        storage.append(ready.entries)
        node.advance_persisted(ready)
        assert node.status().committed == 1 + count


def test_readys_are_advanced_in_order() -> None:
    node, storage = single()
    lead(node, storage)
    node.propose(b"a")
    node.ready()
    node.propose(b"b")
    second = node.ready()
    with pytest.raises(AssertionError):
        node.advance_persisted(second)


def test_an_entry_overwritten_while_at_the_disk_is_not_taken_for_durable() -> None:
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1, 2, 3))))
    node = RawNode(Config(id=1, check_quorum=False), storage, random.Random(0))
    node.step(Message(type=MessageType.APPEND, sender=2, to=1, term=1, entries=(Entry(1, 1, b"old"),), commit=0))
    first = node.ready()
    node.step(Message(type=MessageType.APPEND, sender=3, to=1, term=2, entries=(Entry(2, 1, b"new"),), commit=1))
    storage.append(first.entries)
    node.advance_persisted(first)
    second = node.ready()
    assert second.committed_entries == []
    assert second.entries == [Entry(2, 1, b"new")]
    storage.append(second.entries)
    node.advance_persisted(second)
    assert node.ready().committed_entries == [Entry(2, 1, b"new")]


def test_committed_entries_of_one_ready_are_bounded_by_bytes() -> None:
    node, storage = single(committed_bytes_max=100)
    lead(node, storage)
    node.propose_many([bytes(40)] * 5 + [bytes(300)])
    ready = node.ready()
    storage.append(ready.entries)
    node.advance_persisted(ready)
    sizes = []
    while node.has_ready():
        ready = node.ready()
        sizes.append([len(entry.data) for entry in ready.committed_entries])
        node.advance_applied(ready.committed_entries[-1].index)
        node.advance_persisted(ready)
    assert sizes == [[40, 40], [40, 40], [40], [300]]


def test_uncommitted_bytes_are_bounded_and_given_back() -> None:
    node, storage = single(uncommitted_bytes_max=100)
    lead(node, storage)
    node.propose(bytes(500))  # the first is always taken
    with pytest.raises(ProposalDroppedError):
        node.propose(b"x")
    ready = node.ready()
    storage.append(ready.entries)
    node.advance_persisted(ready)
    node.ready()
    node.propose(b"x")


def test_restart_goes_on_after_what_is_applied() -> None:
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1,)), 5, 1), HardState(1, 1, 6))
    storage.append([Entry(1, 6, b"f"), Entry(1, 7, b"g"), Entry(1, 8, b"h")])
    node = RawNode(Config(id=1, applied=7), storage, random.Random(0))
    assert node.status().committed == 7
    applied = []
    node.campaign()
    while node.has_ready():
        ready = node.ready()
        storage.append(ready.entries)
        applied += [entry.index for entry in ready.committed_entries]
        node.advance_persisted(ready)
    assert applied == [8, 9]


def test_a_log_that_ends_before_what_is_applied_is_refused() -> None:
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1,)), 5, 1))
    with pytest.raises(ValueError, match="beyond the last entry"):
        RawNode(Config(id=1, applied=7), storage, random.Random(0))


def test_compaction_of_the_memory_log() -> None:
    storage = MemoryLogStorage(SnapshotMetadata(ConfState((1,))))
    storage.append([Entry(1, index) for index in range(1, 11)])
    storage.compact(6)
    assert (storage.first_index(), storage.last_index(), storage.entry_count()) == (7, 10, 4)
    assert storage.term(6) == 1
    storage.append([Entry(2, 8)])
    assert storage.last_index() == 8


def test_roles_are_seen_in_the_soft_state() -> None:
    node, storage = single()
    node.campaign()
    candidate = node.ready()
    assert candidate.soft_state is not None
    assert candidate.soft_state.role is Role.CANDIDATE
    node.advance_persisted(candidate)
    leader = node.ready()
    assert leader.soft_state is not None
    assert (leader.soft_state.role, leader.soft_state.leader_id) == (Role.LEADER, 1)
    assert storage.entry_count() == 0
