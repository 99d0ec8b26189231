"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import datetime
import heapq
import itertools

#: turns of the loop that a test gives its tasks to come to rest; asyncio has no "idle" to wait for
SETTLE_TURNS = 60


async def settle(turns: int = SETTLE_TURNS) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


class VirtualClock:
    def __init__(self, start: str = "2024-05-01T10:00:00+00:00") -> None:
        self._epoch = datetime.datetime.fromisoformat(start)
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    def now(self) -> datetime.datetime:
        return self._epoch + datetime.timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._count), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Moves on, waking sleepers in the order of their times and letting the loop settle after each."""
        await settle()
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, future = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, due)
            if not future.done():
                future.set_result(None)
                await settle()
        self._elapsed = target
        await settle()
