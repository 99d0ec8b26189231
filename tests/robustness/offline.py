"""What a member's files hold while it is down, and what its log says that they should."""

from __future__ import annotations

import contextlib
from pathlib import Path

from storage import api, errors
from storage.backend.lmdb_backend import LmdbBackend
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import Lessor
from storage.member import request as log_request
from storage.member.applier import Applier
from storage.mvcc.kv_hash import KvHash, hash_kv
from storage.mvcc.store import Store
from storage.raft.messages import Entry
from storage.watch.watchable_store import WatchableStore
from tests.robustness.linearizability import requests_of


def revision_of_file(path: Path) -> int:
    """The newest revision of a member that is down."""
    backend = LmdbBackend(path)
    try:
        return Store(backend, Lessor(backend)).current_revision
    finally:
        backend.close()


def hash_of_file(path: Path, revision: int = 0) -> KvHash:
    """HashKV of a member that is down, at a revision (0: the newest)."""
    backend = LmdbBackend(path)
    try:
        return hash_kv(Store(backend, Lessor(backend)), revision)
    finally:
        backend.close()


def replay(entries: list[Entry]) -> Store:
    """A store in memory that applied the whole log."""
    backend = MemoryBackend()
    lessor = Lessor(backend)
    watchable = WatchableStore(backend, lessor)

    def header(revision: int) -> api.ResponseHeader:
        return api.ResponseHeader(cluster_id=1, member_id=1, revision=revision, raft_term=1)

    applier = Applier(watchable, lessor, make_header=header, monotonic=lambda: 0.0)
    for request in requests_of(entries):
        with contextlib.suppress(errors.StoreError):
            match request:
                case api.PutRequest():
                    applier.put(request)
                case api.DeleteRangeRequest():
                    applier.delete_range(request)
                case api.TxnRequest():
                    applier.txn(request)
                case log_request.CompactionRequest():
                    applier.compact(request.revision)
                case log_request.LeaseGrantRequest():
                    applier.lease_grant(request.id, request.ttl_seconds)
                case log_request.LeaseRevokeRequest():
                    applier.lease_revoke(request.id)
    while watchable.compaction_step():
        pass
    return watchable.store
