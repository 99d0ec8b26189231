"""A store over the network, without the network: ``MemoryKV`` whose answers and events each travel for a while, on their own.

What an external etcd does to its clients: an event may come before or long after the answer of the write that caused it, and a watch
is silent where nothing happens in its range. Several ``TravellingKV`` over one ``MemoryKV`` are several clients of one store.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from storage import api, errors
from tests.fakes.memory_kv import MemoryKV

#: Of an answer or an event on its way: long enough that both orders happen, short enough for a suite of them.
TRAVEL_SECONDS_MAX = 0.002


class TravellingKV:
    """``progress_on_request`` False: a store whose watches cannot be asked how far they are (etcd before 3.5.13)."""

    events_are_immediate = False

    def __init__(self, inner: MemoryKV | None = None, *, progress_on_request: bool = True, seed: int = 0) -> None:
        self.inner = inner if inner is not None else MemoryKV()
        self.progress_on_request = progress_on_request
        self._random = random.Random(seed)
        self._watchers: set[_TravellingWatcher] = set()

    def local_revision(self) -> int | None:
        return None

    async def travel(self) -> None:
        await asyncio.sleep(self._random.uniform(0, TRAVEL_SECONDS_MAX))

    async def _there_and_back(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        await self.travel()
        try:
            return await call(*arguments, **named)
        finally:
            await self.travel()

    async def read_revision(self) -> int:
        revision: int = await self._there_and_back(self.inner.read_revision)
        if self.progress_on_request:
            for watcher in tuple(self._watchers):
                watcher.want(revision)
        return revision

    async def range(self, request: api.RangeRequest) -> api.RangeResponse:
        answer: api.RangeResponse = await self._there_and_back(self.inner.range, request)
        return answer

    async def put(self, request: api.PutRequest) -> api.PutResponse:
        answer: api.PutResponse = await self._there_and_back(self.inner.put, request)
        return answer

    async def delete_range(self, request: api.DeleteRangeRequest) -> api.DeleteRangeResponse:
        answer: api.DeleteRangeResponse = await self._there_and_back(self.inner.delete_range, request)
        return answer

    async def txn(self, request: api.TxnRequest) -> api.TxnResponse:
        answer: api.TxnResponse = await self._there_and_back(self.inner.txn, request)
        return answer

    async def compact(self, revision: int, *, physical: bool = False) -> api.CompactionResponse:
        answer: api.CompactionResponse = await self._there_and_back(self.inner.compact, revision, physical=physical)
        return answer

    async def lease_grant(self, ttl_seconds: int, *, lease_id: int = 0) -> api.LeaseGrantResponse:
        answer: api.LeaseGrantResponse = await self._there_and_back(self.inner.lease_grant, ttl_seconds, lease_id=lease_id)
        return answer

    async def lease_revoke(self, lease_id: int) -> api.ResponseHeader:
        answer: api.ResponseHeader = await self._there_and_back(self.inner.lease_revoke, lease_id)
        return answer

    async def lease_keep_alive(self, lease_id: int) -> int:
        answer: int = await self._there_and_back(self.inner.lease_keep_alive, lease_id)
        return answer

    async def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> api.LeaseTimeToLiveResponse:
        answer: api.LeaseTimeToLiveResponse = await self._there_and_back(self.inner.lease_time_to_live, lease_id, keys=keys)
        return answer

    async def leases(self) -> tuple[int, ...]:
        answer: tuple[int, ...] = await self._there_and_back(self.inner.leases)
        return answer

    async def status(self) -> api.StoreStatus:
        answer: api.StoreStatus = await self._there_and_back(self.inner.status)
        return answer

    def hold_events(self) -> None:
        """No event arrives at the watches that there are now."""
        for watcher in self._watchers:
            watcher.flow.clear()

    def release_events(self) -> None:
        for watcher in self._watchers:
            watcher.flow.set()

    def watch(self, request: api.WatchRequest) -> api.Watcher:
        watcher = _TravellingWatcher(self, self.inner.watch(request), self._watchers.discard)
        self._watchers.add(watcher)
        return watcher

    def close(self) -> None:
        """Of this client; the store has an end of its own."""
        for watcher in tuple(self._watchers):
            watcher.fail(errors.StoppedError())


class _TravellingWatcher:
    def __init__(self, kv: TravellingKV, inner: api.Watcher, on_end: Callable[[_TravellingWatcher], None]) -> None:
        self._kv = kv
        self._inner = inner
        self._on_end = on_end
        self._batches: deque[api.WatchBatch] = deque()
        self._error: errors.StoreError | None = None
        self._readable = asyncio.Event()
        self.flow = asyncio.Event()
        self.flow.set()
        self._reached = 0
        self._turn = asyncio.Lock()
        self._task = asyncio.create_task(self._run())
        self._progress: set[asyncio.Task[None]] = set()

    def take(self) -> api.WatchBatch | None:
        if self._batches:
            batch = self._batches.popleft()
            if not self._batches and self._error is None:
                self._readable.clear()
            return batch
        if self._error is not None:
            raise self._error
        return None

    async def wait(self) -> None:
        await self._readable.wait()

    def cancel(self) -> None:
        self._inner.cancel()
        self._task.cancel()
        for task in self._progress:
            task.cancel()
        self._on_end(self)
        self._readable.set()

    def fail(self, error: errors.StoreError) -> None:
        self.cancel()
        self._error = error

    def want(self, revision: int) -> None:
        if self._error is None:
            task = asyncio.create_task(self._tell_progress(revision))
            self._progress.add(task)
            task.add_done_callback(self._progress.discard)

    async def _tell_progress(self, revision: int) -> None:
        """All that the store has is sent first."""
        await self._kv.travel()
        await self._pass_on()
        async with self._turn:
            if self._reached < revision and self._error is None:
                self._reached = revision
                self._batches.append(api.WatchBatch(revision=revision, events=()))
                self._readable.set()

    async def _run(self) -> None:
        while self._error is None:
            await self._inner.wait()
            await self._pass_on()

    async def _pass_on(self) -> None:
        async with self._turn:  # in order, whoever asks
            try:
                while (batch := self._inner.take()) is not None:
                    await self._kv.travel()
                    await self.flow.wait()
                    self._reached = max(self._reached, batch.revision)
                    self._batches.append(batch)
                    self._readable.set()
            except errors.StoreError as error:
                self._error = error
                self._readable.set()
