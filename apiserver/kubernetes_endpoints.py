"""Where the API is reached from inside the cluster: Endpoints and EndpointSlices of the service ``default/kubernetes``.

They hold the addresses of the API servers that live (kube-apiserver ``reconcilers/lease.go``). Each server has a key under
``masterleases/`` with a store lease of its own, which it keeps alive; one that has died is missing after the lease's TTL, and whoever
looks next takes its address out. Servers look at their own pace and may write at the same time: each write is a compare-and-swap of
what all of them would write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from apiserver.bootstrap import prepared
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.objectstore import codec
from apiserver.objectstore.interface import KeyNotFoundError, ObjectStoreError
from apiserver.objectstore.object_store import ObjectStore
from apiserver.registry.registry import Registry

logger = logging.getLogger(__name__)

#: kube-apiserver's: a server that is gone is taken out after 15 s at most, and looks are less than a TTL apart.
TTL_SECONDS = 15
INTERVAL_SECONDS = 10.0
_SERVICE = "kubernetes"
_SLICES = ("discovery.k8s.io", "endpointslices")


@dataclass(frozen=True, slots=True, order=True)
class ApiAddress:
    ip: str
    port: int

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"


class KubernetesEndpoints:
    """``run`` as long as the server serves, ``leave`` at its end."""

    def __init__(
        self,
        registry: Registry,
        own: ApiAddress,
        is_only: Callable[[], bool],
        passing: tuple[type[Exception], ...] = (),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """``is_only``: whether no other server can be on this store, so that nobody need be told who lives. ``passing``: errors of the
        store that are gone over."""
        self._registry = registry
        self._objects: ObjectStore = registry.objects
        self._own = own
        self._is_only = is_only
        self._passing: tuple[type[Exception], ...] = (ObjectStoreError, *passing)
        self._sleep = sleep
        self._lease = 0
        #: kube-apiserver, which may be on the same store for a while, expects an object there, and takes its address
        self._value = codec.encode(_endpoints({own.port: [own.ip]}))

    async def run(self) -> None:
        """Until cancelled. A store that is away is asked again an interval later."""
        while True:
            await self._sleep(INTERVAL_SECONDS)
            try:
                await self.keep()
            except self._passing as error:
                logger.warning("the addresses of the kubernetes service could not be kept: error=%s", error)

    async def keep(self) -> None:
        """Tell that this server lives, and make the objects say who does."""
        if self._is_only():
            await self._write([self._own])
            return
        name = f"masterleases/{self._own}"
        self._lease = await self._objects.hold_key(name, self._lease, TTL_SECONDS, self._value)
        await self._reconcile()

    async def leave(self) -> None:
        """Tell that it does not any more."""
        if self._is_only():
            return
        try:
            await self._objects.drop_key(f"masterleases/{self._own}", self._lease)
            await self._reconcile()
        except self._passing as error:
            logger.info("another server has to take this one's address out: error=%s", error)

    async def _reconcile(self) -> None:
        living = sorted({self._parsed(name) for name in await self._objects.held_keys("masterleases/")})
        await self._write(living)

    def _parsed(self, name: str) -> ApiAddress:
        """``10.0.0.1:6443``, ``[fd00::1]:6443``; kube-apiserver's key is its address alone, with the port that all servers share."""
        ip, colon, port = name.rpartition(":")
        if not colon or (":" in ip and not ip.startswith("[")) or not port.isdigit():
            return ApiAddress(name, self._own.port)
        return ApiAddress(ip.strip("[]"), int(port))

    async def _write(self, living: list[ApiAddress]) -> None:
        """Make the objects say so. Without any address they stay as they are: somebody asks, so somebody lives."""
        if not living:
            return
        by_port: dict[int, list[str]] = {}
        for address in living:
            by_port.setdefault(address.port, []).append(address.ip)
        await self._put("", "endpoints", _endpoints(by_port))
        slices = [_slice(name, port, ips) for name, port, ips in _named(by_port)]
        for obj in slices:
            await self._put(*_SLICES, obj)
        await self._remove_slices({objects.name(obj) for obj in slices})

    async def _put(self, group: str, resource: str, wanted: Object) -> None:
        store = self._registry.stored(group, resource)
        path = store.path("default", objects.name(wanted))
        content = {field: wanted[field] for field in wanted if field not in ("apiVersion", "kind", "metadata")}

        async def change(current: Any) -> Object | None:
            found = current.decode()
            if all(found.get(field) == value for field, value in content.items()):
                return None
            return {**found, **content}

        try:
            await store.storage.guaranteed_update(path, change)
        except KeyNotFoundError:
            await self._objects.create_missing([prepared(self._registry, group, resource, wanted)])

    async def _remove_slices(self, wanted: set[str]) -> None:
        """Those of ports that no server has any more."""
        storage = self._registry.stored(*_SLICES).storage
        for found in list(storage.cache.values()):
            name = found.name
            if found.namespace == "default" and name.startswith(f"{_SERVICE}-") and name not in wanted:
                if objects.labels(found.decode()).get("endpointslice.kubernetes.io/managed-by") == _MANAGER:
                    await storage.delete(found.path, found.revision)


_MANAGER = "apiserver"


def _named(by_port: dict[int, list[str]]) -> list[tuple[str, int, list[str]]]:
    """A slice has one list of ports for all of its addresses: the lowest port's has the service's name, others are named after theirs."""
    return [(_SERVICE if not position else f"{_SERVICE}-{port}", port, ips) for position, (port, ips) in enumerate(sorted(by_port.items()))]


def _endpoints(by_port: dict[int, list[str]]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": _SERVICE, "namespace": "default", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [
            {"addresses": [{"ip": ip} for ip in ips], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}
            for port, ips in sorted(by_port.items())
        ],
    }


def _slice(name: str, port: int, ips: list[str]) -> Object:
    labels = {"kubernetes.io/service-name": _SERVICE}
    if name != _SERVICE:
        labels["endpointslice.kubernetes.io/managed-by"] = _MANAGER
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "addressType": "IPv6" if ":" in ips[0] else "IPv4",
        "endpoints": [{"addresses": [ip], "conditions": {"ready": True}} for ip in ips],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
