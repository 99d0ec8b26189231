"""The wire format of protocol buffers: https://protobuf.dev/programming-guides/encoding/"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10
_UNSIGNED_64 = 0xFFFFFFFFFFFFFFFF

#: The varints of one byte, by their value.
ONE_BYTE = tuple(bytes([value]) for value in range(128))


class ProtobufError(ValueError):
    """The bytes, or the object, are not what they claim to be; the text is for the client."""


class SaidKindError(ProtobufError):
    """The envelope is whole and says its kind; what is wrong is behind it."""

    def __init__(self, api_version: str, kind: str, text: str) -> None:
        super().__init__(text)
        self.api_version = api_version
        self.kind = kind


class UnknownKindError(SaidKindError):
    """No message is published for the kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(api_version, kind, f"no protobuf form of {api_version}, Kind={kind} is known")


class MessageError(SaidKindError):
    """The object's own message is damaged."""


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(field number, wire type, value) of a message: an unsigned number of a varint, the bytes of everything else. Raises
    ProtobufError."""
    position, end = 0, len(data)
    while position < end:
        tag = data[position]
        if tag < 0x80:
            position += 1
        else:
            tag, position = varint(data, position)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ProtobufError(f"proto: illegal tag 0 (wire type {wire})")
        if wire == BYTES:
            length, position = varint(data, position)
        elif wire == VARINT:
            value, position = varint(data, position)
            yield number, wire, value
            continue
        elif wire == FIXED64:
            length = 8
        elif wire == FIXED32:
            length = 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if position + length > end:
            raise ProtobufError("unexpected EOF")
        yield number, wire, data[position : position + length]
        position += length


def varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned number at ``position`` and the position behind it. Raises ProtobufError."""
    result = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        if position >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _UNSIGNED_64, position
    raise ProtobufError("proto: integer overflow")


def packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = varint(data, position)
        yield value


def write_varint(value: int) -> bytes:
    """Of a signed or unsigned number of 64 bits; negative ones take ten bytes. Raises ProtobufError."""
    if 0 <= value < 128:
        return ONE_BYTE[value]
    if not -(1 << 63) <= value <= _UNSIGNED_64:
        raise ProtobufError(f"a number does not fit into 64 bits: {value}")
    value &= _UNSIGNED_64
    out = bytearray()
    while value >= 128:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire: int) -> bytes:
    return write_varint(number << 3 | wire)


def with_length(tag: bytes, data: bytes) -> bytes:
    """A field of bytes: ``tag`` as ``tag()`` makes it, the length, the bytes."""
    length = len(data)
    return tag + (ONE_BYTE[length] if length < 128 else write_varint(length)) + data
