"""CertificateSigningRequests (certificates ``validation``)."""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names, spec_diff
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from apiserver.registry.validation.common import Errors, each, equal

Part = Mapping[str, Any]

_NOTHING: Part = {}
SIGNER_NAME_LENGTH_MAX = 253 + 1 + 63 + 1 + 253
EXPIRATION_SECONDS_MIN = 600
TRUST_BUNDLE_BYTES_MAX = 1024 * 1024
_PEM_BLOCK = re.compile(r"-----BEGIN ([^-\n]+)-----\n([^-]*)-----END \1-----")
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_TRUE_ONLY = ("Approved", "Denied", "Failed")
_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only",
    "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement",
    "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
)  # fmt: skip


def create(obj: Part, *, tolerant: bool = False) -> list[FieldError]:
    """``tolerant``: what an object that is stored already may have: unknown or repeated usages."""
    out: Errors = []
    spec, status = obj.get("spec") or _NOTHING, obj.get("status") or _NOTHING
    request, usages = spec.get("request") or "", spec.get("usages") or ()
    wrong = _request_error(request)
    if wrong:
        out.append(invalid("spec.request", request, wrong))
    if not usages:
        out.append(required("spec.usages", "usages must be provided"))
    if not tolerant:
        for i, usage in each(out, usages):
            if usage not in _USAGES:
                out.append(not_supported(f"spec.usages[{i}]", usage, list(_USAGES)))
        for i, usage in each(out, usages):
            if usage in usages[:i]:
                out.append(duplicate(f"spec.usages[{i}]", usage))
    signer = spec.get("signerName") or ""
    if not tolerant and signer == _LEGACY_SIGNER:
        out.append(invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        signer_name(out, "spec.signerName", signer)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < EXPIRATION_SECONDS_MIN:
        words = "may not specify a duration less than 600 seconds (10 minutes)"
        out.append(invalid("spec.expirationSeconds", seconds, words))
    _conditions(out, status.get("conditions") or ())
    if status.get("certificate"):
        wrong = _certificate_error(status["certificate"])
        if wrong:
            out.append(invalid("status.certificate", "<certificate data>", wrong))
    return out


def _request_error(encoded: str) -> str:
    """Why the PKCS #10 request cannot be used; "" where it can."""
    from cryptography import x509

    try:
        data = base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        return "PEM block type must be CERTIFICATE REQUEST"
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in data:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_pem_x509_csr(data)
        valid = request.is_signature_valid
    except ValueError as error:
        return f"x509: malformed certificate request: {error}"
    return "" if valid else "x509: certificate request's signature is not valid"


def _certificate_error(encoded: str) -> str:
    from cryptography import x509

    data = base64.b64decode(encoded)
    if b"-----BEGIN CERTIFICATE-----" not in data:
        return "must contain at least one CERTIFICATE PEM block"
    try:
        x509.load_pem_x509_certificates(data)
    except ValueError as error:
        return f"x509: malformed certificate: {error}"
    return ""


def signer_name(out: Errors, path: str, name: str) -> None:
    """``example.com/some-signer``."""
    if not name:
        out.append(required(path, "signerName must be provided"))
        return
    parts = name.split("/")
    if len(parts) != 2:
        out.append(invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'"))
        return
    domain, signer = parts
    if len(domain) > names.DNS1123_SUBDOMAIN_MAX_LENGTH:
        out.append(too_long(path, names.DNS1123_SUBDOMAIN_MAX_LENGTH))
    labels = domain.split(".")
    for label in labels:
        found = names.dns1123_label(label)
        if found:
            out.extend(invalid(path, domain, f'validating label "{label}": {message}') for message in found)
            break
    if len(labels) < 2:
        out.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    for label in signer.split("."):
        found = names.dns1123_subdomain(label)
        if found:
            out.extend(invalid(path, signer, f'validating label "{label}": {message}') for message in found)
            break
    if len(name) > SIGNER_NAME_LENGTH_MAX:
        out.append(too_long(path, SIGNER_NAME_LENGTH_MAX))


def _conditions(out: Errors, conditions: Any) -> None:
    seen: set[str] = set()
    for i, condition in each(out, conditions):
        path, kind, value = f"status.conditions[{i}]", condition.get("type") or "", condition.get("status") or ""
        if not kind:
            out.append(required(f"{path}.type"))
        allowed = ["True"] if kind in _TRUE_ONLY else ["False", "True", "Unknown"]
        if not value:
            out.append(required(f"{path}.status"))
        elif value not in allowed:
            out.append(not_supported(f"{path}.status", value, allowed))
        if (kind == "Approved" and "Denied" in seen) or (kind == "Denied" and "Approved" in seen):
            out.append(invalid(f"{path}.type", kind, "Approved and Denied conditions are mutually exclusive"))
        if kind in seen:
            out.append(duplicate(f"{path}.type", kind))
        seen.add(kind)


def update(new: Part, old: Part, *, approving: bool = False, signing: bool = False) -> list[FieldError]:
    """``approving``: through ``/approval``; ``signing``: through ``/status``."""
    out = create(new, tolerant=True)
    have, had = new.get("status") or _NOTHING, old.get("status") or _NOTHING
    for kind in _TRUE_ONLY:
        now, was = _of_type(have, kind), _of_type(had, kind)
        if len(now) < len(was):
            out.append(forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"'))
    if not approving:
        for kind in ("Approved", "Denied"):
            now, was = _of_type(have, kind), _of_type(had, kind)
            if len(now) > len(was):
                out.append(forbidden("status.conditions", f'updates may not add a condition of type "{kind}"'))
            elif len(now) == len(was) and not equal(now, was):
                words = f'updates may not modify a condition of type "{kind}"\n{spec_diff.describe(was, now)}'
                out.append(forbidden("status.conditions", words))
    if (have.get("certificate") or "") != (had.get("certificate") or ""):
        if not signing:
            out.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif had.get("certificate"):
            out.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return out


def _of_type(status: Part, kind: str) -> list[Part]:
    return [condition for condition in status.get("conditions") or () if condition.get("type") == kind]


def trust_bundle(obj: Part, old: Part | None = None) -> list[FieldError]:
    """A ClusterTrustBundle: its name begins with its signer's where it has one. A bundle that an update leaves alone is not read."""
    out: Errors = []
    spec, name = obj.get("spec") or _NOTHING, (obj.get("metadata") or _NOTHING).get("name") or ""
    signer = spec.get("signerName") or ""
    if signer:
        signer_name(out, "spec.signerName", signer)
        prefix = signer.replace("/", ":") + ":"
        if not name.startswith(prefix):
            words = f'ClusterTrustBundle for signerName {signer} must be named with prefix "{prefix}"'
            out.append(invalid("metadata.name", name, words))
    elif ":" in name:
        out.append(invalid("metadata.name", name, 'ClusterTrustBundle without signer name must not have ":" in its name'))
    bundle = spec.get("trustBundle") or ""
    if old is None or bundle != ((old.get("spec") or _NOTHING).get("trustBundle") or ""):
        _trust_anchors(out, "spec.trustBundle", bundle)
    return out


def _trust_anchors(out: Errors, path: str, bundle: str) -> None:
    """One certificate of an authority at least, each once, and nothing else."""
    if len(bundle) > TRUST_BUNDLE_BYTES_MAX:
        out.append(too_long(path, TRUST_BUNDLE_BYTES_MAX))
        return
    wrong, entries = [], defaultdict(list)
    for i, block in each(out, _PEM_BLOCK.finditer(bundle)):
        if error := _anchor_error(i, block):
            wrong.append(error)
        else:
            entries["".join(block[2].split())].append(i)
    if not wrong and not entries:
        wrong.append("at least one trust anchor must be provided")
    elif not wrong:
        repeated = (" ".join(map(str, indices)) for indices in entries.values() if len(indices) > 1)
        wrong += [f"duplicate trust anchor (indices [{indices}])" for indices in repeated]
    out += [invalid(path, "<value omitted>", words) for words in wrong]


def _anchor_error(i: int, block: re.Match[str]) -> str:
    from cryptography import x509

    if block[1] != "CERTIFICATE":
        return f"entry {i} has bad block type: {block[1]}"
    if ":" in block[2]:
        return f"entry {i} has PEM block headers"
    try:
        certificate = x509.load_pem_x509_certificate(block[0].encode())
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return f"entry {i} does not have the CA bit set"
    except ValueError:
        return f"entry {i} does not parse as X.509"
    return "" if constraints.ca else f"entry {i} does not have the CA bit set"
