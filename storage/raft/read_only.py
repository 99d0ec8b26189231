"""Linearizable reads without a log entry: ReadIndex (thesis §6.4).

A leader may answer a read from its state machine once it knows that it still led when the read came: it notes the commit index, lets a
round of heartbeats be answered by a quorum, and waits until that index is applied. Rounds are numbered; the number travels as the
context of the heartbeats. One round confirms every read that came before it began, and a round that is confirmed confirms all older
ones, so the cost does not grow with the number of reads.

Example: reads a and b come, round 1 begins with the next Ready; read c comes and joins round 2. Answers of a quorum to round 2, those
to round 1 being lost, release a, b and c.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from storage.raft.quorum import JointQuorum

_ROUND_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class ReadState:
    """The read that was asked for with ``context`` may be served once the entry ``index`` is applied."""

    index: int
    context: bytes


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A read of ``member``."""

    member: int
    context: bytes


@dataclass(frozen=True, slots=True)
class _Pending:
    round: int
    index: int
    request: ReadRequest


class ReadOnly:
    """The reads of a leader that are not answered yet."""

    __slots__ = ("_acknowledged", "_pending", "_round", "_self_id", "postponed", "round_is_due")

    def __init__(self, self_id: int) -> None:
        self._self_id = self_id
        self.postponed: list[ReadRequest] = []
        """Reads that came before the leader knew the commit index of its term (Raft §8)."""
        self.round_is_due = False
        """A read waits for a round that has not begun."""
        self._pending: deque[_Pending] = deque()
        self._round = 0
        self._acknowledged: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._pending) + len(self.postponed)

    def reset(self) -> None:
        """The leadership is over: nobody answers these reads any more. Answers to its rounds carry its term, so numbers may repeat."""
        self.postponed.clear()
        self.round_is_due = False
        self._pending.clear()
        self._round = 0
        self._acknowledged.clear()

    def add(self, request: ReadRequest, committed: int) -> None:
        self._pending.append(_Pending(self._round + 1, committed, request))
        self.round_is_due = True

    def heartbeat_context(self) -> bytes:
        """What a round of heartbeats that leaves now shall carry: begins the round that is due, else repeats the last one, whose
        messages may have been lost."""
        if not self._pending:
            return b""
        if self.round_is_due:
            self._round += 1
            self._acknowledged[self._self_id] = self._round
            self.round_is_due = False
        return self._round.to_bytes(_ROUND_BYTES, "big")

    def acknowledge(self, member: int, context: bytes) -> None:
        """``member`` answered a heartbeat."""
        if len(context) == _ROUND_BYTES:
            number = int.from_bytes(context, "big")
            if self._acknowledged.get(member, 0) < number <= self._round:
                self._acknowledged[member] = number

    def release(self, quorum: JointQuorum) -> list[tuple[ReadRequest, int]]:
        """The reads, oldest first, whose round a quorum answered, each with the index it must wait for."""
        pending = self._pending
        if not pending:
            return []
        confirmed = quorum.committed_index(self._acknowledged)
        released: list[tuple[ReadRequest, int]] = []
        while pending and confirmed is not None and pending[0].round <= confirmed:
            one = pending.popleft()
            released.append((one.request, one.index))
        return released
