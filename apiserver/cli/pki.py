"""The cluster's keys and certificates, in ``<data-dir>/pki`` (file names are kubeadm's):

    ca.crt ca.key sa.key sa.pub         signs what speaks to the API server; signs ServiceAccount tokens
    etcd/ca.crt etcd/ca.key             signs what speaks to the store, so that no client of the API is one of the store
    front-proxy-ca.crt front-proxy-ca.key   signs the API server's certificate for extension API servers, which trust what it says of users
    apiserver.crt NAME.crt …            the API server's, and those of its clients
    front-proxy-client.crt              the API server's, as a client of extension API servers
    etcd/peer.crt etcd/server.crt       between members (server and client at once); the store's client port
    etcd/client.crt                     for etcdctl and other clients of the store

The first three lines are the cluster's: its members share them (``--pki-dir`` says where they are, or they are copied); the rest is each
member's own.

ECDSA P-256 throughout: a key is made in a tenth of a millisecond, so that the first start is as fast as the second. Keys are
written 0600, atomically. A leaf certificate is made anew when it is missing, was signed by another CA, is about to expire or no
longer covers the names asked for; the CA and the ServiceAccount key are never replaced.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import ipaddress
import os
import socket
from collections.abc import Iterator, Sequence
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

#: the name by which extension API servers know an API server in front of them (kubeadm's)
FRONT_PROXY_CLIENT = "front-proxy-client"

#: of X.509 (RFC 5280, appendix A.1); a longer member's name is cut
COMMON_NAME_MAX = 64


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


class Authority:
    """A CA's certificate and key in a directory, made where they are missing. ``now`` is UTC; ``file``: their name without its end."""

    def __init__(self, directory: Path, common_name: str, now: datetime.datetime, file: str = "ca") -> None:
        self._now = now
        self.files = KeyPair(directory / f"{file}.crt", directory / f"{file}.key")
        if not self.files.certificate.exists():
            with _locked(directory):
                if not self.files.certificate.exists():
                    self._make(common_name)
        self.certificate = _load_certificate(self.files.certificate)
        self._key = _load_key(self.files.key)

    def leaf(
        self,
        pair: KeyPair,
        subject: Subject,
        usages: tuple[x509.ObjectIdentifier, ...],
        alternatives: tuple[x509.GeneralName, ...] = (),
    ) -> KeyPair:
        """The certificate and key of these files; made anew where they are no good."""
        if pair.certificate.exists() and pair.key.exists() and self._still_good(pair, subject, alternatives):
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(_name(subject), key.public_key(), LEAF_VALIDITY)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
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
            certificate.verify_directly_issued_by(self.certificate)
        except Exception:
            return False
        if not alternatives:
            return True
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(alternatives) <= set(found)

    def _make(self, common_name: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(Subject(common_name))
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
        write_private(self.files.key, _key_pem(key))
        _write(self.files.certificate, certificate.public_bytes(serialization.Encoding.PEM), 0o644)

    def _builder(self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, validity: datetime.timedelta) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - CLOCK_SKEW)
            .not_valid_after(self._now + validity)
        )


class Pki:
    """The ``pki`` folder of a data directory, and the cluster's part of it in ``shared``, which is the same folder unless given. ``now`` is
    UTC; it is passed in so that expiry can be tested."""

    def __init__(self, directory: Path, now: datetime.datetime, shared: Path | None = None) -> None:
        self.directory = directory
        self.shared = shared or directory
        self._now = now
        for folder in (directory, self.shared):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._authority = Authority(self.shared, "sampan-ca", now)
        self.ca = self._authority.files
        self._etcd: Authority | None = None
        self._front_proxy: Authority | None = None

    def service_account_key(self) -> KeyPair:
        """The public and private halves of the key that signs ServiceAccount tokens."""
        pair = KeyPair(self.shared / "sa.pub", self.shared / "sa.key")
        if not pair.key.exists() or not pair.certificate.exists():
            with _locked(self.shared):
                if not pair.key.exists():
                    write_private(pair.key, _key_pem(ec.generate_private_key(ec.SECP256R1())))
                if not pair.certificate.exists():
                    public = _load_key(pair.key).public_key()
                    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
                    _write(pair.certificate, pem, 0o644)
        _load_key(pair.key)
        return pair

    def serving(self, name: str, bind_address: str, service_ip: str, advertise_address: str = "") -> KeyPair:
        """A serving certificate for the API server's names on this machine and inside the cluster."""
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
        names += [socket.gethostname(), "127.0.0.1", "::1", service_ip]
        names += [address for address in (bind_address, advertise_address) if address not in ("", "0.0.0.0", "::")]
        return self._authority.leaf(self._pair(name), Subject("kube-apiserver"), (ExtendedKeyUsageOID.SERVER_AUTH,), _alternatives(names))

    def client(self, name: str, subject: Subject) -> KeyPair:
        """A client certificate; its common name is the user, its organizations are the groups."""
        return self._authority.leaf(self._pair(name), subject, (ExtendedKeyUsageOID.CLIENT_AUTH,))

    def front_proxy_ca(self) -> KeyPair:
        """The authority of API servers in front of others."""
        return self._front_proxy_authority().files

    def front_proxy_client(self) -> KeyPair:
        """What this API server shows to extension API servers."""
        subject = Subject(FRONT_PROXY_CLIENT)
        return self._front_proxy_authority().leaf(self._pair("front-proxy-client"), subject, (ExtendedKeyUsageOID.CLIENT_AUTH,))

    def _front_proxy_authority(self) -> Authority:
        if self._front_proxy is None:
            self._front_proxy = Authority(self.shared, "sampan-front-proxy-ca", self._now, "front-proxy-ca")
        return self._front_proxy

    # -- of the store

    def etcd_ca(self) -> KeyPair:
        """The authority of members and of the store's clients."""
        return self._etcd_authority().files

    def etcd_peer(self, name: str, hosts: Sequence[str]) -> KeyPair:
        """What a member shows to the others; it is the server of some connections and the client of others."""
        return self._etcd_server("peer", name, hosts)

    def etcd_server(self, name: str, hosts: Sequence[str]) -> KeyPair:
        """What the store's client port shows."""
        return self._etcd_server("server", name, hosts)

    def etcd_client(self) -> KeyPair:
        """For etcdctl and other clients of the store."""
        authority = self._etcd_authority()
        return authority.leaf(self._pair("etcd/client"), Subject("sampan-etcd-client"), (ExtendedKeyUsageOID.CLIENT_AUTH,))

    def _etcd_server(self, file: str, name: str, hosts: Sequence[str]) -> KeyPair:
        authority = self._etcd_authority()
        names = ["localhost", socket.gethostname(), "127.0.0.1", "::1"]
        names += [host for host in hosts if host not in ("0.0.0.0", "::")]
        usages = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
        return authority.leaf(self._pair(f"etcd/{file}"), Subject(name[:COMMON_NAME_MAX]), usages, _alternatives(names))

    def _etcd_authority(self) -> Authority:
        if self._etcd is None:
            for folder in (self.directory, self.shared):
                (folder / "etcd").mkdir(mode=0o700, exist_ok=True)
            self._etcd = Authority(self.shared / "etcd", "sampan-etcd-ca", self._now)
        return self._etcd

    def _pair(self, name: str) -> KeyPair:
        return KeyPair(self.directory / f"{name}.crt", self.directory / f"{name}.key")


def _alternatives(hosts: Sequence[str]) -> tuple[x509.GeneralName, ...]:
    """Names and addresses that a certificate is for."""
    found: dict[x509.GeneralName, None] = {}
    for host in hosts:
        try:
            found[x509.IPAddress(ipaddress.ip_address(host))] = None
        except ValueError:
            found[x509.DNSName(host)] = None
    return tuple(found)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Members that start at once from one directory make its keys once."""
    descriptor = os.open(directory / "pki.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
    os.chmod(temporary, mode)
    os.replace(temporary, path)
