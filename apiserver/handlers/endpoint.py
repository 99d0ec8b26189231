"""The ASGI endpoint of all resources: finds the resource of a request and calls the handler of its verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from apiserver.handlers import custom_resources, response
from apiserver.handlers.create import create
from apiserver.handlers.delete import delete, delete_collection
from apiserver.handlers.patch import patch
from apiserver.handlers.reading import get, list_
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.subresources import Subresources
from apiserver.handlers.update import update
from apiserver.handlers.watch import WRITE_CHUNK_KEY, watch
from apiserver.machinery import release, status
from apiserver.registry.registry import VIRTUAL, Registry
from apiserver.request.body import ClientGoneError, Receive
from apiserver.request.request_context import SCOPE_KEY, RequestContext, RequestInfo
from apiserver.resources import deprecation
from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas.schema_set import SchemaSet

Scope = MutableMapping[str, Any]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Virtual = Callable[[ResourceInfo, RequestContext, Receive, Send], Awaitable[None]]

_READS = frozenset(("get", "list", "watch"))


class ResourceEndpoint:
    """``fallback`` serves everything that is no resource request; ``virtual`` the kinds that are not stored."""

    def __init__(
        self,
        registry: Registry,
        schemas: SchemaSet,
        subresources: Subresources,
        virtual: Virtual,
        fallback: ASGIApp,
        *,
        max_body_bytes: int,
        min_request_timeout_seconds: int,
    ) -> None:
        self._registry = registry
        self._schemas = schemas
        self._subresources = subresources
        self._virtual = virtual
        self._fallback = fallback
        self._max_body_bytes = max_body_bytes
        self._min_request_timeout_seconds = min_request_timeout_seconds
        self._scopes: dict[tuple[str, str, str], ResourceScope] = {}
        self._deprecations = deprecation.warnings_of(registry.table, registry.table.minor)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context: RequestContext = scope[SCOPE_KEY]
        info = context.info
        if not info.is_resource_request:
            await self._fallback(scope, receive, send)
            return
        release.serve(self._registry.table.minor)
        if info.verb == "watch":
            context.extra[WRITE_CHUNK_KEY] = scope.get(WRITE_CHUNK_KEY)
        try:
            await self._serve(info, context, receive, send)
        except ClientGoneError:
            return

    def scope(self, group: str, version: str, resource: str) -> ResourceScope | None:
        key = (group, version, resource)
        found = self._scopes.get(key)
        if found is not None and self._registry.table.lookup(*key) is found.info:
            return found
        self._scopes.pop(key, None)
        store = self._registry.store(group, version, resource)
        if store is None:
            return None
        if len(self._scopes) > len(self._registry.table):
            self._drop_stale_scopes()
        found = self._scopes[key] = ResourceScope(store, self._schemas)
        return found

    def _drop_stale_scopes(self) -> None:
        """Those of custom resources that went and were not asked for since."""
        table = self._registry.table
        self._scopes = {key: scope for key, scope in self._scopes.items() if table.lookup(*key) is scope.info}

    async def _serve(self, info: RequestInfo, context: RequestContext, receive: Receive, send: Send) -> None:
        if info.verb == "proxy":
            # /api/v1/proxy/… went with 1.10, the verb did not
            raise status.generic_not_found()
        scope = self.scope(info.group, info.version, info.resource)
        if scope is None:
            found = self._registry.table.lookup(info.group, info.version, info.resource)
            if found is None and await self._registry.catch_up(info.group):
                found = self._registry.table.lookup(info.group, info.version, info.resource)
            if found is not None and not found.builtin:
                await self._registry.load(found)
                scope = self.scope(info.group, info.version, info.resource)
        if scope is None:
            if found is None or (info.group, info.resource) not in VIRTUAL:
                await self._unknown(info, context, send)
                return
            check_place(found, info)
            check_method(context)
            check_verb(found.verbs, info.verb, named=len(info.parts) > 1)
            self._warn(info, context)
            await self._virtual(found, context, receive, send)
            return
        resource = scope.info
        if resource.builtin:
            check_place(resource, info)
            check_method(context)
        elif not custom_resources.check(resource, context):
            await response.send_text(send, context, 404, response.NOT_FOUND_TEXT)
            return
        if info.subresource:
            self._warn(info, context)
            await self._subresources.serve(scope, context, receive, send)
            return
        verb = info.verb
        check_verb(resource.verbs, verb, named=len(info.parts) > 1)
        self._warn(info, context)
        if verb == "get":
            await get(scope, context, send)
        elif verb == "list":
            await list_(scope, context, send)
        elif verb == "watch":
            await watch(scope, context, receive, send, self._min_request_timeout_seconds)
        elif verb == "create":
            if len(info.parts) > 1 and resource.builtin:
                raise status.generic_method_not_allowed()
            await create(scope, context, receive, send, self._max_body_bytes)
        elif not info.name and verb != "deletecollection":
            raise status.generic_method_not_allowed()
        elif verb == "update":
            await update(scope, context, receive, send, self._max_body_bytes)
        elif verb == "patch":
            await patch(scope, context, receive, send, self._max_body_bytes)
        elif verb == "delete":
            await delete(scope, context, receive, send, self._max_body_bytes)
        else:
            await delete_collection(scope, context, receive, send, self._max_body_bytes)

    def _warn(self, info: RequestInfo, context: RequestContext) -> None:
        warning = self._deprecations.get((info.group, info.version, info.resource))
        if warning is not None:
            context.warn(warning)

    async def _unknown(self, info: RequestInfo, context: RequestContext, send: Send) -> None:
        """A group that is not served has no handler at all, nor has a missing resource among custom ones; within a built-in group the
        resource is missing."""
        if self._registry.table.is_builtin(info.group):
            raise status.generic_not_found()
        await response.send_text(send, context, 404, response.NOT_FOUND_TEXT)


def check_place(resource: ResourceInfo, info: RequestInfo) -> None:
    """Namespaced resources live in a namespace, others in none; only whole collections are seen across namespaces."""
    if resource.namespaced:
        if not info.namespace and len(info.parts) > 1:
            raise status.generic_not_found()
        if not info.namespace and info.verb not in _READS and info.verb != "":
            raise status.generic_method_not_allowed()
    elif info.namespace and resource.resource != "namespaces":
        raise status.generic_not_found()
    if len(info.parts) > 3 and info.subresource != "proxy":
        raise status.generic_not_found()


def check_method(context: RequestContext) -> None:
    """HEAD is authorized as GET and then not served: built-in resources have no route for it."""
    if context.method == "HEAD":
        raise status.generic_method_not_allowed()


_ITEM_VERBS = frozenset(("get", "update", "patch", "delete"))


def check_verb(verbs: tuple[str, ...], verb: str, *, named: bool = False) -> None:
    """``named``: the path is that of one object, which is there only if something can be done with one (reviews are only created)."""
    if verb not in verbs:
        if named and not _ITEM_VERBS.intersection(verbs):
            raise status.generic_not_found()
        raise status.generic_method_not_allowed()
