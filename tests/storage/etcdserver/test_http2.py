"""HTTP/2 connections, driven without sockets: by the ``h2`` library as the client, and by bytes that no client should send."""

from __future__ import annotations

import asyncio
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.etcdserver import http2, http2_frames
from storage.etcdserver.http2 import Connection, Stream
from storage.etcdserver.http2_frames import ErrorCode, FrameType, Http2Error

HEAD = http2_frames.header_block(((b":status", b"200"),))
WINDOW = 100_000


class RecordingStream(Stream):
    """Keeps what the peer does; takes each piece of data at once."""

    __slots__ = ("data", "ended", "gone", "head")

    def __init__(self, connection: Connection, stream_id: int, head: Any) -> None:
        super().__init__(connection, stream_id)
        self.head = head
        self.data = b""
        self.ended = False
        self.gone = False

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.connection.credit(self, len(data))

    def end_received(self) -> None:
        self.ended = True

    def aborted(self) -> None:
        self.gone = True


class Pair:
    """A client of the ``h2`` library and our server; ``exchange`` carries bytes until neither has any."""

    def __init__(self, *, max_concurrent_streams: int = 100) -> None:
        self.streams: list[RecordingStream] = []
        self.outgoing: list[bytes] = []
        self.events: list[Any] = []
        self.server = Connection(
            self.outgoing.append, dict, self._open, stream_window=WINDOW, max_concurrent_streams=max_concurrent_streams
        )
        self.client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding=None))
        self.client.initiate_connection()
        self.exchange()

    def _open(self, connection: Connection, stream_id: int, head: Any) -> Stream:
        stream = RecordingStream(connection, stream_id, head)
        self.streams.append(stream)
        return stream

    def exchange(self) -> None:
        while (data := self.client.data_to_send()) or self.outgoing:
            if data:
                self.server.feed(data)
            received, self.outgoing[:] = b"".join(self.outgoing), []
            self.events += self.client.receive_data(received)

    def request(self, stream_id: int, body: bytes = b"", *, more: bool = False, extra: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/s/m"), (b":authority", b"a"), *extra]
        self.client.send_headers(stream_id, fields)
        while body:
            size = min(len(body), self.client.local_flow_control_window(stream_id), self.client.max_outbound_frame_size)
            self.client.send_data(stream_id, body[:size])
            body = body[size:]
            self.exchange()
        if not more:
            self.client.end_stream(stream_id)
        self.exchange()

    def of_type(self, kind: Any) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def test_request_and_answer() -> None:
    pair = Pair()
    pair.request(1, b"question")
    [stream] = pair.streams
    assert (stream.head[b":path"], stream.data, stream.ended) == (b"/s/m", b"question", True)
    pair.server.send(stream, b"answer", http2_frames.header_block(((b"grpc-status", b"0"),)), HEAD)
    pair.exchange()
    assert [event.data for event in pair.of_type(h2.events.DataReceived)] == [b"answer"]
    assert dict(pair.of_type(h2.events.TrailersReceived)[0].headers)[b"grpc-status"] == b"0"
    assert pair.of_type(h2.events.StreamEnded) and not pair.server.streams


def test_repeated_heads_are_recognised_also_after_the_table_moved() -> None:
    pair = Pair()
    for number in range(40):
        # every fourth brings a field that enters the table, and moves what the other blocks refer to
        extra = ((b"x-%d" % (number // 4), b"v" * 200),)
        pair.request(2 * number + 1, extra=extra)
        assert pair.streams[-1].head[extra[0][0]] == extra[0][1]
        assert pair.streams[-1].head[b":path"] == b"/s/m"


def test_a_large_request_passes_through_the_windows() -> None:
    pair = Pair()
    body = bytes(range(256)) * 8000
    pair.request(1, body)
    assert pair.streams[0].data == body


async def test_a_large_answer_waits_for_the_client() -> None:
    pair = Pair()
    pair.request(1)
    body = bytes(range(256)) * 2000
    pair.server.send(pair.streams[0], body, None, HEAD)
    waiting = asyncio.ensure_future(pair.server.drained(pair.streams[0]))
    pair.exchange()
    await asyncio.sleep(0)
    received = b"".join(event.data for event in pair.of_type(h2.events.DataReceived))
    assert received == body[: http2_frames.WINDOW_DEFAULT] and not waiting.done()
    pair.events.clear()
    pair.client.increment_flow_control_window(len(body))
    pair.client.increment_flow_control_window(len(body), 1)
    pair.exchange()
    await waiting
    assert received + b"".join(event.data for event in pair.of_type(h2.events.DataReceived)) == body


def test_a_client_that_changes_its_mind_about_the_window() -> None:
    pair = Pair()
    pair.request(1)
    pair.client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 10})
    pair.exchange()
    pair.server.send(pair.streams[0], b"x" * 100, b"", HEAD)
    pair.exchange()
    assert [event.data for event in pair.of_type(h2.events.DataReceived)] == [b"x" * 10]
    pair.client.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 1000})
    pair.exchange()
    assert b"".join(event.data for event in pair.of_type(h2.events.DataReceived)) == b"x" * 100
    assert pair.of_type(h2.events.StreamEnded)


def test_nothing_is_written_while_the_transport_is_full() -> None:
    pair = Pair()
    pair.request(1)
    pair.server.pause()
    pair.server.send(pair.streams[0], b"later", b"", HEAD)
    pair.exchange()
    assert not pair.of_type(h2.events.DataReceived)
    pair.server.resume()
    pair.exchange()
    assert [event.data for event in pair.of_type(h2.events.DataReceived)] == [b"later"]


def test_more_streams_than_allowed_are_refused() -> None:
    pair = Pair(max_concurrent_streams=1)
    pair.request(1)
    pair.client.remote_settings[h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS] = 10
    pair.client.remote_settings.acknowledge()
    pair.request(3)
    assert len(pair.streams) == 1
    assert [(event.stream_id, event.error_code) for event in pair.of_type(h2.events.StreamReset)] == [(3, ErrorCode.REFUSED_STREAM)]


def test_reset_by_the_client_and_the_end_of_the_connection() -> None:
    pair = Pair()
    pair.request(1, more=True)
    pair.request(3, more=True)
    pair.client.reset_stream(1)
    pair.exchange()
    assert [stream.gone for stream in pair.streams] == [True, False]
    pair.server.send(pair.streams[0], b"too late", b"", HEAD)
    pair.server.lost()
    assert [stream.gone for stream in pair.streams] == [True, True]


def test_going_away_refuses_new_streams_and_finishes_old_ones() -> None:
    pair = Pair()
    pair.request(1)
    pair.server.goaway()
    pair.outgoing.clear()  # the client has not heard of it when it asks again
    pair.request(3)
    assert len(pair.streams) == 1
    pair.server.send(pair.streams[0], b"still", b"", HEAD)
    pair.exchange()
    assert [event.data for event in pair.of_type(h2.events.DataReceived)] == [b"still"]


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return http2_frames.frame(kind, flags, stream_id, payload)


GET = b"\x82\x84\x86"
OPEN = frame(FrameType.HEADERS, http2_frames.END_HEADERS, 1, GET)

BROKEN = {
    "no preface": (b"GET / HTTP/1.1\r\n\r\n", ErrorCode.PROTOCOL_ERROR),
    "SETTINGS do not come first": (http2_frames.PREFACE + frame(FrameType.PING, 0, 0, b"8 bytes!"), ErrorCode.PROTOCOL_ERROR),
    "an even stream": (frame(FrameType.HEADERS, http2_frames.END_HEADERS, 2, GET), ErrorCode.PROTOCOL_ERROR),
    "data on an idle stream": (frame(FrameType.DATA, 0, 1, b"x"), ErrorCode.PROTOCOL_ERROR),
    "reset of an idle stream": (frame(FrameType.RST_STREAM, 0, 1, b"\0\0\0\0"), ErrorCode.PROTOCOL_ERROR),
    "a frame too long": (b"\x00\x40\x01" + bytes([FrameType.DATA, 0]) + b"\0\0\0\1", ErrorCode.FRAME_SIZE_ERROR),
    "an interrupted block": (frame(FrameType.HEADERS, 0, 1, GET) + frame(FrameType.PING, 0, 0, b"8 bytes!"), ErrorCode.PROTOCOL_ERROR),
    "a block without a beginning": (frame(FrameType.CONTINUATION, 4, 1, GET), ErrorCode.PROTOCOL_ERROR),
    "endless blocks": (
        frame(FrameType.HEADERS, 0, 1, GET) + 100 * frame(FrameType.CONTINUATION, 0, 1), ErrorCode.ENHANCE_YOUR_CALM
    ),
    "an index that is none": (frame(FrameType.HEADERS, http2_frames.END_HEADERS, 1, b"\xff\xff\xff\x7f"), ErrorCode.COMPRESSION_ERROR),
    "more padding than payload": (OPEN + frame(FrameType.DATA, http2_frames.PADDED, 1, b"\x05abc"), ErrorCode.PROTOCOL_ERROR),
    "a push": (frame(FrameType.PUSH_PROMISE, 4, 1, b"\0\0\0\2"), ErrorCode.PROTOCOL_ERROR),
    "a window of zero more": (frame(FrameType.WINDOW_UPDATE, 0, 0, b"\0\0\0\0"), ErrorCode.PROTOCOL_ERROR),
    "a window too large": (frame(FrameType.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), ErrorCode.FLOW_CONTROL_ERROR),
    "settings cut off": (frame(FrameType.SETTINGS, 0, 0, b"abc"), ErrorCode.FRAME_SIZE_ERROR),
    "a ping too short": (frame(FrameType.PING, 0, 0, b"abc"), ErrorCode.FRAME_SIZE_ERROR),
    "more than the stream's window": (OPEN + 7 * frame(FrameType.DATA, 0, 1, b"x" * 16_000), ErrorCode.FLOW_CONTROL_ERROR),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_the_protocol_ends_the_connection(name: str) -> None:
    data, code = BROKEN[name]
    if not data.startswith((http2_frames.PREFACE, b"GET")):
        data = http2_frames.PREFACE + frame(FrameType.SETTINGS, 0, 0) + data

    class Silent(RecordingStream):
        __slots__ = ()

        def data_received(self, data: bytes) -> None:
            pass  # never credited

    connection = Connection(lambda data: None, dict, Silent, stream_window=WINDOW, max_concurrent_streams=10)
    with pytest.raises(Http2Error) as caught:
        connection.feed(data)
    assert caught.value.code == code


def test_a_peer_that_only_asks_is_cut_off() -> None:
    written: list[bytes] = []
    connection = Connection(written.append, dict, RecordingStream, stream_window=WINDOW, max_concurrent_streams=10)
    connection.feed(http2_frames.PREFACE + frame(FrameType.SETTINGS, 0, 0))
    connection.pause()
    with pytest.raises(Http2Error):
        for _ in range(http2.UNREAD_CONTROL_FRAMES_MAX + 1):
            connection.feed(frame(FrameType.PING, 0, 0, b"8 bytes!"))


FRAMES = st.builds(
    frame, st.integers(0, 12), st.integers(0, 255), st.sampled_from((0, 1, 2, 3, 5, 2**31 - 1)), st.binary(max_size=40) | st.just(GET)
)


@settings(max_examples=200)
@given(st.lists(FRAMES, max_size=12), st.binary(max_size=20), st.integers(1, 40))
def test_any_frames_give_an_end_or_go_on(sent: list[bytes], tail: bytes, piece: int) -> None:
    """Whatever comes, the connection goes on or raises Http2Error; in one piece or in many makes no difference."""
    data = http2_frames.PREFACE + frame(FrameType.SETTINGS, 0, 0) + b"".join(sent) + tail
    outcomes = []
    for size in (len(data), piece):
        written: list[bytes] = []
        streams: list[RecordingStream] = []

        def opened(connection: Connection, stream_id: int, head: Any, streams: list[RecordingStream] = streams) -> Stream:
            streams.append(RecordingStream(connection, stream_id, head))
            return streams[-1]

        connection = Connection(written.append, dict, opened, stream_window=WINDOW, max_concurrent_streams=3)
        error = None
        try:
            for start in range(0, len(data), size):
                connection.feed(data[start : start + size])
        except Http2Error as caught:
            error = caught.code
        seen = [(stream.id, stream.data, stream.ended, stream.gone) for stream in streams]
        outcomes.append((error, seen, b"".join(written)))
        assert connection.buffered_bytes == 0 and set(connection.streams) <= {stream.id for stream in streams}
    assert outcomes[0] == outcomes[1]
