"""The shell of storage migrations: lists, applies nothing to each object, says how it went.

1. The resource is looked up in discovery; what is not there a minute after the migration was made has failed.
2. ``status.resourceVersion`` is the state that is migrated, and the condition Running is true.
3. Every object of that state gets an apply of nothing, which stores it anew where it is stored otherwise. One that is gone or was
   written meanwhile (404, 409) needs none; an answer that may be another next time brings the migration here again.
4. The ``storedVersions`` of a custom resource become the one version, unless its definition has changed since the second step.
5. The condition Succeeded is true, or Failed with the error.
"""

from __future__ import annotations

import datetime
import logging

from apiserver.machinery import objects, timestamps
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.discovery import discover
from controllers.client.interface import ListOptions, PatchType, list_all
from controllers.client.resources import CUSTOM_RESOURCE_DEFINITIONS, STORAGE_VERSION_MIGRATIONS, Resource
from controllers.lib.context import ControllerContext
from controllers.storageversionmigrator import decision
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

COMPONENT = "storage-version-migrator-controller"
WORKERS = 5
#: Objects of one page of a list.
PAGE_OBJECTS = 500
#: How long a resource may take to be found: that of a definition that was made along with its migration, for one.
DISCOVERY_SECONDS = 60.0
#: Reasons of answers that may be others at the next attempt.
_RETRIED = frozenset(("InternalError", "ServerTimeout", "ServiceUnavailable", "Timeout", "TooManyRequests"))

log = logging.getLogger(__name__)


class StorageVersionMigratorController:
    """Keys are the names of migrations."""

    def __init__(self, context: ControllerContext) -> None:
        self._api = context.api
        self._clock = context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._migrations = context.informers.informer(STORAGE_VERSION_MIGRATIONS)
        self._migrations.add_handler(EventHandler(on_add=self._on_change, on_update=lambda _, new: self._on_change(new)))

    async def run(self) -> None:
        await run_workers(COMPONENT, self.queue, self.sync, workers=WORKERS)

    def _on_change(self, migration: Object) -> None:
        if not decision.is_over(migration):
            self.queue.add(objects.name(migration))

    async def sync(self, name: str) -> None:
        migration = self._migrations.indexer.get(name)
        if migration is None or decision.is_over(migration):
            return
        try:
            await self._migrate(migration)
        except errors.StatusError as error:
            if not errors.is_conflict(error) and not errors.is_not_found(error):  # of the migration itself: its event brings it here again
                raise

    async def _migrate(self, migration: Object) -> None:
        group, plural = decision.group_and_plural(migration)
        resource = await self._resource(group, plural)
        if resource is None:
            made = timestamps.parse_time(migration["metadata"]["creationTimestamp"])
            if self._clock.now() < made + datetime.timedelta(seconds=DISCOVERY_SECONDS):
                raise errors.DecodeFailed(f"{plural}.{group} is not served")  # not yet, perhaps
            await self._tell(migration, decision.FAILED, f"resource does not exist: {plural}.{group}".removesuffix("."))
            return
        definition = await self._definition(group, plural)
        state = objects.get(migration, "status", "resourceVersion", default="")
        if not state:
            page = await self._api.list(resource, "", ListOptions(limit=1, metadata_only=True))
            state = str(page["metadata"].get("resourceVersion") or "")
        migration = await self._tell(migration, decision.RUNNING, "", state)
        try:
            count = await self._rewrite(resource, state)
        except errors.StatusError as error:
            if error.status.get("reason") in _RETRIED:
                raise
            await self._tell(migration, decision.FAILED, error.message)
            return
        if definition is not None:
            await self._say_stored_version(definition)
        await self._tell(migration, decision.SUCCEEDED, "")
        log.info("storage migrated migration=%s resource=%s objects=%d", objects.name(migration), resource.qualified, count)

    async def _resource(self, group: str, plural: str) -> Resource | None:
        found = (await discover(self._api)).with_verbs("list", "patch")
        return next((one for one in found if (one.group, one.plural) == (group, plural)), None)

    async def _definition(self, group: str, plural: str) -> Object | None:
        """Of a custom resource; None of others."""
        if not group:
            return None
        try:
            return await self._api.get(CUSTOM_RESOURCE_DEFINITIONS, "", f"{plural}.{group}")
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return None
            raise

    async def _rewrite(self, resource: Resource, state: str) -> int:
        found, _ = await list_all(self._api, resource, "", ListOptions(limit=PAGE_OBJECTS, metadata_only=True))
        count = 0
        for obj in found:
            if decision.is_newer(obj["metadata"].get("resourceVersion", ""), state):
                continue
            try:
                await self._api.patch(
                    resource,
                    objects.namespace(obj),
                    objects.name(obj),
                    decision.patch(resource, obj),
                    PatchType.APPLY,
                    field_manager=COMPONENT,
                )
                count += 1
            except errors.StatusError as error:
                if not errors.is_conflict(error) and not errors.is_not_found(error):
                    raise
        return count

    async def _say_stored_version(self, before: Object) -> None:
        current = await self._api.get(CUSTOM_RESOURCE_DEFINITIONS, "", objects.name(before))
        version = decision.stored_version(current)
        stored = objects.get(current, "status", "storedVersions", default=[])
        if not version or stored == [version] or not decision.same_definition(before, current):
            return
        wanted = {**current, "status": {**current["status"], "storedVersions": [version]}}
        try:
            await self._api.update(CUSTOM_RESOURCE_DEFINITIONS, wanted, subresource="status")
        except errors.StatusError as error:
            if not errors.is_conflict(error):  # it has changed meanwhile: who changed it migrates again
                raise

    async def _tell(self, migration: Object, condition: str, message: str, resource_version: str = "") -> Object:
        text = f"migration encountered unhandled error: {message}" if message else ""
        now = timestamps.format_time(self._clock.now())
        wanted = decision.with_condition(migration, condition, text, now, resource_version)
        if wanted == migration:
            return migration
        return await self._api.update(STORAGE_VERSION_MIGRATIONS, wanted, subresource="status")
