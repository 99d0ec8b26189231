"""Bodies that are no object of the custom resource to whose path they were sent: what is said of them, in the order in which upstream looks
(apimachinery ``serializer/json``, apiextensions-apiserver ``schemaCoercingDecoder``, apiserver ``handlers/create.go``).

Good bodies do not come here: ``scope`` decodes them at once, and asks why only of what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

import orjson

from apiserver.apiextensions.structural import StructuralSchema
from apiserver.handlers import custom_resources
from apiserver.handlers import scope as scopes
from apiserver.machinery import go_json, objects, status
from apiserver.machinery.objects import Object
from apiserver.request.options import WriteOptions
from apiserver.request.request_context import RequestContext
from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas import decoding, json_bodies

if TYPE_CHECKING:
    from apiserver.apiextensions.definitions import CustomVersion
    from apiserver.schemas.schema_set import SchemaSet

_HEAD = ("kind", "apiversion")


def judge(
    schemas: SchemaSet,
    info: ResourceInfo,
    body: bytes,
    sent: bytes,
    repeated: tuple[str, ...],
    options: WriteOptions,
    context: RequestContext,
) -> Object:
    """Raises 400 or 422; only what is to be a status may be of another kind. ``body`` is the JSON of what was ``sent``; ``repeated`` are
    the keys that a YAML repeats."""
    value = _parsed(body, sent, info.kind)
    said_version = value.get("apiVersion") or ""
    if said_version.count("/") > 1:
        raise scopes.unrecognized(info.kind, f"unexpected GroupVersion string: {said_version}", sent)
    group, version = objects.group_version(said_version)
    kind = value.get("kind")
    if not kind:
        _refuse_without_kind(info, version or info.version, body, sent, options)
    schema = _schema_of(schemas, info, group, version, kind)
    try:
        if "apiVersion" in value and value["apiVersion"] is None:
            raise json_bodies.DecodeError(".apiVersion accessor error: <nil> is of the type <nil>, expected string")
        decoded = schema.decode(body)
    except json_bodies.DecodeError as error:
        raise scopes.cannot_be_handled(kind, version, info.kind, str(error)) from error
    scopes.tell_strict_errors(repeated + decoded.strict_errors, options, context, kind, version, kind)
    if said_version == info.api_version and context.info.subresource == "status":
        return {**decoded.obj, "kind": info.kind}  # of which no more than the status counts
    if said_version != info.api_version:
        message = f"the API version in the data ({said_version}) does not match the expected API version ({info.api_version})"
        raise status.bad_request(message)
    further = schema_of_resource(schemas, info).validate_form(decoded.obj, context.warn)
    raise custom_resources.another_kind(info, kind, said_version, objects.name(decoded.obj), further)


def refuse_patched(
    schemas: SchemaSet, info: ResourceInfo, patched: Object, options: WriteOptions, context: RequestContext, words: scopes.Shown
) -> NoReturn:
    """The same for what a patch made of an object, told as the patch's fault: 422, or 500 where it says no version any more."""
    if why := _wrong_head(patched):
        raise scopes.patch_error(f"couldn't get version/kind; json parse error: {why}", words)
    said_version, kind = patched.get("apiVersion") or "", patched.get("kind")
    if said_version.count("/") > 1:
        raise scopes.patch_error(f"unexpected GroupVersion string: {said_version}", words)
    if not kind:
        text = orjson.dumps(patched, option=orjson.OPT_SORT_KEYS).decode()
        raise scopes.patch_error(f"Object 'Kind' is missing in '{text}'", words)
    group, version = objects.group_version(said_version)
    try:
        decoded = _schema_of(schemas, info, group, version, kind).decode(patched)
    except json_bodies.DecodeError as error:
        raise scopes.patch_error(str(error), words) from error
    if decoded.strict_errors and options.field_validation == "Strict":
        raise scopes.patch_error(decoding.strict_decoding_error(decoded.strict_errors), words)
    if not said_version:
        raise status.internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    further = schema_of_resource(schemas, info).validate_form(decoded.obj, context.warn)
    raise custom_resources.another_kind(info, kind, said_version, context.info.name, further)


def _parsed(body: bytes, sent: bytes, kind: str) -> dict[str, Any]:
    """What the body says of itself is text or nothing at all, or the body is refused."""
    try:
        value = json_bodies.parse(body).value
    except json_bodies.DecodeError as error:
        raise scopes.unrecognized(kind, f"couldn't get version/kind; json parse error: {scopes.go_words(body, error)}", sent) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise scopes.unrecognized(kind, f"couldn't get version/kind; json parse error: {scopes.wrong_head(value)}", sent)
    check_head(kind, body, sent, value)
    return value


def check_head(kind: str, body: bytes, sent: bytes, parsed: dict[str, Any] | None = None) -> None:
    """Each time that the body says kind or version it has to be text, also where it says them again. Raises 400."""
    if why := _wrong_head(json_bodies.parse(body).value if parsed is None else parsed):
        raise scopes.unrecognized(kind, f"couldn't get version/kind; json parse error: {why}", sent)


def _wrong_head(value: dict[str, Any]) -> str:
    for name, said in value.pairs if isinstance(value, json_bodies.Duplicated) else value.items():
        if name.lower() in _HEAD and said is not None and not isinstance(said, str):
            return f"json: cannot unmarshal {go_json.kind_of(said)} into Go struct field .{name} of type string"
    return ""


def _refuse_without_kind(info: ResourceInfo, version: str, body: bytes, sent: bytes, options: WriteOptions) -> NoReturn:
    """The two decoders, the strict one and the other, miss the kind at different times."""
    if options.field_validation == "Ignore":
        raise scopes.cannot_be_handled(info.kind, version, info.kind, f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'")
    raise scopes.unrecognized(info.kind, f"Object 'Kind' is missing in '{sent.decode('utf-8', 'replace')}'", sent)


def schema_of_resource(schemas: SchemaSet, info: ResourceInfo) -> StructuralSchema:
    return cast("CustomVersion", schemas.kind(info.group, info.version, info.kind)).schema


def _schema_of(schemas: SchemaSet, info: ResourceInfo, group: str, version: str, kind: str) -> StructuralSchema:
    """The schema by which the body is pruned: none of another kind's, one without any field of a version that there is not."""
    if (group, kind) != (info.group, info.kind):
        return StructuralSchema(None, preserve_unknown_fields=True, schemas=schemas)
    try:
        return cast("CustomVersion", schemas.kind(group, version, kind)).schema
    except KeyError:
        return StructuralSchema({"type": "object"}, schemas=schemas)
