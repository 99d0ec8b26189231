"""Who makes the request: sets ``context.user`` or refuses with 401."""

from __future__ import annotations

from typing import Protocol

from apiserver.authentication.user import UserInfo
from apiserver.request.request_context import RequestContext


class Authenticator(Protocol):
    def authenticate(self, context: RequestContext) -> UserInfo:
        """Raises StatusError 401."""


class Authentication:
    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def __call__(self, context: RequestContext) -> None:
        context.user = self._authenticator.authenticate(context)
