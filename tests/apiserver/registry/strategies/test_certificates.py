"""PodCertificateRequests, trust bundles and storage version migrations."""

from __future__ import annotations

import base64
import copy
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from apiserver.machinery import timestamps
from apiserver.machinery.objects import Object
from tests.apiserver.registry.strategies.golden_steps import NOW
from tests.apiserver.registry.strategies.kinds import context, create_errors, created, of, rules, update_errors

GROUP = "certificates.k8s.io"
BEGIN = timestamps.parse_time(NOW).astimezone(UTC)


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def request_of(private: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(private, hashes.SHA256())
    return base64.b64encode(csr.public_bytes(serialization.Encoding.DER)).decode()


def certificate(*, ca: bool = False, hours: int = 2, private: ec.EllipticCurvePrivateKey | None = None, begin: datetime = BEGIN) -> str:
    private = private or key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    builder = x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(begin).not_valid_after(begin + timedelta(hours=hours))
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def pod_request(**spec: object) -> Object:
    identities = {f"{who}{part}": "a" for who in ("pod", "serviceAccount", "node") for part in ("Name", "UID")}
    found = {"signerName": "example.com/s", "stubPKCS10Request": request_of(key()), **identities, **spec}
    return of({k: v for k, v in found.items() if v is not None}, api_version=f"{GROUP}/v1")


def test_a_request_of_a_kubelet_is_for_a_day_and_of_a_known_key() -> None:
    strategy = rules("PodCertificateRequest", GROUP)
    stored = created(strategy, pod_request())
    assert stored["spec"]["maxExpirationSeconds"] == 86400
    assert stored["status"] == {}
    assert create_errors(strategy, pod_request(podUID=None, maxExpirationSeconds=60)) == [
        'spec.podUID: Invalid value: "": must not be empty',
        "spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]",
    ]
    assert create_errors(strategy, pod_request(signerName="kubernetes.io/s", maxExpirationSeconds=86401)) == [
        "spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"
    ]
    weak = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert create_errors(strategy, pod_request(stubPKCS10Request=request_of(weak))) == [
        "spec.stubPKCS10Request: Invalid value: RSA keys must have modulus size 3072 or 4096"
    ]
    assert create_errors(strategy, pod_request(stubPKCS10Request="AAAA"))[0].endswith("must be a valid PKCS#10 certificate signing request")
    new = copy.deepcopy(stored)
    new["spec"]["podName"] = "b"
    assert update_errors(strategy, new, stored)[0].endswith(": field is immutable")


def issued(chain: str, **status: object) -> Object:
    times = {
        "notBefore": NOW,
        "notAfter": timestamps.format_time(BEGIN + timedelta(hours=2)),
        "beginRefreshAt": timestamps.format_time(BEGIN + timedelta(hours=1)),
    }
    condition = {"type": "Issued", "status": "True", "reason": "R", "lastTransitionTime": NOW}
    return {"conditions": [condition], "certificateChain": chain, **times, **status}


def status_errors(status: Object, was: Object | None = None) -> list[str]:
    strategy = rules("PodCertificateRequest", GROUP)
    old = {**created(strategy, pod_request()), "status": was or {}}
    return [error.text() for error in strategy.validate_status_update(context(), {**old, "status": status}, old)]


def test_a_certificate_must_fit_its_request() -> None:
    good = issued(certificate())
    assert status_errors(good) == []
    assert status_errors({"certificateChain": "x"}) == [
        'status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    ]
    other = certificate(private=ec.generate_private_key(ec.SECP256R1()))
    assert status_errors(issued(other))[0].endswith("leaf certificate was not issued to the requested public key")
    assert status_errors(issued(certificate(), beginRefreshAt=NOW)) == [
        f'status.beginRefreshAt: Invalid value: "{NOW}": must be at least 10 minutes after status.notBefore'
    ]
    assert status_errors({**good, "notAfter": None}) == [
        "status.notAfter: Required value: must be present and consistent with the issued certificate"
    ]
    assert status_errors({**good, "certificateChain": ""}, good) == [
        "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"
    ]


def test_denying_leaves_no_certificate() -> None:
    denied = {"type": "Denied", "status": "True", "reason": "R", "lastTransitionTime": NOW}
    assert status_errors({"conditions": [denied]}) == []
    assert status_errors({"conditions": [denied], "certificateChain": "x"}) == [
        "status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest"
    ]
    assert status_errors({"conditions": [{**denied, "status": "False"}]}) == [
        'status.conditions.[0].status: Unsupported value: "False": supported values: "True"'
    ]


def bundle(text: str) -> Object:
    return of({"trustBundle": text}, api_version=f"{GROUP}/v1")


def test_a_trust_bundle_holds_authorities_each_once() -> None:
    strategy = rules("ClusterTrustBundle", GROUP)
    anchor = certificate(ca=True)
    stored = created(strategy, bundle(f"a comment\n{anchor}"))
    for text, why in (
        ("", "at least one trust anchor must be provided"),
        (certificate(), "entry 0 does not have the CA bit set"),
        (anchor + anchor, "duplicate trust anchor (indices [0 1])"),
        ("-----BEGIN X-----\nAAAA\n-----END X-----\n", "entry 0 has bad block type: X"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "entry 0 does not parse as X.509"),
    ):
        assert create_errors(strategy, bundle(text)) == [f'spec.trustBundle: Invalid value: "<value omitted>": {why}']
    broken = {**stored, "spec": {"trustBundle": "old"}}
    assert update_errors(strategy, copy.deepcopy(broken), broken) == [], "what does not change is not read"


def test_a_migration_ends_once() -> None:
    strategy = rules("StorageVersionMigration", "storagemigration.k8s.io")
    assert create_errors(strategy, of({"resource": {"group": "", "resource": ""}}, api_version="storagemigration.k8s.io/v1")) == [
        "spec.resource.resource: Required value: resource is required"
    ]
    stored = created(strategy, of({"resource": {"group": "", "resource": "pods"}}, api_version="storagemigration.k8s.io/v1"))

    def condition(kind: str, status: str = "True") -> Object:
        return {"type": kind, "status": status, "reason": "R", "lastTransitionTime": NOW}

    def errors(status: Object, was: Object) -> list[str]:
        found = strategy.validate_status_update(context(), {**stored, "status": status}, {**stored, "status": was})
        return [error.detail for error in found]

    done = {"conditions": [condition("Succeeded")], "resourceVersion": "5"}
    assert errors(done, {}) == []
    assert errors({**done, "resourceVersion": "6"}, done) == ["resourceVersion cannot be updated"]
    assert errors({"conditions": [condition("Succeeded"), condition("Running")]}, {}) == [
        "Running condition cannot be true when success condition is true"
    ]
    assert errors({**done, "conditions": [condition("Succeeded", "False")]}, done) == [
        "Success condition cannot be set to false once it is true"
    ]
    moved = copy.deepcopy(stored)
    moved["spec"]["resource"]["resource"] = "nodes"
    assert update_errors(strategy, moved, stored) == ['resource: Invalid value: "nodes": field is immutable']
