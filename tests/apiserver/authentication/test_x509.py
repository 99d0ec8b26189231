"""Client certificates (field case P1)."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.authentication.interfaces import AuthenticationError
from apiserver.authentication.x509 import UID_OID, X509Authenticator

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)


class Authority:
    def __init__(
        self,
        name: str = "ca",
        *extensions: x509.ExtensionType,
        ca: bool = True,
        days: int = 3650,
        path_length: int | None = None,
        issuer: Authority | None = None,
    ) -> None:
        """Signed by itself, or by ``issuer``."""
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (issuer or self)._builder(self.name, self.key, -10, days)
        for extension in (x509.BasicConstraints(ca=ca, path_length=path_length), *extensions):
            builder = builder.add_extension(extension, critical=True)
        self.certificate = builder.sign(issuer.key if issuer else self.key, hashes.SHA256())

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

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
        critical: x509.ExtensionType | None = None,
        uids: tuple[str, ...] = (),
    ) -> bytes:
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
        attributes += [x509.NameAttribute(UID_OID, uid) for uid in uids]
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


ROOT = Authority("root")
MIDDLE = Authority("middle", issuer=ROOT)
LOWEST = Authority("lowest", issuer=MIDDLE)


def test_intermediates_lead_from_a_certificate_to_an_authority() -> None:
    authenticator = X509Authenticator([ROOT.certificate], Clock())
    der = LOWEST.issue()
    for sent in ((MIDDLE.der, LOWEST.der), (LOWEST.der, b"garbage", CA.der, MIDDLE.der)):
        user = authenticator.authenticate_certificate(der, sent)
        assert user is not None and user.name == "ann"
    for lacking in ((), (LOWEST.der,), (MIDDLE.der,), (CA.der, ROOT.der)):
        with pytest.raises(AuthenticationError, match="unknown authority"):
            authenticator.authenticate_certificate(der, lacking)


@pytest.mark.parametrize(
    ("middle", "told"),
    [
        (Authority("m", issuer=ROOT, ca=False), "unknown authority"),
        (Authority("m", issuer=ROOT, days=-1), "expired"),
        (Authority("m", x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), issuer=ROOT), "incompatible key usage"),
        (Authority("m", x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"x"), issuer=ROOT), "unhandled critical"),
        (Authority("m", issuer=Authority("root")), "unknown authority"),
    ],
    ids=["no authority", "expired", "for servers", "critical", "of another root of the same name"],
)
def test_an_intermediate_must_be_as_good_as_an_authority(middle: Authority, told: str) -> None:
    with pytest.raises(AuthenticationError, match=told):
        X509Authenticator([ROOT.certificate], Clock()).authenticate_certificate(middle.issue(), (middle.der,))


def test_a_client_makes_no_authority_of_its_own_certificate() -> None:
    """What ann's key signed, sent with ann's good certificate as the intermediate."""
    client = Authority("ann", issuer=ROOT, ca=False)
    with pytest.raises(AuthenticationError, match="unknown authority"):
        X509Authenticator([ROOT.certificate], Clock()).authenticate_certificate(client.issue("admin", ("system:masters",)), (client.der,))


def test_how_deep_an_authority_may_delegate() -> None:
    root = Authority("root", path_length=0)
    middle = Authority("middle", issuer=root)
    authenticator = X509Authenticator([root.certificate], Clock())
    assert authenticator.authenticate_certificate(root.issue()) is not None
    with pytest.raises(AuthenticationError, match="too many intermediates"):
        authenticator.authenticate_certificate(middle.issue(), (middle.der,))


@pytest.mark.parametrize(("name", "good"), [("a.example.org", True), ("example.org", True), ("badexample.org", False), ("x.org", False)])
def test_name_constraints_bind_what_an_authority_vouches_for(name: str, good: bool) -> None:
    constraints = x509.NameConstraints(permitted_subtrees=[x509.DNSName("example.org")], excluded_subtrees=None)
    root = Authority("root", constraints)
    der = root.issue(critical=x509.SubjectAlternativeName([x509.DNSName(name)]))
    authenticator = X509Authenticator([root.certificate], Clock())
    if good:
        assert authenticator.authenticate_certificate(der) is not None
    else:
        with pytest.raises(AuthenticationError, match="not permitted"):
            authenticator.authenticate_certificate(der)


def test_intermediates_of_one_name_cost_a_bounded_number_of_signatures() -> None:
    """Each of them names itself as its issuer's namesake: without a bound the paths among them are 16 factorial."""
    ring = [Authority("same", issuer=Authority("same")) for _ in range(4)]
    crowd = tuple(authority.der for authority in ring) * 200
    with pytest.raises(AuthenticationError):
        X509Authenticator([ROOT.certificate], Clock()).authenticate_certificate(ring[0].issue(), crowd)
    looped = Authority("loop")
    loop = tuple(looped._builder(looped.name, looped.key, -1 - n, 9).add_extension(x509.BasicConstraints(True, None), critical=True)
                 .sign(looped.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER) for n in range(16))  # fmt: skip
    with pytest.raises(AuthenticationError, match="signature check attempts"):
        X509Authenticator([ROOT.certificate], Clock()).authenticate_certificate(looped.issue(), loop)


def test_an_expired_authority_does_not_hide_its_successor_of_the_same_name_and_key() -> None:
    old = Authority("ca", days=-1)
    renewed = old._builder(old.name, old.key, -1, 9).add_extension(x509.BasicConstraints(True, None), critical=True)
    authorities = [old.certificate, renewed.sign(old.key, hashes.SHA256())]
    assert X509Authenticator(authorities, Clock()).authenticate_certificate(old.issue()) is not None
    with pytest.raises(AuthenticationError, match="expired"):
        X509Authenticator(authorities[:1], Clock()).authenticate_certificate(old.issue())


def test_the_subject_may_tell_a_uid() -> None:
    authenticator = X509Authenticator([CA.certificate], Clock(), with_uid=True)
    user = authenticator.authenticate_certificate(CA.issue(uids=("u-1",)))
    assert user is not None and user.uid == "u-1"
    with pytest.raises(AuthenticationError, match="multiple"):
        authenticator.authenticate_certificate(CA.issue(uids=("a", "b")))
    before = X509Authenticator([CA.certificate], Clock()).authenticate_certificate(CA.issue(uids=("u-1",)))
    assert before is not None and before.uid == ""
