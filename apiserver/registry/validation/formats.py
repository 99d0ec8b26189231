"""Checks of strings beyond ``machinery.names``: addresses, domains, paths. Each answers the messages for a bad value."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import TypeAlias

import orjson

from apiserver.machinery import names, release
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object

INT32_MAX = 2**31 - 1

#: RFC 3986 ``path`` characters that Kubernetes takes in a domain-prefixed path
_PATH_SEGMENT = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch

#: zeros that begin a number of several digits
_LEADING_ZEROS = re.compile(r"(?<![0-9a-fA-F:])0+(?=[0-9])|(?<=:)0+(?=[0-9]+\.)")
#: of a prefix length; Go reads no longer numbers either
_BITS_DIGITS_MAX = 8

#: long-lived answers of checks that see the same few strings over and over (label keys, container names)
_CACHED_MAX = 4096


def qualified_name(value: str) -> tuple[str, ...]:
    return () if _is_qualified_name(value) else tuple(names.qualified_name(value))


@functools.lru_cache(maxsize=_CACHED_MAX)
def _is_qualified_name(value: str) -> bool:
    """Which names are right is the same in all releases; what is said of the others is not."""
    return not names.qualified_name(value)


def inclusive_range(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_ZEROS, _MAPPED = "must not have leading 0s", "must not be an IPv4-mapped IPv6 address"
_CIDR_ZEROS = "must not have leading 0s in IP or prefix length"
_CIDR_MAPPED = "must not have an IPv4-mapped IPv6 address"
_CIDR_BITS = "must not have bits set beyond the prefix length"
#: what is said of addresses that were right once
_STRICTER = frozenset((_ZEROS, _MAPPED, _CIDR_ZEROS, _CIDR_MAPPED, _CIDR_BITS))

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def ip_address(value: str) -> list[str]:
    """Of the fields that are older than the strict rules. What several programs read in several ways is refused since 1.36, where
    StrictIPCIDRValidation is on by default (KEP-4858; words of apimachinery ``parseIP``)."""
    found = parse_legacy_ip(value)
    if found is None:
        return [NO_IP]
    if not release.since(36):
        return []
    if parse_ip(value) is None:
        return [_ZEROS]
    return [_MAPPED] if _is_mapped(found) else []


def _is_mapped(address: IpAddress) -> bool:
    return address.version == 6 and address.ipv4_mapped is not None


def without_kept(errors: list[FieldError], old: Object) -> list[FieldError]:
    """The errors of an update, but for addresses that were right when they were written and are in the old object already."""
    if not any(error.detail in _STRICTER for error in errors):
        return errors
    had = orjson.dumps(old).decode()
    return [error for error in errors if error.detail not in _STRICTER or orjson.dumps(error.value).decode() not in had]


def parse_legacy_ip(value: str) -> IpAddress | None:
    """The same, with zeros before the numbers of an IPv4 address, which count for nothing (``ParseIPSloppy`` of k8s.io/utils)."""
    return parse_ip(_LEADING_ZEROS.sub("", value) if "." in value else value)


def parse_ip(value: str) -> IpAddress | None:
    """The address that ``value`` spells; scoped IPv6 addresses are none (Go's ``net.ParseIP``)."""
    try:
        return None if "%" in value else ipaddress.ip_address(value)
    except ValueError:
        return None


def cidr(value: str) -> list[str]:
    """As ``ip_address``, of networks (apimachinery ``parseCIDR``)."""
    network = parse_cidr(value)
    if network is None:
        return [NO_CIDR]
    if not release.since(36):
        return []
    address, _, bits = value.partition("/")
    found = parse_ip(address)
    if found is None or bits != str(int(bits)):
        return [_CIDR_ZEROS]
    if _is_mapped(found):
        return [_CIDR_MAPPED]
    return [] if found == network.network_address else [_CIDR_BITS]


def parse_cidr(value: str) -> IpNetwork | None:
    """The network that ``value`` lies in; the mask must be given as a number of bits."""
    address, slash, bits = value.partition("/")
    found = parse_legacy_ip(address)
    if not slash or not bits.isascii() or not bits.isdigit() or found is None or len(bits) > _BITS_DIGITS_MAX:
        return None
    try:
        return ipaddress.ip_network((found, int(bits)), strict=False)
    except ValueError:
        return None


def fully_qualified_name(value: str) -> list[str]:
    """A DNS subdomain of at least three parts, as admission webhooks are called."""
    found = names.dns1123_subdomain(value)
    if found:
        return found
    return [] if value.count(".") >= 2 else ["should be a domain with at least three segments separated by dots"]


def domain_prefixed_path(value: str) -> list[str]:
    """``example.com/some/path``."""
    host, slash, path = value.partition("/")
    if not value or not slash or not host or not path:
        return ['must be a domain-prefixed path (such as "acme.io/foo")']
    found = names.dns1123_subdomain(host)
    if not _PATH_SEGMENT(path):
        found = [*found, names.regex_message("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")]
    return found


def interface_address(value: str) -> list[str]:
    """An address with the length of its network's prefix, spelled in the one canonical way."""
    try:
        found = None if "%" in value else ipaddress.ip_interface(value)
    except ValueError:
        found = None
    if found is None or parse_cidr(value) is None:
        return ["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"]
    canonical = str(found)
    return [] if value == canonical else [f'must be in canonical form ("{canonical}")']
