"""``Table`` and ``PartialObjectMetadata``: the forms in which ``kubectl get`` and metadata clients take objects (meta/v1).

table(columns, rows, list_metadata)      one answer; in a watch, one per event, the columns in the first alone
row(cells, obj, include)                 one line and, as ``includeObject`` asks, what stands behind it
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any

from apiserver.machinery.objects import Object


class IncludeObject(enum.Enum):
    """The values of the query parameter ``includeObject``."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


def table(columns: Sequence[Object], rows: Iterable[Object], metadata: Object, version: str = "v1") -> Object:
    """``columns`` are column definitions in JSON form, empty for all but the first table of a watch; ``version`` is that of
    meta.k8s.io."""
    out: Object = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
    if columns:
        out["columnDefinitions"] = list(columns)
    out["rows"] = list(rows)
    return out


def column_definition(name: str, type_: str, format_: str, description: str, priority: int) -> Object:
    return {"name": name, "type": type_, "format": format_, "description": description, "priority": priority}


def row(cells: list[Any], obj: Object, include: IncludeObject, version: str = "v1", conditions: Sequence[Object] = ()) -> Object:
    out: Object = {"cells": cells}
    if conditions:
        out["conditions"] = list(conditions)
    if include is IncludeObject.METADATA:
        out["object"] = partial_object_metadata(obj, version)
    else:
        out["object"] = obj if include is IncludeObject.OBJECT else None
    return out


def partial_object_metadata(obj: Object, version: str = "v1") -> Object:
    """The object's metadata alone; shares it with ``obj``."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj.get("metadata") or {}}
