"""One of several members, without the others: ``MemoryKV`` whose log has been applied here only up to somewhere.

What a ``Member`` among others does to its API server: its events are there as soon as they are applied here, its own writes and its
linearizable reads wait until that is so, but what others wrote may be applied a while after it was acknowledged, and nobody here knows
whether there is more. Several ``FollowerKV`` over one ``MemoryKV`` are the members of one cluster.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable

from storage import api, errors
from tests.fakes.memory_kv import MemoryKV
from tests.fakes.travelling_kv import TravellingKV

#: Until an entry of another member is applied here.
LAG_SECONDS_MAX = 0.005


class FollowerKV(TravellingKV):
    events_are_immediate = True

    def __init__(self, inner: MemoryKV | None = None, *, seed: int = 0) -> None:
        super().__init__(inner, seed=seed)
        self.applied = self.inner.store.current_revision
        self._applying = asyncio.create_task(self._apply_sometime())
        self._followers: set[_FollowerWatcher] = set()
        self._lag = random.Random(seed)
        self._catching_up = asyncio.Event()
        self._catching_up.set()

    async def _apply_sometime(self) -> None:
        news = self.inner.watch(api.WatchRequest(key=b"\0", range_end=b"\0", start_revision=self.applied + 1))
        while True:
            await news.wait()
            while (batch := news.take()) is not None:
                await asyncio.sleep(self._lag.uniform(0, LAG_SECONDS_MAX))
                await self._catching_up.wait()
                self._apply(batch.revision)

    def _apply(self, revision: int) -> None:
        if revision > self.applied:
            self.applied = revision
            for watcher in tuple(self._followers):
                watcher.notice()

    def hold_events(self) -> None:
        self._catching_up.clear()

    def release_events(self) -> None:
        self._catching_up.set()

    async def read_revision(self) -> int:
        await self.travel()
        revision = await self.inner.read_revision()
        await self.travel()
        self._apply(revision)
        return self.applied

    async def range(self, request: api.RangeRequest) -> api.RangeResponse:
        await self.read_revision()
        return await self.inner.range(request)

    async def put(self, request: api.PutRequest) -> api.PutResponse:
        answer = await super().put(request)
        self._apply(answer.header.revision)
        return answer

    async def delete_range(self, request: api.DeleteRangeRequest) -> api.DeleteRangeResponse:
        answer = await super().delete_range(request)
        self._apply(answer.header.revision)
        return answer

    async def txn(self, request: api.TxnRequest) -> api.TxnResponse:
        answer = await super().txn(request)
        self._apply(answer.header.revision)
        return answer

    def watch(self, request: api.WatchRequest) -> api.Watcher:
        watcher = _FollowerWatcher(self, self.inner.watch(request), self._followers.discard)
        self._followers.add(watcher)
        return watcher

    def close(self) -> None:
        self._applying.cancel()
        for watcher in tuple(self._followers):
            watcher.fail(errors.StoppedError())


class _FollowerWatcher:
    def __init__(self, kv: FollowerKV, inner: api.Watcher, on_end: Callable[[_FollowerWatcher], None]) -> None:
        self._kv = kv
        self._inner = inner
        self._on_end = on_end
        self._pending: deque[api.WatchBatch] = deque()
        self._error: errors.StoreError | None = None
        self._cancelled = False
        self._changed = asyncio.Event()

    def take(self) -> api.WatchBatch | None:
        if self._error is not None:
            raise self._error
        while (batch := self._inner.take()) is not None:
            self._pending.append(batch)
        if self._pending and self._pending[0].revision <= self._kv.applied:
            return self._pending.popleft()
        return None

    def _has_some(self) -> bool:
        try:
            while (batch := self._inner.take()) is not None:
                self._pending.append(batch)
        except errors.StoreError as error:
            self._error = error
        return self._error is not None or bool(self._pending and self._pending[0].revision <= self._kv.applied)

    async def wait(self) -> None:
        while not self._cancelled and not self._has_some():
            self._changed.clear()
            await self._changed.wait()

    def notice(self) -> None:
        self._changed.set()

    def fail(self, error: errors.StoreError) -> None:
        self._error = error
        self._changed.set()

    def cancel(self) -> None:
        self._cancelled = True
        self._inner.cancel()
        self._on_end(self)
        self._changed.set()
