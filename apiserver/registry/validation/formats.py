"""Checks of strings beyond ``machinery.names``: addresses, domains, paths. Each answers the messages for a bad value."""

from __future__ import annotations

import functools
import ipaddress
import re

from apiserver.machinery import names

INT32_MAX = 2**31 - 1

#: RFC 3986 ``path`` characters that Kubernetes takes in a domain-prefixed path
_PATH_SEGMENT = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch

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


def ip_address(value: str) -> list[str]:
    return [] if parse_ip(value) is not None else ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]


def parse_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that ``value`` spells; scoped IPv6 addresses are none (Go's ``net.ParseIP``)."""
    try:
        return None if "%" in value else ipaddress.ip_address(value)
    except ValueError:
        return None


def cidr(value: str) -> list[str]:
    return [] if parse_cidr(value) is not None else ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]


def parse_cidr(value: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The network that ``value`` lies in; the mask must be given as a number of bits."""
    address, slash, bits = value.partition("/")
    if not slash or not bits.isdigit() or parse_ip(address) is None:
        return None
    try:
        return ipaddress.ip_network(value, strict=False)
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
