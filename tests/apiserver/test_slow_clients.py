"""Clients that take their time, or never come to an end: each costs a bounded time and a bounded memory. On plain sockets, with bounds made
short; each test fails where its bound is taken away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from apiserver import http_listener, http_protocol
from apiserver.http_listener import HttpListener
from tests.apiserver.api import Api
from tests.apiserver.test_http_protocol import CM, HEAD, listening, read_head

#: far beyond what a bound of the tests is, far below the real ones
SECONDS_MAX = 20.0


async def test_a_head_sent_byte_by_byte_has_no_longer_than_one_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowloris: every byte is progress, the head is what has a bound."""
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_SECONDS", 0.2)
    async with listening(api.server.app) as (_, port), asyncio.timeout(SECONDS_MAX):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def drip() -> None:
            writer.write(b"GET /version HTTP/1.1\r\nX: ")
            while True:
                writer.write(b"a")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        finally:
            dripping.cancel()
            writer.close()


async def test_a_head_without_end_is_refused_once_it_is_too_large(api: Api) -> None:
    async with listening(api.server.app) as (_, port), asyncio.timeout(SECONDS_MAX):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /version HTTP/1.1\r\n")
        sent = 0
        while sent < 2 * http_protocol.HEAD_BYTES_MAX and not reader.at_eof():
            line = b"X-%d: %b\r\n" % (sent, b"a" * 60_000)
            writer.write(line)
            sent += len(line)
            try:
                await writer.drain()
            except ConnectionError:
                break
            await asyncio.sleep(0)
        assert sent <= 2 * http_protocol.HEAD_BYTES_MAX
        with_answer = b""
        with contextlib.suppress(ConnectionError):
            with_answer = await reader.read()
        assert with_answer == b"" or with_answer.startswith(b"HTTP/1.1 431")
        writer.close()


@pytest.mark.parametrize(("size", "answer"), [(-100, b"201"), (100, b"431")])
async def test_the_limit_of_a_head_is_of_the_head_alone(api: Api, size: int, answer: bytes) -> None:
    """Its end may come with what makes it too large, or with a body that is not of it."""
    async with listening(api.server.app) as (_, port), asyncio.timeout(SECONDS_MAX):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        start, end = (
            f"POST {CM}?dryRun=All&x=".encode(),
            f" HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\nContent-Length: 400032\r\n\r\n",
        )
        url = start + b"a" * (http_protocol.HEAD_BYTES_MAX + size - len(start) - len(end))
        writer.write(url + end.encode() + b'{"metadata":{"generateName":"a"}' + b" " * 399_999 + b"}")
        with contextlib.suppress(ConnectionError):
            assert (await reader.readline()).split()[1] == answer
        writer.close()


async def test_a_body_that_stops_half_way_ends_with_its_request(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "DRAIN_SECONDS", 0.1)
    async with listening(api.server.app) as (_, port), asyncio.timeout(SECONDS_MAX):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST {CM}?timeout=200ms HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        writer.write(head.encode() + b'{"metadata":')
        assert (await read_head(reader))[0] == 504
        rest = await reader.read()
        assert b"request did not complete within the allotted timeout" in rest, "and then the connection is closed"
        writer.close()
    flow = api.server.dispatcher
    assert flow is not None and flow.mutating_in_flight == 0, "its seat is free again"


@pytest.mark.parametrize("path", [f"{CM}/big-0", f"{CM}?timeout=300ms"])
async def test_an_answer_that_nobody_reads_does_not_stay_in_memory(api: Api, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """One that was written whole has the time of an idle connection and a little more; one that goes out in pieces that of its request."""
    monkeypatch.setattr(http_protocol, "KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(http_protocol, "FLUSH_SECONDS", 0.2)
    for n in range(4):
        await api.created(CM, {"metadata": {"name": f"big-{n}"}, "data": {"k": "x" * 900_000}})
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # connections have the listener's
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    http = HttpListener(api.server.app, sock, None)
    await http.start()
    client = socket.socket()
    try:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(sock.getsockname())
        client.sendall(f"GET {path} HTTP/1.1\r\n{HEAD}\r\n".encode())
        async with asyncio.timeout(SECONDS_MAX):
            await until(lambda: bool(http._state.connections))
            await until(lambda: not http._state.connections)
    finally:
        client.close()
        await http.stop()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)


class Endless:
    """An application whose answer does not end; ``sent``: how much of it was taken."""

    def __init__(self, piece: int) -> None:
        self.sent = 0
        self._piece = b"x" * piece

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": self._piece, "more_body": True})
            self.sent += len(self._piece)
            assert self.sent < 64 * 1024 * 1024, "nobody reads it"


@contextlib.asynccontextmanager
async def reader_that_does_not_read(app: Endless) -> AsyncIterator[Any]:
    """The connection to one, once it has to be waited for."""
    async with listening(app) as (http, port), asyncio.timeout(SECONDS_MAX):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            await until(lambda: any(connection.flow.write_paused for connection in set[Any](http._state.connections)))
            connections: set[Any] = set(http._state.connections)
            (connection,) = connections
            yield connection
            connection.cut()
        finally:
            client.close()


async def test_little_is_made_for_a_reader_that_does_not_read() -> None:
    """Neither this process nor the kernel keeps megabytes for it."""
    app = Endless(16 * 1024)
    async with reader_that_does_not_read(app):
        assert app.sent <= http_protocol.WRITE_BUFFER_BYTES_MAX + http_listener.UNSENT_BYTES_MAX + 256 * 1024


async def test_what_waits_in_this_process_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "WRITE_BUFFER_BYTES_MAX", 8192)
    async with reader_that_does_not_read(Endless(4096)) as connection:
        assert connection.transport.get_write_buffer_size() <= 8192 + 4096 + 100
