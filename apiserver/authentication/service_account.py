"""ServiceAccount tokens: JWTs that this cluster signed for its pods (RFC 7519; KEP-1205 bound tokens).

Two kinds are known by their claims:
- bound tokens: ``kubernetes.io`` holds the namespace, the account and at most one bound object (pod, secret or node) with uids;
- legacy tokens of Secrets: flat claims ``kubernetes.io/serviceaccount/…``, no expiry.

Verifying a signature costs some 60 µs, so a verified token is remembered (by a keyed hash) until it expires. What can change while it is
remembered is asked each time: whether the account and the bound object still exist with the same uid.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from apiserver.admission.interfaces import ObjectGetter
from apiserver.authentication.interfaces import CREDENTIAL_ID_KEY, AuthenticationError, TokenAuthentication, TokenObserver
from apiserver.authentication.user import UserInfo, service_account_groups, service_account_name
from apiserver.machinery import go_json, objects

PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

LEGACY_ISSUER = "kubernetes/serviceaccount"
_LEGACY_PREFIX = "kubernetes.io/serviceaccount/"
#: label of a Secret whose token is to be used no more
INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"

#: verified tokens remembered; the longest unused goes first. Enough for one token of every pod of a large cluster on one server
VERIFIED_MAX = 16_384
#: clocks of machines may differ by this much (seconds): for ``nbf``, and for objects that are being deleted
LEEWAY_SECONDS = 60

_CURVE_ALGORITHMS = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
#: the bound object's claim → (resource, whether it lives in the account's namespace)
_BOUND = {"pod": ("pods", True), "secret": ("secrets", True), "node": ("nodes", False)}


def algorithm_of(key: PublicKey | PrivateKey) -> str:
    """The JWS algorithm (RFC 7518 §3.1) of a key. Raises ValueError for curves that JWS does not have."""
    if isinstance(key, (rsa.RSAPublicKey, rsa.RSAPrivateKey)):
        return "RS256"
    algorithm = _CURVE_ALGORITHMS.get(key.curve.name)
    if algorithm is None:
        raise ValueError(f"unsupported curve {key.curve.name} for service account tokens")
    return algorithm


def key_id_of(key: PublicKey) -> str:
    """``kid`` of a public key: the unpadded URL-safe base64 of the SHA-256 of its DER form."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()


def load_public_keys(pem: bytes) -> list[PublicKey]:
    """The keys of a PEM file that may hold public keys, private keys and certificates, several one after another.

    Raises ValueError where there is none.
    """
    keys: list[PublicKey] = []
    for block in _pem_blocks(pem):
        key: object
        if b"PRIVATE KEY" in block:
            key = serialization.load_pem_private_key(block, password=None).public_key()
        elif b"PUBLIC KEY" in block:
            key = serialization.load_pem_public_key(block)
        elif b"CERTIFICATE" in block:
            key = x509.load_pem_x509_certificate(block).public_key()
        else:
            continue
        if not isinstance(key, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey)):
            raise ValueError("service account keys must be RSA or EC keys")
        keys.append(key)
    if not keys:
        raise ValueError("no RSA or EC key found")
    return keys


def load_private_key(pem: bytes) -> PrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)):
        raise ValueError("the service account signing key must be an RSA or EC key")
    return key


def _pem_blocks(pem: bytes) -> list[bytes]:
    blocks: list[bytes] = []
    lines: list[bytes] = []
    for line in pem.splitlines():
        if line.startswith(b"-----BEGIN"):
            lines = [line]
        elif lines:
            lines.append(line)
            if line.startswith(b"-----END"):
                blocks.append(b"\n".join(lines) + b"\n")
                lines = []
    return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundObject:
    """An object whose deletion ends a token. ``resource`` is pods, secrets or nodes; a node that comes along with a pod is only
    told (``checked`` False): the pod's existence decides."""

    kind: str
    resource: str
    namespace: str
    name: str
    uid: str
    checked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verified:
    """A token whose signature and claims are good until ``expires_at`` (seconds of the wall clock)."""

    namespace: str
    name: str
    uid: str
    bound: tuple[BoundObject, ...]
    audiences: tuple[str, ...]
    not_before: float
    expires_at: float
    warn_after: float
    authentication: TokenAuthentication
    legacy_secret: str = ""


class Count(Protocol):
    def add(self) -> None: ...


class ServiceAccountCounts(Protocol):
    """Uses: of legacy tokens (all, made by hand, made for the account, marked invalid), and of those that warn once they are stale."""

    @property
    def legacy(self) -> Count: ...
    @property
    def legacy_manual(self) -> Count: ...
    @property
    def legacy_auto(self) -> Count: ...
    @property
    def invalid_legacy(self) -> Count: ...
    @property
    def stale(self) -> Count: ...
    @property
    def valid(self) -> Count: ...


class TokenMetrics(Protocol):
    @property
    def tokens(self) -> TokenObserver: ...
    @property
    def service_accounts(self) -> ServiceAccountCounts: ...


class ServiceAccountAuthenticator:
    def __init__(
        self,
        keys: Sequence[PublicKey],
        issuers: Sequence[str],
        api_audiences: Sequence[str],
        getter: ObjectGetter,
        now: Callable[[], float],
        *,
        looks_up_legacy: bool = True,
        metrics: TokenMetrics | None = None,
        note_legacy_use: Callable[[objects.Object], None] = lambda secret: None,
    ) -> None:
        """``now``: seconds since the epoch, wall clock. ``issuers``: the first one signs, all are accepted. ``looks_up_legacy``: whether a
        token of a Secret ends with its Secret and account; bound ones always do. ``note_legacy_use`` is told the Secret of each token of
        such that was used."""
        self._metrics = metrics
        self._note_legacy_use = note_legacy_use
        self._looks_up_legacy = looks_up_legacy
        self._keys = {key_id_of(key): (key, algorithm_of(key)) for key in keys}
        self._issuers = frozenset(issuers)
        self._api_audiences = tuple(api_audiences)
        self._getter = getter
        self._now = now
        self._hash_key = secrets.token_bytes(32)
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication | None:
        """Raises AuthenticationError for a token of ours that is not, not yet or no longer valid."""
        digest = hashlib.blake2b(token.encode(), key=self._hash_key, digest_size=32).digest()
        now = self._now()
        verified = self._verified.get(digest)
        if verified is None:
            verified = self._looked_into(token)
            if verified is None:
                return None
            self._verified[digest] = verified
            if len(self._verified) > VERIFIED_MAX:
                self._verified.popitem(last=False)
        else:
            self._verified.move_to_end(digest)
            if self._metrics is not None:
                self._metrics.tokens.hit()
        if now >= verified.expires_at:
            del self._verified[digest]
            raise AuthenticationError("service account token has expired")
        if now + LEEWAY_SECONDS < verified.not_before:
            raise AuthenticationError("service account token is not valid yet")
        wanted = audiences or self._api_audiences
        common = tuple(a for a in wanted if a in verified.audiences)
        if not common:
            said, asked = go_json.quote_all(verified.audiences), go_json.quote_all(wanted)
            raise AuthenticationError(f"token audiences {said} is invalid for the target audiences {asked}")
        authentication = verified.authentication
        if verified.legacy_secret:
            return self._legacy(verified, token, common)
        self._check_alive(verified, now)
        if verified.warn_after:
            if now > verified.warn_after:
                if self._metrics is not None:
                    self._metrics.service_accounts.stale.add()
                seconds = int(now - verified.warn_after)
                stale = f"subject: {authentication.user.name}, seconds after warning threshold: {seconds}"
                annotations = {"authentication.k8s.io/stale-token": stale}
                return TokenAuthentication(user=authentication.user, audiences=common, annotations=annotations)
            if self._metrics is not None:
                self._metrics.service_accounts.valid.add()
        if audiences:
            return TokenAuthentication(user=authentication.user, audiences=common)
        return authentication

    def _check_alive(self, verified: _Verified, now: float) -> None:
        account = self._getter.get("", "serviceaccounts", verified.namespace, verified.name)
        if account is None:
            raise AuthenticationError(f'serviceaccounts "{verified.name}" not found')
        if _gone_since(account, now):
            raise AuthenticationError(f"ServiceAccount {verified.namespace}/{verified.name} has been deleted")
        uid = objects.uid(account)
        if uid != verified.uid:
            raise AuthenticationError(f"ServiceAccount UID ({uid}) does not match claim ({verified.uid})")
        for bound in verified.bound:
            if not bound.checked:
                continue
            obj = self._getter.get("", bound.resource, bound.namespace, bound.name)
            if obj is None or _gone_since(obj, now):
                raise AuthenticationError("service account token has been invalidated")
            uid = objects.uid(obj)
            if uid != bound.uid:
                raise AuthenticationError(f"{bound.kind.capitalize()} UID ({uid}) does not match service account {bound.kind} ref claim")

    def _legacy(self, verified: _Verified, token: str, audiences: tuple[str, ...]) -> TokenAuthentication:
        """A legacy token lives as long as its Secret holds it. Each use is noted: tokens that nobody uses are to go."""
        user = verified.authentication.user
        annotations = {"authentication.k8s.io/legacy-token": user.name}
        counts = self._metrics.service_accounts if self._metrics is not None else None
        warnings: tuple[str, ...] = ()
        if self._looks_up_legacy:
            secret, account = self._legacy_objects(verified, token)
            self._note_legacy_use(secret)
            name = objects.name(secret)
            if INVALID_SINCE in objects.labels(secret):
                if counts is not None:
                    counts.invalid_legacy.add()
                which = f"{verified.namespace}/{name} for service account {verified.namespace}/{verified.name}"
                why = (
                    f"the token in secret {which} has been marked invalid. Use tokens from the TokenRequest API or manually created "
                    f"secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
                )
                raise AuthenticationError(why, {"authentication.k8s.io/legacy-token-invalidated": f"{name}/{verified.namespace}"})
            if any(reference.get("name") == name for reference in account.get("secrets") or ()):
                warnings = (
                    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based "
                    "tokens.",
                )
                annotations["authentication.k8s.io/legacy-token-autogenerated-secret"] = name
                if counts is not None:
                    counts.legacy_auto.add()
            else:
                annotations["authentication.k8s.io/legacy-token-manual-secret"] = name
                if counts is not None:
                    counts.legacy_manual.add()
        if counts is not None:
            counts.legacy.add()
        return TokenAuthentication(user=user, audiences=audiences, annotations=annotations, warnings=warnings)

    def _legacy_objects(self, verified: _Verified, token: str) -> tuple[objects.Object, objects.Object]:
        """The Secret that holds the token, and its account. They do not outlive the wish to delete them."""
        secret = self._getter.get("", "secrets", verified.namespace, verified.legacy_secret)
        if secret is None or objects.is_being_deleted(secret):
            raise AuthenticationError("token has been invalidated")
        encoded = base64.b64encode(token.encode()).decode()
        if not hmac.compare_digest(str(objects.get(secret, "data", "token", default="")).encode(), encoded.encode()):
            raise AuthenticationError("token does not match server's copy")
        account = self._getter.get("", "serviceaccounts", verified.namespace, verified.name)
        if account is None:
            raise AuthenticationError(f'serviceaccounts "{verified.name}" not found')
        if objects.is_being_deleted(account):
            raise AuthenticationError(f"ServiceAccount {verified.namespace}/{verified.name} has been deleted")
        if objects.uid(account) != verified.uid:
            raise AuthenticationError(f"ServiceAccount UID ({objects.uid(account)}) does not match claim ({verified.uid})")
        return secret, account

    def _looked_into(self, token: str) -> _Verified | None:
        """As ``_verify``, counted where the token is one of ours."""
        if self._metrics is None:
            return self._verify(token)
        began = time.perf_counter()
        try:
            verified = self._verify(token)
        except AuthenticationError:
            self._metrics.tokens.fetched(time.perf_counter() - began, good=False)
            raise
        if verified is not None:
            self._metrics.tokens.fetched(time.perf_counter() - began, good=True)
        return verified

    def _verify(self, token: str) -> _Verified | None:
        import jwt  # with an HTTP client of its own, 4 % of the imports of a server: not before there is a token

        try:
            header = jwt.get_unverified_header(token)
            unverified = _payload(token)
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            return None
        issuer = unverified.get("iss")
        if not isinstance(issuer, str) or (issuer not in self._issuers and issuer != LEGACY_ISSUER):
            return None
        claims = self._check_signature(token, header)
        if claims["iss"] == LEGACY_ISSUER:
            return _verified_legacy(claims, self._api_audiences)
        return _verified_bound(claims, self._api_audiences)

    def _check_signature(self, token: str, header: dict[str, Any]) -> dict[str, Any]:
        import jwt

        key_id = header.get("kid")
        keys = [self._keys[key_id]] if key_id in self._keys else list(self._keys.values())
        for key, algorithm in keys:
            if header.get("alg") != algorithm:
                continue
            try:
                # the one algorithm of this key, so neither "none" nor an HMAC with the public key as secret can pass
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_sub": False},
                )
            except jwt.InvalidTokenError:
                continue
            return claims
        raise AuthenticationError("invalid signature of a service account token")


def _payload(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    if not isinstance(claims, dict):
        raise ValueError("claims are no object")
    return claims


def _gone_since(obj: objects.Object, now: float) -> bool:
    """Whether the object's deletion is due for longer than clocks may differ."""
    deleted_at = objects.metadata(obj).get("deletionTimestamp")
    return bool(deleted_at) and _seconds(str(deleted_at)) < now - LEEWAY_SECONDS


def _seconds(rfc3339: str) -> float:
    return datetime.datetime.fromisoformat(rfc3339).timestamp()


def _number(claims: dict[str, Any], name: str, default: float) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise AuthenticationError(f"claim {name} is no number")
    return float(value)


def _verified_bound(claims: dict[str, Any], api_audiences: tuple[str, ...]) -> _Verified:
    private = claims.get("kubernetes.io")
    if not isinstance(private, dict):
        raise AuthenticationError("token has no kubernetes.io claim")
    namespace = str(private.get("namespace") or "")
    account = private.get("serviceaccount") or {}
    name, uid = str(account.get("name") or ""), str(account.get("uid") or "")
    if claims.get("sub") != service_account_name(namespace, name):
        raise AuthenticationError("token's subject does not match its service account")
    bound = tuple(_bound_objects(private, namespace))
    audiences = claims.get("aud") or ()
    audiences = (audiences,) if isinstance(audiences, str) else tuple(str(a) for a in audiences)
    if not audiences:
        raise AuthenticationError("token has no audience")
    extra: dict[str, tuple[str, ...]] = {}
    if claims.get("jti"):
        extra[CREDENTIAL_ID_KEY] = (f"JTI={claims['jti']}",)
    for reference in bound:
        if reference.kind in ("pod", "node"):
            extra[f"authentication.kubernetes.io/{reference.kind}-name"] = (reference.name,)
            if reference.uid:
                extra[f"authentication.kubernetes.io/{reference.kind}-uid"] = (reference.uid,)
    user = UserInfo(name=service_account_name(namespace, name), uid=uid, groups=service_account_groups(namespace), extra=extra)
    return _Verified(
        namespace=namespace,
        name=name,
        uid=uid,
        bound=bound,
        audiences=audiences,
        not_before=_number(claims, "nbf", 0),
        # a bound token without an end is none of ours
        expires_at=_number(claims, "exp", 0),
        warn_after=_number(private, "warnafter", 0),
        authentication=TokenAuthentication(user=user, audiences=tuple(a for a in api_audiences if a in audiences)),
    )


def _bound_objects(private: dict[str, Any], namespace: str) -> list[BoundObject]:
    found: list[BoundObject] = []
    for kind, (resource, namespaced) in _BOUND.items():
        reference = private.get(kind)
        if not isinstance(reference, dict):
            continue
        found.append(
            BoundObject(
                kind=kind,
                resource=resource,
                namespace=namespace if namespaced else "",
                name=str(reference.get("name") or ""),
                uid=str(reference.get("uid") or ""),
                checked=kind != "node" or "pod" not in private,
            )
        )
    return found


def _verified_legacy(claims: dict[str, Any], api_audiences: tuple[str, ...]) -> _Verified:
    def claim(name: str) -> str:
        return str(claims.get(_LEGACY_PREFIX + name) or "")

    namespace, name, uid = claim("namespace"), claim("service-account.name"), claim("service-account.uid")
    secret = claim("secret.name")
    if not namespace or not name or not uid or not secret:
        raise AuthenticationError("legacy service account token lacks a claim")
    if claims.get("sub") != service_account_name(namespace, name):
        raise AuthenticationError("token's subject does not match its service account")
    user = UserInfo(name=service_account_name(namespace, name), uid=uid, groups=service_account_groups(namespace))
    return _Verified(
        namespace=namespace,
        name=name,
        uid=uid,
        bound=(),
        audiences=api_audiences,
        not_before=0,
        expires_at=float("inf"),
        warn_after=0,
        authentication=TokenAuthentication(user=user, audiences=api_audiences),
        legacy_secret=secret,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundReference:
    """What a new token is bound to; ``kind`` is pod, secret or node. ``node_name``/``node_uid``: the node of a bound pod."""

    kind: str
    name: str
    uid: str
    node_name: str = ""
    node_uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIssuer:
    """Signs tokens. ``new_id`` answers a fresh uuid for each (``jti``)."""

    key: PrivateKey
    issuer: str
    now: Callable[[], float]
    new_id: Callable[[], str]
    _headers: dict[str, str] = field(init=False, default_factory=dict)

    def issue(
        self,
        account: objects.Object,
        audiences: Sequence[str],
        expiration_seconds: int,
        bound: BoundReference | None = None,
        warn_after_seconds: int = 0,
    ) -> str:
        """A token for ``account`` (a ServiceAccount object) with the claims of Kubernetes' bound tokens."""
        assert expiration_seconds > 0, expiration_seconds
        now = int(self.now())
        private: dict[str, Any] = {
            "namespace": objects.namespace(account),
            "serviceaccount": {"name": objects.name(account), "uid": objects.uid(account)},
        }
        if bound is not None:
            assert bound.kind in _BOUND, bound.kind
            private[bound.kind] = {"name": bound.name, "uid": bound.uid}
            if bound.node_name:
                private["node"] = {"name": bound.node_name} | ({"uid": bound.node_uid} if bound.node_uid else {})
        if warn_after_seconds:
            private["warnafter"] = now + warn_after_seconds
        import jwt

        claims = {
            "aud": list(audiences),
            "exp": now + expiration_seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": self.new_id(),
            "kubernetes.io": private,
            "nbf": now,
            "sub": service_account_name(objects.namespace(account), objects.name(account)),
        }
        if not self._headers:
            self._headers["kid"] = key_id_of(self.key.public_key())
        return jwt.encode(claims, self.key, algorithm=algorithm_of(self.key), headers=dict(self._headers))
