"""The group networking.k8s.io: ingresses and their classes, network policies, IP addresses, service CIDRs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, forbidden, invalid, not_supported, required, too_long
from apiserver.registry.validation import addresses, formats
from apiserver.registry.validation.common import Errors, checked, each, equal, immutable, label_selector, port_number_or_name

Part = Mapping[str, Any]

CONTROLLER_LENGTH_MAX = 250
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDINGS = ("/..", "/.")
_NOTHING: Part = {}


def ingress_create(obj: Part) -> list[FieldError]:
    out = ingress(obj)
    spec = obj.get("spec") or _NOTHING
    annotation = ((obj.get("metadata") or _NOTHING).get("annotations") or _NOTHING).get(_CLASS_ANNOTATION)
    if annotation is not None and spec.get("ingressClassName") is not None and annotation != spec["ingressClassName"]:
        words = "must match `ingressClassName` when both are specified"
        out.append(invalid(f"metadata.annotations.{_CLASS_ANNOTATION}", annotation, words))
    return out


def ingress(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    rules, default = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and default is None:
        out.append(invalid("spec", list(rules), "either `defaultBackend` or `rules` must be specified"))
    if default is not None:
        _backend(out, "spec.defaultBackend", default)
    for i, rule in each(out, rules):
        _rule(out, f"spec.rules[{i}]", rule)
    for i, tls in each(out, spec.get("tls") or ()):
        for j, host in each(out, tls.get("hosts") or ()):
            check = names.wildcard_dns1123_subdomain if "*" in host else names.dns1123_subdomain
            checked(out, f"spec.tls[{i}].hosts[{j}]", host, check)
        if secret := tls.get("secretName"):
            checked(out, f"spec.tls[{i}].secretName", secret, names.dns1123_subdomain)
    if (class_name := spec.get("ingressClassName")) is not None:
        checked(out, "spec.ingressClassName", class_name, names.dns1123_subdomain)
    return out


def _rule(out: Errors, path: str, rule: Part) -> None:
    host = rule.get("host") or ""
    if host:
        if formats.parse_ip(host) is not None:
            out.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        check = names.wildcard_dns1123_subdomain if "*" in host else names.dns1123_subdomain
        checked(out, f"{path}.host", host, check)
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        out.append(required(f"{path}.http.paths"))
    for i, entry in each(out, http.get("paths") or ()):
        _path(out, f"{path}.http.paths[{i}]", entry)


def _path(out: Errors, path: str, entry: Part) -> None:
    kind, where = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        out.append(required(f"{path}.pathType", "pathType must be specified"))
        return
    if kind in ("Exact", "Prefix"):
        if not where.startswith("/"):
            out.append(invalid(f"{path}.path", where, "must be an absolute path"))
        for sequence in _BAD_SEQUENCES:
            if sequence in where:
                out.append(invalid(f"{path}.path", where, f"must not contain '{sequence}'"))
        for ending in _BAD_ENDINGS:
            if where.endswith(ending):
                out.append(invalid(f"{path}.path", where, f"cannot end with '{ending}'"))
    elif kind == "ImplementationSpecific":
        if where and not where.startswith("/"):
            out.append(invalid(f"{path}.path", where, "must be an absolute path"))
    else:
        out.append(not_supported(f"{path}.pathType", kind, list(_PATH_TYPES)))
    _backend(out, f"{path}.backend", entry.get("backend") or _NOTHING)


def _backend(out: Errors, path: str, backend: Part) -> None:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        out.append(invalid(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        _local_reference(out, f"{path}.resource", resource)
    elif service is not None:
        name, port = service.get("name") or "", service.get("port") or _NOTHING
        if not name:
            out.append(required(f"{path}.service.name"))
        else:
            # as the names of services themselves
            checked(out, f"{path}.service.name", name, lambda text: names.NAME_RULES["service"](text, False))
        if port.get("name") and port.get("number"):
            out.append(invalid(path, "", "cannot set both port name & port number"))
        elif port.get("name"):
            checked(out, f"{path}.service.port.name", port["name"], names.port_name)
        elif port.get("number"):
            for message in names.port_number(port["number"]):
                out.append(invalid(f"{path}.service.port.number", port["number"], message))
        else:
            out.append(required(path, "port name or number is required"))
    else:
        out.append(invalid(path, "", "resource or service backend is required"))


def _local_reference(out: Errors, path: str, reference: Part) -> None:
    if (group := reference.get("apiGroup")) is not None:
        checked(out, f"{path}.apiGroup", group, names.dns1123_subdomain)
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        if not value:
            out.append(required(f"{path}.{field}", f"{field} is required"))
        else:
            checked(out, f"{path}.{field}", value, names.path_segment)


def ingress_status(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    addresses.load_balancer_status(out, "status.loadBalancer", (new.get("status") or _NOTHING).get("loadBalancer"))
    return out


def ingress_class(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    controller = spec.get("controller") or ""
    if len(controller) > CONTROLLER_LENGTH_MAX:
        out.append(too_long("spec.controller", CONTROLLER_LENGTH_MAX))
    if not controller:
        out.append(required("spec.controller"))
    else:
        checked(out, "spec.controller", controller, formats.domain_prefixed_path)
    parameters = spec.get("parameters")
    if parameters is None:
        return out
    _local_reference(out, "spec.parameters", parameters)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        out.append(required("spec.parameters.scope"))
        return out
    if scope not in ("Cluster", "Namespace"):
        out.append(not_supported("spec.parameters.scope", scope, ["Cluster", "Namespace"]))
    elif scope == "Namespace":
        if not namespace:
            words = "`parameters.scope` is set to 'Namespace'"
            out.append(required("spec.parameters.namespace", words))
        else:
            checked(out, "spec.parameters.namespace", namespace, names.dns1123_label)
    elif namespace is not None:
        words = "`parameters.scope` is set to 'Cluster'"
        out.append(forbidden("spec.parameters.namespace", words))
    return out


def ingress_class_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    immutable(out, "spec.controller", have.get("controller") or "", had.get("controller") or "")
    return out + ingress_class(new)


def network_policy(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    label_selector(out, "spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in each(out, spec.get(direction) or ()):
            at = f"spec.{direction}[{i}]"
            for j, port in each(out, rule.get("ports") or ()):
                _policy_port(out, f"{at}.ports[{j}]", port)
            for j, peer in each(out, rule.get(peers) or ()):
                _policy_peer(out, f"{at}.{peers}[{j}]", peer)
    types = list(spec.get("policyTypes") or ())
    if len(types) > 2:
        out.append(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
        return out
    for i, kind in each(out, types):
        if kind not in ("Ingress", "Egress"):
            out.append(not_supported(f"spec.policyTypes[{i}]", kind, ["Ingress", "Egress"]))
    return out


def _policy_port(out: Errors, path: str, port: Part) -> None:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in ("TCP", "UDP", "SCTP"):
        out.append(not_supported(f"{path}.protocol", protocol, ["TCP", "UDP", "SCTP"]))
    if number is None:
        if end is not None:
            out.append(required(f"{path}.port", "must be specified when `endPort` is set"))
        return
    port_number_or_name(out, f"{path}.port", number)
    if end is None:
        return
    if isinstance(number, str):
        out.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
    else:
        for message in names.port_number(end):
            out.append(invalid(f"{path}.endPort", end, message))
        if end < number:
            out.append(invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))


def _policy_peer(out: Errors, path: str, peer: Part) -> None:
    given = 0
    for field in ("podSelector", "namespaceSelector"):
        if peer.get(field) is not None:
            given += 1
            label_selector(out, f"{path}.{field}", peer[field])
    block = peer.get("ipBlock")
    if block is not None:
        given += 1
        _ip_block(out, f"{path}.ipBlock", block)
    if not given:
        out.append(required(path, "must specify a peer"))
    elif given > 1 and block is not None:
        out.append(forbidden(path, "may not specify both ipBlock and another peer"))


def _ip_block(out: Errors, path: str, block: Part) -> None:
    text = block.get("cidr") or ""
    if not text:
        out.append(required(f"{path}.cidr"))
        return
    network = formats.parse_cidr(text)
    out.extend(invalid(f"{path}.cidr", text, message) for message in formats.cidr(text))
    if network is None:
        return
    for i, entry in each(out, block.get("except") or ()):
        hole = formats.parse_cidr(entry)
        out.extend(invalid(f"{path}.except[{i}]", entry, message) for message in formats.cidr(entry))
        if hole is None:
            return
        inside = hole.version == network.version and hole.network_address in network
        if not inside or network.prefixlen >= hole.prefixlen:
            out.append(invalid(f"{path}.except[{i}]", entry, "must be a strict subset of `cidr`"))


def ip_address(obj: Part) -> list[FieldError]:
    out: Errors = []
    reference = (obj.get("spec") or _NOTHING).get("parentRef")
    if reference is None:
        out.append(required("spec.parentRef"))
        return out
    if group := reference.get("group"):
        checked(out, "spec.parentRef.group", group, names.dns1123_subdomain)
    for field in ("resource", "name"):
        value = reference.get(field) or ""
        if not value:
            out.append(required(f"spec.parentRef.{field}"))
        else:
            checked(out, f"spec.parentRef.{field}", value, names.path_segment)
    if namespace := reference.get("namespace"):
        checked(out, "spec.parentRef.namespace", namespace, names.path_segment)
    return out


def ip_address_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    have, had = (new.get("spec") or _NOTHING).get("parentRef"), (old.get("spec") or _NOTHING).get("parentRef")
    immutable(out, "spec.parentRef", have, had)
    return out


def ip_address_name(name: str) -> list[str]:
    """The canonical spelling of an address is the object's name."""
    ip = formats.parse_ip(name)
    if ip is None or ip.compressed != name:
        return [f"must be an IP address in canonical form: {ip.compressed}" if ip is not None else "must be a valid IP address"]
    return []


def service_cidr(obj: Part) -> list[FieldError]:
    out: Errors = []
    cidrs = list((obj.get("spec") or _NOTHING).get("cidrs") or ())
    if not cidrs:
        out.append(required("spec.cidrs", "at least one CIDR required"))
        return out
    _distinct_families(out, "spec.cidrs", cidrs)
    return out


def _distinct_families(out: Errors, path: str, cidrs: Sequence[str]) -> None:
    if len(cidrs) > 2 or (len(cidrs) == 2 and len({":" in c for c in cidrs}) != 2):
        out.append(invalid(path, list(cidrs), "may only hold up to 2 values, one for each IP family"))
    for i, text in each(out, cidrs):
        network = formats.parse_cidr(text)
        if network is None:
            out.append(invalid(f"{path}[{i}]", text, formats.NO_CIDR))
        elif str(network) != text:
            out.append(invalid(f"{path}[{i}]", text, f"must be in canonical form: {network}"))


def service_cidr_update(new: Part, old: Part) -> list[FieldError]:
    """A second family may be added to one."""
    out: Errors = []
    have, had = list((new.get("spec") or _NOTHING).get("cidrs") or ()), list((old.get("spec") or _NOTHING).get("cidrs") or ())
    if len(had) == 1 and len(have) == 2:
        if have[0] != had[0]:
            out.append(invalid("spec.cidrs[0]", have[0], "primary CIDR can not be changed"))
        _distinct_families(out, "spec.cidrs", have)
    elif not equal(have, had):
        out.append(invalid("spec.cidrs", have, "field is immutable"))
    return out
