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

_INT64_MAX = 0x7FFF_FFFF_FFFF_FFFF
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
    if 0 <= number < _SMALL_VARINTS_END:
        return _SMALL_VARINTS[number]
    return _long_varint(number)


def _long_varint(number: int) -> bytes:
    number &= _UINT64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# Lengths, versions and the revisions of a young store come from here; half a megabyte buys a microsecond per write.
_SMALL_VARINTS_END = 1 << 14
_SMALL_VARINTS = [_long_varint(number) for number in range(_SMALL_VARINTS_END)]


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


def read_int64(data: bytes, position: int) -> tuple[int, int]:
    number, position = read_varint(data, position)
    return to_int64(number), position


def encode(kv: KeyValue) -> bytes:
    return encode_fields(kv.key, kv.create_revision, kv.mod_revision, kv.version, kv.value, kv.lease)


def encode_fields(key: bytes, create_revision: int, mod_revision: int, version: int, value: bytes, lease: int) -> bytes:
    if not key or not create_revision or not version:
        return _encode_sparse(key, create_revision, mod_revision, version, value, lease)
    mod = varint(mod_revision)
    created = mod if create_revision == mod_revision else varint(create_revision)
    parts = [b"\x0a", varint(len(key)), key, b"\x10", created, b"\x18", mod, b"\x20", varint(version)]
    if value:
        parts += (b"\x2a", varint(len(value)), value)
    if lease:
        parts += (b"\x30", varint(lease))
    return b"".join(parts)


def encode_tombstone(key: bytes) -> bytes:
    """The record of a deletion: only the key."""
    return b"\x0a" + varint(len(key)) + key


def _encode_sparse(key: bytes, create_revision: int, mod_revision: int, version: int, value: bytes, lease: int) -> bytes:
    numbers = ((b"\x10", create_revision), (b"\x18", mod_revision), (b"\x20", version))
    parts = [b"\x0a", varint(len(key)), key] if key else []
    for tag, number in numbers:
        if number:
            parts += (tag, varint(number))
    if value:
        parts += (b"\x2a", varint(len(value)), value)
    if lease:
        parts += (b"\x30", varint(lease))
    return b"".join(parts)


def decode(data: bytes, *, with_value: bool = True) -> KeyValue:
    """The KeyValue in ``data``; without its value if that is not wanted. Raises CorruptError."""
    try:
        size = len(data)
        if not size or data[0] != 0x0A:
            return _decode_any_order(data, with_value)
        length = data[1]
        position = 2
        if length > 0x7F:
            length, position = read_varint(data, 1)
        key = data[position : position + length]
        position += length
        # create_revision, mod_revision, version, the value's length: four times the same steps, written out because a call costs more
        # than they do. Adding (byte - 1) << shift adds the seven bits of this byte and takes away the continuation bit of the one before.
        create_revision = mod_revision = version = 0
        if position < size and data[position] == 0x10:
            byte = create_revision = data[position + 1]
            position += 2
            shift = 7
            while byte > 0x7F:
                byte = data[position]
                create_revision += (byte - 1) << shift
                position += 1
                shift += 7
        if position < size and data[position] == 0x18:
            byte = mod_revision = data[position + 1]
            position += 2
            shift = 7
            while byte > 0x7F:
                byte = data[position]
                mod_revision += (byte - 1) << shift
                position += 1
                shift += 7
        if position < size and data[position] == 0x20:
            byte = version = data[position + 1]
            position += 2
            shift = 7
            while byte > 0x7F:
                byte = data[position]
                version += (byte - 1) << shift
                position += 1
                shift += 7
        value = b""
        if position < size and data[position] == 0x2A:
            byte = length = data[position + 1]
            position += 2
            shift = 7
            while byte > 0x7F:
                byte = data[position]
                length += (byte - 1) << shift
                position += 1
                shift += 7
            if with_value:
                value = data[position : position + length]
            position += length
        lease = 0
        if position < size and data[position] == 0x30:
            lease, position = read_int64(data, position + 1)
        if create_revision | mod_revision | version > _INT64_MAX:
            return _decode_any_order(data, with_value)
        if position == size:
            return new_key_value(key, create_revision, mod_revision, version, value, lease)
        if position > size:
            raise IndexError
        return _decode_any_order(data, with_value)
    except IndexError as error:
        raise CorruptError("a KeyValue in the backend is cut short") from error


def decode_key(data: bytes) -> bytes:
    """Only the key. Raises CorruptError."""
    try:
        if not data or data[0] != 0x0A:
            return _decode_any_order(data, False).key
        length = data[1]
        position = 2
        if length > 0x7F:
            length, position = read_varint(data, 1)
    except IndexError as error:
        raise CorruptError("a KeyValue in the backend is cut short") from error
    return data[position : position + length]


def _decode_any_order(data: bytes, with_value: bool) -> KeyValue:
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
            elif field == 5 and with_value:
                value = chunk
        elif wire_type in (1, 5):
            position += 8 if wire_type == 1 else 4
        else:
            raise CorruptError(f"a KeyValue in the backend has wire type {wire_type}")
    if position > len(data):
        raise IndexError
    return new_key_value(key, numbers[2], numbers[3], numbers[4], value, numbers[6])
