"""Auto-compaction: at which revision to compact when, by etcd's two rules.

``periodic`` keeps the history of a time span: the revision of now minus the span, every span or every hour, whichever is shorter.
``revision`` keeps so many revisions, looked at every five minutes. Only the leader compacts; the others look on, so that a new leader
knows the revisions of the span. Source: etcd ``server/etcdserver/api/v3compactor``.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from storage.config import parse_retention

PERIODIC_INTERVAL_SECONDS_MAX: Final = 3600.0
LOOKS_PER_INTERVAL: Final = 10
"""How finely the periodic rule knows when a revision was."""
REVISION_INTERVAL_SECONDS: Final = 300.0


class Compactor(Protocol):
    """Call ``look`` every ``interval_seconds``; if it names a revision, compact there and tell ``compacted``, unless that failed: then
    the next look names one again."""

    interval_seconds: float

    def look(self, revision: int, now: float, *, leads: bool) -> int | None:
        """``revision``: the store's; ``now``: monotonic seconds."""

    def compacted(self, revision: int, now: float) -> None:
        """That revision is compacted, by this request or another."""


class PeriodicCompactor:
    """``interval_seconds`` is a tenth of the time between two compactions. What is ``look``ed at is remembered for the span, so the first
    compaction comes a whole span after the start, at the revision of the start."""

    def __init__(self, span_seconds: float, now: float) -> None:
        assert span_seconds > 0, span_seconds
        self._between_seconds = min(span_seconds, PERIODIC_INTERVAL_SECONDS_MAX)
        self.interval_seconds = self._between_seconds / LOOKS_PER_INTERVAL
        self._seen: deque[int] = deque(maxlen=round(span_seconds / self.interval_seconds) + 1)
        self._wait_seconds = span_seconds
        self._last_revision = 0
        self._last_time = now

    def look(self, revision: int, now: float, *, leads: bool) -> int | None:
        self._seen.append(revision)
        oldest = self._seen[0]
        # A look comes an interval after the one before, give or take a tick of the clock.
        if not leads or now - self._last_time < self._wait_seconds - self.interval_seconds / 2 or oldest <= self._last_revision:
            return None
        return oldest

    def compacted(self, revision: int, now: float) -> None:
        self._last_revision = revision
        self._last_time = now
        self._wait_seconds = self._between_seconds


class RevisionCompactor:
    def __init__(self, revisions: int) -> None:
        assert revisions > 0, revisions
        self.interval_seconds = REVISION_INTERVAL_SECONDS
        self._revisions = revisions
        self._last_revision = 0

    def look(self, revision: int, now: float, *, leads: bool) -> int | None:
        target = revision - self._revisions
        return target if leads and target > max(self._last_revision, 0) else None

    def compacted(self, revision: int, now: float) -> None:
        self._last_revision = revision


def new_compactor(mode: str, retention: str, now: float) -> Compactor | None:
    """None without a retention. Raises ValueError."""
    amount = parse_retention(mode, retention)
    if not amount:
        return None
    return PeriodicCompactor(amount, now) if mode == "periodic" else RevisionCompactor(int(amount))
