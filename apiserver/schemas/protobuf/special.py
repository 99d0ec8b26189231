"""Messages whose JSON form is not an object of their fields: moments, quantities, numbers or texts, and the one-ofs of JSON schemas.

Each has a reader (message bytes → JSON value) and a writer (JSON value → message bytes). JSON null is what an empty message stands for
in ``Time`` and ``MicroTime``: the zero moment.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from apiserver.machinery import quantity, timestamps
from apiserver.machinery.objects import Object
from apiserver.schemas.protobuf import wire
from apiserver.schemas.protobuf.table import EXTENSIONS, INT_OR_STRING, META, QUANTITY, RUNTIME
from apiserver.schemas.protobuf.wire import ProtobufError, write_varint

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_MOMENT = datetime(1, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000_000_000

#: Messages whose one field, ``raw``, is JSON of any type.
RAW_JSON = frozenset((META + "FieldsV1", RUNTIME + "RawExtension", EXTENSIONS + "v1.JSON", EXTENSIONS + "v1beta1.JSON"))


# -- readers ------------------------------------------------------------------------------------------------------------------------


def _numbers(data: bytes) -> dict[int, Any]:
    return {number: value for number, _, value in wire.fields(data)}


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType for a number")
    return value - (1 << 64) if value >> 63 else value


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType 0 for a string")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"proto: string is not valid UTF-8: {error.reason}") from error


def _moment(data: bytes) -> tuple[str, int]:
    """The text of the whole seconds, and the nanoseconds beyond them."""
    found = _numbers(data)
    carried, nanoseconds = divmod(_signed(found.get(2, 0)), _NANOSECONDS)
    seconds = _signed(found.get(1, 0)) + carried
    try:
        return timestamps.format_time(seconds), nanoseconds
    except (ValueError, OverflowError, OSError) as error:
        raise ProtobufError(f"a time is out of range: {seconds}") from error


def _read_time(data: bytes) -> str | None:
    return _moment(data)[0] if data else None


def _read_micro_time(data: bytes) -> str | None:
    if not data:
        return None
    whole, nanoseconds = _moment(data)
    return f"{whole[:-1]}.{nanoseconds // 1000:06d}Z"


def _read_duration(data: bytes) -> str:
    return timestamps.format_duration(_signed(_numbers(data).get(1, 0)))


def _read_quantity(data: bytes) -> str:
    return _text(_numbers(data).get(1, b"0"))


def _read_int_or_string(data: bytes) -> int | str:
    found = _numbers(data)
    if _signed(found.get(1, 0)) == 1:
        return _text(found.get(3, b""))
    low = _signed(found.get(2, 0)) & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


READERS: dict[str, Callable[[bytes], Any]] = {
    META + "Time": _read_time,
    META + "MicroTime": _read_micro_time,
    META + "Duration": _read_duration,
    QUANTITY: _read_quantity,
    INT_OR_STRING: _read_int_or_string,
}


# -- writers ------------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _write_time(text: str) -> bytes:
    """Whole seconds: upstream cuts fractions off, so that protobuf says no more than JSON."""
    return _written_moment(_parsed(timestamps.parse_time, text), 0)


@lru_cache(maxsize=4096)
def _write_micro_time(text: str) -> bytes:
    moment = _parsed(timestamps.parse_micro_time, text)
    return _written_moment(moment, moment.microsecond * 1000)


def _parsed(parse: Callable[[str], datetime], text: str) -> datetime:
    try:
        return parse(text)
    except timestamps.TimestampError as error:
        raise ProtobufError(str(error)) from error


def _written_moment(moment: datetime, nanoseconds: int) -> bytes:
    if moment == _ZERO_MOMENT:
        return b""
    since = moment - _EPOCH
    return b"\x08%b\x10%b" % (write_varint(since.days * 86_400 + since.seconds), write_varint(nanoseconds))


def _write_duration(text: str) -> bytes:
    try:
        return b"\x08" + write_varint(timestamps.parse_duration(text))
    except timestamps.TimestampError as error:
        raise ProtobufError(str(error)) from error


@lru_cache(maxsize=4096)
def _write_quantity(value: str | float) -> bytes:
    """In canonical form, as Go writes what it has read."""
    try:
        return wire.with_length(b"\x0a", str(quantity.parse(str(value))).encode())
    except ValueError as error:
        raise ProtobufError(str(error)) from error


def _write_int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + wire.with_length(b"\x1a", value.encode())
    return b"\x08\x00\x10%b\x1a\x00" % write_varint(value)


WRITERS: dict[str, Callable[[Any], bytes]] = {
    META + "Time": _write_time,
    META + "MicroTime": _write_micro_time,
    META + "Duration": _write_duration,
    QUANTITY: _write_quantity,
    INT_OR_STRING: _write_int_or_string,
}

#: The message of a value that is not there.
ZEROS: dict[str, bytes] = {
    META + "Time": b"",
    META + "MicroTime": b"",
    META + "Duration": b"\x08\x00",
    QUANTITY: b"\x0a\x010",
    INT_OR_STRING: b"\x08\x00\x10\x00\x1a\x00",
}


# -- one-ofs of JSON schemas: {allows, schema}, {schema, jSONSchemas}, {schema, property} --------------------------------------------


def _schema_or(field: str, empty: Any) -> Callable[[Object], Any]:
    def flatten(value: Object) -> Any:
        schema = value.get("schema")
        return schema if schema is not None else value.get(field) or empty

    return flatten


def _or_schema(field: str) -> Callable[[Any], Object]:
    def spread(value: Any) -> Object:
        if isinstance(value, dict):
            # a schema allows what it describes
            return {"schema": value, "allows": True} if field == "allows" else {"schema": value}
        return {field: value}

    return spread


FLATTENED: dict[str, Callable[[Object], Any]] = {}
SPREAD: dict[str, Callable[[Any], Object]] = {}
for _version in ("v1", "v1beta1"):
    for _name, _field, _empty in (
        ("JSONSchemaPropsOrBool", "allows", False),
        ("JSONSchemaPropsOrArray", "jSONSchemas", []),
        ("JSONSchemaPropsOrStringArray", "property", []),
    ):
        FLATTENED[f"{EXTENSIONS}{_version}.{_name}"] = _schema_or(_field, _empty)
        SPREAD[f"{EXTENSIONS}{_version}.{_name}"] = _or_schema(_field)
