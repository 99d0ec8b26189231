"""The server's side of one HTTP/2 connection: frames in, frames out, streams, flow control (RFC 9113). No socket, no clock.

    connection = Connection(write, read_head, open_stream)
    connection.feed(bytes from the peer)        # raises Http2Error: write connection.goaway(...) and close
    connection.pause() / connection.resume()    # the transport's buffer is full / has room again

``read_head`` makes of a request's header fields what ``open_stream`` wants to know of it. Clients repeat themselves: while a
connection's HPACK table stands still, equal blocks mean equal fields, so heads are kept by their bytes and a repeated one costs a look-up.

| what a peer can make grow | limit | beyond it |
|---|---|---|
| streams at once | ``max_concurrent_streams`` | the stream is refused |
| a request's header fields | ``HEADER_BLOCK_BYTES_MAX`` | the connection ends |
| unread bytes of one stream | its window | the connection ends |
| unread bytes of all streams | ``BUFFERED_BYTES_MAX`` | the stream that brought them ends |
| answers that the peer does not read | what its windows allow, and one message a stream | the sender waits in ``drained`` |
| acknowledgements that the peer does not read | ``UNREAD_CONTROL_FRAMES_MAX`` | the connection ends |
"""

from __future__ import annotations

import abc
import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import hpack

from storage.etcdserver import http2_frames as frames
from storage.etcdserver.http2_frames import ErrorCode, FrameType, Http2Error, Setting

HEADER_BLOCK_BYTES_MAX: Final = 64 * 1024
"""Compressed and plain alike; etcd's requests have under a kilobyte."""
CONTINUATIONS_MAX: Final = 16
"""Frames that one block may come in: empty ones would else go on for ever."""
HEADS_KEPT_MAX: Final = 64
"""Different request heads kept by their bytes; more are forgotten together."""
CONNECTION_WINDOW_BYTES: Final = 16 * 1024 * 1024
"""What a peer may send before it hears from us. It is topped up as data arrives, so that streams cannot starve each other."""
BUFFERED_BYTES_MAX: Final = 64 * 1024 * 1024
UNREAD_CONTROL_FRAMES_MAX: Final = 1000

_PRIORITY_BYTES: Final = 5

Write = Callable[[bytes], object]
ReadHead = Callable[[list[tuple[bytes, bytes]]], Any]


class Stream(abc.ABC):
    """One request and its answer. Subclasses are told what the peer does, and send by way of ``connection``."""

    __slots__ = (
        "_drained",
        "_trailers",
        "_unsent",
        "buffered_bytes",
        "connection",
        "has_ended",
        "id",
        "peer_has_ended",
        "receive_window",
        "send_window",
        "uncredited_bytes",
    )

    def __init__(self, connection: Connection, stream_id: int) -> None:
        self.connection = connection
        self.id = stream_id
        self.send_window = connection.peer_stream_window
        self.receive_window = connection.stream_window
        self.uncredited_bytes = 0
        self.buffered_bytes = 0
        self.peer_has_ended = False
        self.has_ended = False
        self._unsent: deque[memoryview] | None = None
        self._trailers: bytes | None = None
        self._drained: asyncio.Future[None] | None = None

    @abc.abstractmethod
    def data_received(self, data: bytes) -> None:
        """Some bytes of the request, never none."""

    @abc.abstractmethod
    def end_received(self) -> None:
        """The peer sends nothing more on this stream."""

    @abc.abstractmethod
    def aborted(self) -> None:
        """The peer gave the stream up, or the connection is gone: nothing can be sent any more. Called once."""


class Connection:
    def __init__(
        self,
        write: Write,
        read_head: ReadHead,
        open_stream: Callable[[Connection, int, Any], Stream],
        *,
        stream_window: int,
        max_concurrent_streams: int,
    ) -> None:
        """Writes our SETTINGS at once. ``open_stream`` gets what ``read_head`` made of the request's fields."""
        self._write = write
        self._read_head = read_head
        self._open_stream = open_stream
        self._max_concurrent_streams = max_concurrent_streams
        self._decoder = hpack.Decoder(max_header_list_size=HEADER_BLOCK_BYTES_MAX)
        self._heads: dict[bytes, Any] = {}
        self._rest = b""
        self._preface_pending = True
        self._settings_pending = True
        self._block: list[bytes] | None = None
        self._block_stream_id = 0
        self._block_flags = 0
        self._last_stream_id = 0
        self._received_bytes = 0
        self._receive_window = CONNECTION_WINDOW_BYTES
        self._send_window = frames.WINDOW_DEFAULT
        self._paused = False
        self._unread_control_frames = 0
        self._blocked: dict[Stream, None] = {}
        self._going_away = False
        self.peer_stream_window = frames.WINDOW_DEFAULT
        self.stream_window = stream_window
        self.streams: dict[int, Stream] = {}
        self.buffered_bytes = 0
        write(
            frames.settings(
                (
                    (Setting.MAX_CONCURRENT_STREAMS, max_concurrent_streams),
                    (Setting.INITIAL_WINDOW_SIZE, stream_window),
                    (Setting.MAX_HEADER_LIST_SIZE, HEADER_BLOCK_BYTES_MAX),
                )
            )
            + frames.window_update(0, CONNECTION_WINDOW_BYTES - frames.WINDOW_DEFAULT)
        )

    # -- from the peer

    def feed(self, data: bytes) -> None:
        """Take what has arrived. Raises Http2Error when the connection cannot go on."""
        if self._rest:
            data = self._rest + data
        position = 0
        if self._preface_pending:
            if not self._maybe_skip_preface(data):
                self._rest = data
                return
            position = len(frames.PREFACE)
        size = len(data)
        while size - position >= frames.FRAME_HEAD_BYTES:
            high, low, kind, flags, stream_id = frames.FRAME_HEAD.unpack_from(data, position)
            length = high << 8 | low
            if length > frames.FRAME_PAYLOAD_BYTES_MAX:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
            start = position + frames.FRAME_HEAD_BYTES
            if size - start < length:
                break
            position = start + length
            self._frame(kind, flags, stream_id & frames.STREAM_ID_MAX, data[start:position])
        self._rest = data[position:]
        if self._unread_control_frames > UNREAD_CONTROL_FRAMES_MAX:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "the peer asks and does not read the answers")

    def _maybe_skip_preface(self, data: bytes) -> bool:
        size = len(frames.PREFACE)
        if not frames.PREFACE.startswith(data[:size]):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "not HTTP/2")
        self._preface_pending = len(data) < size
        return not self._preface_pending

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if self._settings_pending and kind != FrameType.SETTINGS:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        if self._block is not None and (kind != FrameType.CONTINUATION or stream_id != self._block_stream_id):
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a header block is interrupted")
        if kind == FrameType.DATA:
            self._data(flags, stream_id, payload)
        elif kind == FrameType.HEADERS:
            self._headers(flags, stream_id, payload)
        elif kind == FrameType.WINDOW_UPDATE:
            self._window_update(stream_id, payload)
        elif kind == FrameType.PING:
            self._ping(flags, stream_id, payload)
        elif kind == FrameType.RST_STREAM:
            self._rst_stream(stream_id, payload)
        elif kind == FrameType.SETTINGS:
            self._settings(flags, stream_id, payload)
        elif kind == FrameType.CONTINUATION:
            self._continuation(flags, payload)
        elif kind == FrameType.PRIORITY:
            if stream_id == 0:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "PRIORITY of no stream")
            if len(payload) != _PRIORITY_BYTES:
                self._control(frames.rst_stream(stream_id, ErrorCode.FRAME_SIZE_ERROR))
        elif kind == FrameType.PUSH_PROMISE:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a client cannot push")
        elif kind == FrameType.GOAWAY and stream_id != 0:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        # a client's GOAWAY needs no answer: it ends the connection when its streams are done; unknown types are passed over (§5.5)

    def _data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._receive_window -= size
        if self._receive_window < 0:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "more than the connection's window")
        self._received_bytes += size
        if self._received_bytes >= CONNECTION_WINDOW_BYTES // 2:
            self._receive_window += self._received_bytes
            self._control(frames.window_update(0, self._received_bytes))
            self._received_bytes = 0
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
            return  # it ended here; the peer has yet to hear of it
        if stream.peer_has_ended:
            self.reset(stream, ErrorCode.STREAM_CLOSED)
            stream.aborted()
            return
        stream.receive_window -= size
        if stream.receive_window < 0:
            raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "more than the stream's window")
        if flags & frames.PADDED:
            payload = _unpad(payload)
            self.credit(stream, size - len(payload))
        if payload:
            stream.data_received(payload)
            if self.buffered_bytes > BUFFERED_BYTES_MAX and not stream.has_ended:
                self.reset(stream, ErrorCode.ENHANCE_YOUR_CALM)
                stream.aborted()
                return
        if flags & frames.END_STREAM and not stream.has_ended:
            stream.peer_has_ended = True
            stream.end_received()

    def _headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id % 2 == 0:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"a client cannot open stream {stream_id}")
        if flags & frames.PADDED:
            payload = _unpad(payload)
        if flags & frames.PRIORITY:
            if len(payload) < _PRIORITY_BYTES:
                raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short")
            payload = payload[_PRIORITY_BYTES:]
        if flags & frames.END_HEADERS:
            self._header_block(flags, stream_id, payload)
        else:
            self._block, self._block_stream_id, self._block_flags = [payload], stream_id, flags

    def _continuation(self, flags: int, payload: bytes) -> None:
        block = self._block
        if block is None:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        block.append(payload)
        if len(block) > CONTINUATIONS_MAX or sum(map(len, block)) > HEADER_BLOCK_BYTES_MAX:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "too many header fields")
        if flags & frames.END_HEADERS:
            self._block = None
            self._header_block(self._block_flags, self._block_stream_id, b"".join(block))

    def _header_block(self, flags: int, stream_id: int, block: bytes) -> None:
        head = self._heads.get(block)
        if head is None:
            head = self._decode(block)
        if stream_id <= self._last_stream_id:
            stream = self.streams.get(stream_id)
            if stream is None:
                return  # trailers of a stream that ended here
            if not flags & frames.END_STREAM or stream.peer_has_ended:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "a second head on a stream")
            stream.peer_has_ended = True
            stream.end_received()
            return
        self._last_stream_id = stream_id
        if self._going_away or len(self.streams) >= self._max_concurrent_streams:
            self._control(frames.rst_stream(stream_id, ErrorCode.REFUSED_STREAM))
            return
        stream = self._open_stream(self, stream_id, head)
        if stream.has_ended:
            return
        self.streams[stream_id] = stream
        if flags & frames.END_STREAM:
            stream.peer_has_ended = True
            stream.end_received()

    def _decode(self, block: bytes) -> Any:
        entries = self._decoder.header_table.dynamic_entries
        size, newest = len(entries), entries[0] if entries else None
        try:
            fields = self._decoder.decode(block, raw=True)
        except hpack.HPACKError as error:
            raise Http2Error(ErrorCode.COMPRESSION_ERROR, str(error)) from error
        head = self._read_head([(field[0], field[1]) for field in fields])
        if len(entries) != size or (entries and entries[0] is not newest):
            # the table moved: what the kept blocks refer to may be something else now
            self._heads.clear()
        elif len(self._heads) >= HEADS_KEPT_MAX:
            self._heads.clear()
            self._heads[block] = head
        else:
            self._heads[block] = head
        return head

    def _window_update(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "WINDOW_UPDATE has four bytes")
        increment = int.from_bytes(payload, "big") & frames.WINDOW_MAX
        if stream_id == 0:
            self._send_window += increment
            if increment == 0 or self._send_window > frames.WINDOW_MAX:
                raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR if increment else ErrorCode.PROTOCOL_ERROR, "a bad window")
            self._flush_blocked()
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
            return
        stream.send_window += increment
        if increment == 0 or stream.send_window > frames.WINDOW_MAX:
            self.reset(stream, ErrorCode.FLOW_CONTROL_ERROR if increment else ErrorCode.PROTOCOL_ERROR)
            stream.aborted()
        elif stream in self._blocked:
            self._flush(stream)

    def _ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id != 0 or len(payload) != 8:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR if stream_id else ErrorCode.FRAME_SIZE_ERROR, "a bad PING")
        if not flags & frames.ACK:
            self._control(frames.frame(FrameType.PING, frames.ACK, 0, payload))

    def _rst_stream(self, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "RST_STREAM has four bytes")
        self._check_not_idle(stream_id)
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._forget(stream)
            stream.aborted()

    def _settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id != 0:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if len(payload) % 6 or (flags & frames.ACK and payload):
            raise Http2Error(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS cut off")
        self._settings_pending = False
        if flags & frames.ACK:
            return
        for name, value in struct.iter_unpack(">HI", payload):
            if name == Setting.INITIAL_WINDOW_SIZE:
                if value > frames.WINDOW_MAX:
                    raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window over 2**31 - 1")
                change = value - self.peer_stream_window
                self.peer_stream_window = value
                for stream in self.streams.values():
                    stream.send_window += change
                    if stream.send_window > frames.WINDOW_MAX:
                        raise Http2Error(ErrorCode.FLOW_CONTROL_ERROR, "a window over 2**31 - 1")
            elif name == Setting.ENABLE_PUSH and value > 1:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH is 0 or 1")
            elif name == Setting.MAX_FRAME_SIZE and not frames.FRAME_PAYLOAD_BYTES_MAX <= value < 1 << 24:
                raise Http2Error(ErrorCode.PROTOCOL_ERROR, "MAX_FRAME_SIZE out of bounds")
        self._control(frames.frame(FrameType.SETTINGS, frames.ACK, 0))
        self._flush_blocked()

    def _check_not_idle(self, stream_id: int) -> None:
        if stream_id == 0 or stream_id > self._last_stream_id:
            raise Http2Error(ErrorCode.PROTOCOL_ERROR, f"stream {stream_id} has not begun")

    # -- to the peer

    def credit(self, stream: Stream, size: int) -> None:
        """``size`` bytes of the stream are taken: the peer may send as many more."""
        stream.uncredited_bytes += size
        if stream.uncredited_bytes >= self.stream_window // 2 and not stream.peer_has_ended and not stream.has_ended:
            stream.receive_window += stream.uncredited_bytes
            self._control(frames.window_update(stream.id, stream.uncredited_bytes))
            stream.uncredited_bytes = 0

    def hold(self, stream: Stream, size: int) -> None:
        """The stream keeps ``size`` more unread bytes (less, if negative)."""
        stream.buffered_bytes += size
        self.buffered_bytes += size

    def send_head(self, stream: Stream, block: bytes) -> None:
        if not stream.has_ended:
            self._write(frames.frame(FrameType.HEADERS, frames.END_HEADERS, stream.id, block))

    def send(self, stream: Stream, data: bytes, trailers: bytes | None = None, head: bytes | None = None) -> None:
        """Send an optional head, ``data``, and with ``trailers`` end the stream; in one write where the windows allow it, else what is
        left goes as they open. Nothing is sent on a stream that has ended."""
        if stream.has_ended:
            return
        size = len(data)
        if (
            stream._unsent is None
            and size <= stream.send_window
            and size <= self._send_window
            and size <= frames.FRAME_PAYLOAD_BYTES_MAX
            and not self._paused
        ):
            stream.send_window -= size
            self._send_window -= size
            pack, stream_id = frames.FRAME_HEAD.pack, stream.id
            out = data
            if size:
                out = pack(size >> 8, size & 0xFF, 0, 0, stream_id) + data
            if head is not None:
                length = len(head)
                out = pack(length >> 8, length & 0xFF, 1, frames.END_HEADERS, stream_id) + head + out
            if trailers is not None:
                length = len(trailers)
                out += pack(length >> 8, length & 0xFF, 1, frames.END_HEADERS | frames.END_STREAM, stream_id) + trailers
                if not stream.peer_has_ended:
                    # the answer is complete: the peer need not send the rest of its request (§8.1)
                    out += frames.rst_stream(stream_id, ErrorCode.NO_ERROR)
                self._forget(stream)
            self._write(out)
            return
        if head is not None:
            self.send_head(stream, head)
        if stream._unsent is None:
            stream._unsent = deque()
        if data:
            stream._unsent.append(memoryview(data))
        if trailers is not None:
            stream._trailers = trailers
        self._blocked[stream] = None
        self._flush(stream)

    async def drained(self, stream: Stream) -> None:
        """Return when all that was sent on the stream is with the transport, or the stream has ended."""
        while stream._unsent is not None and not stream.has_ended:
            if stream._drained is None or stream._drained.done():
                stream._drained = asyncio.get_running_loop().create_future()
            await stream._drained

    def reset(self, stream: Stream, code: ErrorCode) -> None:
        """End the stream at once, without an answer."""
        if not stream.has_ended:
            self._forget(stream)
            self._control(frames.rst_stream(stream.id, code))

    def goaway(self, code: ErrorCode = ErrorCode.NO_ERROR, text: str = "") -> None:
        """Refuse streams from now on; those that are open go on."""
        self._going_away = True
        self._write(frames.goaway(self._last_stream_id, code, text))

    @property
    def is_paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._unread_control_frames = 0
        self._flush_blocked()

    def lost(self) -> None:
        """The transport is gone."""
        for stream in list(self.streams.values()):
            self._forget(stream)
            stream.aborted()

    def _flush_blocked(self) -> None:
        for stream in list(self._blocked):
            self._flush(stream)

    def _flush(self, stream: Stream) -> None:
        unsent = stream._unsent
        assert unsent is not None, stream.id
        out: list[bytes | memoryview] = []
        room = 0 if self._paused else min(stream.send_window, self._send_window)
        while unsent and room > 0:
            chunk = unsent.popleft()
            limit = min(room, frames.FRAME_PAYLOAD_BYTES_MAX)
            if len(chunk) > limit:
                unsent.appendleft(chunk[limit:])
                chunk = chunk[:limit]
            size = len(chunk)
            room -= size
            stream.send_window -= size
            self._send_window -= size
            out += (frames.FRAME_HEAD.pack(size >> 8, size & 0xFF, FrameType.DATA, 0, stream.id), chunk)
        if not unsent and not self._paused:
            stream._unsent = None
            del self._blocked[stream]
            if stream._trailers is not None:
                out.append(frames.frame(FrameType.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream.id, stream._trailers))
                if not stream.peer_has_ended:
                    out.append(frames.rst_stream(stream.id, ErrorCode.NO_ERROR))
                self._forget(stream)
            elif stream._drained is not None and not stream._drained.done():
                stream._drained.set_result(None)
        if out:
            self._write(b"".join(out))

    def _control(self, data: bytes) -> None:
        if self._paused:
            self._unread_control_frames += 1
        self._write(data)

    def _forget(self, stream: Stream) -> None:
        stream.has_ended = True
        self.streams.pop(stream.id, None)
        self._blocked.pop(stream, None)
        self.buffered_bytes -= stream.buffered_bytes
        stream.buffered_bytes = 0
        stream._unsent = None
        if stream._drained is not None and not stream._drained.done():
            stream._drained.set_result(None)


def _unpad(payload: bytes) -> bytes:
    """Raises Http2Error where there is more padding than payload."""
    if not payload or payload[0] >= len(payload):
        raise Http2Error(ErrorCode.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
