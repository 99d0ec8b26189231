"""``ServedObjects``: objects and types of everything that is served, for admission that is told at run time which it is about."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError, failure
from apiserver.machinery.types import Type
from apiserver.objectstore.interface import Selection
from apiserver.registry import conversion
from apiserver.registry.registry import Registry
from apiserver.registry.store import Store
from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas.json_bodies import DecodeError
from apiserver.schemas.schema_set import SchemaSet


class ServedObjects:
    """Implements ``admission.policies.params.ServedObjects`` and what mutations need beside it."""

    def __init__(self, registry: Registry, schemas: SchemaSet) -> None:
        self._registry = registry
        self._schemas = schemas
        self._generation = -1
        self._equivalents: dict[tuple[str, str, str], list[ResourceInfo]] = {}

    @property
    def generation(self) -> int:
        return self._registry.table.generation

    def by_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None:
        return self._registry.table.by_kind(group, version, kind)

    def equivalents(self, info: ResourceInfo) -> Sequence[ResourceInfo]:
        """What else the same stored objects are served as. Found once until the table changes."""
        table = self._registry.table
        if table.generation != self._generation:
            self._generation, self._equivalents = table.generation, {}
        key = (info.group, info.version, info.resource)
        found = self._equivalents.get(key)
        if found is None:
            same = (other for other in table if other.storage_prefix == info.storage_prefix and other.resource == info.resource)
            found = [other for other in same if (other.group, other.version) != (info.group, info.version)] if info.storage_prefix else []
            self._equivalents[key] = found
        return found

    async def get_object(self, info: ResourceInfo, namespace: str, name: str) -> Object | None:
        store = await self._store(info)
        if store is None:
            return None
        found = await store.storage.get(store.path(namespace, name))
        if found is None:
            return None
        await store.ready([found])
        return store.decode(found)

    async def list_objects(self, info: ResourceInfo, namespace: str) -> list[Object]:
        store = await self._store(info)
        if store is None:
            return []
        store.storage.freshen_now()
        found, _ = store.storage.cache.select(Selection(namespace=namespace))
        await store.ready(found)
        return await self._registry.env.settled(lambda: [store.decode(one) for one in found])

    async def _store(self, info: ResourceInfo) -> Store | None:
        if not info.builtin:
            await self._registry.load(info)
        return self._registry.store(info.group, info.version, info.resource)

    async def converted(self, obj: Object, current: ResourceInfo, wanted: ResourceInfo) -> Object:
        custom, other = current.custom, wanted.custom
        if custom is not None and other is not None:
            return await self._registry.env.settled(lambda: custom.converted(objects.deep_copy(obj), other))
        copy: Object = objects.deep_copy(obj)
        stored = self._registry.table.storage_info(current) or current
        return conversion.convert(conversion.convert(copy, stored), wanted)

    def type_of(self, group: str, version: str, kind: str) -> Type | None:
        try:
            return self._schemas.type_of(group, version, kind)
        except KeyError:
            return None

    def settled(self, obj: Object, info: ResourceInfo, subresource: str) -> Object:
        """Raises StatusError: 500, as kube-apiserver answers for an object that a policy has made unreadable."""
        for sub in info.subresources:
            if sub.name == subresource and sub.kind and sub.kind != info.kind:
                return obj
        try:
            decoded = self._schemas.kind(info.group, info.version, info.kind).decode(obj)
        except DecodeError as error:
            raise StatusError(failure(500, "InternalError", f"Internal error occurred: {error}")) from error
        if decoded.strict_errors and info.builtin:
            why = f"strict decoding error: {', '.join(decoded.strict_errors)}"
            raise StatusError(failure(500, "InternalError", f"Internal error occurred: {why}"))
        store = self._registry.store(info.group, info.version, info.resource)
        if store is not None:
            store.strategy.default(decoded.obj)
        return decoded.obj
