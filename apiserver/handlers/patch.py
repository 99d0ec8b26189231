"""PATCH: JSON patch, merge patch, strategic merge patch and server-side apply, each a function old → new for ``Store.update``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.handlers import scope as scopes
from apiserver.handlers.create import check_namespace
from apiserver.handlers.reading import send_stored
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope, Shown
from apiserver.handlers.update import check_name
from apiserver.machinery import field_errors, go_json, json_patch, merge_patch, objects, status, strategic_merge_patch
from apiserver.machinery.objects import Object
from apiserver.machinery.types import Type
from apiserver.registry.store import Build
from apiserver.request import body as request_body
from apiserver.request import negotiation
from apiserver.request.body import Receive
from apiserver.request.options import META_GROUP, WriteOptions, write_options
from apiserver.request.request_context import RequestContext
from apiserver.schemas import json_bodies, yaml_bodies


async def patch(
    scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, limit_bytes: int, subresource: str = ""
) -> None:
    """``subresource`` is "", "status" or another whose body is the whole object."""
    negotiated = scope.negotiate(context)
    info, store = context.info, scope.store
    namespace = info.namespace if scope.info.namespaced else ""
    patch_type = negotiation.patch_type(context.headers, builtin=scope.info.builtin)
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    options = write_options(context.query, "PatchOptions")
    check_options(options, patch_type)
    write = scope.write_of(context, options, "PatchOptions")
    if patch_type == negotiation.APPLY_YAML:
        is_yaml = body.lstrip()[:1] != b"{"
        applied = await request_body.beside_the_loop(body, is_yaml, lambda: parse_applied(body))
        build = _apply(scope, context, applied, options, subresource)
        written, created = await store.update(
            write,
            namespace,
            info.name,
            build,
            subresource=subresource,
            create=None if subresource else build,
            manages_fields=False,
        )
    else:
        build = _patching(scope, context, body, patch_type, options)
        written, created = await store.update(write, namespace, info.name, build, subresource=subresource)
    await send_stored(scope, context, send, 201 if created else 200, negotiated, written)


def check_options(options: WriteOptions, patch_type: str) -> None:
    errors = []
    if patch_type == negotiation.APPLY_YAML:
        if not options.field_manager:
            errors.append(field_errors.required("fieldManager", "is required for apply patch"))
    elif options.force is not None:
        errors.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
    if errors:
        raise status.invalid(META_GROUP, "PatchOptions", "", errors)


_NO_MERGE_PATCH = "Invalid JSON Patch"
#: how what cannot be read as a patch of a type is told
_READING = {
    negotiation.JSON_PATCH: ("error decoding patch: ", list, "[]handlers.jsonPatchOp"),
    negotiation.MERGE_PATCH: ("error decoding patch: ", dict, "map[string]interface {}"),
    negotiation.STRATEGIC_MERGE_PATCH: ("", dict, "map[string]interface {}"),
}


def parse_patch(body: bytes, patch_type: str, *, lenient: bool = False) -> Any:
    """The JSON of a patch, a list for a JSON patch and else a mapping; raises 400, or 422 for a merge patch that is a list. ``lenient``:
    nobody asks for unknown fields (``fieldValidation=Ignore``), so that the first who reads the patch is who applies it."""
    prefix, wanted, go_type = _READING[patch_type]
    try:
        parsed = json_bodies.parse(body)
    except json_bodies.DecodeError as error:
        if lenient and patch_type != negotiation.STRATEGIC_MERGE_PATCH:
            raise status.bad_request(_NO_MERGE_PATCH if patch_type == negotiation.MERGE_PATCH else str(error)) from error
        raise status.bad_request(f"{prefix}{error}") from error
    value = json_bodies.plain(parsed.value) if parsed.has_duplicates else parsed.value
    if value is None and patch_type != negotiation.MERGE_PATCH:
        return wanted()
    if value is None or (lenient and patch_type == negotiation.MERGE_PATCH and not isinstance(value, (dict, list))):
        raise status.bad_request(_NO_MERGE_PATCH)
    if lenient and patch_type == negotiation.MERGE_PATCH and isinstance(value, list):
        words: Shown = lambda why: (orjson.dumps(value).decode(), why)  # noqa: E731
        raise scopes.patch_error(f"couldn't get version/kind; json parse error: {scopes.wrong_head(value)}", words)
    if lenient and patch_type == negotiation.JSON_PATCH and not isinstance(value, list):
        raise status.bad_request(f"json: cannot unmarshal {go_json.kind_of(value)} into Go value of type jsonpatch.Patch")
    if not isinstance(value, wanted):
        raise status.bad_request(f"{prefix}json: cannot unmarshal {go_json.kind_of(value)} into Go value of type {go_type}")
    return value


#: of an operation of a JSON patch
_OPERATION_FIELDS = ("op", "path", "from", "value")


def strict_errors(patch_type: str, body: bytes) -> tuple[str, ...]:
    """The duplicate fields of a patch, and the unknown ones of a JSON patch's operations; none for a body that is no patch."""
    try:
        parsed = json_bodies.parse(body)
    except json_bodies.DecodeError:
        return ()
    if patch_type != negotiation.JSON_PATCH:
        return tuple(f'duplicate field "{path}"' for path in json_bodies.duplicate_fields(parsed.value)) if parsed.has_duplicates else ()
    operations = parsed.value if isinstance(parsed.value, list) else []
    found = [f'json patch duplicate field "{path}"' for path in json_bodies.duplicate_fields(operations)] if parsed.has_duplicates else []
    for position, operation in enumerate(operations):
        if isinstance(operation, dict):
            found += [f'json patch unknown field "[{position}].{key}"' for key in operation if key not in _OPERATION_FIELDS]
    return tuple(found)


def apply_patch_of_type(type_: Type, patch_type: str, body: bytes, old: Object, *, lenient: bool) -> Object:
    """``old``, which is given away, after the patch in ``body``."""
    value = parse_patch(body, patch_type, lenient=lenient)
    if patch_type == negotiation.JSON_PATCH:
        patched = json_patch.apply(old, value)
        if not isinstance(patched, dict):
            raise scopes.patch_error("json: cannot unmarshal into an object")
        return patched
    if patch_type == negotiation.MERGE_PATCH:
        return merge_patch.apply(old, value)
    return strategic_merge_patch.apply(old, value, type_)


def _patching(scope: ResourceScope, context: RequestContext, body: bytes, patch_type: str, options: WriteOptions) -> Build:
    store, info = scope.store, scope.info
    namespace = context.info.namespace if info.namespaced else ""

    patch_errors = strict_errors(patch_type, body) if options.field_validation != "Ignore" else ()

    async def build(old: Object) -> Object:
        # parsed at each attempt: what a patch holds becomes part of the object, which the attempt goes on to change
        patched = apply_patch_of_type(scope.type, patch_type, body, old, lenient=options.field_validation == "Ignore")
        words = shown(patch_type, body, patched)
        patched = _of_the_kind(scope, context, patched, patch_type, options, words)
        new = own_metadata(scope.redecode(patched, options, context, words, patch_errors))
        check_name(new, context.info.name)
        check_namespace(new, namespace)
        store.strategy.default(new)
        return new

    return build


def shown(patch_type: str, body: bytes, patched: Object) -> Shown:
    """What the refusal of a patch shows: of a strategic merge patch the patch itself, of others what it made."""
    if patch_type == negotiation.STRATEGIC_MERGE_PATCH:
        return lambda why: (go_json.shown(parse_patch(body, patch_type)), _conversion_words(why))
    return lambda why: (orjson.dumps(patched, option=orjson.OPT_SORT_KEYS).decode(), why)


_UNMARSHAL = re.compile(r"json: cannot unmarshal (\w+)(?: \S+)? into Go struct field \S+ of type (\S+)")
_GO_KINDS = {"number": "int64", "array": "slice", "object": "map"}


def _conversion_words(why: str) -> str:
    """A strategic merge patch is made an object not by the JSON decoder but by a converter with words of its own."""
    found = _UNMARSHAL.fullmatch(why)
    if found is None:
        return why
    value, wanted = _GO_KINDS.get(found[1], found[1]), found[2]
    if wanted.startswith("[]"):
        return f"cannot restore slice from {value}"
    if wanted.startswith("map["):
        return f"cannot restore map from {value}"
    return f"cannot restore struct from: {value}" if "." in wanted else f"unrecognized type: {wanted}"


def _of_the_kind(
    scope: ResourceScope, context: RequestContext, patched: Object, patch_type: str, options: WriteOptions, words: Shown
) -> Object:
    """``patched``, which may have lost its kind or have another one. The strategic merge patch of an object keeps what it is whatever it
    says; an object of another kind is refused, as is one that cannot be told to be of this version."""
    info = scope.info
    kind, api_version = patched.get("kind"), patched.get("apiVersion")
    if kind == info.kind and api_version == info.api_version:
        return patched
    if not info.builtin:
        from apiserver.handlers import custom_bodies  # only for what is refused

        custom_bodies.refuse_patched(scope.schemas, info, patched, options, context, words)
    if patch_type == negotiation.STRATEGIC_MERGE_PATCH or (kind is None and api_version == info.api_version):
        return {**patched, "kind": info.kind, "apiVersion": info.api_version}
    if not api_version and kind in (None, info.kind) and info.builtin:
        check_name({"metadata": {}}, context.info.name)
    raise scopes.patch_error(scope.why_not_of_kind(str(kind or ""), str(api_version or "")), words)


def own_metadata(obj: Object) -> Object:
    obj["metadata"] = dict(obj.get("metadata") or {})
    return obj


def _apply(scope: ResourceScope, context: RequestContext, sent: Applied, options: WriteOptions, subresource: str) -> Build:
    store, info = scope.store, scope.info
    namespace = context.info.namespace if info.namespaced else ""
    unchanged = scope.unchanged_applies
    said_uid = objects.metadata(sent.configuration).get("uid")
    source = orjson.dumps(sent.configuration)

    async def build(old: Object) -> Object:
        managers = store.env.managers
        assert managers is not None, "server-side apply needs field managers"
        key, version = None, ""
        if old and info.builtin:
            key = unchanged.key(old["metadata"], options.field_manager, subresource, bool(options.force))
            version = old["metadata"]["resourceVersion"]
            if unchanged.knows(key, version, source):
                return old
        now = store.env.clock.text()
        manager, force = options.field_manager, bool(options.force)

        def apply() -> Object:
            return managers.apply(info, subresource, old or None, orjson.loads(source), manager, force, now)

        merged = await store.settled(apply)
        sent.tell_repeated(options, context)
        if info.builtin:
            new = own_metadata(objects.deep_copy(scope.redecode(merged, options, context)))
        else:
            new = scope.settled(merged)
        if not old and said_uid:
            why = f"uid mismatch: the provided object specified uid {said_uid}, and no existing object was found"
            raise status.conflict(info.group, info.resource, context.info.name, why)
        check_namespace(new, namespace)
        check_name(new, context.info.name)
        if merged is old and key is not None:
            unchanged.remember(key, version, source)
        store.strategy.default(new)
        return new

    return build


@dataclass(frozen=True, slots=True)
class Applied:
    """``repeated``: the lines that tell of repeated keys, which count once the apply itself has been found good."""

    configuration: Object
    repeated: tuple[str, ...]

    def tell_repeated(self, options: WriteOptions, context: RequestContext) -> None:
        """Raises 400 where ``fieldValidation`` is Strict."""
        if not self.repeated or options.field_validation == "Ignore":
            return
        if options.field_validation == "Strict":
            text = yaml_bodies.in_words(self.repeated)
            raise status.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {text}")
        for line in self.repeated:
            context.warn(line)


def parse_applied(body: bytes) -> Applied:
    """An applied configuration just as it was written: what a manager says of a field it owns, be it false, empty or null, and a field
    that does not exist fails the apply itself. Raises 400."""
    try:
        value, repeated = yaml_bodies.load(body, request_body.yaml_to_json)
    except ValueError as error:
        raise status.bad_request(f"error decoding YAML: {error}") from error
    if value is None:
        value = {}
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {go_json.kind_of(value)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    said = value.get("metadata")
    metadata = {} if said is None else dict(said) if isinstance(said, dict) else said
    return Applied({**value, "metadata": metadata}, repeated)
