"""One watch: a bounded queue between the watch cache, which never waits, and a handler, which does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from apiserver.objectstore.interface import ChangeEvent, EventType, Selection

#: Events a handler may lag behind. Objects are shared between watchers, so that this bounds references, not copies; a watcher that
#: is slower than this is closed and its client resumes from the last resourceVersion it saw.
QUEUE_EVENTS_MAX = 10_000
#: And the bytes of their objects, which live as long as somebody has yet to be told of them: ten thousand of the largest would be 15 GB.
QUEUE_BYTES_MAX = 64 * 1024 * 1024
#: What is written without waking the handler; more goes through it in pieces.
DIRECT_BYTES_MAX = 256 * 1024

Delivery = tuple[EventType, ChangeEvent]


class Bookmark:
    """A promise that every event up to ``revision`` was delivered before it."""

    __slots__ = ("initial_events_end", "revision")

    def __init__(self, revision: int, *, initial_events_end: bool = False) -> None:
        self.revision = revision
        self.initial_events_end = initial_events_end


class CacheWatcher:
    """Filters the changes of one resource by ``selection`` and keeps them until ``take``.

    An object that starts to match becomes ADDED, one that ceases to match DELETED (with the new resourceVersion and the last state
    that matched). ``after``: changes up to this revision have been delivered already or are not wanted.

    A handler that waits may set ``direct``: it is then called, without waking the handler, with all that one turn of the event source
    has brought, and answers whether that is on its way. ``dirty`` is the source's list of watchers that such a call is due for.
    """

    __slots__ = (
        "_bytes_max",
        "_dirty",
        "_events_max",
        "_is_dirty",
        "_on_close",
        "_queue",
        "_queue_bytes",
        "_waiter",
        "after",
        "direct",
        "ended",
        "on_overflow",
        "overflowed",
        "selection",
    )

    def __init__(
        self, selection: Selection, after: int, on_close: Callable[[CacheWatcher], None], dirty: list[CacheWatcher] | None = None
    ) -> None:
        self.selection = selection
        self.after = after
        self.direct: Callable[[list[Delivery | Bookmark]], bool] | None = None
        self._dirty = dirty
        self._is_dirty = False
        self.ended = False
        self.overflowed = False
        #: called when the watch is cut because its reader is too slow
        self.on_overflow: Callable[[], object] | None = None
        self._queue: deque[Delivery | Bookmark] = deque()
        self._queue_bytes = 0
        self._events_max = QUEUE_EVENTS_MAX
        self._bytes_max = QUEUE_BYTES_MAX
        self._waiter: asyncio.Future[None] | None = None
        self._on_close = on_close

    def push(self, event: ChangeEvent) -> None:
        """Called by the cache for each change of the watched namespace and name; never waits."""
        if event.revision <= self.after or self.ended:
            return
        delivery = transition(event, self.selection)
        if delivery is not None:
            self._queue.append(delivery)
            self._queue_bytes += len(event.object.raw)
            if len(self._queue) > self._events_max or self._queue_bytes > self._bytes_max:
                self.cut()
            elif self.direct is None or self._dirty is None:
                self._wake()
            elif not self._is_dirty:
                self._is_dirty = True
                self._dirty.append(self)

    def flush(self) -> None:
        """At the end of a turn of the event source: pass on what it has brought."""
        self._is_dirty = False
        direct = self.direct
        if self._queue and direct is not None and self._queue_bytes <= DIRECT_BYTES_MAX and direct(list(self._queue)):
            self._queue.clear()
            self._queue_bytes = 0
        else:
            self._wake()

    def push_all(self, events: list[ChangeEvent]) -> None:
        """History, before the watcher is live: beyond the bounds, since the client asked for it, and it is in memory already."""
        for event in events:
            if event.revision > self.after:
                delivery = transition(event, self.selection)
                if delivery is not None:
                    self._queue.append(delivery)
                    self._queue_bytes += len(event.object.raw)
        self._events_max = QUEUE_EVENTS_MAX + len(self._queue)
        self._bytes_max = QUEUE_BYTES_MAX + self._queue_bytes
        self._wake()

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> None:
        """``revision``: the cache's. What the watcher has had from elsewhere may be ahead of it, and a bookmark never goes back."""
        if not self.ended:
            self._queue.append(Bookmark(max(revision, self.after), initial_events_end=initial_events_end))
            self.flush()

    def take(self, bytes_max: int = QUEUE_BYTES_MAX) -> list[Delivery | Bookmark]:
        """What is there, of objects of not much more than ``bytes_max`` together: what is taken is no longer shared with the others."""
        queue = self._queue
        if self._queue_bytes <= bytes_max:
            found = list(queue)
            queue.clear()
            self._queue_bytes = 0
            return found
        found, size = [], 0
        while queue and size < bytes_max:
            entry = queue.popleft()
            found.append(entry)
            if not isinstance(entry, Bookmark):
                size += len(entry[1].object.raw)
        self._queue_bytes -= size
        return found

    async def wait(self) -> None:
        """Return once ``take`` has something or the watch has ended."""
        if self._queue or self.ended:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def end(self) -> None:
        """No further event; what is queued can still be taken. Idempotent."""
        if not self.ended:
            self.direct = None
            self.ended = True
            self._on_close(self)
            self._wake()

    def cut(self) -> None:
        """End it for a reader that is too slow to be told so."""
        self.overflowed = True
        self.end()
        if self.on_overflow is not None:
            self.on_overflow()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def transition(event: ChangeEvent, selection: Selection) -> Delivery | None:
    """What a change is to a watcher with this selection (None: nothing). The namespace is the right one already."""
    if selection.name and event.object.name != selection.name:
        return None
    if not selection.selects_by_content:
        return event.type, event
    before = event.previous is not None and selection.matches(event.previous)
    if event.type is EventType.DELETED:
        return (EventType.DELETED, event) if before else None
    now = selection.matches(event.object)
    if now:
        return (EventType.MODIFIED if before else EventType.ADDED), event
    return (EventType.DELETED, event) if before else None
