"""POST of an object."""

from __future__ import annotations

from apiserver.handlers.reading import send_stored
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.registry import before, owner_references
from apiserver.request import body as request_body
from apiserver.request.body import Receive
from apiserver.request.negotiation import YAML, body_type
from apiserver.request.options import write_options
from apiserver.request.request_context import RequestContext


async def create(scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, limit_bytes: int) -> None:
    negotiated = scope.negotiate(context)
    namespace = context.info.namespace if scope.info.namespaced else ""
    media_type = body_type(context.headers)
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    options = write_options(context.query, "CreateOptions")
    obj = await request_body.beside_the_loop(body, media_type == YAML, lambda: scope.decode(body, media_type, options, context))
    before.wipe(obj["metadata"])
    if context.audit is not None:
        context.audit.note_request_object(obj, scope.store.strategy.default)
    check_namespace(obj, namespace)
    owner_references.deduplicate(obj["metadata"], context.warn, after_admission=False)
    scope.store.strategy.default(obj)
    created = await scope.store.create(scope.write_of(context, options, "CreateOptions"), namespace, obj)
    await send_stored(scope, context, send, 201, negotiated, created)


def check_namespace(obj: Object, namespace: str) -> None:
    """A body may leave its namespace out, but not name another one. Cluster-scoped objects lose theirs."""
    metadata = obj["metadata"]
    said = metadata.get("namespace") or ""
    if said == namespace:
        return
    if not namespace:
        metadata.pop("namespace", None)
    elif not said:
        metadata["namespace"] = namespace
    else:
        raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")
