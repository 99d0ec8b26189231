"""Watches: every event of the range, in order, once — for quick and slow readers, from any kept revision, over compactions."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from storage import api, errors
from storage.backend.backend import Bucket
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import Lessor
from storage.watch import history, watcher
from storage.watch.watchable_store import WatchableStore
from tests.storage.version_model import VersionModel, in_range


def open_store(backend: MemoryBackend | None = None) -> WatchableStore:
    backend = backend or MemoryBackend()
    return WatchableStore(backend, Lessor(backend))


def put(store: WatchableStore, key: bytes, value: bytes = b"v") -> None:
    txn = store.write_txn()
    txn.put(key, value)
    txn.end()


def delete(store: WatchableStore, key: bytes, range_end: bytes = b"") -> None:
    txn = store.write_txn()
    txn.delete_range(key, range_end)
    txn.end()


def drain(watch: api.Watcher) -> list[api.WatchBatch]:
    batches = []
    while (batch := watch.take()) is not None:
        batches.append(batch)
    return batches


def revisions(watch: api.Watcher) -> list[int]:
    return [event.kv.mod_revision for batch in drain(watch) for event in batch.events]


def watch_all(store: WatchableStore, start_revision: int = 0, *, no_put: bool = False, no_delete: bool = False) -> watcher.Watcher:
    request = api.WatchRequest(key=b"\0", range_end=b"\0", start_revision=start_revision, no_put=no_put, no_delete=no_delete)
    return store.watch(request)


def test_a_write_is_there_to_be_taken_when_its_transaction_has_ended() -> None:
    store = open_store()
    watch = store.watch(api.WatchRequest(key=b"/a/", range_end=b"/a0"))
    assert watch.take() is None
    put(store, b"/a/1")
    put(store, b"/b/1")
    delete(store, b"/a/1")
    first, second = drain(watch)
    assert (first.revision, second.revision) == (2, 4)
    assert [(event.type, event.kv.key) for event in first.events] == [(api.EventType.PUT, b"/a/1")]
    assert second.events == (api.Event(api.EventType.DELETE, api.KeyValue(b"/a/1", 0, 4, 0, b"", 0)),)


def test_all_events_of_one_revision_are_in_one_batch() -> None:
    store = open_store()
    for number in range(5):
        put(store, b"k%d" % number)
    live = watch_all(store)
    delete(store, b"k1", b"k4")
    past = watch_all(store, 7)
    for watch in (live, past):
        (batch,) = drain(watch)
        assert [event.kv.key for event in batch.events] == [b"k1", b"k2", b"k3"]
        assert batch.revision == 7


def test_a_transaction_larger_than_a_slice_of_history_is_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SLICE_RECORDS_MAX", 4)
    store = open_store()
    for number in range(10):
        put(store, b"k%d" % number)
    delete(store, b"k", b"l")
    put(store, b"k0")
    watch = watch_all(store, 10)
    batches = [batch for batch in drain(watch) if batch.events]
    assert [(batch.revision, len(batch.events)) for batch in batches] == [(10, 1), (11, 1), (12, 10), (13, 1)]


def test_a_slice_without_events_is_told_as_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SLICE_RECORDS_MAX", 4)
    store = open_store()
    put(store, b"wanted")
    for _ in range(10):
        put(store, b"other")
    put(store, b"wanted")
    watch = store.watch(api.WatchRequest(key=b"wanted", start_revision=2))
    batches = drain(watch)
    assert [batch.revision for batch in batches if batch.events] == [2, 13]
    progress = [batch.revision for batch in batches if not batch.events]
    assert progress and progress == sorted(progress)
    assert all(batch.revision <= following.revision for batch, following in itertools.pairwise(batches))


def test_values_are_read_in_slices_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SLICE_BYTES_MAX", 2500)
    store = open_store()
    for _ in range(10):
        put(store, b"k", b"x" * 1000)
    watch = store.watch(api.WatchRequest(key=b"k", start_revision=2))
    assert watch.take() is not None
    assert len(watch._buffer) <= 2
    assert revisions(watch) == list(range(3, 12))


def test_a_narrow_watch_reads_no_records_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch of one key from long ago must not cost a walk through everything that was written since."""
    monkeypatch.setattr(history, "NARROW_AFTER_REVISIONS", 10)
    store = open_store()
    put(store, b"wanted", b"1")
    for number in range(500):
        put(store, b"other%d" % (number % 7))
    put(store, b"wanted", b"2")
    delete(store, b"wanted")
    read: list[bytes] = []
    get = store.store.backend.get

    def counting_get(bucket: Bucket, key: bytes) -> bytes | None:
        read.append(key)
        return get(bucket, key)

    monkeypatch.setattr(store.store.backend, "get", counting_get)
    assert revisions(store.watch(api.WatchRequest(key=b"wanted", start_revision=1))) == [2, 503, 504]
    assert len(read) == 3


def test_previous_values_come_if_asked_for_and_not_compacted() -> None:
    store = open_store()
    live = store.watch(api.WatchRequest(key=b"a", prev_kv=True))
    for value in (b"1", b"2", b"3"):
        put(store, b"a", value)
    delete(store, b"a")
    past = store.watch(api.WatchRequest(key=b"a", prev_kv=True, start_revision=2))
    for watch in (live, past):
        events = [event for batch in drain(watch) for event in batch.events]
        assert [None if event.prev_kv is None else event.prev_kv.value for event in events] == [None, b"1", b"2", b"3"]
    store.compact(4)
    compacted = store.watch(api.WatchRequest(key=b"a", prev_kv=True, start_revision=4))
    events = [event for batch in drain(compacted) for event in batch.events]
    assert [None if event.prev_kv is None else event.prev_kv.value for event in events] == [None, b"3"]


def test_filters() -> None:
    store = open_store()
    no_put = watch_all(store, no_put=True)
    no_delete = watch_all(store, no_delete=True)
    put(store, b"a")
    delete(store, b"a")
    past = watch_all(store, 2, no_put=True)
    assert revisions(no_put) == revisions(past) == [3]
    assert revisions(no_delete) == [2]


def test_a_start_in_the_future_gets_nothing_older() -> None:
    """ST-W2, etcd-io/etcd#20221, #20229: a future-revision watcher received older events after it went through catch-up."""
    backend = MemoryBackend()
    store = open_store(backend)
    for _ in range(9):
        put(store, b"a")
    assert store.current_revision == 10
    watch = store.watch(api.WatchRequest(key=b"a", start_revision=20))
    for _ in range(5):
        put(store, b"a")
    Lessor(backend)
    store.restore(backend)
    assert watch.take() is None
    for _ in range(8):
        put(store, b"a")
    store.restore(backend)
    for _ in range(2):
        put(store, b"a")
    assert store.current_revision == 25
    assert revisions(watch) == [20, 21, 22, 23, 24, 25]


def test_a_start_in_the_future_holds_over_a_restore_that_jumps_past_it() -> None:
    ahead, backend = MemoryBackend(), MemoryBackend()
    leader, store = open_store(ahead), open_store(backend)
    for _ in range(24):
        put(leader, b"a")
    put(store, b"a")
    watch = store.watch(api.WatchRequest(key=b"a", start_revision=20))
    store.restore(ahead)
    assert store.current_revision == 25
    assert revisions(watch) == [20, 21, 22, 23, 24, 25]


def test_a_restore_makes_watchers_catch_up() -> None:
    """A lagging member gets the leader's snapshot: its watchers see what it had missed."""
    ahead = MemoryBackend()
    leader = open_store(ahead)
    store = open_store()
    watch = watch_all(store)
    for each in (leader, store):
        put(each, b"a")
    for _ in range(3):
        put(leader, b"b")
    store.restore(ahead)
    assert revisions(watch) == [2, 3, 4, 5]


def test_a_compacted_start_is_told_at_the_first_take() -> None:
    store = open_store()
    for _ in range(9):
        put(store, b"a")
    store.compact(6)
    watch = store.watch(api.WatchRequest(key=b"a", start_revision=5))
    for _ in range(2):
        with pytest.raises(errors.CompactedError) as told:
            watch.take()
        assert told.value.compact_revision == 6
    assert revisions(store.watch(api.WatchRequest(key=b"a", start_revision=6))) == [6, 7, 8, 9, 10]


def test_a_slow_watcher_overtaken_by_compaction_is_told_after_what_was_buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    """ST-S2, etcd-io/etcd#15402, #22264: it hung, or jumped over the compacted part."""
    monkeypatch.setattr(watcher, "BUFFERED_BATCHES_MAX", 20)
    store = open_store()
    watch = store.watch(api.WatchRequest(key=b"a"))
    while store.current_revision < 50:
        put(store, b"a")
        assert watch.take() is not None
    while store.current_revision < 500:
        put(store, b"a")
    store.compact(400)
    seen = []
    with pytest.raises(errors.CompactedError) as told:
        while (batch := watch.take()) is not None:
            seen.append(batch.revision)
    assert seen == list(range(51, 71))
    assert told.value.compact_revision == 400


def test_a_slow_watcher_keeps_a_bounded_number_of_bytes_and_the_others_are_not_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """ST-S1, etcd-io/etcd#17529, #16839: large or blocked watchers delayed all."""
    monkeypatch.setattr(watcher, "BUFFERED_BYTES_MAX", 10_000)
    store = open_store()
    slow = watch_all(store)
    quick = [watch_all(store) for _ in range(3)]
    for _ in range(30):
        put(store, b"a", b"x" * 1000)
        assert store.lagging_count() <= 1, "the quick ones must not fall behind"
        assert [len(drain(watch)) for watch in quick] == [1, 1, 1]
    assert slow._buffered_bytes <= 11_100
    assert store.lagging_count() == 1
    assert revisions(slow) == list(range(2, 32))
    assert store.lagging_count() == 0
    put(store, b"a")
    assert revisions(slow) == [32]


@pytest.mark.parametrize("seed", range(36))
def test_random_watchers_see_exactly_the_log_of_events(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No gap, repeat or reordering whatever the ranges, starts, speed of reading, compactions and restarts (etcd-io/etcd#17247,
    #19179); a watcher that compaction overtook has seen a prefix."""
    monkeypatch.setattr(watcher, "BUFFERED_BATCHES_MAX", 3)
    monkeypatch.setattr(history, "SLICE_RECORDS_MAX", 5)
    monkeypatch.setattr(history, "NARROW_AFTER_REVISIONS", (0, 6, 1000)[seed % 3])
    monkeypatch.setattr(history, "NARROW_KEYS_MAX", 2 + seed % 2)
    rng = random.Random(seed)
    backend = MemoryBackend()
    store, model = open_store(backend), VersionModel()
    bounds = [b"a", b"b", b"c", b"d", b"e"]
    watches: list[tuple[api.Watcher, bytes, bytes, int, list[api.Event]]] = []
    over: list[tuple[bytes, bytes, int, list[api.Event]]] = []
    #: watch → the newest revision that it was told to be complete up to (ST-W3, etcd-io/etcd#15220)
    promised: dict[api.Watcher, int] = {}

    def take(number: int, batches_max: int) -> bool:
        watch, _, _, _, seen = watches[number]
        try:
            for _ in range(batches_max):
                batch = watch.take()
                if batch is None:
                    # What a progress notice says: everything up to now has been delivered.
                    promised[watch] = store.current_revision
                    break
                assert all(event.kv.mod_revision == batch.revision for event in batch.events)
                assert batch.revision > promised.get(watch, 0), "an event, or less progress, after the promise that there is none"
                if not batch.events:
                    promised[watch] = batch.revision
                seen += batch.events
        except errors.CompactedError:
            over.append(watches.pop(number)[1:])
            return False
        return True

    for step in range(250):
        match rng.choices(("put", "delete", "watch", "read", "cancel", "compact", "slice", "restart"), (50, 10, 8, 30, 2, 3, 10, 1))[0]:
            case "put":
                key, value = rng.choice(bounds), b"%d" % step
                put(store, key, value)
                model.put(key, value)
            case "delete":
                low, high = rng.choice(bounds), rng.choice([b"", *bounds])
                delete(store, low, high)
                model.delete_range(low, high)
            case "watch":
                start = rng.randint(max(model.compact_revision, 1), model.revision + 5)
                low, high = rng.choice(bounds), rng.choice([b"", b"\0", *bounds])
                watches.append((store.watch(api.WatchRequest(key=low, range_end=high, start_revision=start)), low, high, start, []))
            case "read" if watches:
                take(rng.randrange(len(watches)), rng.randint(1, 6))
            case "cancel" if watches:
                watch = watches.pop(rng.randrange(len(watches)))[0]
                watch.cancel()
                assert watch.take() is None
            case "compact" if model.revision > model.compact_revision:
                at = rng.randint(max(model.compact_revision + 1, model.revision - 30, 1), model.revision)
                store.compact(at)
                model.compact(at)
            case "slice":
                store.compaction_step()
            case "restart" if rng.random() < 0.5:
                store.restore(backend)
    for number in reversed(range(len(watches))):
        take(number, 10_000)
    for _, low, high, start, seen in watches:
        wanted = [event for event in model.events if event.kv.mod_revision >= start and in_range(event.kv.key, low, high)]
        assert seen == wanted
    for low, high, start, seen in over:
        wanted = [event for event in model.events if event.kv.mod_revision >= start and in_range(event.kv.key, low, high)]
        assert seen == wanted[: len(seen)]
    assert watches or over


async def test_wait_returns_when_there_is_something() -> None:
    store = open_store()
    watch = store.watch(api.WatchRequest(key=b"a"))
    waiting = asyncio.ensure_future(watch.wait())
    await asyncio.sleep(0)
    put(store, b"b")
    await asyncio.sleep(0)
    assert not waiting.done()
    put(store, b"a")
    await waiting
    assert watch.take() is not None
    put(store, b"a")
    await watch.wait()
    assert watch.take() is not None


async def test_a_cancelled_wait_leaves_the_watcher_as_it_was() -> None:
    store = open_store()
    watch = store.watch(api.WatchRequest(key=b"a"))
    waiting = asyncio.ensure_future(watch.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    put(store, b"a")
    await watch.wait()
    assert revisions(watch) == [2]


async def test_cancel_wakes_the_reader_and_leaves_nothing_behind() -> None:
    store = open_store()
    watch = store.watch(api.WatchRequest(key=b"a"))
    waiting = asyncio.ensure_future(watch.wait())
    await asyncio.sleep(0)
    watch.cancel()
    watch.cancel()
    await waiting
    assert watch.take() is None
    assert store.watcher_count() == 0
    put(store, b"a")
    assert watch.take() is None


async def test_a_stopped_store_is_told_after_what_was_buffered() -> None:
    store = open_store()
    watch = store.watch(api.WatchRequest(key=b"a"))
    put(store, b"a")
    store.close()
    await watch.wait()
    assert watch.take() is not None
    await watch.wait()
    with pytest.raises(errors.StoppedError):
        watch.take()


def test_one_event_is_one_object_for_all_its_watchers() -> None:
    store = open_store()
    watches = [store.watch(api.WatchRequest(key=b"/a/", range_end=b"/a0")) for _ in range(5)]
    put(store, b"/a/1")
    batches = [watch.take() for watch in watches]
    assert all(batch is batches[0] for batch in batches)
