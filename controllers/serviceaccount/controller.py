"""Two controllers of one shape: an object that each namespace must have."""

from __future__ import annotations

from abc import ABC, abstractmethod

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 2
DEFAULT_ACCOUNT = "default"
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
ROOT_CA_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or "
    "kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)


class PerNamespace(ABC):
    """Keys are namespaces' names."""

    def __init__(self, context: ControllerContext, component: str, resource: Resource, name: str) -> None:
        self._api, self._component, self._resource, self._name = context.api, component, resource, name
        self.queue = RateLimitingQueue(context.clock)
        self._namespaces = context.informers.informer(NAMESPACES)
        self._objects = context.informers.informer(resource)
        self._namespaces.add_handler(EventHandler(on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new)))
        self._objects.add_handler(EventHandler(on_update=lambda _, new: self._on_object(new), on_delete=self._on_object))

    async def run(self) -> None:
        await run_workers(self._component, self.queue, self.sync, workers=WORKERS)

    def _enqueue(self, namespace: Object) -> None:
        self.queue.add(objects.name(namespace))

    def _on_object(self, obj: Object) -> None:
        if objects.name(obj) == self._name:
            self.queue.add(objects.namespace(obj))

    async def sync(self, namespace: str) -> None:
        found = self._namespaces.indexer.get(namespace)
        if found is None or objects.is_being_deleted(found) or objects.get(found, "status", "phase") == "Terminating":
            return
        existing = self._objects.indexer.get(key(namespace, self._name))
        try:
            if existing is None:
                await self._api.create(self._resource, namespace, self.wanted(namespace))
            elif (repaired := self.repaired(existing)) is not None:
                await self._api.update(self._resource, repaired)
        except errors.StatusError as error:
            if not errors.is_already_exists(error) and not errors.is_namespace_terminating(error) and not errors.is_not_found(error):
                raise

    @abstractmethod
    def wanted(self, namespace: str) -> Object:
        """The object as it is made."""

    @abstractmethod
    def repaired(self, existing: Object) -> Object | None:
        """The object as it should be, where it is not."""


class ServiceAccountsController(PerNamespace):
    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context, "service-account-controller", SERVICE_ACCOUNTS, DEFAULT_ACCOUNT)

    def wanted(self, namespace: str) -> Object:
        return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT_ACCOUNT, "namespace": namespace}}

    def repaired(self, existing: Object) -> Object | None:
        return None  # whatever is in it is its users'


class RootCAPublisher(PerNamespace):
    """``root_ca`` is PEM text."""

    def __init__(self, context: ControllerContext, root_ca: str) -> None:
        super().__init__(context, "root-ca-cert-publisher", CONFIG_MAPS, ROOT_CA_CONFIG_MAP)
        self._data = {"ca.crt": root_ca}

    def wanted(self, namespace: str) -> Object:
        metadata = {"name": ROOT_CA_CONFIG_MAP, "namespace": namespace, "annotations": {"kubernetes.io/description": ROOT_CA_DESCRIPTION}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(self._data)}

    def repaired(self, existing: Object) -> Object | None:
        return None if existing.get("data") == self._data else {**existing, "data": dict(self._data)}
