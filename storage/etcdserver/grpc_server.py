"""gRPC over HTTP/2 (the protocol's ``PROTOCOL-HTTP2``): from a stream's bytes to a call of a method, and its answer and status back.

A method's handler is a coroutine function. Without client streaming it gets the decoded request and the call, else the call alone,
which it reads with ``Call.receive``. With server streaming it writes messages with ``Call.send``, else it returns the one answer.
It raises ``StoreError`` or ``RpcError``; anything else is a fault of ours, logged, and INTERNAL for the client. When the client gives up,
or its deadline passes, the handler's task is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import re
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError

from storage import errors
from storage.etcdpb import services
from storage.etcdserver import http2_frames as frames
from storage.etcdserver import rpctypes
from storage.etcdserver.http2 import Connection, Stream
from storage.etcdserver.pages import PageOf, PageStream
from storage.etcdserver.rpctypes import Code, RpcError, Status

logger = logging.getLogger(__name__)

_PREFIX: Final = struct.Struct(">BI")
"""Before each message: whether it is compressed, and its length."""
_HEAD_BLOCK: Final = b"\x88" + frames.header_block(((b"content-type", b"application/grpc"),))
_OK_TRAILERS: Final = frames.header_block(((b"grpc-status", b"0"), (b"grpc-message", b"")))
_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])")
_TIMEOUT_UNIT_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}

Handler = Callable[..., Awaitable[Any]]


class MethodStats:
    """Calls of one method: begun, and ended by their code; messages each way."""

    __slots__ = ("handled", "received", "sent", "started")

    def __init__(self) -> None:
        self.started = 0
        self.handled: dict[Code, int] = {}
        self.received = 0
        self.sent = 0


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod:
    """A method that is served."""

    method: services.Method
    handler: Handler
    stats: MethodStats


@dataclass(slots=True)
class ServerStats:
    methods: list[BoundMethod] = field(default_factory=list)
    received_bytes: int = 0
    sent_bytes: int = 0
    client_requests: dict[tuple[str, str], int] = field(default_factory=dict)
    """By ``unary`` or ``stream`` and the client's API version."""
    stream_failures: dict[tuple[str, str], int] = field(default_factory=dict)
    """By ``receive`` or ``send`` and the stream's kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """What a request's header fields say. ``method`` is None for what is no gRPC request or names no method; ``refusal`` says why."""

    verb: str
    path: str
    is_grpc: bool
    method: BoundMethod | None
    refusal: Status | None
    metadata: Mapping[str, str]
    timeout_seconds: float | None


Admit = Callable[[BoundMethod, Mapping[str, str], Any], None]
"""Called with the method, the metadata and (unary calls) the request before the handler; raises RpcError to refuse."""


class GrpcServer:
    """The methods and what all connections share."""

    def __init__(self, *, message_bytes_max: int, admit: Admit, page_of: PageOf) -> None:
        self.message_bytes_max = message_bytes_max
        self.admit = admit
        self.stats = ServerStats()
        self.calls: dict[Call, None] = {}
        self.is_stopping = False
        self._page_of = page_of
        self._methods: dict[str, BoundMethod] = {}
        self._services: set[str] = set()

    def add(self, handlers: Mapping[str, Handler]) -> None:
        """``handlers`` by path, ``/package.Service/Method``."""
        for path, handler in handlers.items():
            method = services.methods()[path]
            bound = BoundMethod(method, handler, MethodStats())
            self._methods[path] = bound
            self._services.add(method.service)
            self.stats.methods.append(bound)

    def connect(self, write: Callable[[bytes], object], *, max_concurrent_streams: int) -> Connection:
        return Connection(
            write,
            self._read_head,
            self._open_stream,
            # a unary request fits into the window, so that only streaming calls must credit what they have read
            stream_window=self.message_bytes_max + frames.WINDOW_DEFAULT,
            max_concurrent_streams=max_concurrent_streams,
        )

    def end_streams(self) -> None:
        """Calls that would go on for ever end, so that their clients go elsewhere; no new ones are let in."""
        self.is_stopping = True
        for call in list(self.calls):
            if call.bound.method.server_streaming or call.bound.method.client_streaming:
                call.end(errors.StoppedError())

    def _read_head(self, fields: list[tuple[bytes, bytes]]) -> Head:
        metadata: dict[str, str] = {}
        for name, value in fields:
            metadata[name.decode("latin-1")] = value.decode("utf-8", "surrogateescape")
        verb, path = metadata.get(":method", ""), metadata.get(":path", "")
        is_grpc = verb == "POST" and metadata.get("content-type", "").startswith("application/grpc")
        method = self._methods.get(path) if is_grpc else None
        refusal, timeout = None, None
        if is_grpc:
            try:
                timeout = _timeout_seconds(metadata.get("grpc-timeout"))
            except ValueError as error:
                refusal = Status(Code.INTERNAL, f"malformed grpc-timeout: {error}")
            if method is None:
                refusal = self._unknown(path)
        return Head(verb, path, is_grpc, method, refusal, metadata, timeout)

    def _unknown(self, path: str) -> Status:
        service, slash, method = path.removeprefix("/").rpartition("/")
        if not slash:
            return Status(Code.UNIMPLEMENTED, f'malformed method name: "{path}"')
        if service in self._services:
            return Status(Code.UNIMPLEMENTED, f"unknown method {method} for service {service}")
        return Status(Code.UNIMPLEMENTED, f"unknown service {service}")

    def _open_stream(self, connection: Connection, stream_id: int, head: Head) -> Stream:
        if not head.is_grpc:
            return PageStream(connection, stream_id, head.verb, head.path, self._page_of)
        if head.refusal is not None or head.method is None:
            refused = _RefusedStream(connection, stream_id)
            status = head.refusal
            assert status is not None, head.path
            connection.send(refused, b"", status_block(status, whole=True))
            return refused
        return Call(connection, stream_id, self, head, head.method)


class _RefusedStream(Stream):
    """Answered before anything was read; what still comes is passed over."""

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        pass

    def end_received(self) -> None:
        pass

    def aborted(self) -> None:
        pass


class Call(Stream):
    """One call of a method."""

    __slots__ = (
        "_buffer",
        "_head_sent",
        "_messages",
        "_receiver",
        "_server",
        "_status",
        "_timer",
        "bound",
        "metadata",
        "task",
    )

    def __init__(self, connection: Connection, stream_id: int, server: GrpcServer, head: Head, bound: BoundMethod) -> None:
        super().__init__(connection, stream_id)
        self.bound = bound
        self.metadata = head.metadata
        self._server = server
        self._buffer: bytearray | None = None
        self._messages: deque[bytes] | None = None
        self._receiver: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._head_sent = False
        self._status: Status | None = None
        bound.stats.started += 1
        server.calls[self] = None
        if head.timeout_seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(head.timeout_seconds, self.end, RpcError(Code.DEADLINE_EXCEEDED, "context deadline exceeded"))
        if server.is_stopping:
            self.end(errors.StoppedError())
        elif bound.method.client_streaming:
            self._messages = deque()
            self.task = asyncio.get_running_loop().create_task(self._run_streaming())

    # -- for handlers

    async def receive(self) -> Any:
        """The client's next message, decoded; None once it has said that there are no more. Raises RpcError for one that is none."""
        messages = self._messages
        assert messages is not None, "only a call with client streaming is read"
        while not messages:
            if self.peer_has_ended:
                return None
            self._receiver = asyncio.get_running_loop().create_future()
            await self._receiver
        data = messages.popleft()
        self.connection.hold(self, -len(data))
        self.connection.credit(self, len(data) + _PREFIX.size)
        return _decoded(self.bound.method.request_class, data)

    async def send(self, message: Any) -> None:
        """Send one message; returns when no part of it waits here any more, so that a slow client slows its sender."""
        if not self.send_now(message.SerializeToString()):
            await self.connection.drained(self)

    def send_now(self, data: bytes) -> bool:
        """Send one encoded message without waiting; False if some of it (or of one before) still waits for the client."""
        self._send(data, None)
        return self._unsent is None

    @property
    def has_unsent(self) -> bool:
        """Whether something still waits for the client to read."""
        return self._unsent is not None

    # -- from the connection

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        if buffer is not None:
            self.connection.hold(self, len(data))
            buffer += data
            if len(buffer) < _PREFIX.size:
                return
            compressed, size = _PREFIX.unpack_from(buffer)
            if not self._accepts(compressed, size) or len(buffer) < _PREFIX.size + size:
                return
            data = bytes(buffer)
            self.connection.hold(self, -len(buffer))
            self._buffer = None
        position = 0
        while position < len(data):
            rest = len(data) - position
            if rest >= _PREFIX.size:
                compressed, size = _PREFIX.unpack_from(data, position)
                if not self._accepts(compressed, size):
                    return
                end = position + _PREFIX.size + size
                if end <= len(data):
                    self._message_received(data[position + _PREFIX.size : end])
                    position = end
                    continue
            self._buffer = bytearray(data[position:])
            self.connection.hold(self, rest)
            return

    def end_received(self) -> None:
        if self._buffer is not None:
            self.end(RpcError(Code.INTERNAL, "the request ends within a message"))
            return
        if self._messages is None:
            self.end(RpcError(Code.INTERNAL, "the request has no message"))
        elif self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._run())
        else:
            self._wake()

    def aborted(self) -> None:
        self._finish(Status(Code.CANCELED, "context canceled"))
        self._cancel()

    # -- life

    def end(self, error: errors.StoreError | RpcError) -> None:
        """End the call with an error, whatever its handler does."""
        self._fail(rpctypes.status_of(error))
        self._cancel()

    def _cancel(self) -> None:
        if self.task is not None and not self.task.done() and self.task is not asyncio.current_task():
            self.task.cancel()

    def _accepts(self, compressed: int, size: int) -> bool:
        if compressed:
            encoding = self.metadata.get("grpc-encoding", "identity")
            self.end(RpcError(Code.UNIMPLEMENTED, f'grpc: Decompressor is not installed for grpc-encoding "{encoding}"'))
            return False
        limit = self._server.message_bytes_max
        if size > limit:
            self.end(RpcError(Code.RESOURCE_EXHAUSTED, f"grpc: received message larger than max ({size} vs. {limit})"))
            return False
        return True

    def _message_received(self, message: bytes) -> None:
        self.bound.stats.received += 1
        self._server.stats.received_bytes += len(message)
        if self._messages is None:
            self._messages = deque()
        elif not self.bound.method.client_streaming:
            self.end(RpcError(Code.INTERNAL, "the request has more than one message"))
            return
        self._messages.append(message)
        if self.bound.method.client_streaming:
            self.connection.hold(self, len(message))
            self._wake()

    def _wake(self) -> None:
        if self._receiver is not None and not self._receiver.done():
            self._receiver.set_result(None)

    async def _run(self) -> None:
        """A call with one request message."""
        bound, method = self.bound, self.bound.method
        assert self._messages is not None, method.path
        try:
            request = _decoded(method.request_class, self._messages.popleft())
            self._server.admit(bound, self.metadata, request)
            response = await bound.handler(request, self)
            if method.server_streaming:
                self._succeed(None)
            else:
                self._succeed(response.SerializeToString())
        except (errors.StoreError, RpcError) as error:
            self._fail(rpctypes.status_of(error))
        except Exception as error:
            self._fault(error)

    async def _run_streaming(self) -> None:
        try:
            self._server.admit(self.bound, self.metadata, None)
            response = await self.bound.handler(self)
            self._succeed(None if response is None else response.SerializeToString())
        except (errors.StoreError, RpcError) as error:
            self._fail(rpctypes.status_of(error))
        except Exception as error:
            self._fault(error)

    def _fault(self, error: Exception) -> None:
        logger.error("%s failed", self.bound.method.path, exc_info=error)
        self._fail(Status(Code.INTERNAL, f"{type(error).__name__}: {error}"))

    def _send(self, data: bytes, trailers: bytes | None) -> None:
        if self.has_ended:
            return
        self.bound.stats.sent += 1
        self._server.stats.sent_bytes += len(data)
        head = None if self._head_sent else _HEAD_BLOCK
        self._head_sent = True
        self.connection.send(self, _PREFIX.pack(0, len(data)) + data, trailers, head)

    def _succeed(self, data: bytes | None) -> None:
        if data is not None:
            self._send(data, _OK_TRAILERS)
        elif self._head_sent:
            self.connection.send(self, b"", _OK_TRAILERS)
        else:
            self.connection.send(self, b"", _HEAD_BLOCK + _OK_TRAILERS)
        self._finish(_OK)

    def _fail(self, status: Status) -> None:
        self.connection.send(self, b"", status_block(status, whole=not self._head_sent))
        self._finish(status)

    def _finish(self, status: Status) -> None:
        """Count the call's end, once."""
        if self._status is not None:
            return
        self._status = status
        handled = self.bound.stats.handled
        handled[status.code] = handled.get(status.code, 0) + 1
        self._server.calls.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()


_OK: Final = Status(Code.OK, "")


def status_block(status: Status, *, whole: bool) -> bytes:
    """The trailers that carry a status; ``whole``: with the head that was not sent before."""
    trailers = frames.header_block(((b"grpc-status", b"%d" % status.code), (b"grpc-message", _percent_encoded(status.text))))
    return _HEAD_BLOCK + trailers if whole else trailers


def _percent_encoded(text: str) -> bytes:
    """Bytes that are not printable ASCII, and ``%``, as ``%XX``."""
    return b"".join(
        bytes((byte,)) if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte for byte in text.encode("utf-8", "replace")
    )


def _timeout_seconds(text: str | None) -> float | None:
    if text is None:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise ValueError(repr(text))
    return int(match[1]) * _TIMEOUT_UNIT_SECONDS[match[2]]


def _decoded(request_class: Any, data: bytes) -> Any:
    try:
        return request_class.FromString(data)
    except DecodeError as error:
        raise RpcError(Code.INTERNAL, "grpc: error unmarshalling request: not a message of the kind expected") from error
