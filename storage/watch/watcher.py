"""One watch: a bounded buffer of batches, and where it stands when that was not enough."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from storage import api, errors
from storage.watch import event_batch

#: A reader that has so many batches waiting is slow (etcd's channel holds 128 answers, each of many events). Beyond it the watcher
#: reads history instead, so the number trades memory for work, not for correctness.
BUFFERED_BATCHES_MAX = 1024

#: Values can be a megabyte each: a watcher that is not read may keep about so much alive, then it reads history.
BUFFERED_BYTES_MAX = 16 * 1024 * 1024


class History(Protocol):
    """What a watcher needs of the store that made it."""

    is_closed: bool

    def catch_up(self, watcher: Watcher) -> int | None:
        """Post the next slice of a lagging watcher's history to it. Answers the revision up to which that was everything, None if
        the watcher is synced now. Raises CompactedError."""

    def forget(self, watcher: Watcher) -> None:
        """The watcher is cancelled."""


class Watcher:
    """``api.Watcher``. ``next_revision``: a lagging watcher has still to read history from here on.

    Events below ``start_revision`` are not for it, wherever they come from: a watcher that starts in the future may be posted
    events of its range long before, and may be sent through history by a restore.
    """

    __slots__ = (
        "_buffer",
        "_buffered_bytes",
        "_history",
        "_is_cancelled",
        "_waiter",
        "is_lagging",
        "key",
        "next_revision",
        "options",
        "range_end",
        "start_revision",
    )

    def __init__(self, history: History, request: api.WatchRequest, current_revision: int) -> None:
        self._history = history
        self._buffer: deque[tuple[api.WatchBatch, int]] = deque()
        self._buffered_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._is_cancelled = False
        self.key = request.key
        self.range_end = request.range_end
        self.options = event_batch.options_of(request)
        self.start_revision = request.start_revision if request.start_revision > 0 else current_revision + 1
        self.next_revision = self.start_revision
        self.is_lagging = self.start_revision <= current_revision

    def take(self) -> api.WatchBatch | None:
        seen = None
        if not self._buffer and not self._is_cancelled:
            if self._history.is_closed:
                raise errors.StoppedError()
            if self.is_lagging:
                seen = self._history.catch_up(self)
        if self._buffer:
            batch, size = self._buffer.popleft()
            self._buffered_bytes -= size
            return batch
        return None if seen is None else api.WatchBatch(revision=seen, events=())

    async def wait(self) -> None:
        """One call at a time; after it ``take`` may still be None if history held nothing for this watcher."""
        if self._buffer or self.is_lagging or self._is_cancelled or self._history.is_closed:
            return
        if self._waiter is not None:
            raise RuntimeError("a watcher has one reader: wait() is already pending")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def cancel(self) -> None:
        if self._is_cancelled:
            return
        self._is_cancelled = True
        self._buffer.clear()
        self._history.forget(self)
        self.wake()

    # What follows is for the store that made it.

    def pending_events(self) -> int:
        return sum(len(batch.events) for batch, _ in self._buffer)

    def has_room(self) -> bool:
        return len(self._buffer) < BUFFERED_BATCHES_MAX and self._buffered_bytes < BUFFERED_BYTES_MAX

    def post(self, batch: api.WatchBatch, size: int) -> None:
        """Append a batch, which holds about ``size`` bytes, to what is to be taken."""
        self._buffer.append((batch, size))
        self._buffered_bytes += size
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
