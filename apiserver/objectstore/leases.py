"""Store leases for objects that expire (events): one lease serves the objects of a minute, as upstream's lease manager does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from storage import api

#: How long a lease takes further objects. Its TTL is longer by this, so that the last object on it lives as long as promised.
REUSE_SECONDS = 60
#: Objects on one lease: its expiry deletes them all at one revision, which must stay a bounded piece of work.
OBJECTS_MAX = 1_000


class LeaseReuser:
    """``now`` is a monotonic clock in seconds."""

    def __init__(self, kv: api.KV, now: Callable[[], float]) -> None:
        self._kv = kv
        self._now = now
        self._lock = asyncio.Lock()
        self._id = 0
        self._ttl_seconds = 0
        self._granted_at = 0.0
        self._objects = 0

    async def lease_for(self, ttl_seconds: int) -> int:
        """A lease on which an object lives at least ``ttl_seconds``."""
        async with self._lock:
            usable = self._id and self._ttl_seconds == ttl_seconds and self._objects < OBJECTS_MAX
            if not usable or self._now() - self._granted_at > REUSE_SECONDS:
                self._granted_at = self._now()
                granted = await self._kv.lease_grant(ttl_seconds + REUSE_SECONDS)
                self._id, self._ttl_seconds, self._objects = granted.id, ttl_seconds, 0
            self._objects += 1
            return self._id

    def forget(self) -> None:
        """The store said that the lease is gone: take a new one."""
        self._id = 0
