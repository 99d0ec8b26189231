"""The window of recent changes of one resource, from which a watch resumes without asking the store."""

from __future__ import annotations

import bisect
from collections import deque

from apiserver.objectstore.interface import ChangeEvent

#: Enough for clients that reconnect at once; older revisions are replayed from the store.
EVENTS_MAX = 2048
#: Of the objects and encodings that only the window keeps alive, for one resource.
BYTES_MAX = 4 * 1024 * 1024


class WatchHistory:
    """Events in revision order. ``complete_after``: every change of the resource with a greater revision is in the window."""

    __slots__ = ("_bytes", "_events", "complete_after")

    def __init__(self, complete_after: int) -> None:
        self._events: deque[ChangeEvent] = deque()
        self._bytes = 0
        self.complete_after = complete_after

    def append(self, event: ChangeEvent) -> None:
        self._events.append(event)
        self._bytes += _held(event)
        while len(self._events) > EVENTS_MAX or (self._bytes > BYTES_MAX and len(self._events) > 1):
            oldest = self._events.popleft()
            self._bytes -= _held(oldest)
            self.complete_after = oldest.revision

    def after(self, revision: int) -> list[ChangeEvent] | None:
        """All changes later than ``revision``, or None where the window does not reach back so far."""
        if revision < self.complete_after:
            return None
        events = self._events
        if not events or events[-1].revision <= revision:
            return []
        start = bisect.bisect_right(events, revision, key=lambda event: event.revision)
        return [events[i] for i in range(start, len(events))]

    def __len__(self) -> int:
        return len(self._events)


def _held(event: ChangeEvent) -> int:
    """Bytes that live for this event's sake: the version before it, and its own as it was encoded for watchers."""
    before = len(event.previous.raw) if event.previous is not None else 0
    return before + len(event.object.raw)
