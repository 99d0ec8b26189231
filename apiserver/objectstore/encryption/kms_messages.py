"""The messages of a KMS plugin (service ``v2.KeyManagementService``, k8s.io/kms ``apis/v2/api.proto``) and of what is stored of an object
(``kmsv2/v2/api.proto``), in protobuf's wire form. A message is a mapping of field numbers; there are strings, bytes, one enumeration, and
maps of strings to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_VARINT, _BYTES = 0, 2


class MessageError(ValueError):
    """No such message."""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise MessageError("a number is cut off")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def encode(fields: Mapping[int, bytes | str | int | Mapping[str, bytes]]) -> bytes:
    """Fields in order of their numbers; empty ones are left out."""
    out = bytearray()
    for number, value in sorted(fields.items()):
        if not value:
            continue
        if isinstance(value, int):
            out += _varint(number << 3 | _VARINT) + _varint(value)
            continue
        if isinstance(value, Mapping):
            entries = [encode({1: key, 2: content}) for key, content in sorted(value.items())]
        else:
            entries = [value.encode() if isinstance(value, str) else value]
        for entry in entries:
            out += _varint(number << 3 | _BYTES) + _varint(len(entry)) + entry
    return bytes(out)


@dataclass(slots=True)
class Message:
    numbers: dict[int, int] = field(default_factory=dict)
    parts: dict[int, list[bytes]] = field(default_factory=dict)

    def bytes_of(self, number: int) -> bytes:
        found = self.parts.get(number)
        return found[-1] if found else b""

    def text_of(self, number: int) -> str:
        return self.bytes_of(number).decode("utf-8", "replace")

    def map_of(self, number: int) -> dict[str, bytes]:
        entries = [decode(part) for part in self.parts.get(number, ())]
        return {entry.text_of(1): entry.bytes_of(2) for entry in entries}


def decode(data: bytes) -> Message:
    """Raises MessageError."""
    out, at = Message(), 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            out.numbers[number], at = _read_varint(data, at)
        elif wire == _BYTES:
            length, at = _read_varint(data, at)
            if at + length > len(data):
                raise MessageError("a field is cut off")
            out.parts.setdefault(number, []).append(data[at : at + length])
            at += length
        else:
            raise MessageError(f"a field of wire type {wire}")
    return out
