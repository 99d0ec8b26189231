"""Bootstrap tokens: ``abcdef.0123456789abcdef``, kept in Secrets ``kube-system/bootstrap-token-abcdef``, with which a new node
introduces itself (Kubernetes documentation, "Authenticating with Bootstrap Tokens")."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Sequence

from apiserver.admission.interfaces import ObjectGetter
from apiserver.authentication.interfaces import AuthenticationError, TokenAuthentication
from apiserver.authentication.user import UserInfo
from apiserver.machinery import objects, timestamps

SECRET_TYPE = "bootstrap.kubernetes.io/token"
GROUP = "system:bootstrappers"
_TOKEN = re.compile(r"\A([a-z0-9]{6})\.([a-z0-9]{16})\Z")
_GROUP = re.compile(r"\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\Z")


class BootstrapTokenAuthenticator:
    def __init__(self, getter: ObjectGetter, now: Callable[[], float], api_audiences: Sequence[str] = ()) -> None:
        """``now``: seconds since the epoch, wall clock. ``api_audiences``: those of this API server."""
        self._audiences = tuple(api_audiences)
        self._getter = getter
        self._now = now

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication | None:
        """None for other forms and unknown ids; raises AuthenticationError for a known id with a wrong secret or past its time."""
        parsed = _TOKEN.match(token)
        if parsed is None:
            return None
        token_id, token_secret = parsed.groups()
        secret = self._getter.get("", "secrets", "kube-system", f"bootstrap-token-{token_id}")
        if secret is None or objects.is_being_deleted(secret) or secret.get("type") != SECRET_TYPE:
            return None
        data = _decoded(secret.get("data") or {})
        if not hmac.compare_digest(data.get("token-secret", "").encode(), token_secret.encode()):
            raise AuthenticationError("bootstrap token has a wrong secret")
        if data.get("token-id") != token_id or data.get("usage-bootstrap-authentication") != "true":
            raise AuthenticationError("bootstrap token is not for authentication")
        if data.get("expiration") and not self._is_in_future(data["expiration"]):
            raise AuthenticationError("bootstrap token has expired")
        extra = data.get("auth-extra-groups", "")
        groups = extra.split(",") if extra else []
        if not all(_GROUP.match(group) for group in groups):
            raise AuthenticationError("bootstrap token has an invalid group")
        user = UserInfo(name=f"system:bootstrap:{token_id}", groups=tuple(sorted({GROUP, *groups})))
        return TokenAuthentication(user=user, audiences=self._audiences)

    def _is_in_future(self, expiration: str) -> bool:
        try:
            return timestamps.parse_time(expiration).timestamp() > self._now()
        except ValueError:
            return False


def _decoded(data: dict[str, str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for key, value in data.items():
        try:
            out[key] = base64.b64decode(value).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
    return out
