"""The object store over a store in memory: linearizable reads, compare-and-swap, histories, and a model of watches."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.objectstore import cache_watcher, watch_history
from apiserver.objectstore.cache_watcher import Bookmark
from apiserver.objectstore.interface import (
    EventType,
    ExpiredError,
    FutureRevisionError,
    KeyExistsError,
    KeyNotFoundError,
    RevisionMatch,
    Selection,
    StoredObject,
)
from apiserver.objectstore.kv_object_storage import KvObjectStorage
from apiserver.objectstore.object_store import ObjectStore
from storage import api, errors
from tests.fakes.memory_kv import MemoryKV


def made(name: str, namespace: str = "ns", **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


@pytest.fixture
async def objects() -> AsyncIterator[ObjectStore]:
    store = ObjectStore(MemoryKV())
    store.add("things", True)
    store.add("services/specs", True)
    store.add("services/endpoints", True)
    await store.start()
    yield store


@pytest.fixture
def things(objects: ObjectStore) -> KvObjectStorage:
    return objects.storages()["things"]


async def test_a_write_is_read_at_once_and_its_bytes_exist_once(things: KvObjectStorage) -> None:
    written = await things.create("ns/a", made("a"))
    assert await things.get("ns/a") is written
    assert written.raw.startswith(b'{"apiVersion":"v1","kind":"Thing","metadata":{"resourceVersion":"%d",' % written.revision)


async def test_a_write_past_the_cache_is_seen_by_the_next_read(objects: ObjectStore, things: KvObjectStorage) -> None:
    """Another server's write: reads are never stale."""
    value = b'{"apiVersion":"v1","kind":"Thing","metadata":{"name":"b"}}'
    await objects.kv.put(api.PutRequest(key=b"/registry/things/ns/b", value=value))
    found = await things.get("ns/b")
    assert found is not None and found.decode()["metadata"]["name"] == "b"
    await objects.kv.delete_range(api.DeleteRangeRequest(key=b"/registry/things/ns/b"))
    assert await things.get("ns/b") is None


async def test_creates_and_updates_compare(things: KvObjectStorage) -> None:
    first = await things.create("ns/a", made("a"))
    with pytest.raises(KeyExistsError):
        await things.create("ns/a", made("a"))
    second = await things.update("ns/a", made("a", x="1"), first.revision)
    assert second is not None
    assert await things.update("ns/a", made("a", x="2"), first.revision) is None
    assert await things.delete("ns/a", first.revision) is None
    assert await things.delete("ns/a", second.revision) is not None
    with pytest.raises(KeyNotFoundError):
        await things.guaranteed_update("ns/a", lambda current: asyncio.sleep(0, made("a")))


async def test_no_update_is_lost(things: KvObjectStorage) -> None:
    await things.create("ns/a", made("a", n="0"))

    async def increase(current: StoredObject) -> dict[str, Any]:
        found = int(current.labels()["n"])
        await asyncio.sleep(0)  # others get in between
        return made("a", n=str(found + 1))

    await asyncio.gather(*(things.guaranteed_update("ns/a", increase) for _ in range(25)))
    final = await things.get("ns/a")
    assert final is not None and final.labels()["n"] == "25"


async def test_prefixes_within_prefixes_are_kept_apart(objects: ObjectStore) -> None:
    specs, endpoints = objects.storages()["services/specs"], objects.storages()["services/endpoints"]
    await specs.create("ns/a", made("a"))
    await endpoints.create("ns/b", made("b"))
    assert [o.path for o in (await specs.list_objects(Selection())).objects] == ["ns/a"]
    assert [o.path for o in (await endpoints.list_objects(Selection())).objects] == ["ns/b"]


async def test_lists_of_a_namespace_do_not_leak_into_its_neighbours(things: KvObjectStorage) -> None:
    for namespace in ("ns", "ns-a", "ns0", "n", "nsa"):
        await things.create(f"{namespace}/x", made("x", namespace))
    assert [o.path for o in (await things.list_objects(Selection(namespace="ns"))).objects] == ["ns/x"]
    listed = [o.path for o in (await things.list_objects(Selection())).objects]
    assert listed == sorted(listed, key=str.encode)


async def test_old_states_come_from_the_store(things: KvObjectStorage) -> None:
    first = await things.create("ns/a", made("a"))
    await things.create("ns/b", made("b"))
    await things.delete("ns/a", first.revision)
    old = await things.list_objects(Selection(), revision=first.revision, match=RevisionMatch.EXACT)
    assert ([o.path for o in old.objects], old.revision) == (["ns/a"], first.revision)
    await things._kv.compact(things.revision)
    with pytest.raises(ExpiredError):
        await things.list_objects(Selection(), revision=first.revision, match=RevisionMatch.EXACT)


async def test_a_revision_that_has_not_come(things: KvObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.objectstore.event_source.EventSource.wait_for.__defaults__", (0.01,))
    with pytest.raises(FutureRevisionError):
        await things.list_objects(Selection(), revision=10_000)


async def test_paging_meets_every_object_once(things: KvObjectStorage) -> None:
    rng = random.Random(7)
    names = sorted(f"o-{rng.randrange(10**6)}" for _ in range(40))
    for name in names:
        await things.create(f"ns/{name}", made(name, parity=str(len(name) % 2)))
    for limit in (1, 3, 7, 40, 100):
        for selection in (Selection(), Selection(namespace="ns"), Selection(labels=lambda labels: labels.get("parity") == "0")):
            expected = [f"ns/{n}" for n in names if selection.labels is None or len(n) % 2 == 0]
            found, after, revision = [], "", 0
            while True:
                page = await things.list_objects(selection, limit=limit, start=after, start_revision=revision)
                found += [o.path for o in page.objects]
                if not page.next_start:
                    break
                if page.remaining is not None:
                    assert page.remaining == len(expected) - len(found)
                after, revision = page.next_start, page.revision
                noise = await things.create("ns/zz", made("zz"))  # makes the later pages come from the store's history
                await things.delete("ns/zz", noise.revision)
            assert found == expected


def taken(watcher: cache_watcher.CacheWatcher) -> list[tuple[str, str, int]]:
    return [(d[0].value, d[1].object.path, d[1].revision) for d in watcher.take() if not isinstance(d, Bookmark)]


async def test_watches_from_every_revision_tell_the_same_story(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a small window, from the store's history, live: each watch of each selection must be what a model makes of all events."""
    monkeypatch.setattr(watch_history, "EVENTS_MAX", 10)
    things = objects.storages()["things"]
    rng = random.Random(3)
    story: list[tuple[int, str, dict[str, str] | None, dict[str, str] | None]] = []
    state: dict[str, tuple[int, dict[str, str]]] = {}
    start = things.revision
    for _ in range(60):
        path = f"ns{rng.randrange(2)}/{rng.choice('abc')}"
        namespace, _, name = path.partition("/")
        labels = {"x": rng.choice("12")}
        current = state.get(path)
        if current is None:
            written = await things.create(path, made(name, namespace, **labels))
            story.append((written.revision, path, labels, None))
            state[path] = (written.revision, labels)
        elif rng.random() < 0.3:
            revision = await things.delete(path, current[0])
            assert revision is not None
            story.append((revision, path, None, current[1]))
            del state[path]
        else:
            updated = await things.update(path, {**made(name, namespace, **labels), "n": rng.random()}, current[0])
            assert updated is not None
            story.append((updated.revision, path, labels, current[1]))
            state[path] = (updated.revision, labels)
    selections = [Selection(), Selection(namespace="ns0"), Selection(labels=lambda labels: labels.get("x") == "1"), Selection(name="a")]
    for selection in selections:
        for revision in range(start, things.revision + 1, 7):
            watcher, initial = await things.watch(selection, revision)
            assert not initial
            assert taken(watcher) == _model(story, selection, revision)
            watcher.end()


def _model(story: list[Any], selection: Selection, after: int) -> list[tuple[str, str, int]]:
    out = []
    for revision, path, new, old in story:
        namespace, _, name = path.partition("/")
        if revision <= after or (selection.namespace and namespace != selection.namespace):
            continue
        if selection.name and name != selection.name:
            continue
        was = old is not None and (selection.labels is None or selection.labels(old))
        is_ = new is not None and (selection.labels is None or selection.labels(new))
        if was or is_:
            out.append(("MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED", path, revision))
    return out


async def test_live_events_follow_history_without_gap_or_repetition(things: KvObjectStorage) -> None:
    first = await things.create("ns/a", made("a"))
    watcher, _ = await things.watch(Selection(), first.revision - 1)
    await things.create("ns/b", made("b"))
    things.freshen_now()
    assert [path for _, path, _ in taken(watcher)] == ["ns/a", "ns/b"]
    watcher.end()
    await things.create("ns/c", made("c"))
    things.freshen_now()
    assert taken(watcher) == []


async def test_a_watch_below_the_compacted_revision_is_refused(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_history, "EVENTS_MAX", 1)
    things = objects.storages()["things"]
    first = await things.create("ns/a", made("a"))
    for n in range(3):
        await things.create(f"ns/b{n}", made(f"b{n}"))
    await things._kv.compact(things.revision)
    with pytest.raises(ExpiredError):
        await things.watch(Selection(), first.revision)


async def test_a_restart_finds_everything_in_several_pages(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.objectstore.event_source.LOAD_PAGE_OBJECTS", 3)
    for n in range(8):
        await objects.storages()["things"].create(f"ns/o{n}", made(f"o{n}"))
    again = ObjectStore(objects.kv)
    things = again.add("things", True)
    await again.start()
    assert [o.path for o in (await things.list_objects(Selection())).objects] == [f"ns/o{n}" for n in range(8)]
    assert things.revision == objects.source.revision


async def test_a_resource_added_while_running_misses_nothing(objects: ObjectStore) -> None:
    await objects.kv.put(api.PutRequest(key=b"/registry/late/ns/a", value=b'{"apiVersion":"v1","kind":"L","metadata":{"name":"a"}}'))
    late = await objects.add_running("late", True)
    await late.create("ns/b", made("b"))
    assert [o.path for o in (await late.list_objects(Selection())).objects] == ["ns/a", "ns/b"]
    watcher, _ = await late.watch(Selection(), -1)
    objects.remove("late")
    assert watcher.ended


async def test_observers_see_the_loaded_and_every_change(objects: ObjectStore) -> None:
    await objects.storages()["things"].create("ns/a", made("a"))
    again = ObjectStore(objects.kv)
    things = again.add("things", True)
    seen: list[tuple[str | None, str | None]] = []
    things.cache.observe(lambda new, old: seen.append((new.path if new else None, old.path if old else None)))
    await again.start()
    b = await things.create("ns/b", made("b"))
    await things.delete("ns/b", b.revision)
    things.freshen_now()
    assert seen == [("ns/a", None), ("ns/b", None), (None, "ns/b")]


async def test_one_lease_serves_the_objects_of_a_minute() -> None:
    now = 0.0
    kv = MemoryKV()
    objects = ObjectStore(kv, now=lambda: now)
    events = objects.add("events", True, 100)
    await objects.start()
    for n in range(3):
        await events.create(f"ns/e{n}", made(f"e{n}"))
    now = 61.0
    await events.create("ns/later", made("later"))
    leases = [await kv.lease_time_to_live(lease, keys=True) for lease in await kv.leases()]
    assert sorted(len(lease.keys) for lease in leases) == [1, 3]
    assert all(lease.granted_ttl_seconds >= 160 for lease in leases)
    await kv.lease_revoke(next(lease.id for lease in leases if len(lease.keys) == 1))
    await events.create("ns/after", made("after"))  # the lease it would have used is gone


async def test_bookmarks_come_behind_what_they_promise(things: KvObjectStorage) -> None:
    watcher, _ = await things.watch(Selection(), -1)
    await things.create("ns/a", made("a"))
    watcher.bookmark(things.current_revision())
    event, bookmark = watcher.take()
    assert isinstance(bookmark, Bookmark) and not isinstance(event, Bookmark)
    assert event[0] is EventType.ADDED and bookmark.revision >= event[1].revision


async def test_a_waiting_handler_is_spared_where_events_can_be_written_at_once(things: KvObjectStorage) -> None:
    watcher, _ = await things.watch(Selection(), -1)
    written: list[int] = []
    watcher.direct = lambda batch: not written.append(len(batch))  # type: ignore[func-returns-value]
    waiting = asyncio.create_task(watcher.wait())
    await asyncio.sleep(0)
    await things.create("ns/a", made("a"))
    await asyncio.sleep(0)
    assert (written, waiting.done(), watcher.take()) == ([1], False, [])
    watcher.direct = lambda batch: False
    await things.create("ns/b", made("b"))
    await waiting
    assert len(watcher.take()) == 1


async def test_system_objects_are_created_once(objects: ObjectStore) -> None:
    wanted = [("things", f"ns/s{n}", made(f"s{n}")) for n in range(130)]
    assert await objects.create_missing(list(wanted)) == 130
    assert await objects.create_missing(list(wanted)) == 0


async def test_the_configuration_is_written_when_it_differs(objects: ObjectStore) -> None:
    await objects.write_configuration("m1", {"b": 1, "a": "x"})
    before = await objects.kv.read_revision()
    await objects.write_configuration("m1", {"a": "x", "b": 1})
    assert await objects.kv.read_revision() == before
    found = await objects.kv.range(api.RangeRequest(key=b"/config/apiserver/m1"))
    assert found.kvs[0].value == b'{"a":"x","b":1}'


async def test_a_source_that_compaction_has_overtaken_starts_anew(objects: ObjectStore) -> None:
    """Watches end rather than miss something; observers are told the difference; reads are right again."""
    things = objects.storages()["things"]
    kept, gone = await things.create("ns/kept", made("kept")), await things.create("ns/gone", made("gone"))
    watcher, _ = await things.watch(Selection(), -1)
    seen: list[tuple[str | None, str | None]] = []
    things.cache.observe(lambda new, old: seen.append((new.path if new else None, old.path if old else None)))
    watched = objects.source._watcher
    assert watched is not None

    class Overtaken:
        """The store's watch, which has fallen behind a compaction."""

        def take(self) -> None:
            raise errors.CompactedError(99)

        async def wait(self) -> None:
            raise errors.CompactedError(99)

        def cancel(self) -> None:
            pass

    watched.cancel()
    objects.source._watcher = Overtaken()
    await objects.kv.delete_range(api.DeleteRangeRequest(key=b"/registry/things/ns/gone"))
    await objects.kv.put(api.PutRequest(key=b"/registry/things/ns/new", value=b'{"apiVersion":"v1","kind":"T","metadata":{"name":"new"}}'))
    running = asyncio.create_task(objects.run())
    await watcher.wait()
    assert watcher.ended and objects.alive
    assert [o.path for o in (await things.list_objects(Selection())).objects] == ["ns/kept", "ns/new"]
    assert seen == [(None, gone.path), ("ns/new", None)]
    assert (await things.get(kept.path)) is not None
    running.cancel()
