"""TLS from files that may change under a running server: certificates are replaced without a restart.

``Reloaded`` holds what was built from some files and builds it anew when one of them has changed (looked at when somebody asks, which
is once a handshake: a few microseconds of ``stat``). Connections that stand are not touched. Files that cannot be used, as when a
certificate was replaced and its key not yet, leave the old ones in force, with one warning.

Peers, the client port and the API server use it; ``expiry_seconds`` tells when a certificate ends, for the gauge of each.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

EXPIRY_METRIC: Final = "sampan_certificate_expiration_timestamp_seconds"
"""Gauge with the labels ``file`` and ``purpose``: when a certificate ends, in seconds since the epoch."""

UNUSABLE: Final = (OSError, ValueError)
"""What building from files raises where they cannot be used (``ssl.SSLError`` is an OSError)."""

_Signature = tuple[tuple[int, int, int], ...]


class Reloaded(Generic[T]):
    """``build`` reads the files; it raises OSError or ValueError where they cannot be used, which the constructor passes on."""

    def __init__(self, paths: Sequence[Path], build: Callable[[], T], *, purpose: str) -> None:
        self.paths = tuple(paths)
        self.purpose = purpose
        self._build = build
        # The signature is taken before reading: a file that changes in between is read again the next time.
        self._signature = _signature(self.paths)
        self._value = build()

    def current(self) -> T:
        signature = _signature(self.paths)
        if signature != self._signature:
            self._signature = signature
            try:
                self._value = self._build()
                logger.info("%s: certificates read again: %s", self.purpose, ", ".join(map(str, self.paths)))
            except UNUSABLE as error:
                logger.warning("%s: the new certificates cannot be used, the old ones stay in force: %s", self.purpose, error)
        return self._value


def _signature(paths: Iterable[Path]) -> _Signature:
    found: list[tuple[int, int, int]] = []
    for path in paths:
        try:
            status = path.stat()
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files: a certificate (chain) and its key, and the authorities whose certificates the other side must show."""

    certificate: Path
    key: Path
    trusted_ca: Path


@dataclass(frozen=True, slots=True)
class PeerContexts:
    """Both directions of mutual TLS; ``server`` demands the other's certificate."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def mutual(files: TlsFiles, *, purpose: str) -> Reloaded[PeerContexts]:
    """Contexts with which both sides show a certificate of ``trusted_ca``. Raises OSError and ssl.SSLError for unusable files."""

    def build() -> PeerContexts:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.verify_mode = ssl.CERT_REQUIRED
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for context in (server, client):
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            _load_chain(context, files)
            context.load_verify_locations(files.trusted_ca)
        return PeerContexts(server, client)

    return Reloaded((files.certificate, files.key, files.trusted_ca), build, purpose=purpose)


def _load_chain(context: ssl.SSLContext, files: TlsFiles) -> None:
    def refuse() -> str:
        # Else OpenSSL would ask on the terminal, and the server hang.
        raise ValueError(f"the key {files.key} has a password")

    context.load_cert_chain(files.certificate, files.key, password=refuse)


def expiry_seconds(path: Path) -> float:
    """When the first certificate of a PEM file ends, in seconds since the epoch. Raises OSError, ValueError."""
    from cryptography import x509  # not needed before somebody asks

    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()


class CertificateExpiry:
    """When each of a server's certificates ends, for the gauge ``EXPIRY_METRIC``."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, Path], Reloaded[float]] = {}

    def add(self, purpose: str, path: Path) -> None:
        """Tell of this file from now on. A file that cannot be read tells nothing."""

        def read() -> float:
            return expiry_seconds(path)

        try:
            self._files[purpose, path] = Reloaded((path,), read, purpose=purpose)
        except UNUSABLE as error:
            logger.warning("%s: %s tells no expiry: %s", purpose, path, error)

    def samples(self) -> list[tuple[str, str, float]]:
        """(file, purpose, seconds since the epoch), in order."""
        return [(str(path), purpose, known.current()) for (purpose, path), known in sorted(self._files.items())]


def offers_server_auth(certificate: bytes) -> bool:
    """Whether a DER certificate may be a server's: certificates of peers are, those of clients are not, though one authority may sign
    both. A certificate without extended key usages is for everything (RFC 5280 §4.2.1.12)."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usage = x509.load_der_x509_certificate(certificate).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.SERVER_AUTH in usage or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usage
