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

from apiserver.outbound import service_endpoints
from apiserver.outbound.service_endpoints import Objects, Place


class ServiceAddresses:
    """``given``: addresses by ``NAMESPACE/NAME`` or ``NAMESPACE/NAME:PORT``. ``source`` picks among endpoints."""

    def __init__(self, getter: Objects, given: Mapping[str, Place], source: random.Random) -> None:
        self._getter = getter
        self._given = given
        self._source = source

    def resolve(self, namespace: str, name: str, port: int) -> Place:
        """Raises UnresolvedError."""
        given = self._given.get(f"{namespace}/{name}:{port}") or self._given.get(f"{namespace}/{name}")
        if given is not None:
            return given
        return service_endpoints.choose(self._getter, namespace, name, port, self._source)


def parse_given(texts: tuple[str, ...]) -> dict[str, Place]:
    """``NAMESPACE/NAME[:PORT]=HOST:PORT``, also with ``https://`` before the host. Raises ValueError."""
    found: dict[str, Place] = {}
    for text in texts:
        service, separator, target = text.partition("=")
        host, colon, port = target.removeprefix("https://").rstrip("/").rpartition(":")
        namespace, slash, _ = service.partition("/")
        if not (separator and slash and namespace and colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError(f"{text!r} is not NAMESPACE/NAME[:PORT]=HOST:PORT")
        found[service] = Place(host.strip("[]"), int(port))
    return found
