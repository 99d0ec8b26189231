"""Requests to subresources: which exist for a resource, and the handler of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apiserver.handlers import pod_subresources, response, scale
from apiserver.handlers import scope as scopes
from apiserver.handlers.create import body_timeout, check_namespace
from apiserver.handlers.patch import apply_patch, check_options, own_metadata, patch
from apiserver.handlers.reading import get, send_stored
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.update import check_name, update
from apiserver.machinery import objects, status
from apiserver.machinery.objects import Object, deep_copy
from apiserver.registry.registry import Registry
from apiserver.request import body as request_body
from apiserver.request import negotiation
from apiserver.request.body import Receive
from apiserver.request.negotiation import body_type, negotiate
from apiserver.request.options import write_options
from apiserver.request.request_context import RequestContext

#: Issues a ServiceAccount token: (TokenRequest body, ServiceAccount, context) → the answered TokenRequest. Raises StatusError.
IssueToken = Callable[[Object, Object, RequestContext], Awaitable[Object]]

#: Subresources that take the whole object and let a part of it be changed: (sent, old) → new. ``old`` may be changed.
_PARTS: dict[str, Callable[[Object, Object], Object]] = {}


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
        elif found.name == "status":
            if verb == "update":
                await update(scope, context, receive, send, limit, "status")
            else:
                await patch(scope, context, receive, send, limit, "status")
        else:
            await self._part(scope, context, receive, send, found.name)

    async def _token(self, scope: ResourceScope, context: RequestContext, receive: Receive, send: Send) -> None:
        negotiated = negotiate(context.headers, context.query, list_of_objects=False)
        body = await request_body.read(
            receive, context.headers, limit_bytes=self._max_body_bytes, timeout_seconds=body_timeout(context)
        )
        options = write_options(context.query, "CreateOptions")
        sub = next(s for s in scope.info.subresources if s.name == "token")
        request = scopes.decode_as(
            scope.schemas, scopes.kind_info(sub.group, sub.version, sub.kind), sub.kind, body, body_type(context.headers), options, context
        )
        account = await scope.store.get(context.info.namespace, context.info.name)
        answer = await self._issue_token(request, account.decode(), context)
        await response.send_object(send, context, 201, negotiated, answer)

    async def _part(self, scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, name: str) -> None:
        """PUT and PATCH of a subresource whose body is the object."""
        negotiated = negotiate(context.headers, context.query, list_of_objects=False)
        info, store = context.info, scope.store
        namespace = info.namespace if scope.info.namespaced else ""
        body = await request_body.read(
            receive, context.headers, limit_bytes=self._max_body_bytes, timeout_seconds=body_timeout(context)
        )
        take = _PARTS[name]
        if info.verb == "patch":
            patch_type = negotiation.patch_type(context.headers, strategic=scope.info.builtin)
            options = write_options(context.query, "PatchOptions")
            check_options(options, patch_type)
            if patch_type == negotiation.APPLY_YAML:
                raise status.unsupported_media_type(negotiation.PATCH_TYPES[:3])

            async def build(old: Object) -> Object:
                before = deep_copy(old)
                sent = own_metadata(scope.redecode(apply_patch(scope, patch_type, body, old), options, context))
                return _take(sent, before)

        else:
            options = write_options(context.query, "UpdateOptions")
            put = scope.decode(body, body_type(context.headers), options, context)
            check_name(put, info.name)
            check_namespace(put, namespace)

            async def build(old: Object) -> Object:
                return _take(deep_copy(put), old)

        def _take(sent: Object, old: Object) -> Object:
            new = take(sent, old)
            for field in ("resourceVersion", "uid"):
                if field in sent["metadata"]:
                    new["metadata"][field] = sent["metadata"][field]
            if "resourceVersion" not in sent["metadata"]:
                new["metadata"].pop("resourceVersion", None)
            return new

        write = scope.write_of(context, options, "PatchOptions" if info.verb == "patch" else "UpdateOptions")
        written, _ = await store.update(write, namespace, info.name, build, subresource=name)
        await send_stored(scope, context, send, 200, negotiated, written)


def _finalize(sent: Object, old: Object) -> Object:
    """namespaces/finalize: only spec.finalizers."""
    finalizers = objects.get(sent, "spec", "finalizers")
    spec = old.setdefault("spec", {})
    if finalizers:
        spec["finalizers"] = finalizers
    else:
        spec.pop("finalizers", None)
    return old


def _approval(sent: Object, old: Object) -> Object:
    """certificatesigningrequests/approval: the conditions, and nothing else of the status."""
    conditions = objects.get(sent, "status", "conditions")
    new_status = old.setdefault("status", {})
    if conditions:
        new_status["conditions"] = conditions
    else:
        new_status.pop("conditions", None)
    return old


def _ephemeral_containers(sent: Object, old: Object) -> Object:
    containers = objects.get(sent, "spec", "ephemeralContainers")
    if containers:
        old["spec"]["ephemeralContainers"] = containers
    return old


def _resize(sent: Object, old: Object) -> Object:
    """pods/resize: resources and resize policies of the containers that are there."""
    for field in ("containers", "initContainers"):
        wanted: dict[str, Object] = {c.get("name"): c for c in objects.get(sent, "spec", field, default=[])}
        for container in old["spec"].get(field) or []:
            found = wanted.get(container.get("name"))
            if found is None:
                continue
            for part in ("resources", "resizePolicy"):
                if part in found:
                    container[part] = found[part]
                else:
                    container.pop(part, None)
    return old


_PARTS.update(
    {"finalize": _finalize, "approval": _approval, "ephemeralcontainers": _ephemeral_containers, "resize": _resize}
)
