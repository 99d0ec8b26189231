"""From protobuf to the JSON form: what a body or a stored value says, with the zeros that Go's ``omitempty`` would leave out left out."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import orjson

from apiserver.machinery.objects import Object
from apiserver.schemas.protobuf import special, table, wire
from apiserver.schemas.protobuf.table import MAGIC, Field
from apiserver.schemas.protobuf.wire import MessageError, ProtobufError, UnknownKindError

#: Messages within messages; the deepest published type without recursion has about 12.
DEPTH_MAX = 64

Scalar = Callable[[Any], Any]


def to_json(body: bytes, default: tuple[str, str] = ("", "")) -> bytes:
    """The JSON form of a body. Raises ProtobufError."""
    return orjson.dumps(decode(body, default))


def decode(body: bytes, default: tuple[str, str] = ("", "")) -> Object:
    """The object in its JSON form; ``default`` is the apiVersion and kind of one that does not say them. Raises ProtobufError for what is
    damaged (MessageError where that is behind the envelope), and for kinds without a published message (UnknownKindError)."""
    if not body:
        raise ProtobufError("empty data")
    if body[:4] != MAGIC:
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    if body == MAGIC:
        raise ProtobufError("empty body")
    api_version = kind = ""
    raw = b""
    for number, encoding, value in wire.fields(body[4:]):
        if number == 1 and encoding == wire.BYTES:
            for inner, _, text in wire.fields(_expect_bytes(value)):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2:
            raw = _expect_bytes(value)
    api_version, kind = api_version or default[0], kind or default[1]
    message = table.message_of(api_version, kind) if kind else None
    if message is None and not (api_version and kind):
        raise ProtobufError("the protobuf message names no apiVersion and kind")
    if message is None:
        raise UnknownKindError(api_version, kind)
    from apiserver.schemas.protobuf import message_reader  # which falls back on what is here

    type_meta = {"apiVersion": api_version, "kind": kind} if api_version else {"kind": kind}
    try:
        return {**type_meta, **message_reader.read(message, raw)}
    except ProtobufError as error:
        raise MessageError(api_version, kind, str(error)) from error


def decode_message(message: str, data: bytes, depth: int = 0) -> Any:
    """The JSON form of one message without its envelope. Raises ProtobufError."""
    read = special.READERS.get(message)
    if read is not None:
        return read(data)
    if message in special.RAW_JSON:
        return _raw_json(data)
    if depth > DEPTH_MAX:
        raise ProtobufError("exceeded max depth")
    plan = _plan(message)
    out: Object = {}
    for number, encoding, value in wire.fields(data):
        found = plan.get(number)
        if found is None:
            continue  # of a newer version
        field, scalar = found
        if field.is_map:
            key, entry = _entry(field, scalar, value, depth)
            out.setdefault(field.name, {})[key] = entry
        elif scalar is None:
            read_value = decode_message(field.type, _expect_bytes(value), depth + 1)
            if field.repeated:
                out.setdefault(field.name, []).append(read_value)
            elif field.inline:
                out.update(read_value)
            elif read_value is not None:
                out[field.name] = read_value
        elif field.repeated:
            values = out.setdefault(field.name, [])
            if encoding == wire.BYTES and field.type not in ("string", "bytes"):
                values.extend(scalar(number) for number in wire.packed(_expect_bytes(value)))
            else:
                values.append(scalar(value))
        else:
            simple = scalar(value)
            if simple or field.keeps_zero or field.nilable:
                out[field.name] = simple
            else:
                out.pop(field.name, None)  # the last one said counts
    flatten = special.FLATTENED.get(message)
    if flatten is not None:
        return flatten(out)
    return out.get("items") or [] if table.is_list_type(message) else out


@lru_cache(maxsize=2048)
def _plan(message: str) -> dict[int, tuple[Field, Scalar | None]]:
    """By field number: the field, and how its value is read where it is no message."""
    return {field.number: (field, _SCALARS.get(field.type)) for field in table.fields_of(message)}


def _entry(field: Field, scalar: Scalar | None, data: Any, depth: int) -> tuple[str, Any]:
    key: str = ""
    value: Any = b""
    for number, _, part in wire.fields(_expect_bytes(data)):
        if number == 1:
            key = _text(part)
        elif number == 2:
            value = part
    if scalar is not None:
        return key, scalar(value)
    return key, decode_message(field.type, _expect_bytes(value), depth + 1)


def _raw_json(data: bytes) -> Any:
    """A message whose one field is raw: JSON, or an object in this very form."""
    raw = next((_expect_bytes(value) for number, _, value in wire.fields(data) if number == 1), b"")
    if not raw:
        return None
    if raw[:4] == MAGIC:
        return decode(raw)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ProtobufError(f"a raw value is no JSON: {error}") from error


def _expect_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType 0 for a message")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType 0 for a string")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"proto: string is not valid UTF-8: {error.reason}") from error


def _int64(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType for a number")
    return value - (1 << 64) if value >> 63 else value


def _int32(value: Any) -> int:
    """As Go reads it: of more than 32 bits the lower ones."""
    low = _int64(value) & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _double(value: Any) -> float:
    data = _expect_bytes(value)
    if len(data) != 8:
        raise ProtobufError("proto: wrong wireType for a double")
    found = float(struct.unpack("<d", data)[0])
    if not math.isfinite(found):
        raise ProtobufError(f"json: unsupported value: {found}")
    return found


_SCALARS: dict[str, Scalar] = {
    "string": _text,
    "bytes": lambda value: base64.b64encode(_expect_bytes(value)).decode(),
    "bool": lambda value: bool(_int64(value)),
    "int32": _int32,
    "int64": _int64,
    "double": _double,
}
