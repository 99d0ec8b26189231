"""The door of the Raft core: propose, step, tick, campaign; has_ready, ready, advance. See the package docstring for the caller's part."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from storage.raft import codec, leader
from storage.raft.config import Config, ProposalDroppedError, ReadIndexDroppedError, Role
from storage.raft.log_storage import LogStorage
from storage.raft.messages import (
    FORWARDED,
    LOCAL_MESSAGES,
    NO_MEMBER,
    RESPONSES,
    ConfChange,
    ConfChangeV2,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    MessageType,
    Snapshot,
    as_v2,
    made_often,
)
from storage.raft.progress import ProgressState
from storage.raft.raft import Raft
from storage.raft.read_only import ReadState

__all__ = [
    "Config",
    "MemberProgress",
    "ProposalDroppedError",
    "RawNode",
    "ReadIndexDroppedError",
    "ReadState",
    "Ready",
    "Role",
    "SoftState",
    "Status",
]


@dataclass(frozen=True, slots=True)
class SoftState:
    """What is good to know and need not be kept."""

    leader_id: int
    role: Role


@made_often(kw_only=True)
class Ready:
    """What is to be done. Fields that are None or empty ask for nothing.

    ``must_sync``: the snapshot, ``entries`` or a new term or vote must be durable before ``advance_persisted``. When it is False the
    Ready may hold a new commit index, which may be written whenever convenient.

    With a ``snapshot``, ``committed_entries`` is empty, and stays so in the following Readys until this one is advanced.
    """

    number: int
    soft_state: SoftState | None
    hard_state: HardState | None
    read_states: tuple[ReadState, ...] = ()
    snapshot: Snapshot | None = None
    entries: list[Entry]
    committed_entries: list[Entry]
    messages: list[Message]
    messages_after_append: list[Message]
    must_sync: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberProgress:
    """What the leader knows of one member (``progress.Progress``). ``match`` of the leader itself is what is durable there."""

    member: int
    state: ProgressState
    match: int
    next: int
    is_learner: bool
    recent_active: bool
    paused: bool
    pending_snapshot: int
    in_flight_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """``progress`` is empty but for a leader; it holds every member, itself too, ascending."""

    id: int
    role: Role
    leader_id: int
    term: int
    vote: int
    committed: int
    applied: int
    last_index: int
    config: ConfState
    lead_transferee: int = NO_MEMBER
    progress: tuple[MemberProgress, ...] = ()


@dataclass(slots=True)
class _AtDisk:
    """What is due when a Ready is durable. ``term`` is that of the time when it was taken, ``last`` the last entry that is not known
    to be durable before it (index, term)."""

    ready: Ready
    term: int
    last: Entry | None
    to_self: list[Message]


class RawNode:
    """One member of a Raft group. Not safe for threads: one owner calls it."""

    def __init__(self, config: Config, storage: LogStorage, rng: random.Random) -> None:
        self.raft = Raft(config, storage, rng)
        self._soft_state = SoftState(self.raft.leader_id, self.raft.role)
        self._hard_state = self.raft.hard_state()
        self._number = 0
        self._at_disk: deque[_AtDisk] = deque()

    # -- input

    def tick(self) -> None:
        self.raft.tick()

    def campaign(self) -> None:
        """Stand for election now. A single voter is leader after its next Ready is durable."""
        self.raft.step(Message(type=MessageType.HUP, sender=self.raft.id))

    def propose(self, data: bytes) -> None:
        """Raises ProposalDroppedError."""
        self.propose_many((data,))

    def propose_many(self, data: Sequence[bytes]) -> None:
        """Propose several entries as one append, all or none. Raises ProposalDroppedError."""
        if not data:
            return
        raft = self.raft
        if raft.role is Role.LEADER:
            leader.propose(raft, [(item, EntryType.NORMAL) for item in data])
        else:
            raft.step(
                Message(type=MessageType.PROPOSE, sender=raft.id, entries=tuple(Entry(0, 0, item, EntryType.NORMAL) for item in data))
            )

    def propose_conf_change(self, change: ConfChange | ConfChangeV2) -> None:
        """Propose a change of the members. Raises ProposalDroppedError.

        The leader lets it into the log only if no other is pending and it can be made; else an empty entry of type NORMAL takes its
        place. When its entry is applied, decode it with ``codec.decode_conf_change_entry`` and call ``apply_conf_change``.
        """
        data, kind = codec.conf_change_proposal(change)
        self.raft.step(Message(type=MessageType.PROPOSE, sender=self.raft.id, entries=(Entry(0, 0, data, kind),)))

    def apply_conf_change(self, change: ConfChange | ConfChangeV2) -> ConfState:
        """A committed entry that holds ``change`` is applied now, before ``advance_applied`` of its index. Returns the configuration
        in force from here on, which is to be kept with the state machine. For a change that is declined, pass a ConfChange of
        NO_MEMBER. Messages and a new role may follow in the next Ready. Raises ConfChangeError."""
        return self.raft.apply_conf_change(as_v2(change))

    def read_index(self, context: bytes) -> None:
        """Ask from where on a linearizable read may be served: a later Ready holds ReadState(index, context).

        None comes when the leader changes, or a message is lost between a follower and the leader: ask again after a while with
        another context. Raises ReadIndexDroppedError when that is known at once.
        """
        self.raft.step(Message(type=MessageType.READ_INDEX, sender=self.raft.id, entries=(Entry(0, 0, context),)))

    def transfer_leader(self, transferee: int) -> None:
        """Ask the leader to hand over to ``transferee``. It takes no proposals until that leads or an election timeout is over.
        Nothing happens for a learner, a stranger, or when no leader is known."""
        self.raft.step(Message(type=MessageType.TRANSFER_LEADER, sender=transferee))

    def step(self, message: Message) -> None:
        """Take a message of a peer. Messages that no peer may send and answers of strangers are ignored. A proposal that was passed on
        may raise ProposalDroppedError, a read ReadIndexDroppedError."""
        kind = message.type
        if kind in LOCAL_MESSAGES or (message.term == 0 and kind not in FORWARDED):
            return
        if kind in RESPONSES and message.sender not in self.raft.tracker.progress:
            return
        self.raft.step(message)

    def report_unreachable(self, member: int) -> None:
        """The last message to ``member`` was not delivered."""
        if self.raft.role is Role.LEADER:
            self.raft.step(Message(type=MessageType.UNREACHABLE, sender=member))

    def report_snapshot(self, member: int, ok: bool) -> None:
        """How it ended to send the snapshot of a SNAPSHOT message to ``member``. Owed for each of them: until then, or an answer, the
        member is sent nothing else."""
        if self.raft.role is Role.LEADER:
            self.raft.step(Message(type=MessageType.SNAPSHOT_STATUS, sender=member, reject=not ok))

    # -- output

    def has_ready(self) -> bool:
        raft = self.raft
        log, unstable, hard_state, soft_state = raft.log, raft.log.unstable, self._hard_state, self._soft_state
        return bool(
            unstable.offset_in_progress < unstable.offset + len(unstable.entries)
            or log.committed != hard_state.commit
            or log.has_next_committed()
            or raft.messages
            or raft.messages_after_append
            or raft.term != hard_state.term
            or raft.vote != hard_state.vote
            or raft.role is not soft_state.role
            or raft.leader_id != soft_state.leader_id
            or raft.read_states
            or raft.read_only.round_is_due
            or (unstable.snapshot and not unstable.snapshot_in_progress)
        )

    def ready(self) -> Ready:
        """All that is to be done now. It counts as taken: the next Ready does not repeat it."""
        raft, old = self.raft, self._hard_state
        if raft.read_only.round_is_due:
            leader.broadcast_heartbeat(raft)
        log, unstable = raft.log, raft.log.unstable
        entries = unstable.next_entries()
        snapshot = None if unstable.snapshot_in_progress else unstable.snapshot
        must_sync = bool(entries) or snapshot is not None
        hard_state: HardState | None = None
        if log.committed != old.commit or raft.term != old.term or raft.vote != old.vote:
            self._hard_state = hard_state = raft.hard_state()
            must_sync = must_sync or hard_state.term != old.term or hard_state.vote != old.vote
        soft_state: SoftState | None = None
        if raft.role is not self._soft_state.role or raft.leader_id != self._soft_state.leader_id:
            self._soft_state = soft_state = SoftState(raft.leader_id, raft.role)
        read_states: tuple[ReadState, ...] = ()
        if raft.read_states:
            read_states = tuple(raft.read_states)
            raft.read_states = []
        messages, after_append = raft.messages, raft.messages_after_append
        to_self: list[Message] = []
        raft.messages, raft.messages_after_append = [], []
        if after_append:
            to_self = [message for message in after_append if message.to == raft.id]
            after_append = [message for message in after_append if message.to != raft.id]
        committed = log.next_committed(raft.config.committed_bytes_max)
        if committed:
            log.accept_applying(committed[-1].index)
            raft.refund_uncommitted(committed)
        unstable.accept_in_progress()
        self._number += 1
        ready = Ready(
            number=self._number,
            soft_state=soft_state,
            hard_state=hard_state,
            read_states=read_states,
            snapshot=snapshot,
            entries=entries,
            committed_entries=committed,
            messages=messages,
            messages_after_append=after_append,
            must_sync=must_sync,
        )
        last = unstable.entries[-1] if must_sync and unstable.entries else None
        self._at_disk.append(_AtDisk(ready, raft.term, last, to_self))
        return ready

    def advance_persisted(self, ready: Ready) -> None:
        """What ``ready`` holds is durable, its snapshot is installed and its entries are in the log storage. Readys are advanced in
        their order."""
        raft = self.raft
        done = self._at_disk.popleft()
        assert done.ready is ready, f"Ready {ready.number} advanced before Ready {done.ready.number}"
        if ready.snapshot is not None:
            raft.log.snapshot_installed(ready.snapshot.metadata.index)
        last = done.last
        if last is not None and done.term == raft.term:
            # Only within the term in which it was given out. 1. Entry X is at the disk. 2. A newer leader replaces it by Y, which goes
            # to the disk too. 3. A still newer leader brings X back. 4. The disk reports the first X: it is the entry of that index and
            # term, but the disk is about to hold Y. Each new term makes a Ready that must be durable, so nothing is waited for in vain.
            raft.log.unstable.stable_to(last.index, last.term)
            if raft.role is Role.LEADER:
                leader.own_entries_durable(raft, last)
        for message in done.to_self:
            raft.step(message)

    def advance_applied(self, index: int) -> None:
        """All committed entries up to ``index`` are applied."""
        raft = self.raft
        raft.log.applied_to(index)
        if raft.tracker.config.auto_leave and raft.role is Role.LEADER:
            leader.maybe_leave_joint(raft)

    # -- views

    def status(self) -> Status:
        raft = self.raft
        return Status(
            id=raft.id,
            role=raft.role,
            leader_id=raft.leader_id,
            term=raft.term,
            vote=raft.vote,
            committed=raft.log.committed,
            applied=raft.log.applied,
            last_index=raft.log.last_index(),
            config=raft.tracker.config,
            lead_transferee=raft.lead_transferee,
            progress=self._progress() if raft.role is Role.LEADER else (),
        )

    def _progress(self) -> tuple[MemberProgress, ...]:
        return tuple(
            MemberProgress(
                member=member,
                state=one.state,
                match=one.match,
                next=one.next,
                is_learner=one.is_learner,
                recent_active=one.recent_active or member == self.raft.id,
                paused=one.is_paused(),
                pending_snapshot=one.pending_snapshot,
                in_flight_count=len(one.inflights),
            )
            for member, one in self.raft.tracker.progress.items()
        )

    def leads_alone(self) -> bool:
        """A single voter that leads: what is applied here is all there is (no message to others is needed for a linearizable read)."""
        return self.raft.role is Role.LEADER and self.raft.tracker.is_singleton(self.raft.id)

    def leader_id(self) -> int:
        return self.raft.leader_id

    def has_leader(self) -> bool:
        return self.raft.leader_id != NO_MEMBER

    def conf_state(self) -> ConfState:
        return self.raft.tracker.config
