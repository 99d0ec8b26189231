"""Hostile clients against a server process: nothing gets in, nothing hangs, memory stays bounded, others are served meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from tests.e2e.server_process import ServerProcess
from tests.robustness.abuse import SECONDS_MAX, Client, exhaust, hold_idle, resident_bytes, timed
from tests.robustness.attacks import CONFIGMAPS, Attack, attacks

MEBIBYTE = 1024 * 1024
IDLE = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("abuse"), "--unsafe-no-fsync", "--no-controllers")
    server.start()
    code, _ = server.request("POST", CONFIGMAPS, {"metadata": {"name": "target"}, "data": {"k": "v" * 1000}})
    assert code == 201
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def client(server: ServerProcess) -> Client:
    return Client(server.port, server.token)


@pytest.mark.parametrize("attack", [attack for attack in attacks() if not attack.heavy], ids=lambda attack: attack.name)
async def test_a_bomb_is_refused_in_time_and_in_little_memory(server: ServerProcess, client: Client, attack: Attack) -> None:
    assert server.process is not None
    before, times = resident_bytes(server.process.pid), list[float]()
    others = asyncio.create_task(timed(client, times))
    began = time.monotonic()
    async with asyncio.timeout(SECONDS_MAX):
        status = await client.request(attack.method, attack.path, attack.body, attack.headers)
    assert status in attack.right
    assert resident_bytes(server.process.pid) - before < 200 * MEBIBYTE
    assert not others.done(), "a well-behaved client is served meanwhile"
    others.cancel()
    code, found = server.request("GET", f"{CONFIGMAPS}/target")
    assert code == 200 and found["data"] == {"k": "v" * 1000} and time.monotonic() - began < 2 * SECONDS_MAX


async def test_idle_connections_cost_little_and_others_are_served(server: ServerProcess, client: Client) -> None:
    assert server.process is not None
    before = resident_bytes(server.process.pid)
    held = await hold_idle(client, IDLE)
    held += await hold_idle(client, 50, b"GET /version HTTP/1.1\r\nX-Slow: ")
    held += await hold_idle(client, 50, client.head("POST", CONFIGMAPS, 1000, {}) + b'{"metadata":')
    assert len(held) == IDLE + 100
    assert (resident_bytes(server.process.pid) - before) / len(held) < 200 * 1024
    for _ in range(20):
        assert await client.request("GET", "/api/v1/namespaces/default") == 200
    for writer in held:
        writer.close()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/v1/secrets", {"Authorization": "Bearer "}),
        ("/api/v1/secrets", {"Authorization": "bearer nonsense"}),
        ("/api/v1/secrets", {"Authorization": "", "X-Remote-User": "admin", "X-Remote-Group": "system:masters"}),
        ("/api/v1/secrets", {"Authorization": "", "Impersonate-User": "admin", "Impersonate-Group": "system:masters"}),
        ("/version/../api/v1/secrets", {"Authorization": ""}),
        ("/healthz/..%2fapi/v1/secrets", {"Authorization": ""}),
        ("//api/v1/secrets", {"Authorization": ""}),
        ("/api//v1/secrets", {"Authorization": ""}),
        ("/API/v1/secrets", {"Authorization": ""}),
        ("/healthz/%2e%2e/api/v1/secrets", {"Authorization": ""}),
        ("/healthz%00/../api/v1/secrets", {"Authorization": ""}),
        ("https://127.0.0.1/api/v1/secrets", {"Authorization": ""}),
    ],
)
async def test_no_trick_with_paths_or_headers_gets_in(client: Client, path: str, headers: dict[str, str]) -> None:
    assert await client.request("GET", path, headers=headers) in (0, 301, 400, 401, 403, 404)


async def test_two_lengths_are_no_way_to_smuggle_a_request(client: Client) -> None:
    """What one proxy takes for a body must not be a request here: the connection ends instead."""
    inner = client.head("GET", "/api/v1/namespaces/default", 0, {})
    for lengths in (f"Content-Length: 4\r\nContent-Length: {len(inner)}", f"Transfer-Encoding: chunked\r\nContent-Length: {len(inner)}"):
        reader, writer = await client.open()
        writer.write(f"GET /version HTTP/1.1\r\nHost: x\r\n{lengths}\r\n\r\n".encode() + inner)
        async with asyncio.timeout(SECONDS_MAX):
            answers = await reader.read()
        writer.close()
        assert answers.count(b"HTTP/1.1 200") == 0 and json.dumps("Namespace").encode() not in answers, answers


async def test_more_connections_than_descriptors_leave_the_store_its_own(server: ServerProcess, client: Client) -> None:
    await exhaust(server, client, 150)
