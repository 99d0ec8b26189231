"""``RateLimitingQueue``: a ``WorkQueue`` with delays (client-go ``delaying_queue.go``, ``rate_limiting_queue.go``)."""

from __future__ import annotations

import asyncio
import heapq

from controllers.lib.clock import Clock
from controllers.workqueue.queue import WorkQueue
from controllers.workqueue.rate_limiter import RateLimiter, default_rate_limiter


class RateLimitingQueue(WorkQueue):
    """``run`` moves keys whose time has come; without it running nothing delayed is ever given out."""

    def __init__(self, clock: Clock, limiter: RateLimiter | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._limiter = limiter or default_rate_limiter(clock)
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._changed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Keys whose time has not come."""
        return len(self._due)

    def add_after(self, key: str, seconds: float) -> None:
        """Adds the key after so many seconds; an earlier time already set for it stays."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        self._changed.set()

    def add_rate_limited(self, key: str) -> None:
        self.add_after(key, self._limiter.when(key))

    def forget(self, key: str) -> None:
        """The key went well: its next failure counts as the first."""
        self._limiter.forget(key)

    def failures(self, key: str) -> int:
        return self._limiter.failures(key)

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            self._changed.clear()
            now = self._clock.monotonic()
            while self._heap and self._heap[0][0] <= now:
                due, key = heapq.heappop(self._heap)
                if self._due.get(key) == due:  # else an earlier time was set later on, and has come before
                    del self._due[key]
                    self.add(key)
            if not self._heap:
                await self._changed.wait()
                continue
            await self._sleep_or_change(self._heap[0][0] - now)

    async def _sleep_or_change(self, seconds: float) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({sleeping, changing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sleeping, changing):
                task.cancel()
            await asyncio.gather(sleeping, changing, return_exceptions=True)
