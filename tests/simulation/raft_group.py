"""The Raft core alone under a random schedule: many small groups, every order of messages, disk work, ticks and crashes.

Much faster than the whole cluster (no clock, no store), so it goes through many more schedules of the part where schedules matter most.
What is checked: Election Safety, Log Matching, Leader Completeness and State Machine Safety (Raft figure 3), that what is sent "after
append" is durable when it is sent, linearizable ReadIndex, and progress once all faults end.
"""

from __future__ import annotations

import contextlib
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, HardState, Message, MessageType, SnapshotMetadata
from storage.raft.rawnode import Config, ProposalDroppedError, RawNode, Ready, Role
from tests.simulation.world import InvariantError

HEAL_ROUNDS_MAX: Final = 400
"""Ticks after which a healed group must have committed something new."""


@dataclass(slots=True, kw_only=True)
class _Choices:
    """What the seed drew: how often each thing happens, as weights."""

    deliver: int
    tick: int
    work: int
    persist: int
    propose: int
    lose: int
    double: int
    crash: int
    campaign: int
    cut: int


@dataclass(slots=True)
class _History:
    """What is true for the whole group, forever."""

    committed: list[Entry] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)

    def note_leader(self, term: int, member: int) -> None:
        other = self.leaders.setdefault(term, member)
        if other != member:
            raise InvariantError(f"members {other} and {member} both lead in term {term}")

    def note_committed(self, member: int, entry: Entry) -> None:
        position = entry.index - 1
        if position > len(self.committed):
            raise InvariantError(f"member {member} commits entry {entry.index}, but only {len(self.committed)} are known")
        if position == len(self.committed):
            self.committed.append(entry)
        elif self.committed[position] != entry:
            raise InvariantError(f"member {member} commits {entry}, another one committed {self.committed[position]}")


class _Peer:
    """A RawNode, what its disk holds and what is on the way there."""

    def __init__(self, group: RaftGroup, member: int, config: Config, voters: tuple[int, ...]) -> None:
        self.group = group
        self.id = member
        self.config = config
        self.storage = MemoryLogStorage(SnapshotMetadata(ConfState(voters)))
        self.durable_state = HardState()
        self.at_disk: deque[tuple[Ready, HardState | None]] = deque()
        self.applied = 0
        self.node = self._new_node()

    def _new_node(self) -> RawNode:
        rng = random.Random(self.group.rng.getrandbits(32))
        return RawNode(self.config, self.storage, rng)

    def work(self) -> None:
        """Take one Ready: send, hand to the disk, apply."""
        node, group = self.node, self.group
        if not node.has_ready():
            return
        ready = node.ready()
        if node.raft.role is Role.LEADER:
            group.history.note_leader(node.raft.term, self.id)
        group.send(ready.messages)
        self.at_disk.append((ready, ready.hard_state))
        if not ready.must_sync and len(self.at_disk) == 1:
            self.persist()
        for entry in ready.committed_entries:
            if entry.index != self.applied + 1:
                raise InvariantError(f"member {self.id} applies entry {entry.index} after {self.applied}")
            group.history.note_committed(self.id, entry)
            self.applied = entry.index
        if ready.committed_entries:
            node.advance_applied(self.applied)

    def persist(self) -> None:
        """The disk has written the oldest Ready."""
        if not self.at_disk:
            return
        ready, state = self.at_disk.popleft()
        self._write(ready, state)
        self.node.advance_persisted(ready)
        self.group.send(ready.messages_after_append)

    def _write(self, ready: Ready, state: HardState | None) -> None:
        if state is not None:
            self.durable_state = state
        self.storage.append(ready.entries)

    def crash(self) -> None:
        """Some of what was on the way to the disk got there, in order."""
        for _ in range(self.group.rng.randint(0, len(self.at_disk))):
            self._write(*self.at_disk.popleft())
        self.at_disk.clear()
        saved = self.durable_state
        self.storage.hard_state = HardState(saved.term, saved.vote, min(saved.commit, self.storage.last_index()))
        self.applied = 0
        self.node = self._new_node()


class RaftGroup:
    """One group under the schedule of one seed."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.history = _History()
        size = rng.choice((1, 2, 3, 3, 3, 4, 5))
        voters = tuple(range(1, size + 1))
        pre_vote, check_quorum = rng.random() < 0.7, rng.random() < 0.7
        election_ticks = rng.choice((3, 10))
        self._network: list[Message] = []
        self._links_cut: set[tuple[int, int]] = set()
        self._proposed = 0
        self.choices = _Choices(
            deliver=rng.choice((20, 60, 60)),
            tick=rng.choice((5, 20)),
            work=rng.choice((20, 60)),
            persist=rng.choice((10, 60)),
            propose=rng.choice((2, 10)),
            lose=rng.choice((0, 1, 10)),
            double=rng.choice((0, 5)),
            crash=rng.choice((0, 1, 2)),
            campaign=rng.choice((0, 1)),
            cut=rng.choice((0, 1)),
        )
        self.peers = {
            member: _Peer(
                self,
                member,
                Config(
                    id=member,
                    election_ticks=election_ticks,
                    pre_vote=pre_vote,
                    check_quorum=check_quorum,
                    in_flight_max=rng.choice((1, 2, 8)),
                    message_bytes_max=rng.choice((1, 20, 1000)),
                    committed_bytes_max=rng.choice((1, 50, 1000)),
                    uncommitted_bytes_max=rng.choice((20, 10_000)),
                ),
                voters,
            )
            for member in voters
        }

    def send(self, messages: list[Message]) -> None:
        for message in messages:
            if (message.sender, message.to) not in self._links_cut:
                self._network.append(message)

    def run(self, steps: int) -> None:
        """Hurt, then heal. Raises InvariantError."""
        names = tuple(_Choices.__slots__)
        weights = [getattr(self.choices, name) for name in names]
        actions = [getattr(self, f"_{name}") for name in names]
        choose, members = self.rng.choices, list(self.peers.values())
        for action in choose(actions, weights, k=steps):
            action(members[self.rng.randrange(len(members))])
        self.heal()

    def heal(self) -> None:
        """No more faults: the group elects a leader and commits what is proposed now, on every member."""
        self._links_cut.clear()
        committed_before = len(self.history.committed)
        asked: set[bytes] = set()
        for _ in range(HEAL_ROUNDS_MAX):
            for peer in self.peers.values():
                peer.node.tick()
            self._settle()
            leaders = [peer for peer in self.peers.values() if peer.node.raft.role is Role.LEADER]
            if leaders:
                self._propose(max(leaders, key=lambda peer: peer.node.raft.term))
                asked.add(self._proposed_data())
            committed = self.history.committed
            if any(entry.data in asked for entry in committed[committed_before:]):
                if all(peer.applied == len(committed) for peer in self.peers.values()):
                    return
        states = [peer.node.status() for peer in self.peers.values()]
        raise InvariantError(f"no progress in {HEAL_ROUNDS_MAX} ticks after all faults ended: {states}")

    def _settle(self) -> None:
        for _ in range(20):
            for peer in self.peers.values():
                while peer.node.has_ready():
                    peer.work()
                while peer.at_disk:
                    peer.persist()
            messages, self._network = self._network, []
            if not messages:
                return
            for message in messages:
                self._step(message)

    # -- what happens

    def _deliver(self, peer: _Peer) -> None:
        if self._network:
            position = self.rng.randrange(len(self._network))
            message = self._network[position]
            self._network[position] = self._network[-1]
            self._network.pop()
            self._step(message)

    def _step(self, message: Message) -> None:
        with contextlib.suppress(ProposalDroppedError):  # its sender hears nothing, and would try again
            self.peers[message.to].node.step(message)

    def _tick(self, peer: _Peer) -> None:
        peer.node.tick()

    def _work(self, peer: _Peer) -> None:
        peer.work()

    def _persist(self, peer: _Peer) -> None:
        peer.persist()

    def _proposed_data(self) -> bytes:
        return b"%d" % self._proposed

    def _propose(self, peer: _Peer) -> None:
        self._proposed += 1
        with contextlib.suppress(ProposalDroppedError):
            peer.node.propose(self._proposed_data())

    def _lose(self, peer: _Peer) -> None:
        if self._network:
            lost = self._network.pop(self.rng.randrange(len(self._network)))
            if self.rng.random() < 0.3:
                self.peers[lost.sender].node.report_unreachable(lost.to)

    def _double(self, peer: _Peer) -> None:
        if self._network:
            message = self.rng.choice(self._network)
            if message.type is not MessageType.PROPOSE:
                self._network.append(message)

    def _crash(self, peer: _Peer) -> None:
        peer.crash()

    def _campaign(self, peer: _Peer) -> None:
        peer.node.campaign()

    def _cut(self, peer: _Peer) -> None:
        """Cut a link in one direction, or mend all."""
        if self.rng.random() < 0.3:
            self._links_cut.clear()
            return
        other = self.rng.choice(list(self.peers))
        if other != peer.id:
            self._links_cut.add((peer.id, other))
