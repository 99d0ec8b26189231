"""PodCertificateRequests: a kubelet asks for a certificate in a pod's name (certificates ``validation``)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from apiserver.machinery import names, timestamps
from apiserver.machinery.field_errors import FieldError, invalid, invalid_unshown, not_supported, required, too_long
from apiserver.registry.validation import certificates, conditions
from apiserver.registry.validation.common import IMMUTABLE, Errors, checked, each, equal

if TYPE_CHECKING:
    from cryptography import x509

Part = Mapping[str, Any]

_NOTHING: Part = {}
UID_LENGTH_MAX = 128
LIFETIME_SECONDS_MIN = 3600
LIFETIME_SECONDS_MAX = 91 * 24 * 3600
#: of signers under kubernetes.io
OWN_LIFETIME_SECONDS_MAX = 24 * 3600
REQUEST_BYTES_MAX = 10 * 1024
CHAIN_BYTES_MAX = 100 * 1024
_CLOCK_SKEW = timedelta(minutes=5)
_REFRESH_MARGIN = timedelta(minutes=10)
_RSA_BITS = (3072, 4096)
_CURVES = ("secp256r1", "secp384r1", "secp521r1")
_FINAL = ("Issued", "Denied", "Failed")
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----\s*", re.DOTALL)


def create(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    signer = spec.get("signerName") or ""
    certificates.signer_name(out, "spec.signerName", signer)
    for key in spec.get("unverifiedUserAnnotations") or ():
        checked(out, "spec.unverifiedUserAnnotations", key.lower(), names.qualified_name)
        if "/" not in key:
            out.append(invalid("spec.unverifiedUserAnnotations", key, "must be domain-prefixed"))
    for who in ("pod", "serviceAccount", "node"):
        checked(out, f"spec.{who}Name", spec.get(f"{who}Name") or "", names.dns1123_subdomain)
        uid = spec.get(f"{who}UID") or ""
        if not uid:
            out.append(invalid(f"spec.{who}UID", uid, "must not be empty"))
        if len(uid) > UID_LENGTH_MAX:
            out.append(too_long(f"spec.{who}UID", UID_LENGTH_MAX))
    seconds = spec.get("maxExpirationSeconds")
    if seconds is None:
        out.append(required("spec.maxExpirationSeconds", "must be set"))
        return out
    domain = signer.partition("/")[0]
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    most = OWN_LIFETIME_SECONDS_MAX if own else LIFETIME_SECONDS_MAX
    if not LIFETIME_SECONDS_MIN <= seconds <= most:
        out.append(invalid("spec.maxExpirationSeconds", seconds, f"must be in the range [{LIFETIME_SECONDS_MIN}, {most}]"))
    if spec.get("stubPKCS10Request") or not spec.get("pkixPublicKey"):
        _request(out, spec.get("stubPKCS10Request") or "")
    else:
        _public_key(out, spec)
    return out


def _public_key(out: Errors, spec: Part) -> None:
    """Of the versions in which a kubelet sends the key itself, and its signature of the pod's UID."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    path, encoded = "spec.pkixPublicKey", spec["pkixPublicKey"]
    data, proof, signed = _bytes(encoded), _bytes(spec.get("proofOfPossession") or ""), (spec.get("podUID") or "").encode()
    for field, value in (("pkixPublicKey", data), ("proofOfPossession", proof)):
        if len(value) > REQUEST_BYTES_MAX:
            out.append(too_long(f"spec.{field}", REQUEST_BYTES_MAX))
            return
    try:
        key = serialization.load_der_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        out.append(invalid(path, encoded, "must be a valid PKIX-serialized public key"))
        return
    if wrong := _key_error(key):
        out.append(invalid_unshown(path, wrong))
        return
    try:
        if isinstance(key, rsa.RSAPublicKey):
            salted = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)
            key.verify(proof, signed, salted, hashes.SHA256())
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(proof, signed, ec.ECDSA(hashes.SHA256()))
        else:
            key.verify(proof, signed)  # type: ignore[union-attr, call-arg]
    except InvalidSignature:
        out.append(invalid_unshown("spec.proofOfPossession", "could not verify proof-of-possession signature"))


def _request(out: Errors, encoded: str) -> None:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    path = "spec.stubPKCS10Request"
    data = _bytes(encoded)
    if len(data) > REQUEST_BYTES_MAX:
        out.append(too_long(path, REQUEST_BYTES_MAX))
        return
    try:
        request = x509.load_der_x509_csr(data)
        key, valid = request.public_key(), request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm):
        out.append(invalid(path, encoded, "must be a valid PKCS#10 certificate signing request"))
        return
    if wrong := _key_error(key):
        out.append(invalid_unshown(path, wrong))
    elif not valid:
        out.append(invalid_unshown(path, "could not verify certificate signing request signature"))


def _key_error(key: Any) -> str:
    """Why a public key may not be certified; "" where it may."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, rsa.RSAPublicKey):
        return "" if key.key_size in _RSA_BITS else "RSA keys must have modulus size 3072 or 4096"
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "" if key.curve.name in _CURVES else "elliptic public keys must use curve P256 or P384"
    return "" if isinstance(key, ed25519.Ed25519PublicKey) else "unknown public key type; supported types are Ed25519, ECDSA, and RSA"


def _bytes(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return b""


def update(new: Part, old: Part) -> list[FieldError]:
    return [] if equal(new.get("spec"), old.get("spec")) else [invalid("spec", new.get("spec"), IMMUTABLE)]


def status_update(new: Part, old: Part, now: str) -> list[FieldError]:
    """``now`` is RFC 3339. A request is decided once: issued with a certificate that fits it, denied or failed."""
    out: Errors = []
    status, was = new.get("status") or _NOTHING, old.get("status") or _NOTHING
    found = list(status.get("conditions") or ())
    decided = False
    for i, condition in each(out, found):
        at, kind, value = f"status.conditions.[{i}]", condition.get("type") or "", condition.get("status") or ""
        if kind not in _FINAL:
            out.append(not_supported(f"{at}.type", kind, list(_FINAL)))
            continue
        if decided:
            out.append(invalid(f"{at}.type", kind, 'There may be at most one condition with type "Issued", "Denied", or "Failed"'))
        if value != "True":
            out.append(not_supported(f"{at}.status", value, ["True"]))
        decided = True
    conditions.conditions(out, "status.conditions", found)
    if out:
        return out
    if was.get("conditions"):
        if not equal(status, was):
            out.append(invalid_unshown("status", "immutable after PodCertificateRequest is issued, denied, or failed"))
    elif not decided:
        if not equal(status, was):
            words = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
            out.append(invalid_unshown("status", words))
    elif found[0].get("type") != "Issued":
        if not equal({k: v for k, v in status.items() if k != "conditions"}, {}):
            words = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
            out.append(invalid_unshown("status", words))
    else:
        _issued(out, status, new.get("spec") or _NOTHING, timestamps.parse_time(now))
    return out


def _issued(out: Errors, status: Part, spec: Part, now: datetime) -> None:
    chain = status.get("certificateChain") or ""
    path = "status.certificateChain"
    if names.byte_length(chain) > CHAIN_BYTES_MAX:
        out.append(too_long(path, CHAIN_BYTES_MAX))
        return
    loaded = _chain(out, path, chain)
    if loaded is None:
        return
    leaf = loaded[0]
    if not _is_of_request(leaf, spec):
        out.append(invalid(path, chain, "leaf certificate was not issued to the requested public key"))
        return
    dates: dict[str, datetime] = {}
    for field, words in (
        ("notBefore", "must be present and consistent with the issued certificate"),
        ("notAfter", "must be present and consistent with the issued certificate"),
        ("beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]"),
    ):
        if status.get(field) is None:
            out.append(required(f"status.{field}", words))
        else:
            dates[field] = timestamps.parse_time(status[field])
    if not out:
        _lifetime(out, leaf, status, dates, spec.get("maxExpirationSeconds") or 0, now)


def _chain(out: Errors, path: str, chain: str) -> list[x509.Certificate] | None:
    from cryptography import x509

    blocks = list(_PEM.finditer(chain.encode()))
    if not blocks:
        out.append(invalid(path, chain, "issued certificate chain must contain at least one certificate"))
        return None
    loaded = []
    for i, block in each(out, blocks):
        if block[1] != b"CERTIFICATE":
            out.append(invalid(path, chain, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"))
            return None
        try:
            loaded.append(x509.load_pem_x509_certificate(block[0]))
        except ValueError:
            whose = "intermediate" if i else "leaf"
            out.append(invalid(path, chain, f"{whose} certificate does not parse as valid X.509"))
            return None
    return loaded


def _is_of_request(leaf: x509.Certificate, spec: Part) -> bool:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        if spec.get("stubPKCS10Request"):
            return bool(leaf.public_key() == x509.load_der_x509_csr(_bytes(spec["stubPKCS10Request"])).public_key())
        return bool(leaf.public_key() == serialization.load_der_public_key(_bytes(spec.get("pkixPublicKey") or "")))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


def _lifetime(out: Errors, leaf: x509.Certificate, status: Part, dates: dict[str, datetime], seconds: int, now: datetime) -> None:
    start, end, refresh = dates["notBefore"], dates["notAfter"], dates["beginRefreshAt"]
    begins, ends = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    lifetime = (ends - begins).total_seconds()
    if start != begins:
        where, words = "status.notBefore", "must be set to the NotBefore time encoded in the leaf certificate"
    elif abs(start - now.astimezone(UTC)) >= _CLOCK_SKEW:
        where, words = "status.notBefore", "must be set to within 5 minutes of kube-apiserver's current time"
    elif end != ends:
        where, words = "status.notAfter", "must be set to the NotAfter time encoded in the leaf certificate"
    elif lifetime < LIFETIME_SECONDS_MIN:
        out.append(invalid("status.certificateChain", int(lifetime * 1e9), "leaf certificate lifetime must be >= 1 hour"))
        return
    elif lifetime > seconds:
        words = f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({seconds})"
        out.append(invalid("status.certificateChain", int(lifetime * 1e9), words))
        return
    elif refresh < start + _REFRESH_MARGIN:
        where, words = "status.beginRefreshAt", "must be at least 10 minutes after status.notBefore"
    elif refresh > end - _REFRESH_MARGIN:
        where, words = "status.beginRefreshAt", "must be at least 10 minutes before status.notAfter"
    else:
        return
    out.append(invalid(where, status[where.partition(".")[2]], words))
