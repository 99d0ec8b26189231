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
            leader.propose(raft, [(item, None) for item in data])
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
        return bool(
            raft.messages
            or raft.messages_after_append
            or raft.log.has_next_committed()
            or raft.log.unstable.offset_in_progress <= raft.log.last_index()
            or raft.term != self._hard_state.term
            or raft.log.committed != self._hard_state.commit
            or raft.vote != self._hard_state.vote
            or raft.role is not self._soft_state.role
            or raft.leader_id != self._soft_state.leader_id
        )

    def ready(self) -> Ready:
        """All that is to be done now. It counts as taken: the next Ready does not repeat it."""
        raft = self.raft
        log = raft.log
        entries = log.unstable.next_entries()
        committed = log.next_committed(raft.config.committed_bytes_max)
        hard_state = raft.hard_state()
        old = self._hard_state
        after_append = [message for message in raft.messages_after_append if message.to != raft.id]
        to_self = [message for message in raft.messages_after_append if message.to == raft.id]
        soft_state = SoftState(raft.leader_id, raft.role)
        self._number += 1
        ready = Ready(
            number=self._number,
            soft_state=soft_state if soft_state != self._soft_state else None,
            hard_state=hard_state if hard_state != old else None,
            entries=entries,
            committed_entries=committed,
            messages=raft.messages,
            messages_after_append=after_append,
            must_sync=bool(entries) or hard_state.term != old.term or hard_state.vote != old.vote,
        )
        raft.messages = []
        raft.messages_after_append = []
        log.unstable.accept_in_progress()
        if committed:
            log.accept_applying(committed[-1].index)
            raft.refund_uncommitted(committed)
        self._hard_state = hard_state
        self._soft_state = soft_state
        self._at_disk.append((ready, to_self))
        return ready

    def advance_persisted(self, ready: Ready) -> None:
        """What ``ready`` holds is durable and its entries are in the log storage. Readys are advanced in their order."""
        oldest, to_self = self._at_disk.popleft()
        assert oldest is ready, f"Ready {ready.number} advanced before Ready {oldest.number}"
        if ready.entries:
            last = ready.entries[-1]
            self.raft.log.unstable.stable_to(last.index, last.term)
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
