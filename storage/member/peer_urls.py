"""Peer URLs: ``https://host:port``, and ``http://`` on loopback only. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class PeerUrl:
    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse(text: str) -> PeerUrl:
    """Raises ValueError, worded as etcd's (``client/pkg/types``), on anything else than scheme, host and port."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{text!r} is no URL: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"URL scheme must be http or https: {text}")
    if not parts.hostname or port is None:
        raise ValueError(f'URL address does not have the form "host:port": {text}')
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise ValueError(f"the host of the URL is no name: {text}") from None
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"URL must not contain a path: {text}")
    if parts.username is not None:
        raise ValueError(f"URL must not contain a user: {text}")
    url = PeerUrl(parts.hostname, port, parts.scheme == "https")
    if not url.tls and not url.is_loopback():
        raise ValueError(f"http:// is for loopback addresses only, since peers must be authenticated: {text}")
    return url
