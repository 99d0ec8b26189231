"""The listener over real sockets: one packet for a small answer, watches by chunks, bounds on slow clients, an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from apiserver import http_protocol
from apiserver.http_exchange import Exchange
from apiserver.http_listener import HttpListener
from tests.apiserver.api import Api

CM = "/api/v1/namespaces/ns-a/configmaps"
HEAD = "Host: x\r\nAuthorization: Bearer admin-token\r\n"


@contextlib.asynccontextmanager
async def listening(app: Any) -> AsyncIterator[tuple[HttpListener, int]]:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.setblocking(False)
    http = HttpListener(app, sock, None)
    await http.start()
    try:
        yield http, sock.getsockname()[1]
    finally:
        await http.stop()


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.split("\r\n")
    return int(lines[0].split()[1]), {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:] if line)}


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readline(), 16)
    return (await reader.readexactly(size + 2))[:-2]


async def get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> tuple[int, bytes]:
    writer.write(f"GET {path} HTTP/1.1\r\n{HEAD}\r\n".encode())
    code, headers = await read_head(reader)
    return code, await reader.readexactly(int(headers["content-length"]))


async def test_a_watch_flushes_each_event_and_leaves_the_connection_usable(api: Api) -> None:
    """Field case AA2."""
    version = (await api.get(CM)).json["metadata"]["resourceVersion"]
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {CM}?watch=1&resourceVersion={version}&timeoutSeconds=1 HTTP/1.1\r\n{HEAD}\r\n".encode())
        code, headers = await read_head(reader)
        assert (code, headers["transfer-encoding"]) == (200, "chunked")
        assert "content-length" not in headers
        for name in ("a", "b"):
            await api.created(CM, {"metadata": {"name": name}})
            event = orjson.loads(await read_chunk(reader))
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
        assert await read_chunk(reader) == b""  # 0\r\n\r\n after a second
        assert (await get(reader, writer, f"{CM}/a"))[0] == 200
        writer.close()


async def test_many_events_at_once_arrive_in_order(api: Api) -> None:
    version = (await api.get(CM)).json["metadata"]["resourceVersion"]
    await api.created(CM, {"metadata": {"name": "a"}})
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {CM}?watch=1&resourceVersion={version} HTTP/1.1\r\n{HEAD}\r\n".encode())
        await read_head(reader)
        await asyncio.gather(*(api.patch(f"{CM}/a", {"data": {f"k{n}": "v"}}) for n in range(30)))
        data = b""
        while data.count(b"\n") < 31:
            data += await read_chunk(reader)
        writer.close()
    versions = [int(orjson.loads(line)["object"]["metadata"]["resourceVersion"]) for line in data.splitlines()]
    assert versions == sorted(set(versions)) and len(versions) == 31


async def test_the_end_of_the_server_ends_a_watch_with_its_last_chunk(api: Api) -> None:
    async with listening(api.server.app) as (http, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {CM}?watch=1 HTTP/1.1\r\n{HEAD}\r\n".encode())
        await read_head(reader)
        api.server.stop()
        assert await read_chunk(reader) == b""
        await http.stop()
        assert await reader.read() == b""
        writer.close()


async def test_a_head_that_does_not_come_closes_the_connection(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_SECONDS", 0.05)
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        for sent in (b"", b"GET /version HTTP/1.1\r\nHost:"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await get(reader, writer, "/version"))[0] == 200
        writer.close()


async def test_a_request_without_body_to_answer_is_sent_at_once(api: Api) -> None:
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"HEAD /version HTTP/1.1\r\n{HEAD}\r\n".encode())
        await read_head(reader)
        writer.close()


async def test_a_client_that_asks_before_it_sends_is_told_to_go_on(api: Api) -> None:
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = b'{"metadata":{"name":"a"}}'
        head = f"{HEAD}Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        writer.write(f"POST {CM} HTTP/1.1\r\n{head}".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(body)
        assert (await read_head(reader))[0] == 201
        writer.close()


async def test_nonsense_is_refused_and_the_server_goes_on(api: Api) -> None:
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        for sent in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\x00" * 4096, b"GET / HTTP/9.9\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            writer.write_eof()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await get(reader, writer, f"{CM}"))[0] == 200
        writer.close()


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


async def test_a_request_to_upgrade_is_answered_as_any_other_and_leaves_no_trace_in_the_log(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for protocol in ("websocket", "SPDY/3.1"):
            writer.write(f"GET {CM} HTTP/1.1\r\n{HEAD}Connection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n".encode())
            code, headers = await read_head(reader)
            assert code == 200 and orjson.loads(await reader.readexactly(int(headers["content-length"])))["kind"] == "ConfigMapList"
        writer.close()
    assert not caplog.records


def exchange_of(method: str = "GET", **more: bool) -> tuple[Exchange, _Transport]:
    transport = _Transport()
    flags = {"expects_100_continue": False, "keep_alive": True, **more}
    return Exchange({"method": method}, transport, FlowControl(transport), b"date: now\r\n", lambda: None, **flags), transport


START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]}


async def test_head_and_body_leave_together() -> None:
    exchange, transport = exchange_of()
    await exchange.send(START)
    assert transport.written == []
    await exchange.send({"type": "http.response.body", "body": b"body", "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b"more"})
    assert transport.written == [b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 8\r\n\r\nbody", b"more"]
    assert exchange.response_complete and not transport.closed
    with pytest.raises(RuntimeError):
        await exchange.send({"type": "http.response.body", "body": b"x"})


async def test_a_large_body_is_not_copied_behind_its_head() -> None:
    exchange, transport = exchange_of(keep_alive=False)
    body = b"x" * 100_000
    await exchange.send({"type": "http.response.start", "status": 200, "headers": [(b"Content-Length", b"100000")]})
    await exchange.send({"type": "http.response.body", "body": body})
    assert transport.written == [b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 100000\r\nconnection: close\r\n\r\n", body]
    assert transport.closed


async def test_a_body_of_unknown_length_is_chunked_and_one_of_head_is_left_out() -> None:
    start = {"type": "http.response.start", "status": 200, "headers": []}
    exchange, transport = exchange_of()
    await exchange.send(start)
    await exchange.send({"type": "http.response.body", "body": b"", "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b"abc", "more_body": True})
    await exchange.send({"type": "http.response.body", "body": b"d"})
    assert transport.written[1:] == [b"3\r\nabc\r\n", b"1\r\nd\r\n0\r\n\r\n"]
    exchange, transport = exchange_of("HEAD")
    await exchange.send(START)
    await exchange.send({"type": "http.response.body", "body": b"8 bytes."})
    assert b"".join(transport.written).endswith(b"content-length: 8\r\n\r\n")


@pytest.mark.parametrize("header", [(b"a b", b"c"), (b"", b"c"), (b"a:", b"c"), (b"a", b"b\r\nset-cookie: c"), (b"a", b"\0")])
async def test_no_header_can_end_its_line(header: tuple[bytes, bytes]) -> None:
    exchange, transport = exchange_of()
    with pytest.raises(ValueError):
        await exchange.send({"type": "http.response.start", "status": 200, "headers": [header]})
    assert transport.written == []


@pytest.mark.parametrize("body", [b"too short"[:7], b"too long."])
async def test_a_body_that_is_not_as_long_as_was_said_ends_the_connection(body: bytes) -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": body})

    exchange, transport = exchange_of()
    await exchange.run_asgi(app)
    assert transport.closed


async def test_an_application_that_fails_before_it_answers_is_a_500() -> None:
    async def app(*_: Any) -> None:
        raise ValueError("no answer")

    exchange, transport = exchange_of()
    await exchange.run_asgi(app)
    assert transport.written[0].startswith(b"HTTP/1.1 500 ") and transport.closed


async def test_a_body_is_received_as_it_comes_and_the_end_of_the_connection_after_it() -> None:
    exchange, transport = exchange_of("POST", expects_100_continue=True)
    exchange.body = b"ab"
    assert await exchange.receive() == {"type": "http.request", "body": b"ab", "more_body": True}
    assert transport.written == [b"HTTP/1.1 100 Continue\r\n\r\n"]
    waiting = asyncio.create_task(exchange.receive())
    await asyncio.sleep(0)
    assert not waiting.done()
    exchange.body, exchange.more_body = b"c", False
    exchange.wake()
    assert await waiting == {"type": "http.request", "body": b"c", "more_body": False}
    waiting = asyncio.create_task(exchange.receive())
    await asyncio.sleep(0)
    assert not waiting.done()
    exchange.disconnected = True
    exchange.wake()
    assert await waiting == {"type": "http.disconnect"}


async def test_pipelined_requests_are_answered_in_order_and_odd_targets_are_understood(api: Api) -> None:
    await api.created(CM, {"metadata": {"name": "a"}})
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        targets = (f"{CM}/a", f"{CM}/none", f"{CM}/%61", f"http://x{CM}/a", f"{CM}/a?pretty=false#part")
        writer.write("".join(f"GET {target} HTTP/1.1\r\n{HEAD}\r\n" for target in targets).encode())
        codes = []
        for _target in targets:
            code, headers = await read_head(reader)
            await reader.readexactly(int(headers["content-length"]))
            codes.append(code)
        assert codes == [200, 404, 200, 200, 200]
        writer.close()


async def test_an_idle_connection_is_closed_and_one_that_is_used_is_not(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "KEEP_ALIVE_SECONDS", 0.1)
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await get(reader, writer, CM))[0] == 200
        assert await reader.read() == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {CM}?watch=1&timeoutSeconds=1 HTTP/1.1\r\n{HEAD}\r\n".encode())
        await read_head(reader)
        assert await read_chunk(reader) == b""  # a second later, the stream's own end
        writer.close()
