"""What goes before a definition goes: its objects (apiextensions-apiserver ``controller/finalizer``).

Deleting a definition only marks it (``begin``). Then its objects are deleted, each by all rules of deletion, and once the last is gone the
finalizer, and with it the definition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from apiserver.apiextensions import conditions
from apiserver.apiextensions.conditions import TERMINATING, Condition
from apiserver.apiextensions.definitions import CustomDefinition, is_served
from apiserver.machinery import objects, status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.objectstore.interface import Selection
from apiserver.registry import object_deletion
from apiserver.registry.deletion import DeleteOptions
from apiserver.registry.environment import Write
from apiserver.registry.registry import Registry
from apiserver.registry.store import Store
from apiserver.schemas.schema_set import SchemaSet

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
#: How long the end of the objects is waited for before they are deleted once more: something may have been created meanwhile.
WAIT_SECONDS = 60.0

_IN_PROGRESS = Condition(TERMINATING, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
_COMPLETED = Condition(TERMINATING, "False", "InstanceDeletionCompleted", "removed all instances")
_NEVER = Condition(TERMINATING, "False", "NeverEstablished", "resource was never established")
_OVERLAPS = Condition(TERMINATING, "False", "OverlappingBuiltInResource", "instances overlap with built-in resources in storage")


class WriteStatus(Protocol):
    def __call__(self, name: str, status_of: Callable[[Object], Object | None], *, finalizer: str = "") -> Awaitable[None]: ...


async def clean_up(registry: Registry, schemas: SchemaSet, name: str, write: WriteStatus) -> None:
    """Raises StatusError where it has to be tried again."""
    now = registry.env.clock.text

    def setting(condition: Condition) -> Callable[[Object], Object | None]:
        def status_of(definition: Object) -> Object | None:
            if condition.is_in(definition):
                return None
            return conditions.with_condition(definition.get("status") or {}, condition, now())

        return status_of

    await write(name, setting(_IN_PROGRESS))
    stored = registry.stored("apiextensions.k8s.io", "customresourcedefinitions").storage.get_now(name)
    if stored is None:
        return
    decoded = stored.decode()
    last = _NEVER
    if is_served(decoded):
        last = _COMPLETED
        definition = CustomDefinition(decoded, stored.raw, schemas)
        if registry.table.is_builtin_resource(definition.group, definition.plural):
            last = _OVERLAPS
        else:
            try:
                await _delete_objects(registry, definition)
            except StatusError as error:
                failed = Condition(TERMINATING, "True", "InstanceDeletionFailed", f"could not issue all deletes: {error.message}")
                await write(name, setting(failed))
                raise
            except TimeoutError:
                why = "could not confirm zero CustomResources remaining: timed out waiting for the condition"
                await write(name, setting(Condition(TERMINATING, "True", "InstanceDeletionCheck", why)))
                raise status.timeout(why) from None
    await write(name, setting(last), finalizer=FINALIZER)


async def _delete_objects(registry: Registry, definition: CustomDefinition) -> None:
    """Delete all there are, and wait for their end. Raises StatusError, TimeoutError."""
    info = definition.info(definition.versions[definition.storage_version])
    await registry.load(info)
    store = registry.make(info)
    # the watch is there before the first deletion, so that none is missed
    watcher, found = await store.watch(Selection(), -1)
    try:
        write = _write()
        remaining = {obj.path for obj in found}
        for obj in found:
            try:
                await object_deletion.delete(store, write, obj.namespace, obj.name, DeleteOptions())
            except StatusError as error:
                if error.code != 404:
                    raise
        async with asyncio.timeout(WAIT_SECONDS):
            while remaining and await _any_left(store):
                while not watcher.take() and not watcher.ended:
                    await watcher.wait()
                if watcher.ended:
                    break
    finally:
        watcher.end()


async def _any_left(store: Store) -> bool:
    return bool((await store.list_objects(Selection(), limit=1)).objects)


def _write() -> Write:
    from apiserver.apiextensions.keeper import server_write

    return server_write()


def begin(definition: Object, now: str) -> bool:
    """Mark a definition that a client deletes, in place; False where that was done before. Terminating is told at once."""
    metadata = definition["metadata"]
    if metadata.get("deletionTimestamp"):
        return False
    metadata["deletionTimestamp"] = now
    if FINALIZER not in objects.finalizers(definition):
        metadata["finalizers"] = [*objects.finalizers(definition), FINALIZER]
    why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    pending = Condition(TERMINATING, "True", "InstanceDeletionPending", why)
    definition["status"] = conditions.with_condition(definition.get("status") or {}, pending, now)
    return True
