"""The shell: a namespace with a deletionTimestamp is worked on until it is gone."""

from __future__ import annotations

import asyncio
import logging

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.discovery import DiscoveredResource, discover
from controllers.client.interface import DeleteOptions, ListOptions, Propagation, list_all
from controllers.client.resources import NAMESPACES, PODS
from controllers.lib.context import ControllerContext
from controllers.namespace.conditions import Remaining, conditions_of
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 10
#: resources of one namespace looked at at once
PARALLEL_RESOURCES = 8
#: Looks at what is on its way out but not gone: the first after so long, then doubling. Pods on hollow nodes end within a second.
AGAIN_SECONDS = 0.25
AGAIN_SECONDS_MAX = 5.0
FINALIZER = "kubernetes"

log = logging.getLogger(__name__)


class NamespaceController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._looks: dict[str, int] = {}
        self._namespaces = context.informers.informer(NAMESPACES)
        self._namespaces.add_handler(EventHandler(on_add=self._on_namespace, on_update=lambda _, new: self._on_namespace(new)))

    async def run(self) -> None:
        await run_workers("namespace-controller", self.queue, self.sync, workers=WORKERS)

    def _on_namespace(self, namespace: Object) -> None:
        if objects.is_being_deleted(namespace):
            self.queue.add(objects.name(namespace))

    async def sync(self, name: str) -> None:
        try:
            namespace = await self._api.get(NAMESPACES, "", name)
        except errors.StatusError as error:
            if errors.is_not_found(error):
                self._looks.pop(name, None)
                return
            raise
        if not objects.is_being_deleted(namespace) or FINALIZER not in objects.get(namespace, "spec", "finalizers", default=[]):
            return
        remaining = await self._empty(name)
        namespace = await self._tell(namespace, remaining)
        if remaining.is_empty:
            await self._finalize(namespace)
            self._looks.pop(name, None)
            return
        looks = self._looks.get(name, 0)
        self._looks[name] = looks + 1
        self.queue.add_after(name, min(AGAIN_SECONDS * 2.0 ** min(looks, 10), AGAIN_SECONDS_MAX))

    async def _empty(self, name: str) -> Remaining:
        """One pass: deletes what there is, and tells what is left."""
        remaining = Remaining()
        found = await discover(self._api)
        remaining.discovery_failures = dict(found.failed)
        wanted = [r for r in found.resources if r.resource.namespaced and {"list", "delete"} <= r.verbs]
        # Pods first: what runs in the namespace should end while its configuration, roles and policies are still there.
        pods = [r for r in wanted if r.resource == PODS]
        others = [r for r in wanted if r.resource != PODS]
        limit = asyncio.Semaphore(PARALLEL_RESOURCES)
        for group in (pods, others):
            if group is others and PODS in remaining.counts:
                return remaining
            await asyncio.gather(*(self._empty_resource(name, one, remaining, limit) for one in group))
        return remaining

    async def _empty_resource(self, namespace: str, found: DiscoveredResource, remaining: Remaining, limit: asyncio.Semaphore) -> None:
        """A deletion comes first even where a list would be empty: a list omits what the server cannot read, a deletion fails of it."""
        resource = found.resource
        options = ListOptions(metadata_only=True, limit=500)
        async with limit:
            try:
                if await self._delete_all(found, namespace, options):
                    items, _ = await list_all(self._api, resource, namespace, options)
                    remaining.count(resource, items)
            except errors.StatusError as error:
                if error.code in (404, 405):
                    return  # the resource has just gone, or cannot be listed after all: nothing to be done about it
                remaining.content_failures.append(f"{resource.qualified}: {error}")
            except (errors.ConnectionFailed, errors.DecodeFailed) as error:
                remaining.content_failures.append(f"{resource.qualified}: {error}")

    async def _delete_all(self, found: DiscoveredResource, namespace: str, options: ListOptions) -> bool:
        """Whether there was anything to delete."""
        if "deletecollection" in found.verbs:
            deleted = await self._api.delete_collection(found.resource, namespace, DeleteOptions(propagation=Propagation.BACKGROUND))
            return bool(deleted.get("items"))
        items, _ = await list_all(self._api, found.resource, namespace, options)
        for item in items:
            await self._delete_one(found, namespace, objects.name(item))
        return bool(items)

    async def _delete_one(self, found: DiscoveredResource, namespace: str, name: str) -> None:
        try:
            await self._api.delete(found.resource, namespace, name, DeleteOptions(propagation=Propagation.BACKGROUND))
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise

    async def _tell(self, namespace: Object, remaining: Remaining) -> Object:
        status = namespace.get("status") or {}
        current = status.get("conditions") or []
        # A namespace that empties at once needs no conditions; they are there to explain a delay.
        if remaining.is_empty and not current and status.get("phase") == "Terminating":
            return namespace
        conditions = conditions_of(current, remaining, self._clock.now())
        if conditions == current and status.get("phase") == "Terminating":
            return namespace
        wanted = {**namespace, "status": {**status, "phase": "Terminating", "conditions": conditions}}
        return await self._api.update(NAMESPACES, wanted, subresource="status")

    async def _finalize(self, namespace: Object) -> None:
        finalizers = [f for f in namespace["spec"]["finalizers"] if f != FINALIZER]
        try:
            await self._finalize_with(namespace, finalizers)
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise

    async def _finalize_with(self, namespace: Object, finalizers: list[str]) -> None:
        log.info("namespace %s is empty", objects.name(namespace))
        await self._api.update(NAMESPACES, {**namespace, "spec": {**namespace["spec"], "finalizers": finalizers}}, subresource="finalize")
