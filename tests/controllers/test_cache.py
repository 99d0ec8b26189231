"""Reflector, DeltaFIFO, Indexer and SharedInformer: the cache follows the server through resets, refusals and compaction."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.cache.delta_fifo import DeltaFIFO, DeltaType
from controllers.cache.indexer import Indexer, key_of
from controllers.cache.shared_informer import EventHandler, MutationDetected, SharedInformer
from controllers.client.errors import ConnectionFailed
from controllers.client.interface import WatchEvent
from controllers.client.resources import CONFIG_MAPS
from tests.controllers.fake_api import FakeApi, refused
from tests.controllers.virtual_clock import VirtualClock, settle


class World:
    def __init__(self, **options: object) -> None:
        self.clock = VirtualClock()
        self.api = FakeApi(self.clock)
        self.informer = SharedInformer(self.api, CONFIG_MAPS, clock=self.clock, rng=random.Random(1), **options)  # type: ignore[arg-type]
        self.seen: list[tuple[str, str]] = []
        self.informer.add_handler(
            EventHandler(
                on_add=lambda o: self.seen.append(("add", o["metadata"]["name"])),
                on_update=lambda _, o: self.seen.append(("update", o["metadata"]["name"])),
                on_delete=lambda o: self.seen.append(("delete", o["metadata"]["name"])),
            )
        )

    async def create(self, name: str, **more: object) -> Object:
        return await self.api.create(CONFIG_MAPS, "a", {"metadata": {"name": name}, **more})

    def cached(self) -> list[Object]:
        return self.informer.indexer.list()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        task = asyncio.create_task(self.informer.run())
        await settle()
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_the_cache_follows_creates_updates_and_deletes() -> None:
    world = World()
    await world.create("x")
    async with world.running():
        assert world.informer.has_synced
        y = await world.create("y")
        await world.api.update(CONFIG_MAPS, {**y, "data": {"k": "v"}})
        await world.api.delete(CONFIG_MAPS, "a", "x")
        await settle()
        assert world.cached() == world.api.all(CONFIG_MAPS)
        assert world.seen == [("add", "x"), ("add", "y"), ("update", "y"), ("delete", "x")]


async def test_an_empty_list_is_synced_too() -> None:
    world = World()
    async with world.running():
        assert world.informer.has_synced


async def test_a_broken_watch_is_resumed_without_a_new_list_and_without_a_gap() -> None:
    world = World()
    async with world.running():
        world.api.break_watches()
        await world.create("x")
        await world.clock.advance(1)
        assert [name for _, name in world.seen] == ["x"]
        assert world.informer.reflector.lists == 1


async def test_a_server_that_is_away_is_tried_again_until_it_is_back() -> None:
    world = World()
    world.api.fail("list", "configmaps", ConnectionFailed("refused"), times=3)
    await world.create("x")
    async with world.running():
        assert not world.informer.has_synced
        await world.clock.advance(5)
        assert world.informer.has_synced and world.informer.reflector.lists == 4


async def test_backoff_grows_so_that_a_failing_server_is_not_hammered() -> None:
    world = World()
    world.api.fail("list", "configmaps", refused(500, "InternalError", "no"), times=1000)
    async with world.running():
        await world.clock.advance(60)
        assert 8 <= world.informer.reflector.lists <= 15


async def test_too_old_a_version_lists_again_and_tells_what_changed_meanwhile() -> None:
    world = World()
    await world.create("stays")
    await world.create("goes")
    async with world.running():
        world.api.hold_watches("configmaps")
        await world.api.delete(CONFIG_MAPS, "a", "goes")
        await world.create("comes")
        world.api.compact()
        world.api.release_watches("configmaps")
        world.api.history.clear()
        world.api.break_watches()
        await world.clock.advance(2)
        assert world.informer.reflector.lists == 2
        assert set(world.seen[2:]) == {("update", "stays"), ("add", "comes"), ("delete", "goes")}
        assert world.cached() == world.api.all(CONFIG_MAPS)


async def test_a_server_that_forgets_at_once_is_not_listed_without_end() -> None:
    world = World()
    watch = world.api.watch

    def always_expired(*arguments: Any, **options: Any) -> AsyncIterator[WatchEvent]:
        world.api.compacted = world.api.revision + 1
        return watch(*arguments, **options)

    world.api.watch = always_expired  # type: ignore[method-assign]
    async with world.running():
        await world.clock.advance(60)
        assert 5 <= world.informer.reflector.lists <= 20


async def test_an_object_made_anew_between_two_looks_is_a_delete_and_an_add() -> None:
    world = World()
    await world.create("x")
    async with world.running():
        world.api.hold_watches("configmaps")
        await world.api.delete(CONFIG_MAPS, "a", "x")
        await world.create("x")
        world.api.compact()
        world.api.history.clear()
        world.api.release_watches("configmaps")
        world.api.break_watches()
        await world.clock.advance(2)
        assert world.seen == [("add", "x"), ("delete", "x"), ("add", "x")]


async def test_resync_shows_everything_again() -> None:
    world = World(resync_seconds=30.0)
    await world.create("x")
    async with world.running():
        await world.clock.advance(31)
        assert world.seen == [("add", "x"), ("update", "x")]


async def test_a_handler_added_late_is_told_what_is_there() -> None:
    world = World()
    await world.create("x")
    async with world.running():
        late: list[Object] = []
        world.informer.add_handler(EventHandler(on_add=late.append))
        assert [o["metadata"]["name"] for o in late] == ["x"]


async def test_a_change_to_a_cached_object_is_detected() -> None:
    world = World(detect_mutations=True)
    await world.create("x")
    async with world.running():
        world.informer.check_mutations()
        world.cached()[0]["data"] = {"oops": "1"}
        with pytest.raises(MutationDetected):
            world.informer.check_mutations()


async def test_managed_fields_are_not_kept() -> None:
    world = World()
    await world.api.create(CONFIG_MAPS, "a", {"metadata": {"name": "x", "managedFields": [{"manager": "m"}]}})
    async with world.running():
        assert "managedFields" not in world.cached()[0]["metadata"]


OPERATIONS = st.lists(st.tuples(st.sampled_from(["set", "delete", "break", "list"]), st.sampled_from("abc")), max_size=30)


@given(OPERATIONS)
def test_delta_fifo_brings_a_consumer_to_the_truth(operations: list[tuple[str, str]]) -> None:
    """Whatever is told, lost and listed again: after a list and emptying the queue, consumer and source agree, and each delete
    the consumer saw was of something it had."""
    truth: dict[str, Object] = {}
    consumer: dict[str, Object] = {}
    fifo = DeltaFIFO(lambda: sorted(consumer), consumer.get)
    connected = True

    def drain() -> None:
        while len(fifo):
            key, deltas = fifo.pop()
            for delta in deltas:
                if delta.type is DeltaType.DELETED:
                    consumer.pop(key, None)
                else:
                    consumer[key] = delta.object
            fifo.popped(key)

    for version, (operation, name) in enumerate(operations):
        obj: Object = {"metadata": {"name": name, "resourceVersion": str(version)}}
        if operation == "set":
            known = name in truth
            truth[name] = obj
            if connected:
                (fifo.update if known else fifo.add)(obj)
        elif operation == "delete" and name in truth:
            del truth[name]
            if connected:
                fifo.delete(obj)
        elif operation == "break":
            connected = False
        elif operation == "list":
            connected = True
            fifo.replace([truth[k] for k in sorted(truth)])
            if version % 2:
                drain()
    fifo.replace([truth[k] for k in sorted(truth)])
    drain()
    assert consumer == truth
    assert fifo.has_synced


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["red", "blue", None])), max_size=30))
def test_indexes_equal_a_scan(changes: list[tuple[str, str | None]]) -> None:
    indexer = Indexer({"color": lambda o: [o["color"]]})
    for name, color in changes:
        if color is None:
            indexer.remove(name)
        else:
            indexer.set(name, {"metadata": {"name": name}, "color": color})
        for wanted in ("red", "blue"):
            scanned = [o for o in indexer.list() if o["color"] == wanted]
            assert indexer.by_index("color", wanted) == scanned
    assert [key_of(o) for o in indexer.list()] == indexer.keys()
