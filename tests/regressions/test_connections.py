"""What a client could do to the server below the level of requests.

1. A head had no bound but its 30 seconds: 20 MB of header fields were read and kept.
2. A client that went on with its body after the answer (413, 401) was read from for ever, since every byte put the end of the idle
   connection off.
3. What came in one piece with a request that had an ``Upgrade`` was lost: its client waited for ever.
4. A client that read too slowly for a LIST was cut off with a trace in the log, a slow reader of a watch with an error.
5. Every malformed request was a line in the log, and its answer was no Status.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import orjson
import pytest

from apiserver import http_protocol
from apiserver.filters import deadline
from apiserver.request import request_info
from tests.apiserver.api import Api
from tests.apiserver.test_http_protocol import CM, HEAD, listening, read_head


async def _status(reader: asyncio.StreamReader) -> tuple[int, Any]:
    code, headers = await read_head(reader)
    return code, orjson.loads(await reader.readexactly(int(headers["content-length"])))


async def test_a_body_that_ceases_to_be_one_is_a_400_status(api: Api) -> None:
    async with listening(api.server.app) as (http, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST {CM} HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\nno size\r\n".encode())
        code, answer = await _status(reader)
        assert (code, answer["kind"], answer["reason"]) == (400, "Status", "BadRequest")
        assert await reader.read() == b""
        writer.close()
        assert not http._state.tasks, "the handler still waits for the rest"


async def test_a_head_that_is_too_large_is_431(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_BYTES_MAX", 20_000)
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /version HTTP/1.1\r\n{HEAD}X: {'a' * 30_000}".encode())
        code, answer = await _status(reader)
        assert (code, answer["kind"], answer["reason"]) == (431, "Status", "RequestHeaderFieldsTooLarge")
        assert await reader.read() == b""
        writer.close()


async def test_what_is_not_http_is_a_400_status_and_no_line_in_the_log(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with listening(api.server.app) as (_, port), asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"NO SUCH THING\r\n\r\n")
            code, answer = await _status(reader)
            assert (code, answer["kind"], answer["reason"]) == (400, "Status", "BadRequest")
            assert await reader.read() == b""
            writer.close()
    assert [r for r in caplog.records if r.name.startswith("uvicorn")] == []


@pytest.mark.parametrize(("drain_bytes", "drain_seconds"), [(100_000, 60.0), (10**9, 0.2)], ids=["bytes", "time"])
async def test_a_body_after_its_answer_is_read_to_a_bound(
    api: Api, monkeypatch: pytest.MonkeyPatch, drain_bytes: int, drain_seconds: float
) -> None:
    monkeypatch.setattr(http_protocol, "DRAIN_BYTES_MAX", drain_bytes)
    monkeypatch.setattr(http_protocol, "DRAIN_SECONDS", drain_seconds)
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"POST {CM} HTTP/1.1\r\n{HEAD}Content-Length: 999999999\r\n\r\n".encode())
        assert (await _status(reader))[0] == 413
        with pytest.raises(ConnectionError):
            while True:
                writer.write(b"x" * 1000)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()


async def test_a_connection_is_good_again_once_the_body_after_an_answer_has_ended(api: Api) -> None:
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        size = 4 * 1024 * 1024
        writer.write(f"POST {CM} HTTP/1.1\r\n{HEAD}Content-Length: {size}\r\n\r\n".encode() + b"x" * size)
        assert (await _status(reader))[0] == 413
        writer.write(f"GET {CM} HTTP/1.1\r\n{HEAD}\r\n".encode())
        assert (await _status(reader))[0] == 200
        writer.close()


async def test_empty_lines_do_not_keep_a_connection_for_ever(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "KEEP_ALIVE_SECONDS", 0.2)
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {CM} HTTP/1.1\r\n{HEAD}\r\n".encode())
        assert (await _status(reader))[0] == 200
        writer.write(b"\r\n")
        assert await reader.read() == b""
        writer.close()


async def test_an_upgrade_is_passed_over_and_what_follows_is_answered(api: Api) -> None:
    async with listening(api.server.app) as (_, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        asked = f"GET {CM} HTTP/1.1\r\n{HEAD}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n".encode()
        writer.write(asked * 3)
        for _ in range(3):
            assert (await _status(reader))[0] == 200
        writer.close()


async def _ended(reader: asyncio.StreamReader) -> bool:
    """Whether the connection ends, whatever comes before."""
    try:
        while await reader.read(65536):
            pass
    except ConnectionError:
        pass
    return True


async def test_a_list_that_is_not_read_is_cut_without_a_trace(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(12):
        await api.created(CM, {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * 1_000_000}})
    monkeypatch.setattr(deadline.Deadline, "__call__", lambda self, context: setattr(context, "deadline", context.received_at + 0.3))
    async with listening(api.server.app) as (http, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(f"GET {CM} HTTP/1.1\r\n{HEAD}\r\n".encode())
        await reader.readexactly(1)
        await asyncio.wait(http._state.tasks)
        assert await _ended(reader)
        writer.close()
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_long_paths_are_not_remembered(api: Api) -> None:
    """8 192 paths of 64 KiB, from anybody, would have been half a gigabyte."""
    path = "/api/v1/namespaces/" + "a" * 10_000
    assert (await api.get(path)).status == 404
    assert not any(len(known) > request_info.REMEMBERED_LENGTH_MAX for _, known in request_info._remembered)
    await api.get("/apis/" + "g" * 10_000 + "/v1/things")
    assert "g" * 600 not in (await api.get("/metrics")).body.decode()


@pytest.mark.parametrize("path", ["/", "/metrics", "/version/", "/openapi/v2", "/apis"])
async def test_a_method_that_a_document_does_not_take_is_a_405_status(api: Api, path: str) -> None:
    answer = await api.request("TRACE", path)
    assert (answer.status, answer.json["kind"], answer.reason) == (405, "Status", "MethodNotAllowed")
