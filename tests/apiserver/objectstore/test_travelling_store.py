"""The object store over a store whose events travel: never a stale answer, never an event twice, whatever arrives first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.objectstore.cache_watcher import Bookmark, CacheWatcher
from apiserver.objectstore.interface import FutureRevisionError, LostRaceError, RevisionMatch, Selection
from apiserver.objectstore.object_store import ObjectStore
from storage import api
from tests.fakes.memory_kv import MemoryKV
from tests.fakes.travelling_kv import TravellingKV

WAIT_SECONDS = 10.0


def made(name: str, namespace: str = "ns", **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


class Server:
    """The object store of one API server, over its own client of a shared store."""

    def __init__(self, inner: MemoryKV, progress_on_request: bool, seed: int = 0) -> None:
        self.kv = TravellingKV(inner, progress_on_request=progress_on_request, seed=seed)
        self.objects = ObjectStore(self.kv)
        self.things = self.objects.add("things", True)

    async def __aenter__(self) -> Server:
        await self.objects.start()
        self._running = asyncio.create_task(self.objects.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kv.release_events()
        self._running.cancel()
        await asyncio.wait({self._running})
        self.kv.close()


@pytest.fixture(params=[True, False], ids=["progress", "old"])
def progress_on_request(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
async def servers(progress_on_request: bool) -> AsyncIterator[tuple[Server, Server]]:
    inner = MemoryKV()
    async with Server(inner, progress_on_request, 1) as first, Server(inner, progress_on_request, 2) as second:
        yield first, second


async def taken(watcher: CacheWatcher, until: int) -> list[tuple[str, str, int]]:
    """Type, name and revision of the events up to that of ``until``."""
    found: list[tuple[str, str, int]] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while not found or found[-1][2] < until:
            await watcher.wait()
            found += [
                (entry[0].value, entry[1].object.name, entry[1].revision) for entry in watcher.take() if not isinstance(entry, Bookmark)
            ]
    return found


async def test_what_another_server_wrote_is_read_though_its_event_has_not_come(servers: tuple[Server, Server]) -> None:
    here, there = servers
    here.kv.hold_events()
    written = await there.things.create("ns/a", made("a"))
    found = await here.things.get("ns/a")
    assert found is not None and found.revision == written.revision
    assert await here.things.get("ns/a", 0) is None  # what the cache has
    here.kv.release_events()
    listed = await here.things.list_objects(Selection())
    assert [obj.path for obj in listed.objects] == ["ns/a"]
    assert listed.revision >= written.revision


async def test_a_list_where_no_event_can_come_is_of_the_store_or_waits(servers: tuple[Server, Server], progress_on_request: bool) -> None:
    here, there = servers
    await there.things.create("ns/a", made("a"))
    await there.objects.kv.put(api.PutRequest(key=b"/elsewhere", value=b""))  # a revision that no watch of objects sees
    revision = await there.objects.kv.read_revision()
    listed = await here.things.list_objects(Selection())
    assert listed.revision >= revision
    again = await here.things.list_objects(Selection(), revision=revision, match=RevisionMatch.NOT_OLDER_THAN)
    assert [obj.path for obj in again.objects] == ["ns/a"]
    with pytest.raises(FutureRevisionError):
        await here.things.get("ns/a", revision + 100)


async def test_pages_are_of_one_state(servers: tuple[Server, Server]) -> None:
    here, there = servers
    for name in "abcd":
        await there.things.create(f"ns/{name}", made(name))
    first = await here.things.list_objects(Selection(), limit=2)
    await there.things.create("ns/e", made("e"))
    rest = await here.things.list_objects(Selection(), limit=5, start=first.next_start, start_revision=first.revision)
    assert [obj.name for obj in first.objects + rest.objects] == ["a", "b", "c", "d"]
    assert rest.revision == first.revision
    newest = await here.things.list_objects(Selection(), limit=5, start=first.next_start, start_revision=-1)
    assert [obj.name for obj in newest.objects] == ["c", "d", "e"]


async def test_a_write_is_in_the_cache_when_it_is_answered(servers: tuple[Server, Server]) -> None:
    here, _ = servers
    for number in range(20):
        written = await here.things.create(f"ns/{number}", made(str(number)))
        assert here.things.cache.get(f"ns/{number}") is written
        assert await here.things.delete(f"ns/{number}", written.revision) is not None
        assert here.things.cache.get(f"ns/{number}") is None


async def test_a_watch_from_before_the_start_that_is_ahead_of_the_cache_repeats_nothing(servers: tuple[Server, Server]) -> None:
    """1. The cache is behind. 2. A watch resumes from a revision that the cache's window does not reach: its events come from the
    store's history, up to now. 3. The cache catches up: the watch must not be told again, and a bookmark must not go back."""
    here, there = servers
    first = await there.things.create("ns/a", made("a"))
    await there.things.delete("ns/a", first.revision)
    async with Server(here.kv.inner, here.kv.progress_on_request, 3) as late:
        late.kv.hold_events()
        await there.things.create("ns/b", made("b"))
        watcher, _ = await late.things.watch(Selection(), first.revision)
        late.kv.release_events()
        last = await there.things.create("ns/c", made("c"))
        found = await taken(watcher, last.revision)
        assert [entry[:2] for entry in found] == [("DELETED", "a"), ("ADDED", "b"), ("ADDED", "c")]
        watcher.bookmark(1)
        (bookmark,) = watcher.take()
        assert isinstance(bookmark, Bookmark) and bookmark.revision >= watcher.after


async def test_watches_that_begin_at_any_moment_see_everything_once(servers: tuple[Server, Server]) -> None:
    here, there = servers

    async def write() -> int:
        revision = 0
        for number in range(60):
            revision = (await (here if number % 3 else there).things.create(f"ns/{number:02}", made(str(number)))).revision
        return revision

    start = await here.kv.read_revision()
    writing = asyncio.create_task(write())
    watches: list[tuple[CacheWatcher, list[str], int]] = []
    while not writing.done():
        watcher, objects = await here.things.watch(Selection(), -1)
        watches.append((watcher, [obj.name for obj in objects], watcher.after))
        watcher, _ = await here.things.watch(Selection(), start)
        watches.append((watcher, [], start))
    last = await writing
    names = [f"{number:02}" for number in range(60)]
    for watcher, initial, _ in watches:
        found = [] if len(initial) == 60 else await taken(watcher, last)
        assert [entry[2] for entry in found] == sorted({entry[2] for entry in found})
        assert sorted(initial + [entry[1] for entry in found]) == names
        watcher.end()


async def test_an_initial_state_ends_with_a_bookmark_that_holds_it(servers: tuple[Server, Server]) -> None:
    here, there = servers
    written = await there.things.create("ns/a", made("a"))
    watcher, objects = await here.things.watch(Selection(), -1, initial_events_end=True)
    (bookmark,) = watcher.take()
    assert isinstance(bookmark, Bookmark) and bookmark.initial_events_end
    assert [obj.name for obj in objects] == ["a"]
    assert bookmark.revision >= written.revision


async def test_of_two_servers_that_claim_the_same_one_gets_it(servers: tuple[Server, Server]) -> None:
    def claims_of(obj: dict[str, Any]) -> frozenset[str]:
        return frozenset(f"ranges/{value}" for value in obj["metadata"]["labels"].values())

    here, there = servers
    for server in servers:
        server.things.claims_of = claims_of
    outcomes = await asyncio.gather(
        here.things.create("ns/a", made("a", address="1")), there.things.create("ns/b", made("b", address="1")), return_exceptions=True
    )
    assert sum(isinstance(outcome, LostRaceError) for outcome in outcomes) == 1
    (won,) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    loser, name = (there, "b") if won.name == "a" else (here, "a")
    moved = await here.things.update(won.path, made(won.name, address="2", port="9"), won.revision)
    assert moved is not None
    own = await loser.things.create(f"ns/{name}", made(name, address="1"))
    with pytest.raises(LostRaceError):
        await loser.things.update(own.path, made(name, address="2"), own.revision)
    assert await loser.things.update(own.path, made(name, address="3"), own.revision - 1) is None
    assert await here.things.delete(won.path, moved.revision) is not None
    assert await loser.things.update(own.path, made(name, address="2"), own.revision) is not None
    left = await here.kv.range(api.RangeRequest(key=b"/registry/ranges/", range_end=b"/registry/ranges0"))
    assert [(kv.key, kv.value) for kv in left.kvs] == [(b"/registry/ranges/2", b"/registry/things/" + own.path.encode())]


async def test_claims_without_objects_are_freed_and_objects_without_claims_get_them(servers: tuple[Server, Server]) -> None:
    def claims_of(obj: dict[str, Any]) -> frozenset[str]:
        return frozenset(f"ranges/{value}" for value in obj["metadata"]["labels"].values())

    here, there = servers
    await here.things.create("ns/a", made("a", address="1"))
    here.things.claims_of = there.things.claims_of = claims_of
    assert await here.things.restore_claims() == 1
    assert await here.things.restore_claims() == 0
    with pytest.raises(LostRaceError):
        await here.things.create("ns/b", made("b", address="1"))
    lost = await here.things.create("ns/lost", made("lost", address="2"))
    await here.kv.delete_range(api.DeleteRangeRequest(key=b"/registry/things/ns/lost"))
    await here.objects.source.wait_for(lost.revision + 1)
    here.kv.hold_events()
    await there.things.create("ns/new", made("new", address="3"))  # unknown here, and no orphan
    assert await here.things.restore_claims() == 1
    left = await here.kv.range(api.RangeRequest(key=b"/registry/ranges/", range_end=b"/registry/ranges0"))
    assert [kv.key for kv in left.kvs] == [b"/registry/ranges/1", b"/registry/ranges/3"]


async def test_news_are_told_where_there_are_some(servers: tuple[Server, Server]) -> None:
    here, there = servers
    assert not await here.objects.source.catch_up()
    here.kv.hold_events()
    await there.things.create("ns/a", made("a"))
    catching_up = asyncio.create_task(here.objects.source.catch_up())
    await asyncio.sleep(0.02)
    assert here.things.cache.get("ns/a") is None
    here.kv.release_events()
    assert await catching_up
    assert here.things.cache.get("ns/a") is not None


async def test_a_guard_holds_a_write_back_that_rests_on_what_is_gone(servers: tuple[Server, Server]) -> None:
    here, there = servers
    space = await there.things.create("ns/space", made("space"))
    await here.objects.source.catch_up()
    here.kv.hold_events()
    await there.things.delete("ns/space", space.revision)
    guard = here.things.unchanged("ns/space")
    with pytest.raises(LostRaceError):
        await here.things.create("ns/inside", made("inside"), guard)
    here.kv.release_events()
    await here.objects.source.catch_up()
    assert (await here.things.create("ns/inside", made("inside"), here.things.unchanged("ns/space"))).name == "inside"


async def test_a_reload_waits_for_a_store_that_is_away(servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compacted history, and then no leader: the server goes on when there is one again."""
    from storage import errors

    monkeypatch.setattr("apiserver.objectstore.event_source.RELOAD_PAUSE_SECONDS", 0.01)
    here, there = servers
    await there.things.create("ns/a", made("a"))
    await here.objects.source.catch_up()
    watcher, _ = await here.things.watch(Selection(), 0)
    tries: list[int] = []
    read = here.objects.kv.range

    async def away(request: api.RangeRequest) -> api.RangeResponse:
        tries.append(1)
        if len(tries) < 4:
            raise errors.UnavailableError
        return await read(request)

    monkeypatch.setattr(here.objects.source, "_kv", here.kv)
    monkeypatch.setattr(here.kv, "range", away)
    watched: Any = here.objects.source._watcher
    watched._error = errors.CompactedError(99)
    watched._readable.set()
    await watcher.wait()
    assert watcher.ended
    async with asyncio.timeout(WAIT_SECONDS):
        while len(tries) < 4 or not here.objects.alive:  # noqa: ASYNC110 - a state of another task
            await asyncio.sleep(0.005)
    assert here.things.cache.get("ns/a") is not None
