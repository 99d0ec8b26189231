"""Bearer tokens of browsers: a WebSocket that is opened by a page can carry no ``Authorization``, so the token stands among its
subprotocols as ``base64url.bearer.authorization.k8s.io.TOKEN``, in base64 without padding (apiserver
``authentication/request/websocket``)."""

from __future__ import annotations

import base64
import binascii
import re

from apiserver.authentication.interfaces import AuthenticationError, RequestAuthenticator, TokenAuthenticator
from apiserver.authentication.user import UserInfo
from apiserver.request.request_context import RequestContext

PREFIX = "base64url.bearer.authorization.k8s.io."
_HEADER = b"sec-websocket-protocol"
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


class WebSocketTokenAuthenticator(RequestAuthenticator):
    def __init__(self, tokens: TokenAuthenticator) -> None:
        self._tokens = tokens

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        """Of a good token nothing stays in the headers: whoever the request is passed on to must not have it.

        Raises AuthenticationError."""
        headers = context.headers
        if _HEADER not in headers or not _is_websocket(headers):
            return None
        told = [value.decode("latin-1") for name, value in context.raw_headers if name == _HEADER]
        protocols = [protocol.strip() for value in told for protocol in value.split(",")]
        encoded = [protocol[len(PREFIX) :] for protocol in protocols if protocol.startswith(PREFIX)]
        if not encoded:
            return None
        if len(encoded) > 1:
            raise AuthenticationError("multiple base64.bearer.authorization tokens specified")
        token = _decoded(encoded[0])
        if not token:
            return None
        others = [protocol for protocol in protocols if not protocol.startswith(PREFIX)]
        if not others:
            raise AuthenticationError("missing additional subprotocol")
        found = self._tokens.authenticate_token(token)
        if found is None:
            raise AuthenticationError("invalid bearer token")
        _replace(context, ",".join(others).encode("latin-1"))
        context.annotations.update(found.annotations)
        for text in found.warnings:
            context.warn(text)
        return found.user


def _is_websocket(headers: dict[bytes, bytes]) -> bool:
    return headers.get(b"upgrade", b"").lower() == b"websocket" and b"upgrade" in headers.get(b"connection", b"").lower()


def _decoded(encoded: str) -> str:
    if not _BASE64URL.fullmatch(encoded) or len(encoded) % 4 == 1:
        raise AuthenticationError("invalid base64.bearer.authorization token encoding")
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise AuthenticationError("invalid base64.bearer.authorization token") from error


def _replace(context: RequestContext, protocols: bytes) -> None:
    """In all places where handlers look for headers: the list is the request's own."""
    context.headers[_HEADER] = protocols
    raw = context.raw_headers
    assert isinstance(raw, list), type(raw)
    raw[:] = [*((name, value) for name, value in raw if name != _HEADER), (_HEADER, protocols)]
