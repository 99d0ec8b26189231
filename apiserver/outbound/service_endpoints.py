"""Where a service is, for a server that is not in the cluster's network (kube-apiserver's ``--enable-aggregator-routing``).

Addresses of services lead nowhere without kube-proxy, so requests go to one of the service's endpoints, which its EndpointSlices list, or
where there are none its Endpoints. A service of type ExternalName stands for a name, which is looked up in the DNS: ``externalName:
localhost`` is an extension server on this machine. ``default/kubernetes`` is this API server.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

SLICES = ("discovery.k8s.io", "endpointslices")
SERVICE_LABEL = "kubernetes.io/service-name"


class Objects(Protocol):
    """The caches (``registry.CachedObjects``)."""

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None: ...

    def list(self, group: str, resource: str, namespace: str = "") -> list[Object]: ...


class UnresolvedError(Exception):
    """There is no address to go to."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def places(cached: Objects, namespace: str, name: str, port: int) -> list[Place]:
    """Every address at which the service's port is served, sorted. Raises UnresolvedError."""
    service = cached.get("", "services", namespace, name)
    if service is None:
        raise UnresolvedError(f'service "{name}" not found')
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return [Place(spec.get("externalName") or "", port)]
    service_port = port_of(spec, port)
    if service_port is None:
        raise UnresolvedError(f'no service port {port} found for service "{name}"')
    found = sorted(set(_of_slices(slices_of(cached, namespace, name), service_port.get("name") or "")))
    if not found:
        found = sorted(set(_of_endpoints(cached.get("", "endpoints", namespace, name), service_port.get("name") or "")))
    if not found:
        raise UnresolvedError(f'no endpoints available for service "{name}"')
    return found


def choose(cached: Objects, namespace: str, name: str, port: int, source: random.Random) -> Place:
    """One of them. Raises UnresolvedError."""
    return source.choice(places(cached, namespace, name, port))


def port_of(spec: Object, port: int) -> Object | None:
    """The service's port of this number."""
    return next((entry for entry in spec.get("ports") or () if entry.get("port") == port), None)


def slices_of(cached: Objects, namespace: str, name: str) -> list[Object]:
    found = cached.list(*SLICES, namespace)
    return [one for one in found if objects.labels(one).get(SERVICE_LABEL) == name]


def has_endpoint(slices: list[Object], port_name: str) -> bool:
    """Whether one is ready, with a port of this name."""
    return any(True for _ in _of_slices(slices, port_name))


def endpoints_have(endpoints: Object | None, port_name: str) -> bool:
    return any(True for _ in _of_endpoints(endpoints, port_name))


def _of_slices(slices: list[Object], port_name: str) -> Any:
    for one in slices:
        numbers = [p["port"] for p in one.get("ports") or () if (p.get("name") or "") == port_name and p.get("port")]
        for endpoint in one.get("endpoints") or ():
            # what does not say whether it is ready is
            if objects.get(endpoint, "conditions", "ready") is not False:
                for address in endpoint.get("addresses") or ():
                    for number in numbers:
                        yield Place(address, number)


def _of_endpoints(endpoints: Object | None, port_name: str) -> Any:
    for subset in (endpoints or {}).get("subsets") or ():
        for port in subset.get("ports") or ():
            if (port.get("name") or "") == port_name:
                for address in subset.get("addresses") or ():
                    yield Place(address["ip"], port["port"])
