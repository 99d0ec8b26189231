"""DELETE of one object and of a collection."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.handlers import response
from apiserver.handlers.reading import listed, send_list, send_stored
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope, body_json, no_kind, wrong_head
from apiserver.machinery import status
from apiserver.machinery.status import StatusError
from apiserver.registry import deletion, object_deletion
from apiserver.registry.deletion import DeleteOptions
from apiserver.registry.environment import Write
from apiserver.request import body as request_body
from apiserver.request import options as request_options
from apiserver.request.body import Receive
from apiserver.request.negotiation import JSON, body_type
from apiserver.request.options import META_GROUP, list_options
from apiserver.request.request_context import RequestContext
from apiserver.resources.table import minor_of
from apiserver.schemas import json_bodies

#: Kinds that answer a delete with the object rather than a Status (upstream's ReturnDeletedObject).
_RETURN_OBJECT = frozenset(
    (
        ("", "namespaces"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        ("", "pods"),
        ("", "podtemplates"),
        ("", "resourcequotas"),
        ("", "serviceaccounts"),
        ("", "services"),
        ("storage.k8s.io", "csidrivers"),
        ("storage.k8s.io", "csinodes"),
        ("storage.k8s.io", "storageclasses"),
        ("storage.k8s.io", "volumeattachments"),
    )
)


#: the minor in which the gate AllowUnsafeMalformedObjectDeletion is on by default; before, the option is ignored
IGNORE_READ_ERROR_SINCE = 37


async def delete(scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, limit_bytes: int) -> None:
    negotiated = scope.negotiate(context)
    info = context.info
    options = await read_options(context, receive, limit_bytes)
    namespace = info.namespace if scope.info.namespaced else ""
    if options.ignore_store_read_error and minor_of(scope.schemas.kubernetes_version) >= IGNORE_READ_ERROR_SINCE:
        await object_deletion.delete_unreadable(scope.store, write_of(context, options), namespace, info.name)
        await response.send_object(send, context, 200, negotiated, deleted_status(scope, info.name, {}))
        return
    if why := scope.store.strategy.why_never_deleted(info.name):
        raise status.forbidden(scope.info.group, scope.info.resource, info.name, why)
    done = await object_deletion.delete(scope.store, write_of(context, options), namespace, info.name, options)
    returns_object = (scope.info.group, scope.info.resource) in _RETURN_OBJECT
    if returns_object or not done.gone:
        # upstream says so of this one wish alone, so as not to break clients
        code = 202 if not done.gone and options.orphan_dependents is False else 200
        await send_stored(scope, context, send, code, negotiated, done.object)
        return
    await response.send_object(send, context, 200, negotiated, deleted_status(scope, info.name, done.object.decode()["metadata"]))


def deleted_status(scope: ResourceScope, name: str, metadata: dict[str, Any]) -> dict[str, Any]:
    details = {"name": name, "group": scope.info.group, "kind": scope.info.resource, "uid": metadata.get("uid", "")}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


async def delete_collection(scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, limit_bytes: int) -> None:
    """Objects are deleted one after the other; those that vanish meanwhile are passed over (upstream, DeleteCollection). With a limit only
    that many are, and the answer's continue token leads to the rest."""
    negotiated = scope.negotiate(context, list_of_objects=True)
    selecting = list_options(context.query)
    options = await read_options(context, receive, limit_bytes)
    write = write_of(context, options)
    found = await listed(scope, context, selecting)
    for obj in found.objects:
        try:
            await object_deletion.delete(scope.store, write, obj.namespace, obj.name, options)
        except StatusError as error:
            if error.code != 404:
                raise
    if found.unreadable:
        # The collection is not gone, and whoever asked must know: a namespace, for one, has to wait for what is left in it.
        raise status.internal_error(str(found.unreadable[0]))
    await send_list(scope, context, send, negotiated, found)


def write_of(context: RequestContext, options: DeleteOptions) -> Write:
    assert context.user is not None, "the chain authenticates"
    return Write(
        user=context.user, dry_run=bool(options.dry_run), options=options.as_object(), warn=context.warn, annotate=context.annotate
    )


async def read_options(context: RequestContext, receive: Receive, limit_bytes: int) -> DeleteOptions:
    """DeleteOptions from the body, or from the query where there is no body. Raises 400 and 422."""
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    options = _from_body(body, context) if body else _from_query(context)
    errors = deletion.validate_options(options)
    if errors:
        raise status.invalid(META_GROUP, "DeleteOptions", "", errors)
    return options


def _from_query(context: RequestContext) -> DeleteOptions:
    query = context.query
    return DeleteOptions(
        grace_period_seconds=request_options.integer(query, "gracePeriodSeconds"),
        orphan_dependents=request_options.boolean(query, "orphanDependents"),
        propagation_policy=request_options.text(query, "propagationPolicy") or None,
        uid=request_options.text(query, "uid") or None,
        resource_version=request_options.text(query, "resourceVersion") or None,
        dry_run=list(query.get("dryRun", ())),
        ignore_store_read_error=bool(request_options.boolean(query, deletion.IGNORE_READ_ERROR)),
    )


#: where Kubernetes looks up the kind of a delete's body
_OPTIONS_SCHEME = "pkg/apis/meta/internalversion/scheme/register.go:27"


def _from_body(body: bytes, context: RequestContext) -> DeleteOptions:
    """Raises 400 with what the decoder says, and no more."""
    media_type = body_type(context.headers)
    try:
        value = json_bodies.parse(body_json(body, media_type, "DeleteOptions")).value
    except ValueError as error:
        prefix = "couldn't get version/kind; json parse error: " if media_type == JSON else ""
        raise status.bad_request(f"{prefix}{error}") from error
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise status.bad_request(f"couldn't get version/kind; json parse error: {wrong_head(value)}")
    said_kind, said_version = value.get("kind") or "DeleteOptions", value.get("apiVersion") or ""
    if said_kind != "DeleteOptions":
        raise status.bad_request(no_kind(said_kind, said_version or f"{META_GROUP}/v1", _OPTIONS_SCHEME))
    preconditions = _typed(value, "preconditions", dict) or {}
    grace = _typed(value, "gracePeriodSeconds", int)
    return DeleteOptions(
        grace_period_seconds=grace,
        orphan_dependents=_typed(value, "orphanDependents", bool),
        propagation_policy=_typed(value, "propagationPolicy", str),
        uid=_typed(preconditions, "uid", str, "Preconditions.preconditions"),
        resource_version=_typed(preconditions, "resourceVersion", str, "Preconditions.preconditions"),
        dry_run=list(_typed(value, "dryRun", list) or ()),
        ignore_store_read_error=bool(_typed(value, deletion.IGNORE_READ_ERROR, bool)),
    )


_GO_TYPES = {int: "int64", bool: "bool", str: "string", list: "[]string", dict: "v1.Preconditions"}
_STRING_TYPES = {"propagationPolicy": "v1.DeletionPropagation", "uid": "types.UID"}


def _typed(value: dict[str, Any], field: str, kind: type, struct: str = "DeleteOptions") -> Any:
    found = value.get(field)
    if found is None or (isinstance(found, kind) and not (kind is int and isinstance(found, bool))):
        return found
    word = {list: "array", dict: "object", str: "string", bool: "bool"}.get(type(found), "number")
    if kind is int and word == "number":
        word = f"number {orjson.dumps(found).decode()}"
    wanted = _STRING_TYPES.get(field, _GO_TYPES[kind])
    raise status.bad_request(f"json: cannot unmarshal {word} into Go struct field {struct}.{field} of type {wanted}")
