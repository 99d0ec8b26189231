"""Cluster IPs, IP families and node ports of services: what a create or update asks for, keeps, drops and is given
(``registry/core/service/storage/alloc.go``)."""

from __future__ import annotations

from typing import Any

from apiserver.machinery import field_errors, objects, status
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.service_allocators import AllocationError, ServiceAllocators
from apiserver.registry.strategy import StrategyContext
from apiserver.registry.validation.services import NO_CLUSTER_IP, cluster_ips, is_headless, needs_health_check

_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def same_cluster_ips(spec: Object, had: Object) -> None:
    """``clusterIP`` and ``clusterIPs`` say the same: who wrote one of them wrote both. ``had`` is the old spec, {} on create."""
    ip, ips = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ())
    old_ip, old_ips = had.get("clusterIP") or "", list(had.get("clusterIPs") or ())
    if had:
        if ip != old_ip and ips == old_ips:
            ips = [ip] if ip else []
        elif ip == old_ip and not ips and old_ips:
            ip = ""
    if ip and not ips:
        ips = [ip]
    _set(spec, "clusterIP", ip)
    _set(spec, "clusterIPs", ips)


def _set(spec: Object, field: str, value: Any) -> None:
    if value:
        spec[field] = value
    else:
        spec.pop(field, None)


def _needs_cluster_ip(spec: Object) -> bool:
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def _needs_node_ports(spec: Object) -> bool:
    return spec.get("type") == "NodePort" or (spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def patch_allocated(spec: Object, had: Object) -> None:
    """An update that leaves out what the server allocated keeps it."""
    if _needs_cluster_ip(spec) and _needs_cluster_ip(had):
        if not spec.get("clusterIP") and had.get("clusterIP"):
            spec["clusterIP"] = had["clusterIP"]
        if not spec.get("clusterIPs") and had.get("clusterIPs") and spec.get("clusterIP") == had.get("clusterIP"):
            spec["clusterIPs"] = list(had["clusterIPs"])
        for field in ("ipFamilies", "ipFamilyPolicy"):
            if not spec.get(field) and had.get(field):
                spec[field] = had[field]
    if spec.get("type") in _WITH_NODE_PORTS and had.get("type") in _WITH_NODE_PORTS:
        by_name = {port.get("name") or "": port.get("nodePort") for port in had.get("ports") or ()}
        for port in spec.get("ports") or ():
            node_port = by_name.get(port.get("name") or "")
            if not port.get("nodePort") and node_port:
                port["nodePort"] = node_port
    if needs_health_check(spec) and needs_health_check(had) and not spec.get("healthCheckNodePort"):
        _set(spec, "healthCheckNodePort", had.get("healthCheckNodePort"))


def drop_unused(spec: Object, had: Object) -> None:
    """A change of type takes away what only the old type has, unless the client changed that too."""
    if not had:
        return
    if _needs_cluster_ip(had) and not _needs_cluster_ip(spec):
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            _drop_same(spec, had, field)
    if had.get("type") in _WITH_NODE_PORTS and spec.get("type") not in _WITH_NODE_PORTS:
        old_ports = {port.get("nodePort") for port in had.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort") in old_ports:
                port.pop("nodePort", None)
    if needs_health_check(had) and not needs_health_check(spec):
        _drop_same(spec, had, "healthCheckNodePort")
    if had.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop_same(spec, had, "allocateLoadBalancerNodePorts")
        _drop_same(spec, had, "loadBalancerClass")
    if had.get("type") in _WITH_NODE_PORTS and spec.get("type") not in _WITH_NODE_PORTS and not spec.get("externalIPs"):
        _drop_same(spec, had, "externalTrafficPolicy")
    if spec.get("type") == "ExternalName":
        _drop_same(spec, had, "internalTrafficPolicy")
    elif had.get("type") == "ExternalName":
        _drop_same(spec, had, "externalName")


def _drop_same(spec: Object, had: Object, field: str) -> None:
    if spec.get(field) == had.get(field):
        spec.pop(field, None)


def allocate(context: StrategyContext, obj: Object, had: Object) -> None:
    """Give the service what it needs and has not. Raises StatusError (422) where what it asks for cannot be had; whatever was
    taken for it before is given back then, and by ``context.undo`` if the write comes to nothing later."""
    allocators: ServiceAllocators = context.allocators
    taken = _Taken(context, allocators)
    try:
        errors = _allocate(allocators, taken, obj["spec"], had)
    except AllocationError as error:
        errors = [error.error]
    if errors:
        taken.release()
        raise status.invalid("", "Service", objects.name(obj), errors)
    taken.hand_over()


class _Taken:
    """What one write has been given so far."""

    def __init__(self, context: StrategyContext, allocators: ServiceAllocators) -> None:
        self._context = context
        self._allocators = allocators
        self._ips: list[str] = []
        self._ports: list[int] = []

    def cluster_ip(self, path: str, family: str, wanted: str) -> str:
        try:
            ip = self._allocators.allocate_ip(family, wanted)
        except ValueError as error:
            words = f"failed to allocate IP {wanted}: {error}" if wanted else f"failed to allocate a serviceIP: {error}"
            raise AllocationError(field_errors.invalid(path, [wanted] if wanted else [], words)) from error
        self._ips.append(ip)
        return ip

    def node_port(self, path: str, wanted: int) -> int:
        try:
            port = self._allocators.allocate_port(wanted)
        except ValueError as error:
            raise AllocationError(field_errors.invalid(path, wanted, str(error))) from error
        self._ports.append(port)
        return port

    def release(self) -> None:
        for ip in self._ips:
            self._allocators.release_ip(ip)
        for port in self._ports:
            self._allocators.release_port(port)

    def hand_over(self) -> None:
        """A dry run keeps nothing; a real write may still fail."""
        if self._context.dry_run:
            self.release()
        elif self._ips or self._ports:
            self._context.undo.append(self.release)


def _allocate(allocators: ServiceAllocators, taken: _Taken, spec: Object, had: Object) -> list[FieldError]:
    if spec.get("type") == "ExternalName":
        return []
    wrong: list[FieldError] = []
    cluster_ips(wrong, spec)
    errors = wrong or _choose_families(allocators, spec)
    if errors:
        return errors
    if _needs_cluster_ip(spec) and not is_headless(spec):
        _cluster_ips(taken, spec, had)
    if _needs_node_ports(spec):
        _node_ports(taken, spec, had)
    elif spec.get("type") == "LoadBalancer":
        for i, port in enumerate(spec.get("ports") or ()):
            if port.get("nodePort") and not _had_port(had, port["nodePort"]):
                taken.node_port(f"spec.ports[{i}].nodePort", port["nodePort"])
    if needs_health_check(spec):
        wanted, before = spec.get("healthCheckNodePort") or 0, had.get("healthCheckNodePort") or 0
        if before and wanted != before and needs_health_check(had):
            words = "cannot change healthCheckNodePort on loadBalancer service with externalTraffic=Local during update"
            return [field_errors.invalid("spec.healthCheckNodePort", wanted, words)]
        if not wanted or wanted != before:
            spec["healthCheckNodePort"] = taken.node_port("spec.healthCheckNodePort", wanted)
    return []


def _choose_families(allocators: ServiceAllocators, spec: Object) -> list[FieldError]:
    """Fills in ``ipFamilies`` and ``ipFamilyPolicy`` from what the service says and the cluster has."""
    families, policy, ips = list(spec.get("ipFamilies") or ()), spec.get("ipFamilyPolicy"), list(spec.get("clusterIPs") or ())
    available = list(allocators.families)
    if is_headless(spec) and not spec.get("selector"):
        # nobody but the writer of its endpoints knows which families they have
        families = families or [available[0]]
        if len(families) < 2 and policy != "SingleStack":
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
        spec["ipFamilies"] = families
        spec["ipFamilyPolicy"] = policy or ("RequireDualStack" if len(families) == 2 else "SingleStack")
        return []
    for i, ip in enumerate(ips):
        if ip != NO_CLUSTER_IP and i >= len(families):
            families.append("IPv6" if ":" in ip else "IPv4")
    for i, family in enumerate(families):
        if family in ("IPv4", "IPv6") and family not in available:
            if i == 0 or policy == "RequireDualStack":
                return [field_errors.invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")]
    if policy == "RequireDualStack" and len(available) < 2:
        return [field_errors.invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")]
    policy = policy or ("RequireDualStack" if len(families) == 2 else "SingleStack")
    families = families or [available[0]]
    if policy != "SingleStack" and len(families) < 2:
        families += [family for family in available if family not in families]
    if policy == "PreferDualStack":
        families = [family for family in families if family in available]
    spec["ipFamilies"], spec["ipFamilyPolicy"] = families, policy
    return []


def _cluster_ips(taken: _Taken, spec: Object, had: Object) -> None:
    old = set(had.get("clusterIPs") or ())
    ips = list(spec.get("clusterIPs") or ())
    for i, family in enumerate(spec["ipFamilies"]):
        wanted = ips[i] if i < len(ips) else ""
        if wanted in old and wanted:
            continue
        ip = taken.cluster_ip(f"spec.clusterIPs[{i}]" if wanted else "spec.clusterIPs", family, wanted)
        ips[i:] = [ip, *ips[i + 1 :]]
    spec["clusterIPs"] = ips
    spec["clusterIP"] = ips[0]


def _had_port(had: Object, node_port: int) -> bool:
    return any(port.get("nodePort") == node_port for port in had.get("ports") or ())


def _node_ports(taken: _Taken, spec: Object, had: Object) -> None:
    """Those that are asked for first, so that none of them is given to another port of the service; then one for each port number
    that has none: a number that is served over two protocols has the same one in both."""
    ports = spec.get("ports") or ()
    mine: set[int] = set()
    by_number: dict[int, int] = {}
    for i, port in enumerate(ports):
        wanted = port.get("nodePort") or 0
        if not wanted:
            continue
        if wanted not in mine and not _had_port(had, wanted):
            taken.node_port(f"spec.ports[{i}].nodePort", wanted)
        mine.add(wanted)
        by_number.setdefault(port.get("port") or 0, wanted)
    for i, port in enumerate(ports):
        number = port.get("port") or 0
        if not port.get("nodePort"):
            if number not in by_number:
                by_number[number] = taken.node_port(f"spec.ports[{i}].nodePort", 0)
            port["nodePort"] = by_number[number]
