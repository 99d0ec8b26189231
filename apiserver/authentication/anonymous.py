"""The user of requests that carry no credential (``--anonymous-auth``)."""

from __future__ import annotations

from apiserver.authentication.user import ALL_UNAUTHENTICATED, ANONYMOUS, UserInfo
from apiserver.request.request_context import RequestContext

ANONYMOUS_USER = UserInfo(name=ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))


class AnonymousAuthenticator:
    """Lets everybody in as ``system:anonymous``; stands last in the union."""

    def authenticate(self, context: RequestContext) -> UserInfo:
        return ANONYMOUS_USER
