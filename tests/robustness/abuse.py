"""Hostile clients, and a well-behaved one that is timed meanwhile.

``python -m tests.robustness.abuse [--idle 10000]`` is the long form (a minute and a half), against a server process of its own: that
many connections which say nothing after their handshake, then as many that had one answer and are kept, then as many that do not even
begin a handshake; beside them slow heads, half-sent bodies and all of ``attacks``; at last more connections than the server may have.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import socket
import ssl
import tempfile
import time
from pathlib import Path

from apiserver import http_listener
from tests.e2e.server_process import ServerProcess
from tests.robustness.attacks import CONFIGMAPS, JSON, attacks

#: of an answer to anything hostile, on a machine that does much else
SECONDS_MAX = 30.0


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


async def hold_kept(client: Client, count: int) -> list[asyncio.StreamWriter]:
    """Connections that had an answer, and may be used again."""
    return await hold_idle(client, count, client.head("GET", "/version", 0, {}))


def hold_silent(port: int, count: int) -> list[socket.socket]:
    """Connections on which not even a handshake begins; fewer where the server closes them."""
    held = []
    for _ in range(count):
        plain = socket.socket()
        plain.settimeout(SECONDS_MAX)
        with contextlib.suppress(OSError):
            plain.connect(("127.0.0.1", port))
            held.append(plain)
    return held


class Judge:
    """Times a well-behaved client while something else goes on, and tells the server's memory."""

    def __init__(self, server: ServerProcess, client: Client) -> None:
        assert server.process is not None
        self.pid = server.process.pid
        self._client = client
        self._times: list[float] = []
        self._task = asyncio.create_task(timed(client, self._times))
        self._resident = resident_bytes(self.pid)

    def tell(self, what: str, count: int = 0) -> None:
        if self._task.done():
            self._task.result()  # raises what was wrong
        times, self._times[:] = sorted(self._times), []
        now = resident_bytes(self.pid)
        each = f", {(now - self._resident) / count / 1024:.0f} KiB each" if count else ""
        self._resident = now
        told = f"{len(times)} answers, median {times[len(times) // 2]:.3f} s, worst {times[-1]:.3f} s" if times else "no answer"
        print(f"{what}{each}; {now / 1024**2:.0f} MiB resident; a well-behaved client meanwhile: {told}", flush=True)

    def end(self) -> None:
        self._task.cancel()


async def crowd(server: ServerProcess, client: Client, idle: int) -> None:
    """Idle connections of three kinds, one kind after the other."""
    judge = Judge(server, client)
    held = await hold_idle(client, idle)
    judge.tell(f"{len(held)} idle connections after their handshake", len(held))
    for writer in held:
        writer.transport.abort()
    held = await hold_kept(client, idle)
    judge.tell(f"{len(held)} connections that had an answer", len(held))
    for writer in held:
        writer.transport.abort()
    await asyncio.sleep(1)
    silent = await asyncio.to_thread(hold_silent, client.port, idle)
    judge.tell(f"{len(silent)} connections without a handshake", len(silent))
    began = time.monotonic()
    while len(os.listdir(f"/proc/{judge.pid}/fd")) > 100:
        assert time.monotonic() - began < http_listener.TLS_HANDSHAKE_TIMEOUT_SECONDS + SECONDS_MAX, "they are closed in time"
        await asyncio.sleep(0.2)
    judge.tell(f"the server closed them within {time.monotonic() - began:.0f} s")
    for each in silent:
        each.close()
    judge.end()


async def storm(server: ServerProcess, client: Client) -> None:
    """Slow heads, half-sent bodies and every attack."""
    judge = Judge(server, client)
    held = await hold_idle(client, 200, b"GET /version HTTP/1.1\r\nX-Slow: ")
    held += await hold_idle(client, 200, client.head("POST", CONFIGMAPS, 1000, {}) + b'{"metadata":')
    for attack in attacks():
        began = time.monotonic()
        async with asyncio.timeout(2 * SECONDS_MAX):
            status = await client.request(attack.method, attack.path, attack.body, attack.headers)
        judge.tell(f"{attack.name}: {status} after {time.monotonic() - began:.2f} s")
        assert status in attack.right, attack.name
    for writer in held:
        writer.close()
    judge.end()


async def exhaust(server: ServerProcess, client: Client, descriptors: int) -> None:
    """More connections than the server may have descriptors: those that are there are served, and so are writes."""
    assert server.process is not None
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors, before[1]))
    await asyncio.sleep(2)  # the server looks at its limits each second
    reader, writer = await client.open()
    silent = await asyncio.to_thread(hold_silent, client.port, 2 * descriptors)
    body = json.dumps({"metadata": {"name": "in-the-crowd"}, "data": {"k": "v" * 500_000}}).encode()
    for n in range(150):  # 75 MB, more than a segment of the log
        writer.write(client.head("PUT" if n else "POST", f"{CONFIGMAPS}/in-the-crowd" if n else CONFIGMAPS, len(body), {}) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.split(b" ", 2)[1] in (b"200", b"201"), head
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        body = body.replace(b"v" * 10, b"%010d" % n, 1) if n == 0 else body
    used = len(os.listdir(f"/proc/{pid}/fd"))
    assert used < descriptors, used
    print(f"{len(silent)} connections at {descriptors} descriptors: {used} in use, 150 writes of 500 KB on one of them", flush=True)
    for each in silent:
        each.close()
    writer.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    await asyncio.sleep(1)
    assert await client.request("GET", "/api/v1/namespaces/default") == 200


async def everything(server: ServerProcess, idle: int) -> None:
    client = Client(server.port, server.token)
    body = json.dumps({"metadata": {"name": "target"}, "data": {"k": "v" * 1000}}).encode()
    assert await client.request("POST", CONFIGMAPS, body) == 201
    await crowd(server, client, idle)
    await storm(server, client)
    await exhaust(server, client, 300)


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
            asyncio.run(everything(server, count))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
