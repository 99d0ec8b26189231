"""Watchers that never read, beside writers of large objects: the writers are to go on, and memory is to stay bounded.

``python -m tests.robustness.slow_watchers [--watchers 200] [--writers 40] [--bytes 20000] [--seconds 20]`` runs a server process, first
without watchers and then beside them, and prints writes a second, the server's processor time for a write, and its memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.e2e.server_process import ServerProcess
from tests.robustness.abuse import Client, resident_bytes
from tests.robustness.attacks import CONFIGMAPS

_WATCH = f"{CONFIGMAPS}?watch=1&resourceVersion=0&timeoutSeconds=3000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    writes: int
    seconds: float
    #: of the server
    processor_seconds: float
    resident_bytes: int

    def text(self, name: str) -> str:
        each = self.processor_seconds / max(1, self.writes)
        return (
            f"{name}: {self.writes / self.seconds:.0f} writes/s, {each * 1000:.2f} ms of the server's processor for each, "
            f"{self.resident_bytes / 1024**2:.0f} MiB resident"
        )


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def watch_without_reading(client: Client) -> asyncio.StreamWriter:
    """A watch whose head was read, and of which nothing more is taken from the socket."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", client.port))
    reader, writer = await asyncio.open_connection(sock=plain, ssl=client.context, server_hostname="127.0.0.1", limit=4096)
    writer.write(client.head("GET", _WATCH, 0, {}))
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    cast(asyncio.Transport, writer.transport).pause_reading()
    return writer


async def write_until(client: Client, name: str, size: int, end: float) -> int:
    """Updates of one object on one connection, each with other content; how many."""
    reader, writer = await client.open()
    writes = 0
    try:
        while time.monotonic() < end:
            text = f"{writes}".rjust(size, "x")
            body = json.dumps({"metadata": {"name": name}, "data": {"k": text}}).encode()
            writer.write(client.head("PUT", f"{CONFIGMAPS}/{name}", len(body), {}) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.split(b" ", 2)[1] in (b"200", b"201"), head
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            writes += 1
    finally:
        writer.close()
    return writes


async def measured(server: ServerProcess, client: Client, writers: int, size: int, seconds: float) -> Figures:
    assert server.process is not None
    pid = server.process.pid
    before, began = processor_seconds(pid), time.monotonic()
    written = await asyncio.gather(*(write_until(client, f"w{n}", size, began + seconds) for n in range(writers)))
    took = time.monotonic() - began
    return Figures(writes=sum(written), seconds=took, processor_seconds=processor_seconds(pid) - before, resident_bytes=resident_bytes(pid))


async def compare(server: ServerProcess, watchers: int, writers: int, size: int, seconds: float) -> tuple[Figures, Figures]:
    """Alone, and beside the watchers."""
    client = Client(server.port, server.token)
    for n in range(writers):
        await client.request("POST", CONFIGMAPS, json.dumps({"metadata": {"name": f"w{n}"}}).encode())
    alone = await measured(server, client, writers, size, seconds)
    print(alone.text("alone"), flush=True)
    held = [await watch_without_reading(client) for _ in range(watchers)]
    beside = await measured(server, client, writers, size, seconds)
    print(beside.text(f"beside {watchers} watchers that do not read"), flush=True)
    for writer in held:
        writer.transport.abort()
    return alone, beside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=200)
    parser.add_argument("--writers", type=int, default=40)
    parser.add_argument("--bytes", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess(Path(directory), "--unsafe-no-fsync", "--no-controllers")
        server.start()
        try:
            asyncio.run(compare(server, flags.watchers, flags.writers, flags.bytes, flags.seconds))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
