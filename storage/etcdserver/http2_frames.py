"""HTTP/2's frames as bytes (RFC 9113 §4, §6), and header fields in HPACK's plainest form (RFC 7541 §6.2.2)."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEAD: Final = struct.Struct(">HBBBI")
"""Length (16 bits, then 8), type, flags, stream; the stream's top bit is reserved."""
FRAME_HEAD_BYTES: Final = 9
STREAM_ID_MAX: Final = 0x7FFF_FFFF
WINDOW_MAX: Final = 0x7FFF_FFFF
WINDOW_DEFAULT: Final = 65_535
FRAME_PAYLOAD_BYTES_MAX: Final = 16_384
"""What every peer takes and we take (SETTINGS_MAX_FRAME_SIZE's least value)."""


class FrameType(enum.IntEnum):
    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITY: Final = 0x20


class ErrorCode(enum.IntEnum):
    """RFC 9113 §7."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Setting(enum.IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class Http2Error(Exception):
    """The connection cannot go on: the peer broke the protocol."""

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    size = len(payload)
    return FRAME_HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream_id) + payload


def settings(values: Iterable[tuple[Setting, int]]) -> bytes:
    return frame(FrameType.SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in values))


def window_update(stream_id: int, increment: int) -> bytes:
    return frame(FrameType.WINDOW_UPDATE, 0, stream_id, increment.to_bytes(4, "big"))


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    return frame(FrameType.RST_STREAM, 0, stream_id, int(code).to_bytes(4, "big"))


def goaway(last_stream_id: int, code: ErrorCode, text: str = "") -> bytes:
    return frame(FrameType.GOAWAY, 0, 0, struct.pack(">II", last_stream_id, code) + text.encode()[:1000])


def header_block(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Literals that enter no table: the block is the same on every connection, so it can be made once."""
    parts: list[bytes] = []
    for name, value in fields:
        parts += (b"\0", _integer(len(name)), name, _integer(len(value)), value)
    return b"".join(parts)


def _integer(value: int) -> bytes:
    """With a prefix of seven bits (RFC 7541 §5.1), the first one (Huffman) not set."""
    if value < 127:
        return bytes((value,))
    value -= 127
    octets = bytearray((127,))
    while value >= 128:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
