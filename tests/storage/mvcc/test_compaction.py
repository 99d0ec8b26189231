"""Compaction: its bounds, what stays readable, and that a crash in the middle of it does no harm."""

from __future__ import annotations

import pytest

from storage import api, errors
from storage.backend.backend import Bucket
from storage.backend.memory_backend import MemoryBackend
from storage.backend.schema import FINISHED_COMPACT_REVISION, SCHEDULED_COMPACT_REVISION
from storage.lease.lessor import Lessor
from storage.mvcc import compaction
from storage.mvcc.kv_hash import hash_kv
from storage.mvcc.revision import revision_key
from storage.verify import check_store
from storage.watch.watchable_store import WatchableStore


def open_store(backend: MemoryBackend) -> WatchableStore:
    return WatchableStore(backend, Lessor(backend))


def put(store: WatchableStore, key: bytes, value: bytes = b"v") -> None:
    txn = store.write_txn()
    txn.put(key, value)
    txn.end()


def delete(store: WatchableStore, key: bytes) -> None:
    txn = store.write_txn()
    txn.delete_range(key)
    txn.end()


def finish_compaction(store: WatchableStore) -> None:
    while store.compaction_step():
        pass


def keys_at(store: WatchableStore, revision: int) -> list[bytes]:
    return [kv.key for kv in store.range(api.RangeRequest(key=b"\0", range_end=b"\0", revision=revision)).kvs]


def test_reads_around_the_compact_revision_of_a_delete() -> None:
    """ST-R1, etcd-io/etcd#18089, #18274: after a compaction exactly at a delete's revision, members disagreed and the delete was lost."""
    backend = MemoryBackend()
    store = open_store(backend)
    put(store, b"a")  # 2
    put(store, b"a")  # 3
    delete(store, b"a")  # 4
    put(store, b"b")  # 5
    store.compact(4)
    hash_before = hash_kv(store.store)
    finish_compaction(store)
    assert hash_kv(store.store) == hash_before
    for _ in range(2):
        with pytest.raises(errors.CompactedError) as refused:
            keys_at(store, 3)
        assert str(refused.value) == "etcdserver: mvcc: required revision has been compacted"
        assert refused.value.compact_revision == 4
        assert keys_at(store, 4) == []
        assert keys_at(store, 5) == [b"b"]
        watcher = store.watch(api.WatchRequest(key=b"a", start_revision=4))
        batch = watcher.take()
        assert batch is not None
        assert [(event.type, event.kv.mod_revision) for event in batch.events] == [(api.EventType.DELETE, 4)]
        assert hash_kv(store.store) == hash_before
        backend.commit()
        backend = backend.crash()
        store = open_store(backend)


def test_compaction_bounds() -> None:
    """ST-R2, etcd-io/etcd#19179."""
    store = open_store(MemoryBackend())
    for _ in range(9):
        put(store, b"a")
    assert store.current_revision == 10
    with pytest.raises(errors.FutureRevisionError) as future:
        store.compact(11)
    assert str(future.value) == "etcdserver: mvcc: required revision is a future revision"
    store.compact(5)
    for revision in (5, 3):
        with pytest.raises(errors.CompactedError):
            store.compact(revision)
    with pytest.raises(errors.FutureRevisionError):
        keys_at(store, 11)
    assert keys_at(store, 10) == keys_at(store, 5) == [b"a"]


def filled() -> tuple[MemoryBackend, WatchableStore]:
    backend = MemoryBackend()
    store = open_store(backend)
    for number in range(40):
        put(store, b"%02d" % (number % 13))
        if number % 5 == 0:
            delete(store, b"%02d" % (number % 7))
    return backend, store


def test_compaction_removes_exactly_the_records_that_no_read_needs() -> None:
    backend, store = filled()
    at = store.current_revision - 7
    expected = {revision: keys_at(store, revision) for revision in range(at, store.current_revision + 1)}
    records = len(backend.keys(Bucket.KEY, b"", None))
    store.compact(at)
    finish_compaction(store)
    assert {revision: keys_at(store, revision) for revision in expected} == expected
    live_at = len(expected[at])
    later = store.current_revision - at
    assert len(backend.keys(Bucket.KEY, b"", None)) <= live_at + later + 1 < records


def test_a_crash_between_any_two_slices_is_mended_at_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """With slices of three records, die after each slice in turn; the restarted store ends up equal to one that never died."""
    step = compaction.Compaction.step
    monkeypatch.setattr(compaction.Compaction, "step", lambda self, records_max=3: step(self, records_max))
    backend, store = filled()
    at = store.current_revision - 5
    store.compact(at)
    finish_compaction(store)
    expected_hash, expected_records = hash_kv(store.store), backend.keys(Bucket.KEY, b"", None)
    slices = 0
    is_done = False
    while not is_done:
        backend, store = filled()
        backend.commit()
        store.compact(at)
        for _ in range(slices):
            is_done = not store.compaction_step()
        backend.commit()
        backend = backend.crash()
        store = open_store(backend)
        assert store.compact_revision == at
        assert store.store.is_compacting == (not is_done)
        finish_compaction(store)
        check_store(store.store, Lessor(backend))
        assert hash_kv(store.store) == expected_hash
        assert backend.keys(Bucket.KEY, b"", None) == expected_records
        slices += 1
    assert slices > 5


def test_the_revision_does_not_go_back_when_the_newest_record_is_compacted_away() -> None:
    """etcd-io/etcd#17780: the newest revision is a tombstone that compaction removed before a crash."""
    backend = MemoryBackend()
    store = open_store(backend)
    put(store, b"a")
    delete(store, b"a")
    put(store, b"b")
    delete(store, b"b")
    store.compact(store.current_revision)
    finish_compaction(store)
    backend.commit()
    assert open_store(backend.crash()).current_revision == store.current_revision == 5


def test_the_revision_does_not_go_back_when_no_record_is_left() -> None:
    """Older etcd versions removed a tombstone at the compact revision itself; their files have no record of their newest revision."""
    backend = MemoryBackend()
    for name in (FINISHED_COMPACT_REVISION, SCHEDULED_COMPACT_REVISION):
        backend.put(Bucket.META, name, revision_key(7))
    store = open_store(backend)
    assert (store.current_revision, store.compact_revision) == (7, 7)
    put(store, b"a")
    assert store.current_revision == 8


def test_a_newer_compaction_takes_over_one_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    step = compaction.Compaction.step
    monkeypatch.setattr(compaction.Compaction, "step", lambda self, records_max=3: step(self, records_max))
    _, twin = filled()
    backend, store = filled()
    newest = store.current_revision
    store.compact(newest - 20)
    for _ in range(5):
        store.compaction_step()
    for each in (store, twin):
        each.compact(newest - 3)
        finish_compaction(each)
    assert hash_kv(store.store) == hash_kv(twin.store)
    assert backend.keys(Bucket.KEY, b"", None) == twin.store.backend.keys(Bucket.KEY, b"", None)


async def test_run_gives_way_between_slices() -> None:
    _, store = filled()
    store.compact(store.current_revision)
    await compaction.run(store.store)
    assert not store.store.is_compacting
