"""``mvccpb.KeyValue`` to and from protobuf, by hand: the innermost step of every read and write.

Fields: 1 key (bytes), 2 create_revision, 3 mod_revision, 4 version, 5 value (bytes), 6 lease (varints). A field that is zero or
empty is left out. Fields come in the order of their numbers, as Go's encoder writes them, so equal values are equal bytes; the
decoder takes the usual order in one straight pass and any other order in a slow one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from storage.api import KeyValue
from storage.errors import CorruptError

_UINT64 = 0xFFFF_FFFF_FFFF_FFFF

# A frozen dataclass's __init__ goes through object.__setattr__ six times. Filling the slots through their descriptors builds the
# same object in half the time, and decoding is where most objects of the store are made.
_new: Callable[[type[KeyValue]], KeyValue] = KeyValue.__new__
_slots: Any = KeyValue
_set_key = _slots.key.__set__
_set_create_revision = _slots.create_revision.__set__
_set_mod_revision = _slots.mod_revision.__set__
_set_version = _slots.version.__set__
_set_value = _slots.value.__set__
_set_lease = _slots.lease.__set__


def new_key_value(key: bytes, create_revision: int, mod_revision: int, version: int, value: bytes, lease: int) -> KeyValue:
    kv = _new(KeyValue)
    _set_key(kv, key)
    _set_create_revision(kv, create_revision)
    _set_mod_revision(kv, mod_revision)
    _set_version(kv, version)
    _set_value(kv, value)
    _set_lease(kv, lease)
    return kv


def varint(number: int) -> bytes:
    """A base-128 varint; negative numbers are in 64-bit two's complement."""
    if 0 <= number < 0x80:
        return bytes((number,))
    if 0 <= number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    number &= _UINT64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned number at ``position`` and where the next field begins. Raises IndexError at the end of the data."""
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _UINT64, position
        shift += 7
        if shift > 63:
            raise CorruptError("a varint is longer than ten bytes")


def to_int64(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def encode(kv: KeyValue) -> bytes:
    return encode_fields(kv.key, kv.create_revision, kv.mod_revision, kv.version, kv.value, kv.lease)


def encode_fields(key: bytes, create_revision: int, mod_revision: int, version: int, value: bytes, lease: int) -> bytes:
    parts: list[bytes] = []
    if key:
        parts += (b"\x0a", varint(len(key)), key)
    if create_revision:
        parts += (b"\x10", varint(create_revision))
    if mod_revision:
        parts += (b"\x18", varint(mod_revision))
    if version:
        parts += (b"\x20", varint(version))
    if value:
        parts += (b"\x2a", varint(len(value)), value)
    if lease:
        parts += (b"\x30", varint(lease))
    return b"".join(parts)


def decode(data: bytes, *, with_value: bool = True) -> KeyValue:
    """The KeyValue in ``data``; without its value if that is not wanted. Raises CorruptError."""
    try:
        return _decode_in_order(data, with_value)
    except IndexError as error:
        raise CorruptError("a KeyValue in the backend is cut short") from error


def decode_key(data: bytes) -> bytes:
    """Only the key. Raises CorruptError."""
    try:
        if data[0] != 0x0A:
            return _decode_any_order(data).key
        length = data[1]
        position = 2
        if length > 0x7F:
            length, position = read_varint(data, 1)
    except IndexError as error:
        raise CorruptError("a KeyValue in the backend is cut short") from error
    return data[position : position + length]


def _decode_in_order(data: bytes, with_value: bool) -> KeyValue:
    size = len(data)
    if not size or data[0] != 0x0A:
        return _decode_any_order(data)
    length = data[1]
    position = 2
    if length > 0x7F:
        length, position = read_varint(data, 1)
    key = data[position : position + length]
    position += length
    numbers = [0, 0, 0]
    for field, tag in enumerate(b"\x10\x18\x20"):
        if position >= size or data[position] != tag:
            continue
        number = data[position + 1]
        position += 2
        if number > 0x7F:
            byte = data[position]
            position += 1
            number = number & 0x7F | (byte & 0x7F) << 7
            if byte > 0x7F:
                byte = data[position]
                position += 1
                number |= (byte & 0x7F) << 14
                if byte > 0x7F:
                    more, position = read_varint(data, position)
                    number = to_int64((number | more << 21) & _UINT64)
        numbers[field] = number
    value = b""
    if position < size and data[position] == 0x2A:
        length = data[position + 1]
        position += 2
        if length > 0x7F:
            length, position = read_varint(data, position - 1)
        if with_value:
            value = data[position : position + length]
        position += length
    lease = 0
    if position < size and data[position] == 0x30:
        lease, position = read_varint(data, position + 1)
        lease = to_int64(lease)
    if position == size:
        return new_key_value(key, numbers[0], numbers[1], numbers[2], value, lease)
    if position > size:
        raise IndexError
    kv = _decode_any_order(data)
    return kv if with_value else new_key_value(kv.key, kv.create_revision, kv.mod_revision, kv.version, b"", kv.lease)


def _decode_any_order(data: bytes) -> KeyValue:
    """By the rules of protobuf: any order, the last one of a field counts, unknown fields are skipped."""
    key = value = b""
    numbers = {2: 0, 3: 0, 4: 0, 6: 0}
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position)
        field, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            number, position = read_varint(data, position)
            if field in numbers:
                numbers[field] = to_int64(number)
        elif wire_type == 2:
            length, position = read_varint(data, position)
            if position + length > len(data):
                raise IndexError
            chunk = data[position : position + length]
            position += length
            if field == 1:
                key = chunk
            elif field == 5:
                value = chunk
        elif wire_type in (1, 5):
            position += 8 if wire_type == 1 else 4
        else:
            raise CorruptError(f"a KeyValue in the backend has wire type {wire_type}")
    if position > len(data):
        raise IndexError
    return new_key_value(key, numbers[2], numbers[3], numbers[4], value, numbers[6])
