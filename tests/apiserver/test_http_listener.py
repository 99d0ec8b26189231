"""Connections are taken while there are descriptors for them, and those that never become one give theirs back."""

from __future__ import annotations

import asyncio
import ctypes
import datetime
import errno
import resource
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver import garbage_collection, http_listener
from apiserver.cli.pki import Pki
from apiserver.http_listener import HttpListener

SECONDS_MAX = 20.0


async def answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def bound() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    return made


async def get(port: int) -> bytes:
    """The answer's status line; empty where the connection was closed before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return (await reader.read()).partition(b"\r\n")[0]
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)


async def test_connections_beyond_the_descriptors_are_closed_and_the_others_served(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [socket.socket() for _ in range(200)]  # of this process as well: their ends have descriptors in between
    first = max(each.fileno() for each in held) + 20
    monkeypatch.setattr(http_listener, "descriptors_for_connections", lambda: first)
    listener = HttpListener(answer, bound(), None)
    port = listener._socket.getsockname()[1]
    await listener.start()
    try:
        async with asyncio.timeout(SECONDS_MAX):
            for each in held:
                each.setblocking(False)
                await asyncio.get_running_loop().sock_connect(each, ("127.0.0.1", port))
            await until(lambda: listener.refused + len(listener._state.connections) == len(held))
            assert 10 <= len(listener._state.connections) <= 20 and listener.refused >= 180
            assert await get(port) == b"", "there is no place"
            for each in held:
                each.close()
            await until(lambda: not listener._state.connections)
            assert await get(port) == b"HTTP/1.1 200 OK"
    finally:
        await listener.stop()


@pytest.mark.parametrize(("limit", "first"), [(20_000, 19_744), (1024, 768), (100, 75), (-1, 1 << 30)])
def test_some_descriptors_are_for_others(monkeypatch: pytest.MonkeyPatch, limit: int, first: int) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (limit, limit))
    assert http_listener.descriptors_for_connections() == first


class Exhausted(socket.socket):
    """A listener of a system that has no more descriptors; ``asked`` counts how often it was told."""

    asked = 0
    empty = True

    def accept(self) -> tuple[socket.socket, Any]:
        if self.empty:
            self.asked += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


async def test_a_system_without_descriptors_is_not_asked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "EXHAUSTED_PAUSE_SECONDS", 0.1)
    sock = Exhausted()
    sock.bind(("127.0.0.1", 0))
    listener = HttpListener(answer, sock, None)
    await listener.start()
    try:
        async with asyncio.timeout(SECONDS_MAX):
            waiting = asyncio.create_task(get(sock.getsockname()[1]))
            await until(lambda: sock.asked >= 3)
            turns = 0
            while sock.asked < 4:
                turns += 1
                await asyncio.sleep(0)
            assert turns > 10, "the event loop does other things meanwhile"
            sock.empty = False
            assert await waiting == b"HTTP/1.1 200 OK"
    finally:
        await listener.stop()


async def test_who_connects_and_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before the handshake there is no request whose time could run."""
    monkeypatch.setattr(http_listener, "TLS_HANDSHAKE_TIMEOUT_SECONDS", 0.1)
    serving = Pki(tmp_path, datetime.datetime.now(datetime.UTC)).serving("a", "127.0.0.1", "10.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(serving.certificate, serving.key)
    listener = HttpListener(answer, bound(), context)
    await listener.start()
    try:
        async with asyncio.timeout(SECONDS_MAX):
            reader, writer = await asyncio.open_connection(*listener._socket.getsockname())
            assert await reader.read() == b""
            writer.close()
            _, garbage = await asyncio.open_connection(*listener._socket.getsockname())
            garbage.write(b"GET / HTTP/1.1\r\n\r\n")
            await until(lambda: not listener._opening)
            garbage.close()
    finally:
        await listener.stop()


async def test_what_many_connections_had_is_given_back_once_they_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "ENDED_PER_GIVING_BACK", 8)
    given_back = asyncio.Event()
    monkeypatch.setattr(http_listener.garbage_collection, "give_back", given_back.set)
    listener = HttpListener(answer, bound(), None)
    port = listener._socket.getsockname()[1]
    await listener.start()
    try:
        async with asyncio.timeout(SECONDS_MAX):
            _, open_one = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(7):
                assert await get(port) == b"HTTP/1.1 200 OK"
            await until(lambda: len(listener._state.connections) == 1)
            listener._give_back()
            assert not given_back.is_set(), "one of eight is open"
            open_one.close()
            await given_back.wait()
    finally:
        await listener.stop()


def test_memory_that_was_freed_in_small_pieces_goes_back_to_the_system() -> None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_trim"):
        pytest.skip("a C library that keeps nothing to give back")
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    pieces = [library.malloc(1000) for _ in range(60_000)]
    for piece in pieces:
        ctypes.memset(piece, 1, 1000)
    for piece in pieces[:-1]:
        library.free(piece)  # the last is at the top: what lies below it is kept
    before = resident_bytes()
    garbage_collection.give_back()
    assert before - resident_bytes() > 30_000_000
    library.free(pieces[-1])


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
