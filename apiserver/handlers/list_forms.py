"""Lists as Table and as PartialObjectMetadataList, encoded object by object.

A list of thousands is never decoded as a whole: beside the stored bytes there are the encoded rows and one decoded object, and other
requests get their turn in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from apiserver.handlers import forms
from apiserver.handlers.scope import ResourceScope
from apiserver.machinery import table as tables
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import StoredObject
from apiserver.request.negotiation import Form, Negotiated
from apiserver.request.request_context import RequestContext

#: Objects encoded before other requests get a turn: some milliseconds.
OBJECTS_PER_TURN = 128


async def pieces(
    scope: ResourceScope, negotiated: Negotiated, context: RequestContext, objects: Sequence[StoredObject], metadata: Object
) -> list[bytes]:
    """The JSON of a list in a form of meta.k8s.io, in pieces. ``metadata`` is the list's."""
    version = negotiated.version
    opening: dict[str, Any] = {"kind": negotiated.form.value, "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
    if negotiated.form is Form.METADATA_LIST:
        if not objects:
            return [orjson.dumps({**opening, "items": None})]  # a Go list that nothing was put into
        head = b'%b,"items":[' % orjson.dumps(opening)[:-1]
        return await _joined(head, objects, lambda obj: forms.partial_of(obj, version))
    opening["columnDefinitions"] = scope.column_definitions
    head = b'%b,"rows":[' % orjson.dumps(opening)[:-1]
    include, now, printer = forms.include_object(context), scope.store.env.clock.now(), scope.printer
    order, keys = printer.order, []

    def row(stored: StoredObject) -> bytes:
        obj = scope.store.decode(stored)
        if order is not None:
            keys.append(order(obj))
        return orjson.dumps(tables.row(printer.cells(obj, now), obj, include, version, printer.conditions(obj)))

    if order is None:
        return await _joined(head, objects, row)
    rows = await _encoded(objects, row)
    positions = sorted(range(len(rows)), key=keys.__getitem__)
    return [head, b",".join([rows[position] for position in positions]), b"]}"]


async def _joined(head: bytes, objects: Sequence[StoredObject], encode: Callable[[StoredObject], bytes]) -> list[bytes]:
    return [head, b",".join(await _encoded(objects, encode)), b"]}"]


async def _encoded(objects: Sequence[StoredObject], encode: Callable[[StoredObject], bytes]) -> list[bytes]:
    found: list[bytes] = []
    for position, obj in enumerate(objects, 1):
        found.append(encode(obj))
        if not position % OBJECTS_PER_TURN:
            await asyncio.sleep(0)
    return found
