"""Client certificates (``--client-ca-file``): common name → user, organizations → groups (apiserver ``authentication/request/x509``).

The TLS handshake asks for a certificate but does not judge it, so that a client with a bad one gets a 401 Status instead of a broken
handshake; what is checked here (RFC 5280 §6, as far as clients of an API server need it): name and signature of an issuer that is in the
file, validity dates of both, the issuer's right to issue, ``clientAuth`` in the extended key usage, and no
critical extension that is not understood.
"""

from __future__ import annotations

import datetime
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from apiserver.authentication.interfaces import CREDENTIAL_ID_KEY, AuthenticationError
from apiserver.authentication.user import UserInfo
from apiserver.request.request_context import RequestContext

#: verdicts remembered, by fingerprint; the oldest goes first. A cluster has a few certificates per node and per administrator
VERDICTS_MAX = 4096
#: between two looks at whether the authorities have been replaced
LOOK_SECONDS = 1.0

_UNDERSTOOD_CRITICAL = frozenset(
    (
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
        ExtensionOID.SUBJECT_KEY_IDENTIFIER,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """What was decided about a certificate, true until ``not_after`` (seconds of the wall clock)."""

    user: UserInfo | None
    error: str
    not_after: float


class X509Authenticator:
    def __init__(
        self,
        authorities: Sequence[x509.Certificate],
        now: Callable[[], float],
        current: Callable[[], Sequence[x509.Certificate]] | None = None,
    ) -> None:
        """``now``: seconds since the epoch, wall clock. ``current`` tells the authorities of this moment: the same object as long as they
        are the same; it is asked at most once in ``LOOK_SECONDS``."""
        self._authorities = authorities
        self._now = now
        self._current = current
        self._looked_at = float("-inf")
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        """Raises AuthenticationError. A good certificate without a common name is nobody's."""
        der = context.peer_certificate
        if der is None:
            return None
        return self.authenticate_certificate(der)

    def authenticate_certificate(self, der: bytes) -> UserInfo | None:
        fingerprint = hashlib.sha256(der).digest()
        now = self._now()
        if self._current is not None and not 0 <= now - self._looked_at < LOOK_SECONDS:
            self._looked_at = now
            authorities = self._current()
            if authorities is not self._authorities:
                self._authorities = authorities
                self._verdicts.clear()
        verdict = self._verdicts.get(fingerprint)
        if verdict is None or now > verdict.not_after:
            verdict = self._judge(der, fingerprint, now)
            self._verdicts[fingerprint] = verdict
            self._verdicts.move_to_end(fingerprint)
            if len(self._verdicts) > VERDICTS_MAX:
                self._verdicts.popitem(last=False)
        if verdict.error:
            raise AuthenticationError(verdict.error)
        return verdict.user

    def _judge(self, der: bytes, fingerprint: bytes, now: float) -> _Verdict:
        try:
            certificate = x509.load_der_x509_certificate(der)
            chain = verify_chain(certificate, self._authorities, now)
        except NotYetValidError as error:
            return _Verdict(user=None, error=str(error), not_after=error.not_before)
        except (AuthenticationError, ValueError) as error:
            return _Verdict(user=None, error=f"x509: {error}", not_after=float("inf"))
        user = user_of_certificate(certificate, fingerprint)
        return _Verdict(user=user, error="", not_after=min(c.not_valid_after_utc.timestamp() for c in chain))


class NotYetValidError(AuthenticationError):
    """The certificate's time has not come; ``not_before`` in seconds of the wall clock."""

    def __init__(self, not_before: float) -> None:
        super().__init__("x509: certificate has expired or is not yet valid")
        self.not_before = not_before


def verify_chain(leaf: x509.Certificate, authorities: Sequence[x509.Certificate], now: float) -> list[x509.Certificate]:
    """The leaf and its issuer among ``authorities``, each of which is a trust anchor (so an intermediate of the file ends the chain).

    Raises AuthenticationError where there is no such issuer or a rule is broken.
    """
    _check_dates(leaf, now)
    _check_extensions(leaf)
    _check_client_usage(leaf)
    for authority in authorities:
        if authority.subject != leaf.issuer or not _may_issue(authority):
            continue
        try:
            leaf.verify_directly_issued_by(authority)
        except (InvalidSignature, ValueError, TypeError):
            continue
        _check_dates(authority, now)
        return [leaf, authority]
    raise AuthenticationError("certificate signed by unknown authority")


def _may_issue(authority: x509.Certificate) -> bool:
    try:
        if not authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
    except x509.ExtensionNotFound:
        return authority.version == x509.Version.v1
    try:
        return authority.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def _check_dates(certificate: x509.Certificate, now: float) -> None:
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    if moment < certificate.not_valid_before_utc:
        raise NotYetValidError(certificate.not_valid_before_utc.timestamp())
    if moment > certificate.not_valid_after_utc:
        raise AuthenticationError("certificate has expired or is not yet valid")


def _check_extensions(certificate: x509.Certificate) -> None:
    for extension in certificate.extensions:
        if extension.critical and extension.oid not in _UNDERSTOOD_CRITICAL:
            raise AuthenticationError(f"unhandled critical extension {extension.oid.dotted_string}")


def _check_client_usage(certificate: x509.Certificate) -> None:
    try:
        usages = set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return
    if not usages & {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}:
        raise AuthenticationError("certificate specifies an incompatible key usage")


def user_of_certificate(certificate: x509.Certificate, fingerprint: bytes) -> UserInfo | None:
    names = [str(a.value) for a in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[-1]:
        return None
    groups = tuple(str(a.value) for a in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID_KEY: (f"X509SHA256={fingerprint.hex()}",)}
    return UserInfo(name=names[-1], groups=groups, extra=extra)
