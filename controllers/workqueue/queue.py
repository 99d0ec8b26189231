"""``WorkQueue``: the dirty and the processing set of client-go's ``queue.go``.

A key is *dirty* from ``add`` to ``get``, and *processing* from ``get`` to ``done``. It waits in the order list only while dirty and not
processing; ``done`` puts a key that became dirty meanwhile back at the end.
"""

from __future__ import annotations

import asyncio
from collections import deque


class ShutDown(Exception):
    """The queue was shut down and is empty."""


class WorkQueue:
    """Bounded by the number of distinct keys, which is the number of objects."""

    def __init__(self) -> None:
        self._order: deque[str] = deque()
        self._dirty: set[str] = set()
        self._processing: set[str] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._is_shut_down = False

    def __len__(self) -> int:
        return len(self._order)

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is being worked on."""
        return not self._dirty and not self._processing

    def add(self, key: str) -> None:
        if self._is_shut_down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._order.append(key)
            self._wake_one()

    async def get(self) -> str:
        """The next key; waits for one.

        Raises:
            ShutDown: nothing will come any more.
        """
        while not self._order:
            if self._is_shut_down:
                raise ShutDown
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled() and self._order:
                    self._wake_one()  # the wake-up meant for this worker goes to another
                raise
        key = self._order.popleft()
        self._processing.add(key)
        self._dirty.discard(key)
        return key

    def done(self, key: str) -> None:
        assert key in self._processing, key
        self._processing.discard(key)
        if key in self._dirty:
            self._order.append(key)
            self._wake_one()

    def shut_down(self) -> None:
        """No more keys are taken in; those that wait are still given out."""
        self._is_shut_down = True
        while self._waiters:
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
