"""The layout on disk is etcd's: a file that a real etcd 3.5 wrote loads, hashes and re-encodes to the same bytes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from storage import api
from storage.backend.backend import BUCKET_NAMES, Bucket
from storage.backend.memory_backend import MemoryBackend
from storage.bbolt.reader import BboltReader
from storage.lease import lease
from storage.lease.lessor import Lessor
from storage.mvcc import kv_codec
from storage.mvcc.kv_hash import hash_kv
from storage.mvcc.revision import is_tombstone, main_of, revision_key, sub_of
from storage.watch.watchable_store import WatchableStore

SNAPSHOT = Path(__file__).parents[1] / "data" / "etcd-3.5-snapshot.db.gz"
#: what etcdctl said of that cluster when the snapshot was taken
REVISION = 402
HASH_KV = 3506018307
REGISTRY_KEYS = 303


@pytest.fixture(scope="module")
def buckets(tmp_path_factory: pytest.TempPathFactory) -> dict[bytes, list[tuple[bytes, bytes]]]:
    path = tmp_path_factory.mktemp("etcd") / "snapshot.db"
    path.write_bytes(gzip.decompress(SNAPSHOT.read_bytes()))
    with BboltReader(path) as reader:
        return {name: list(reader.items(name)) for name in reader.buckets()}


@pytest.fixture(scope="module")
def store(buckets: dict[bytes, list[tuple[bytes, bytes]]]) -> WatchableStore:
    backend = MemoryBackend()
    for bucket, name in zip(Bucket, BUCKET_NAMES, strict=True):
        for key, value in buckets.get(name, ()):
            backend.put(bucket, key, value)
    return WatchableStore(backend, Lessor(backend))


def test_every_record_of_etcd_is_encoded_to_the_same_bytes(buckets: dict[bytes, list[tuple[bytes, bytes]]]) -> None:
    assert len(buckets[b"key"]) >= REVISION - 1
    for record, value in buckets[b"key"]:
        kv = kv_codec.decode(value)
        assert revision_key(main_of(record), sub_of(record)) + (b"t" if is_tombstone(record) else b"") == record
        if is_tombstone(record):
            assert kv_codec.encode_tombstone(kv.key) == value
        else:
            assert kv.mod_revision == main_of(record)
            assert kv_codec.encode(kv) == value


def test_every_lease_of_etcd_is_encoded_to_the_same_bytes(buckets: dict[bytes, list[tuple[bytes, bytes]]]) -> None:
    assert buckets[b"lease"]
    for key, value in buckets[b"lease"]:
        decoded = lease.decode(value)
        assert decoded.id.to_bytes(8, "big") == key
        assert decoded.encode() == value


def test_the_store_loads_what_etcd_wrote(store: WatchableStore) -> None:
    assert store.current_revision == REVISION
    assert store.compact_revision == -1
    found = store.range(api.RangeRequest(key=b"/registry/", range_end=b"/registry0"))
    assert found.count == len(found.kvs) == REGISTRY_KEYS


def test_hash_kv_is_what_etcd_computed(store: WatchableStore) -> None:
    found = hash_kv(store.store)
    assert (found.hash, found.compact_revision, found.revision) == (HASH_KV, -1, REVISION)


def test_keys_hang_on_the_leases_that_etcd_attached(store: WatchableStore) -> None:
    with_lease = {kv.key: kv.lease for kv in store.range(api.RangeRequest(key=b"\0", range_end=b"\0")).kvs if kv.lease}
    assert with_lease
    lessor = store.store.lessor
    assert isinstance(lessor, Lessor)
    assert {key: lessor.lease_of(key) for key in with_lease} == with_lease
