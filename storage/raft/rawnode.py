"""The door of the Raft core: propose, step, tick, campaign; has_ready, ready, advance. See the package docstring for the caller's part."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from storage.raft import leader
from storage.raft.config import Config, ProposalDroppedError, Role
from storage.raft.log_storage import LogStorage
from storage.raft.messages import (
    LOCAL_MESSAGES,
    NO_MEMBER,
    RESPONSES,
    ConfState,
    Entry,
    EntryType,
    HardState,
    Message,
    MessageType,
)
from storage.raft.raft import Raft

__all__ = ["Config", "ProposalDroppedError", "RawNode", "Ready", "Role", "SoftState", "Status"]


@dataclass(frozen=True, slots=True)
class SoftState:
    """What is good to know and need not be kept."""

    leader_id: int
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What is to be done. Fields that are None or empty ask for nothing.

    ``must_sync``: ``entries`` or a new term or vote must be durable before ``advance_persisted``. When it is False the Ready may hold
    a new commit index, which may be written whenever convenient.
    """

    number: int
    soft_state: SoftState | None
    hard_state: HardState | None
    entries: list[Entry]
    committed_entries: list[Entry]
    messages: list[Message]
    messages_after_append: list[Message]
    must_sync: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    id: int
    role: Role
    leader_id: int
    term: int
    vote: int
    committed: int
    applied: int
    last_index: int


class RawNode:
    """One member of a Raft group. Not safe for threads: one owner calls it."""

    def __init__(self, config: Config, storage: LogStorage, rng: random.Random) -> None:
        self.raft = Raft(config, storage, rng)
        self._soft_state = SoftState(self.raft.leader_id, self.raft.role)
        self._hard_state = self.raft.hard_state()
        self._number = 0
        self._at_disk: deque[tuple[Ready, list[Message]]] = deque()

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

    def step(self, message: Message) -> None:
        """Take a message of a peer. Local messages and answers of strangers are ignored; a proposal may raise ProposalDroppedError."""
        if message.type in LOCAL_MESSAGES:
            return
        if message.type in RESPONSES and message.sender not in self.raft.tracker.progress:
            return
        self.raft.step(message)

    def report_unreachable(self, member: int) -> None:
        """The last message to ``member`` was not delivered."""
        if self.raft.role is Role.LEADER:
            self.raft.step(Message(type=MessageType.UNREACHABLE, sender=member))

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
        )

    def ready(self) -> Ready:
        """All that is to be done now. It counts as taken: the next Ready does not repeat it."""
        raft, old = self.raft, self._hard_state
        log = raft.log
        entries = log.unstable.next_entries()
        must_sync = bool(entries)
        hard_state: HardState | None = None
        if log.committed != old.commit or raft.term != old.term or raft.vote != old.vote:
            self._hard_state = hard_state = raft.hard_state()
            must_sync = must_sync or hard_state.term != old.term or hard_state.vote != old.vote
        soft_state: SoftState | None = None
        if raft.role is not self._soft_state.role or raft.leader_id != self._soft_state.leader_id:
            self._soft_state = soft_state = SoftState(raft.leader_id, raft.role)
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
        log.unstable.accept_in_progress()
        self._number += 1
        ready = Ready(
            number=self._number,
            soft_state=soft_state,
            hard_state=hard_state,
            entries=entries,
            committed_entries=committed,
            messages=messages,
            messages_after_append=after_append,
            must_sync=must_sync,
        )
        self._at_disk.append((ready, to_self))
        return ready

    def advance_persisted(self, ready: Ready) -> None:
        """What ``ready`` holds is durable and its entries are in the log storage. Readys are advanced in their order."""
        oldest, to_self = self._at_disk.popleft()
        assert oldest is ready, f"Ready {ready.number} advanced before Ready {oldest.number}"
        if ready.entries:
            last = ready.entries[-1]
            self.raft.log.unstable.stable_to(last.index, last.term)
            if self.raft.role is Role.LEADER:
                leader.own_entries_durable(self.raft, last)
        for message in to_self:
            self.raft.step(message)

    def advance_applied(self, index: int) -> None:
        """All committed entries up to ``index`` are applied."""
        self.raft.log.applied_to(index)

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
        )

    def leads_alone(self) -> bool:
        """A single voter that leads: what is applied here is all there is (no message to others is needed for a linearizable read)."""
        return self.raft.role is Role.LEADER and self.raft.tracker.is_singleton(self.raft.id)

    def leader_id(self) -> int:
        return self.raft.leader_id

    def has_leader(self) -> bool:
        return self.raft.leader_id != NO_MEMBER

    def conf_state(self) -> ConfState:
        return self.raft.tracker.conf_state()
