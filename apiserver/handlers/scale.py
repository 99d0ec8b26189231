"""The scale subresource: autoscaling/v1 Scale as a view of a workload's replicas."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from apiserver.admission.interfaces import Operation
from apiserver.apiextensions import printing
from apiserver.handlers import custom_scales, forms, response
from apiserver.handlers import scope as scopes
from apiserver.handlers.create import check_namespace
from apiserver.handlers.patch import Applied, apply_patch_of_type, check_options, parse_applied, shown, strict_errors
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.update import check_name
from apiserver.machinery import field_errors, fieldset, labels, managed_fields, objects, scale_managed_fields, status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.registry.store import Preconditions
from apiserver.request import body as request_body
from apiserver.request import negotiation
from apiserver.request.body import Receive
from apiserver.request.options import WriteOptions, write_options
from apiserver.request.request_context import RequestContext
from apiserver.schemas import decoding

API_VERSION = scale_managed_fields.API_VERSION


async def serve(scope: ResourceScope, context: RequestContext, receive: Receive, send: Send, limit_bytes: int) -> None:
    negotiated = scope.negotiate(context)
    if context.info.verb == "get":
        try:
            found = await scope.store.get(context.info.namespace, context.info.name)
        except StatusError as error:
            raise _not_found(scope, context, error) from error
        answer = scale_of(scope, scope.store.decode(found), must_have_replicas=True)
    else:
        answer = await _write(scope, context, receive, limit_bytes)
    if negotiated.form is negotiation.Form.TABLE:
        if scope.info.custom is not None:
            answer = forms.table_by(printing.scale_printer(), scope, negotiated, context, answer)
        else:
            answer = forms.table_of_kind(scope, negotiated, context, answer, "autoscaling", "Scale")
    elif negotiated.form is negotiation.Form.METADATA:
        answer = forms.partial(answer, negotiated.version)
    elif negotiated.form is negotiation.Form.METADATA_LIST:
        raise status.wrong_metadata_form(negotiated.form.value, is_list=False, go_type="*autoscaling.Scale")
    await response.send_object(send, context, 200, negotiated, answer)


def _not_found(scope: ResourceScope, context: RequestContext, error: StatusError) -> StatusError:
    """A read of the scale of nothing names the subresource, a write does not; nor does one of a custom resource."""
    if error.code != 404 or not scope.info.builtin:
        return error
    return status.not_found(scope.info.group, f"{scope.info.resource}/scale", context.info.name)


def scale_of(scope: ResourceScope, obj: Object, *, must_have_replicas: bool = False) -> Object:
    if scope.info.custom is not None:
        return custom_scales.scale_of(scope.info.custom, obj, must_have_replicas=must_have_replicas)
    metadata = obj["metadata"]
    shown = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if key in metadata}
    spec: dict[str, Any] = {}
    if replicas := objects.get(obj, "spec", "replicas", default=0):
        spec["replicas"] = replicas
    answered: dict[str, Any] = {"replicas": objects.get(obj, "status", "replicas", default=0)}
    selector = objects.get(obj, "spec", "selector")
    if selector:
        simple = scope.info.resource == "replicationcontrollers"
        text = str(labels.from_mapping(selector) if simple else labels.from_label_selector(selector))
        if text:
            answered["selector"] = text
    return {"kind": "Scale", "apiVersion": API_VERSION, "metadata": shown, "spec": spec, "status": answered}


async def _write(scope: ResourceScope, context: RequestContext, receive: Receive, limit_bytes: int) -> Object:
    """The write is one of a Scale, with field managers, preconditions and validation of its own, of which the parent takes the replicas
    and who owns them."""
    info, store = context.info, scope.store
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    kind = "PatchOptions" if info.verb == "patch" else "UpdateOptions"
    options = write_options(context.query, kind)
    write = scope.write_of(context, options, kind)
    preconditions = Preconditions()
    change: Callable[[Object], Object]
    if info.verb == "patch":
        patch_type = negotiation.patch_type(context.headers, builtin=scope.info.builtin)
        check_options(options, patch_type)
        if patch_type == negotiation.APPLY_YAML:
            is_yaml = body.lstrip()[:1] != b"{"
            applied = await request_body.beside_the_loop(body, is_yaml, lambda: parse_applied(body))
            change = _applying(scope, context, applied, options)
        else:
            change = _changing(scope, write.manager, lambda old: _patched(scope, context, patch_type, body, options, old))
    else:
        put = await scopes.decode_apart(scope.schemas, _SCALE, "Scale", body, options, context)
        preconditions = Preconditions(uid=put["metadata"].get("uid") or None)
        change = _changing(scope, write.manager, lambda _: {**put, "metadata": dict(put["metadata"])})

    path_of = _path_of(scope)

    async def build(old: Object) -> Object:
        entries = managed_fields.of_object(old)
        before = scale_of(scope, old)
        if scope.info.custom is not None:
            custom_scales.mark_missing_replicas(scope.info.custom, old, before)
        scale = change(managed_fields.with_entries(before, _of_scale(entries, path_of)))
        check_namespace(scale, info.namespace)
        check_name(scale, info.name)
        await store.admit_apart(Operation.UPDATE, write, info.namespace, info.name, scale, before, "scale")
        replicas = objects.get(scale, "spec", "replicas", default=0)
        version = scale["metadata"].get("resourceVersion")
        if version:
            old["metadata"]["resourceVersion"] = version  # the store compares it
        if scope.info.custom is not None:
            custom_scales.set_replicas(scope.info.custom, old, replicas)
        else:
            _check(scope, scale, replicas, old["metadata"]["uid"], info.name)
            old["spec"] = {**(old.get("spec") or {}), "replicas": replicas}
        after = scale_managed_fields.to_parent(entries, managed_fields.of_object(scale), scope.info.api_version, path_of)
        return managed_fields.with_entries(old, after)

    written, _ = await store.update(
        dataclasses.replace(write, admitted=True),
        info.namespace,
        info.name,
        build,
        subresource="scale",
        manages_fields=False,
        preconditions=preconditions,
    )
    return scale_of(scope, store.decode(written))


_SCALE = scopes.kind_info("autoscaling", "v1", "Scale")


def _path_of(scope: ResourceScope) -> scale_managed_fields.PathOf:
    """Every version of a built-in kind that can be scaled has its replicas at the same place; a definition says where."""
    path = scale_managed_fields.REPLICAS
    if scope.info.custom is not None:
        path = fieldset.fields(*custom_scales.replicas_path(scope.info.custom))
    return lambda _: path


def _of_scale(entries: list[Any], path_of: scale_managed_fields.PathOf) -> list[Object]:
    try:
        return scale_managed_fields.to_scale(entries, path_of)
    except managed_fields.ManagedFieldsError:
        return []


def _changing(scope: ResourceScope, manager: str, make: Callable[[Object], Object]) -> Callable[[Object], Object]:
    def change(old: Object) -> Object:
        managers = scope.store.env.managers
        new = make(managed_fields.without_entries(old))
        return new if managers is None else managers.update(_SCALE, "scale", old, new, manager, scope.store.env.clock.text())

    return change


def _applying(scope: ResourceScope, context: RequestContext, applied: Applied, options: WriteOptions) -> Callable[[Object], Object]:
    def change(old: Object) -> Object:
        managers = scope.store.env.managers
        assert managers is not None, "server-side apply needs field managers"
        now = scope.store.env.clock.text()
        new = managers.apply(_SCALE, "scale", old, applied.configuration, options.field_manager, bool(options.force), now)
        applied.tell_repeated(options, context)
        return {**_decoded(scope, new, options, context, None), "metadata": dict(new["metadata"])}

    return change


def _check(scope: ResourceScope, scale: Object, replicas: int, uid: str, name: str) -> None:
    if replicas < 0:
        error = field_errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise status.invalid("autoscaling", "Scale", name, [error])
    said = scale["metadata"].get("uid")
    if said and said != uid:
        why = f"Precondition failed: UID in precondition: {said}, UID in object meta: {uid}"
        raise status.conflict(scope.info.group, f"{scope.info.resource}/scale", name, why)


def _patched(scope: ResourceScope, context: RequestContext, patch_type: str, body: bytes, options: WriteOptions, current: Object) -> Object:
    patched = apply_patch_of_type(
        scope.schemas.type_of("autoscaling", "v1", "Scale"), patch_type, body, current, lenient=options.field_validation == "Ignore"
    )
    repeated = strict_errors(patch_type, body) if options.field_validation != "Ignore" else ()
    found = _decoded(scope, patched, options, context, shown(patch_type, body, patched), repeated)
    return {**found, "metadata": dict(found.get("metadata") or {})}


def _decoded(
    scope: ResourceScope,
    obj: Object,
    options: WriteOptions,
    context: RequestContext,
    words: scopes.Shown | None,
    repeated: tuple[str, ...] = (),
) -> Object:
    try:
        decoded = decoding.decode(scope.schemas.type_of("autoscaling", "v1", "Scale"), obj)
    except decoding.DecodeError as error:
        raise scopes.patch_error(str(error), words) from error
    errors = repeated + decoded.strict_errors
    if errors and options.field_validation == "Strict":
        raise scopes.patch_error(decoding.strict_decoding_error(errors), words)
    scopes.tell_strict_errors(errors, options, context, "Scale", "v1", "Scale")
    return decoded.obj
