"""All authenticators together: who makes a request, or 401.

Order: client certificate, bearer token, then nobody (anonymous). The first one that names a user wins, also where an earlier
credential was wrong; where none does and some credential was wrong the request is refused: a wrong credential never becomes the
anonymous user.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from apiserver.authentication.interfaces import AuthenticationError, RequestAuthenticator
from apiserver.authentication.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo
from apiserver.machinery import status
from apiserver.request.request_context import RequestContext

logger = logging.getLogger(__name__)

#: how many users with their ``system:authenticated`` added are remembered; beyond it the table starts anew
USERS_MAX = 4096


def with_authenticated_group(user: UserInfo) -> UserInfo:
    """``user`` in the group ``system:authenticated`` (or as it is where it is anonymous or already there)."""
    if user.name == ANONYMOUS or ALL_AUTHENTICATED in user.groups or ALL_UNAUTHENTICATED in user.groups:
        return user
    return UserInfo(name=user.name, uid=user.uid, groups=(*user.groups, ALL_AUTHENTICATED), extra=user.extra)


class AuthenticationObserver(Protocol):
    def authenticated(self, user_name: str, seconds: float) -> None: ...

    def not_authenticated(self, result: str, seconds: float) -> None:
        """``result``: error where a credential was wrong, failure where there was none."""


class UnionAuthenticator:
    def __init__(
        self,
        authenticators: Sequence[RequestAuthenticator],
        anonymous: RequestAuthenticator | None = None,
        observer: AuthenticationObserver | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``now``: the clock of ``RequestContext.received_at``, for ``observer``."""
        self._observer = observer
        self._now = now
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous
        # by identity: the same credential answers the same UserInfo object as long as it is cached below
        self._grouped: dict[int, tuple[UserInfo, UserInfo]] = {}

    def authenticate(self, context: RequestContext) -> UserInfo:
        """Raises StatusError 401."""
        errors: list[str] = []
        for authenticator in self._authenticators:
            try:
                user = authenticator.authenticate(context)
            except AuthenticationError as error:
                errors.append(str(error))
                continue
            if user is not None:
                if self._observer is not None:
                    self._observer.authenticated(user.name, self._now() - context.received_at)
                return self._with_group(user)
        if not errors and self._anonymous is not None:
            user = self._anonymous.authenticate(context)
            if user is not None:
                if self._observer is not None:
                    self._observer.authenticated(user.name, self._now() - context.received_at)
                return user
        if self._observer is not None:
            self._observer.not_authenticated("error" if errors else "failure", self._now() - context.received_at)
        if errors:
            logger.info("unable to authenticate a request: audit_id=%s path=%s errors=%s", context.audit_id, context.info.path, errors)
        raise status.unauthorized()

    def _with_group(self, user: UserInfo) -> UserInfo:
        known = self._grouped.get(id(user))
        if known is not None and known[0] is user:
            return known[1]
        if len(self._grouped) >= USERS_MAX:
            self._grouped.clear()
        grouped = with_authenticated_group(user)
        self._grouped[id(user)] = (user, grouped)
        return grouped
