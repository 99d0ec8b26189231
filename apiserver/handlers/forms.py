"""The forms of answers beside plain objects: Table and PartialObjectMetadata, of one object, of lists and in watches."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import field_errors, status
from apiserver.machinery import table as tables
from apiserver.machinery.objects import Object
from apiserver.machinery.table import IncludeObject
from apiserver.objectstore.interface import StoredObject
from apiserver.request.negotiation import Form, Negotiated
from apiserver.request.request_context import RequestContext
from apiserver.resources.columns import Printer, printer_of_kind
from apiserver.resources.table import minor_of

partial = tables.partial_object_metadata


def partial_of(stored: StoredObject, version: str) -> bytes:
    """The JSON of a stored object's PartialObjectMetadata: its metadata as it stands in the stored bytes."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%b","metadata":%b}' % (version.encode(), stored.metadata())


def transform(scope: ResourceScope, negotiated: Negotiated, context: RequestContext, obj: Object) -> Object:
    """One object in the negotiated form."""
    if negotiated.form is Form.TABLE:
        return table(scope, negotiated, context, [obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})
    if negotiated.form is Form.METADATA:
        return partial(obj, negotiated.version)
    if negotiated.form is Form.METADATA_LIST:
        raise status.wrong_metadata_form(negotiated.form.value, is_list=False, go_type=scope.go_type)
    return obj


def table(
    scope: ResourceScope,
    negotiated: Negotiated,
    context: RequestContext,
    objects: Sequence[Object],
    metadata: Object,
    *,
    columns: bool = True,
    at_least: IncludeObject | None = None,
) -> Object:
    """``columns`` False: the later events of a watch leave the definitions out. ``at_least``: what stands in a row where nothing is asked
    for."""
    definitions: Sequence[Object] = scope.column_definitions if columns else ()
    return _table(scope, scope.printer, definitions, negotiated, context, objects, metadata, at_least)


def table_of_kind(scope: ResourceScope, negotiated: Negotiated, context: RequestContext, obj: Object, group: str, kind: str) -> Object:
    """Of what a subresource answers where that is a kind of its own."""
    return table_by(printer_of_kind(group, kind, minor_of(scope.schemas.kubernetes_version)), scope, negotiated, context, obj)


def table_by(printer: Printer, scope: ResourceScope, negotiated: Negotiated, context: RequestContext, obj: Object) -> Object:
    """Of one object, with other columns than those of the resource."""
    metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
    definitions = printer.definitions(scope.schemas.description_of)
    return _table(scope, printer, definitions, negotiated, context, [obj], metadata)


def _table(
    scope: ResourceScope,
    printer: Printer,
    definitions: Sequence[Object],
    negotiated: Negotiated,
    context: RequestContext,
    objects: Sequence[Object],
    metadata: Object,
    at_least: IncludeObject | None = None,
) -> Object:
    include = include_object(context)
    if include is IncludeObject.NONE and at_least is not None:
        include = at_least
    now = scope.store.env.clock.now()
    version = negotiated.version
    if printer.order is not None:
        objects = sorted(objects, key=printer.order)
    rows = [tables.row(printer.cells(obj, now), obj, include, version, printer.conditions(obj)) for obj in objects]
    return tables.table(definitions, rows, metadata, version)


def include_object(context: RequestContext) -> IncludeObject:
    """Raises 400."""
    value = context.query_value("includeObject")
    try:
        return IncludeObject(value or "Metadata")
    except ValueError as error:
        refusal = field_errors.invalid("includeObject", value, "must be 'Metadata', 'Object', 'None', or empty")
        raise status.bad_request(f"Unable to convert to Table as requested: {refusal.text()}") from error
