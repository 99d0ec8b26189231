"""Signing of certificate requests: what each signer gives and refuses, how long it lasts, and what is written."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.machinery.objects import Object
from controllers.certificates import signing
from controllers.certificates.approving import ApprovingController, Recognized, recognize
from controllers.certificates.cleaning import CleaningController, goes_at
from controllers.certificates.controller import SigningController
from controllers.certificates.signing import Authority, RefusedError
from controllers.certificates.trust_bundle import TrustBundlePublisher, bundle_of
from controllers.client.resources import CERTIFICATE_SIGNING_REQUESTS, CLUSTER_TRUST_BUNDLES, SUBJECT_ACCESS_REVIEWS, Resource
from tests.controllers.world import World

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
YEAR = datetime.timedelta(days=365)


def subject(common: str, *organizations: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def authority(now: datetime.datetime = NOW, life: datetime.timedelta = 10 * YEAR) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder().subject_name(subject("ca")).issuer_name(subject("ca")).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - YEAR).not_valid_after(now + life)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Authority(certificate=builder.sign(key, hashes.SHA256()), key=key, duration=YEAR)


def request(
    name: x509.Name, *usages: str, signer: str = signing.CLIENT, names: list[x509.GeneralName] | None = None, **spec: Any
) -> Object:
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    whole = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(usages), **spec}
    return {"metadata": {"name": "r"}, "spec": whole, "status": {"conditions": [{"type": "Approved", "status": "True"}]}}


def signed(asked: Object, ca: Authority | None = None) -> x509.Certificate:
    return x509.load_pem_x509_certificate(signing.sign(asked, ca or authority(), NOW, 7))


def test_a_client_certificate_is_the_request_signed_by_the_ca() -> None:
    ca = authority()
    found = signed(request(subject("joe", "dev"), "client auth", "digital signature"), ca)
    found.verify_directly_issued_by(ca.certificate)
    assert found.subject == subject("joe", "dev") and found.serial_number == 7
    assert list(found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    usage = found.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature and not usage.key_encipherment and not usage.key_cert_sign


def test_without_key_usages_there_is_no_such_extension() -> None:
    """RFC 5280, 4.2.1.3: when the extension appears, at least one bit is set; OpenSSL refuses others."""
    with pytest.raises(x509.ExtensionNotFound):
        signed(request(subject("joe"), "client auth")).extensions.get_extension_for_class(x509.KeyUsage)


@pytest.mark.parametrize(
    ("wanted", "life", "ends"),
    [
        (None, 10 * YEAR, NOW + YEAR - signing.BACKDATE),
        (3600, 10 * YEAR, NOW + datetime.timedelta(hours=1)),
        (86_400, 10 * YEAR, NOW + datetime.timedelta(days=1) - signing.BACKDATE),
        (10**9, 10 * YEAR, NOW + YEAR - signing.BACKDATE),
        (None, datetime.timedelta(days=2), NOW + datetime.timedelta(days=2)),
    ],
)
def test_how_long_it_lasts(wanted: int | None, life: datetime.timedelta, ends: datetime.datetime) -> None:
    asked = request(subject("joe"), "client auth", expirationSeconds=wanted)
    found = signed(asked, authority(life=life))
    assert found.not_valid_before_utc == NOW - signing.BACKDATE and found.not_valid_after_utc == ends


KUBELET = subject("system:node:n", "system:nodes")
ADDRESS = x509.IPAddress(ipaddress.ip_address("10.0.0.1"))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request(subject("joe"), "server auth"), "invalid usage for client certificate: server auth"),
        (request(subject("joe"), "client auth", "server auth"), "invalid usage for client certificate: server auth"),
        (request(subject("joe"), "digital signature"), "missing required usage for client certificate: client auth"),
        (request(KUBELET, "client auth", signer=signing.KUBELET_CLIENT), "usages did not match .client auth digital signature key enc"),
        (request(subject("joe"), "client auth", signer=signing.KUBELET_CLIENT), "subject organization is not system:nodes"),
        (request(subject("joe", "system:nodes"), "client auth", signer=signing.KUBELET_CLIENT), "does not begin with system:node:"),
        (request(KUBELET, "client auth", signer=signing.KUBELET_CLIENT, names=[ADDRESS]), "IP subjectAltNames are not allowed"),
        (request(KUBELET, "server auth", signer=signing.KUBELET_SERVING), "DNS or IP subjectAltName is required"),
        (request(subject("joe"), "client auth", request="bm9uc2Vuc2U="), "unable to parse csr"),
    ],
)
def test_what_a_signer_refuses(asked: Object, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        signing.sign(asked, authority(), NOW, 7)


def test_what_kubelets_get() -> None:
    signed(request(KUBELET, "client auth", "digital signature", signer=signing.KUBELET_CLIENT))
    usages = ("server auth", "key encipherment", "digital signature")
    found = signed(request(KUBELET, *usages, signer=signing.KUBELET_SERVING, names=[ADDRESS]))
    assert list(found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == [ADDRESS]


def test_a_key_of_another_certificate_is_no_authority() -> None:
    one, other = authority(), authority()
    pem = other.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with pytest.raises(ValueError, match="not that of the certificate"):
        signing.load_authority(one.certificate.public_bytes(serialization.Encoding.PEM), pem, 1)


async def test_an_approved_request_is_signed_and_others_wait() -> None:
    world = World()
    ca = authority(world.clock.now())
    async with world.running(lambda context: SigningController(context, ca)):

        def made(name: str, *conditions: str, **more: Any) -> Object:
            whole = request(subject(name), "client auth", **more)
            whole["metadata"]["name"] = name
            whole["status"] = {"conditions": [{"type": c, "status": "True"} for c in conditions]}
            return whole

        for one in (
            made("approved", "Approved"),
            made("waiting"),
            made("denied", "Denied"),
            made("foreign", "Approved", signer="a.b/c"),
            made("wrong", "Approved", request="bm9uc2Vuc2U="),
        ):
            await world.api.create(CERTIFICATE_SIGNING_REQUESTS, "", one)
        await world.rest()
        found = {r["metadata"]["name"]: r["status"] for r in world.api.all(CERTIFICATE_SIGNING_REQUESTS)}
        certificate = x509.load_pem_x509_certificate(base64.b64decode(found["approved"]["certificate"]))
        certificate.verify_directly_issued_by(ca.certificate)
        assert [name for name, status in found.items() if "certificate" in status] == ["approved"]
        failed = found["wrong"]["conditions"][-1]
        assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")


NODE_USAGES = ("client auth", "digital signature", "key encipherment")


def undecided(asked: Object, username: str, **spec: Any) -> Object:
    return {**asked, "spec": {**asked["spec"], "username": username, **spec}, "status": {}}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (undecided(request(KUBELET, *NODE_USAGES, signer=signing.KUBELET_CLIENT), "system:bootstrap:x"), [Recognized.ANY]),
        (undecided(request(KUBELET, *NODE_USAGES[:2], signer=signing.KUBELET_CLIENT), "system:bootstrap:x"), [Recognized.ANY]),
        (undecided(request(KUBELET, *NODE_USAGES, signer=signing.KUBELET_CLIENT), "system:node:n"), [Recognized.OWN, Recognized.ANY]),
        (undecided(request(KUBELET, *NODE_USAGES, "server auth", signer=signing.KUBELET_CLIENT), "x"), []),
        (undecided(request(subject("system:node:n"), *NODE_USAGES, signer=signing.KUBELET_CLIENT), "x"), []),
        (undecided(request(KUBELET, *NODE_USAGES, signer=signing.CLIENT), "x"), []),
        (undecided(request(KUBELET, *NODE_USAGES, signer=signing.KUBELET_CLIENT, names=[ADDRESS]), "x"), []),
        (request(KUBELET, *NODE_USAGES, signer=signing.KUBELET_CLIENT), []),  # approved already
    ],
)
def test_which_requests_of_kubelets_are_recognized(asked: Object, found: list[Recognized]) -> None:
    assert recognize(asked) == found


async def test_a_kubelets_request_is_approved_where_its_user_may(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    reviews: list[Object] = []
    create = world.api.create

    async def reviewing(resource: Resource, namespace: str, obj: Object, **more: Any) -> Object:
        if resource != SUBJECT_ACCESS_REVIEWS:
            return await create(resource, namespace, obj, **more)
        reviews.append(obj["spec"])
        allowed = (obj["spec"]["user"], obj["spec"]["resourceAttributes"]["subresource"])
        return {**obj, "status": {"allowed": allowed in (("system:bootstrap:x", "nodeclient"), ("system:node:n", "selfnodeclient"))}}

    monkeypatch.setattr(world.api, "create", reviewing)
    async with world.running(ApprovingController):
        for name, user in (("joins", "system:bootstrap:x"), ("renews", "system:node:n"), ("stranger", "joe")):
            one = undecided(request(KUBELET, *NODE_USAGES, signer=signing.KUBELET_CLIENT), user, groups=["g"])
            one["metadata"] = {"name": name}
            await world.api.create(CERTIFICATE_SIGNING_REQUESTS, "", one)
        await world.rest()
        found = {r["metadata"]["name"]: r["status"].get("conditions", []) for r in world.api.all(CERTIFICATE_SIGNING_REQUESTS)}
        assert {name: [c["message"] for c in conditions] for name, conditions in found.items()} == {
            "joins": ["Auto approving kubelet client certificate after SubjectAccessReview."],
            "renews": ["Auto approving self kubelet client certificate after SubjectAccessReview."],
            "stranger": [],
        }
        assert (found["joins"][0]["type"], found["joins"][0]["reason"]) == ("Approved", "AutoApproved")
        assert reviews[0]["groups"] == ["g"]


def at(hours: float) -> datetime.datetime:
    return NOW + datetime.timedelta(hours=hours)


def test_when_a_request_goes() -> None:
    made = {"metadata": {"creationTimestamp": "2030-01-01T00:00:00Z"}}
    assert goes_at({**made, "status": {}}) == at(24)
    for type_ in ("Approved", "Denied", "Failed"):
        conditions = [{"type": type_, "status": "True", "lastUpdateTime": "2030-01-01T05:00:00Z"}]
        assert goes_at({**made, "status": {"conditions": conditions}}) == at(6)
    asked = request(subject("joe"), "client auth", expirationSeconds=900)
    pem = signing.sign(asked, authority(), NOW, 7)
    conditions = [{"type": "Approved", "status": "True", "lastUpdateTime": "2030-01-01T00:00:00Z"}]
    assert goes_at({**made, "status": {"conditions": conditions, "certificate": base64.b64encode(pem).decode()}}) == at(0.25)


async def test_a_request_that_nobody_decided_goes_after_a_day() -> None:
    world = World()
    async with world.running(CleaningController):
        one = undecided(request(subject("joe"), "client auth"), "joe")
        await world.api.create(CERTIFICATE_SIGNING_REQUESTS, "", one)
        await world.advance(23.9 * 3600)
        assert len(world.api.all(CERTIFICATE_SIGNING_REQUESTS)) == 1
        await world.advance(3600)
        assert world.api.all(CERTIFICATE_SIGNING_REQUESTS) == []


async def test_the_clusters_ca_is_published_and_earlier_ones_go() -> None:
    world = World()
    old, stranger = (
        bundle_of("an earlier CA"),
        bundle_of("x") | {"metadata": {"name": "example.org:s:x"}, "spec": {"signerName": "example.org/s"}},
    )
    await world.api.create(CLUSTER_TRUST_BUNDLES, "", old)
    await world.api.create(CLUSTER_TRUST_BUNDLES, "", stranger)

    def names() -> list[str]:
        return sorted(bundle["metadata"]["name"] for bundle in world.api.all(CLUSTER_TRUST_BUNDLES))

    async with world.running(lambda context: TrustBundlePublisher(context, "the CA")):
        wanted = bundle_of("the CA")["metadata"]["name"]
        assert wanted.startswith("kubernetes.io:kube-apiserver-serving:") and len(wanted.rpartition(":")[2]) == 24
        assert names() == sorted(["example.org:s:x", wanted])
        await world.api.delete(CLUSTER_TRUST_BUNDLES, "", wanted)
        await world.rest()
        assert names() == sorted(["example.org:s:x", wanted])
