"""A client process of ``bench_etcd``: calls of etcd's API in a closed loop, over grpcio; prints what it measured as JSON.

Requests are encoded by hand and answers are not decoded, so that this process costs as little as a client in Python can.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time

import grpc.aio
import uvloop

from storage.raft.codec import varint

CONNECT_SECONDS_MAX = 30.0


def chunk(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def put_request(key: bytes, value: bytes) -> bytes:
    return chunk(1, key) + chunk(2, value)


def key_of(number: int) -> bytes:
    return b"/registry/pods/default/pod-%08d" % number


class Load:
    def __init__(self, channel: grpc.aio.Channel, value: bytes, keys: int, rng: random.Random) -> None:
        self.put_call = channel.unary_unary("/etcdserverpb.KV/Put")
        self.range_call = channel.unary_unary("/etcdserverpb.KV/Range")
        self.watch_call = channel.stream_stream("/etcdserverpb.Watch/Watch")
        self.value = value
        self.keys = keys
        self.rng = rng

    async def put(self) -> None:
        await self.put_call(put_request(key_of(self.rng.randrange(self.keys)), self.value))

    async def range(self) -> None:
        await self.range_call(chunk(1, key_of(self.rng.randrange(self.keys))))

    async def mixed(self) -> None:
        """Nine reads for a write, as etcd's clients have it."""
        await (self.put() if self.rng.random() < 0.1 else self.range())


async def closed_loop(arguments: argparse.Namespace, loads: list[Load]) -> list[float]:
    """Each client asks again once it is answered. Seconds of each call."""
    seconds: list[float] = []

    async def client(load: Load) -> None:
        call = getattr(load, arguments.kind)
        for _ in range(arguments.calls):
            started = time.perf_counter()
            await call()
            seconds.append(time.perf_counter() - started)

    await asyncio.gather(*(client(loads[number % len(loads)]) for number in range(arguments.clients)))
    return seconds


async def watch_latency(arguments: argparse.Namespace, load: Load) -> list[float]:
    """From before a put to the event at a watcher on another stream, with ``clients`` watchers of the same prefix."""
    streams = []
    for _ in range(arguments.clients):
        stream = load.watch_call()
        create = chunk(1, b"/registry/pods/") + chunk(2, b"/registry/pods0")
        await stream.write(chunk(1, create))
        await stream.read()
        streams.append(stream)
    seconds = []
    for _ in range(arguments.calls):
        started = time.perf_counter()
        writing = asyncio.ensure_future(load.put())
        await asyncio.gather(*(stream.read() for stream in streams))
        seconds.append(time.perf_counter() - started)
        await writing
    return seconds


async def fill(arguments: argparse.Namespace, loads: list[Load]) -> list[float]:
    """Each key once, in order, by ``clients`` at a time."""
    numbers = iter(range(arguments.keys))

    async def client(load: Load) -> None:
        for number in numbers:
            await load.put_call(put_request(key_of(number), load.value))

    await asyncio.gather(*(client(loads[number % len(loads)]) for number in range(arguments.clients)))
    return [0.0]


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("target")
    parser.add_argument("kind", choices=("put", "range", "mixed", "watch", "fill"))
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--calls", type=int, default=100, help="of each client")
    parser.add_argument("--value-bytes", type=int, default=256)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    # channels with equal options would share a connection
    channels = [grpc.aio.insecure_channel(arguments.target, options=[("number", number)]) for number in range(arguments.connections)]
    loads = [Load(channel, rng.randbytes(arguments.value_bytes), arguments.keys, rng) for channel in channels]
    for load in loads:
        await load.range_call(chunk(1, b"a"), wait_for_ready=True, timeout=CONNECT_SECONDS_MAX)
    # all processes of a run begin together
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    started = time.perf_counter()
    if arguments.kind == "watch":
        seconds = await watch_latency(arguments, loads[0])
    elif arguments.kind == "fill":
        seconds = await fill(arguments, loads)
    else:
        seconds = await closed_loop(arguments, loads)
    json.dump({"elapsed": time.perf_counter() - started, "seconds": seconds}, sys.stdout)
    for channel in channels:
        await channel.close()


if __name__ == "__main__":
    uvloop.run(main())
