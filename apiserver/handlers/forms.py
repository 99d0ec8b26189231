"""The forms of answers beside plain objects: Table and PartialObjectMetadata, of one object, of lists and in watches."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import status
from apiserver.machinery import table as tables
from apiserver.machinery.objects import Object
from apiserver.machinery.table import IncludeObject
from apiserver.request.negotiation import Form, Negotiated
from apiserver.request.request_context import RequestContext

partial = tables.partial_object_metadata


def transform(scope: ResourceScope, negotiated: Negotiated, context: RequestContext, obj: Object) -> Object:
    """One object in the negotiated form."""
    if negotiated.form is Form.TABLE:
        return table(scope, negotiated, context, [obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})
    if negotiated.form is Form.METADATA:
        return partial(obj, negotiated.version)
    return obj


def table(
    scope: ResourceScope,
    negotiated: Negotiated,
    context: RequestContext,
    objects: Sequence[Object],
    metadata: Object,
    *,
    columns: bool = True,
) -> Object:
    """``columns`` False: the later events of a watch leave the definitions out."""
    include = include_object(context)
    now = scope.store.env.clock.now()
    printer = scope.printer
    version = negotiated.version
    rows = [tables.row(printer.cells(obj, now), obj, include, version, printer.conditions(obj)) for obj in objects]
    return tables.table(printer.definitions() if columns else (), rows, metadata, version)


def include_object(context: RequestContext) -> IncludeObject:
    value = context.query_value("includeObject") or "Metadata"
    try:
        return IncludeObject(value)
    except ValueError as error:
        raise status.bad_request(f'unrecognized includeObject value: "{value}"') from error
