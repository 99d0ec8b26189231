"""``Authorization: Bearer …`` → the token authenticators, each asked in turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from apiserver.authentication.interfaces import AuthenticationError, TokenAuthentication, TokenAuthenticator
from apiserver.authentication.user import UserInfo
from apiserver.request.request_context import RequestContext

#: longer tokens are refused unread: a JWT with every claim this server issues has under 2 KiB, OIDC tokens under 8 KiB
TOKEN_LENGTH_MAX = 16 * 1024


class TokenUnion:
    """Asks each authenticator until one knows the token. A token that nobody knows is wrong (a bearer token always names a user)."""

    def __init__(self, authenticators: Sequence[TokenAuthenticator]) -> None:
        self._authenticators = tuple(authenticators)

    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication:
        if len(token) > TOKEN_LENGTH_MAX:
            raise AuthenticationError("bearer token is too long")
        errors: list[str] = []
        annotations: dict[str, str] = {}
        for authenticator in self._authenticators:
            try:
                found = authenticator.authenticate_token(token, audiences)
            except AuthenticationError as error:
                errors.append(str(error))
                annotations |= error.annotations
                continue
            if found is None:
                continue
            if not audiences:
                return found
            common = tuple(audience for audience in audiences if audience in found.audiences)
            if common:
                return dataclasses.replace(found, audiences=common)
        if not errors:
            raise AuthenticationError("invalid bearer token")
        raise AuthenticationError(f"[invalid bearer token, {', '.join(errors)}]", annotations)


class BearerTokenAuthenticator:
    """Reads the header (RFC 6750 §2.1). Other schemes, an empty token and a missing header are no credential of this kind."""

    def __init__(self, tokens: TokenAuthenticator) -> None:
        self._tokens = tokens

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        header = context.headers.get(b"authorization")
        if not header or header[:7].lower() != b"bearer ":
            return None
        token = header[7:].strip()
        if not token:
            return None
        try:
            found = self._tokens.authenticate_token(token.decode("latin-1"))
        except AuthenticationError as error:
            context.annotations.update(error.annotations)
            raise
        if found is None:
            raise AuthenticationError("invalid bearer token")
        if found.annotations:
            context.annotations.update(found.annotations)
        for text in found.warnings:
            context.warn(text)
        return found.user
