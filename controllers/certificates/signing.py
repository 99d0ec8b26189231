"""Which certificate an approved request gets. Pure: the CA and the time come in.

The rules of each signer are those of the documentation, "Certificates and Certificate Signing Requests", "Kubernetes signers".
"""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Callable
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN = "kubernetes.io/legacy-unknown"

#: clocks differ: a certificate is valid from a little before now
BACKDATE = datetime.timedelta(minutes=5)
#: a certificate shorter than this is not made shorter still by the backdating
SHORT = datetime.timedelta(hours=8)
EXPIRATION_SECONDS_MIN = 600

_KEY_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_EXTENDED_USAGES: dict[str, ObjectIdentifier] = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
}
_HANDSHAKE = frozenset(("key encipherment", "digital signature"))
_NAME_KINDS: dict[type[x509.GeneralName], str] = {
    x509.DNSName: "DNS",
    x509.RFC822Name: "Email",
    x509.IPAddress: "IP",
    x509.UniformResourceIdentifier: "URI",
}

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


class RefusedError(Exception):
    """The request cannot be signed, now or later; the message goes into its Failed condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """``duration`` is the longest life of a certificate."""

    certificate: x509.Certificate
    key: PrivateKey
    duration: datetime.timedelta


def load_authority(certificate: bytes, key: bytes, duration_seconds: float) -> Authority:
    """Raises ValueError where the PEM does not hold a CA and its key."""
    loaded = serialization.load_pem_private_key(key, None)
    if not isinstance(loaded, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey, ed25519.Ed25519PrivateKey)):
        raise ValueError("the key is of a kind that signs no certificates")
    ca = x509.load_pem_x509_certificate(certificate)
    if ca.public_key() != loaded.public_key():
        raise ValueError("the key is not that of the certificate")
    return Authority(certificate=ca, key=loaded, duration=datetime.timedelta(seconds=duration_seconds))


def wants_signature(request: Object) -> bool:
    """Approved, not refused or failed, not signed yet, and for a signer whose rules are known here."""
    conditions = {c.get("type") for c in objects.get(request, "status", "conditions", default=[])}
    signed = objects.get(request, "status", "certificate")
    return "Approved" in conditions and not conditions & {"Denied", "Failed"} and not signed and _signer(request) in _RULES


def sign(request: Object, authority: Authority, now: datetime.datetime, serial: int) -> bytes:
    """The certificate in PEM.

    Raises:
        RefusedError: what is asked for is not what the signer gives.
    """
    asked = parse(request)
    usages = set(objects.get(request, "spec", "usages", default=[]))
    _RULES[_signer(request)](asked, usages)
    not_before, not_after = _validity(request, authority, now)
    builder = (
        x509.CertificateBuilder()
        .subject_name(asked.subject)
        .issuer_name(authority.certificate.subject)
        .public_key(asked.public_key())
        .serial_number(serial)
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )
    # in the order in which kube-controller-manager's certificates have them
    if usages & _KEY_USAGES.keys():  # the extension without any bit is an invalid one
        builder = builder.add_extension(_key_usage(usages), critical=True)
    extended = [oid for usage, oid in _EXTENDED_USAGES.items() if usage in usages]
    if extended:
        builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.certificate.public_key())  # type: ignore[arg-type]
    builder = builder.add_extension(issuer_key, critical=False)
    names = _alternative_names(asked)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    algorithm = None if isinstance(authority.key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(authority.key, algorithm).public_bytes(serialization.Encoding.PEM)


def _signer(request: Object) -> str:
    return str(objects.get(request, "spec", "signerName", default=""))


def parse(request: Object) -> x509.CertificateSigningRequest:
    """Raises RefusedError."""
    try:
        asked = x509.load_pem_x509_csr(base64.b64decode(objects.get(request, "spec", "request", default=""), validate=True))
        valid = asked.is_signature_valid
    except (ValueError, binascii.Error) as error:
        raise RefusedError(f"unable to parse csr: {error}") from error
    if not valid:
        raise RefusedError("unable to parse csr: its signature is wrong")
    return asked


def _validity(request: Object, authority: Authority, now: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime]:
    life = authority.duration
    wanted = objects.get(request, "spec", "expirationSeconds")
    if wanted is not None:
        life = min(life, datetime.timedelta(seconds=max(int(wanted), EXPIRATION_SECONDS_MIN)))
    begins = now - BACKDATE
    ends = now + life if life < SHORT else begins + life
    return begins, min(ends, authority.certificate.not_valid_after_utc)


def _key_usage(usages: set[str]) -> x509.KeyUsage:
    bits = dict.fromkeys(_KEY_USAGES.values(), False)
    for usage in usages:
        if usage in _KEY_USAGES:
            bits[_KEY_USAGES[usage]] = True
    if not bits["key_agreement"]:  # these two only say more about key agreement
        bits["encipher_only"] = bits["decipher_only"] = False
    return x509.KeyUsage(**bits)


def _alternative_names(asked: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    except ValueError as error:
        raise RefusedError(f"unable to parse csr: {error}") from error


def _check_client(asked: x509.CertificateSigningRequest, usages: set[str]) -> None:
    for usage in sorted(usages - _HANDSHAKE - {"client auth"}):
        raise RefusedError(f"invalid usage for client certificate: {usage}")
    if "client auth" not in usages:
        raise RefusedError("missing required usage for client certificate: client auth")


def check_kubelet_client(asked: x509.CertificateSigningRequest, usages: set[str]) -> None:
    """Raises RefusedError."""
    _check_kubelet_name(asked)
    for kind, words in _NAME_KINDS.items():
        if any(isinstance(name, kind) for name in _alternative_names(asked) or ()):
            raise RefusedError(f"{words} subjectAltNames are not allowed")
    _check_exact_usages(usages, "client auth")


def _check_kubelet_serving(asked: x509.CertificateSigningRequest, usages: set[str]) -> None:
    _check_kubelet_name(asked)
    names = _alternative_names(asked) or ()
    if not any(isinstance(name, (x509.DNSName, x509.IPAddress)) for name in names):
        raise RefusedError("DNS or IP subjectAltName is required")
    for kind in (x509.RFC822Name, x509.UniformResourceIdentifier):
        if any(isinstance(name, kind) for name in names):
            raise RefusedError(f"{_NAME_KINDS[kind]} subjectAltNames are not allowed")
    _check_exact_usages(usages, "server auth")


def _check_nothing(asked: x509.CertificateSigningRequest, usages: set[str]) -> None:
    """The API takes no new request for this signer; one that an older cluster stored is signed for whatever it asks."""


def _check_kubelet_name(asked: x509.CertificateSigningRequest) -> None:
    if [a.value for a in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] != ["system:nodes"]:
        raise RefusedError("subject organization is not system:nodes")
    common = asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not common or not str(common[0].value).startswith("system:node:"):
        raise RefusedError("subject common name does not begin with system:node:")


def _check_exact_usages(usages: set[str], purpose: str) -> None:
    """With key encipherment, or for keys that cannot encipher (elliptic curves) without."""
    wanted = _HANDSHAKE | {purpose}
    if usages not in (wanted, wanted - {"key encipherment"}):
        raise RefusedError(f"usages did not match [{' '.join(sorted(wanted))}]")


_RULES: dict[str, Callable[[x509.CertificateSigningRequest, set[str]], None]] = {
    CLIENT: _check_client,
    KUBELET_CLIENT: check_kubelet_client,
    KUBELET_SERVING: _check_kubelet_serving,
    LEGACY_UNKNOWN: _check_nothing,
}
