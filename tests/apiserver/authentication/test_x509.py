"""Client certificates (field case P1)."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.authentication.interfaces import AuthenticationError
from apiserver.authentication.x509 import X509Authenticator

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)


class Authority:
    def __init__(self, name: str = "ca", *, ca: bool = True, days: int = 3650) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self.name, self.key, -10, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        self.certificate = builder.sign(self.key, hashes.SHA256())

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, first: int, last: int) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW + datetime.timedelta(days=first))
            .not_valid_after(NOW + datetime.timedelta(days=last))
        )

    def issue(
        self,
        common_name: str = "ann",
        organizations: tuple[str, ...] = ("dev",),
        *,
        first: int = -1,
        last: int = 1,
        usages: tuple[x509.ObjectIdentifier, ...] | None = CLIENT,
        critical: x509.UnrecognizedExtension | None = None,
    ) -> bytes:
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
        if common_name:
            attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        builder = self._builder(x509.Name(attributes), ec.generate_private_key(ec.SECP256R1()), first, last)
        if usages is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if critical is not None:
            builder = builder.add_extension(critical, critical=True)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


CA = Authority()


class Clock:
    def __init__(self) -> None:
        self.now = NOW.timestamp()

    def __call__(self) -> float:
        return self.now


def test_common_name_is_the_user_and_organizations_are_the_groups() -> None:
    user = X509Authenticator([CA.certificate], Clock()).authenticate_certificate(CA.issue("ann", ("dev", "ops")))
    assert user is not None
    assert (user.name, user.groups) == ("ann", ("dev", "ops"))
    [credential] = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=") and len(credential) == 11 + 64


BAD = {
    "expired": CA.issue(first=-9, last=-1),
    "of the future": CA.issue(first=1, last=9),
    "for servers only": CA.issue(usages=(ExtendedKeyUsageOID.SERVER_AUTH,)),
    "signed by an unknown authority": Authority("other").issue(),
    "signed by another authority of the same name": Authority("ca").issue(),
    "with an unknown critical extension": CA.issue(critical=x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\x05\x00")),
    "no certificate at all": b"garbage",
}


@pytest.mark.parametrize("der", BAD.values(), ids=BAD.keys())
def test_bad_certificates_are_refused_each_time(der: bytes) -> None:
    authenticator = X509Authenticator([CA.certificate], Clock())
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            authenticator.authenticate_certificate(der)


@pytest.mark.parametrize("authority", [Authority(ca=False), Authority(days=-1)], ids=["no CA", "expired CA"])
def test_the_issuer_must_be_a_valid_authority(authority: Authority) -> None:
    with pytest.raises(AuthenticationError):
        X509Authenticator([authority.certificate], Clock()).authenticate_certificate(authority.issue())


@pytest.mark.parametrize("usages", [None, (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,)])
def test_a_certificate_without_or_with_any_usage_is_fine(usages: tuple[x509.ObjectIdentifier, ...] | None) -> None:
    assert X509Authenticator([CA.certificate], Clock()).authenticate_certificate(CA.issue(usages=usages)) is not None


def test_a_certificate_without_common_name_is_nobody() -> None:
    assert X509Authenticator([CA.certificate], Clock()).authenticate_certificate(CA.issue("")) is None


def test_a_remembered_verdict_ends_with_the_certificate_and_begins_with_it() -> None:
    clock = Clock()
    authenticator = X509Authenticator([CA.certificate], clock)
    der = CA.issue(first=1, last=3)
    with pytest.raises(AuthenticationError):
        authenticator.authenticate_certificate(der)
    clock.now += 2 * 86400
    assert authenticator.authenticate_certificate(der) is not None
    clock.now += 2 * 86400
    with pytest.raises(AuthenticationError):
        authenticator.authenticate_certificate(der)


def test_authorities_that_are_replaced_are_noticed_within_a_second_and_verdicts_forgotten() -> None:
    clock, other = Clock(), Authority("other")
    current = [(CA.certificate,), (other.certificate,)]
    authenticator = X509Authenticator(current[0], clock, lambda: current[0])
    old, new = CA.issue(), other.issue()
    assert authenticator.authenticate_certificate(old) is not None
    with pytest.raises(AuthenticationError):
        authenticator.authenticate_certificate(new)
    current.pop(0)
    clock.now += 1
    assert authenticator.authenticate_certificate(new) is not None
    with pytest.raises(AuthenticationError):
        authenticator.authenticate_certificate(old)
