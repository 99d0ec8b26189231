"""The user of requests that carry no credential (``--anonymous-auth``, ``anonymous`` of an AuthenticationConfiguration)."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.authentication.user import ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo
from apiserver.request.request_context import RequestContext

ANONYMOUS_USER = UserInfo(name=ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))


class AnonymousAuthenticator:
    """Lets everybody in as ``system:anonymous``; stands last in the union."""

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        return ANONYMOUS_USER


class AnonymousForPaths:
    """Lets everybody in as ``system:anonymous`` on some paths, each spelled exactly so."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)

    def authenticate(self, context: RequestContext) -> UserInfo | None:
        return ANONYMOUS_USER if context.info.path in self._paths else None
