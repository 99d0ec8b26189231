"""``--tls-min-version``, ``--tls-cipher-suites``, ``--tls-sni-cert-key``: Go's names and kube-apiserver's forms, for OpenSSL."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
#: Go has no choice among those of TLS 1.3: they are known, and always on
_OF_TLS_13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SniPair:
    """``names``: patterns of server names; empty: those of the certificate."""

    certificate: Path
    key: Path
    names: tuple[str, ...] = ()

    def patterns(self) -> tuple[str, ...]:
        """Raises OSError, ValueError where the certificate cannot be read."""
        return self.names or names_of(self.certificate)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    min_version: str = "VersionTLS12"
    #: none: OpenSSL's choice
    cipher_suites: tuple[str, ...] = ()
    sni: tuple[SniPair, ...] = ()

    def apply(self, context: ssl.SSLContext) -> None:
        """Raises ssl.SSLError where OpenSSL has none of the ciphers."""
        context.minimum_version = VERSIONS[self.min_version]
        chosen = [_CIPHERS[name] for name in self.cipher_suites if name in _CIPHERS]
        if chosen:
            context.set_ciphers(":".join(chosen))


def check_version(name: str) -> str:
    """Raises ValueError."""
    if name not in VERSIONS:
        raise ValueError(f'unknown tls version "{name}": one of {", ".join(VERSIONS)}')
    return name


def check_ciphers(names: Iterable[str]) -> tuple[str, ...]:
    """Raises ValueError."""
    found = tuple(names)
    for name in found:
        if name not in _CIPHERS and name not in _OF_TLS_13:
            raise ValueError(f"Cipher suite {name} not supported or doesn't exist")
    return found


def parse_pair(text: str) -> SniPair:
    """``cert,key`` or ``cert,key:name,*.name``. Raises ValueError."""
    files, _, names = text.partition(":")
    parts = [part.strip() for part in files.split(",")]
    if len(parts) != 2 or not all(parts):
        raise ValueError("expected comma separated certificate and key file paths")
    patterns = tuple(name.strip().lower() for name in names.split(",") if name.strip())
    return SniPair(certificate=Path(parts[0]), key=Path(parts[1]), names=patterns)


def names_of(certificate: Path) -> tuple[str, ...]:
    """A certificate's DNS names, or its common name where it has none."""
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    common = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return tuple(name.lower() for name in names) or tuple(str(part.value).lower() for part in common[:1])


def choose(name: str | None, patterns: Iterable[tuple[str, int]]) -> int | None:
    """Which of numbered patterns a server name is of: the same name, else ``*`` for its first label; the first given where several are."""
    if not name:
        return None
    wanted = name.lower().rstrip(".")
    wildcard = f"*.{wanted.partition('.')[2]}"
    best: int | None = None
    for pattern, number in patterns:
        if pattern == wanted:
            return number
        if pattern == wildcard and best is None:
            best = number
    return best
