"""``ObjectStore``: the object storages of all resources over one store, and the cluster's configuration keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from apiserver.objectstore import codec
from apiserver.objectstore.event_source import EventSource, prefix_end
from apiserver.objectstore.interface import REGISTRY_PREFIX, UnreadableObjectError
from apiserver.objectstore.kv_object_storage import KvObjectStorage
from apiserver.objectstore.leases import LeaseReuser
from apiserver.objectstore.watch_cache import WatchCache
from storage import api, errors

if TYPE_CHECKING:
    from apiserver.objectstore.encryption.transformer import Transformer

CONFIG_PREFIX = "/config/apiserver/"
#: Writes of one transaction: below etcd's limit of 128 operations.
BOOTSTRAP_OPS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixCount:
    """How many objects are under a storage prefix; ``unreadable``: why further ones are not."""

    prefix: str
    read: int
    unreadable: tuple[UnreadableObjectError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """``elsewhere``: keys that belong to no resource, by what stands in a storage prefix's place."""

    prefixes: tuple[PrefixCount, ...]
    elsewhere: Mapping[str, int]

    @property
    def read(self) -> int:
        return sum(count.read for count in self.prefixes)

    @property
    def unreadable(self) -> list[UnreadableObjectError]:
        return [error for count in self.prefixes for error in count.unreadable]


class ObjectStore:
    """Add the resources, ``start``, then keep ``run`` running. ``now`` is a monotonic clock in seconds. ``registry_prefix``: what the keys
    of all objects begin with, a slash at its end; with another than the usual one several clusters share a store."""

    def __init__(self, kv: api.KV, now: Callable[[], float] = time.monotonic, registry_prefix: str = REGISTRY_PREFIX) -> None:
        self.kv = kv
        self.source = EventSource(kv, registry_prefix)
        self._config_prefix = CONFIG_PREFIX if registry_prefix == REGISTRY_PREFIX else f"/config{registry_prefix}apiserver/"
        self._leases = LeaseReuser(kv, now)
        self._storages: dict[str, KvObjectStorage] = {}
        #: encryption at rest: what the values of a storage prefix pass on their way; set before resources are added
        self.transformer_of: Callable[[str], Transformer] | None = None

    def add(self, prefix: str, namespaced: bool, ttl_seconds: int = 0) -> KvObjectStorage:
        """The storage of one prefix, loaded by ``start``; the same object for the same prefix. ``ttl_seconds``: objects expire."""
        storage = self._storages.get(prefix)
        if storage is None:
            cache = self._cache(prefix, namespaced)
            storage = self._storages[prefix] = KvObjectStorage(self.kv, self.source, cache, self._leases, ttl_seconds)
            self.source.add(cache)
        return storage

    async def add_running(self, prefix: str, namespaced: bool) -> KvObjectStorage:
        """As ``add``, after ``start``."""
        storage = self._storages.get(prefix)
        if storage is None:
            cache = self._cache(prefix, namespaced)
            await self.source.add_and_load(cache)
            storage = self._storages[prefix] = KvObjectStorage(self.kv, self.source, cache, self._leases)
        return storage

    def _cache(self, prefix: str, namespaced: bool) -> WatchCache:
        cache = WatchCache(prefix, namespaced)
        if self.transformer_of is not None:
            cache.transformer = self.transformer_of(prefix)
        return cache

    def set_transformers(self) -> None:
        """``transformer_of`` answers otherwise from now on. What is in the caches counts as encrypted by an old key until it is
        written."""
        assert self.transformer_of is not None
        for prefix, storage in self._storages.items():
            transformer = self.transformer_of(prefix)
            if transformer is not storage.cache.transformer:
                storage.cache.transformer = transformer
                storage.cache.stale.update(obj.path for obj in storage.cache.values())

    async def read_unreadable_again(self) -> None:
        """Where keys have come that were missing. Raises StoreError."""
        for storage in list(self._storages.values()):
            if storage.cache.transformer is not None and storage.cache.unreadable:
                await self.source.read_again(storage.cache)

    def remove(self, prefix: str) -> None:
        storage = self._storages.pop(prefix, None)
        if storage is not None:
            self.source.remove(storage.cache)

    def storages(self) -> Mapping[str, KvObjectStorage]:
        return self._storages

    def census(self) -> Census:
        """What is there now, and what was found elsewhere when everything was loaded."""
        counts = [
            PrefixCount(prefix=prefix, read=len(storage.cache), unreadable=tuple(storage.cache.unreadable.values()))
            for prefix, storage in sorted(self._storages.items())
        ]
        return Census(prefixes=tuple(count for count in counts if count.read or count.unreadable), elsewhere=dict(self.source.elsewhere))

    @property
    def alive(self) -> bool:
        """Whether changes of the store arrive."""
        return self.source.alive

    async def start(self) -> None:
        await self.source.start()

    async def run(self) -> None:
        await self.source.run()

    def end_watches(self) -> None:
        """Let every watch deliver what it has and end."""
        for storage in self._storages.values():
            for watcher in storage.cache.watchers():
                watcher.end()

    async def create_missing(self, objects: list[tuple[str, str, dict[str, object]]]) -> int:
        """Create the (prefix, path, object) that are not there, all at once; how many were created. An object that somebody else
        creates meanwhile is left as it is."""
        if self.source.can_wait:
            await self.source.freshen()
        missing = [(prefix, path, obj) for prefix, path, obj in objects if self._storages[prefix].cache.get(path) is None]
        requests = []
        for start in range(0, len(missing), BOOTSTRAP_OPS_MAX):
            part = missing[start : start + BOOTSTRAP_OPS_MAX]
            keys = [f"{self.source.registry_prefix}{prefix}/{path}".encode() for prefix, path, _ in part]
            puts = tuple(
                api.PutRequest(key=key, value=self._encrypted(prefix, key, codec.encode(obj)))
                for key, (prefix, _, obj) in zip(keys, part, strict=True)
            )
            absent = tuple(api.Compare(key=key, target=api.CompareTarget.CREATE, operand=0) for key in keys)
            requests.append(self._create_all(api.TxnRequest(compare=absent, success=puts), puts))
        created = sum(await asyncio.gather(*requests))
        self.source.freshen_now()
        return created

    def _encrypted(self, prefix: str, key: bytes, value: bytes) -> bytes:
        transformer = self._storages[prefix].cache.transformer
        return value if transformer is None else transformer.encrypt(value, key)

    async def _create_all(self, txn: api.TxnRequest, puts: tuple[api.PutRequest, ...]) -> int:
        if (await self.kv.txn(txn)).succeeded:
            return len(puts)
        created = 0  # another server came first with some: one by one
        for put in puts:
            absent = api.Compare(key=put.key, target=api.CompareTarget.CREATE, operand=0)
            created += (await self.kv.txn(api.TxnRequest(compare=(absent,), success=(put,)))).succeeded
        return created

    async def write_configuration(self, member: str, flags: Mapping[str, object]) -> None:
        """The effective flags of one API server, for operators who look into the store; written only when they differ."""
        key, value = f"{self._config_prefix}{member}".encode(), orjson.dumps(flags, option=orjson.OPT_SORT_KEYS, default=str)
        found = await self.kv.range(api.RangeRequest(key=key))
        if not found.kvs or found.kvs[0].value != value:
            await self.kv.put(api.PutRequest(key=key, value=value))

    # -- keys of the servers themselves, which live as long as their leases

    async def hold_key(self, name: str, lease: int, ttl_seconds: int, value: bytes = b"") -> int:
        """Have the key for another ``ttl_seconds``; the lease it is on, to be given at the next call (0 at the first)."""
        key = f"{self.source.registry_prefix}{name}".encode()
        if lease:
            try:
                await self.kv.lease_keep_alive(lease)
                return lease
            except errors.LeaseNotFoundError:
                pass  # it ran out while this server could not reach the store
        granted = await self.kv.lease_grant(ttl_seconds)
        await self.kv.put(api.PutRequest(key=key, value=value, lease=granted.id))
        return granted.id

    async def drop_key(self, name: str, lease: int) -> None:
        if lease:
            await self.kv.lease_revoke(lease)
        await self.kv.delete_range(api.DeleteRangeRequest(key=f"{self.source.registry_prefix}{name}".encode()))

    async def held_keys(self, prefix: str) -> list[str]:
        """The names under ``prefix``, without it."""
        key = f"{self.source.registry_prefix}{prefix}".encode()
        answer = await self.kv.range(api.RangeRequest(key=key, range_end=prefix_end(key), keys_only=True))
        return [kv.key[len(key) :].decode() for kv in answer.kvs]

    async def is_empty(self) -> bool:
        """Whether no object was ever written."""
        key = self.source.registry_prefix.encode()
        answer = await self.kv.range(api.RangeRequest(key=key, range_end=prefix_end(key), limit=1, count_only=True))
        return answer.count == 0
