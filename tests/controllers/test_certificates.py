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
from controllers.certificates.controller import SigningController
from controllers.certificates.signing import Authority, RefusedError
from controllers.client.resources import CERTIFICATE_SIGNING_REQUESTS
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
        (request(subject("joe"), "server auth"), "usages did not match: client auth is required"),
        (request(subject("joe"), "client auth", "server auth"), "usages did not match"),
        (request(subject("joe"), "client auth", signer=signing.KUBELET_CLIENT), "subject organization is not system:nodes"),
        (request(subject("joe", "system:nodes"), "client auth", signer=signing.KUBELET_CLIENT), "does not begin with system:node:"),
        (request(KUBELET, "client auth", signer=signing.KUBELET_CLIENT, names=[ADDRESS]), "names are not allowed"),
        (request(KUBELET, "server auth", signer=signing.KUBELET_SERVING), "DNS or IP subjectAltName is required"),
        (request(subject("joe"), "client auth", request="bm9uc2Vuc2U="), "unable to parse csr"),
    ],
)
def test_what_a_signer_refuses(asked: Object, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        signing.sign(asked, authority(), NOW, 7)


def test_what_kubelets_get() -> None:
    signed(request(KUBELET, "client auth", "digital signature", signer=signing.KUBELET_CLIENT))
    found = signed(request(KUBELET, "server auth", "key encipherment", signer=signing.KUBELET_SERVING, names=[ADDRESS]))
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

        for one in (made("approved", "Approved"), made("waiting"), made("denied", "Denied"), made("foreign", "Approved", signer="a.b/c"),
                    made("wrong", "Approved", request="bm9uc2Vuc2U=")):
            await world.api.create(CERTIFICATE_SIGNING_REQUESTS, "", one)
        await world.rest()
        found = {r["metadata"]["name"]: r["status"] for r in world.api.all(CERTIFICATE_SIGNING_REQUESTS)}
        certificate = x509.load_pem_x509_certificate(base64.b64decode(found["approved"]["certificate"]))
        certificate.verify_directly_issued_by(ca.certificate)
        assert [name for name, status in found.items() if "certificate" in status] == ["approved"]
        failed = found["wrong"]["conditions"][-1]
        assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
