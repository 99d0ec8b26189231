"""PATCH: JSON patch, merge patch, strategic merge patch and server-side apply, each a function old → new for ``Store.update``."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.handlers import scope as scopes
from apiserver.handlers.create import check_namespace
from apiserver.handlers.reading import send_stored
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.update import check_name
from apiserver.machinery import field_errors, go_json, json_patch, merge_patch, objects, status, strategic_merge_patch
from apiserver.machinery.objects import Object
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
        applied = await request_body.beside_the_loop(body, is_yaml, lambda: parse_applied(body, options, context))
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


def parse_patch(body: bytes, wanted: type, go_type: str) -> Any:
    """The JSON of a patch; raises 400."""
    try:
        parsed = json_bodies.parse(body)
    except json_bodies.DecodeError as error:
        raise status.bad_request(f"error decoding patch: {error}") from error
    value = json_bodies.plain(parsed.value) if parsed.has_duplicates else parsed.value
    if not isinstance(value, wanted):
        raise status.bad_request(f"json: cannot unmarshal {go_json.kind_of(value)} into Go value of type {go_type}")
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


def apply_patch(scope: ResourceScope, patch_type: str, body: bytes, old: Object) -> Object:
    """``old``, which is given away, after the patch in ``body``."""
    if patch_type == negotiation.JSON_PATCH:
        patched = json_patch.apply(old, parse_patch(body, list, "jsonpatch.Patch"))
        if not isinstance(patched, dict):
            raise scopes.patch_error("json: cannot unmarshal into an object")
        return patched
    value = parse_patch(body, dict, "map[string]interface {}")
    if patch_type == negotiation.MERGE_PATCH:
        return merge_patch.apply(old, value)
    return strategic_merge_patch.apply(old, value, scope.type)


def _patching(scope: ResourceScope, context: RequestContext, body: bytes, patch_type: str, options: WriteOptions) -> Build:
    store, info = scope.store, scope.info
    namespace = context.info.namespace if info.namespaced else ""

    patch_errors = strict_errors(patch_type, body) if options.field_validation != "Ignore" else ()

    async def build(old: Object) -> Object:
        # parsed at each attempt: what a patch holds becomes part of the object, which the attempt goes on to change
        patched = apply_patch(scope, patch_type, body, old)
        if patched.get("kind") != info.kind or patched.get("apiVersion") != info.api_version:
            said = f"{patched.get('apiVersion')}, Kind={patched.get('kind')}"
            raise scopes.patch_error(f"the patch changes the object to {said}", body)
        new = own_metadata(scope.redecode(patched, options, context, body, patch_errors))
        check_name(new, context.info.name)
        check_namespace(new, namespace)
        store.strategy.default(new)
        return new

    return build


def own_metadata(obj: Object) -> Object:
    obj["metadata"] = dict(obj.get("metadata") or {})
    return obj


def _apply(scope: ResourceScope, context: RequestContext, applied_once: Object, options: WriteOptions, subresource: str) -> Build:
    store, info = scope.store, scope.info
    namespace = context.info.namespace if info.namespaced else ""
    if objects.metadata(applied_once).get("managedFields"):
        raise status.bad_request("metadata.managedFields must be nil")
    check_applied(applied_once, context.info.name)
    check_namespace(applied_once, namespace)
    source = orjson.dumps(applied_once)

    async def build(old: Object) -> Object:
        managers = store.env.managers
        assert managers is not None, "server-side apply needs field managers"
        now = store.env.clock.text()
        applied = orjson.loads(source)
        new: Object = managers.apply(info, subresource, old or None, applied, options.field_manager, bool(options.force), now)
        new = objects.deep_copy(scope.redecode(new, options, context))
        store.strategy.default(new)
        return new

    return build


def parse_applied(body: bytes, options: WriteOptions, context: RequestContext) -> Object:
    """An applied configuration just as it was written: what a manager says of a field it owns, be it false, empty or null, and a field
    that does not exist fails the apply itself. Raises 400."""
    try:
        value, repeated = yaml_bodies.load(body, request_body.yaml_to_json)
    except ValueError as error:
        raise status.bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {go_json.kind_of(value)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    if options.field_validation == "Ignore":
        repeated = ()
    if repeated and options.field_validation == "Strict":
        text = yaml_bodies.in_words(repeated)
        raise status.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {text}")
    for line in repeated:
        context.warn(line)
    said = value.get("metadata")
    return {**value, "metadata": dict(said) if isinstance(said, dict) else {}}


def check_applied(obj: Object, name: str) -> None:
    """An apply body may leave its name out."""
    metadata = obj["metadata"]
    said = metadata.get("name") or ""
    if said and said != name:
        raise status.bad_request(f"the name of the object ({said}) does not match the name on the URL ({name})")
    metadata["name"] = name
