"""Services: ports, addresses and families, traffic policies, and what an update may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from apiserver.registry.validation import addresses, formats
from apiserver.registry.validation.common import Errors, checked, each, labels, one_of, port_number_or_name

Part = Mapping[str, Any]

AFFINITY_SECONDS_MAX = 86400
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_TRAFFIC_DISTRIBUTIONS = ("PreferClose", "PreferSameNode", "PreferSameZone")
_NOTHING: Part = {}
NO_CLUSTER_IP = "None"


def is_headless(spec: Part) -> bool:
    return list(spec.get("clusterIPs") or ()) == [NO_CLUSTER_IP]


def needs_health_check(spec: Part) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def externally_accessible(spec: Part) -> bool:
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def create(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    kind, headless, ports = spec.get("type") or "", is_headless(spec), spec.get("ports") or ()
    _topology_annotations(out, (obj.get("metadata") or _NOTHING).get("annotations") or _NOTHING)
    if not ports and not headless and kind != "ExternalName":
        out.append(required("spec.ports"))
    _by_type(out, spec, kind, headless)
    seen: set[str] = set()
    for i, port in each(out, ports):
        _port(out, f"spec.ports[{i}]", port, len(ports) > 1, seen)
    labels(out, "spec.selector", spec.get("selector"))
    _session_affinity(out, spec)
    if kind != "ExternalName":
        cluster_ips(out, spec)
    for i, address in each(out, spec.get("externalIPs") or ()):
        before = len(out)
        for message in formats.ip_address(address):
            out.append(invalid(f"spec.externalIPs[{i}]", address, message))
        if len(out) == before:
            addresses.not_special(out, f"spec.externalIPs[{i}]", address)
    one_of(out, "spec.type", kind, _TYPES)
    _port_uniqueness(out, kind, ports)
    _load_balancer(out, obj, spec, kind)
    _traffic(out, spec, kind)
    return out


def _topology_annotations(out: Errors, annotations: Part) -> None:
    """The older name of the annotation may stand beside the newer one, with the same value."""
    older, newer = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
    if older in annotations and newer in annotations and annotations[older] != annotations[newer]:
        words = f"must match annotations[{older}] when both are specified"
        out.append(invalid(f"metadata.annotations[{newer}]", annotations[newer], words))


def _by_type(out: Errors, spec: Part, kind: str, headless: bool) -> None:
    if kind == "LoadBalancer":
        if headless:
            out.append(invalid("spec.clusterIPs[0]", NO_CLUSTER_IP, "may not be set to 'None' for LoadBalancer services"))
    elif kind == "NodePort":
        if headless:
            out.append(invalid("spec.clusterIPs[0]", NO_CLUSTER_IP, "may not be set to 'None' for NodePort services"))
    elif kind == "ExternalName":
        for field in ("clusterIPs", "ipFamilies"):
            if spec.get(field):
                out.append(forbidden(f"spec.{field}", "may not be set for ExternalName services"))
        if spec.get("ipFamilyPolicy") is not None:
            out.append(forbidden("spec.ipFamilyPolicy", "may not be set for ExternalName services"))
        # a CNAME may end in a dot, which says that it is fully qualified
        target = (spec.get("externalName") or "").removesuffix(".")
        if target:
            checked(out, "spec.externalName", target, names.dns1123_subdomain)
        else:
            out.append(required("spec.externalName"))


def _port(out: Errors, path: str, port: Part, needs_name: bool, seen: set[str]) -> None:
    name = port.get("name") or ""
    if name:
        checked(out, f"{path}.name", name, names.dns1123_label)
        if name in seen:
            out.append(duplicate(f"{path}.name", name))
        seen.add(name)
    elif needs_name:
        out.append(required(f"{path}.name"))
    number = port.get("port") or 0
    for message in names.port_number(number):
        out.append(invalid(f"{path}.port", number, message))
    one_of(out, f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
    port_number_or_name(out, f"{path}.targetPort", port.get("targetPort"))
    if (protocol := port.get("appProtocol")) is not None:
        checked(out, f"{path}.appProtocol", protocol, names.qualified_name)


def _session_affinity(out: Errors, spec: Part) -> None:
    affinity, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    one_of(out, "spec.sessionAffinity", affinity, ("ClientIP", "None"))
    path = "spec.sessionAffinityConfig"
    if affinity == "ClientIP":
        client = (config or _NOTHING).get("clientIP")
        seconds = (client or _NOTHING).get("timeoutSeconds")
        where = path if config is None else f"{path}.clientIP" if client is None else f"{path}.clientIP.timeoutSeconds"
        if seconds is None:
            out.append(required(where, "when session affinity type is ClientIP"))
        elif not 0 < seconds <= AFFINITY_SECONDS_MAX:
            words = f"must be greater than 0 and less than {AFFINITY_SECONDS_MAX}"
            out.append(invalid(where, seconds, words))
    elif affinity == "None" and config is not None:
        out.append(forbidden(path, "must not be set when session affinity is None"))


def cluster_ips(out: Errors, spec: Part) -> None:
    """``clusterIP``, ``clusterIPs``, ``ipFamilies`` and ``ipFamilyPolicy`` agree with one another."""
    ip, ips, families = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ()), list(spec.get("ipFamilies") or ())
    path = "spec.clusterIPs"
    if ip and not ips:
        out.append(required(path))
    elif ip and ips[0] != ip:
        out.append(invalid(path, ips, "first value must match `clusterIP`"))
    elif ips and not ip:
        out.append(invalid(path, ips, "must be empty when `clusterIP` is not specified"))
    seen: set[str] = set()
    for i, family in each(out, families):
        if family not in _FAMILIES:
            out.append(not_supported(f"spec.ipFamilies[{i}]", family, list(_FAMILIES)))
        if family in seen:
            out.append(duplicate(f"spec.ipFamilies[{i}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        out.append(not_supported("spec.ipFamilyPolicy", policy, list(_FAMILY_POLICIES)))
    bad = False
    for i, address in each(out, ips):
        if i == 0 and address == NO_CLUSTER_IP:
            if len(ips) > 1:
                bad = True
                out.append(invalid(path, ips, "'None' must be the first and only value"))
            continue
        # the allocators take no address that is spelled otherwise, in no release
        for message in formats.ip_address(address) if formats.parse_ip(address) else (formats.NO_IP,):
            bad = True
            out.append(invalid(f"{path}[{i}]", address, message))
    if len(ips) > 2:
        out.append(invalid(path, ips, "may only hold up to 2 values"))
    if bad:
        return
    if len(ips) > 1 and len({":" in address for address in ips}) != 2:
        out.append(invalid(path, ips, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for i, (address, family) in each(out, zip(ips, families)):
            if (":" in address) != (family == "IPv6"):
                out.append(invalid(f"{path}[{i}]", address, f"expected an {family} value as indicated by `ipFamilies[{i}]`"))


def _port_uniqueness(out: Errors, kind: str, ports: Sequence[Part]) -> None:
    if kind == "ClusterIP":
        for i, port in each(out, ports):
            if port.get("nodePort"):
                out.append(forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'"))
    node_ports: set[tuple[Any, Any]] = set()
    for i, port in each(out, ports):
        if node_port := port.get("nodePort"):
            key = (port.get("protocol"), node_port)
            if key in node_ports:
                out.append(duplicate(f"spec.ports[{i}].nodePort", node_port))
            node_ports.add(key)
    numbers: set[tuple[Any, Any]] = set()
    for i, port in each(out, ports):
        key = (port.get("protocol"), port.get("port"))
        if key in numbers:
            out.append(duplicate(f"spec.ports[{i}]", {"protocol": key[0], "port": key[1]}))
        numbers.add(key)


def _load_balancer(out: Errors, obj: Part, spec: Part, kind: str) -> None:
    ranges = list(spec.get("loadBalancerSourceRanges") or ())
    annotations = (obj.get("metadata") or _NOTHING).get("annotations") or _NOTHING
    annotation = "service.beta.kubernetes.io/load-balancer-source-ranges"
    if ranges:
        if kind != "LoadBalancer":
            out.append(forbidden("spec.LoadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'"))
        for i, entry in each(out, ranges):
            for message in formats.cidr(entry.strip()):
                out.append(invalid(f"spec.LoadBalancerSourceRanges[{i}]", entry.strip(), message))
    elif annotation in annotations:
        path, value = f"metadata.annotations[{annotation}]", annotations[annotation]
        if kind != "LoadBalancer":
            out.append(forbidden(path, "may only be used when `type` is 'LoadBalancer'"))
        for entry in value.strip().split(",") if value.strip() else ():
            for message in formats.cidr(entry.strip()):
                out.append(invalid(path, entry.strip(), message))
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        out.append(forbidden("spec.allocateLoadBalancerNodePorts", "may only be used when `type` is 'LoadBalancer'"))
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        out.append(required("allocateLoadBalancerNodePorts"))
    if (load_balancer := spec.get("loadBalancerClass")) is not None:
        if kind == "LoadBalancer":
            checked(out, "spec.loadBalancerClass", load_balancer, names.qualified_name)
        else:
            out.append(forbidden("spec.loadBalancerClass", "may only be used when `type` is 'LoadBalancer'"))


def _traffic(out: Errors, spec: Part, kind: str) -> None:
    policy, health = spec.get("externalTrafficPolicy"), spec.get("healthCheckNodePort") or 0
    if externally_accessible(spec):
        one_of(out, "spec.externalTrafficPolicy", policy, _TRAFFIC_POLICIES)
    elif policy:
        out.append(invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services"))
    if not needs_health_check(spec) and health:
        words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        out.append(invalid("spec.healthCheckNodePort", health, words))
    elif health:
        for message in names.port_number(health):
            out.append(invalid("spec.healthCheckNodePort", health, message))
    internal = spec.get("internalTrafficPolicy")
    if kind in ("LoadBalancer", "NodePort", "ClusterIP"):
        one_of(out, "spec.internalTrafficPolicy", internal, _TRAFFIC_POLICIES)
    elif internal is not None and internal not in _TRAFFIC_POLICIES:
        out.append(not_supported("spec.internalTrafficPolicy", internal, list(_TRAFFIC_POLICIES)))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _TRAFFIC_DISTRIBUTIONS:
        out.append(not_supported("spec.trafficDistribution", distribution, list(_TRAFFIC_DISTRIBUTIONS)))


def update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    if "ExternalName" not in (have.get("type"), had.get("type")):
        _changed_addresses(out, have, had)
        _changed_families(out, have, had)
    if had.get("type") == have.get("type") == "LoadBalancer":
        if had.get("loadBalancerClass") != have.get("loadBalancerClass"):
            words = "may not change once set"
            out.append(invalid("spec.loadBalancerClass", have.get("loadBalancerClass"), words))
    if needs_health_check(have) and needs_health_check(had) and have.get("healthCheckNodePort") != had.get("healthCheckNodePort"):
        out.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return out + create(new)


def _changed_addresses(out: Errors, have: Part, had: Part) -> None:
    """Addresses may be added and the second released, but the first stays as it is."""
    if is_headless(have) and is_headless(had):
        return
    new, old = list(have.get("clusterIPs") or ()), list(had.get("clusterIPs") or ())
    if len(new) == len(old):
        for i, (now, was) in each(out, zip(new, old)):
            if now != was:
                out.append(invalid(f"spec.clusterIPs[{i}]", new, "may not change once set"))
        return
    if len(new) < len(old):
        if not new:
            out.append(invalid("spec.clusterIPs[0]", new, "primary clusterIP can not be unset"))
        elif new[0] != old[0]:
            out.append(invalid("spec.clusterIPs[0]", new, "may not change once set"))
        _released(out, len(new), have, "clusterIP")
    elif old and new[0] != old[0]:
        out.append(invalid("spec.clusterIPs[0]", new, "may not change once set"))


def _changed_families(out: Errors, have: Part, had: Part) -> None:
    """As for addresses. Of a headless service, or one that becomes or was one, they may change freely."""
    if is_headless(have) or is_headless(had):
        return
    new, old, ips = list(have.get("ipFamilies") or ()), list(had.get("ipFamilies") or ()), list(have.get("clusterIPs") or ())
    if len(new) == len(old):
        for _ in (now for now, was in zip(new, old, strict=True) if now != was):
            out.append(invalid("spec.ipFamilies[0]", new, "may not change once set"))
        return
    if len(new) < len(old) and not ips:
        out.append(invalid("spec.ipFamilies[0]", new, "primary ipFamily can not be unset"))
    if new and old and new[0] != old[0]:
        out.append(invalid("spec.ipFamilies[0]", ips, "may not change once set"))
    if len(new) < len(old):
        _released(out, len(new), have, "ipFamily")


def _released(out: Errors, left: int, have: Part, what: str) -> None:
    if left == 1 and have.get("ipFamilyPolicy") != "SingleStack":
        words = f"must be set to 'SingleStack' when releasing the secondary {what}"
        out.append(invalid("spec.ipFamilyPolicy", have.get("ipFamilyPolicy"), words))


def status_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    addresses.load_balancer_status(out, "status.loadBalancer", (new.get("status") or _NOTHING).get("loadBalancer"))
    return out
