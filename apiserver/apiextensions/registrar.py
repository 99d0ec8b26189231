"""``DefinitionRegistrar``: what is served follows the stored definitions, in every API server of a store.

It observes the cache of definitions: a definition is served within the turn in which its change arrives, before anybody can have read
that it is established.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from apiserver.apiextensions.definitions import CustomDefinition, is_served
from apiserver.apiextensions.keeper import DefinitionKeeper
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import StoredObject
from apiserver.registry.registry import Registry
from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas.schema_set import SchemaSet

GROUP = "apiextensions.k8s.io"
RESOURCE = "customresourcedefinitions"

logger = logging.getLogger(__name__)


class DefinitionRegistrar:
    """Made before the caches are loaded; ``run`` keeps the status of definitions as long as the server lives. ``passing`` are the errors
    of the store, which are worth another attempt."""

    def __init__(
        self,
        registry: Registry,
        schemas: SchemaSet,
        passing: tuple[type[Exception], ...],
        tell: Callable[[str, Object | None], None] = lambda path, definition: None,
    ) -> None:
        """``tell`` hears of each definition as well, before it is served; None: it is gone."""
        self._registry = registry
        self._tell = tell
        self._schemas = schemas
        self._served: dict[str, CustomDefinition] = {}
        self._since: dict[str, int] = {}
        self._keeper = DefinitionKeeper(registry, schemas, passing)
        registry.storage(GROUP, RESOURCE).cache.observe(self._changed)

    async def run(self) -> None:
        await self._keeper.run()

    def _changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        stored = new or old
        assert stored is not None
        definition = None if new is None else new.decode()
        self._tell(stored.path, definition)
        if old is None and new is not None and self._registry.objects.alive:
            self._since[new.path] = new.revision  # it came to be now: nothing of its objects is older
        elif new is None:
            self._since.pop(stored.path, None)
        since = self._since.get(stored.path, 0)
        after = None if new is None or definition is None else _read(definition, new.raw, self._schemas, since)
        self._swap(self._served.get(stored.path), after)
        if after is None:
            self._served.pop(stored.path, None)
        else:
            self._served[stored.path] = after
        self._keeper.changed(stored.path, definition)

    def _swap(self, before: CustomDefinition | None, after: CustomDefinition | None) -> None:
        if before is None and after is None:
            return
        same_shape = before is not None and after is not None and before.shape == after.shape
        if before is not None and after is not None and same_shape:
            if before.terminating == after.terminating:
                return
            after.adopt(before)
        removed = [] if before is None else self._own(before.infos())
        added = [] if after is None else self._own(after.infos())
        self._registry.table.replace_custom(removed, added)
        self._schemas.replace_custom(
            [(info.group, info.version, info.kind) for info in removed],
            {(info.group, info.version, info.kind): after.versions[info.version] for info in added} if after is not None else {},
        )
        for info in (*removed, *added):
            self._registry.forget(info)
        if before is not None and not same_shape:
            self._end_watches(before)
            if after is None or after.prefix != before.prefix or after.namespaced != before.namespaced:
                self._registry.objects.remove(before.prefix)

    def _own(self, infos: Iterable[ResourceInfo]) -> list[ResourceInfo]:
        """Without those that Kubernetes itself has."""
        table = self._registry.table
        found = ((info, table.lookup(info.group, info.version, info.resource)) for info in infos)
        return [info for info, current in found if current is None or not current.builtin]

    def _end_watches(self, definition: CustomDefinition) -> None:
        """Their clients come back and see the new shape."""
        storage = self._registry.objects.storages().get(definition.prefix)
        if storage is not None:
            for watcher in storage.cache.watchers():
                watcher.end()


def _read(definition: Object, raw: bytes, schemas: SchemaSet, since_revision: int) -> CustomDefinition | None:
    """None for what is not served (yet). The server must live with definitions that no current one would have stored."""
    try:
        return CustomDefinition(definition, raw, schemas, since_revision) if is_served(definition) else None
    except (AttributeError, KeyError, StopIteration, TypeError) as error:
        name = definition["metadata"].get("name")
        logger.warning("a stored definition cannot be served: name=%s error=%r", name, error)
        return None
