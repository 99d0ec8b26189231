"""ServiceCIDR and IPAddress objects, in which Kubernetes from 1.33 on keeps the ranges of cluster IPs and who has which.

An IPAddress of a service is one of the service's claims: written in the transaction that writes the service, and deleted with it. So one
can be missing or left over only where somebody else wrote; ``plan`` finds those.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apiserver.machinery import names, objects, timestamps
from apiserver.machinery.objects import Object
from apiserver.objectstore.kv_object_storage import KvObjectStorage
from apiserver.registry.registry import Registry
from apiserver.registry.service_allocators import ADDRESS_CLAIMS, IpNetwork, canonical, cluster_ips, contains
from apiserver.registry.service_findings import IP_CONTROLLER, Finding
from apiserver.registry.validation import formats

GROUP = "networking.k8s.io"
ADDRESSES = "ipaddresses"
CIDRS = "servicecidrs"
#: MultiCIDRServiceAllocator is on by default from here
SINCE_MINOR = 33

DEFAULT_CIDR = "kubernetes"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
FAMILY_LABEL = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY_LABEL = "ipaddress.kubernetes.io/managed-by"
MANAGER = "ipallocator.k8s.io"
#: how long an IPAddress may be there without its service: kube-apiserver writes it first
LEAK_GRACE_SECONDS = 60.0


def are_objects(registry: Registry) -> bool:
    """Whether the served version keeps them, and serves what it keeps."""
    return registry.table.minor >= SINCE_MINOR and all(registry.table.preferred(GROUP, resource) for resource in (ADDRESSES, CIDRS))


def api_version(registry: Registry, resource: str) -> str:
    """In which objects are stored. Not from a Store, with which the rules of the kinds would be loaded at every start."""
    info = registry.table.preferred(GROUP, resource)
    assert info is not None, resource
    return (registry.table.storage_info(info) or info).api_version


def ip_address(registry: Registry, ip: str, namespace: str, name: str) -> Object:
    """The IPAddress of a service."""
    env = registry.env
    return {
        "apiVersion": api_version(registry, ADDRESSES),
        "kind": "IPAddress",
        "metadata": {
            "name": ip,
            "uid": names.new_uid(env.random),
            "creationTimestamp": env.clock.text(),
            "labels": {FAMILY_LABEL: _family(ip), MANAGED_BY_LABEL: MANAGER},
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
    }


def claim_object(registry: Registry, claim: str, service: Object) -> tuple[KvObjectStorage, Object] | None:
    """``KvObjectStorage.claim_object`` of services."""
    ip = claim.removeprefix(ADDRESS_CLAIMS)
    if ip == claim:
        return None
    address = ip_address(registry, ip, objects.namespace(service), objects.name(service))
    return registry.storage(GROUP, ADDRESSES), address


def _family(ip: str) -> str:
    return "IPv6" if ":" in ip else "IPv4"


def default_cidr(registry: Registry, cidrs: Sequence[str]) -> Object:
    """What the flags say, as an object."""
    condition = ready_condition(registry.env.clock.text(), "Kubernetes default Service CIDR is ready")
    return {
        "apiVersion": api_version(registry, CIDRS),
        "kind": "ServiceCIDR",
        "metadata": {"name": DEFAULT_CIDR, "finalizers": [FINALIZER]},
        "spec": {"cidrs": [str(ipaddress.ip_network(cidr, strict=False)) for cidr in cidrs]},
        "status": {"conditions": [condition]},
    }


def ready_condition(now: str, message: str, *, status: str = "True", reason: str = "") -> Object:
    return {"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": now}


def condition_of(cidr: Object) -> Object | None:
    conditions = objects.get(cidr, "status", "conditions", default=()) or ()
    return next((each for each in conditions if each.get("type") == "Ready"), None)


def is_ready(cidr: Object) -> bool:
    """For new addresses. One without the condition is: nobody may be there to set it."""
    condition = condition_of(cidr)
    return not objects.is_being_deleted(cidr) and (condition is None or condition.get("status") == "True")


def networks_of(cidr: Object) -> list[IpNetwork]:
    parsed = (formats.parse_cidr(text) for text in objects.get(cidr, "spec", "cidrs", default=()) or ())
    return [network for network in parsed if network is not None]


def ready_networks(cidrs: Sequence[Object]) -> tuple[IpNetwork, ...]:
    """The default ones first, then those of the other objects by their names; each once."""
    ordered = sorted(cidrs, key=lambda cidr: (objects.name(cidr) != DEFAULT_CIDR, objects.name(cidr)))
    return tuple(dict.fromkeys(network for cidr in ordered if is_ready(cidr) for network in networks_of(cidr)))


def may_go(cidr: Object, others: Sequence[Object], addresses: Sequence[Object]) -> bool:
    """Whether no address of a service would be left outside every range (``servicecidrs_controller.go``)."""
    elsewhere = [network for other in others for network in networks_of(other)]
    own = networks_of(cidr)
    if all(any(_inside(network, other) for other in elsewhere) for network in own):
        return True
    for address in addresses:
        ip = formats.parse_ip(objects.name(address))
        if ip is None or not is_managed(address) or not any(contains(network, ip) for network in own):
            continue
        if not any(contains(other, ip) for other in elsewhere):
            return False
    return True


def _inside(network: IpNetwork, other: IpNetwork) -> bool:
    return network.version == other.version and network.network_address in other and network.prefixlen >= other.prefixlen


def is_managed(address: Object) -> bool:
    return objects.labels(address).get(MANAGED_BY_LABEL) == MANAGER


def service_of(address: Object) -> str:
    """The path of the service that an IPAddress says it is of; "" of another kind of parent."""
    parent = objects.get(address, "spec", "parentRef", default={}) or {}
    if parent.get("group") or parent.get("resource") != "services":
        return ""
    return f"{parent.get('namespace') or ''}/{parent.get('name') or ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """``finding`` None: told about the service already."""

    name: str
    revision: int
    finding: Finding | None


def plan(addresses: Sequence[Object], services: Mapping[str, Object], now: float) -> list[Deletion]:
    """The IPAddress objects to take away; those that services need are made anew. ``services`` by their paths. Two services with one
    address are left to be told of: the IPAddress says whose it is."""
    wanted = {canonical(ip) for service in services.values() for ip in cluster_ips(service)} - {""}
    found: list[Deletion] = []
    for address in addresses:
        name, path = objects.name(address), service_of(address)
        service = services.get(path)
        holds = service is not None and name in map(canonical, cluster_ips(service))
        finding = None
        if name in wanted:
            if holds and is_managed(address) and objects.labels(address).get(FAMILY_LABEL) == _family(name):
                continue
        elif not is_managed(address):
            continue
        elif not path:
            parent = objects.get(address, "spec", "parentRef", default={})
            words = f"IPAddress {name} appears to have been modified, not referencing a Service {parent}: cleaning up"
            finding = _about(address, "IPAddressNotAllocated", words)
        elif service is None:
            if now - timestamps.parse_time(address["metadata"]["creationTimestamp"]).timestamp() <= LEAK_GRACE_SECONDS:
                continue
            words = f"IPAddress: {name} for Service {path} appears to have leaked: cleaning up"
            finding = _about(address, "IPAddressNotAllocated", words)
        else:
            words = f"IPAddress: {name} for Service {path} has a wrong reference; cleaning up"
            finding = _about(address, "IPAddressWrongReference", words)
        found.append(Deletion(name=name, revision=int(objects.resource_version(address)), finding=finding))
    return found


def _about(address: Object, reason: str, note: str) -> Finding:
    return Finding(about=address, controller=IP_CONTROLLER, reason=reason, action="IPAddressAllocation", note=note)
