"""Cluster IPs, IP families and node ports of services: what a create or update asks for, keeps, drops and is given
(``registry/core/service/storage/alloc.go``)."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.machinery import field_errors, objects, status
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.service_allocators import AllocationError, ServiceAllocators
from apiserver.registry.strategy import StrategyContext
from apiserver.registry.validation.services import NO_CLUSTER_IP, cluster_ips, externally_accessible, is_headless, needs_health_check

_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def same_cluster_ips(spec: Object, had: Object) -> None:
    """``clusterIP`` and ``clusterIPs`` say the same: who wrote one of them wrote both. ``had`` is the old spec, {} on create."""
    ip, ips = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ())
    old_ip, old_ips = had.get("clusterIP") or "", list(had.get("clusterIPs") or ())
    if not had:
        if ip and not ips:
            ips = [ip]
    elif ip == old_ip:
        ips = ips or old_ips
    elif ips == old_ips:
        ips = [ip] if ip or not old_ip else []
    _set(spec, "clusterIP", ip)
    _set(spec, "clusterIPs", ips)


def _set(spec: Object, field: str, value: Any) -> None:
    if value:
        spec[field] = value
    else:
        spec.pop(field, None)


def _needs_cluster_ip(spec: Object) -> bool:
    """Also of a type that there is not: validation is to speak of the type alone then."""
    return spec.get("type") != "ExternalName"


def _allocates_node_ports(spec: Object) -> bool:
    return spec.get("type") == "NodePort" or (spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def patch_allocated(spec: Object, had: Object) -> None:
    """An update that leaves out what the server allocated keeps it."""
    if _needs_cluster_ip(spec) and _needs_cluster_ip(had):
        for field in ("clusterIP", "clusterIPs"):
            if not spec.get(field) and had.get(field):
                spec[field] = copy.copy(had[field])
    if spec.get("type") in _WITH_NODE_PORTS and had.get("type") in _WITH_NODE_PORTS:
        by_name = {port.get("name") or "": port.get("nodePort") for port in had.get("ports") or ()}
        taken = _node_ports_of(spec) & _node_ports_of(had)
        for port in spec.get("ports") or ():
            node_port = by_name.get(port.get("name") or "")
            if not port.get("nodePort") and node_port and node_port not in taken:
                port["nodePort"] = node_port
    if needs_health_check(spec) and needs_health_check(had) and not spec.get("healthCheckNodePort"):
        _set(spec, "healthCheckNodePort", had.get("healthCheckNodePort"))


def _node_ports_of(spec: Object) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def drop_unused(obj: Object, had: Object) -> None:
    """A change of type takes away what only the old type has, unless the client changed that too, which validation is to refuse."""
    spec, kind, old_kind = obj["spec"], obj["spec"].get("type"), had.get("type")
    if _needs_cluster_ip(had) and not _needs_cluster_ip(spec):
        if all(spec.get(field) == had.get(field) for field in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        for field in ("ipFamilies", "ipFamilyPolicy"):
            _drop_same(spec, had, field)
    if old_kind in _WITH_NODE_PORTS and kind not in _WITH_NODE_PORTS and _node_ports_of(spec) == _node_ports_of(had):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_check(had) and not needs_health_check(spec):
        _drop_same(spec, had, "healthCheckNodePort")
    if old_kind == "LoadBalancer" and kind != "LoadBalancer":
        _drop_same(spec, had, "allocateLoadBalancerNodePorts")
        _drop_same(spec, had, "loadBalancerClass")
    if externally_accessible(had) and not externally_accessible(spec):
        _drop_same(spec, had, "externalTrafficPolicy")
    if kind != "LoadBalancer":
        # the provider takes the balancer down later; nobody needs to see that
        obj["status"] = {**(obj.get("status") or {}), "loadBalancer": {}}


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

    def cluster_ip(self, family: str, wanted: str, ips: list[str]) -> str:
        """``ips`` is what the service says, for the message."""
        try:
            ip = self._allocators.allocate_ip(family, wanted)
        except ValueError as error:
            words = f"failed to allocate IP {wanted}: {error}" if wanted else f"failed to allocate a serviceIP: {error}"
            raise AllocationError(field_errors.invalid("spec.clusterIPs", ips, words)) from error
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
    if _needs_cluster_ip(spec) and not _settled_families(spec, had):
        if errors := _choose_families(allocators, spec, had):
            return errors
        if not is_headless(spec) and not is_headless(had):
            _cluster_ips(taken, spec, had)
    if spec.get("type") in _WITH_NODE_PORTS:
        _node_ports(taken, spec, had)
    if needs_health_check(spec) and not needs_health_check(had):
        spec["healthCheckNodePort"] = taken.node_port("spec.healthCheckNodePort", spec.get("healthCheckNodePort") or 0)
    return []


def _settled_families(spec: Object, had: Object) -> bool:
    """A service that prefers two families and is otherwise as it was: it does not follow a cluster that gets or loses its second
    family until somebody changes the service."""
    return (
        spec.get("ipFamilyPolicy") == "PreferDualStack"
        and had.get("ipFamilyPolicy") in (None, "PreferDualStack")
        and spec.get("type") == had.get("type")
        and spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")
        and _same(spec, had, "clusterIPs")
        and _same(spec, had, "ipFamilies")
    )


def _same(spec: Object, had: Object, field: str) -> bool:
    return list(spec.get(field) or ()) == list(had.get(field) or ())


def _choose_families(allocators: ServiceAllocators, spec: Object, had: Object) -> list[FieldError]:
    """Fills in ``ipFamilies`` and ``ipFamilyPolicy`` from what the service says and the cluster has."""
    selectorless = spec.get("clusterIP") == NO_CLUSTER_IP and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy") or had.get("ipFamilyPolicy") or ("RequireDualStack" if selectorless else "SingleStack")
    spec["ipFamilyPolicy"] = policy
    wrong: list[FieldError] = []
    cluster_ips(wrong, spec)
    if wrong:
        return wrong
    if had:
        wrong += _fewer(spec, had, policy)
    ips, families = list(spec.get("clusterIPs") or ()), list(spec.get("ipFamilies") or ())
    if policy == "SingleStack":
        for found, what in ((ips, "cluster IPs"), (families, "IP families")):
            if len(found) == 2:
                words = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                wrong.append(field_errors.invalid("spec.ipFamilyPolicy", policy, words))
    available = list(allocators.families)
    if not is_headless(spec):
        for i, ip in enumerate(ips[len(families) :], len(families)):
            family = "IPv6" if ":" in ip else "IPv4"
            if family in available:
                families.append(family)
            else:
                wrong.append(field_errors.invalid(f"spec.clusterIPs[{i}]", ips, f"{family} is not configured on this cluster"))
    if wrong:
        return wrong
    if selectorless:
        # nobody but the writer of its endpoints knows which families they have
        families = families or [available[0]]
    else:
        if policy == "RequireDualStack" and len(available) < 2:
            wrong.append(field_errors.invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services"))
        for i, family in enumerate(families):
            if family not in available:
                wrong.append(field_errors.invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster"))
        families = families or [available[0]]
    if len(families) < 2 and policy != "SingleStack" and (selectorless or len(available) == 2):
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families
    return wrong


def _fewer(spec: Object, had: Object, policy: str) -> list[FieldError]:
    """An update that names fewer addresses or families than there were: what the policy SingleStack alone may do, which by itself
    lets go of the second ones."""
    wrong = []
    for field, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        now, was = list(spec.get(field) or ()), list(had.get(field) or ())
        if policy == "SingleStack":
            if now == was and len(now) > 1:
                spec[field] = now[:1]
        elif now and len(now) < len(was):
            words = f"must be 'SingleStack' to release the secondary {what}"
            wrong.append(field_errors.invalid("spec.ipFamilyPolicy", policy, words))
    return wrong


def _cluster_ips(taken: _Taken, spec: Object, had: Object) -> None:
    """For each family that has none. The first of an update is as it was, or validation refuses it."""
    old = list(had.get("clusterIPs") or ()) if _needs_cluster_ip(had) else []
    ips = list(spec.get("clusterIPs") or ())
    for i, family in enumerate(spec["ipFamilies"]):
        if i < len(old):
            continue
        ips += [""] * (i + 1 - len(ips))
        ips[i] = taken.cluster_ip(family, ips[i], ips)
    if ips:
        spec["clusterIPs"] = ips
        if not old:
            spec["clusterIP"] = ips[0]


def _node_ports(taken: _Taken, spec: Object, had: Object) -> None:
    """A new service has one port for a number, over whatever protocols it is served; an update gives each that has none its own.
    Those that are asked for come first, so that none of them is given to another port of the service."""
    ports, old = spec.get("ports") or (), _node_ports_of(had)
    mine: set[tuple[int, int]] = set()
    by_number: dict[int, int] = {}
    for i, port in enumerate(ports):
        wanted, number = port.get("nodePort") or 0, port.get("port") or 0
        key = (0, wanted) if had else (number, wanted)
        if wanted and key not in mine:
            if wanted not in old:
                taken.node_port(f"spec.ports[{i}].nodePort", wanted)
            mine.add(key)
        if wanted:
            by_number.setdefault(number, wanted)
    if not _allocates_node_ports(spec):
        return
    for i, port in enumerate(ports):
        number = port.get("port") or 0
        if not port.get("nodePort"):
            if had or number not in by_number:
                by_number[number] = taken.node_port(f"spec.ports[{i}].nodePort", 0)
            port["nodePort"] = by_number[number]
