"""The cluster's keys and certificates: a CA, and what it signs, in ``<data-dir>/pki`` (file names are kubeadm's).

ECDSA P-256 throughout: a key is made in a tenth of a millisecond, so that the first start is as fast as the second. Keys are
written 0600, atomically. A leaf certificate is made anew when it is missing, was signed by another CA, is about to expire or no
longer covers the names asked for; the CA and the ServiceAccount key are never replaced.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.cli.errors import CommandError

CA_VALIDITY = datetime.timedelta(days=3650)
LEAF_VALIDITY = datetime.timedelta(days=365)
#: a leaf with less than this left is made anew at start
RENEW_BEFORE = datetime.timedelta(days=30)
#: certificates are valid a little before they are made, for clients whose clocks are behind
CLOCK_SKEW = datetime.timedelta(minutes=5)


class PkiError(CommandError):
    """A key or certificate on disk cannot be used; the message names the file and what to do."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Paths of a certificate and its key, both PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Subject:
    common_name: str
    organizations: tuple[str, ...] = ()


class Pki:
    """The ``pki`` folder of a data directory. ``now`` is UTC; it is passed in so that expiry can be tested."""

    def __init__(self, directory: Path, now: datetime.datetime) -> None:
        self.directory = directory
        self._now = now
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ca = KeyPair(directory / "ca.crt", directory / "ca.key")
        if not self.ca.certificate.exists():
            self._make_ca()
        self._ca_certificate = _load_certificate(self.ca.certificate)
        self._ca_key = _load_key(self.ca.key)

    def service_account_key(self) -> KeyPair:
        """The public and private halves of the key that signs ServiceAccount tokens."""
        pair = KeyPair(self.directory / "sa.pub", self.directory / "sa.key")
        if not pair.key.exists():
            write_private(pair.key, _key_pem(ec.generate_private_key(ec.SECP256R1())))
        public = _load_key(pair.key).public_key()
        if not pair.certificate.exists():
            pair.certificate.write_bytes(public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
        return pair

    def serving(self, name: str, bind_address: str, service_ip: str) -> KeyPair:
        """A serving certificate for the API server's names on this machine and inside the cluster."""
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
        names.append(socket.gethostname())
        addresses = ["127.0.0.1", "::1", service_ip]
        if bind_address not in ("0.0.0.0", "::"):
            addresses.append(bind_address)
        alternatives: list[x509.GeneralName] = [x509.DNSName(n) for n in dict.fromkeys(names)]
        alternatives += [x509.IPAddress(ipaddress.ip_address(a)) for a in dict.fromkeys(addresses)]
        return self._leaf(name, Subject("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, tuple(alternatives))

    def client(self, name: str, subject: Subject) -> KeyPair:
        """A client certificate; its common name is the user, its organizations are the groups."""
        return self._leaf(name, subject, ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def _leaf(self, name: str, subject: Subject, usage: x509.ObjectIdentifier, alternatives: tuple[x509.GeneralName, ...]) -> KeyPair:
        pair = KeyPair(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        if pair.certificate.exists() and pair.key.exists() and self._still_good(pair, subject, alternatives):
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_name(subject), key.public_key(), LEAF_VALIDITY)
            .issuer_name(self._ca_certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca_key.public_key()), critical=False)
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        certificate = builder.sign(self._ca_key, hashes.SHA256())
        write_private(pair.key, _key_pem(key))
        _write(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        return pair

    def _still_good(self, pair: KeyPair, subject: Subject, alternatives: tuple[x509.GeneralName, ...]) -> bool:
        """Whether a pair can go on being used. One that is of an earlier CA, or damaged, is made anew."""
        try:
            certificate, key = _load_certificate(pair.certificate), _load_key(pair.key)
        except PkiError:
            return False
        if key.public_key() != certificate.public_key():
            return False
        if certificate.not_valid_after_utc - self._now < RENEW_BEFORE or certificate.subject != _name(subject):
            return False
        try:
            certificate.verify_directly_issued_by(self._ca_certificate)
        except Exception:
            return False
        if not alternatives:
            return True
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(alternatives) <= set(found)

    def _make_ca(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(Subject("sampan-ca"))
        certificate = (
            self._builder(subject, key.public_key(), CA_VALIDITY)
            .issuer_name(subject)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True, key_cert_sign=True, crl_sign=True, key_encipherment=False, content_commitment=False,
                    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
                ),
                critical=True,
            )
            .sign(key, hashes.SHA256())
        )  # fmt: skip
        write_private(self.ca.key, _key_pem(key))
        _write(self.ca.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, validity: datetime.timedelta) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - CLOCK_SKEW)
            .not_valid_after(self._now + validity)
        )


def _name(subject: Subject) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in subject.organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _load_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise PkiError(f"cannot use the certificate {path}: {error}; restore it, or remove the pki directory to make new ones") from error


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise PkiError(f"cannot use the key {path}: {error}; restore it, or remove the pki directory to make new ones") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise PkiError(f"cannot use the key {path}: it is not an elliptic curve key")
    return key


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, all of it or nothing."""
    _write(path, content, 0o600)


def _write(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(path.name + ".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
    os.chmod(temporary, mode)
    os.replace(temporary, path)
