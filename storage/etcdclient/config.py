"""Where the etcd cluster is and who we are to it: one frozen object, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """``endpoints`` are URLs of client ports: ``https://host:port``, or ``http://host:port`` without TLS. The files are PEM:
    ``ca_file`` whom to trust (default: the system's authorities), ``cert_file`` and ``key_file`` who we are."""

    endpoints: tuple[str, ...]
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    connect_timeout_seconds: float = 3.0
    """Until one of the endpoints has a connection; then the call fails."""
    call_timeout_seconds: float = 10.0
    """Of one call. etcd itself gives up a proposal after 5 s and two election timeouts, so that its own word comes first."""
    keep_alive_seconds: float = 10.0
    """A quiet connection is asked for a sign of life so often. etcd closes connections that ask more often than every 5 s."""
    keep_alive_timeout_seconds: float = 5.0

    def validate(self) -> None:
        """Raises ValueError, worded for the person who set the flag."""
        if not self.endpoints:
            raise ValueError("name at least one etcd server")
        for endpoint in self.endpoints:
            address(endpoint)
        if len(set(self.endpoints)) != len(self.endpoints):
            raise ValueError("an etcd server is named twice")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("the certificate and the key for etcd go together")
        if self.ca_file or self.cert_file:
            if not any(endpoint.startswith("https://") for endpoint in self.endpoints):
                raise ValueError("certificates for etcd are of no use with http:// servers; write https://")

    def secure(self) -> bool:
        return any(endpoint.startswith("https://") for endpoint in self.endpoints)

    def files(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.ca_file, self.cert_file, self.key_file) if path is not None)


def address(endpoint: str) -> str:
    """``host:port`` of an endpoint. Raises ValueError where it is no URL of a client port."""
    example = "write it as https://host:2379"
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{endpoint!r} is not the URL of an etcd server ({error}); {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{endpoint!r} is not the URL of an etcd server; {example}")
    if port is None:
        raise ValueError(f"{endpoint!r} names no port; {example}")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{endpoint!r} has more than a host and a port; {example}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"
