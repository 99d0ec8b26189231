"""Who has which cluster IP and node port: the addresses that services are given.

In memory, to choose well; ``restore`` fills it from the stored services when the server starts, and the changes of services keep it up to
date. Several API servers on one store each have their own, and may choose the same address at the same moment: so the store decides.
Each address and port is a claim (``claims_of``), a key that is written in the transaction that writes its service, if nobody has it.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.validation import formats

#: Random picks before the range is searched from its start; a range that is less than 90 % full rarely needs more than ten.
_ATTEMPTS_MAX = 64
#: so that a search of an IPv6 range ends: as many addresses as Kubernetes manages in one range
_RANGE_SIZE_MAX = 1 << 20
#: The lower part of a range is left to those who name their address (KEP-3070): a sixteenth of it, within these bounds.
_STATIC_MIN = 16
_STATIC_MAX = 256

IpNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

IP_CLAIMS = "ranges/serviceips/"
_PORT_CLAIMS = "ranges/servicenodeports/"
#: the storage prefix of IPAddress objects
ADDRESS_CLAIMS = "ipaddresses/"
CLAIM_FOLDERS = (IP_CLAIMS, _PORT_CLAIMS)


class AllocationError(ValueError):
    """What cannot be allocated; ``error`` says at which field and why."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(error.detail)
        self.error = error


class ServiceAllocators(Protocol):
    """``families``: those of the service ranges, the primary one first. ``wanted``: a particular one, "" or 0 for any.
    The allocate methods raise ValueError with Kubernetes' words."""

    families: tuple[str, ...]

    def allocate_ip(self, family: str, wanted: str = "") -> str: ...

    def release_ip(self, ip: str) -> None:
        """The write that it was given to has come to nothing."""

    def allocate_port(self, wanted: int = 0) -> int: ...

    def release_port(self, port: int) -> None: ...


class MemoryServiceAllocators:
    """Of one or two ranges (``10.96.0.0/12,fd00::/108``) and of the node ports ``low-high``, both ends included."""

    def __init__(self, cluster_ip_ranges: str, node_port_range: str, source: random.Random) -> None:
        networks = [ipaddress.ip_network(text.strip()) for text in cluster_ip_ranges.split(",")]
        #: those of the flags, and those that addresses are taken from
        self.configured: tuple[IpNetwork, ...] = tuple(networks)
        self.networks = self.configured
        #: the networks are those of ServiceCIDR objects, which may be several of a family; those of the flags while there are none
        self.several = False
        self.families = tuple(f"IPv{network.version}" for network in networks)
        low, _, high = node_port_range.partition("-")
        self.ports = range(int(low), int(high) + 1)
        self._source = source
        # what stored services have, and what was given to writes that are under way: these may come to nothing, and then must not free
        # what another server's service has got meanwhile
        self._used_ips: set[str] = set()
        self._used_ports: set[int] = set()
        self._given_ips: set[str] = set()
        self._given_ports: set[int] = set()
        #: the names of all IPAddress objects, whoever they are of
        self.addresses: set[str] = set()

    def allocate_ip(self, family: str, wanted: str = "") -> str:
        if family not in self.families:
            raise ValueError(f"no IP range of the family {family} is configured")
        networks = [network for network in self.networks if f"IPv{network.version}" == family]
        if wanted:
            address = ipaddress.ip_address(wanted)
            if not any(contains(network, address) for network in networks):
                if self.several:
                    raise ValueError("the provided network does not match the current range")
                words = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {networks[0]}"
                raise ValueError(words)
            if not self._give_ip(str(address)):
                raise ValueError("provided IP is already allocated")
            return wanted
        for network in networks:
            if ip := self._any_of(network):
                return ip
        raise ValueError("range is full")

    def _any_of(self, network: IpNetwork) -> str:
        """ "" where it is full."""
        size = min(network.num_addresses - (2 if network.version == 4 else 1), _RANGE_SIZE_MAX)
        static = min(max(_STATIC_MIN, size // 16), _STATIC_MAX) if size > 2 * _STATIC_MIN else 0
        for offset in self._offsets(size, static) if size > 0 else ():
            ip = str(network[1 + offset])
            if self._give_ip(ip):
                return ip
        return ""

    def _give_ip(self, ip: str) -> bool:
        if ip in self._used_ips or ip in self._given_ips or ip in self.addresses:
            return False
        self._given_ips.add(ip)
        return True

    def _give_port(self, port: int) -> bool:
        if port in self._used_ports or port in self._given_ports:
            return False
        self._given_ports.add(port)
        return True

    def _offsets(self, size: int, static: int) -> Iterable[int]:
        for _ in range(_ATTEMPTS_MAX):
            yield self._source.randrange(static, size)
        yield from range(static, size)
        yield from range(static)

    def release_ip(self, ip: str) -> None:
        self._given_ips.discard(str(ipaddress.ip_address(ip)))

    def allocate_port(self, wanted: int = 0) -> int:
        if wanted:
            if wanted not in self.ports:
                words = f"provided port is not in the valid range. The range of valid ports is {self.ports[0]}-{self.ports[-1]}"
                raise ValueError(words)
            if not self._give_port(wanted):
                raise ValueError("provided port is already allocated")
            return wanted
        for _ in range(_ATTEMPTS_MAX):
            port = self._source.choice(self.ports)
            if self._give_port(port):
                return port
        for port in self.ports:
            if self._give_port(port):
                return port
        raise ValueError("range is full")

    def release_port(self, port: int) -> None:
        self._given_ports.discard(port)

    def restore(self, services: Iterable[Object]) -> None:
        """Forget everything but what these services have."""
        self._given_ips, self._given_ports = set(), set()
        self.reconcile(services)

    def reconcile(self, services: Iterable[Object]) -> None:
        """What is in use is what these services have; what was given to writes that are under way stays given. Of two services with one
        address the first that went has freed it, though the other has it still."""
        self._used_ips, self._used_ports = set(), set()
        for service in services:
            ips, ports = _held(service)
            self._used_ips |= ips
            self._used_ports |= ports

    def hold(self, service: Object) -> None:
        """What a stored service has, whoever wrote it."""
        ips, ports = _held(service)
        self._used_ips |= ips
        self._used_ports |= ports
        self._given_ips -= ips
        self._given_ports -= ports

    def release_service(self, service: Object) -> None:
        """Of a service that has gone."""
        self._free(*_held(service))

    def release_unused(self, old: Object, new: Object) -> None:
        """After an update: what the service had and has no more."""
        (old_ips, old_ports), (ips, ports) = _held(old), _held(new)
        self._free(old_ips - ips, old_ports - ports)

    def _free(self, ips: set[str], ports: set[int]) -> None:
        self._used_ips -= ips
        self._used_ports -= ports
        self._given_ips -= ips
        self._given_ports -= ports


def contains(network: IpNetwork, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """As an address that a service may have: neither the network's own nor that of its broadcast."""
    first, last = network[0], network[-1]
    return address in network and address not in (first, last if network.version == 4 else first)


def claims_of(service: Object) -> frozenset[str]:
    """The keys, under the registry's prefix, of what no other service may have."""
    ips, ports = _held(service)
    return frozenset((*(ip_claim(ip) for ip in ips), *(port_claim(port) for port in ports)))


def claims_with_objects_of(service: Object) -> frozenset[str]:
    """From 1.33 on each cluster IP is an IPAddress object too."""
    ips, _ = _held(service)
    return claims_of(service).union(f"{ADDRESS_CLAIMS}{ip}" for ip in ips)


def ip_claim(ip: str) -> str:
    return f"{IP_CLAIMS}{ip}"


def port_claim(port: int) -> str:
    return f"{_PORT_CLAIMS}{port}"


def cluster_ips(service: Mapping[str, Any]) -> list[str]:
    """As the service has them, valid or not; none of a headless service."""
    spec = service.get("spec") or {}
    # a service of a cluster before 1.20 has the one address alone
    stated = spec.get("clusterIPs") or (spec.get("clusterIP"),)
    return [ip for ip in stated if ip and ip != "None"]


def canonical(ip: str) -> str:
    """The one form of an address of which claims and objects have their names; "" for what is no address, as somebody may have written
    into the store."""
    parsed = formats.parse_ip(ip)
    return "" if parsed is None else str(parsed)


def _held(service: Mapping[str, Any]) -> tuple[set[str], set[int]]:
    spec = service.get("spec") or {}
    ips = {canonical(ip) for ip in cluster_ips(service)} - {""}
    ports = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
    if spec.get("healthCheckNodePort"):
        ports.add(spec["healthCheckNodePort"])
    return ips, ports
