"""Keeps the flow control objects of the cluster: those of ``bootstrap``, and the condition ``Dangling`` of every FlowSchema."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from apiserver.bootstrap import prepared
from apiserver.flowcontrol import bootstrap
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import ObjectStoreError, StoredObject
from apiserver.registry.registry import Registry
from apiserver.registry.store import Store

logger = logging.getLogger(__name__)

#: between two looks, where nothing changes (kube-apiserver's minute)
PERIOD_SECONDS = 60.0
#: a burst of changes is looked at once
SETTLE_SECONDS = 0.05


class Upkeep:
    """``observe`` before the store is loaded, ``keep`` at the start, then ``run``. ``on_change`` is called at each change of an object."""

    def __init__(self, registry: Registry, store_errors: tuple[type[Exception], ...], on_change: Callable[[], object]) -> None:
        self._registry = registry
        self._errors: tuple[type[Exception], ...] = (*store_errors, ObjectStoreError)
        self._on_change = on_change
        self._changed = asyncio.Event()
        for resource in (bootstrap.LEVELS, bootstrap.SCHEMAS):
            registry.storage(bootstrap.GROUP, resource).cache.observe(self._note)

    def _note(self, new: StoredObject | None, old: StoredObject | None) -> None:
        self._on_change()
        self._changed.set()

    def current(self, resource: str) -> dict[str, Object]:
        """By name, in the version that is served first: they may have been stored by a server of another."""
        store = self._registry.stored(bootstrap.GROUP, resource)
        return {obj.name: store.decode(obj) for obj in store.storage.cache.values()}

    async def keep(self) -> None:
        """Write what is missing or not as it should be. Raises StoreError."""
        minor = self._registry.table.minor
        await self._keep(bootstrap.LEVELS, bootstrap.mandatory_levels(minor), bootstrap.suggested_levels(minor))
        await self._keep(bootstrap.SCHEMAS, bootstrap.mandatory_schemas(), bootstrap.suggested_schemas(minor))
        await self._tell_dangling()

    async def _keep(self, resource: str, mandatory: list[Object], suggested: list[Object]) -> None:
        store = self._registry.stored(bootstrap.GROUP, resource)
        for obj in (*mandatory, *suggested):
            obj["apiVersion"] = store.stored.api_version
            store.strategy.default(obj)
        plan = bootstrap.plan(mandatory, suggested, self.current(resource))
        if plan.create:
            levels = set(self.current(bootstrap.LEVELS))
            now = self._registry.env.clock.text()
            for obj in plan.create:
                if resource == bootstrap.SCHEMAS:
                    obj["status"] = {"conditions": [dangling(obj, levels, now)]}
            await self._registry.objects.create_missing([prepared(self._registry, bootstrap.GROUP, resource, obj) for obj in plan.create])
        for obj in plan.replace:
            await self._replace(store, obj)
        for name in plan.delete:
            found = await store.storage.get(name)
            if found is not None:
                await store.storage.delete(name, found.revision)

    async def _replace(self, store: Store, obj: Object) -> None:
        """Where another write comes between, that one's change is looked at next."""
        await store.storage.update(objects.name(obj), store.to_storage(obj), int(objects.resource_version(obj)))

    async def _tell_dangling(self) -> None:
        store = self._registry.stored(bootstrap.GROUP, bootstrap.SCHEMAS)
        levels = set(self.current(bootstrap.LEVELS))
        now = self._registry.env.clock.text()
        for obj in self.current(bootstrap.SCHEMAS).values():
            wanted = dangling(obj, levels, now)
            conditions = list(objects.get(obj, "status", "conditions", default=()) or ())
            found = next((each for each in conditions if each.get("type") == "Dangling"), None)
            if found is not None and all(found.get(field) == wanted[field] for field in ("status", "reason", "message")):
                continue
            others = [each for each in conditions if each.get("type") != "Dangling"]
            await self._replace(store, {**obj, "status": {**(obj.get("status") or {}), "conditions": [*others, wanted]}})

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                async with asyncio.timeout(PERIOD_SECONDS):
                    await self._changed.wait()
                await asyncio.sleep(SETTLE_SECONDS)
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                await self.keep()
            except self._errors as error:
                logger.info("flow control objects are looked at again later: %s", error)
                await asyncio.sleep(PERIOD_SECONDS / 10)
                self._changed.set()


def dangling(obj: Object, levels: set[str], now: str) -> Object:
    """The condition of a FlowSchema that says whether its priority level is there."""
    name = objects.get(obj, "spec", "priorityLevelConfiguration", "name", default="")
    words = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}"'
    if name in levels:
        found = {"status": "False", "reason": "Found", "message": f"{words} and it exists"}
    else:
        found = {"status": "True", "reason": "NotFound", "message": f"{words} but there is no such object"}
    return {"type": "Dangling", "lastTransitionTime": now, **found}
