"""The Raft core alone under a random schedule: many small groups, every order of messages, disk work, ticks and crashes.

Much faster than the whole cluster (no clock, no store), so it goes through many more schedules of the part where schedules matter most.
What is checked: Election Safety, Log Matching, Leader Completeness and State Machine Safety (Raft figure 3), one vote a term over crashes,
one configuration at an index, linearizable ReadIndex, and progress once all faults end.
"""

from __future__ import annotations

import contextlib
import random
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final

from storage.raft import codec
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import (
    ConfChangeSingle,
    ConfChangeTransition,
    ConfChangeType,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    MessageType,
    Snapshot,
    SnapshotMetadata,
)
from storage.raft.rawnode import Config, ProposalDroppedError, RawNode, ReadIndexDroppedError, Ready, Role
from tests.simulation.world import InvariantError

HEAL_ROUNDS_MAX: Final = 400
"""Ticks after which a healed group must have committed something new."""

MEMBERS_MAX: Final = 6
"""Ids that membership changes draw from."""


@dataclass(slots=True, kw_only=True)
class _Choices:
    """What the seed drew: how often each thing happens, as weights."""

    deliver: int
    tick: int
    work: int
    persist: int
    propose: int
    read: int
    lose: int
    double: int
    crash: int
    campaign: int
    cut: int
    transfer: int
    change: int
    keep: int
    compact: int


@dataclass(slots=True)
class _History:
    """What is true for the whole group, forever. ``configurations``: after each entry that changed it."""

    committed: list[Entry] = field(default_factory=list)
    leaders: dict[int, int] = field(default_factory=dict)
    votes: dict[tuple[int, int], int] = field(default_factory=dict)
    configurations: dict[int, ConfState] = field(default_factory=dict)
    applied: int = 0
    """The greatest index that any member has applied: what clients may have been told."""

    def note_vote(self, message: Message) -> None:
        """Raft §5.2: one vote a term, also over crashes."""
        other = self.votes.setdefault((message.sender, message.term), message.to)
        if other != message.to:
            raise InvariantError(f"member {message.sender} votes in term {message.term} for {other} and for {message.to}")

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
        self.applied = max(self.applied, entry.index)

    def note_configuration(self, member: int, index: int, configuration: ConfState) -> None:
        other = self.configurations.setdefault(index, configuration)
        if other != configuration:
            raise InvariantError(f"member {member} has {configuration} after entry {index}, another one {other}")

    def configuration_at(self, index: int) -> ConfState:
        return self.configurations[max(at for at in self.configurations if at <= index)]

    def check_snapshot(self, member: int, metadata: SnapshotMetadata) -> None:
        if metadata.index > len(self.committed):
            raise InvariantError(f"member {member} installs a snapshot of {metadata.index}, only {len(self.committed)} are committed")
        term = self.committed[metadata.index - 1].term
        if metadata.term != term:
            raise InvariantError(f"member {member} installs a snapshot of entry {metadata.index} of term {metadata.term}, not {term}")
        if metadata.conf_state != self.configuration_at(metadata.index):
            raise InvariantError(
                f"member {member} installs {metadata.conf_state} with entry {metadata.index}, not {self.configuration_at(metadata.index)}"
            )


class _Peer:
    """A RawNode, what its disk holds and what is on the way there. The state machine is its index and configuration; ``kept_index`` is
    where it stands after a crash."""

    def __init__(self, group: RaftGroup, member: int, config: Config, bootstrap: ConfState) -> None:
        self.group = group
        self.id = member
        self.config = config
        self.storage = MemoryLogStorage(SnapshotMetadata(bootstrap))
        self.durable_state = HardState()
        self.at_disk: deque[Ready] = deque()
        self.applied = 0
        self.kept_index = 0
        self.reads: dict[bytes, int] = {}
        """Context → what was applied somewhere when the read was asked for."""
        self.node = self._new_node()

    def _new_node(self) -> RawNode:
        rng = random.Random(self.group.rng.getrandbits(32))
        return RawNode(replace(self.config, applied=self.kept_index), self.storage, rng)

    def work(self) -> None:
        """Take one Ready: send, hand to the disk, apply."""
        node, group = self.node, self.group
        if not node.has_ready():
            return
        ready = node.ready()
        if node.raft.role is Role.LEADER:
            group.history.note_leader(node.raft.term, self.id)
        group.send(ready.messages)
        self.at_disk.append(ready)
        for entry in ready.committed_entries:
            self._apply(entry)
        if ready.committed_entries:
            node.advance_applied(self.applied)
        for state in ready.read_states:
            asked_at = self.reads.pop(state.context, None)
            if asked_at is not None and state.index < asked_at:
                raise InvariantError(f"member {self.id} may read at {state.index}, but {asked_at} was applied before it asked")
        if not ready.must_sync and len(self.at_disk) == 1:
            self.persist()

    def _apply(self, entry: Entry) -> None:
        group = self.group
        if entry.index != self.applied + 1:
            raise InvariantError(f"member {self.id} applies entry {entry.index} after {self.applied}")
        group.history.note_committed(self.id, entry)
        self.applied = entry.index
        if entry.type is not EntryType.NORMAL:
            configuration = self.node.apply_conf_change(codec.decode_conf_change_entry(entry))
            group.history.note_configuration(self.id, entry.index, configuration)

    def persist(self) -> None:
        """The disk has written the oldest Ready."""
        if not self.at_disk:
            return
        ready = self.at_disk.popleft()
        self._write(ready)
        if ready.snapshot is not None:
            self.applied = ready.snapshot.metadata.index
        self.node.advance_persisted(ready)
        self.group.send(ready.messages_after_append)

    def _write(self, ready: Ready) -> None:
        if ready.snapshot is not None:
            metadata = ready.snapshot.metadata
            self.group.history.check_snapshot(self.id, metadata)
            self.storage.apply_snapshot(metadata)
            self.kept_index = metadata.index
        if ready.hard_state is not None:
            self.durable_state = ready.hard_state
        self.storage.append(ready.entries)

    def keep(self) -> None:
        """The state machine is on disk as it is now; it can be sent to others."""
        if self.applied <= self.kept_index or self.applied > self.storage.last_index():
            return
        self.kept_index = self.applied
        configuration = self.group.history.configuration_at(self.applied)
        self.storage.set_snapshot(SnapshotMetadata(configuration, self.applied, self.storage.term(self.applied)))

    def crash(self) -> None:
        """Some of what was on the way to the disk got there, in order."""
        for _ in range(self.group.rng.randint(0, len(self.at_disk))):
            self._write(self.at_disk.popleft())
        self.at_disk.clear()
        self.reads.clear()
        saved = self.durable_state
        commit = min(max(saved.commit, self.storage.first_index() - 1), self.storage.last_index())
        self.storage.hard_state = HardState(saved.term, saved.vote, commit)
        self.storage.conf_state = self.group.history.configuration_at(self.kept_index)
        self.applied = self.kept_index
        self.node = self._new_node()


class RaftGroup:
    """One group under the schedule of one seed."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        size = rng.choice((1, 2, 3, 3, 3, 4, 5))
        changes = rng.choice((0, 0, 1))
        voters = tuple(range(1, size + 1))
        pre_vote, check_quorum = rng.random() < 0.7, rng.random() < 0.7
        self.history = _History()
        bootstrap = self.history.configurations[0] = ConfState(voters)
        self._network: list[Message] = []
        self._links_cut: set[tuple[int, int]] = set()
        self._reports: list[tuple[int, int, bool]] = []
        """(leader, member, ok) owed for snapshots."""
        self._proposed = 0
        election_ticks = rng.choice((3, 10))
        self.choices = _Choices(
            deliver=rng.choice((20, 60, 60)),
            tick=rng.choice((5, 20)),
            work=rng.choice((20, 60)),
            persist=rng.choice((10, 60)),
            propose=rng.choice((2, 10)),
            read=rng.choice((0, 3)),
            lose=rng.choice((0, 1, 10)),
            double=rng.choice((0, 5)),
            crash=rng.choice((0, 1, 2)),
            campaign=rng.choice((0, 1)),
            cut=rng.choice((0, 1)),
            transfer=rng.choice((0, 0, 1)),
            change=changes,
            keep=rng.choice((0, 3)),
            compact=rng.choice((0, 3)),
        )
        members = range(1, (MEMBERS_MAX if changes else size) + 1)
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
                    pending_reads_max=rng.choice((1, 1000)),
                ),
                bootstrap,
            )
            for member in members
        }

    def send(self, messages: list[Message]) -> None:
        for message in messages:
            if message.type is MessageType.VOTE_RESPONSE and not message.reject:
                self.history.note_vote(message)
            if (message.sender, message.to) not in self._links_cut:
                self._network.append(self._as_sent(message))
            elif message.type is MessageType.SNAPSHOT:
                self._reports.append((message.sender, message.to, False))

    def _as_sent(self, message: Message) -> Message:
        """A snapshot is made when it is sent: of what the state machine is then."""
        applied = self.peers[message.sender].applied
        if message.snapshot is None or message.snapshot.metadata.index >= applied:
            return message
        term = self.history.committed[applied - 1].term
        metadata = SnapshotMetadata(self.history.configuration_at(applied), applied, term)
        return replace(message, snapshot=Snapshot(metadata=metadata))

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
        """No more faults: the group elects a leader and commits what is proposed now, on every member of its configuration."""
        self._links_cut.clear()
        committed_before = len(self.history.committed)
        asked: set[bytes] = set()
        for _ in range(HEAL_ROUNDS_MAX):
            for peer in self.peers.values():
                peer.node.tick()
                peer.keep()
            self._settle()
            leaders = [peer for peer in self.peers.values() if peer.node.raft.role is Role.LEADER]
            for peer in leaders:
                peer.keep()  # or one that was added after the last snapshot would never get one that names it
            if leaders:
                self._propose(max(leaders, key=lambda peer: peer.node.raft.term))
                asked.add(self._proposed_data())
            committed = self.history.committed
            if any(entry.data in asked for entry in committed[committed_before:]):
                if all(peer.applied == len(committed) for peer in self._members_now()):
                    return
        states = [peer.node.status() for peer in self.peers.values()]
        raise InvariantError(f"no progress in {HEAL_ROUNDS_MAX} ticks after all faults ended: {states}")

    def _members_now(self) -> list[_Peer]:
        configuration = self.history.configuration_at(len(self.history.committed))
        return [self.peers[member] for member in (*configuration.voters, *configuration.voters_outgoing, *configuration.learners)]

    def _settle(self) -> None:
        for _ in range(20):
            for peer in self.peers.values():
                while peer.node.has_ready():
                    peer.work()
                while peer.at_disk:
                    peer.persist()
            messages, self._network = self._network, []
            if not messages and not self._reports:
                return
            for message in messages:
                self._step(message)
            while self._reports:
                self._report()

    # -- what happens

    def _deliver(self, peer: _Peer) -> None:
        rng = self.rng
        if self._reports and rng.random() < 0.1:
            self._report()
        if self._network:
            position = rng.randrange(len(self._network))
            message = self._network[position]
            self._network[position] = self._network[-1]
            self._network.pop()
            self._step(message)

    def _step(self, message: Message) -> None:
        if message.type is MessageType.SNAPSHOT:
            self._reports.append((message.sender, message.to, True))
        with contextlib.suppress(ProposalDroppedError, ReadIndexDroppedError):  # its sender hears nothing, and would try again
            self.peers[message.to].node.step(message)

    def _report(self) -> None:
        leader, member, ok = self._reports.pop(self.rng.randrange(len(self._reports)))
        self.peers[leader].node.report_snapshot(member, ok)

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

    def _read(self, peer: _Peer) -> None:
        self._proposed += 1
        context = self._proposed_data()
        with contextlib.suppress(ReadIndexDroppedError):
            peer.reads[context] = self.history.applied
            peer.node.read_index(context)

    def _lose(self, peer: _Peer) -> None:
        if self._network:
            lost = self._network.pop(self.rng.randrange(len(self._network)))
            if lost.type is MessageType.SNAPSHOT:
                self._reports.append((lost.sender, lost.to, False))
            if self.rng.random() < 0.3:
                self.peers[lost.sender].node.report_unreachable(lost.to)

    def _double(self, peer: _Peer) -> None:
        if self._network:
            message = self.rng.choice(self._network)
            if message.type not in (MessageType.PROPOSE, MessageType.SNAPSHOT):
                self._network.append(message)

    def _crash(self, peer: _Peer) -> None:
        peer.crash()

    def _campaign(self, peer: _Peer) -> None:
        peer.node.campaign()

    def _transfer(self, peer: _Peer) -> None:
        peer.node.transfer_leader(self.rng.choice(list(self.peers)))

    def _keep(self, peer: _Peer) -> None:
        peer.keep()

    def _compact(self, peer: _Peer) -> None:
        """Forget entries that the kept state machine covers, some or all."""
        peer.storage.compact(peer.kept_index - self.rng.choice((0, 0, 1, 5)))

    def _change(self, peer: _Peer) -> None:
        """Propose another membership, one change or several."""
        rng = self.rng
        if rng.random() < 0.2:
            change = ConfChangeV2()
        else:
            kinds = (ConfChangeType.ADD_NODE, ConfChangeType.ADD_NODE, ConfChangeType.REMOVE_NODE, ConfChangeType.ADD_LEARNER_NODE)
            singles = tuple(ConfChangeSingle(rng.choice(kinds), rng.choice(list(self.peers))) for _ in range(rng.choice((1, 1, 1, 2, 3))))
            change = ConfChangeV2(singles, rng.choice(list(ConfChangeTransition)))
        with contextlib.suppress(ProposalDroppedError):
            peer.node.propose_conf_change(change)

    def _cut(self, peer: _Peer) -> None:
        """Cut a link in one direction, or mend all."""
        if self.rng.random() < 0.3:
            self._links_cut.clear()
            return
        other = self.rng.choice(list(self.peers))
        if other != peer.id:
            self._links_cut.add((peer.id, other))
