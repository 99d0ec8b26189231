"""Requests to subresources: which exist for a resource, and the handler of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apiserver.admission.interfaces import Operation
from apiserver.handlers import pod_subresources, response, scale
from apiserver.handlers import scope as scopes
from apiserver.handlers.patch import patch
from apiserver.handlers.reading import get
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.update import update
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.registry.registry import Registry
from apiserver.request import body as request_body
from apiserver.request.body import Receive
from apiserver.request.options import write_options
from apiserver.request.request_context import RequestContext

#: Issues a ServiceAccount token: (TokenRequest body, ServiceAccount, context) → the answered TokenRequest. Raises StatusError.
IssueToken = Callable[[Object, Object, RequestContext], Awaitable[Object]]


class Subresources:
    def __init__(self, registry: Registry, issue_token: IssueToken, max_body_bytes: int) -> None:
        self._registry = registry
        self._issue_token = issue_token
        self._max_body_bytes = max_body_bytes

    async def serve(self, scope: ResourceScope, context: RequestContext, receive: Receive, send: Send) -> None:
        info = context.info
        found = next((sub for sub in scope.info.subresources if sub.name == info.subresource), None)
        if found is None:
            raise status.generic_not_found()
        verb = info.verb
        limit = self._max_body_bytes
        if found.name in pod_subresources.STREAMS:
            await pod_subresources.stream(scope, context)
            return
        if verb not in found.verbs:
            raise status.generic_method_not_allowed()
        if found.name == "scale":
            await scale.serve(scope, context, receive, send, limit)
        elif found.name == "binding":
            await pod_subresources.bind(scope, context, receive, send, limit)
        elif found.name == "eviction":
            await pod_subresources.evict(scope, self._registry, context, receive, send, limit)
        elif found.name == "token":
            await self._token(scope, context, receive, send)
        elif verb == "get":
            await get(scope, context, send)
        elif verb == "update":
            await update(scope, context, receive, send, limit, found.name)
        else:
            await patch(scope, context, receive, send, limit, found.name)

    async def _token(self, scope: ResourceScope, context: RequestContext, receive: Receive, send: Send) -> None:
        negotiated = scope.negotiate(context)
        body = await request_body.read(receive, context.headers, limit_bytes=self._max_body_bytes)
        options = write_options(context.query, "CreateOptions")
        sub = next(s for s in scope.info.subresources if s.name == "token")
        kind = scopes.kind_info(sub.group, sub.version, sub.kind)
        request = await scopes.decode_apart(scope.schemas, kind, sub.kind, body, options, context)
        info, write = context.info, scope.write_of(context, options, "CreateOptions")
        # first, so that a namespace that is not there is told of before its account
        await scope.store.admit_apart(Operation.CREATE, write, info.namespace, info.name, request, None, "token")
        account = await scope.store.get(info.namespace, info.name)
        answer = await self._issue_token(request, account.decode(), context)
        await response.send_object(send, context, 201, negotiated, answer)
