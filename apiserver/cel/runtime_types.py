"""The types of values at run time, for `type()` and for calls whose overload is only known then."""

from __future__ import annotations

from typing import Any

from apiserver.cel import types
from apiserver.cel.types import Kind, Type
from apiserver.cel.values import Duration, MapList, OptionalValue, SetList, Timestamp, Uint

_LIST = types.list_of(types.DYN)
_MAP = types.map_of(types.DYN, types.DYN)
_OPTIONAL = types.optional_of(types.DYN)

CLASSES: dict[type, Type] = {
    bool: types.BOOL, int: types.INT, Uint: types.UINT, float: types.DOUBLE, str: types.STRING, bytes: types.BYTES,
    type(None): types.NULL, list: _LIST, SetList: _LIST, MapList: _LIST, dict: _MAP, Timestamp: types.TIMESTAMP,
    Duration: types.DURATION, OptionalValue: _OPTIONAL, Type: types.TYPE, types.ObjectType: types.TYPE,
}  # fmt: skip

_RUNTIME_NAMES = {Kind.TIMESTAMP: "google.protobuf.Timestamp", Kind.DURATION: "google.protobuf.Duration", Kind.NULL: "null_type"}


def register(of_class: type, of_type: Type) -> None:
    """Libraries tell which class holds the values of their types."""
    CLASSES[of_class] = of_type


def runtime_type(value: Any) -> Type:
    """The type of a value, without the types of its parts."""
    found = CLASSES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, dict):
        return _MAP
    return _LIST if isinstance(value, list) else types.DYN


def type_name(of: Type) -> str:
    """The name that a type has at run time, which is not how the checker writes it."""
    return _RUNTIME_NAMES.get(of.kind, of.name)


def name_of(value: Any) -> str:
    """The name of a value's type in messages."""
    return type_name(runtime_type(value))


def accepts(wanted: Type, value: Any) -> bool:
    """Whether a value may be given for a parameter of this type."""
    if wanted.kind in (Kind.DYN, Kind.PARAMETER):
        return True
    found = runtime_type(value)
    return found.kind is wanted.kind and found.name == wanted.name
