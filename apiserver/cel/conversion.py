"""From JSON to values of declared types: timestamps, durations, bytes and whole doubles are texts and integers in JSON.

Only what differs is converted, where a variable or a field is read; objects are left alone until one of their fields is read.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from apiserver.cel import times
from apiserver.cel.errors import EvaluationError
from apiserver.cel.types import Kind, ObjectType, Type
from apiserver.cel.values import MapList, SetList

_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_=-]").search

Converter = Callable[[Any], Any]


def converter_of(of: Type) -> Converter | None:
    """What makes a value of the type from its JSON, and leaves alone what is already one; None where JSON is the value."""
    scalar = _SCALARS.get(of.kind)
    if scalar is not None:
        return scalar
    if of.kind is Kind.LIST:
        return _list_converter(of)
    if of.kind is Kind.MAP:
        inner = converter_of(of.parameters[1])
        if inner is None:
            return None
        convert_value = inner
        return lambda value: {key: convert_value(item) for key, item in value.items()} if isinstance(value, dict) else value
    return None


def deep_converter_of(of: Type) -> Converter | None:
    """The same, with the fields of objects: for values that leave the reach of their declared type, as in `==` and `dyn()`."""
    if not _holds_objects_to_convert(of, frozenset()):
        return converter_of(of) if of.kind in (Kind.LIST, Kind.MAP) else None
    return _deep(of)


def holds_dyn(of: Type, seen: frozenset[str] = frozenset()) -> bool:
    """Whether values of a type may hold something of which nothing is known."""
    if of.kind in (Kind.DYN, Kind.ANY, Kind.ERROR, Kind.PARAMETER, Kind.OPAQUE):
        return True
    if isinstance(of, ObjectType):
        if of.name in seen:
            return False
        seen = seen | {of.name}
        return not of.fields or any(holds_dyn(field, seen) for field in of.fields.values())
    return any(holds_dyn(part, seen) for part in of.parameters)


def _list_converter(of: Type) -> Converter | None:
    inner = converter_of(of.parameters[0])
    keys = of.list_keys
    if of.list_type == "set":
        if inner is None:
            return lambda value: SetList(value) if type(value) is list else value
        return lambda value: SetList(map(inner, value)) if type(value) is list else value
    if of.list_type == "map":
        return lambda value: MapList(value if inner is None else list(map(inner, value)), keys) if type(value) is list else value
    if inner is None:
        return None
    return lambda value: list(map(inner, value)) if isinstance(value, list) else value


def _holds_objects_to_convert(of: Type, seen: frozenset[str]) -> bool:
    if of.kind is Kind.STRUCT:
        if of.name in seen or not isinstance(of, ObjectType):
            return False
        seen = seen | {of.name}
        return any(converter_of(field) is not None or _holds_objects_to_convert(field, seen) for field in of.fields.values())
    return any(_holds_objects_to_convert(part, seen) for part in of.parameters)


def _deep(of: Type) -> Converter:
    if of.kind is Kind.LIST:
        inner = _deep(of.parameters[0])
        outer = _list_converter(of)
        return lambda value: _wrapped(outer, [inner(item) for item in value]) if isinstance(value, list) else value
    if of.kind is Kind.MAP:
        inner = _deep(of.parameters[1])
        return lambda value: {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value
    if isinstance(of, ObjectType) and of.fields:
        return _object_converter(of)
    return converter_of(of) or (lambda value: value)


def _wrapped(outer: Converter | None, value: list[Any]) -> Any:
    return value if outer is None else outer(value)


def _object_converter(of: ObjectType) -> Converter:
    from apiserver.cel.names import json_name

    fields: dict[str, Converter] | None = None

    def convert(value: Any) -> Any:
        nonlocal fields
        if not isinstance(value, dict):
            return value
        if fields is None:  # on first use: a type may hold itself
            fields = {json_name(name): _deep(field) for name, field in of.fields.items()}
        return {key: fields[key](item) if key in fields and item is not None else item for key, item in value.items()}

    return convert


def _timestamp(value: Any) -> Any:
    if type(value) is not str:
        return value
    found = times.parse_date(value) or times.parse_timestamp(value.upper() if value[10:11] == "t" or value[-1:] == "z" else value)
    if found is None:
        raise EvaluationError(f"Invalid date-time formatted string {value}")
    return found


def _duration(value: Any) -> Any:
    if type(value) is not str:
        return value
    found = times.parse_written_duration(value)
    if found is None:
        raise EvaluationError(f"Invalid duration {value}")
    return found


def _bytes(value: Any) -> Any:
    if type(value) is not str:
        return value
    # the alphabet for URLs, whatever the format's check takes
    wrong = _NOT_BASE64(value)
    try:
        if wrong is None:
            return base64.urlsafe_b64decode(value)
    except (binascii.Error, ValueError):
        pass
    position = len(value) if wrong is None else wrong.start()
    raise EvaluationError(f"Invalid byte formatted string {value}: illegal base64 data at input byte {position}")


def _double(value: Any) -> Any:
    return float(value) if type(value) is int else value


_SCALARS: dict[Kind, Converter] = {Kind.TIMESTAMP: _timestamp, Kind.DURATION: _duration, Kind.BYTES: _bytes, Kind.DOUBLE: _double}
