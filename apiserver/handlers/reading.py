"""GET of one object and LIST."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from apiserver.handlers import forms, list_forms, response
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.selection import selection_of
from apiserver.machinery import continue_token, resource_version, status
from apiserver.objectstore.interface import ExpiredError, ListResult, RevisionMatch, StoredObject, UnreadableObjectError
from apiserver.objectstore.statuses import as_statuses
from apiserver.request.negotiation import JSON, PLAIN, PROTOBUF, YAML, Form, Negotiated
from apiserver.request.options import META_GROUP, ListOptions, list_options, text
from apiserver.request.request_context import RequestContext

_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
    "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with "
    "the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)

#: Objects of a list that become YAML, or metadata as protobuf, at once: a few ms of the loop. Beyond it a thread makes the answer.
ON_LOOP_OBJECTS_MAX = 32

_LIST_EXPIRED = "The resourceVersion for the provided list is too old."


async def get(scope: ResourceScope, context: RequestContext, send: Send) -> None:
    negotiated = scope.negotiate(context)
    store, info = scope.store, context.info
    min_revision = -1
    if context.query and (asked := text(context.query, "resourceVersion")):
        try:
            min_revision = resource_version.parse(asked)
        except resource_version.ResourceVersionError as error:
            raise bad_version(scope, error) from error
    found = await store.get(info.namespace, info.name, min_revision)
    await send_stored(scope, context, send, 200, negotiated, found)


async def send_stored(
    scope: ResourceScope, context: RequestContext, send: Send, code: int, negotiated: Negotiated, found: StoredObject
) -> None:
    """A stored object in the negotiated form; the usual case sends the stored bytes."""
    if negotiated is PLAIN or negotiated.is_plain:
        await response.send_bytes(send, context, code, scope.store.served(found))
        return
    if negotiated.is_plain_protobuf:
        from apiserver.handlers import protobuf_answers  # only where a client asks for it

        await response.send_bytes(send, context, code, protobuf_answers.object_bytes(scope, negotiated.version, found), media_type=PROTOBUF)
        return
    obj = forms.transform(scope, negotiated, context, scope.store.decode(found))
    await response.send_object(send, context, code, negotiated, obj)


def bad_version(scope: ResourceScope, error: resource_version.ResourceVersionError) -> status.StatusError:
    """A resource version that is no number, for a GET or a watch. kube-apiserver forgets to make a refusal of it (500 without a reason),
    which is kept where its answers are compared byte by byte, with custom resources; of built-in kinds it is told what it is."""
    if scope.info.builtin:
        return status.invalid(META_GROUP, "ListOptions", "", [error.field_error])
    return status.StatusError(status.failure(500, "", str(error)))


async def list_(scope: ResourceScope, context: RequestContext, send: Send) -> None:
    negotiated = scope.negotiate(context, list_of_objects=True)
    if negotiated.form is Form.TABLE:
        forms.include_object(context)
    options = list_options(context.query)
    await send_list(scope, context, send, negotiated, await listed(scope, context, options))


async def listed(scope: ResourceScope, context: RequestContext, options: ListOptions) -> ListResult:
    """What the options select, in the state that they ask for ("Resource versions" and "Retrieving large results sets in chunks" of the
    API concepts). Raises StatusError."""
    store = scope.store
    namespace = context.info.namespace if store.info.namespaced else ""
    selection = selection_of(store, namespace, "", options.label_selector, options.field_selector)
    start, start_revision = _continued(scope, namespace, options)
    try:
        revision = options.revision()
    except resource_version.ResourceVersionError as error:
        raise status.bad_request(f"invalid resource version: {error}") from error
    with as_statuses(store.info, ""):
        try:
            result = await store.list_objects(
                selection,
                revision=revision,
                match=RevisionMatch(options.resource_version_match),
                limit=options.limit,
                start=start,
                start_revision=start_revision,
            )
        except ExpiredError as error:
            raise (_continue_expired(scope, namespace, start) if start else status.gone(_LIST_EXPIRED)) from error
    if result.unreadable:
        context.warn(unreadable_text(scope, result.unreadable))
    return result


def unreadable_text(scope: ResourceScope, errors: Sequence[UnreadableObjectError]) -> str:
    """What is said of objects that are missing in a list. kube-apiserver answers such a list with an error, so that one damaged value
    hides all the others; whoever looks at a backup wants to see those, and to be told."""
    reasons = Counter(error.reason.value for error in errors)
    counted = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    what = status.qualified(scope.info.group, scope.info.resource)
    return f"{len(errors)} of {what} cannot be read and are missing here ({counted}); the first: {errors[0]}"


def _prefix(scope: ResourceScope, namespace: str = "") -> str:
    """What the keys of a list begin with; tokens hold the rest."""
    return f"/{scope.store.storage.cache.prefix}/{namespace}{'/' if namespace else ''}"


def _continued(scope: ResourceScope, namespace: str, options: ListOptions) -> tuple[str, int]:
    """The path to go on at ("": from the beginning) and the revision of the first page. Raises 400."""
    if not options.continue_token:
        return "", 0
    try:
        token = continue_token.decode(options.continue_token, _prefix(scope, namespace))
    except continue_token.ContinueTokenError as error:
        raise status.bad_request(f"invalid continue token: {error}") from error
    if options.resource_version not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")
    return token.start_key.removeprefix(_prefix(scope)) or "\0", token.revision


def _continue_expired(scope: ResourceScope, namespace: str, start: str) -> status.StatusError:
    """410 with a token that goes on without consistency."""
    error = status.gone(_CONTINUE_EXPIRED)
    token = continue_token.encode(_prefix(scope) + start, _prefix(scope, namespace), continue_token.ANY_REVISION)
    error.status["metadata"] = {"continue": token}
    return error


def list_metadata(scope: ResourceScope, namespace: str, result: ListResult) -> dict[str, Any]:
    """``namespace`` is that of the request's path."""
    metadata: dict[str, Any] = {"resourceVersion": str(result.revision)}
    if result.next_start:
        metadata["continue"] = continue_token.encode(_prefix(scope) + result.next_start, _prefix(scope, namespace), result.revision)
        if result.remaining is not None:
            metadata["remainingItemCount"] = result.remaining
    return metadata


async def send_list(scope: ResourceScope, context: RequestContext, send: Send, negotiated: Negotiated, result: ListResult) -> None:
    metadata = list_metadata(scope, context.info.namespace if scope.info.namespaced else "", result)
    info = scope.info
    if negotiated.is_plain_protobuf:
        from apiserver.handlers import protobuf_answers

        await protobuf_answers.send_list(scope, context, send, metadata, result.objects)
        return
    if negotiated.form is Form.METADATA:
        raise status.wrong_metadata_form(negotiated.form.value, is_list=True, go_type=scope.go_type + "List")
    if negotiated.form is not Form.OBJECT:
        pieces = await list_forms.pieces(scope, negotiated, context, result.objects, metadata)
        if negotiated.media_type == JSON and not negotiated.pretty:
            await response.send_pieces(send, context, 200, pieces, sum(map(len, pieces)))
        elif len(result.objects) > ON_LOOP_OBJECTS_MAX:
            await response.send_large_object(send, context, 200, negotiated, lambda: orjson.loads(b"".join(pieces)))
        else:
            await response.send_object(send, context, 200, negotiated, orjson.loads(b"".join(pieces)))
        return
    if not info.builtin:
        metadata.setdefault("continue", "")  # lists of custom objects write it out
    head = b'{"kind":%b,"apiVersion":%b,"metadata":%b,"items":[' % (
        orjson.dumps(info.list_kind or info.kind + "List"),
        orjson.dumps(info.api_version),
        orjson.dumps(metadata),
    )
    skip, raws = _raws(scope, result.objects)
    opening = b"{" if skip else b""
    size = len(head) + sum(map(len, raws)) - (skip - len(opening)) * len(raws) + max(len(raws) - 1, 0) + 2
    plain = negotiated.media_type == JSON and not negotiated.pretty
    if plain and size > response.PIECE_BYTES:
        await response.send_pieces(send, context, 200, _pieces(head, raws, skip, opening), size)
        return
    body = b"".join(_pieces(head, raws, skip, opening))
    if plain:
        await response.send_bytes(send, context, 200, body)
    elif negotiated.media_type == YAML and len(raws) > ON_LOOP_OBJECTS_MAX:
        await response.send_large_object(send, context, 200, negotiated, lambda: orjson.loads(body))
    else:
        await response.send_object(send, context, 200, negotiated, orjson.loads(body))


def _raws(scope: ResourceScope, objects: Sequence[StoredObject]) -> tuple[int, list[bytes]]:
    """The objects as served, and how many bytes of each to skip: built-in items stand without kind and apiVersion, which the list's
    own kind says (as Go encodes them); a ``{`` takes the place of what is skipped."""
    store = scope.store
    if not scope.info.builtin:
        return 0, [store.served(obj) for obj in objects]
    prefix = scope.item_prefix
    return len(prefix), [obj.raw if obj.raw.startswith(prefix) else store.served(obj) for obj in objects]


def _pieces(head: bytes, raws: Sequence[bytes], skip: int, opening: bytes) -> Iterator[bytes]:
    """The list's bytes in pieces of a bounded size: only the piece that is being sent is a copy."""
    separator = b"," + opening
    before, first, size = head + (opening if raws else b""), 0, 0
    last = len(raws) - 1
    for position, raw in enumerate(raws):
        size += len(raw)
        if size < response.PIECE_BYTES and position < last:
            continue
        parts = [raw[skip:] for raw in raws[first : position + 1]]
        parts[0] = before + parts[0]
        if position == last:
            parts[-1] += b"]}"
        yield separator.join(parts)
        before, first, size = separator, position + 1, 0
    if not raws:
        yield before + b"]}"
