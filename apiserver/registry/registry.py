"""``Registry``: the Store of every resource and version that is served, over the storages of what is stored."""

from __future__ import annotations

import asyncio
import functools

from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import Selection
from apiserver.objectstore.kv_object_storage import KvObjectStorage
from apiserver.objectstore.object_store import ObjectStore
from apiserver.objectstore.stored_values import Upgrade
from apiserver.registry import stored_versions
from apiserver.registry.environment import Environment
from apiserver.registry.store import Store
from apiserver.registry.strategies import strategy_for
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable

#: Kinds that nothing stores: each request is answered by a function.
VIRTUAL = frozenset(
    (
        ("", "bindings"),
        ("", "componentstatuses"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    )
)

#: of ``CachedObjects``: lists kept, and how long one may be to be kept
KEPT_LISTS_MAX = 1024
KEPT_LIST_OBJECTS_MAX = 64


class Registry:
    """Stores are made at first use; storages of built-in resources at construction, so that ``ObjectStore.start`` loads them."""

    def __init__(self, table: ResourceTable, objects: ObjectStore, env: Environment, *, event_ttl_seconds: int) -> None:
        self.table = table
        self.objects = objects
        self.env = env
        self._stores: dict[tuple[str, str, str], Store] = {}
        self._loading: dict[str, asyncio.Task[KvObjectStorage]] = {}
        for info in table:
            if (info.group, info.resource) in VIRTUAL:
                continue
            ttl_seconds = event_ttl_seconds if info.storage_prefix == "events" else 0
            storage = objects.add(info.storage_prefix, info.namespaced, ttl_seconds)
            if storage.cache.upgrade is None:
                storage.cache.upgrade = self._upgrade(info)

    def _upgrade(self, info: ResourceInfo) -> Upgrade:
        to = self.table.storage_info(info) or info
        served = [other.api_version for other in self.table if other.storage_prefix == to.storage_prefix]
        return functools.partial(stored_versions.upgrade, to, served)

    def store(self, group: str, version: str, resource: str) -> Store | None:
        """None for what is not served, is not stored, or is a custom resource that is not loaded yet (see ``load``)."""
        found = self._stores.get((group, version, resource))
        if found is None:
            info = self.table.lookup(group, version, resource)
            if info is None or (group, resource) in VIRTUAL:
                return None
            if not info.builtin and info.storage_prefix not in self.objects.storages():
                return None
            found = self._stores[(group, version, resource)] = self.make(info)
        return found

    def make(self, info: ResourceInfo) -> Store:
        """A Store of a resource whose storage is loaded, served or not."""
        storage = self.objects.storages()[info.storage_prefix]
        return Store(info, self.table.storage_info(info) or info, storage, strategy_for(info), self.env)

    async def load(self, info: ResourceInfo) -> None:
        """Bring the objects of a custom resource into a cache, where nobody has yet. Raises StoreError."""
        prefix = info.storage_prefix
        if prefix in self.objects.storages():
            return
        task = self._loading.get(prefix)
        if task is None:
            task = self._loading[prefix] = asyncio.create_task(self.objects.add_running(prefix, info.namespaced), name=f"load {prefix}")
            task.add_done_callback(lambda _: self._loading.pop(prefix, None))
        # one who goes away does not stop what others wait for
        await asyncio.shield(task)

    async def catch_up(self, group: str) -> bool:
        """Before a resource is said not to be there: whether there is news. Another server may just have established it."""
        return not self.table.is_builtin(group) and await self.objects.source.catch_up()

    def forget(self, info: ResourceInfo) -> None:
        """A custom resource has changed or is gone."""
        self._stores.pop((info.group, info.version, info.resource), None)

    def stored(self, group: str, resource: str) -> Store:
        """The Store of a built-in resource in its preferred version. Raises KeyError."""
        info = self.table.preferred(group, resource)
        if info is None:
            raise KeyError(f"{resource}.{group}")
        found = self.store(info.group, info.version, info.resource)
        assert found is not None, info
        return found

    def storage(self, group: str, resource: str) -> KvObjectStorage:
        """Of a built-in resource, without its Store: for those who only look at the objects. Raises KeyError."""
        info = self.table.preferred(group, resource)
        if info is None:
            raise KeyError(f"{resource}.{group}")
        return self.objects.storages()[info.storage_prefix]


class CachedObjects:
    """``admission.interfaces.ObjectGetter`` over the caches: decoded objects are kept beside the bytes and must not be changed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._storages: dict[tuple[str, str], KvObjectStorage] = {}
        #: by group, resource and namespace: the revision of the resource's last change, and the list as of then
        self._lists: dict[tuple[str, str, str], tuple[int, list[Object]]] = {}

    def _storage(self, group: str, resource: str) -> KvObjectStorage:
        """Of a built-in kind in its stored version, which is the preferred one: these are never taken away."""
        found = self._storages.get((group, resource))
        if found is None:
            found = self._storages[(group, resource)] = self._registry.storage(group, resource)
        return found

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None:
        storage = self._storage(group, resource)
        found = storage.get_now(f"{namespace}/{name}" if storage.cache.namespaced else name)
        return None if found is None else found.shared()

    def list(self, group: str, resource: str, namespace: str = "") -> list[Object]:
        """A list that is shared like its objects: short ones are kept until the resource changes, since admission asks for the same
        priority classes, limits and quotas at every write."""
        storage = self._storage(group, resource)
        storage.freshen_now()
        cache = storage.cache
        if not len(cache):
            return []
        key = (group, resource, namespace)
        known = self._lists.get(key)
        if known is not None and known[0] == cache.changed_at:
            return known[1]
        objects, _ = cache.select(Selection(namespace=namespace))
        found = [obj.shared() for obj in objects]
        if len(found) <= KEPT_LIST_OBJECTS_MAX:
            if len(self._lists) >= KEPT_LISTS_MAX:
                self._lists.clear()
            self._lists[key] = (cache.changed_at, found)
        return found

    def changed_at(self, group: str, resource: str) -> int:
        """The revision of the resource's last change: what was derived from its objects is good as long as this stays."""
        storage = self._storage(group, resource)
        storage.freshen_now()
        return storage.cache.changed_at
