"""``MeasuredKV``: a store whose requests are timed, under the names that kube-apiserver gives its requests to etcd.

Only what a client waits for is timed: reads and writes of keys. A request's ``type`` is the part of its key after ``/registry/``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from apiserver.objectstore.interface import REGISTRY_PREFIX
from storage import api


class StoreRequestObserver(Protocol):
    def __call__(self, operation: str, type_: str, seconds: float, *, failed: bool) -> None:
        """After each request. ``operation``: get, list, create, update, delete, put, txn."""


def operation_of(request: api.TxnRequest) -> tuple[str, bytes]:
    """(operation, key) of a transaction as the object store makes them: guarded by one compare, doing one thing."""
    if len(request.success) != 1:
        return "txn", b""
    [then] = request.success
    if isinstance(then, api.DeleteRangeRequest):
        return "delete", then.key
    if isinstance(then, api.PutRequest):
        guard = request.compare[0] if request.compare else None
        # an absent key has zeros, whichever of its numbers is asked for
        return ("create" if guard is not None and guard.operand == 0 else "update"), then.key
    return "txn", b""


def type_of(key: bytes, registry_prefix: bytes = REGISTRY_PREFIX.encode()) -> str:
    """``pods`` of ``/registry/pods/ns/p``."""
    if not key.startswith(registry_prefix):
        return "other"
    return key[len(registry_prefix) :].partition(b"/")[0].decode("latin-1") or "other"


class MeasuredKV:
    """An ``api.KV``: all of ``kv``, with ``range``, ``put`` and ``txn`` timed."""

    def __init__(
        self,
        kv: api.KV,
        observe: StoreRequestObserver,
        now: Callable[[], float] = time.monotonic,
        registry_prefix: str = REGISTRY_PREFIX,
    ) -> None:
        """``now``: a monotonic clock in seconds."""
        self._kv = kv
        self._registry_prefix = registry_prefix.encode()
        self._observe = observe
        self._now = now
        self.events_are_immediate = kv.events_are_immediate
        # the untimed rest is the store's own, with no call in between
        self.local_revision = kv.local_revision
        self.read_revision = kv.read_revision
        self.delete_range = kv.delete_range
        self.compact = kv.compact
        self.lease_grant = kv.lease_grant
        self.lease_revoke = kv.lease_revoke
        self.lease_keep_alive = kv.lease_keep_alive
        self.lease_time_to_live = kv.lease_time_to_live
        self.leases = kv.leases
        self.watch = kv.watch
        self.status = kv.status

    @property
    def progress_on_request(self) -> bool:
        return self._kv.progress_on_request

    async def range(self, request: api.RangeRequest) -> api.RangeResponse:
        start = self._now()
        failed = True
        try:
            answer = await self._kv.range(request)
            failed = False
            return answer
        finally:
            operation = "list" if request.range_end else "get"
            self._observe(operation, type_of(request.key, self._registry_prefix), self._now() - start, failed=failed)

    async def put(self, request: api.PutRequest) -> api.PutResponse:
        start = self._now()
        failed = True
        try:
            answer = await self._kv.put(request)
            failed = False
            return answer
        finally:
            self._observe("put", type_of(request.key, self._registry_prefix), self._now() - start, failed=failed)

    async def txn(self, request: api.TxnRequest) -> api.TxnResponse:
        start = self._now()
        failed = True
        try:
            answer = await self._kv.txn(request)
            failed = False
            return answer
        finally:
            operation, key = operation_of(request)
            self._observe(operation, type_of(key, self._registry_prefix), self._now() - start, failed=failed)
