"""The public keys of an OpenID Connect issuer: discovery document, then key set (OpenID Connect Discovery 1.0 §4; RFC 7517).

They are fetched when the first token of the issuer comes, again when a token names a key that is not there (keys rotate), and again when
they are old (a key that was withdrawn must not live on here). Each fetch has bounds on time and bytes; how often an issuer is asked is
bounded too, whatever tokens come. Keys that could not be fetched anew leave the old ones in force.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apiserver.authentication.interfaces import AuthenticationError
from apiserver.outbound.json_client import JsonClient, OutboundError
from apiserver.request.unanswered import Unanswered, note_asked, was_asked

logger = logging.getLogger(__name__)

#: algorithms that a token may be signed with; none of them is a shared secret or "none"
ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
#: of one issuer; the largest have a few dozen
KEYS_MAX = 256
#: keys are fetched anew after this long
KEYS_AGE_MAX_SECONDS = 600.0
#: Fetches that may follow at once, and what one costs afterwards: a key that rotates is found at once, and tokens with made-up keys do not
#: turn this server into a flood for the issuer.
FETCHES_BURST = 5
FETCH_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerLocation:
    """``discovery_url`` "": below the issuer's URL. ``context`` trusts the authorities that may vouch for it."""

    url: str
    discovery_url: str
    context: ssl.SSLContext


@dataclass(frozen=True, slots=True)
class VerificationKey:
    id: str
    type: str
    algorithm: str
    material: Any


class IssuerKeys:
    def __init__(
        self,
        location: IssuerLocation,
        client: JsonClient,
        now: Callable[[], float],
        note: Callable[[str, str | None], None] = lambda url, keys: None,
    ) -> None:
        """``now``: a monotonic clock in seconds. ``note`` is told the issuer's URL and the key set that was fetched, None for none."""
        self._note = note
        self._location = location
        self._client = client
        self._now = now
        self._keys: tuple[VerificationKey, ...] | None = None
        self._fetched_at = 0.0
        self._allowance = float(FETCHES_BURST)
        self._counted_at = now()
        self._error = ""
        self._fetching: asyncio.Task[None] | None = None

    def candidates(self, key_id: str, algorithm: str) -> list[VerificationKey]:
        """The keys that a token's header names; all of its type where it names none. Raises Unanswered where they are to be fetched,
        AuthenticationError where there is none."""
        keys = self._keys
        if keys is None:
            if self._may_fetch():
                raise Unanswered(self._fetch)
            raise AuthenticationError(f"oidc: authenticator not initialized: {self._error or 'the keys are being fetched'}")
        if self._now() - self._fetched_at > KEYS_AGE_MAX_SECONDS and self._may_fetch():
            raise Unanswered(self._fetch)
        fitting = [key for key in keys if key.type == _type_of(algorithm) and key.algorithm in ("", algorithm)]
        found = [key for key in fitting if key.id == key_id] if key_id else fitting
        if not found:
            self.look_again()
            raise AuthenticationError("oidc: failed to verify signature: no key of the issuer fits")
        return found

    def look_again(self) -> None:
        """Raises Unanswered where the issuer may be asked whether it has other keys by now."""
        if self._may_fetch():
            raise Unanswered(self._fetch)

    def _may_fetch(self) -> bool:
        if was_asked(self):
            return False
        if self._fetching is not None:
            return True
        now = self._now()
        self._allowance = min(float(FETCHES_BURST), self._allowance + (now - self._counted_at) / FETCH_SECONDS)
        self._counted_at = now
        return self._allowance >= 1.0

    async def _fetch(self) -> None:
        if self._fetching is None:
            self._allowance -= 1.0
            self._fetching = asyncio.ensure_future(self._fetch_once())
        await asyncio.shield(self._fetching)
        note_asked(self)

    async def _fetch_once(self) -> None:
        try:
            self._keys = await self._key_set()
            self._fetched_at = self._now()
            self._error = ""
        except (OutboundError, ValueError) as error:
            self._error = str(error)
            self._note(self._location.url, None)
            logger.warning("the keys of an issuer could not be fetched: issuer=%s error=%s", self._location.url, error)
        finally:
            self._fetching = None

    async def _key_set(self) -> tuple[VerificationKey, ...]:
        location = self._location
        url = location.discovery_url or location.url.removesuffix("/") + "/.well-known/openid-configuration"
        document, _ = await self._client.get(url, location.context)
        if not isinstance(document, dict):
            raise ValueError("its discovery document is no object")
        if document.get("issuer") != location.url:
            raise ValueError("its discovery document names another issuer")
        keys_url = document.get("jwks_uri")
        if not isinstance(keys_url, str) or not keys_url.startswith("https://"):
            raise ValueError("its discovery document has no https jwks_uri")
        key_set, _ = await self._client.get(keys_url, location.context)
        keys = parse_key_set(key_set)
        self._note(location.url, json.dumps(key_set))
        return keys


def _type_of(algorithm: str) -> str:
    return "EC" if algorithm.startswith("ES") else "RSA"


def parse_key_set(document: Any) -> tuple[VerificationKey, ...]:
    """The keys of a JWK set that can check signatures; others are passed over. Raises ValueError for what is no key set."""
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("its key set has no keys")
    if len(entries) > KEYS_MAX:
        raise ValueError(f"its key set has more than {KEYS_MAX} keys")
    return tuple(key for entry in entries if isinstance(entry, dict) and (key := _key(entry)) is not None)


def _key(entry: dict[str, Any]) -> VerificationKey | None:
    import jwt
    from jwt.algorithms import ECAlgorithm, RSAAlgorithm

    if entry.get("use") not in (None, "", "sig") or "d" in entry:
        return None
    kind, key_id, algorithm = entry.get("kty"), entry.get("kid") or "", entry.get("alg") or ""
    readers: dict[str, Any] = {"RSA": RSAAlgorithm.from_jwk, "EC": ECAlgorithm.from_jwk}
    reader = readers.get(kind) if isinstance(kind, str) else None
    if reader is None or not isinstance(key_id, str) or not isinstance(algorithm, str):
        return None
    try:
        return VerificationKey(key_id, str(kind), algorithm, reader(entry))
    except (jwt.InvalidKeyError, ValueError, TypeError, AttributeError, KeyError):
        return None
