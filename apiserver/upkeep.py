"""``Upkeep``: names of objects that wait to be looked at, a few at a time, each again after a pause where that failed.

    upkeep = Upkeep("the status of a definition", sync, passing, lane=group_of)
    upkeep.enqueue("a.x"); upkeep.enqueue("b.x"); upkeep.enqueue("c.y")     # from the observer of a cache
    await upkeep.run()      # a.x, then b.x, in the order in which they came; c.y beside them

A name that is enqueued while it waits is looked at once; one that is enqueued while it is looked at is looked at again afterwards. What is
kept is bounded by the number of objects that there are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)

#: between attempts at what the store or a rule refuses, in seconds; the next pause is twice as long, up to a limit
PAUSE_SECONDS = 0.5
PAUSE_SECONDS_MAX = 30.0
#: names that are looked at side by side. Most of the time goes in waiting for the store's log, which takes many writes at a time; more than
#: a handful would only be in the way of requests.
WORKERS = 8


class Pauses:
    """How long each name waits before its next attempt."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def next(self, name: str) -> float:
        """In seconds; twice as long each time, until ``forget``."""
        pause = self._next.get(name, PAUSE_SECONDS)
        self._next[name] = min(pause * 2, PAUSE_SECONDS_MAX)
        return pause

    def forget(self, name: str) -> None:
        self._next.pop(name, None)


class Upkeep:
    def __init__(
        self,
        what: str,
        sync: Callable[[str], Awaitable[None]],
        passing: tuple[type[Exception], ...],
        *,
        lane: Callable[[str], str] = str,
    ) -> None:
        """``what``: for the log; ``passing``: errors that are worth another attempt and no fault of this program; ``lane``: names with the
        same one are looked at one after the other."""
        self._what = what
        self._sync = sync
        self._passing = passing
        self._lane = lane
        self._pauses = Pauses()
        #: the names that wait in each lane, in order; none is empty
        self._waiting: dict[str, dict[str, None]] = {}
        self._busy: set[str] = set()
        #: lanes in which a name waits and none is looked at
        self._ready: dict[str, None] = {}
        self._wake = asyncio.Event()

    def enqueue(self, name: str) -> None:
        lane = self._lane(name)
        self._waiting.setdefault(lane, {})[name] = None
        if lane not in self._busy:
            self._ready[lane] = None
            self._wake.set()

    def forget(self, name: str) -> None:
        """The object is gone: the next one of that name begins without a pause."""
        self._pauses.forget(name)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            while not self._ready:
                self._wake.clear()
                await self._wake.wait()
            lane = next(iter(self._ready))
            del self._ready[lane]
            names = self._waiting[lane]
            name = next(iter(names))
            del names[name]
            if not names:
                del self._waiting[lane]
            self._busy.add(lane)
            try:
                await self._attempt(name)
            finally:
                self._busy.discard(lane)
                if lane in self._waiting:
                    self._ready[lane] = None
            await asyncio.sleep(0)  # at a start there may be thousands

    async def _attempt(self, name: str) -> None:
        try:
            await self._sync(name)
        except self._passing as error:
            self._again(name, error)
        except Exception as error:  # a fault with one object must not keep all others waiting
            logger.exception("%s could not be kept: name=%s", self._what, name)
            self._again(name, error)
        else:
            self._pauses.forget(name)

    def _again(self, name: str, error: Exception) -> None:
        logger.info("%s waits for another attempt: name=%s error=%s", self._what, name, error)
        asyncio.get_running_loop().call_later(self._pauses.next(name), self.enqueue, name)
