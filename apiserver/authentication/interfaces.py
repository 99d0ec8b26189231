"""The two doors of authentication and the answer behind them.

``RequestAuthenticator`` sees a whole request, ``TokenAuthenticator`` one bearer token. Both answer from memory and never wait, so
that a request with a known credential costs a few microseconds. Both answer None where the credential is not of their kind, and
raise ``AuthenticationError`` where it is of their kind and wrong; texts of errors go to the log and to TokenReview, never to the
client that presented the credential, and never contain the credential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from apiserver.authentication.user import UserInfo
from apiserver.request.request_context import RequestContext

#: key of ``UserInfo.extra`` that tells one credential of a user from another (``JTI=…``, ``X509SHA256=…``)
CREDENTIAL_ID_KEY = "authentication.kubernetes.io/credential-id"


class AuthenticationError(Exception):
    """A credential was presented and is wrong; the text says why, for the log. ``annotations`` go to the audit event."""

    def __init__(self, message: str = "", annotations: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.annotations = annotations or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAuthentication:
    """Who a token stands for. ``audiences``: of those that were asked for, the ones the token is good for (a token that knows nothing
    of audiences is good for this API server's). ``annotations`` go to the audit event, ``warnings`` to the client."""

    user: UserInfo
    audiences: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class TokenAuthenticator(Protocol):
    def authenticate_token(self, token: str, audiences: tuple[str, ...] = ()) -> TokenAuthentication | None:
        """``audiences``: the token must be for one of them; () means those of this API server."""


class RequestAuthenticator(Protocol):
    def authenticate(self, context: RequestContext) -> UserInfo | None: ...


class TokenObserver(Protocol):
    """Of those who remember tokens."""

    def hit(self) -> None:
        """A token was remembered."""

    def fetched(self, seconds: float, *, good: bool) -> None:
        """One was not, and was looked into; ``good``: whether that could be done, whatever came of it."""
