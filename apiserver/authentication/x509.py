"""Client certificates (``--client-ca-file``): common name → user, organizations → groups (apiserver ``authentication/request/x509``).

The TLS handshake asks for a certificate but does not judge it, so that a client with a bad one gets a 401 Status instead of a broken
handshake; ``certificate_chain`` judges.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID, ObjectIdentifier

from apiserver.authentication.certificate_chain import INTERMEDIATES_MAX, NotYetValidError, verify_chain
from apiserver.authentication.interfaces import CREDENTIAL_ID_KEY, AuthenticationError
from apiserver.authentication.user import UserInfo
from apiserver.request.request_context import RequestContext

#: verdicts remembered, by fingerprint; the oldest goes first. A cluster has a few certificates per node and per administrator
VERDICTS_MAX = 4096
#: between two looks at whether the authorities have been replaced
LOOK_SECONDS = 1.0
#: attribute of a subject that holds the uid of a user (Kubernetes' own arc)
UID_OID = ObjectIdentifier("1.3.6.1.4.1.57683.2")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """What was decided about a certificate, true until ``not_after`` (seconds of the wall clock)."""

    user: UserInfo | None
    error: str
    not_after: float
    #: when the certificate itself ends; None for what is no certificate
    leaf_ends: float | None = None


class X509Authenticator:
    def __init__(
        self,
        authorities: Sequence[x509.Certificate],
        now: Callable[[], float],
        current: Callable[[], Sequence[x509.Certificate]] | None = None,
        *,
        with_uid: bool = False,
        note_remaining: Callable[[float], None] | None = None,
    ) -> None:
        """``now``: seconds since the epoch, wall clock. ``current`` tells the authorities of this moment: the same object as long as they
        are the same; it is asked at most once in ``LOOK_SECONDS``. ``with_uid``: a subject may tell the user's uid. ``note_remaining`` is
        told with each request how many seconds its certificate has left."""
        self._authorities = authorities
        self._now = now
        self._current = current
        self._with_uid = with_uid
        self._note_remaining = note_remaining
        self._looked_at = float("-inf")
        self._verdicts: OrderedDict[bytes, _Verdict] = OrderedDict()

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        """Raises AuthenticationError. A good certificate without a common name is nobody's."""
        der = context.peer_certificate
        if der is None:
            return None
        return self.authenticate_certificate(der, context.peer_intermediates)

    def authenticate_certificate(self, der: bytes, intermediates: Sequence[bytes] = ()) -> UserInfo | None:
        """``intermediates``: DER, as the client sent them along."""
        fingerprint = hashlib.sha256(der).digest()
        key = (
            hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in (der, *intermediates))).digest()
            if intermediates
            else fingerprint
        )
        now = self._now()
        if self._current is not None and not 0 <= now - self._looked_at < LOOK_SECONDS:
            self._looked_at = now
            authorities = self._current()
            if authorities is not self._authorities:
                self._authorities = authorities
                self._verdicts.clear()
        verdict = self._verdicts.get(key)
        if verdict is None or now > verdict.not_after:
            verdict = self._judge(der, intermediates, fingerprint, now)
            self._verdicts[key] = verdict
            self._verdicts.move_to_end(key)
            if len(self._verdicts) > VERDICTS_MAX:
                self._verdicts.popitem(last=False)
        if self._note_remaining is not None and verdict.leaf_ends is not None:
            self._note_remaining(verdict.leaf_ends - now)
        if verdict.error:
            raise AuthenticationError(verdict.error)
        return verdict.user

    def _judge(self, der: bytes, intermediates: Sequence[bytes], fingerprint: bytes, now: float) -> _Verdict:
        ends: float | None = None
        try:
            certificate = x509.load_der_x509_certificate(der)
            ends = certificate.not_valid_after_utc.timestamp()
            chain = verify_chain(certificate, self._authorities, now, _readable(intermediates[:INTERMEDIATES_MAX]))
            user = user_of_certificate(certificate, fingerprint, with_uid=self._with_uid)
        except NotYetValidError as error:
            return _Verdict(user=None, error=str(error), not_after=error.not_before, leaf_ends=ends)
        except (AuthenticationError, ValueError) as error:
            return _Verdict(user=None, error=f"x509: {error}", not_after=float("inf"), leaf_ends=ends)
        return _Verdict(user=user, error="", not_after=min(c.not_valid_after_utc.timestamp() for c in chain), leaf_ends=ends)


def _readable(encoded: Sequence[bytes]) -> list[x509.Certificate]:
    """Those that are certificates: what else a client sends along proves nothing."""
    found: list[x509.Certificate] = []
    for der in encoded:
        try:
            found.append(x509.load_der_x509_certificate(der))
        except ValueError:
            continue
    return found


def user_of_certificate(certificate: x509.Certificate, fingerprint: bytes, *, with_uid: bool = False) -> UserInfo | None:
    """None without a common name. Raises AuthenticationError for a subject with no usable uid."""
    names = [str(a.value) for a in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[-1]:
        return None
    groups = tuple(str(a.value) for a in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    extra: dict[str, tuple[str, ...]] = {CREDENTIAL_ID_KEY: (f"X509SHA256={fingerprint.hex()}",)}
    return UserInfo(name=names[-1], uid=_uid(certificate) if with_uid else "", groups=groups, extra=extra)


def _uid(certificate: x509.Certificate) -> str:
    uids = [attribute.value for attribute in certificate.subject.get_attributes_for_oid(UID_OID)]
    if not uids:
        return ""
    if len(uids) > 1:
        raise AuthenticationError("expected 1 UID, but found multiple")
    if not isinstance(uids[0], str):
        raise AuthenticationError("unable to parse UID into a string")
    if not uids[0]:
        raise AuthenticationError("UID cannot be an empty string")
    return uids[0]
