"""The shells of both controllers: keys are Services'."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of, split_key
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import DeleteOptions
from controllers.client.resources import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from controllers.endpoints import endpoints, slices
from controllers.endpoints.backends import Backend, backends_of, wants_endpoints
from controllers.lib import selectors
from controllers.lib.clock import format_time
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 5
BY_SERVICE = "service"
#: Changes of one Service's pods within this time are written together.
BATCH_SECONDS = 0.05


class ServiceBackends(ABC):
    """What both controllers do: Services and pods → keys of Services; a key → its backends."""

    def __init__(self, context: ControllerContext, component: str) -> None:
        self._api, self._clock, self._component = context.api, context.clock, component
        self.queue = RateLimitingQueue(context.clock)
        self._services = context.informers.informer(SERVICES)
        self._pods = context.informers.informer(PODS)
        self._services.add_handler(EventHandler.for_each(lambda service: self.queue.add(key_of(service))))
        self._pods.add_handler(EventHandler(on_add=self._on_pod, on_update=self._on_pod_update, on_delete=self._on_pod))

    async def run(self) -> None:
        await run_workers(self._component, self.queue, self.sync, workers=WORKERS)

    @abstractmethod
    async def sync(self, key: str) -> None:
        """Brings what belongs to the Service of this key in line."""

    def _on_pod(self, pod: Object) -> None:
        self._enqueue_services_of([pod])

    def _on_pod_update(self, old: Object, new: Object) -> None:
        if _matters(old) != _matters(new):
            self._enqueue_services_of([old, new])

    def _enqueue_services_of(self, pods: Iterable[Object]) -> None:
        for pod in pods:
            for service in self._services.indexer.in_namespace(objects.namespace(pod)):
                if selectors.matches_map(objects.get(service, "spec", "selector"), objects.labels(pod)):
                    self.queue.add_after(key_of(service), BATCH_SECONDS)

    def _backends(self, service: Object) -> list[Backend]:
        selector = objects.get(service, "spec", "selector")
        pods = self._pods.indexer.in_namespace(objects.namespace(service))
        return backends_of(service, [pod for pod in pods if selectors.matches_map(selector, objects.labels(pod))])


class EndpointsController(ServiceBackends):
    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context, "endpoint-controller")
        self._endpoints = context.informers.informer(ENDPOINTS)
        self._endpoints.add_handler(EventHandler(on_delete=self._on_endpoints_delete))

    def _on_endpoints_delete(self, found: Object) -> None:
        if key_of(found) in self._services.indexer:
            self.queue.add(key_of(found))

    async def sync(self, key: str) -> None:
        service = self._services.indexer.get(key)
        if service is None:
            await self._remove(key)
            return
        if not wants_endpoints(service) or objects.is_being_deleted(service):
            return
        current = self._endpoints.indexer.get(key)
        wanted = endpoints.wanted(service, self._backends(service), current, format_time(self._clock.now()))
        if wanted is None:
            return
        if current is None:
            await self._create(wanted)
        else:
            await self._api.update(ENDPOINTS, wanted)

    async def _create(self, wanted: Object) -> None:
        try:
            await self._api.create(ENDPOINTS, objects.namespace(wanted), wanted)
        except errors.StatusError as error:
            if not errors.is_namespace_terminating(error):
                raise  # AlreadyExists too: the cache is behind; tried again soon

    async def _remove(self, key: str) -> None:
        namespace, name = split_key(key)
        try:
            await self._api.delete(ENDPOINTS, namespace, name)
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise


class EndpointSliceController(ServiceBackends):
    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context, "endpoint-slice-controller")
        self._nodes = context.informers.informer(NODES)
        self._slices = context.informers.informer(ENDPOINT_SLICES)
        self._slices.add_index(BY_SERVICE, index_by_service)
        self._slices.add_handler(EventHandler(on_update=lambda _, new: self._on_slice(new), on_delete=self._on_slice_delete))
        #: by Service: what was written last, until the cache shows it; so that a late watch leads to no second slice
        self._expected: dict[str, dict[str, str]] = {}

    def _on_slice(self, one: Object) -> None:
        for key in index_by_service(one):
            if key in self._services.indexer:
                self.queue.add_after(key, BATCH_SECONDS)

    def _on_slice_delete(self, one: Object) -> None:
        for key in index_by_service(one):
            self._expected.get(key, {}).pop(objects.name(one), None)
        self._on_slice(one)

    async def sync(self, key: str) -> None:
        service = self._services.indexer.get(key)
        current = [one for one in self._slices.indexer.by_index(BY_SERVICE, key) if slices.is_ours(one)]
        if service is None or objects.is_being_deleted(service):
            self._expected.pop(key, None)
            await asyncio.gather(*(self._delete(one) for one in current))
            return
        if not wants_endpoints(service):
            return
        if not self._has_caught_up(key, current):
            self.queue.add_after(key, 4 * BATCH_SECONDS)
            return
        zones = {objects.name(n): objects.labels(n).get("topology.kubernetes.io/zone", "") for n in self._nodes.indexer.list()}
        plan = slices.plan(service, self._backends(service), current, zones)
        expected: dict[str, str] = {}
        self._expected[key] = expected
        try:
            for one in plan.create:
                made = await self._api.create(ENDPOINT_SLICES, objects.namespace(service), one)
                expected[objects.name(made)] = objects.resource_version(made)
        except errors.StatusError as error:
            if not errors.is_namespace_terminating(error):
                raise
        for one in plan.update:
            made = await self._api.update(ENDPOINT_SLICES, one)
            expected[objects.name(made)] = objects.resource_version(made)
        for one in plan.delete:
            await self._delete(one)

    def _has_caught_up(self, key: str, current: list[Object]) -> bool:
        """Every slice written last time is in the cache, at that version or a later one."""
        expected = self._expected.get(key, {})
        versions = {objects.name(one): objects.resource_version(one) for one in current}
        for name, version in list(expected.items()):
            if name in versions and int(versions[name]) >= int(version):
                del expected[name]
        return not expected

    async def _delete(self, one: Object) -> None:
        try:
            await self._api.delete(ENDPOINT_SLICES, objects.namespace(one), objects.name(one), DeleteOptions(uid=objects.uid(one)))
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise


def index_by_service(one: Object) -> list[str]:
    name = objects.labels(one).get(slices.SERVICE_NAME)
    return [f"{objects.namespace(one)}/{name}"] if name else []


def _matters(pod: Object) -> object:
    """What of a pod shows in endpoints."""
    status = pod.get("status") or {}
    ready = next((c.get("status") for c in status.get("conditions") or [] if c.get("type") == "Ready"), None)
    terminal = status.get("phase") in ("Succeeded", "Failed")
    return (
        objects.labels(pod),
        status.get("podIP"),
        ready,
        terminal,
        objects.is_being_deleted(pod),
        objects.get(pod, "spec", "nodeName"),
        objects.get(pod, "spec", "hostname"),
    )
