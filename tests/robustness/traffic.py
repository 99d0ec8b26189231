"""Clients that behave as API servers and their informers do: mostly list and watch, guarded updates, few creations and deletions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage import api, errors
from storage.member import request as log_request
from tests.robustness import kv_model
from tests.robustness.history import Recorder, send
from tests.robustness.watch_promises import Compacted, Stream

PREFIX: Final = b"/registry/pods/default/"
PREFIX_END: Final = b"/registry/pods/default0"
KEYS: Final = 12
PAUSE_SECONDS: Final = 0.03
"""Between two calls of a client: together with the number of clients it bounds the load."""
ERROR_PAUSE_SECONDS: Final = 0.1

WEIGHTS: Final = {
    "list": 20,
    "get": 15,
    "serializable": 5,
    "update": 35,
    "create": 10,
    "delete": 8,
    "leased": 4,
    "pair": 5,
    "compact": 1,
}


def is_ours(key: bytes) -> bool:
    """Only the clients here write such keys."""
    return key.startswith(PREFIX)


@dataclass
class Client:
    """One connection to one member, one call at a time."""

    number: int
    kv: api.KV
    recorder: Recorder
    rng: random.Random
    _count: int = 0
    _lease: int = 0

    def _value(self) -> bytes:
        """Comes once, so that a second application would show."""
        self._count += 1
        return b"%d-%d" % (self.number, self._count) + b"." * self.rng.choice((0, 0, 300))

    def _key(self) -> bytes:
        return PREFIX + b"pod-%d" % self.rng.randrange(KEYS)

    async def run(self, stopped: Callable[[], bool]) -> None:
        known: dict[bytes, api.KeyValue] = {}
        while not stopped():
            try:
                await self._step(known)
                await asyncio.sleep(PAUSE_SECONDS * self.rng.random() * 2)
            except errors.StoreError:
                await asyncio.sleep(ERROR_PAUSE_SECONDS)

    async def _call(self, request: kv_model.Request) -> kv_model.Response:
        return await self.recorder.call(self.number, request, send(self.kv, request))

    async def _step(self, known: dict[bytes, api.KeyValue]) -> None:
        """``known``: what this client saw last, from which it updates; often it is outdated, as an informer's cache is."""
        rng = self.rng
        key = self._key()
        put = api.PutRequest(key=key, value=self._value(), lease=0)
        match rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]:
            case "list":
                response = await self._call(api.RangeRequest(key=PREFIX, range_end=PREFIX_END))
                assert isinstance(response, api.RangeResponse)
                known.clear()
                known.update((kv.key, kv) for kv in response.kvs)
            case "get":
                await self._call(api.RangeRequest(key=key))
            case "serializable":
                await self._call(api.RangeRequest(key=PREFIX, range_end=PREFIX_END, serializable=True))
            case "update":
                seen = known.get(key)
                response = await self._call(guarded(put, seen.mod_revision if seen else 0))
                assert isinstance(response, api.TxnResponse)
                if not response.succeeded and isinstance(shown := response.responses[0], api.RangeResponse):
                    known.pop(key, None)
                    known.update((kv.key, kv) for kv in shown.kvs)
            case "create":
                await self._call(guarded(put, 0))
            case "delete":
                await self._call(api.DeleteRangeRequest(key=key, prev_kv=True))
            case "leased":
                await self._put_leased(key)
            case "pair":
                other = api.PutRequest(key=PREFIX + b"pair", value=self._value())
                await self._call(api.TxnRequest(success=(put, other)))
            case "compact":
                response = await self._call(api.RangeRequest(key=key))
                assert isinstance(response, api.RangeResponse)
                await self._call(log_request.CompactionRequest(revision=max(1, response.header.revision - rng.randrange(200))))

    async def _put_leased(self, key: bytes) -> None:
        if not self._lease or self.rng.random() < 0.3:
            self._lease = self.rng.getrandbits(40) | 1
            await self._call(log_request.LeaseGrantRequest(id=self._lease, ttl_seconds=self.rng.choice((2, 60))))
        await self._call(api.PutRequest(key=key, value=self._value(), lease=self._lease))


def guarded(put: api.PutRequest, mod_revision: int) -> api.TxnRequest:
    """An API server's write: only if the key is what it was; else what it is."""
    compare = api.Compare(key=put.key, target=api.CompareTarget.MOD, operand=mod_revision)
    return api.TxnRequest(compare=(compare,), success=(put,), failure=(api.RangeRequest(key=put.key),))


class Informer:
    """List, then watch from there; again from the list where the watch is told of a compaction."""

    def __init__(self, name: str, kv: api.KV) -> None:
        self.name = name
        self.streams: list[Stream] = []
        self.seen_revision = 0
        self._kv = kv

    async def run(self, stopped: Callable[[], bool]) -> None:
        while not stopped():
            try:
                listed = await self._kv.range(api.RangeRequest(key=PREFIX, range_end=PREFIX_END))
                await self._watch(listed.header.revision, stopped)
            except errors.CompactedError:
                pass
            except errors.StoreError:
                await asyncio.sleep(ERROR_PAUSE_SECONDS)

    async def _watch(self, revision: int, stopped: Callable[[], bool]) -> None:
        request = api.WatchRequest(key=PREFIX, range_end=PREFIX_END, start_revision=revision + 1, prev_kv=True)
        items: list[api.WatchBatch | Compacted] = []
        self.streams.append(Stream(request, items))
        self.seen_revision = revision
        watcher = self._kv.watch(request)
        try:
            while not stopped():
                try:
                    async with asyncio.timeout(0.2):
                        await watcher.wait()
                except TimeoutError:
                    continue
                while (batch := watcher.take()) is not None:
                    items.append(batch)
                    self.seen_revision = max(self.seen_revision, batch.revision)
        except errors.CompactedError as error:
            items.append(Compacted(error.compact_revision))
            raise
        finally:
            watcher.cancel()
