"""The scale subresource: autoscaling/v1 Scale as a view of a workload's replicas."""

from __future__ import annotations

from typing import Any

from apiserver.handlers import custom_scales, forms, response
from apiserver.handlers import scope as scopes
from apiserver.handlers.create import check_namespace
from apiserver.handlers.patch import check_options, parse_patch
from apiserver.handlers.response import Send
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.update import check_name
from apiserver.machinery import field_errors, go_json, json_patch, labels, merge_patch, objects, resource_version, status
from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.request import body as request_body
from apiserver.request import negotiation
from apiserver.request.body import Receive
from apiserver.request.negotiation import body_type
from apiserver.request.options import WriteOptions, write_options
from apiserver.request.request_context import RequestContext
from apiserver.schemas import decoding

API_VERSION = "autoscaling/v1"


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
        answer = forms.table_of_kind(scope, negotiated, context, answer, "autoscaling", "Scale")
    elif negotiated.form is negotiation.Form.METADATA:
        answer = forms.partial(answer, negotiated.version)
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
    info = context.info
    body = await request_body.read(receive, context.headers, limit_bytes=limit_bytes)
    if info.verb == "patch":
        patch_type = negotiation.patch_type(context.headers, builtin=scope.info.builtin)
        options = write_options(context.query, "PatchOptions")
        check_options(options, patch_type)
        kind = "PatchOptions"
    else:
        patch_type, kind = "", "UpdateOptions"
        options = write_options(context.query, kind)
        put = scopes.decode_as(
            scope.schemas, scopes.kind_info("autoscaling", "v1", "Scale"), "Scale", body, body_type(context.headers), options, context
        )

    async def build(old: Object) -> Object:
        new_scale = _patched(scope, context, patch_type, body, options, scale_of(scope, old)) if patch_type else put
        check_name(new_scale, info.name)
        check_namespace(new_scale, info.namespace)
        replicas = objects.get(new_scale, "spec", "replicas", default=0)
        if replicas < 0 and scope.info.builtin:
            error = field_errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise status.invalid("autoscaling", "Scale", info.name, [error])
        wanted = new_scale["metadata"].get("resourceVersion") or ""
        try:
            if resource_version.of_object(wanted) and wanted != old["metadata"]["resourceVersion"]:
                raise status.conflict(scope.info.group, scope.info.resource, info.name, status.MODIFIED)
        except go_json.GoError as error:
            raise status.bad_request(str(error)) from error
        if scope.info.custom is not None:
            custom_scales.set_replicas(scope.info.custom, old, new_scale if patch_type else None, replicas)
        else:
            old["spec"] = {**(old.get("spec") or {}), "replicas": replicas}
        return old

    write = scope.write_of(context, options, kind)
    written, _ = await scope.store.update(write, info.namespace, info.name, build, subresource="scale")
    return scale_of(scope, scope.store.decode(written))


def _patched(scope: ResourceScope, context: RequestContext, patch_type: str, body: bytes, options: WriteOptions, current: Object) -> Object:
    """Strategic merge is a merge patch here, since a Scale has no lists; apply owns what it names and is one as well."""
    if patch_type == negotiation.JSON_PATCH:
        patched = json_patch.apply(current, parse_patch(body, list, "jsonpatch.Patch"))
    else:
        if patch_type == negotiation.APPLY_YAML:
            try:
                body = request_body.yaml_to_json(body)
            except ValueError as error:
                raise status.bad_request(f"error decoding YAML: {error}") from error
        patched = merge_patch.apply(current, parse_patch(body, dict, "map[string]interface {}"))
    schemas = scope.schemas
    try:
        decoded = decoding.decode(schemas.type_of("autoscaling", "v1", "Scale"), patched)
    except decoding.DecodeError as error:
        raise scopes.patch_error(str(error), body) from error
    scopes.tell_strict_errors(decoded.strict_errors, options, context, "Scale", "v1", "Scale")
    return decoded.obj
