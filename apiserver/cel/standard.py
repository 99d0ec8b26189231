"""The functions and operators of the language itself, with cel-go's overloads, names and errors (common/stdlib)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from apiserver.cel import times
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.types import Type
from apiserver.cel.values import INT_MAX, INT_MIN, NANOSECONDS, UINT_MAX, Duration, Timestamp, Uint, add_lists, contains

# --- numbers ---------------------------------------------------------------------------------------------------------------------


def _int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def _uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    amount = abs(left) // abs(right)
    return _int(amount if (left < 0) == (right < 0) else -amount)


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _divide_uint(left: int, right: int) -> Uint:
    if right == 0:
        raise EvaluationError("division by zero")
    return Uint(int(left) // int(right))


def _modulo_uint(left: int, right: int) -> Uint:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return Uint(int(left) % int(right))


def _divide_double(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def _multiply_double(left: float, right: float) -> float:
    return left * right


def _double_to_int(value: float) -> int:
    if math.isnan(value) or math.isinf(value) or value <= -(2.0**63) or value >= 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> Uint:
    if math.isnan(value) or math.isinf(value) or value < 0 or value >= 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(int(value))


# --- conversions -----------------------------------------------------------------------------------------------------------------

_INT_TEXT = re.compile(r"[+-]?[0-9]{1,40}").fullmatch
_UINT_TEXT = re.compile(r"[0-9]{1,40}").fullmatch
_FLOAT_TEXT = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
    r"|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN])"
).fullmatch
_TRUE, _FALSE = frozenset({"1", "t", "T", "TRUE", "true", "True"}), frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _no_conversion(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def _string_to_int(text: str) -> int:
    if not _INT_TEXT(text) or not INT_MIN <= int(text) <= INT_MAX:
        raise _no_conversion("string", "int")
    return int(text)


def _string_to_uint(text: str) -> Uint:
    if not _UINT_TEXT(text) or int(text) > UINT_MAX:
        raise _no_conversion("string", "uint")
    return Uint(int(text))


def _string_to_double(text: str) -> float:
    if not _FLOAT_TEXT(text):
        raise _no_conversion("string", "double")
    try:
        value = float.fromhex(text) if "x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        raise _no_conversion("string", "double") from None
    if math.isinf(value) and "inf" not in text.lower():
        raise _no_conversion("string", "double")
    return value


def _string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _no_conversion("string", "bool")


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _string_to_timestamp(text: str) -> Timestamp:
    found = times.parse_timestamp(text)
    if found is None:
        raise _no_conversion("string", "google.protobuf.Timestamp")
    return found


def _string_to_duration(text: str) -> Duration:
    found = times.parse_duration(text)
    if found is None:
        raise _no_conversion("string", "google.protobuf.Duration")
    return found


def format_double(value: float) -> str:
    """Go's `%g` with the fewest digits: an exponent below 1e-4 and from 1e21 on for whole numbers of so many digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    mantissa, _, exponent_text = f"{value!r}".partition("e")
    digits = mantissa.replace("-", "").replace(".", "").lstrip("0")
    whole = mantissa.lstrip("-").partition(".")[0]
    if exponent_text:
        exponent = int(exponent_text) + len(whole) - 1
    elif whole != "0":
        exponent = len(whole) - 1
    else:
        fraction = mantissa.partition(".")[2]
        exponent = -(len(fraction) - len(fraction.lstrip("0")) + 1)
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if exponent < -4 or exponent >= 6:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return sign + digits.ljust(exponent + 1, "0")
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def _same(value: Any) -> Any:
    return value


# --- types at run time -----------------------------------------------------------------------------------------------------------


def _map_has(key: Any, container: dict[Any, Any]) -> bool:
    return has_key(container, key)


def has_key(container: dict[Any, Any], key: Any) -> bool:
    """Whether a map has a key; true is not 1, whatever Python says."""
    if type(key) is bool:
        return any(each is key for each in container)
    try:
        if key not in container:
            return False
    except TypeError:
        return False
    return type(key) is str or not (key == 0 or key == 1) or any(type(each) is not bool and each == key for each in container)


_SECOND, _MINUTE, _HOUR = NANOSECONDS, 60 * NANOSECONDS, 3600 * NANOSECONDS


def _comparisons() -> Iterator[Overload]:
    """`<`, `<=`, `>` and `>=` for all pairs of types that have an order."""
    operations: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
        "_<_": ("less", lambda left, right: left < right),
        "_<=_": ("less_equals", lambda left, right: left <= right),
        "_>_": ("greater", lambda left, right: left > right),
        "_>=_": ("greater_equals", lambda left, right: left >= right),
    }
    pairs = [
        ("bool", "bool", "bool"), ("int64", "int", "int"), ("int64_double", "int", "double"), ("int64_uint64", "int", "uint"),
        ("uint64", "uint", "uint"), ("uint64_double", "uint", "double"), ("uint64_int64", "uint", "int"), ("double", "double", "double"),
        ("double_int64", "double", "int"), ("double_uint64", "double", "uint"), ("string", "string", "string"),
        ("bytes", "bytes", "bytes"), ("timestamp", "timestamp", "timestamp"), ("duration", "duration", "duration"),
    ]  # fmt: skip
    for operator, (name, operation) in operations.items():
        for suffix, left, right in pairs:
            compute = operation
            if "double" in (left, right):
                compute = _as_doubles(operation)
            yield overload(f"{name}_{suffix} {operator}({left}, {right}): bool", compute)


def _as_doubles(operation: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """An integer meets a double as a double, however many digits that costs it."""

    def compare(left: float, right: float) -> bool:
        left, right = float(left), float(right)
        if left != left or right != right:
            raise EvaluationError("NaN values cannot be ordered")
        return operation(left, right)

    return compare


def _parts_of_dates() -> Iterator[Overload]:
    for function, (name, compute) in times.PARTS.items():
        tz = f"timestamp_to_{name}_with_tz" if name != "seconds" else "timestamp_to_seconds_tz"
        yield overload(f"timestamp_to_{name} timestamp.{function}(): int", compute)
        yield overload(f"{tz} timestamp.{function}(string): int", compute)
    yield overload("timestamp_to_milliseconds timestamp.getMilliseconds(): int", times.milliseconds_of)
    yield overload("timestamp_to_milliseconds_with_tz timestamp.getMilliseconds(string): int", times.milliseconds_of)
    yield overload("duration_to_hours duration.getHours(): int", lambda value: times.whole(value, _HOUR))
    yield overload("duration_to_minutes duration.getMinutes(): int", lambda value: times.whole(value, _MINUTE))
    yield overload("duration_to_seconds duration.getSeconds(): int", lambda value: times.whole(value, _SECOND))
    yield overload("duration_to_milliseconds duration.getMilliseconds(): int", lambda value: times.whole(value, 1_000_000))


def overloads() -> list[Overload]:
    """All of them. Those without a function are done by the compiler."""
    return [
        overload("conditional _?_:_(bool, A, A): A"),
        overload("logical_and _&&_(bool, bool): bool"),
        overload("logical_or _||_(bool, bool): bool"),
        overload("logical_not !_(bool): bool"),
        overload("not_strictly_false @not_strictly_false(bool): bool"),
        overload("equals _==_(A, A): bool"),
        overload("not_equals _!=_(A, A): bool"),
        overload("add_bytes _+_(bytes, bytes): bytes", lambda left, right: left + right),
        overload("add_double _+_(double, double): double", lambda left, right: left + right),
        overload("add_duration_duration _+_(duration, duration): duration", times.add_duration_duration),
        overload("add_duration_timestamp _+_(duration, timestamp): timestamp", times.add_duration_timestamp),
        overload("add_timestamp_duration _+_(timestamp, duration): timestamp", times.add_timestamp_duration),
        overload("add_int64 _+_(int, int): int", lambda left, right: _int(left + right)),
        overload("add_list _+_(list(A), list(A)): list(A)", add_lists),
        overload("add_string _+_(string, string): string", lambda left, right: left + right),
        overload("add_uint64 _+_(uint, uint): uint", lambda left, right: _uint(int(left) + int(right))),
        overload("divide_double _/_(double, double): double", _divide_double),
        overload("divide_int64 _/_(int, int): int", _divide),
        overload("divide_uint64 _/_(uint, uint): uint", _divide_uint),
        overload("modulo_int64 _%_(int, int): int", _modulo),
        overload("modulo_uint64 _%_(uint, uint): uint", _modulo_uint),
        overload("multiply_double _*_(double, double): double", _multiply_double),
        overload("multiply_int64 _*_(int, int): int", lambda left, right: _int(left * right)),
        overload("multiply_uint64 _*_(uint, uint): uint", lambda left, right: _uint(int(left) * int(right))),
        overload("negate_double -_(double): double", lambda value: -value),
        overload("negate_int64 -_(int): int", lambda value: _int(-value)),
        overload("subtract_double _-_(double, double): double", lambda left, right: left - right),
        overload("subtract_duration_duration _-_(duration, duration): duration", times.subtract_duration_duration),
        overload("subtract_int64 _-_(int, int): int", lambda left, right: _int(left - right)),
        overload("subtract_timestamp_duration _-_(timestamp, duration): timestamp", times.subtract_timestamp_duration),
        overload("subtract_timestamp_timestamp _-_(timestamp, timestamp): duration", times.subtract_timestamp_timestamp),
        overload("subtract_uint64 _-_(uint, uint): uint", lambda left, right: _uint(int(left) - int(right))),
        *_comparisons(),
        overload("index_list _[_](list(A), int): A"),
        overload("index_map _[_](map(A, B), A): B"),
        overload("in_list @in(A, list(A)): bool", lambda value, container: contains(container, value)),
        overload("in_map @in(A, map(A, B)): bool", _map_has),
        overload("size_bytes size(bytes): int", len),
        overload("bytes_size bytes.size(): int", len),
        overload("size_list size(list(A)): int", len),
        overload("list_size list(A).size(): int", len),
        overload("size_map size(map(A, B)): int", len),
        overload("map_size map(A, B).size(): int", len),
        overload("size_string size(string): int", len),
        overload("string_size string.size(): int", len),
        overload("type type(A): type(A)"),
        overload("bool_to_bool bool(bool): bool", _same),
        overload("string_to_bool bool(string): bool", _string_to_bool),
        overload("bytes_to_bytes bytes(bytes): bytes", _same),
        overload("string_to_bytes bytes(string): bytes", lambda text: text.encode("utf-8", "surrogatepass")),
        overload("double_to_double double(double): double", _same),
        overload("int64_to_double double(int): double", float),
        overload("string_to_double double(string): double", _string_to_double),
        overload("uint64_to_double double(uint): double", float),
        overload("duration_to_duration duration(duration): duration", _same),
        overload("string_to_duration duration(string): duration", _string_to_duration),
        overload("to_dyn dyn(A): dyn", _same),
        overload("int64_to_int64 int(int): int", _same),
        overload("double_to_int64 int(double): int", _double_to_int),
        overload("duration_to_int64 int(duration): int", lambda value: value.nanoseconds),
        overload("string_to_int64 int(string): int", _string_to_int),
        overload("timestamp_to_int64 int(timestamp): int", lambda value: value.nanoseconds // NANOSECONDS),
        overload("uint64_to_int64 int(uint): int", lambda value: _int(int(value))),
        overload("string_to_string string(string): string", _same),
        overload("bool_to_string string(bool): string", lambda value: "true" if value else "false"),
        overload("bytes_to_string string(bytes): string", _bytes_to_string),
        overload("double_to_string string(double): string", format_double),
        overload("duration_to_string string(duration): string", times.format_duration),
        overload("int64_to_string string(int): string", str),
        overload("timestamp_to_string string(timestamp): string", times.format_timestamp),
        overload("uint64_to_string string(uint): string", lambda value: str(int(value))),
        overload("timestamp_to_timestamp timestamp(timestamp): timestamp", _same),
        overload("int64_to_timestamp timestamp(int): timestamp", lambda seconds: times.in_range(seconds * NANOSECONDS)),
        overload("string_to_timestamp timestamp(string): timestamp", _string_to_timestamp),
        overload("uint64_to_uint64 uint(uint): uint", _same),
        overload("double_to_uint64 uint(double): uint", _double_to_uint),
        overload("int64_to_uint64 uint(int): uint", _uint),
        overload("string_to_uint64 uint(string): uint", _string_to_uint),
        overload("contains_string string.contains(string): bool", lambda text, part: part in text),
        overload("ends_with_string string.endsWith(string): bool", lambda text, end: text.endswith(end)),
        overload("starts_with_string string.startsWith(string): bool", lambda text, start: text.startswith(start)),
        overload("matches matches(string, string): bool"),
        overload("matches_string string.matches(string): bool"),
        *_parts_of_dates(),
    ]


def type_names() -> dict[str, Type]:
    """The names of the types, as expressions may use them as values."""
    from apiserver.cel import types

    base = {
        "bool": types.BOOL, "bytes": types.BYTES, "double": types.DOUBLE, "int": types.INT, "string": types.STRING, "uint": types.UINT,
        "null_type": types.NULL, "list": types.list_of(types.DYN), "map": types.map_of(types.DYN, types.DYN),
        "google.protobuf.Timestamp": types.TIMESTAMP, "google.protobuf.Duration": types.DURATION,
    }  # fmt: skip
    return {**{name: types.type_of(of) for name, of in base.items()}, "type": types.type_of(types.TYPE)}
