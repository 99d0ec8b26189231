"""``DefinitionKeeper``: keeps the ``status`` of definitions true, and cleans up behind those that are deleted.

Every API server of a store runs one. Each decision is made again from the version that is about to be replaced, so that two servers
that have the same thought write once. Within a group one definition after the other: names go to whoever comes first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from apiserver.apiextensions import cleanup, conditions, naming
from apiserver.apiextensions.naming import Taken
from apiserver.authentication.user import UserInfo
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.objectstore.interface import ObjectStoreError
from apiserver.registry.environment import Write
from apiserver.registry.registry import Registry
from apiserver.registry.store import Store
from apiserver.schemas.schema_set import SchemaSet
from apiserver.upkeep import Pauses, Upkeep

logger = logging.getLogger(__name__)

GROUP = "apiextensions.k8s.io"
RESOURCE = "customresourcedefinitions"
MANAGER = "kube-apiserver"

_USER = UserInfo(name="system:apiserver", groups=("system:masters", "system:authenticated"))


def server_write() -> Write:
    """As the API server itself."""
    return Write(user=_USER, manager=MANAGER)


class DefinitionKeeper:
    """``changed`` at every change of a definition, in order; ``run`` does the work."""

    def __init__(self, registry: Registry, schemas: SchemaSet, passing: tuple[type[Exception], ...]) -> None:
        """``passing``: errors of the store, which are worth another attempt."""
        self._registry = registry
        self._passing: tuple[type[Exception], ...] = (StatusError, ObjectStoreError, *passing)
        self._schemas = schemas
        self._upkeep = Upkeep("the status of a definition", self._sync, self._passing, lane=_group_of)
        #: by group
        self._taken: dict[str, Taken] = {}
        self._conflicting: dict[str, set[str]] = {}
        self._group_of: dict[str, str] = {}
        self._cleaning: dict[str, asyncio.Task[None]] = {}
        self._cleaning_pauses = Pauses()
        #: generations whose clean-up failed and is not tried again before its pause is over: each attempt writes the status, and must not
        #: be what starts the next one
        self._resting: dict[str, int] = {}

    def changed(self, name: str, definition: Object | None) -> None:
        """``definition`` None: it is gone."""
        if definition is None:
            group = self._group_of.pop(name, "")
            self._upkeep.forget(name)
            self._cleaning_pauses.forget(name)
            self._resting.pop(name, None)
            names = self._taken.get(group)
            if names is None:
                return
            names.remove(name)
            self._conflicting.get(group, set()).discard(name)
            self._reconsider(group)
            if not names:
                del self._taken[group]
                self._conflicting.pop(group, None)
            return
        group = self._group_of[name] = objects.get(definition, "spec", "group", default="")
        accepted = objects.get(definition, "status", "acceptedNames", default={})
        names = self._taken.setdefault(group, Taken())
        before = names.accepted(name)
        names.put(name, accepted)
        conflict = not conditions.is_true(definition, conditions.NAMES_ACCEPTED)
        others = self._conflicting.setdefault(group, set())
        (others.add if conflict else others.discard)(name)
        if before is not None and before != accepted:
            self._reconsider(group)
        self._upkeep.enqueue(name)

    def _reconsider(self, group: str) -> None:
        """A name may be free now."""
        for name in sorted(self._conflicting.get(group, ())):
            self._upkeep.enqueue(name)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self._upkeep.run()
        finally:
            for task in self._cleaning.values():
                task.cancel()

    def _store(self) -> Store:
        return self._registry.stored(GROUP, RESOURCE)

    async def _sync(self, name: str) -> None:
        stored = self._store().storage.get_now(name)
        if stored is None:
            return
        definition = stored.decode()
        if self._status(definition) is not None:
            await self.write(name, self._status)
        if not objects.is_being_deleted(definition) or cleanup.FINALIZER not in objects.finalizers(definition) or name in self._cleaning:
            return
        generation = _generation(definition)
        if self._resting.get(name) != generation:  # another generation may be one that can be cleaned up
            self._resting.pop(name, None)
            task = self._cleaning[name] = asyncio.create_task(self._clean_up(name, generation), name=f"cleanup of {name}")
            task.add_done_callback(_report)

    def _status(self, definition: Object) -> Object | None:
        names = self._taken.get(objects.get(definition, "spec", "group", default="")) or Taken()
        return naming.next_status(definition, names, self._registry.env.clock.text())

    async def write(self, name: str, status_of: Callable[[Object], Object | None], *, finalizer: str = "") -> None:
        """Give a definition the status that ``status_of`` makes of it (None: its own), and take ``finalizer`` away. Raises StatusError, but
        not where the definition is gone."""

        async def build(old: Object) -> Object:
            status = status_of(old)
            if status is not None:
                old["status"] = status
            if finalizer:
                old["metadata"]["finalizers"] = [other for other in objects.finalizers(old) if other != finalizer]
            return old

        try:
            await self._store().update(server_write(), "", name, build, subresource="status")
        except StatusError as error:
            if error.code != 404:
                raise

    async def _clean_up(self, name: str, generation: int) -> None:
        try:
            await cleanup.clean_up(self._registry, self._schemas, name, self.write)
        except self._passing as error:
            logger.info("the clean-up of a definition waits for another attempt: name=%s error=%s", name, error)
            self._resting[name] = generation
            asyncio.get_running_loop().call_later(self._cleaning_pauses.next(name), self._rested, name, generation)
        finally:
            del self._cleaning[name]

    def _rested(self, name: str, generation: int) -> None:
        if self._resting.get(name) == generation:
            del self._resting[name]
            self._upkeep.enqueue(name)


def _group_of(name: str) -> str:
    """A definition is named after its resource and its group."""
    return name.partition(".")[2]


def _generation(definition: Object) -> int:
    generation: int = objects.get(definition, "metadata", "generation", default=0)
    return generation


def _report(task: asyncio.Task[None]) -> None:
    """A fault of this program, which must not pass unseen."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s failed", task.get_name(), exc_info=error)
