"""Applies requests to the state machine, in the order of the log.

Deterministic: from equal states equal requests lead to equal states and equal answers on every member; a request that raises has
changed nothing. Everything is synchronous and runs on one thread.
"""

from __future__ import annotations

from collections.abc import Callable

from storage import api
from storage.lease.lessor import Lessor
from storage.member import txn
from storage.watch.watchable_store import WatchableStore


class Applier:
    """``make_header`` fills in a response header for a revision; ``monotonic`` is the leader's clock for lease expiry, in seconds: it
    never decides what is written."""

    def __init__(self, store: WatchableStore, lessor: Lessor, *, make_header: txn.MakeHeader, monotonic: Callable[[], float]) -> None:
        self._watchable = store
        self._store = store.store
        self._lessor = lessor
        self._header = make_header
        self._monotonic = monotonic

    def range(self, request: api.RangeRequest) -> api.RangeResponse:
        """Raises FutureRevisionError, CompactedError."""
        return txn.execute_range(self._store, request, self._header)

    def put(self, request: api.PutRequest) -> api.PutResponse:
        """Raises LeaseNotFoundError, KeyNotFoundError."""
        return txn.execute_put(self._store, self._lessor, request, self._header)

    def delete_range(self, request: api.DeleteRangeRequest) -> api.DeleteRangeResponse:
        return txn.execute_delete_range(self._store, request, self._header)

    def txn(self, request: api.TxnRequest) -> api.TxnResponse:
        """Raises LeaseNotFoundError, KeyNotFoundError, FutureRevisionError, CompactedError."""
        return txn.execute_txn(self._store, self._lessor, request, self._header)

    def compact(self, revision: int) -> api.CompactionResponse:
        """Raises CompactedError, FutureRevisionError. The physical part is left to ``WatchableStore.compaction_step``."""
        self._watchable.compact(revision)
        return api.CompactionResponse(header=self._header(self._store.current_revision))

    def lease_grant(self, lease_id: int, ttl_seconds: int) -> api.LeaseGrantResponse:
        """Raises LeaseExistsError, LeaseTtlTooLargeError, LeaseNotFoundError."""
        lease = self._lessor.grant(lease_id, ttl_seconds, self._monotonic())
        header = self._header(self._store.current_revision)
        return api.LeaseGrantResponse(header=header, id=lease.id, ttl_seconds=lease.ttl_seconds)

    def lease_revoke(self, lease_id: int) -> api.ResponseHeader:
        """Raises LeaseNotFoundError."""
        self._lessor.revoke(lease_id, self._watchable)
        return self._header(self._store.current_revision)

    def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> api.LeaseTimeToLiveResponse:
        """What is left of a lease, -1 seconds for one that does not exist; a read, not for the log."""
        header = self._header(self._store.current_revision)
        lease = self._lessor.lookup(lease_id)
        if lease is None:
            return api.LeaseTimeToLiveResponse(header=header, id=lease_id, ttl_seconds=-1, granted_ttl_seconds=0)
        remaining = lease.expiry - self._monotonic()
        # On a member that does not lead nothing runs out: the granted TTL is the best answer there.
        ttl = lease.ttl_seconds if remaining == float("inf") else max(int(remaining), 0)
        return api.LeaseTimeToLiveResponse(
            header=header,
            id=lease_id,
            ttl_seconds=ttl,
            granted_ttl_seconds=lease.ttl_seconds,
            keys=tuple(sorted(lease.keys)) if keys else (),
        )
