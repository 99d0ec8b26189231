"""From the JSON form to protobuf: byte for byte what Kubernetes' generated Go code writes.

That code writes the fields in the order of their numbers and

- strings, numbers, booleans and messages that cannot be nil always, zeros and all: so a message has a template, the fields of an empty
  one, in which the fields that an object has take their places;
- what can be nil (``Field.nilable``) only where it is there, even if it is zero;
- every element of a list with its own tag (numbers are not packed), maps as entries sorted by key.

Fields that the message does not have are passed over, and null is nothing.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import orjson

from apiserver.machinery.objects import Object
from apiserver.schemas.protobuf import special, table, wire
from apiserver.schemas.protobuf.table import MAGIC, Field
from apiserver.schemas.protobuf.wire import BYTES, ONE_BYTE, ProtobufError, UnknownKindError, with_length, write_varint

#: JSON value → bytes: a field with its tag, or a message without one
Write = Callable[[Any], bytes]


def encode(obj: Object) -> bytes:
    """The whole form of an object. Raises UnknownKindError, and ProtobufError for values that are not of their fields' types."""
    api_version, kind = obj.get("apiVersion", ""), obj["kind"]  # the oldest documents of discovery have no version
    message = table.message_of(api_version, kind)
    if message is None:
        raise UnknownKindError(api_version, kind)
    return envelope(api_version, kind, encode_message(message, obj))


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """The form of a message: ``runtime.Unknown`` with kind and apiVersion, and no content type."""
    return b"%b%b\x1a\x00\x22\x00" % (envelope_start(api_version, kind, len(message)), message)


def envelope_start(api_version: str, kind: str, message_bytes: int) -> bytes:
    """What stands before a message of so many bytes; behind it stands ``ENVELOPE_END``."""
    type_meta = with_length(b"\x0a", api_version.encode()) + with_length(b"\x12", kind.encode())
    return b"%b%b\x12%b" % (MAGIC, with_length(b"\x0a", type_meta), write_varint(message_bytes))


ENVELOPE_END = b"\x1a\x00\x22\x00"


def encode_message(message: str, value: Any) -> bytes:
    """One message without its envelope. Raises ProtobufError."""
    try:
        return _writer(message)(value)
    except (TypeError, AttributeError, ValueError, KeyError, struct.error) as error:
        if isinstance(error, ProtobufError):
            raise
        raise ProtobufError(f"a value does not fit into {message}: {error}") from error


class _Message:
    """Writes one message; made whole at first use, since schemas of schemas contain themselves."""

    __slots__ = ("_inlined", "_made", "_name", "_slots", "_template")

    def __init__(self, name: str) -> None:
        self._name = name
        self._made = False
        self._template: list[bytes] = []
        self._slots: Mapping[str, tuple[int, Write]] = {}
        self._inlined: tuple[tuple[int, bytes, Field], ...] = ()

    def __call__(self, value: Any) -> bytes:
        if not self._made:
            self._make()
        parts = self._template.copy()
        slots = self._slots
        for name, field_value in value.items():
            slot = slots.get(name)
            if slot is not None and field_value is not None:
                position, write = slot
                parts[position] = write(field_value)
        for position, tag, field in self._inlined:
            parts[position] = _inlined(tag, field, value)
        return b"".join(parts)

    def _make(self) -> None:
        slots: dict[str, tuple[int, Write]] = {}
        template, inlined = [], []
        for position, field in enumerate(table.fields_of(self._name)):
            tag = wire.tag(field.number, _WIRE_TYPES.get(field.type, BYTES))
            if field.inline and field.is_message:
                template.append(b"")
                inlined.append((position, tag, field))
            else:
                slots[field.name] = (position, _field_writer(field, tag))
                template.append(_absent(field, tag))
        self._template, self._slots, self._inlined, self._made = template, slots, tuple(inlined), True


class _Spread:
    """A message whose JSON form is one of several shapes, made an object of its fields first."""

    __slots__ = ("_message", "_spread")

    def __init__(self, name: str) -> None:
        self._message = _Message(name)
        self._spread = special.SPREAD[name]

    def __call__(self, value: Any) -> bytes:
        return self._message(self._spread(value))


_writers: dict[str, Write] = {}


def _writer(message: str) -> Write:
    found = _writers.get(message)
    if found is None:
        found = _writers[message] = _new_writer(message)
    return found


def _new_writer(message: str) -> Write:
    if message in special.WRITERS:
        return special.WRITERS[message]
    if message in special.RAW_JSON:
        return _write_raw_json
    if message in special.SPREAD:
        return _Spread(message)
    if table.is_list_type(message):
        return _write_strings
    return _Message(message)


def _write_raw_json(value: Any) -> bytes:
    return with_length(b"\x0a", orjson.dumps(value))


def _write_strings(value: Any) -> bytes:
    return b"".join([with_length(b"\x0a", text.encode()) for text in value])


def _inlined(tag: bytes, field: Field, parent: Any) -> bytes:
    """The message of fields that stand in the parent's JSON: one that can be nil is there if any of them is."""
    if field.nilable and not any(parent.get(inner.name) is not None for inner in table.fields_of(field.type)):
        return b""
    return with_length(tag, _writer(field.type)(parent))


def _absent(field: Field, tag: bytes) -> bytes:
    """What a field is where the object does not have it."""
    if field.nilable or field.repeated or field.is_map:
        return b""
    if field.is_message:
        return with_length(tag, _zero(field.type))
    return tag + (b"\x00" * 8 if field.type == "double" else b"\x00")


def _zero(message: str) -> bytes:
    """The message of a value that is not there."""
    if message in special.ZEROS:
        return special.ZEROS[message]
    return b"" if message in special.RAW_JSON or table.is_list_type(message) else _writer(message)({})


@lru_cache(maxsize=256)
def _heads(tag: bytes) -> tuple[bytes, ...]:
    """A tag with each length of one byte: shared, since fields have few numbers."""
    return tuple(tag + length for length in ONE_BYTE)


# -- fields, with their tags --------------------------------------------------------------------------------------------------------


def _field_writer(field: Field, tag: bytes) -> Write:
    if field.is_map:
        return _map_writer(field, tag)
    write = _element_writer(field, tag)
    if not field.repeated:
        return write

    def write_all(values: Any) -> bytes:
        return b"".join([write(value) for value in values])

    return write_all


def _element_writer(field: Field, tag: bytes) -> Write:
    if field.is_message:
        return _message_writer(field.type, tag)
    if field.type == "string":
        return _string_writer(tag)
    if field.type == "bool":
        values = {False: tag + b"\x00", True: tag + b"\x01"}
        return values.__getitem__
    if field.type == "bytes":
        return lambda value: with_length(tag, _from_base64(value))
    if field.type == "double":
        return lambda value: tag + struct.pack("<d", value)
    return _integer_writer(tag)


def _string_writer(tag: bytes) -> Write:
    heads = _heads(tag)

    def write(value: Any) -> bytes:
        data: bytes = value.encode()
        length = len(data)
        return heads[length] + data if length < 128 else tag + write_varint(length) + data

    return write


def _integer_writer(tag: bytes) -> Write:
    def write(value: Any) -> bytes:
        if isinstance(value, float):
            if value != int(value):
                raise ProtobufError(f"a number is no integer: {value}")
            value = int(value)
        return tag + write_varint(value)

    return write


def _message_writer(message: str, tag: bytes) -> Write:
    heads = _heads(tag)
    inner: Write | None = None

    def write(value: Any) -> bytes:
        nonlocal inner
        if inner is None:
            inner = _writer(message)
        if value is None:  # an element of a list or a map
            data = _zero(message)
        else:
            data = inner(value)
        length = len(data)
        return heads[length] + data if length < 128 else tag + write_varint(length) + data

    return write


def _map_writer(field: Field, tag: bytes) -> Write:
    if field.is_message:
        write_value = _message_writer(field.type, b"\x12")
    else:
        write_value = _element_writer(field, wire.tag(2, _WIRE_TYPES[field.type]))
    heads = _heads(tag)

    def write(value: Any) -> bytes:
        parts = []
        for key in sorted(value) if len(value) > 1 else value:
            name, entry_value = key.encode(), value[key]
            entry = with_length(b"\x0a", name) + (b"" if entry_value is None and field.type == "bytes" else write_value(entry_value))
            length = len(entry)
            parts.append(heads[length] + entry if length < 128 else tag + write_varint(length) + entry)
        return b"".join(parts)

    return write


def _from_base64(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ProtobufError(f"illegal base64 data: {error}") from error


_WIRE_TYPES = {
    "string": wire.BYTES,
    "bytes": wire.BYTES,
    "bool": wire.VARINT,
    "int32": wire.VARINT,
    "int64": wire.VARINT,
    "double": wire.FIXED64,
}
