"""ID tokens of OpenID Connect issuers (``--oidc-*``, ``--authentication-config``), by their signature, dates, audience and claims.

A token names its issuer (``iss``); only that issuer's rules and keys are asked. Who a token stands for is remembered for
``REMEMBERED_SECONDS``, never past its end, by a keyed hash: a key that its issuer withdraws stops working soon.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.authentication.claims import user_of_claims
from apiserver.authentication.interfaces import AuthenticationError, TokenAuthentication, TokenObserver
from apiserver.authentication.issuer_keys import IssuerKeys
from apiserver.authentication.jwt_config import JwtConfig
from apiserver.machinery import go_json

#: kube-apiserver's, for tokens that were verified
REMEMBERED_SECONDS = 10.0
#: tokens remembered; the oldest goes first
REMEMBERED_MAX = 8192
#: how much clocks may differ for ``nbf``
LEEWAY_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    config: JwtConfig
    keys: IssuerKeys


class IssuerObserver(Protocol):
    @property
    def tokens(self) -> TokenObserver: ...

    @property
    def issuers(self) -> LatencyObserver: ...


class LatencyObserver(Protocol):
    def looked_into(self, issuer_url: str, seconds: float, *, good: bool) -> None:
        """A token of the issuer that was not remembered; ``good``: whether it names a user."""


class JwtAuthenticator:
    """Of any number of issuers."""

    def __init__(
        self, issuers: Sequence[Issuer], api_audiences: Sequence[str], now: Callable[[], float], observer: IssuerObserver | None = None
    ) -> None:
        """``now``: seconds since the epoch, wall clock. A token counts as one for ``api_audiences``, those of this API server: its own
        audience is the client that it was issued to."""
        self._issuers = {issuer.config.issuer_url: issuer for issuer in issuers}
        assert len(self._issuers) == len(issuers), "an issuer is configured once"
        self._audiences = tuple(api_audiences)
        self._now = now
        self._observer = observer
        self._hash_key = secrets.token_bytes(32)
        self._remembered: OrderedDict[bytes, tuple[float, TokenAuthentication]] = OrderedDict()

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication | None:
        """Raises AuthenticationError for a token of a known issuer that is not valid, Unanswered where its keys must be fetched first."""
        if not self._issuers or token.count(".") != 2:
            return None
        now = self._now()
        digest = hashlib.blake2b(token.encode(), key=self._hash_key, digest_size=32).digest()
        found = self._remembered.get(digest)
        if found is not None:
            if now < found[0]:
                if self._observer is not None:
                    self._observer.tokens.hit()
                return found[1]
            del self._remembered[digest]
        issuer = self._issuer_of(token)
        if issuer is None:
            return None
        try:
            claims = _verified_claims(token, issuer)
            expires_at = _check_validity(claims, issuer.config, now)
            user = user_of_claims(issuer.config, claims)
        except AuthenticationError:
            self._note(issuer, now, good=False)
            raise
        self._note(issuer, now, good=True)
        answer = TokenAuthentication(user=user, audiences=self._audiences)
        self._remembered[digest] = (min(expires_at, now + REMEMBERED_SECONDS), answer)
        if len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return answer

    def _note(self, issuer: Issuer, began: float, *, good: bool) -> None:
        if self._observer is not None:
            seconds = max(0.0, self._now() - began)
            self._observer.issuers.looked_into(issuer.config.issuer_url, seconds, good=good)
            self._observer.tokens.fetched(seconds, good=good)

    def _issuer_of(self, token: str) -> Issuer | None:
        try:
            named = json.loads(_decoded(token.split(".")[1])).get("iss")
        except (ValueError, AttributeError, RecursionError):
            return None
        return self._issuers.get(named) if isinstance(named, str) else None


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _verified_claims(token: str, issuer: Issuer) -> Mapping[str, Any]:
    """Raises AuthenticationError, Unanswered."""
    import jwt

    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, RecursionError) as error:
        raise AuthenticationError("oidc: malformed jwt") from error
    algorithm, key_id = header.get("alg"), header.get("kid") or ""
    # neither "none" nor an HMAC is ever among these, so a public key is never taken for a secret
    if algorithm not in issuer.config.algorithms:
        expected = go_json.quote_all(issuer.config.algorithms)
        raise AuthenticationError(f"oidc: verify token: signed with unsupported algorithm, expected {expected}")
    assert isinstance(algorithm, str)
    if not isinstance(key_id, str):
        raise AuthenticationError("oidc: malformed jwt")
    for key in issuer.keys.candidates(key_id, algorithm):
        claims = _claims_by(token, key.material, algorithm)
        if claims is not None:
            return claims
    # one of this name that does not fit: the issuer may have made another in its place
    issuer.keys.look_again()
    raise AuthenticationError("oidc: verify token: failed to verify signature: failed to verify id token signature")


def _claims_by(token: str, key: Any, algorithm: str) -> Mapping[str, Any] | None:
    import jwt

    unchecked = dict.fromkeys(("verify_aud", "verify_exp", "verify_nbf", "verify_iat", "verify_iss", "verify_sub", "verify_jti"), False)
    try:
        claims: Mapping[str, Any] = jwt.decode(token, key, algorithms=[algorithm], options=unchecked)  # type: ignore[arg-type]
    except (jwt.InvalidTokenError, jwt.InvalidKeyError, TypeError, ValueError):
        return None
    return claims


def _check_validity(claims: Mapping[str, Any], config: JwtConfig, now: float) -> float:
    """When the token ends, in seconds since the epoch. Raises AuthenticationError."""
    if claims.get("iss") != config.issuer_url:
        raise AuthenticationError("oidc: verify token: id token issued by a different provider")
    audience = claims.get("aud")
    named = (audience,) if isinstance(audience, str) else tuple(audience) if isinstance(audience, list) else ()
    if not any(wanted in named for wanted in config.audiences):
        told = list(config.audiences)
        raise AuthenticationError(f"oidc: verify token: expected audience in {told} got {[str(name)[:256] for name in named][:8]}")
    expires_at = _seconds(claims, "exp")
    if not now < expires_at:
        raise AuthenticationError("oidc: verify token: token is expired")
    if "nbf" in claims and not _seconds(claims, "nbf") <= now + LEEWAY_SECONDS:
        raise AuthenticationError("oidc: verify token: current time is before the nbf (not before) time")
    return expires_at


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise AuthenticationError(f"oidc: verify token: claim {name} is no number")
    try:
        return float(value)
    except OverflowError:
        raise AuthenticationError(f"oidc: verify token: claim {name} is no time") from None
