"""Closures that read: variables, fields, indexes, presence tests, and their optional forms."""

from __future__ import annotations

from typing import Any

from apiserver.cel.code import Frame, Run
from apiserver.cel.conversion import Converter
from apiserver.cel.errors import EvaluationError
from apiserver.cel.names import escape
from apiserver.cel.standard import format_double, has_key
from apiserver.cel.values import NONE, OptionalValue, Uint


def shown(key: Any) -> str:
    """A key or an index as messages show it."""
    if type(key) is bool:
        return "true" if key else "false"
    if type(key) is float:
        return format_double(key)
    return str(int(key)) if type(key) is Uint else str(key)


def no_such_key(key: Any) -> EvaluationError:
    return EvaluationError(f"no such key: {shown(key)}")


def no_such_field(key: str) -> EvaluationError:
    """Of an object: by the name that the expression uses."""
    return no_such_key(escape(key) or key)


def variable(slot: int) -> Run:
    return lambda frame: frame[slot]


def field_of_slot(slot: int, key: str, is_object: bool, convert: Converter | None) -> Run:
    """`variable.field`: the most common reading, in one closure."""
    if is_object and convert is not None:

        def read_converted(frame: Frame) -> Any:
            try:
                value = frame[slot][key]
            except KeyError:
                raise no_such_field(key) from None
            if value is None:
                raise no_such_field(key)
            return convert(value)

        return read_converted

    if is_object:

        def read_object(frame: Frame) -> Any:
            try:
                value = frame[slot][key]
            except KeyError:
                raise no_such_field(key) from None
            if value is None:
                raise no_such_field(key)
            return value

        return read_object

    return field(variable(slot), key, False, None)


def field(operand: Run, key: str, is_object: bool, convert: Converter | None) -> Run:
    """`operand.field` of an object (where null is as good as absent) or of a map."""
    if is_object:

        def read_object(frame: Frame) -> Any:
            try:
                value = operand(frame)[key]
            except KeyError:
                raise no_such_field(key) from None
            if value is None:
                raise no_such_field(key)
            return value if convert is None else convert(value)

        return read_object

    def read_map(frame: Frame) -> Any:
        holder = operand(frame)
        try:
            if type(holder) is dict or isinstance(holder, dict):
                return holder[key]
        except KeyError:
            raise no_such_key(key) from None
        raise no_such_key(key) if not isinstance(holder, list) else EvaluationError("unsupported index type 'string' in list")

    return read_map


def has_field(operand: Run, key: str, is_object: bool) -> Run:
    """`has(operand.field)`."""
    if is_object:
        return lambda frame: operand(frame).get(key) is not None

    def test(frame: Frame) -> bool:
        holder = operand(frame)
        return isinstance(holder, dict) and key in holder

    return test


def index(operand: Run, key: Run) -> Run:
    """`operand[key]`."""
    return lambda frame: at(operand(frame), key(frame))


def at(holder: Any, key: Any) -> Any:
    """The element of a list or the value of a map."""
    if isinstance(holder, list):
        position = list_index(key)
        if 0 <= position < len(holder):
            return holder[position]
        raise EvaluationError(f"index out of bounds: {shown(key)}")
    if isinstance(holder, dict):
        if type(key) is str:
            try:
                return holder[key]
            except KeyError:
                raise no_such_key(key) from None
        if has_key(holder, key):
            return value_of(holder, key)
    raise no_such_key(key)


def value_of(holder: dict[Any, Any], key: Any) -> Any:
    """The value of a key that is there."""
    return holder[key] if type(key) is not bool else next(value for each, value in holder.items() if each is key)


def list_index(key: Any) -> int:
    """An index as an integer: whole doubles and unsigned integers are as good."""
    kind = type(key)
    if kind is int or kind is Uint:
        return int(key)
    if kind is float:
        if key == int(key):
            return int(key)
        raise EvaluationError(f"unsupported index value {format_double(key)} in list")
    name = {str: "string", bool: "bool", bytes: "bytes"}.get(kind, "dyn")
    raise EvaluationError(f"unsupported index type '{name}' in list")


# --- optional forms --------------------------------------------------------------------------------------------------------------


def optional_field(operand: Run, key: str, is_object: bool, convert: Converter | None) -> Run:
    """`operand.?field`, and `optional.field` further on in the chain: absent when any part is."""

    def read(frame: Frame) -> OptionalValue:
        holder = operand(frame)
        if type(holder) is OptionalValue:
            if not holder.present:
                return NONE
            holder = holder.value
        if not isinstance(holder, dict):
            raise no_such_key(key)
        if key not in holder:
            return NONE
        value = holder[key]
        if value is None and is_object:
            return NONE
        return OptionalValue(value if convert is None else convert(value))

    return read


def optional_index(operand: Run, key: Run) -> Run:
    """`operand[?key]`."""

    def read(frame: Frame) -> OptionalValue:
        holder = operand(frame)
        if type(holder) is OptionalValue:
            if not holder.present:
                return NONE
            holder = holder.value
        return maybe_at(holder, key(frame))

    return read


def maybe_at(holder: Any, key: Any) -> OptionalValue:
    """The element or the value, if it is there."""
    if isinstance(holder, list):
        position = list_index(key)
        return OptionalValue(holder[position]) if 0 <= position < len(holder) else NONE
    if isinstance(holder, dict):
        return OptionalValue(value_of(holder, key)) if has_key(holder, key) else NONE
    raise no_such_key(key)


def has_optional_field(operand: Run, key: str, is_object: bool) -> Run:
    """`has(optional.field)`."""

    def test(frame: Frame) -> bool:
        holder = operand(frame)
        if type(holder) is OptionalValue:
            if not holder.present:
                return False
            holder = holder.value
        return isinstance(holder, dict) and key in holder and not (is_object and holder[key] is None)

    return test
