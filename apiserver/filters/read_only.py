"""Refuses every write: for a server that shows a backup (``--read-only``)."""

from __future__ import annotations

from apiserver.filters.asgi import ASGIApp, Receive, Scope, Send
from apiserver.machinery import status
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import SCOPE_KEY, RequestContext

MESSAGE = "this server only shows what is stored (--read-only) and takes no writes"
_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
#: groups of reviews: questions that are posted
_REVIEWS = frozenset(("authentication.k8s.io", "authorization.k8s.io"))


class ReadOnly:
    """Stands before the handlers, behind authorization: whoever may not write is told that. Dry runs are writes too: what a server that
    writes would answer is not known here, since its controllers and bootstrap objects are missing."""

    def __init__(self, handler: ASGIApp) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises StatusError 405."""
        if scope["type"] == "http":
            context: RequestContext = scope[SCOPE_KEY]
            info = context.info
            if info.is_resource_request and info.verb in _WRITES and info.group not in _REVIEWS:
                details = {"group": info.group, "kind": info.resource, **({"name": info.name} if info.name else {})}
                found = {key: value for key, value in details.items() if value}
                raise StatusError(status.failure(405, "MethodNotAllowed", MESSAGE, found))
        await self._handler(scope, receive, send)
