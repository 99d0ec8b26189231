"""Addresses of services and endpoints: Endpoints, EndpointSlices, load balancers' status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_many
from apiserver.registry.validation import formats
from apiserver.registry.validation.common import IMMUTABLE, Errors, checked, each, known_value, labels, one_of

Part = Mapping[str, Any]

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
SLICE_ENDPOINTS_MAX = 1000
SLICE_PORTS_MAX = 20000
ENDPOINT_ADDRESSES_MAX = 100
TOPOLOGY_LABELS_MAX = 16
ZONE_HINTS_MAX = 8
_NOTHING: Part = {}


def not_special(out: Errors, path: str, address: str) -> None:
    """An address that traffic can be sent to: not unspecified, loopback or link-local."""
    ip = formats.parse_legacy_ip(address)
    if ip is None:
        out.append(invalid(path, address, "must be a valid IP address"))
        return
    if ip.is_unspecified:
        out.append(invalid(path, address, f"may not be unspecified ({address})"))
    if ip.is_loopback:
        out.append(invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if ip.is_link_local:
        out.append(invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if ip.is_multicast and str(ip).startswith(("224.0.0.", "ff02:", "ff12:")):
        out.append(invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))


def endpoints(obj: Part) -> list[FieldError]:
    out: Errors = []
    for i, subset in each(out, obj.get("subsets") or ()):
        at, ports = f"subsets[{i}]", subset.get("ports") or ()
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            out.append(required(at, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for j, address in each(out, subset.get(field) or ()):
                _endpoint_address(out, f"{at}.{field}[{j}]", address)
        for j, port in each(out, ports):
            _endpoint_port(out, f"{at}.ports[{j}]", port, len(ports) > 1)
    return out


def _endpoint_address(out: Errors, path: str, address: Part) -> None:
    ip = address.get("ip") or ""
    found = formats.ip_address(ip)
    for message in found:
        out.append(invalid(f"{path}.ip", ip, message))
    if hostname := address.get("hostname"):
        checked(out, f"{path}.hostname", hostname, names.dns1123_label)
    if (node := address.get("nodeName")) is not None:
        checked(out, f"{path}.nodeName", node, names.dns1123_subdomain)
    not_special(out, f"{path}.ip", ip)


def _endpoint_port(out: Errors, path: str, port: Part, needs_name: bool) -> None:
    name = port.get("name") or ""
    if name:
        checked(out, f"{path}.name", name, names.dns1123_label)
    elif needs_name:
        out.append(required(f"{path}.name"))
    number = port.get("port") or 0
    for message in names.port_number(number):
        out.append(invalid(f"{path}.port", number, message))
    one_of(out, f"{path}.protocol", port.get("protocol"), _PROTOCOLS)
    if (protocol := port.get("appProtocol")) is not None:
        checked(out, f"{path}.appProtocol", protocol, names.qualified_name)


def load_balancer_status(out: Errors, path: str, status: Part | None) -> None:
    for i, ingress in each(out, (status or _NOTHING).get("ingress") or ()):
        at = f"{path}.ingress[{i}]"
        if ip := ingress.get("ip"):
            for message in formats.ip_address(ip):
                out.append(invalid(f"{at}.ip", ip, message))
        if (mode := ingress.get("ipMode")) is not None:
            if not ip:
                out.append(forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set"))
            elif mode not in ("Proxy", "VIP"):
                out.append(not_supported(f"{at}.ipMode", mode, ["Proxy", "VIP"]))
        if hostname := ingress.get("hostname"):
            checked(out, f"{at}.hostname", hostname, names.dns1123_subdomain)
            if formats.parse_ip(hostname) is not None:
                out.append(invalid(f"{at}.hostname", hostname, "must be a DNS name, not an IP address"))


def endpoint_slice(obj: Part) -> list[FieldError]:
    out: Errors = []
    kind = obj.get("addressType") or ""
    one_of(out, "addressType", kind, _ADDRESS_TYPES)
    found = obj.get("endpoints") or ()
    if len(found) > SLICE_ENDPOINTS_MAX:
        out.append(too_many("endpoints", len(found), SLICE_ENDPOINTS_MAX))
    for i, endpoint in each(out, found):
        _slice_endpoint(out, f"endpoints[{i}]", endpoint, kind)
    _slice_ports(out, obj.get("ports") or ())
    return out


def endpoint_slice_update(new: Part, old: Part) -> list[FieldError]:
    out = endpoint_slice(new)
    if new.get("addressType") != old.get("addressType"):
        out.append(invalid("addressType", new.get("addressType"), IMMUTABLE))
    return out


def _slice_endpoint(out: Errors, path: str, endpoint: Part, kind: str) -> None:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        out.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > ENDPOINT_ADDRESSES_MAX:
        out.append(too_many(f"{path}.addresses", len(addresses), ENDPOINT_ADDRESSES_MAX))
    for i, address in each(out, addresses):
        at = f"{path}.addresses[{i}]"
        if kind in ("IPv4", "IPv6"):
            ip = formats.parse_legacy_ip(address)
            if ip is None or f"IPv{ip.version}" != kind:
                out.append(invalid(at, address, f"must be a valid {kind} address"))
            else:
                checked(out, at, address, formats.ip_address)
                not_special(out, at, address)
        elif kind == "FQDN":
            checked(out, at, address, names.dns1123_subdomain)
    if (node := endpoint.get("nodeName")) is not None:
        checked(out, f"{path}.nodeName", node, names.dns1123_subdomain)
    topology = endpoint.get("deprecatedTopology") or _NOTHING
    if len(topology) > TOPOLOGY_LABELS_MAX:
        out.append(too_many(f"{path}.deprecatedTopology", len(topology), TOPOLOGY_LABELS_MAX))
    labels(out, f"{path}.deprecatedTopology", topology)
    if "kubernetes.io/hostname" in topology:
        words = "may not be set in deprecatedTopology, use nodeName instead"
        out.append(invalid(f"{path}.deprecatedTopology[kubernetes.io/hostname]", topology["kubernetes.io/hostname"], words))
    if (hostname := endpoint.get("hostname")) is not None:
        checked(out, f"{path}.hostname", hostname, names.dns1123_label)
    zones = (endpoint.get("hints") or _NOTHING).get("forZones") or ()
    if len(zones) > ZONE_HINTS_MAX:
        out.append(too_many(f"{path}.hints", len(zones), ZONE_HINTS_MAX))
    seen: set[str] = set()
    for i, zone in each(out, zones):
        name = zone.get("name") or ""
        if name in seen:
            out.append(duplicate(f"{path}.hints.forZones[{i}].name", name))
        else:
            seen.add(name)
            checked(out, f"{path}.hints.forZones[{i}].name", name, names.label_value)


def _slice_ports(out: Errors, ports: Sequence[Part]) -> None:
    if len(ports) > SLICE_PORTS_MAX:
        out.append(too_many("ports", len(ports), SLICE_PORTS_MAX))
        return
    seen: set[str] = set()
    for i, port in each(out, ports):
        name = port.get("name") or ""
        if name:
            checked(out, f"ports[{i}].name", name, names.dns1123_label)
        if name in seen:
            out.append(duplicate(f"ports[{i}].name", name))
        seen.add(name)
        known_value(out, f"ports[{i}].protocol", port.get("protocol") or "", _PROTOCOLS)
        if (protocol := port.get("appProtocol")) is not None:
            checked(out, f"ports[{i}].appProtocol", protocol, names.qualified_name)
