"""PUT of an object."""

from __future__ import annotations

from apiserver.handlers.create import check_namespace
from apiserver.handlers.reading import send_stored
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import status
from apiserver.machinery.objects import Object, deep_copy
from apiserver.registry import owner_references
from apiserver.registry.store import Preconditions
from apiserver.request import body as request_body
from apiserver.request.body import Receive
from apiserver.request.negotiation import YAML, body_type
from apiserver.request.options import write_options
from apiserver.request.request_context import RequestContext


async def update(
    scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, limit_bytes: int, subresource: str = ""
) -> None:
    """``subresource`` is "", "status" or another whose body is the whole object."""
    negotiated = scope.negotiate(context)
    info, store = context.info, scope.store
    namespace = info.namespace if scope.info.namespaced else ""
    media_type = body_type(context.headers)
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    options = write_options(context.query, "UpdateOptions")
    sent = await request_body.beside_the_loop(body, media_type == YAML, lambda: scope.decode(body, media_type, options, context))
    if context.audit is not None:
        context.audit.note_request_object(sent, store.strategy.default)
    check_namespace(sent, namespace)
    check_name(sent, info.name)
    owner_references.deduplicate(sent["metadata"], context.warn, after_admission=False)
    store.strategy.default(sent)

    async def replace(_: Object) -> Object:
        return deep_copy(sent)  # type: ignore[no-any-return]  # an attempt changes its object in place

    write = scope.write_of(context, options, "UpdateOptions")
    may_create = store.strategy.allow_create_on_update and not subresource
    written, created = await store.update(
        write,
        namespace,
        info.name,
        replace,
        subresource=subresource,
        create=replace if may_create else None,
        preconditions=Preconditions(uid=sent["metadata"].get("uid") or None),
    )
    await send_stored(scope, context, send, 201 if created else 200, negotiated, written)


def check_name(obj: Object, name: str) -> None:
    said = obj["metadata"].get("name") or ""
    if not said:
        raise status.bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if said != name:
        raise status.bad_request(f"the name of the object ({said}) does not match the name on the URL ({name})")
