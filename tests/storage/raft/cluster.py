"""Members in one thread: messages and disk work wait in queues until a test moves them."""

from __future__ import annotations

import random
from collections import deque

from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, HardState, Message, SnapshotMetadata
from storage.raft.rawnode import Config, RawNode, Ready, Role


class Member:
    """A RawNode with its log storage. What was written but not persisted is lost by ``crash``."""

    def __init__(self, config: Config, voters: tuple[int, ...], seed: int) -> None:
        self.config = config
        self.seed = seed
        self.storage = MemoryLogStorage(SnapshotMetadata(ConfState(voters)))
        self.node = RawNode(config, self.storage, random.Random(seed))
        self.at_disk: deque[Ready] = deque()
        self.applied: list[Entry] = []

    def take_ready(self) -> Ready:
        """Take a Ready, apply what is committed, leave the disk work in ``at_disk``."""
        ready = self.node.ready()
        for entry in ready.committed_entries:
            self.applied.append(entry)
        if ready.committed_entries:
            self.node.advance_applied(ready.committed_entries[-1].index)
        self.at_disk.append(ready)
        return ready

    def persist_one(self) -> Ready:
        ready = self.at_disk.popleft()
        if ready.hard_state:
            self.storage.hard_state = ready.hard_state
        self.storage.append(ready.entries)
        self.node.advance_persisted(ready)
        return ready

    def crash(self) -> None:
        """Lose all that was not persisted and start from the disk; the state machine is replayed from the start."""
        self.at_disk.clear()
        self.applied = []
        saved = self.storage.hard_state
        self.storage.hard_state = HardState(saved.term, saved.vote, min(saved.commit, self.storage.last_index()))
        self.seed += 1000
        self.node = RawNode(self.config, self.storage, random.Random(self.seed))


class Cluster:
    """``blocked`` holds (from, to) pairs whose messages are lost."""

    def __init__(self, size: int, *, pre_vote: bool = False, check_quorum: bool = False, committed_bytes_max: int = 1 << 20) -> None:
        voters = tuple(range(1, size + 1))
        self.members: dict[int, Member] = {}
        for member in voters:
            config = Config(id=member, pre_vote=pre_vote, check_quorum=check_quorum, committed_bytes_max=committed_bytes_max)
            self.members[member] = Member(config, voters, seed=member)
        self.network: deque[Message] = deque()
        self.blocked: set[tuple[int, int]] = set()

    def node(self, member: int) -> RawNode:
        return self.members[member].node

    def isolate(self, member: int) -> None:
        for other in self.members:
            self.blocked |= {(member, other), (other, member)}

    def heal(self) -> None:
        self.blocked.clear()

    def post(self, messages: list[Message]) -> None:
        for message in messages:
            if (message.sender, message.to) not in self.blocked:
                self.network.append(message)

    def work(self, member: int) -> bool:
        """All that a member can do without hearing from others. False when there is nothing."""
        one = self.members[member]
        did = False
        while one.node.has_ready() or one.at_disk:
            did = True
            if one.node.has_ready():
                self.post(one.take_ready().messages)
            if one.at_disk:
                self.post(one.persist_one().messages_after_append)
        return did

    def deliver(self) -> bool:
        did = bool(self.network)
        for _ in range(len(self.network)):
            message = self.network.popleft()
            if (message.sender, message.to) not in self.blocked:
                self.members[message.to].node.step(message)
        return did

    def stabilize(self, rounds_max: int = 1000) -> None:
        """Work and deliver until nothing is left."""
        for _ in range(rounds_max):
            did = [self.work(member) for member in self.members]
            if not self.deliver() and not any(did):
                return
        raise AssertionError(f"not stable after {rounds_max} rounds")

    def elect(self, member: int) -> None:
        self.node(member).campaign()
        self.stabilize()
        assert self.node(member).status().role is Role.LEADER

    def leaders(self) -> dict[int, list[int]]:
        """Term → members that lead in it."""
        found: dict[int, list[int]] = {}
        for member, one in self.members.items():
            status = one.node.status()
            if status.role is Role.LEADER:
                found.setdefault(status.term, []).append(member)
        return found

    def applied_data(self, member: int) -> list[bytes]:
        return [entry.data for entry in self.members[member].applied if entry.data]
