"""Objects in Kubernetes' protobuf form (``application/vnd.kubernetes.protobuf``), read into their JSON form.

The form is four bytes ``k8s\\0`` and a ``runtime.Unknown`` message (apiVersion and kind, then the object's own message); typed Go
clients, ``kubectl create`` among them, send built-in objects so. The messages are facts published as ``generated.proto`` and struct
tags in k8s.io/api, apimachinery and apiextensions-apiserver (1.36); ``protobuf_fields.json.gz`` is a table made of them:
``{message: {JSON name: [number, type, flags]}}`` with the flags ``r`` repeated, ``i`` inlined (its fields stand in the parent's
JSON), ``z`` a zero value is kept (a pointer, or never omitted). A zero without ``z`` is what Go's ``omitempty`` leaves out of JSON.
"""

from __future__ import annotations

import base64
import gzip
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

import orjson

from apiserver.machinery import timestamps
from apiserver.machinery.objects import Object

MAGIC = b"k8s\x00"
#: Messages within messages; the deepest published type without recursion has about 12.
DEPTH_MAX = 64

_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions."
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10

#: Kinds of no group: their messages are meta/v1's whatever the apiVersion says.
_META_KINDS = frozenset({"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "Status"})


class ProtobufError(ValueError):
    """The bytes are not what they claim to be; the text is for the client."""


class UnknownKindError(ProtobufError):
    """No message is published for the kind."""


def to_json(body: bytes) -> bytes:
    """The JSON form of a body. Raises ProtobufError."""
    return orjson.dumps(decode(body))


def decode(body: bytes) -> Object:
    """The object in its JSON form. Raises ProtobufError for what is damaged, for kinds without a published message, and for an inner
    encoding that is not plain protobuf."""
    if body[:4] != MAGIC:
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, wire, value in _fields(body[4:]):
        if number == 1 and wire == _BYTES:
            for inner, _, text in _fields(value):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2 and wire == _BYTES:
            raw = value
        elif number in (3, 4) and value and value != b"application/vnd.kubernetes.protobuf":
            raise ProtobufError(f"content {_text(value)!r} within a protobuf message is not supported")
    if not api_version or not kind:
        raise ProtobufError("the protobuf message names no apiVersion and kind")
    message = message_of(api_version, kind)
    if message is None:
        raise UnknownKindError(f"no protobuf form of {api_version}, Kind={kind} is known")
    return {"apiVersion": api_version, "kind": kind, **_message(message, raw, 0)}


def message_of(api_version: str, kind: str) -> str | None:
    """The full name of a kind's message, None where none is published."""
    group, _, version = api_version.rpartition("/")
    if kind in _META_KINDS:
        return _META + kind
    if group == "apiextensions.k8s.io":
        name = f"{_EXTENSIONS}{version}.{kind}"
    elif group == "internal.apiserver.k8s.io":
        name = f"k8s.io.api.apiserverinternal.{version}.{kind}"
    else:
        name = f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"
    return name if name in _table() else None


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, list[Any]]]:
    content = (files("apiserver.schemas") / "protobuf_fields.json.gz").read_bytes()
    table: dict[str, dict[str, list[Any]]] = orjson.loads(gzip.decompress(content))
    return table


class _Field:
    """How to read one field: ``scalar`` turns a wire value into a JSON value; it is None where ``element`` is a message."""

    __slots__ = ("element", "inline", "is_map", "keep_zero", "name", "repeated", "scalar")

    def __init__(self, name: str, type_name: str, flags: str) -> None:
        self.name = name
        self.is_map = type_name.startswith("map:")
        self.element = type_name.removeprefix("map:")
        self.repeated = "r" in flags
        self.inline = "i" in flags
        self.keep_zero = "z" in flags
        self.scalar = _SCALARS.get(self.element)


@lru_cache(maxsize=2048)
def _plan(message: str) -> dict[int, _Field]:
    fields: dict[int, _Field] = {}
    for name, row in _table()[message].items():
        number, type_name, *flags = row
        fields[number] = _Field(name, type_name, flags[0] if flags else "")
    return fields


def _message(message: str, data: bytes, depth: int) -> Any:
    special = _SPECIAL.get(message)
    if special is not None:
        return special(data)
    if depth > DEPTH_MAX:
        raise ProtobufError("exceeded max depth")
    if message not in _table():
        raise ProtobufError(f"no published message {message}")
    plan = _plan(message)
    out: Object = {}
    for number, wire, value in _fields(data):
        field = plan.get(number)
        if field is None:
            continue  # of a newer version
        if field.is_map:
            key, entry = _entry(field, value, depth)
            out.setdefault(field.name, {})[key] = entry
            continue
        if field.scalar is not None and wire == _BYTES and field.element not in ("string", "bytes"):
            out.setdefault(field.name, []).extend(field.scalar(number) for number in _packed(value))
            continue
        read = _message(field.element, _expect_bytes(value), depth + 1) if field.scalar is None else field.scalar(value)
        if field.repeated:
            out.setdefault(field.name, []).append(read)
        elif field.inline:
            out.update(read)
        elif read is None or (not field.keep_zero and not read and field.scalar is not None):
            continue
        else:
            out[field.name] = read
    flatten = _UNWRAPPED.get(message)
    return flatten(out) if flatten is not None else out


def _entry(field: _Field, data: Any, depth: int) -> tuple[str, Any]:
    key: str = ""
    value: Any = b"" if field.element in ("string", "bytes") or field.scalar is None else 0
    for number, _, part in _fields(_expect_bytes(data)):
        if number == 1:
            key = _text(part)
        elif number == 2:
            value = part
    if field.scalar is not None:
        return key, field.scalar(value)
    return key, _message(field.element, _expect_bytes(value), depth + 1)


# The wire format: https://protobuf.dev/programming-guides/encoding/


def _fields(data: Any) -> Iterator[tuple[int, int, Any]]:
    """(field number, wire type, value): an unsigned number of a varint, the bytes of everything else."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, wire, value
            continue
        if wire == _BYTES:
            length, position = _varint(data, position)
        elif wire == _FIXED64:
            length = 8
        elif wire == _FIXED32:
            length = 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if number == 0:
            raise ProtobufError("proto: illegal tag 0")
        if position + length > end:
            raise ProtobufError("unexpected EOF")
        yield number, wire, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, position
    raise ProtobufError("proto: integer overflow")


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


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


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType for a number")
    return value - (1 << 64) if value >> 63 else value


def _double(value: Any) -> float:
    return float(struct.unpack("<d", _expect_bytes(value))[0])


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "bytes": lambda value: base64.b64encode(_expect_bytes(value)).decode(),
    "bool": lambda value: bool(_signed(value)),
    "int32": _signed,
    "int64": _signed,
    "double": _double,
}


# Messages whose JSON form is not an object of their fields.


def _moment(data: bytes) -> tuple[int, int]:
    seconds = nanoseconds = 0
    for number, _, value in _fields(data):
        if number == 1:
            seconds = _signed(value)
        elif number == 2:
            nanoseconds = _signed(value)
    return seconds, nanoseconds


def _time(data: bytes) -> str | None:
    """An empty message is the zero time, null in JSON."""
    if not data:
        return None
    seconds, _ = _moment(data)
    try:
        return timestamps.format_time(seconds)
    except (ValueError, OverflowError, OSError) as error:
        raise ProtobufError(f"a time is out of range: {seconds}") from error


def _micro_time(data: bytes) -> str | None:
    if not data:
        return None
    seconds, nanoseconds = _moment(data)
    try:
        whole = timestamps.format_time(seconds)
    except (ValueError, OverflowError, OSError) as error:
        raise ProtobufError(f"a time is out of range: {seconds}") from error
    return f"{whole[:-1]}.{nanoseconds // 1000:06d}Z"


def _duration(data: bytes) -> str:
    nanoseconds = next((_signed(value) for number, _, value in _fields(data) if number == 1), 0)
    return timestamps.format_duration(nanoseconds)


def _quantity(data: bytes) -> str:
    return next((_text(value) for number, _, value in _fields(data) if number == 1), "0")


def _int_or_string(data: bytes) -> int | str:
    values = {number: value for number, _, value in _fields(data)}
    if values.get(1, 0) == 1:
        return _text(values.get(3, b""))
    return _signed(values.get(2, 0))


def _raw_json(data: bytes) -> Any:
    """A message whose one field is raw: JSON, or an object in this very form."""
    raw = next((_expect_bytes(value) for number, _, value in _fields(data) if number == 1), b"")
    if not raw:
        return None
    if raw[:4] == MAGIC:
        return decode(raw)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ProtobufError(f"a raw value is no JSON: {error}") from error


_SPECIAL: dict[str, Callable[[bytes], Any]] = {
    _META + "Time": _time,
    _META + "MicroTime": _micro_time,
    _META + "Duration": _duration,
    _META + "FieldsV1": _raw_json,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    _EXTENSIONS + "v1.JSON": _raw_json,
}


def _items(value: Object) -> Any:
    return value.get("items") or []


def _schema_or_bool(value: Object) -> Any:
    return value["schema"] if value.get("schema") is not None else bool(value.get("allows"))


def _schema_or_array(value: Object) -> Any:
    return value["schema"] if value.get("schema") is not None else value.get("jSONSchemas") or []


def _schema_or_strings(value: Object) -> Any:
    return value["schema"] if value.get("schema") is not None else value.get("property") or []


_UNWRAPPED: dict[str, Callable[[Object], Any]] = {
    _META + "Verbs": _items,
    "k8s.io.api.authentication.v1.ExtraValue": _items,
    "k8s.io.api.authorization.v1.ExtraValue": _items,
    "k8s.io.api.certificates.v1.ExtraValue": _items,
    _EXTENSIONS + "v1.JSONSchemaPropsOrBool": _schema_or_bool,
    _EXTENSIONS + "v1.JSONSchemaPropsOrArray": _schema_or_array,
    _EXTENSIONS + "v1.JSONSchemaPropsOrStringArray": _schema_or_strings,
}
