"""Members in one thread: messages and disk work wait in queues until a test moves them."""

from __future__ import annotations

import contextlib
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from storage.raft import codec
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, EntryType, HardState, Message, MessageType, Snapshot, SnapshotMetadata
from storage.raft.rawnode import Config, ProposalDroppedError, RawNode, ReadIndexDroppedError, ReadState, Ready, Role


class Member:
    """A RawNode with its log storage and a state machine that is the list of the entries applied.

    What was written but not persisted is lost by ``crash``. The state machine is kept as it was at the last ``snapshot`` (or at one
    that was installed); the entries behind it are applied again.
    """

    def __init__(self, config: Config, conf_state: ConfState, seed: int) -> None:
        self.config = config
        self.seed = seed
        self.storage = MemoryLogStorage(SnapshotMetadata(conf_state))
        self.node = RawNode(config, self.storage, random.Random(seed))
        self.at_disk: deque[Ready] = deque()
        self.applied: list[Entry] = []
        self.kept: list[Entry] = []
        self.read_states: list[ReadState] = []

    def take_ready(self) -> Ready:
        """Take a Ready, apply what is committed, leave the disk work in ``at_disk``."""
        ready = self.node.ready()
        self.read_states += ready.read_states
        for entry in ready.committed_entries:
            self.applied.append(entry)
            if entry.type is not EntryType.NORMAL:
                self.node.apply_conf_change(codec.decode_conf_change_entry(entry))
        if ready.committed_entries:
            self.node.advance_applied(ready.committed_entries[-1].index)
        self.at_disk.append(ready)
        return ready

    def persist_one(self) -> Ready:
        ready = self.at_disk.popleft()
        if ready.snapshot is not None:
            metadata = ready.snapshot.metadata
            self.storage.apply_snapshot(metadata)
            self.applied = decode_state(ready.snapshot.data)
            self.kept = list(self.applied)
            assert metadata.index == self.applied[-1].index
        if ready.hard_state:
            self.storage.hard_state = ready.hard_state
        self.storage.append(ready.entries)
        self.node.advance_persisted(ready)
        return ready

    def snapshot(self, *, keep: int = 0) -> None:
        """Keep the state machine as it is now; forget the log but for the last ``keep`` entries before that."""
        if not self.applied or self.applied[-1].index != self.node.status().applied:
            return  # nothing was applied, or a snapshot is being installed
        last = self.applied[-1]
        self.kept = list(self.applied)
        metadata = SnapshotMetadata(self.node.conf_state(), last.index, last.term)
        self.storage.set_snapshot(metadata)
        self.storage.conf_state = metadata.conf_state
        self.storage.compact(last.index - keep)

    def outgoing(self, message: Message) -> Message:
        """The message as the transport sends it: with the state machine that belongs to a snapshot."""
        if message.type is not MessageType.SNAPSHOT:
            return message
        assert message.snapshot is not None
        metadata = message.snapshot.metadata
        state = encode_state([entry for entry in self.kept if entry.index <= metadata.index])
        return codec.decode_message(
            codec.encode_message(
                Message(type=message.type, to=message.to, sender=message.sender, term=message.term, snapshot=Snapshot(state, metadata))
            )
        )

    def crash(self) -> None:
        """Lose all that was not persisted and start from the disk."""
        self.at_disk.clear()
        self.read_states.clear()
        self.applied = list(self.kept)
        saved = self.storage.hard_state
        self.storage.hard_state = HardState(saved.term, saved.vote, min(saved.commit, self.storage.last_index()))
        self.seed += 1000
        config = Config(**{**_fields(self.config), "applied": self.kept[-1].index if self.kept else 0})
        self.node = RawNode(config, self.storage, random.Random(self.seed))


def _fields(config: Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in Config.__slots__}


def encode_state(entries: list[Entry]) -> bytes:
    return b"".join(len(data).to_bytes(4, "big") + data for data in map(codec.encode_entry, entries))


def decode_state(data: bytes) -> list[Entry]:
    entries = []
    while data:
        length = int.from_bytes(data[:4], "big")
        entries.append(codec.decode_entry(data[4 : 4 + length]))
        data = data[4 + length :]
    return entries


class Cluster:
    """``blocked`` holds (from, to) pairs whose messages are lost. ``settings`` are those of Config."""

    def __init__(self, size: int, *, voters: tuple[int, ...] = (), learners: tuple[int, ...] = (), **settings: Any) -> None:
        self.settings: dict[str, Any] = {"pre_vote": False, "check_quorum": False, "committed_bytes_max": 1 << 20, **settings}
        members = tuple(range(1, size + 1))
        self.conf_state = ConfState(voters or tuple(member for member in members if member not in learners), learners)
        self.members: dict[int, Member] = {}
        for member in members:
            self.members[member] = Member(Config(id=member, **self.settings), self.conf_state, seed=member)
        self.network: deque[Message] = deque()
        self.blocked: set[tuple[int, int]] = set()

    def add_member(self, member: int) -> None:
        """A new process with an empty log that is in no configuration yet: it knows that of the beginning, as a joining member does
        that is told of the others."""
        self.members[member] = Member(Config(id=member, **self.settings), self.conf_state, seed=member)

    def node(self, member: int) -> RawNode:
        return self.members[member].node

    def isolate(self, member: int) -> None:
        for other in self.members:
            self.blocked |= {(member, other), (other, member)}

    def heal(self) -> None:
        self.blocked.clear()

    def post(self, messages: list[Message]) -> None:
        for message in messages:
            if (message.sender, message.to) not in self.blocked and message.to in self.members:
                self.network.append(self.members[message.sender].outgoing(message))
            elif message.type is MessageType.SNAPSHOT:
                self.node(message.sender).report_snapshot(message.to, False)

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
            self.deliver_one(self.network.popleft())
        return did

    def deliver_one(self, message: Message) -> None:
        """A snapshot's sender is told how it went, as its transport would. Requests that are not taken are lost on the way."""
        arrives = (message.sender, message.to) not in self.blocked
        if arrives:
            with contextlib.suppress(ProposalDroppedError, ReadIndexDroppedError):
                self.members[message.to].node.step(message)
        if message.type is MessageType.SNAPSHOT:
            self.node(message.sender).report_snapshot(message.to, arrives)

    def stabilize(self, rounds_max: int = 1000) -> None:
        """Work and deliver until nothing is left."""
        for _ in range(rounds_max):
            did = [self.work(member) for member in self.members]
            if not self.deliver() and not any(did):
                return
        raise AssertionError(f"not stable after {rounds_max} rounds")

    def work_until(self, condition: Callable[[], bool], rounds_max: int = 100) -> None:
        """Work and deliver until ``condition`` holds; what is on its way then stays there."""
        for _ in range(rounds_max):
            for member in self.members:
                self.work(member)
                if condition():
                    return
            self.deliver()
            if condition():
                return
        raise AssertionError(f"not so after {rounds_max} rounds")

    def on_the_way(self, kind: MessageType) -> list[Message]:
        return [message for message in self.network if message.type is kind]

    def elect(self, member: int) -> None:
        self.node(member).campaign()
        self.stabilize()
        assert self.node(member).status().role is Role.LEADER

    def leaders(self) -> dict[int, list[int]]:
        """Term → members that lead in it."""
        found: dict[int, list[int]] = {}
        for member, one in self.members.items():
            raft = one.node.raft
            if raft.role is Role.LEADER:
                found.setdefault(raft.term, []).append(member)
        return found

    def applied_data(self, member: int) -> list[bytes]:
        return [entry.data for entry in self.members[member].applied if entry.data and entry.type is EntryType.NORMAL]
