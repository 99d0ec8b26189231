"""The client port: its listeners, and what a connection speaks.

A connection is sorted by its first bytes, as etcd does it: HTTP/2's preface leads to gRPC (and the pages), anything else is taken for
HTTP/1.1 and gets a page.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import urllib.parse
from collections.abc import Callable
from typing import Final

from storage.etcdserver import http2_frames as frames
from storage.etcdserver import pages
from storage.etcdserver.grpc_server import GrpcServer
from storage.etcdserver.http2 import Connection
from storage.etcdserver.http2_frames import Http2Error

logger = logging.getLogger(__name__)

HEAD_SECONDS: Final = 10.0
"""From the connection (with TLS: from its handshake) to a preface or an HTTP/1.1 head; then it is closed."""
HTTP1_HEAD_BYTES_MAX: Final = 16 * 1024
WRITE_BUFFER_BYTES: Final = 1024 * 1024
"""What may wait in the transport of a client that does not read; beyond it nothing more is handed to it."""
TLS_HANDSHAKE_SECONDS: Final = 10.0
STOP_SECONDS: Final = 2.0
"""What unary calls in flight get to finish when the port closes."""
KEEP_ALIVE_SECONDS: Final = 60
"""Of silence before TCP asks whether a client is still there: one that vanished must not hold its watches for ever."""

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class ClientPort:
    """``start`` on bound sockets, ``stop``."""

    def __init__(self, server: GrpcServer, page_of: pages.PageOf, *, max_concurrent_streams: int) -> None:
        self._server = server
        self._page_of = page_of
        self._max_concurrent_streams = max_concurrent_streams
        self._listeners: list[asyncio.Server] = []
        self.connections: set[_ClientProtocol] = set()

    async def start(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        """Serve on a bound socket, with TLS if there is a context (whose ALPN must offer h2). May be called more than once."""
        loop = asyncio.get_running_loop()
        handshake = None if context is None else TLS_HANDSHAKE_SECONDS
        self._listeners.append(await loop.create_server(self._protocol, sock=listener, ssl=context, ssl_handshake_timeout=handshake))

    async def stop(self) -> None:
        """No new connections; streaming calls end with UNAVAILABLE, unary ones get ``STOP_SECONDS`` to finish."""
        for listener in self._listeners:
            listener.close()
        for protocol in list(self.connections):
            protocol.go_away()
        self._server.end_streams()
        calls = [call.task for call in self._server.calls if call.task is not None]
        if calls:
            await asyncio.wait(calls, timeout=STOP_SECONDS)
        for protocol in list(self.connections):
            protocol.close()

    def _protocol(self) -> _ClientProtocol:
        return _ClientProtocol(self)

    def connect(self, write: Callable[[bytes], object]) -> Connection:
        return self._server.connect(write, max_concurrent_streams=self._max_concurrent_streams)

    async def page(self, verb: str, path: str) -> pages.Page:
        return await pages.answer(verb, path, self._page_of)


class _ClientProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, port: ClientPort) -> None:
        self._port = port
        self._connection: Connection | None = None
        self._head = b""
        self._out: list[bytes] = []
        self._is_http1 = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        _keep_alive(transport.get_extra_info("socket"))
        self._port.connections.add(self)
        self._timer = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._port.connections.discard(self)
        if self._connection is not None:
            self._connection.lost()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.pause()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.resume()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        connection = self._connection
        if connection is None:
            if self._is_http1:
                self._http1(data)
                return
            self._head += data
            known = self._head[: len(frames.PREFACE)]
            if not frames.PREFACE.startswith(known):
                self._is_http1 = True
                head, self._head = self._head, b""
                self._http1(head)
                return
            if len(known) < len(frames.PREFACE):
                return
            self._timer.cancel()
            connection = self._connection = self._port.connect(self._write)
            data, self._head = self._head, b""
        try:
            connection.feed(data)
        except Http2Error as error:
            logger.debug("connection ends: %s", error)
            connection.goaway(error.code, str(error))
            self.close()
            if connection.is_paused:
                # it does not read, and would keep what waits for it alive
                self._transport.abort()

    def go_away(self) -> None:
        if self._connection is not None:
            self._connection.goaway()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _write(self, data: bytes) -> None:
        """What is written in one pass of the loop goes out together: a batch of writes that became durable is answered in one go, and a
        write to a socket costs as much as everything else that a small request does."""
        self._out.append(data)
        if len(self._out) == 1:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out and not self._transport.is_closing():
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _http1(self, data: bytes) -> None:
        """One request, then the end: pages are asked for by people and once in a while by Prometheus."""
        if self._task is not None:
            return
        self._head += data
        head, end, _ = self._head.partition(b"\r\n\r\n")
        if len(head) > HTTP1_HEAD_BYTES_MAX:
            self._answer(pages.Page(400, pages.TEXT, b"the request's head is too long\n"))
        elif end:
            words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            if len(words) != 3 or not words[2].startswith("HTTP/1."):
                self._answer(pages.Page(400, pages.TEXT, b"not an HTTP request\n"))
                return
            self._timer.cancel()
            self._task = asyncio.get_running_loop().create_task(self._serve_page(words[0], words[1]))

    async def _serve_page(self, verb: str, path: str) -> None:
        self._answer(await self._port.page(verb, path), with_body=verb != "HEAD")

    def _answer(self, page: pages.Page, *, with_body: bool = True) -> None:
        head = (
            f"HTTP/1.1 {page.status} {_REASONS.get(page.status, '')}\r\ncontent-type: {page.content_type}\r\n"
            f"content-length: {len(page.body)}\r\nconnection: close\r\n\r\n"
        )
        self._transport.write(head.encode() + (page.body if with_body else b""))
        self._transport.close()


def _keep_alive(sock: socket.socket | None) -> None:
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", KEEP_ALIVE_SECONDS), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def parse_url(url: str) -> urllib.parse.SplitResult:
    """A listen URL: http or https, an IP address or ``localhost``, a port. Raises ValueError."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port is None or parts.path.strip("/"):
        raise ValueError(f"{url!r} is not a URL such as https://127.0.0.1:2379")
    return parts
