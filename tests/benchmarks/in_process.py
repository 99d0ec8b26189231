"""CPU time of requests without sockets, TLS and a second process: bytes into the HTTP protocol, bytes out of it.

    python -m tests.benchmarks.in_process [--only get,patch,create,list,fanout] [--clients 32] [--rounds 40] [--profile create]

For finding where the time goes, and for comparing two versions on a busy machine: each workload runs in short rounds, and what is told is
the round with the least CPU time (of all threads, the store's disk thread too), next to bare uvicorn's in the same process. The store is
the real one, on disk. ``--profile`` prints where the time of one workload goes.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import itertools
import json
import pstats
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from apiserver import garbage_collection
from apiserver.http_protocol import ApiProtocol
from apiserver.server import ApiServer
from storage.config import MemberConfig
from storage.member.member import Member
from tests.apiserver.api import config_in
from tests.benchmarks.bare import app as bare_app

NAMESPACE = "/api/v1/namespaces/bench"
CONFIGMAPS = 1000
#: some milliseconds: short enough that some rounds of many are not interrupted
REQUESTS_A_ROUND = 64
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "registry.example/app:1",
                "ports": [{"containerPort": 80}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
            }
        ]
    },
}


class Connection(asyncio.Transport):
    """One client's connection: a transport that counts what is written, and a protocol of the server."""

    def __init__(self, make: Callable[[], asyncio.Protocol]) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.size = 0
        self.last = b""
        self.closing = False
        self.done: asyncio.Future[None] | None = None
        self.protocol = make()
        self.protocol.connection_made(self)

    def write(self, data: Any) -> None:
        self.size += len(data)
        if self.done is not None and not self.done.done() and data.startswith(b"HTTP/1.1 "):
            self.last = bytes(data[:200])
            self.done.set_result(None)

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def pause_reading(self) -> None:
        """Nothing is read by itself."""

    def resume_reading(self) -> None:
        """Nothing is read by itself."""

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""

    async def request(self, raw: bytes) -> bytes:
        """The head of the answer."""
        self.done = asyncio.get_running_loop().create_future()
        self.protocol.data_received(raw)
        await self.done
        return self.last


def http(method: str, path: str, body: bytes = b"", content: str = "application/json") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:6443\r\nAuthorization: Bearer admin-token\r\nAccept: application/json\r\n"
    if method != "GET":
        head += f"Content-Type: {content}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Driver:
    def __init__(self, make: Callable[[], asyncio.Protocol], clients: int, rounds: int) -> None:
        self.make = make
        self.connections = [Connection(make) for _ in range(clients)]
        self.rounds = rounds

    async def round(self, next_request: Callable[[], bytes], requests: int) -> float:
        """CPU microseconds of a request."""
        left = itertools.repeat(None, requests)

        async def client(connection: Connection) -> None:
            for _ in left:
                head = await connection.request(next_request())
                assert head.startswith(b"HTTP/1.1 2"), head

        started = time.process_time()
        await asyncio.gather(*[client(connection) for connection in self.connections])
        return (time.process_time() - started) / requests * 1e6

    async def best(self, next_request: Callable[[], bytes], requests: int = REQUESTS_A_ROUND) -> float:
        return min([await self.round(next_request, requests) for _ in range(self.rounds)])


async def fan_out(driver: Driver, patch: Callable[[], bytes], watchers: int, rounds: int) -> float:
    """CPU microseconds of an event: a round is ten patches that all watchers see."""
    connections = [Connection(driver.make) for _ in range(watchers)]
    for connection in connections:
        await connection.request(http("GET", f"{NAMESPACE}/configmaps?watch=1"))
    best = 1e9
    for _ in range(rounds):
        await asyncio.sleep(0.01)
        before = sum(connection.size for connection in connections)
        started = time.process_time()
        for _ in range(10):
            await driver.connections[0].request(patch())
        best = min(best, (time.process_time() - started) / (10 * watchers) * 1e6)
        assert sum(connection.size for connection in connections) > before
    for connection in connections:
        connection.closing = True
        connection.protocol.connection_lost(None)
    return best


class Workloads:
    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.random = random.Random(1)

    def get(self) -> bytes:
        return http("GET", f"{NAMESPACE}/configmaps/cm-{self.random.randrange(CONFIGMAPS)}")

    def patch(self) -> bytes:
        body = b'{"data":{"k":"v%d"}}' % next(self.numbers)
        path = f"{NAMESPACE}/configmaps/cm-{self.random.randrange(CONFIGMAPS)}"
        return http("PATCH", path, body, "application/merge-patch+json")

    def create(self) -> bytes:
        number = next(self.numbers)
        metadata = {"name": f"p-{number}", "labels": {"app": "web", "tier": f"t{number % 10}"}}
        return http("POST", f"{NAMESPACE}/pods", json.dumps({**POD, "metadata": metadata}).encode())

    def list(self) -> bytes:
        return http("GET", f"{NAMESPACE}/pods?limit=500")

    def bare(self) -> bytes:
        return http("GET", "/")


async def run(flags: argparse.Namespace, directory: Path) -> None:
    state = ServerState()
    state.default_headers = [(b"date", b"Mon, 30 Nov 2026 13:00:00 GMT")]

    def maker(app: Any, protocol: type[HttpToolsProtocol]) -> Callable[[], asyncio.Protocol]:
        config = uvicorn.Config(
            app, loop="none", http=protocol, ws="none", lifespan="off", log_config=None, access_log=False,
            proxy_headers=protocol is HttpToolsProtocol,  # on by default, as in the process of the peer
        )  # fmt: skip
        config.load()
        return lambda: protocol(config=config, server_state=state, app_state={})

    work = Workloads()
    bare = Driver(maker(bare_app, HttpToolsProtocol), flags.clients, flags.rounds)
    config = config_in(directory)
    member = Member(MemberConfig(data_dir=config.store.data_dir / "store"))
    await member.start()
    server = ApiServer(config, member)
    await server.start("127.0.0.1", 6443)
    running = asyncio.create_task(server.run())
    driver = Driver(maker(server.app, ApiProtocol), flags.clients, flags.rounds)
    first = driver.connections[0]
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": "bench"}}),
        (f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}}),
        *((f"{NAMESPACE}/configmaps", {"metadata": {"name": f"cm-{n}"}, "data": {"k": "v" * 200}}) for n in range(CONFIGMAPS)),
    ):
        head = await first.request(http("POST", path, json.dumps(body).encode()))
        assert head.startswith(b"HTTP/1.1 201"), head
    if not flags.default_gc:
        garbage_collection.settle()
    chosen = flags.only.split(",")
    bare_us = await bare.best(work.bare)
    print(f"bare uvicorn   {bare_us:8.1f} µs")
    for name in chosen:
        profile = cProfile.Profile() if flags.profile == name else None
        if profile is not None:
            driver.rounds = 3
            profile.enable()
        if name == "fanout":
            us = await fan_out(driver, work.patch, 100, flags.rounds)
        else:
            us = await driver.best(getattr(work, name), 16 if name == "list" else REQUESTS_A_ROUND)
        if profile is not None:
            profile.disable()
            pstats.Stats(profile).sort_stats(flags.sort).print_stats(flags.lines)
            driver.rounds = flags.rounds
        print(f"{name:14} {us:8.1f} µs   {bare_us / us:.3f} of bare uvicorn", flush=True)
    server.stop()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await member.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="get,patch,create,list,fanout")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--default-gc", action="store_true", help="leave the garbage collector as Python sets it")
    parser.add_argument("--profile", default="")
    parser.add_argument("--sort", default="tottime")
    parser.add_argument("--lines", type=int, default=70)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(flags, Path(directory)))


if __name__ == "__main__":
    main()
