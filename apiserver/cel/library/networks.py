"""IP addresses and networks (Kubernetes' library/ip.go and cidr.go, since 1.30)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.cel import types
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.runtime_types import register
from apiserver.machinery import go_json

SINCE = 30
_Told = Callable[..., str]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class Ip:
    """An address."""

    address: _Address

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address with the length of its network's prefix."""

    address: _Address
    bits: int

    def __len__(self) -> int:
        return (self.bits + 7) // 8

    @property
    def network(self) -> int:
        """The bits of the prefix."""
        return int(self.address) >> (self.address.max_prefixlen - self.bits)


register(Ip, types.IP)
register(Cidr, types.CIDR)


def _parse_fault(text: str) -> str:
    """Why Go's netip.ParseAddr refuses a text."""
    quoted = go_json.quote(text)

    def told(message: str, at: str = "") -> str:
        return f"ParseAddr({quoted}): {message}" + (f" (at {go_json.quote(at)})" if at else "")

    first = next((char for char in text if char in ".:%"), "")
    if first == "%":
        return told("missing IPv6 address")
    if first == "":
        return told("unable to parse IP")
    if first == ".":
        return _ipv4_fault(text, told)
    return _ipv6_fault(text, told)


def _ipv4_fault(text: str, told: _Told) -> str:
    value = digits = fields = 0
    for index, char in enumerate(text):
        if char.isascii() and char.isdigit():
            if digits == 1 and value == 0:
                return told("IPv4 field has octet with leading zero")
            value = value * 10 + int(char)
            digits += 1
            if value > 255:
                return told("IPv4 field has value >255")
        elif char == ".":
            if index == 0 or index == len(text) - 1 or text[index - 1] == ".":
                return told("IPv4 field must have at least one digit", text[index:])
            if fields == 3:
                return told("IPv4 address too long")
            fields += 1
            value = digits = 0
        else:
            return told("unexpected character", text[index:])
    return told("IPv4 address too short")


_HEX = re.compile("[0-9a-fA-F]*")


def _ipv6_fault(text: str, told: _Told) -> str:
    rest, zone, after = text.partition("%")
    if zone and not after:
        return told("zone must be a non-empty string")
    groups, ellipsis = 0, -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return told("unable to parse IP")
    while groups < 8:
        match = _HEX.match(rest)
        digits = match.group() if match is not None else ""
        if len(digits) > 4:
            return told("each group must have 4 or less digits", rest)
        if not digits:
            return told("each colon-separated field must have at least one digit", rest)
        rest = rest[len(digits) :]
        if rest.startswith("."):
            if ellipsis < 0 and groups != 6:
                return told("embedded IPv4 address must replace the final 2 fields of the address", digits + rest)
            if groups > 6:
                return told("too many hex fields to fit an embedded IPv4 at the end of the address", digits + rest)
            return told("IPv4 field has value >255")
        groups += 1
        if not rest:
            break
        if rest[0] != ":":
            return told("unexpected character, want colon", rest)
        if len(rest) == 1:
            return told("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis >= 0:
                return told("multiple :: in address", rest)
            ellipsis, rest = groups, rest[1:]
            if not rest:
                break
    if rest:
        return told("trailing garbage after address", rest)
    return told("address string too short" if groups < 8 and ellipsis < 0 else "the :: must expand to at least one field of zeros")


def parse_ip(text: str) -> Ip:
    """An address as Kubernetes takes it: no zone, no IPv4 address written as IPv6."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        fault = _parse_fault(text)
        raise EvaluationError(f"IP Address {go_json.quote(text)} parse error during conversion from string: {fault}") from None
    if "%" in text:
        raise EvaluationError(f"IP address {go_json.quote(text)} with zone value is not allowed")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {go_json.quote(text)} is not allowed")
    return Ip(address)


_BITS = re.compile("[1-9][0-9]{0,2}|0").fullmatch


def parse_cidr(text: str) -> Cidr:
    """A network: an address, a slash and the length of the prefix."""
    quoted = go_json.quote(text)

    def fault(message: str) -> EvaluationError:
        prefix = "network address parse error during conversion from string: "
        return EvaluationError(f"{prefix}{prefix}netip.ParsePrefix({quoted}): {message}")

    written, slash, bits = text.rpartition("/")
    if not slash:
        raise fault("no '/'")
    try:
        address = ipaddress.ip_address(written)
    except ValueError:
        raise fault(_parse_fault(written)) from None
    if "%" in written:
        raise fault("IPv6 zones cannot be present in a prefix")
    if not _BITS(bits):
        raise fault(f"bad bits after slash: {go_json.quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise fault("prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(
            f"network address parse error during conversion from string: IPv4-mapped IPv6 address {quoted} is not allowed"
        )
    return Cidr(address, int(bits))


def _is(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return test


def _link_local_multicast(address: _Address) -> bool:
    if address.version == 4:
        return int(address) >> 8 == 0xE00000
    return int(address) >> 120 == 0xFF and int(address) >> 112 & 0xF == 2


def _global_unicast(address: _Address) -> bool:
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local or address == _BROADCAST)


def _contains_ip(network: Cidr, ip: Ip) -> bool:
    return network.address.version == ip.address.version and network.network == int(ip.address) >> (ip.address.max_prefixlen - network.bits)


def _contains_ip_text(network: Cidr, text: str) -> bool:
    """What is no address has no overload here, in Kubernetes' words."""
    if not _is(parse_ip)(text):
        raise EvaluationError("no such overload")
    return _contains_ip(network, parse_ip(text))


def _contains_cidr(network: Cidr, other: Cidr) -> bool:
    return network.bits <= other.bits and _contains_ip(network, Ip(other.address))


def _masked(network: Cidr) -> Cidr:
    hidden = network.address.max_prefixlen - network.bits
    return Cidr(type(network.address)(network.network << hidden), network.bits)


def _text(network: Cidr) -> str:
    return f"{network.address}/{network.bits}"


def overloads(minor: int) -> list[Overload]:
    """The functions, where the version has them."""
    if minor < SINCE:
        return []
    return [
        overload("string_to_ip ip(string): IP", parse_ip),
        overload("ip_family IP.family(): int", lambda ip: ip.address.version),
        overload("ip_is_canonical ip.isCanonical(string): bool", lambda text: str(parse_ip(text).address) == text),
        overload("ip_is_unspecified IP.isUnspecified(): bool", lambda ip: ip.address.is_unspecified),
        overload("ip_is_loopback IP.isLoopback(): bool", lambda ip: ip.address.is_loopback),
        overload("ip_is_link_local_multicast IP.isLinkLocalMulticast(): bool", lambda ip: _link_local_multicast(ip.address)),
        overload("ip_is_link_local_unicast IP.isLinkLocalUnicast(): bool", lambda ip: ip.address.is_link_local),
        overload("ip_is_global_unicast IP.isGlobalUnicast(): bool", lambda ip: _global_unicast(ip.address)),
        overload("is_ip isIP(string): bool", _is(parse_ip)),
        overload("ip_to_string string(IP): string", lambda ip: str(ip.address)),
        overload("string_to_cidr cidr(string): CIDR", parse_cidr),
        overload("cidr_contains_ip_string CIDR.containsIP(string): bool", _contains_ip_text),
        overload("cidr_contains_ip_ip CIDR.containsIP(IP): bool", _contains_ip),
        overload(
            "cidr_contains_cidr_string CIDR.containsCIDR(string): bool", lambda network, text: _contains_cidr(network, parse_cidr(text))
        ),
        overload("cidr_contains_cidr CIDR.containsCIDR(CIDR): bool", _contains_cidr),
        overload("cidr_ip CIDR.ip(): IP", lambda network: Ip(network.address)),
        overload("cidr_prefix_length CIDR.prefixLength(): int", lambda network: network.bits),
        overload("cidr_masked CIDR.masked(): CIDR", _masked),
        overload("is_cidr isCIDR(string): bool", _is(parse_cidr)),
        overload("cidr_to_string string(CIDR): string", _text),
    ]
