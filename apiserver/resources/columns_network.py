"""Columns of services, endpoints, ingresses and network policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.machinery.objects import Object, get
from apiserver.resources import cell_texts as texts
from apiserver.resources.columns import AGE, NAME, Printer, age, column, name, printer

#: addresses, ports or hosts shown of each object
_SHOWN_MAX = 3


def _service(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return [
        name(obj),
        spec.get("type", ""),
        addresses[0] if addresses else texts.NONE,
        _external_ip(spec, obj.get("status")),
        ",".join(_service_port(port) for port in spec.get("ports") or ()) or texts.NONE,
        age(obj, now),
        texts.label_map(spec.get("selector")),
    ]


def _external_ip(spec: Object, status: Object | None) -> str:
    type_, fixed = spec.get("type"), list(spec.get("externalIPs") or ())
    if type_ in ("ClusterIP", "NodePort"):
        return ",".join(fixed) or texts.NONE
    if type_ == "LoadBalancer":
        balanced = texts.load_balancer(status)
        return ",".join([balanced, *fixed] if balanced else fixed) or "<pending>"
    if type_ == "ExternalName":
        return str(spec.get("externalName", ""))
    return texts.UNKNOWN


def _service_port(port: Object) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}"


def _endpoints(obj: Object, now: float) -> list[Any]:
    found = []
    for subset in obj.get("subsets") or ():
        addresses = [str(a.get("ip", "")) for a in subset.get("addresses") or ()]
        ports = subset.get("ports")
        # a headless service may have no ports
        found += [_host_port(a, port.get("port", 0)) for port in ports for a in addresses] if ports else addresses
    return [name(obj), texts.shortened(found, _SHOWN_MAX) if obj.get("subsets") else texts.NONE, age(obj, now)]


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _endpoint_slice(obj: Object, now: float) -> list[Any]:
    ports = [_slice_port(port) for port in obj.get("ports") or ()]
    addresses = [str(a) for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
    return [
        name(obj),
        obj.get("addressType", ""),
        texts.shortened(ports, _SHOWN_MAX) or texts.UNSET,
        texts.shortened(addresses, _SHOWN_MAX) or texts.UNSET,
        age(obj, now),
    ]


def _slice_port(port: Object) -> str:
    number = port.get("port")
    return str(number) if number is not None else str(port["name"] if port.get("name") is not None else "*")


def _ingress(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name(obj),
        spec.get("ingressClassName") or texts.NONE,
        _hosts(spec.get("rules") or []),
        texts.load_balancer(obj.get("status")),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: list[Object]) -> str:
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == _SHOWN_MAX:
            # the rules without a host count as well
            return f"{','.join(hosts)} + {len(rules) - _SHOWN_MAX} more..."
        if rule.get("host"):
            hosts.append(str(rule["host"]))
    return ",".join(hosts) or "*"


def _ingress_class(obj: Object, now: float) -> list[Any]:
    parameters = get(obj, "spec", "parameters")
    shown = texts.NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [name(obj), get(obj, "spec", "controller", default=""), shown, age(obj, now)]


def _network_policy(obj: Object, now: float) -> list[Any]:
    return [name(obj), texts.label_selector(get(obj, "spec", "podSelector", default={})), age(obj, now)]


def _ip_address(obj: Object, now: float) -> list[Any]:
    parent = get(obj, "spec", "parentRef")
    if parent is None:
        return [name(obj), texts.NONE]
    resource = ".".join(str(parent[field]) for field in ("resource", "group") if parent.get(field)).lower()
    parts = [resource, parent.get("namespace"), parent.get("name", "")]
    return [name(obj), "/".join(str(part) for part in parts if part)]


def _service_cidr(obj: Object, now: float) -> list[Any]:
    return [name(obj), ",".join(get(obj, "spec", "cidrs", default=[])), age(obj, now)]


PRINTERS: dict[tuple[str, str], Callable[[int], Printer]] = {
    ("", "Service"): printer(
        NAME,
        column("Type", documented="core.v1.ServiceSpec.type"),
        column("Cluster-IP", documented="core.v1.ServiceSpec.clusterIP"),
        column("External-IP", documented="core.v1.ServiceSpec.externalIPs"),
        column("Port(s)", documented="core.v1.ServiceSpec.ports"),
        AGE,
        column("Selector", priority=1, documented="core.v1.ServiceSpec.selector"),
        cells=_service,
    ),
    ("", "Endpoints"): printer(NAME, column("Endpoints", documented="core.v1.Endpoints.subsets"), AGE, cells=_endpoints),
    ("discovery.k8s.io", "EndpointSlice"): printer(
        NAME,
        column("AddressType", documented="discovery.v1.EndpointSlice.addressType"),
        column("Ports", documented="discovery.v1.EndpointSlice.ports"),
        column("Endpoints", documented="discovery.v1.EndpointSlice.endpoints"),
        AGE,
        cells=_endpoint_slice,
    ),
    ("networking.k8s.io", "Ingress"): printer(
        NAME,
        column("Class", description="The name of the IngressClass resource that should be used for additional configuration"),
        column("Hosts", description="Hosts that incoming requests are matched against before the ingress rule"),
        column("Address", description="Address is a list containing ingress points for the load-balancer"),
        column("Ports", description="Ports of TLS configurations that open"),
        AGE,
        cells=_ingress,
    ),
    ("networking.k8s.io", "IngressClass"): printer(
        NAME,
        column("Controller", description="Controller that is responsible for handling this class"),
        column("Parameters", description="A reference to a resource with additional parameters"),
        AGE,
        cells=_ingress_class,
    ),
    ("networking.k8s.io", "NetworkPolicy"): printer(
        NAME, column("Pod-Selector", documented="networking.v1.NetworkPolicySpec.podSelector"), AGE, cells=_network_policy
    ),
    ("networking.k8s.io", "IPAddress"): printer(
        NAME, column("ParentRef", documented="networking.v1.IPAddressSpec.parentRef"), cells=_ip_address
    ),
    ("networking.k8s.io", "ServiceCIDR"): printer(
        NAME, column("CIDRs", documented="networking.v1.ServiceCIDRSpec.cidrs"), AGE, cells=_service_cidr
    ),
}
