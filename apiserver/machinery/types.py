"""``Type``: the shape of an API value with everything that patches, field sets and decoding need to know of it.

Built by ``apiserver.schemas`` from the published schemas of built-in kinds, and from the structural schemas of custom resources;
read by the strategic merge patch, by server-side apply and by decoding. Types may be recursive (JSONSchemaProps), so ``fields`` and
``element`` are filled after construction; treat a built ``Type`` as frozen.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any


class Shape(enum.Enum):
    STRUCT = "struct"
    MAP = "map"
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    TIME = "time"
    MICRO_TIME = "micro-time"
    ANY = "any"


class ListType(enum.Enum):
    """How server-side apply merges a list (``x-kubernetes-list-type``)."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


@dataclass(slots=True, eq=False)
class Type:
    """``go_name`` is the last part of the definition's name (``PodSpec``), used in decode errors. ``patch_merge_key`` and
    ``patch_strategies`` are strategic merge's ("merge", "replace", "retainKeys"); ``element`` is that of a LIST or MAP."""

    shape: Shape
    definition: str = ""
    go_name: str = ""
    description: str = ""
    format: str = ""
    fields: dict[str, Type] = field(default_factory=dict)
    element: Type | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    list_type: ListType = ListType.ATOMIC
    list_map_keys: tuple[str, ...] = ()
    map_is_atomic: bool = False
    patch_merge_key: str = ""
    patch_strategies: tuple[str, ...] = ()
    default: Any = None
    has_default: bool = False
    preserve_unknown: bool = False
    embedded_object: bool = False
    #: the zero value of a scalar ("", 0, false) means the same as no value, and is not kept
    zero_is_absent: bool = False
    #: the fields of a struct that are written with the zero of their type where they have no value
    always_written: tuple[str, ...] = ()
    #: what server-side apply made of this type (``machinery.apply_types``), on first use; not copied by ``dataclasses.replace``
    apply_type: Any = field(init=False, default=None, repr=False)
