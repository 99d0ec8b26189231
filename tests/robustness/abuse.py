"""What a hostile client may try, each with what must come of it: a refusal in time, no matter what it asks for.

``python -m tests.robustness.abuse --idle 10000`` is the long form: as many idle connections as the system gives, slow heads, half-sent
bodies and bombs at once against a server process of its own, while a well-behaved client is timed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import ssl
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.server_process import ServerProcess

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JSON = "application/json"
#: of an answer to anything hostile, on a machine that does much else
SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    #: which statuses are right; never one of the server's own faults
    right: tuple[int, ...] = (400, 413, 415, 422)


def yaml_bomb() -> bytes:
    """Nine levels of ten aliases: a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 9):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    return "\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: a}", *lines]).encode()


def copy_bomb() -> bytes:
    """Each operation doubles what is there: 2^40 times a kilobyte."""
    operations = [{"op": "copy", "from": "/data", "path": f"/data/x{n}"} for n in range(40)]
    return json.dumps(operations).encode()


def attacks() -> Iterator[Attack]:
    deep = 100_000
    yield Attack(name="a nested object", method="POST", path=CONFIGMAPS, body=b'{"a":' * deep + b"1" + b"}" * deep)
    yield Attack(name="a nested list", method="POST", path=CONFIGMAPS, body=b'{"metadata":{"name":"n"},"data":' + b"[" * deep)
    yaml = {"Content-Type": "application/yaml"}
    yield Attack(name="nested YAML", method="POST", path=CONFIGMAPS, body=b"[" * 20_000, headers=yaml)
    yield Attack(name="aliases of aliases", method="POST", path=CONFIGMAPS, body=yaml_bomb(), headers=yaml)
    yield Attack(name="an alias of itself", method="POST", path=CONFIGMAPS, body=b"a: &a [*a, *a]\n", headers=yaml)
    packed = gzip.compress(b'{"metadata":{"name":"a"},"data":{"k":"' + b"x" * 50_000_000 + b'"}}')
    yield Attack(name="a zip bomb", method="POST", path=CONFIGMAPS, body=packed, headers={"Content-Encoding": "gzip"})
    yield Attack(name="a body too large", method="POST", path=CONFIGMAPS, body=b" " * (3 * 1024 * 1024 + 1))
    patch = {"Content-Type": "application/json-patch+json"}
    yield Attack(name="a copy bomb", method="PATCH", path=f"{CONFIGMAPS}/target", body=copy_bomb(), headers=patch)
    many = json.dumps([{"op": "test", "path": "/data/k", "value": "v"}] * 20_000).encode()
    yield Attack(name="many operations", method="PATCH", path=f"{CONFIGMAPS}/target", body=many, headers=patch)
    merge = {"Content-Type": "application/merge-patch+json"}
    yield Attack(
        name="a nested merge patch", method="PATCH", path=f"{CONFIGMAPS}/target", body=b'{"a":' * deep + b"1" + b"}" * deep, headers=merge
    )
    apply = {"Content-Type": "application/apply-patch+yaml"}
    yield Attack(name="an applied bomb", method="PATCH", path=f"{CONFIGMAPS}/b?fieldManager=m", body=yaml_bomb(), headers=apply)
    yield Attack(name="a long selector", method="GET", path=f"{CONFIGMAPS}?labelSelector=" + "a," * 100_000 + "b")
    yield Attack(name="many parameters", method="GET", path=f"{CONFIGMAPS}?" + "&".join(f"a{n}=1" for n in range(5000)))
    yield Attack(name="a long path", method="GET", path="/api/" + "a/" * 100_000, right=(404, 414, 431))
    numbers = b'{"metadata":{"name":"n"},"data":{"k":' + b"9" * 1_000_000 + b"}}"
    yield Attack(name="a long number", method="POST", path=CONFIGMAPS, body=numbers)


class Client:
    """Connections of their own to one server."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)

    def head(self, method: str, path: str, length: int, headers: dict[str, str]) -> bytes:
        lines = {"Host": "x", "Authorization": f"Bearer {self.token}", "Content-Type": JSON, "Content-Length": str(length), **headers}
        return "\r\n".join([f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]).encode()

    async def request(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> int:
        """The status; 0 where the connection was closed without one."""
        reader, writer = await self.open()
        try:
            with contextlib.suppress(ConnectionError):
                writer.write(self.head(method, path, len(body), headers or {}) + body)
                await writer.drain()
            try:
                return int((await reader.readuntil(b"\r\n")).split()[1])
            except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
                return 0
        finally:
            writer.close()


async def timed(client: Client, times: list[float]) -> None:
    """A well-behaved client, until cancelled."""
    while True:
        began = time.monotonic()
        assert await client.request("GET", "/api/v1/namespaces/default") == 200
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.1)


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


async def hold_idle(client: Client, count: int, sent: bytes = b"") -> list[asyncio.StreamWriter]:
    """Connections that were opened, said ``sent``, and say no more; a few dozen at a time."""
    held: list[asyncio.StreamWriter] = []
    gate = asyncio.Semaphore(32)

    async def one() -> None:
        async with gate:
            with contextlib.suppress(OSError):
                _, writer = await client.open()
                writer.write(sent)
                held.append(writer)

    await asyncio.gather(*(one() for _ in range(count)))
    return held


async def storm(server: ServerProcess, idle: int) -> None:
    assert server.process is not None
    client = Client(server.port, server.token)
    body = json.dumps({"metadata": {"name": "target"}, "data": {"k": "v" * 1000}}).encode()
    assert await client.request("POST", CONFIGMAPS, body) == 201
    before, times = resident_bytes(server.process.pid), []  # type: ignore[var-annotated]
    task = asyncio.create_task(timed(client, times))
    held = await hold_idle(client, idle)
    print(
        f"{len(held)} idle connections, {(resident_bytes(server.process.pid) - before) / max(1, len(held)) / 1024:.0f} KiB each", flush=True
    )
    held += await hold_idle(client, 200, b"GET /version HTTP/1.1\r\nX-Slow: ")
    held += await hold_idle(client, 200, client.head("POST", CONFIGMAPS, 1000, {}) + b'{"metadata":')
    for attack in attacks():
        began = time.monotonic()
        status = await client.request(attack.method, attack.path, attack.body, attack.headers)
        print(f"{attack.name}: {status} after {time.monotonic() - began:.2f} s", flush=True)
        assert status in attack.right, attack.name
    if task.done():
        task.result()
    task.cancel()
    times.sort()
    print(
        f"a well-behaved client meanwhile: {len(times)} answers, median {times[len(times) // 2]:.3f} s, worst {times[-1]:.3f} s", flush=True
    )
    for writer in held:
        writer.close()


def main() -> None:
    from apiserver.cli.up import allow_open_files

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle", type=int, default=10_000)
    count = parser.parse_args().idle
    allow_open_files()
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess(Path(directory), "--unsafe-no-fsync", "--no-controllers")
        server.start()
        try:
            asyncio.run(storm(server, count))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
