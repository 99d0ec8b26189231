"""What is wrong with the addresses and ports of the services that are stored: found, told, and left to whoever made them
(``registry/core/service/ipallocator/controller`` and ``portallocator/controller``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.registry.service_allocators import IpNetwork, canonical, cluster_ips, ip_claim, port_claim
from apiserver.registry.validation import formats

IP_CONTROLLER = "ipallocator-repair-controller"
PORT_CONTROLLER = "portallocator-repair-controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An Event to be: ``controller`` says ``note`` about ``about``."""

    about: Object
    controller: str
    reason: str
    action: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """``networks``: at least one. ``several``: they are ServiceCIDR objects (1.33), of which messages name none in particular."""

    networks: Sequence[IpNetwork]
    ports: range
    several: bool


def find(services: Sequence[Object], owners: Mapping[str, str], ranges: Ranges, revision: int) -> list[Finding]:
    """``owners``: the path of the service that has a claim in the store. Where that one does not say so itself, the first that does
    has it. Services of a later ``revision`` had their claims written with them."""
    wanted: dict[str, list[str]] = {}
    for service in services:
        for claim in _claims(service):
            wanted.setdefault(claim, []).append(_path(service))
    has = {claim: owners[claim] if owners.get(claim) in paths else paths[0] for claim, paths in wanted.items()}
    found: list[Finding] = []
    for service in services:
        owned = has if int(objects.resource_version(service) or 0) > revision else owners
        found += _ips(service, owned, has, ranges)
        found += _ports(service, owned, has, ranges)
    return found


def _path(service: Object) -> str:
    return f"{objects.namespace(service)}/{objects.name(service)}"


def _claims(service: Object) -> Iterator[str]:
    yield from (ip_claim(canonical(ip)) for ip in cluster_ips(service))
    yield from dict.fromkeys(port_claim(port) for port in _node_ports(service))


def _ips(service: Object, owners: Mapping[str, str], has: Mapping[str, str], ranges: Ranges) -> Iterator[Finding]:
    def finding(reason: str, action: str, note: str) -> Finding:
        return Finding(about=service, controller=IP_CONTROLLER, reason=reason, action=action, note=note)

    for text in cluster_ips(service):
        ip = formats.parse_ip(text)
        if ip is None:
            # upstream says <nil> in place of the address
            yield finding("ClusterIPNotValid", "ClusterIPValidation", f"Cluster IP {text} is not a valid IP; please recreate service")
            continue
        family = f"IPv{ip.version}"
        networks = [network for network in ranges.networks if network.version == ip.version]
        if not networks and not ranges.several:
            words = f"Cluster IP {ip}({family}) is of ip family that is no longer configured on cluster; please recreate service"
            yield finding("ClusterIPNotValid", "ClusterIPValidation", words)
        elif not any(ip in network for network in networks):
            which = "any configured Service CIDR" if ranges.several else f"the service CIDR {networks[0]}"
            words = f"Cluster IP [{family}]: {ip}" if ranges.several else f"Cluster IP [{family}]:{ip}"
            yield finding("ClusterIPOutOfRange", "ClusterIPAllocation", f"{words} is not within {which}; please recreate service")
        elif has[ip_claim(str(ip))] != _path(service):
            words = f"Cluster IP [{family}]:{ip} was assigned to multiple services; please recreate service"
            yield finding("ClusterIPAlreadyAllocated", "ClusterIPAllocation", words)
        elif owners.get(ip_claim(str(ip))) != _path(service):
            words = f"Cluster IP [{family}]: {ip}" if ranges.several else f"Cluster IP [{family}]:{ip}"
            words += " is not allocated; repairing"
            if ranges.several and ip_claim(str(ip)) in owners:
                words = f"the ClusterIP [{family}]: {ip} for Service {_path(service)} has a wrong reference; repairing"
            yield finding("ClusterIPNotAllocated", "ClusterIPAllocation", words)


def _ports(service: Object, owners: Mapping[str, str], has: Mapping[str, str], ranges: Ranges) -> Iterator[Finding]:
    def finding(reason: str, note: str) -> Finding:
        return Finding(about=service, controller=PORT_CONTROLLER, reason=reason, action="PortAllocation", note=note)

    seen: set[int] = set()
    for port in _node_ports(service):
        if port not in ranges.ports:
            which = f"{ranges.ports[0]}-{ranges.ports[-1]}"
            yield finding("PortOutOfRange", f"Port {port} is not within the port range {which}; please recreate service")
        elif port in seen or has[port_claim(port)] != _path(service):
            yield finding("PortAlreadyAllocated", f"Port {port} was assigned to multiple services; please recreate service")
        elif owners.get(port_claim(port)) != _path(service):
            yield finding("PortNotAllocated", f"Port {port} is not allocated; repairing")
        seen.add(port)


def _node_ports(service: Object) -> list[int]:
    """A port that serves several protocols is one; one that serves a protocol twice is two."""
    found: list[int] = []
    protocols: dict[int, set[str]] = {}
    spec = service.get("spec") or {}
    stated: Iterable[tuple[int, str]] = [(port.get("nodePort") or 0, port.get("protocol") or "TCP") for port in spec.get("ports") or ()]
    for port, protocol in (*stated, (spec.get("healthCheckNodePort") or 0, "TCP")):
        if not port:
            continue
        known = protocols.setdefault(port, set())
        if not known or protocol in known:
            found.append(port)
        known.add(protocol)
    return found
