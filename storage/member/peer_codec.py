"""Frames between members. Pure: bytes in, values out.

A connection belongs to one channel and carries frames: four bytes of length (big-endian; of what follows), one byte of type, the
payload. Who dialled speaks first:

    HELLO (magic, version, channel, cluster id, sender, whom it wants, its URLs) ──>
                                    <── WELCOME (cluster id, member id), or REFUSED (reason, text) and the end
    MESSAGES, APPENDS   MESSAGE (a Raft message as in raft.codec) …
    CALLS               CALL (id, method, body) …          <── ANSWER (id, body), FAILURE (id, error's class, text, number)
    SNAPSHOT            SNAPSHOT (size, message), CHUNK (≤ 1 MiB) …, END (bytes sent)     <── TAKEN, FAILURE
    PING (number) at any time                              <── PONG (number)

Everything is bounded: a frame's payload by ``FrameReader.frame_bytes_max``, before HELLO by ``HELLO_BYTES_MAX``. Decoders raise
``FrameError`` and nothing else. TLS looks after integrity, so there are no checksums.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from typing import Any, Final

from storage import errors

MAGIC: Final = b"SAMPANPR"
VERSION: Final = 1

HELLO_BYTES_MAX: Final = 4096
"""Of any frame before the handshake is over: who has not proven anything cannot make us hold more."""

CHUNK_BYTES_MAX: Final = 1024 * 1024
"""Of a snapshot in one frame."""

URLS_MAX: Final = 16
TEXT_BYTES_MAX: Final = 2048
"""Of an error's text; longer ones are cut."""

_HEAD = struct.Struct(">IB")
_HELLO = struct.Struct(">8sHBQQQB")
_WELCOME = struct.Struct(">HQQ")
_CALL = struct.Struct(">QB")
_FAILURE = struct.Struct(">QqBH")
_LENGTH = struct.Struct(">H")
_NUMBER = struct.Struct(">Q")


class FrameError(ValueError):
    """The bytes are no such frame: the connection cannot go on."""


class FrameType(enum.IntEnum):
    HELLO = 1
    WELCOME = 2
    REFUSED = 3
    PING = 4
    PONG = 5
    MESSAGE = 6
    CALL = 7
    ANSWER = 8
    FAILURE = 9
    SNAPSHOT = 10
    CHUNK = 11
    END = 12
    TAKEN = 13


class Channel(enum.IntEnum):
    """What a connection carries. Heartbeats, votes and answers never wait behind the entries of an append."""

    MESSAGES = 1
    APPENDS = 2
    CALLS = 3
    SNAPSHOT = 4


class Refusal(enum.IntEnum):
    VERSION = 1
    CLUSTER = 2
    MEMBER = 3
    REMOVED = 4
    CERTIFICATE = 5
    BUSY = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """``sender`` 0: one that is about to join and has no id (only to call). ``target`` 0: whoever listens there. ``urls``: where the
    sender itself is reached, for a receiver that has not learned of it yet."""

    channel: Channel
    cluster_id: int
    sender: int
    target: int
    urls: tuple[str, ...] = ()
    version: int = VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    cluster_id: int
    member_id: int


@dataclass(frozen=True, slots=True)
class Refused:
    reason: Refusal
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    id: int
    method: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    id: int
    error: errors.StoreError


def frame(kind: FrameType, *parts: bytes) -> bytes:
    return b"".join((_HEAD.pack(1 + sum(map(len, parts)), kind), *parts))


class FrameReader:
    """Cuts a stream into frames. At most one frame and one piece of the stream are held."""

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[FrameType, bytes]]:
        """The frames that ``data`` completes. Raises FrameError; the stream is of no use afterwards."""
        buffer = self._buffer
        buffer += data
        found: list[tuple[FrameType, bytes]] = []
        at, end = 0, len(buffer)
        while end - at >= _HEAD.size:
            length, kind = _HEAD.unpack_from(buffer, at)
            if not 1 <= length <= self.frame_bytes_max + 1:
                raise FrameError(f"a frame of {length - 1} bytes, at most {self.frame_bytes_max} are allowed")
            frame_end = at + 4 + length
            if frame_end > end:
                break
            try:
                found.append((FrameType(kind), bytes(buffer[at + _HEAD.size : frame_end])))
            except ValueError:
                raise FrameError(f"a frame of unknown type {kind}") from None
            at = frame_end
        del buffer[:at]
        return found


# -- handshake


def encode_hello(hello: Hello) -> bytes:
    urls = hello.urls[:URLS_MAX]
    out = [
        _HELLO.pack(MAGIC, hello.version, hello.channel, hello.cluster_id, hello.sender, hello.target, len(urls)),
        *(_LENGTH.pack(len(url.encode())) + url.encode() for url in urls),
    ]
    return frame(FrameType.HELLO, *out)


def decode_hello(data: bytes) -> Hello:
    """What is behind the fixed part may differ in another version, so that is told before it is read."""
    magic, version, channel, cluster_id, sender, target, url_count = _unpack(_HELLO, data, 0)
    if magic != MAGIC:
        raise FrameError("not a member's connection")
    urls: list[str] = []
    if version == VERSION:
        if url_count > URLS_MAX:
            raise FrameError(f"{url_count} URLs, at most {URLS_MAX} are allowed")
        at = _HELLO.size
        for _ in range(url_count):
            (length,) = _unpack(_LENGTH, data, at)
            at += _LENGTH.size
            urls.append(_text(data, at, length))
            at += length
    return Hello(channel=_channel(channel), cluster_id=cluster_id, sender=sender, target=target, urls=tuple(urls), version=version)


def _channel(number: int) -> Channel:
    try:
        return Channel(number)
    except ValueError:
        raise FrameError(f"unknown channel {number}") from None


def encode_welcome(welcome: Welcome) -> bytes:
    return frame(FrameType.WELCOME, _WELCOME.pack(VERSION, welcome.cluster_id, welcome.member_id))


def decode_welcome(data: bytes) -> Welcome:
    _, cluster_id, member_id = _unpack(_WELCOME, data, 0)
    return Welcome(cluster_id=cluster_id, member_id=member_id)


def encode_refused(refused: Refused) -> bytes:
    return frame(FrameType.REFUSED, bytes((refused.reason,)), refused.text.encode()[:TEXT_BYTES_MAX])


def decode_refused(data: bytes) -> Refused:
    if not data:
        raise FrameError("an empty refusal")
    try:
        reason = Refusal(data[0])
    except ValueError:
        raise FrameError(f"unknown reason {data[0]} of a refusal") from None
    return Refused(reason, data[1 : 1 + TEXT_BYTES_MAX].decode("utf-8", "replace"))


# -- calls


def encode_call(call: Call) -> bytes:
    method = call.method.encode()
    return frame(FrameType.CALL, _CALL.pack(call.id, len(method)), method, call.body)


def decode_call(data: bytes) -> Call:
    id_, length = _unpack(_CALL, data, 0)
    return Call(id_, _text(data, _CALL.size, length), data[_CALL.size + length :])


def encode_answer(id_: int, body: bytes) -> bytes:
    return frame(FrameType.ANSWER, _NUMBER.pack(id_), body)


def decode_answer(data: bytes) -> tuple[int, bytes]:
    return decode_number(data), data[_NUMBER.size :]


_ERRORS: Final = {kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.StoreError)}


def encode_failure(failure: Failure) -> bytes:
    """An error of a class that the other side may not know travels as the nearest one of ``storage.errors``."""
    error = failure.error
    name = next(kind.__name__ for kind in type(error).__mro__ if _ERRORS.get(kind.__name__) is kind).encode()
    number = 0
    if isinstance(error, errors.CompactedError):
        number = error.compact_revision
    elif isinstance(error, errors.FutureRevisionError):
        number = error.current_revision
    text = str(error).encode("utf-8", "replace")[:TEXT_BYTES_MAX]
    return frame(FrameType.FAILURE, _FAILURE.pack(failure.id, number, len(name), len(text)), name, text)


def decode_failure(data: bytes) -> Failure:
    """A class that is not known here becomes a plain StoreError with the text."""
    id_, number, name_length, text_length = _unpack(_FAILURE, data, 0)
    name = _text(data, _FAILURE.size, name_length)
    at = _FAILURE.size + name_length
    if len(data) < at + text_length:
        raise FrameError("a failure is cut off")
    text = data[at : at + text_length].decode("utf-8", "replace")
    kind = _ERRORS.get(name, errors.StoreError)
    if kind is errors.CompactedError:
        return Failure(id_, errors.CompactedError(number))
    if kind is errors.FutureRevisionError:
        return Failure(id_, errors.FutureRevisionError(number))
    return Failure(id_, kind(text))


# -- snapshots and pings


def encode_snapshot_head(size: int, message: bytes) -> bytes:
    return frame(FrameType.SNAPSHOT, _NUMBER.pack(size), message)


def decode_snapshot_head(data: bytes) -> tuple[int, bytes]:
    """(size of the database in bytes, 0 where it is not known; the message's bytes)."""
    return decode_number(data), data[_NUMBER.size :]


def number_frame(kind: FrameType, number: int) -> bytes:
    """PING, PONG and END."""
    return frame(kind, _NUMBER.pack(number))


def decode_number(data: bytes) -> int:
    (number,) = _unpack(_NUMBER, data, 0)
    return int(number)


def _unpack(layout: struct.Struct, data: bytes, at: int) -> tuple[Any, ...]:
    try:
        return layout.unpack_from(data, at)
    except struct.error:
        raise FrameError("a frame is cut off") from None


def _text(data: bytes, at: int, length: int) -> str:
    part = data[at : at + length]
    if len(part) < length:
        raise FrameError("a frame is cut off")
    try:
        return part.decode()
    except UnicodeDecodeError:
        raise FrameError("text that is not UTF-8") from None
