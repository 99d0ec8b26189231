"""``LocalRegistration``: an APIService for each group and version that this server serves itself (kube-aggregator ``autoregister``).

Those of built-in versions are looked at once, at the start: what is missing is made, what says something else is mended, what is not
served any more goes. Those of custom resources are kept all the time. One that does not carry the label is somebody else's and is left
alone: that is how a group or version is given to another server.
"""

from __future__ import annotations

from apiserver.aggregation import priorities
from apiserver.aggregation.priorities import ALWAYS, GROUP, MANAGED_LABEL, ON_START, RESOURCE
from apiserver.apiextensions.keeper import server_write
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.objectstore.interface import ObjectStoreError, StoredObject
from apiserver.registry import object_deletion
from apiserver.registry.deletion import DeleteOptions
from apiserver.registry.registry import Registry
from apiserver.upkeep import Upkeep

#: waits beside the names of APIServices for what is done at the start
_BUILTIN = ""


class LocalRegistration:
    """Made before the caches are loaded. ``definition_changed`` at every change of a definition; ``run`` does the work."""

    def __init__(self, registry: Registry, passing: tuple[type[Exception], ...]) -> None:
        """``passing``: errors of the store, which are worth another attempt."""
        self._registry = registry
        self._upkeep = Upkeep("an APIService", self._sync, (StatusError, ObjectStoreError, *passing))
        self._versions_of: dict[str, tuple[str, tuple[str, ...]]] = {}
        #: how many definitions there are in a group and version
        self._counts: dict[str, int] = {}
        self._group_version: dict[str, tuple[str, str]] = {}
        registry.storage(GROUP, RESOURCE).cache.observe(self._changed)

    def definition_changed(self, path: str, definition: Object | None) -> None:
        """``definition`` None: it is gone."""
        before = self._versions_of.pop(path, ("", ()))
        after: tuple[str, tuple[str, ...]] = ("", ())
        if definition is not None:
            versions = objects.get(definition, "spec", "versions", default=[])
            after = (objects.get(definition, "spec", "group", default=""), tuple(v["name"] for v in versions if v.get("served")))
            self._versions_of[path] = after
        if before == after:
            return
        for (group, versions), step in ((before, -1), (after, 1)):
            for version in versions:
                name = priorities.name_of(group, version)
                self._group_version[name] = (group, version)
                self._counts[name] = self._counts.get(name, 0) + step
                self._upkeep.enqueue(name)

    def _changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        found = new or old
        assert found is not None
        if found.name in self._counts or (new is not None and b'"' + MANAGED_LABEL.encode() + b'":"true"' in new.raw):
            self._upkeep.enqueue(found.name)

    async def run(self) -> None:
        """Until cancelled."""
        self._upkeep.enqueue(_BUILTIN)
        await self._upkeep.run()

    def _current(self, name: str) -> Object | None:
        stored = self._registry.storage(GROUP, RESOURCE).get_now(name)
        return None if stored is None else stored.decode()

    async def _settle_builtin(self) -> None:
        """What was made at an earlier start and is not true of this one. (What is missing was made with the system's objects.)"""
        wanted = priorities.builtin(builtin_versions(self._registry))
        for stored in list(self._registry.storage(GROUP, RESOURCE).cache.values()):
            current = stored.decode()
            if objects.labels(current).get(MANAGED_LABEL) != ON_START:
                continue
            desired = wanted.get(stored.name)
            if desired is None:
                await self._delete(current)
            elif current["spec"] != desired["spec"]:
                await self._update(stored.name, desired["spec"])

    async def _sync(self, name: str) -> None:
        if name == _BUILTIN:
            await self._settle_builtin()
            return
        group, version = self._group_version.get(name, ("", ""))
        desired = None
        if self._counts.get(name, 0) > 0 and not self._is_builtin_version(group, version):
            desired = priorities.of_definition(group, version)
        current = self._current(name)
        if current is None:
            if desired is None:
                self._counts.pop(name, None)
                self._group_version.pop(name, None)
                return
            await self._create(desired)
        elif objects.labels(current).get(MANAGED_LABEL) != ALWAYS:
            return
        elif desired is None:
            await self._delete(current)
        elif current["spec"] != desired["spec"]:
            await self._update(name, desired["spec"])

    def _is_builtin_version(self, group: str, version: str) -> bool:
        return any(info.builtin for info in self._registry.table.resources(group, version))

    async def _create(self, desired: Object) -> None:
        try:
            store = self._registry.stored(GROUP, RESOURCE)
            store.strategy.default(desired)
            await store.create(server_write(), "", desired)
        except StatusError as error:
            if error.code != 409:  # made in the meantime: its event comes
                raise

    async def _update(self, name: str, spec: Object) -> None:
        async def build(old: Object) -> Object:
            return {**old, "spec": spec}

        try:
            await self._registry.stored(GROUP, RESOURCE).update(server_write(), "", name, build)
        except StatusError as error:
            if error.code != 404:
                raise

    async def _delete(self, current: Object) -> None:
        options = DeleteOptions(uid=objects.uid(current))
        try:
            await object_deletion.delete(self._registry.stored(GROUP, RESOURCE), server_write(), "", objects.name(current), options)
        except StatusError as error:
            if error.code not in (404, 409):
                raise


def builtin_versions(registry: Registry) -> list[tuple[str, str]]:
    """The groups and versions that have resources which no definition made."""
    return sorted({(info.group, info.version) for info in registry.table if info.builtin})
