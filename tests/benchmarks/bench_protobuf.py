"""LISTs and streaming lists of many pods as protobuf, next to the same as JSON in the same run.

    python -m tests.benchmarks.bench_protobuf [--pods 5000]

Each line: wall and CPU time of the server's process for one answer, its size, and megabytes a second of both. The first read as protobuf
encodes every object, later ones send the bytes that are kept; what that costs in memory is told at the end.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_apiserver import memory_mb, timed
from tests.e2e.server_process import ServerProcess

PODS = "/api/v1/namespaces/bench/pods"
JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"
WATCH_LIST = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3"
CLIENTS = 8


def pod(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{number:05}", "labels": {"app": "web", "tier": f"t{number % 10}"}},
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


def fill(server: ServerProcess, count: int) -> None:
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
    server.request("POST", "/api/v1/namespaces/bench/serviceaccounts", {"metadata": {"name": "default"}})

    def create(numbers: range) -> None:
        connection = server.connection()
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": JSON}
        for number in numbers:
            connection.request("POST", PODS, json.dumps(pod(number)), headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 201, answer.status
        connection.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(create, [range(client, count, CLIENTS) for client in range(CLIENTS)]))


def read(server: ServerProcess, what: str, query: str, accept: str) -> None:
    """One answer; of a streaming list up to the bookmark that ends the initial state."""
    connection = server.connection()
    assert server.process is not None
    with timed(server.process.pid) as took:
        connection.request("GET", PODS + query, headers={"Authorization": f"Bearer {server.token}", "Accept": accept})
        answer = connection.getresponse()
        size, last = 0, b""
        while piece := answer.read1(1 << 20):
            size += len(piece)
            last = last[-200:] + piece[-2000:]
            if b"k8s.io/initial-events-end" in last:
                break
    connection.close()
    megabytes = size / 1e6
    print(
        f"{what:34} {took.wall:6.3f} s   {megabytes:5.1f} MB   {megabytes / took.wall:5.0f} MB/s"
        f"   CPU {took.cpu:.2f} s: {megabytes / max(took.cpu, 0.01):.0f} MB/s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_protobuf", description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess(Path(directory), "--no-controllers", "--nodes", "0")
        server.start()
        try:
            assert server.process is not None
            fill(server, arguments.pods)
            for _ in range(2):
                read(server, "LIST, JSON", "", JSON)
                read(server, "streaming list, JSON", WATCH_LIST, JSON)
            before = memory_mb(server)
            read(server, "LIST, protobuf, the first", "", PROTOBUF)
            after = memory_mb(server)
            for _ in range(2):
                read(server, "LIST, protobuf", "", PROTOBUF)
                read(server, "streaming list, protobuf", WATCH_LIST, PROTOBUF)
            print(f"memory of the kept messages {after - before} MB: {(after - before) * 1024 / arguments.pods:.1f} KB a pod")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
