"""``SharedInformer``: one reflector and one cache of a resource, shared by any number of handlers (client-go ``shared_informer.go``)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.delta_fifo import Delta, DeltaFIFO, DeltaType
from controllers.cache.indexer import Indexer, IndexFunction
from controllers.cache.reflector import Reflector
from controllers.client.interface import Api
from controllers.client.resources import Resource
from controllers.lib.clock import Clock

#: Changes taken in before other tasks of the loop get their turn.
BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHandler:
    """Plain calls, not coroutines. ``on_delete`` gets the last state known, which may be older than the one that was deleted."""

    on_add: Callable[[Object], None] | None = None
    on_update: Callable[[Object, Object], None] | None = None
    on_delete: Callable[[Object], None] | None = None

    @staticmethod
    def for_each(call: Callable[[Object], None]) -> EventHandler:
        """The same call for every sort of change, with the newest state."""
        return EventHandler(on_add=call, on_update=lambda _, new: call(new), on_delete=call)


class MutationDetected(AssertionError):
    """A handler or controller changed an object of the cache."""


class SharedInformer:
    """``resync_seconds`` 0 means never. ``detect_mutations`` keeps a second, encoded copy of everything; for tests."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        *,
        clock: Clock,
        rng: random.Random,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        resync_seconds: float = 0.0,
        detect_mutations: bool = False,
    ) -> None:
        self.resource = resource
        self.indexer = Indexer()
        self._clock = clock
        self._resync_seconds = resync_seconds
        self._handlers: list[EventHandler] = []
        self._fifo = DeltaFIFO(self.indexer.keys, self.indexer.get)
        self._synced = asyncio.Event()
        self._copies: dict[str, bytes] | None = {} if detect_mutations else None
        self.reflector = Reflector(
            api,
            resource,
            _Trimming(self._fifo),
            clock=clock,
            rng=rng,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )

    def add_index(self, name: str, function: IndexFunction) -> None:
        self.indexer.add_index(name, function)

    def add_handler(self, handler: EventHandler) -> None:
        """Adds a handler; it is told at once of what the cache holds already."""
        self._handlers.append(handler)
        if handler.on_add is not None:
            for obj in self.indexer.list():
                handler.on_add(obj)

    @property
    def has_synced(self) -> bool:
        return self._synced.is_set()

    async def wait_until_synced(self) -> None:
        """Returns once the first list is in the cache and the handlers have seen it."""
        await self._synced.wait()

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reflector.run(), name=f"reflector {self.resource.qualified}")
            group.create_task(self._process(), name=f"informer {self.resource.qualified}")
            if self._resync_seconds:
                group.create_task(self._resync(), name=f"resync {self.resource.qualified}")

    async def _process(self) -> None:
        taken = 0
        while True:
            await self._fifo.wait()
            while len(self._fifo):
                key, deltas = self._fifo.pop()
                for delta in deltas:
                    self._apply(key, delta)
                self._fifo.popped(key)
                taken += 1
                if taken % BATCH == 0:
                    await asyncio.sleep(0)
            if self._fifo.has_synced:
                self._synced.set()

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(self._resync_seconds)
            self._fifo.resync()

    def _apply(self, key: str, delta: Delta) -> None:
        old = self.indexer.get(key)
        if self._copies is not None and old is not None:
            self._check_unchanged(key, old)
        if delta.type is DeltaType.DELETED:
            if old is not None:
                self._forget(key, delta.object)
            return
        new = delta.object
        if old is not None and objects.uid(old) != objects.uid(new):
            # deleted and made again between two looks: two lives, told as such
            self._forget(key, old)
            old = None
        self.indexer.set(key, new)
        if self._copies is not None:
            self._copies[key] = orjson.dumps(new)
        for handler in self._handlers:
            if old is None:
                if handler.on_add is not None:
                    handler.on_add(new)
            elif handler.on_update is not None:
                handler.on_update(old, new)

    def _forget(self, key: str, last: Object) -> None:
        self.indexer.remove(key)
        if self._copies is not None:
            self._copies.pop(key, None)
        for handler in self._handlers:
            if handler.on_delete is not None:
                handler.on_delete(last)

    def _check_unchanged(self, key: str, obj: Object) -> None:
        assert self._copies is not None
        if orjson.dumps(obj) != self._copies[key]:
            raise MutationDetected(f"{self.resource.qualified} {key} was changed in the cache")

    def check_mutations(self) -> None:
        """Raises ``MutationDetected`` where a cached object is not what came from the server; only with ``detect_mutations``."""
        assert self._copies is not None, "made without detect_mutations"
        for key in self.indexer.keys():  # noqa: SIM118 - a sorted list, no dict
            obj = self.indexer.get(key)
            assert obj is not None
            self._check_unchanged(key, obj)


class _Trimming:
    """Drops managedFields on the way in: half the size of a small object, read by no controller, and put back by the server
    when an update comes without them."""

    def __init__(self, fifo: DeltaFIFO) -> None:
        self._fifo = fifo

    def add(self, obj: Object) -> None:
        self._fifo.add(_trim(obj))

    def update(self, obj: Object) -> None:
        self._fifo.update(_trim(obj))

    def delete(self, obj: Object) -> None:
        self._fifo.delete(_trim(obj))

    def replace(self, found: list[Object]) -> None:
        self._fifo.replace([_trim(obj) for obj in found])


def _trim(obj: Object) -> Object:
    found = obj.get("metadata")
    if isinstance(found, dict):
        found.pop("managedFields", None)
    return obj
