"""What a leader knows of one follower's log, and how fast it may send to it."""

from __future__ import annotations

import enum
from collections import deque


class ProgressState(enum.Enum):
    PROBE = "probe"
    """Where the logs agree is not known: one append at a time, the next after an answer."""
    REPLICATE = "replicate"
    """The logs agree: appends are sent ahead of the answers, up to the window."""


class Progress:
    """``match`` is known to be in the follower's log; ``next`` is sent next; always ``match`` < ``next``."""

    __slots__ = ("_in_flight", "in_flight_max", "match", "next", "paused", "recent_active", "state")

    def __init__(self, *, match: int, next: int, in_flight_max: int) -> None:
        self.match = match
        self.next = next
        self.state = ProgressState.PROBE
        self.paused = False
        self.recent_active = False
        self.in_flight_max = in_flight_max
        self._in_flight: deque[int] = deque()

    def become_probe(self) -> None:
        self._reset(ProgressState.PROBE)
        self.next = self.match + 1

    def become_replicate(self) -> None:
        self._reset(ProgressState.REPLICATE)
        self.next = self.match + 1

    def _reset(self, state: ProgressState) -> None:
        self.state = state
        self.paused = False
        self._in_flight.clear()

    def is_paused(self) -> bool:
        """Whether nothing may be sent until an answer (or a heartbeat's) comes."""
        if self.state is ProgressState.PROBE:
            return self.paused
        return len(self._in_flight) >= self.in_flight_max

    def in_flight_count(self) -> int:
        return len(self._in_flight)

    def sent(self, entry_count: int) -> None:
        """An append of the entries from ``next`` on is under way."""
        if self.state is ProgressState.PROBE:
            self.paused = True
        elif entry_count:
            self.next += entry_count
            self._in_flight.append(self.next - 1)

    def maybe_update(self, index: int) -> bool:
        """The follower holds all up to ``index``. False when that was known."""
        while self._in_flight and self._in_flight[0] <= index:
            self._in_flight.popleft()
        if index <= self.match:
            return False
        self.match = index
        self.next = max(self.next, index + 1)
        self.paused = False
        return True

    def maybe_decrease(self, rejected: int, hint: int) -> bool:
        """The follower refused an append after ``rejected``; its log may agree up to ``hint``. False for an answer that is stale."""
        if self.state is ProgressState.REPLICATE:
            if rejected <= self.match:
                return False
            self.next = self.match + 1
            return True
        if self.next - 1 != rejected:
            return False
        self.next = max(min(rejected, hint + 1), self.match + 1)
        self.paused = False
        return True

    def heard_heartbeat(self) -> None:
        """An answer to a heartbeat frees a stuck probe, and one place of a full window, since an append may have been lost."""
        self.recent_active = True
        self.paused = False
        if len(self._in_flight) >= self.in_flight_max:
            self._in_flight.popleft()
