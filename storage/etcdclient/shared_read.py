"""One request for all who ask at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class SharedRead:
    """Joins callers to reads that begin after they came, so that each sees what was acknowledged before.

    1. A asks: read 1 begins.  2. B and C ask: read 1 may have passed the store already, so they wait for read 2.  3. Read 1 answers A;
    read 2 begins, and answers B and C.
    """

    def __init__(self, read: Callable[[], Awaitable[int]]) -> None:
        self._read = read
        self._current: asyncio.Task[int] | None = None
        self._next: asyncio.Task[int] | None = None

    async def join(self) -> int:
        """The answer of a read that begins after this call. Raises what the read raises."""
        if self._current is None or self._current.done():
            task = self._current = asyncio.create_task(self._run(None))
        elif self._next is None:
            task = self._next = asyncio.create_task(self._run(self._current))
        else:
            task = self._next
        return await asyncio.shield(task)

    async def _run(self, before: asyncio.Task[int] | None) -> int:
        if before is not None:
            await asyncio.wait({before})
            # none can join from here on: it begins
            self._current, self._next = self._next, None
        try:
            return await self._read()
        except Exception as error:
            task = asyncio.current_task()
            assert task is not None
            # whoever waited may be gone: then nobody needs to hear of it
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise error

    async def close(self) -> None:
        for task in (self._current, self._next):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task})
