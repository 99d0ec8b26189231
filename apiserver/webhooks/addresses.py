"""``ServiceAddresses``: from a reference to a Service (``clientConfig.service``) to a host and port that can be connected to.

kube-apiserver connects to the Service's cluster IP, which kube-proxy makes real, or with ``--enable-aggregator-routing`` to one of its
endpoints. Here nothing makes cluster IPs real and hollow pods have no network, so, in this order:

1. an address that was given for the Service by flag (``--service-url NAMESPACE/NAME[:PORT]=HOST:PORT``): a program on this machine;
2. ``type: ExternalName``: that name and the port of the reference, as in kube-apiserver (``externalName: localhost`` is a program on this
   machine, said by manifest);
3. one of the ready endpoints in the Service's EndpointSlices: what is real on a network that this server can reach.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.admission.interfaces import ObjectGetter
from apiserver.machinery import objects
from apiserver.machinery.objects import Object

_SERVICE_NAME_LABEL = "kubernetes.io/service-name"


class ServiceAddressError(Exception):
    """No address can be told, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    host: str
    port: int


class ServiceAddresses:
    """``given``: addresses by ``NAMESPACE/NAME`` or ``NAMESPACE/NAME:PORT``. ``source`` picks among endpoints."""

    def __init__(self, getter: ObjectGetter, given: Mapping[str, Address], source: random.Random) -> None:
        self._getter = getter
        self._given = given
        self._source = source

    def resolve(self, namespace: str, name: str, port: int) -> Address:
        """Raises ServiceAddressError."""
        given = self._given.get(f"{namespace}/{name}:{port}") or self._given.get(f"{namespace}/{name}")
        if given is not None:
            return given
        service = self._getter.get("", "services", namespace, name)
        if service is None:
            raise ServiceAddressError(f'service "{name}" not found')
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return Address(host=spec.get("externalName") or "", port=port)
        found = next((said for said in spec.get("ports") or () if said.get("port") == port), None)
        if found is None:
            raise ServiceAddressError(f'no service port {port} found for service "{name}"')
        candidates = self._endpoints(namespace, name, found.get("name") or "")
        if not candidates:
            raise ServiceAddressError(f'no endpoints available for service "{name}"')
        return self._source.choice(candidates)

    def _endpoints(self, namespace: str, name: str, port_name: str) -> list[Address]:
        slices = self._getter.list("discovery.k8s.io", "endpointslices", namespace)
        found = [address for piece in slices if _of_service(piece, name) for address in _ready(piece, port_name)]
        if found:
            return found
        endpoints = self._getter.get("", "endpoints", namespace, name) or {}
        return [
            Address(host=address["ip"], port=port["port"])
            for subset in endpoints.get("subsets") or ()
            for port in subset.get("ports") or ()
            if (port.get("name") or "") == port_name
            for address in subset.get("addresses") or ()
        ]


def _of_service(piece: Object, name: str) -> bool:
    return objects.labels(piece).get(_SERVICE_NAME_LABEL) == name


def _ready(piece: Object, port_name: str) -> list[Address]:
    ports = [port["port"] for port in piece.get("ports") or () if (port.get("name") or "") == port_name and port.get("port")]
    return [
        Address(host=host, port=port)
        for port in ports
        for endpoint in piece.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
        for host in endpoint.get("addresses") or ()
    ]


def parse_given(texts: tuple[str, ...]) -> dict[str, Address]:
    """``NAMESPACE/NAME[:PORT]=HOST:PORT``, also with ``https://`` before the host. Raises ValueError."""
    found: dict[str, Address] = {}
    for text in texts:
        service, separator, target = text.partition("=")
        host, colon, port = target.removeprefix("https://").rstrip("/").rpartition(":")
        namespace, slash, _ = service.partition("/")
        if not (separator and slash and namespace and colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError(f"{text!r} is not NAMESPACE/NAME[:PORT]=HOST:PORT")
        found[service] = Address(host=host.strip("[]"), port=int(port))
    return found
