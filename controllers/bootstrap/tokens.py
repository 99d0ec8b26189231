"""What stands in a Secret of the type ``bootstrap.kubernetes.io/token``. Pure."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import hmac
import re

from apiserver.machinery import objects, timestamps
from apiserver.machinery.objects import Object

NAMESPACE = "kube-system"
SECRET_TYPE = "bootstrap.kubernetes.io/token"
_NAME = re.compile(r"\Abootstrap-token-([a-z0-9]{6})\Z")


def value(secret: Object, key: str) -> str:
    """ "" for what is not there or is no text."""
    encoded = objects.get(secret, "data", key)
    try:
        return base64.b64decode(str(encoded)).decode() if encoded else ""
    except (binascii.Error, UnicodeDecodeError):
        return ""


def seconds_left(secret: Object, now: datetime.datetime) -> float | None:
    """Until a token ends, 0 for one that has; None for one without an end. A time that nobody can read is over."""
    expiration = value(secret, "expiration")
    if not expiration:
        return None
    try:
        ends = timestamps.parse_time(expiration)
    except ValueError:
        return 0.0
    return max(0.0, (ends - now).total_seconds())


def signing_token(secret: Object, now: datetime.datetime) -> tuple[str, str] | None:
    """(id, secret) of a token that may sign ``cluster-info``."""
    named = _NAME.match(objects.name(secret))
    token_id, token_secret = value(secret, "token-id"), value(secret, "token-secret")
    if named is None or named[1] != token_id or not token_secret or seconds_left(secret, now) == 0:
        return None
    return (token_id, token_secret) if value(secret, "usage-bootstrap-signing") == "true" else None


def detached_signature(content: str, token_id: str, token_secret: str) -> str:
    """A JWS (RFC 7515, appendix F) with HMAC SHA-256 over ``content``, which stands elsewhere."""
    header = _encoded(f'{{"alg":"HS256","kid":"{token_id}"}}'.encode())
    signed = f"{header}.{_encoded(content.encode())}"
    signature = hmac.new(token_secret.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{header}..{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
