"""``api.KV`` over the real store of versions and leases with a backend in memory and no Raft: for tests above the store.

Every semantic of keys, revisions, watches and leases is the real code's; what is missing is durability, replication and the waiting
that they bring. Time for leases is an argument: ``now`` is read from the ``monotonic`` passed in, and ``expire_leases`` does what the
leader's loop would do.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from storage import api, errors
from storage.backend.backend import Backend
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import Lessor
from storage.member import txn
from storage.member.applier import Applier
from storage.watch.watchable_store import WatchableStore

CLUSTER_ID = 0xCAFE
MEMBER_ID = 0x1


class MemoryKV:
    """One per event loop; ``MemoryKV()`` is an empty store at revision 1. ``fail_next`` makes the next request raise."""

    events_are_immediate = True
    progress_on_request = True

    def __init__(self, backend: Backend | None = None, *, monotonic: Callable[[], float] = time.monotonic, seed: int = 0) -> None:
        self.backend = backend if backend is not None else MemoryBackend()
        self.lessor = Lessor(self.backend)
        self.store = WatchableStore(self.backend, self.lessor)
        self.monotonic = monotonic
        self.lessor.promote(monotonic())
        self.applier = Applier(self.store, self.lessor, make_header=_header, monotonic=monotonic)
        self.fail_next: errors.StoreError | None = None
        self._random = random.Random(seed)
        self._applied = 0

    def local_revision(self) -> int | None:
        return self.store.current_revision

    async def read_revision(self) -> int:
        self._maybe_fail()
        return self.store.current_revision

    async def range(self, request: api.RangeRequest) -> api.RangeResponse:
        txn.check(request)
        self._maybe_fail()
        return self.applier.range(request)

    async def put(self, request: api.PutRequest) -> api.PutResponse:
        txn.check(request)
        self._apply()
        return self.applier.put(request)

    async def delete_range(self, request: api.DeleteRangeRequest) -> api.DeleteRangeResponse:
        txn.check(request)
        self._apply()
        return self.applier.delete_range(request)

    async def txn(self, request: api.TxnRequest) -> api.TxnResponse:
        txn.check(request)
        self._apply()
        return self.applier.txn(request)

    async def compact(self, revision: int, *, physical: bool = False) -> api.CompactionResponse:
        self._apply()
        response = self.applier.compact(revision)
        while self.store.compaction_step():
            pass
        return response

    async def lease_grant(self, ttl_seconds: int, *, lease_id: int = 0) -> api.LeaseGrantResponse:
        self._apply()
        return self.applier.lease_grant(lease_id or self._random.getrandbits(62) + 1, ttl_seconds)

    async def lease_revoke(self, lease_id: int) -> api.ResponseHeader:
        self._apply()
        return self.applier.lease_revoke(lease_id)

    async def lease_keep_alive(self, lease_id: int) -> int:
        self._maybe_fail()
        return self.lessor.renew(lease_id, self.monotonic())

    async def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> api.LeaseTimeToLiveResponse:
        return self.applier.lease_time_to_live(lease_id, keys=keys)

    async def leases(self) -> tuple[int, ...]:
        return self.lessor.ids()

    def watch(self, request: api.WatchRequest) -> api.Watcher:
        return self.store.watch(request)

    async def status(self) -> api.StoreStatus:
        return api.StoreStatus(
            header=_header(self.store.current_revision),
            version="3.5.0",
            db_size=self.backend.size(),
            db_size_in_use=self.backend.size_in_use(),
            leader_id=MEMBER_ID,
            raft_index=self._applied,
            raft_applied_index=self._applied,
            is_learner=False,
        )

    def expire_leases(self) -> list[int]:
        """Revoke what has run out by now, as the leader's loop does; answers the ids."""
        expired = self.lessor.expired(self.monotonic())
        for lease_id in expired:
            self.applier.lease_revoke(lease_id)
        return expired

    def close(self) -> None:
        self.store.close()
        self.backend.close()

    def _apply(self) -> None:
        self._maybe_fail()
        self._applied += 1

    def _maybe_fail(self) -> None:
        if self.store.is_closed:
            raise errors.StoppedError()
        if self.fail_next is not None:
            error, self.fail_next = self.fail_next, None
            raise error


def _header(revision: int) -> api.ResponseHeader:
    return api.ResponseHeader(cluster_id=CLUSTER_ID, member_id=MEMBER_ID, revision=revision, raft_term=1)
