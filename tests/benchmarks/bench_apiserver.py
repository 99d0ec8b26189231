"""The API server under load, next to bare uvicorn in the same run.

    python -m tests.benchmarks.bench_apiserver [--seconds 5] [--pods 5000] [--watchers 100] [--kinds-objects 10000]
        [--only get,patch,apply,create,list,forms,stream,fanout,kinds]

Needs ``wrk``. Prints one line a workload: requests a second, the CPU time of the server's process for one request, and both as ratios to
bare uvicorn over TLS, which is measured again right before each workload. Requests a second mean something on an idle machine only, where
the server has a core for itself; the ratio of CPU times (bare uvicorn's for a request / the server's) is what the rates' ratio would be
there, and holds on a busy machine too. Also how long the start takes (the command to /readyz, files warm; wall and CPU) and the memory
of the server's process, idle and loaded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.server_process import ServerProcess, free_port

NAMESPACE = "/api/v1/namespaces/bench"
CONFIGMAPS = 1000
UPDATES = 200

HEAD = 'local h = {["Authorization"]="Bearer TOKEN", ["Content-Type"]="CONTENT", ["Accept"]="application/json"}\nlocal c = 0\n'
GET = HEAD + f'request = function() return wrk.format("GET", "{NAMESPACE}/configmaps/cm-"..math.random(0,{CONFIGMAPS - 1}), h) end'
PATCH = HEAD + (
    "request = function() c = c + 1\n"
    f'return wrk.format("PATCH", "{NAMESPACE}/configmaps/cm-"..math.random(0,{CONFIGMAPS - 1}), h,'
    """ '{"data":{"k":"v'..c..math.random(1,1000000)..'"}}') end"""
)
CREATE = HEAD + (
    "request = function() c = c + 1\n"
    """local body = string.format('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-STAMP-%d","labels":{"app":"web","tier":"t%d"}},"""
    """"spec":{"containers":[{"name":"c","image":"registry.example/app:1","ports":[{"containerPort":80}],"""
    """"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"""
    """"limits":{"cpu":"1","memory":"128Mi"}}}]}}', c, c % 10)\n"""
    f'return wrk.format("POST", "{NAMESPACE}/pods", h, body) end'
)
APPLIED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "applied", "labels": {"app": "web"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "front"}},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "registry.example/app:1",
                        "ports": [{"containerPort": 80, "name": "http"}],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
                    }
                ]
            },
        },
    },
}
APPLY_PATH = "/apis/apps/v1/namespaces/bench/deployments/applied?fieldManager=bench"
APPLY = HEAD + f'request = function() return wrk.format("PATCH", "{APPLY_PATH}", h, \'{json.dumps(APPLIED)}\') end'
PAGE = HEAD + f'request = function() return wrk.format("GET", "{NAMESPACE}/pods?limit=500", h) end'
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
#: Streaming lists in a row.
STREAMS = 10
_CONTAINERS = {"containers": [{"name": "c", "image": "registry.example/app:1", "env": [{"name": "A", "value": "1"}]}]}
_TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": _CONTAINERS}
_SELECTED = {"selector": {"matchLabels": {"app": "web"}}, "template": _TEMPLATE}
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
_ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_RBAC, _APPS = "/apis/rbac.authorization.k8s.io/v1", "/apis/apps/v1"
#: A collection (NS: the namespace) and the rest of an object of it.
OF_KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("NS/configmaps", {"data": {"k": "v" * 200}}),
    ("NS/secrets", {"stringData": {"k": "v" * 200}}),
    ("NS/pods", {"spec": _CONTAINERS}),
    ("NS/services", {"spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": {"app": "web"}}}),
    ("NS/serviceaccounts", {}),
    ("NS/endpoints", {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]}),
    ("NS/podtemplates", {"template": _TEMPLATE}),
    ("NS/replicationcontrollers", {"spec": {"selector": {"app": "web"}, "template": _TEMPLATE}}),
    ("NS/limitranges", {"spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "1"}}]}}),
    ("NS/persistentvolumeclaims", {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    (_APPS + "/namespaces/bench/deployments", {"spec": _SELECTED}),
    (_APPS + "/namespaces/bench/replicasets", {"spec": _SELECTED}),
    (_APPS + "/namespaces/bench/daemonsets", {"spec": _SELECTED}),
    (_APPS + "/namespaces/bench/statefulsets", {"spec": {**_SELECTED, "serviceName": "s"}}),
    ("/apis/batch/v1/namespaces/bench/jobs", {"spec": {"template": {"spec": {**_CONTAINERS, "restartPolicy": "Never"}}}}),
    ("/apis/networking.k8s.io/v1/namespaces/bench/networkpolicies", {"spec": {"podSelector": {}}}),
    ("/apis/policy/v1/namespaces/bench/poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    ("/apis/coordination.k8s.io/v1/namespaces/bench/leases", {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 40}}),
    (_RBAC + "/namespaces/bench/roles", {"rules": _RULES}),
    (_RBAC + "/clusterrolebindings", {"roleRef": _ROLE, "subjects": [{**_ROLE, "kind": "User", "name": "u"}]}),
)
BARE_START_SECONDS_MAX = 30.0
BARE = 'request = function() return wrk.format("GET", "/") end'


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a run of wrk did: requests a second, and microseconds of CPU of the server's process for one."""

    rate: float
    cpu_us: float


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process since its start, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wrk(url: str, script: str, connections: int, seconds: float, pid: int) -> Load:
    """Load the server whose process is ``pid``; anything but 2xx ends the benchmark."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as handle:
        handle.write(script)
        handle.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", handle.name, url]
        before = cpu_seconds(pid)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        used = cpu_seconds(pid) - before
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    if wrong:
        raise SystemExit(f"{wrong[1]} requests were refused:\n{done.stdout}")
    rate, requests = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout), re.search(r"(\d+) requests in", done.stdout)
    assert rate and requests, done.stdout
    return Load(rate=float(rate[1]), cpu_us=used / max(int(requests[1]), 1) * 1e6)


class BareUvicorn:
    """The peer's process."""

    def __init__(self, server: ServerProcess) -> None:
        port, pki = free_port(), server.data_dir / "pki"
        self._url = f"https://127.0.0.1:{port}"
        command = [sys.executable, "-m", "tests.benchmarks.bare", str(port), str(pki / "apiserver.crt"), str(pki / "apiserver.key")]
        self._process = subprocess.Popen(command)
        ends = time.monotonic() + BARE_START_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert self._process.poll() is None and time.monotonic() < ends, "the bare server does not start"
                time.sleep(0.05)

    def load(self, seconds: int) -> Load:
        return wrk(self._url, BARE, 16, seconds, self._process.pid)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


class Bench:
    def __init__(self, server: ServerProcess, seconds: int, bare: BareUvicorn) -> None:
        assert server.process is not None
        self.server, self.seconds, self.bare = server, seconds, bare
        self.pid = server.process.pid
        self.url = f"https://127.0.0.1:{server.port}"

    def script(self, text: str, content: str = "application/json", stamp: str = "") -> str:
        return text.replace("TOKEN", self.server.token).replace("CONTENT", content).replace("STAMP", stamp)

    def run(self, what: str, script: str, connections: int) -> None:
        """Bare uvicorn, then the workload, and both told."""
        bare = self.bare.load(max(self.seconds // 2, 1))
        load = wrk(self.url, script, connections, self.seconds, self.pid)
        print(
            f"{what:28} {load.rate:8.0f}/s {load.rate / bare.rate:6.3f} of bare uvicorn's {bare.rate:6.0f}/s"
            f"   CPU {load.cpu_us:7.1f} µs: {bare.cpu_us / load.cpu_us:6.3f} with its {bare.cpu_us:5.1f} µs",
            flush=True,
        )

    def get(self) -> None:
        self.run("GET, 16 clients", self.script(GET), 16)

    def patch(self) -> None:
        for clients in (16, 32):
            self.run(f"merge patch, {clients} clients", self.script(PATCH, "application/merge-patch+json"), clients)

    def apply(self) -> None:
        """Of a Deployment that is so already."""
        for clients in (1, 16):
            self.run(f"unchanged apply, {clients} clients", self.script(APPLY, "application/apply-patch+yaml"), clients)

    def create(self) -> None:
        for clients in (1, 32):
            self.run(f"create pods, {clients} clients", self.script(CREATE, stamp=f"c{clients}"), clients)

    def list(self, pods: int) -> None:
        number = self._fill(pods)
        for what, query in (("", ""), ("resourceVersion=0", "?resourceVersion=0"), ("by label", "?labelSelector=tier%3Dt3")):
            connection = self.server.connection()
            with timed(self.pid) as took:
                connection.request("GET", f"{NAMESPACE}/pods{query}", headers={"Authorization": f"Bearer {self.server.token}"})
                size = len(connection.getresponse().read())
            connection.close()
            print(
                f"LIST of {number} pods {what:18} {took.wall:.3f} s   {size / 1e6:.1f} MB   {size / 1e6 / took.wall:.0f} MB/s"
                f"   CPU {took.cpu:.2f} s: {size / 1e6 / max(took.cpu, 0.01):.0f} MB/s",
                flush=True,
            )
        self.run("LIST limit=500, 8 clients", self.script(PAGE), 8)

    def forms(self, pods: int) -> None:
        """Lists as ``kubectl get`` and metadata clients take them."""
        number = self._fill(pods)
        for what, accept in (("as Table", TABLE), ("metadata only", METADATA_LIST)):
            connection = self.server.connection()
            with timed(self.pid) as took:
                connection.request("GET", f"{NAMESPACE}/pods", headers={"Authorization": f"Bearer {self.server.token}", "Accept": accept})
                size = len(connection.getresponse().read())
            connection.close()
            print(f"LIST of {number} pods {what:18} {took.wall:.3f} s   {size / 1e6:.1f} MB   CPU {took.cpu:.2f} s", flush=True)

    def stream(self, pods: int) -> None:
        """Streaming lists, to the bookmark that marks the end; the best of some, since one is over in the clock's few ticks."""
        number = self._fill(pods)
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        for what, accept in (("", "application/json"), ("as Table", TABLE)):
            walls, size = [], 0
            with timed(self.pid) as took:
                for _ in range(STREAMS):
                    started = time.monotonic()
                    size = self._streamed(f"{NAMESPACE}/pods?{query}", accept)
                    walls.append(time.monotonic() - started)
            cpu = took.cpu / STREAMS
            print(
                f"streaming list of {number} {what:10} {min(walls):.3f} s   {size / 1e6:.1f} MB   {size / 1e6 / min(walls):.0f} MB/s"
                f"   CPU {cpu:.3f} s: {size / 1e6 / max(cpu, 0.001):.0f} MB/s",
                flush=True,
            )

    def _streamed(self, path: str, accept: str) -> int:
        """Bytes until the mark. Read as they come, in large pieces, since a client that parses would be what is measured."""
        context = ssl.create_default_context(cafile=str(self.server.data_dir / "pki" / "ca.crt"))
        plain = socket.create_connection(("127.0.0.1", self.server.port))
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.server.token}\r\nAccept: {accept}\r\n\r\n"
            tls.sendall(head.encode())
            size, tail = 0, b""
            while b"k8s.io/initial-events-end" not in tail:
                data = tls.recv(1 << 18)
                assert data, "the stream ended before its mark"
                size += len(data)
                tail = tail[-64:] + data
        return size

    def kinds(self, objects: int) -> None:
        """What objects of many kinds add to the memory of the server's process."""
        before = memory_mb(self.server)
        connection = self.server.connection()
        bodies = 0
        for number in range(objects):
            path, body = OF_KINDS[number % len(OF_KINDS)]
            made = {**body, "metadata": {"name": f"kinds-{number}", "labels": {"app": "bench", "n": str(number % 10)}}}
            status, answer = self.server.request("POST", path.replace("NS", NAMESPACE), made, connection=connection)
            if status != 201:
                raise SystemExit(f"{path}: {answer}")
            bodies += len(json.dumps(answer))
        added = (memory_mb(self.server) - before) * 1024 / objects
        print(
            f"{objects} objects of {len(OF_KINDS)} kinds   {added:.1f} KB of memory each, served as {bodies / objects / 1024:.1f} KB",
            flush=True,
        )

    def _fill(self, pods: int) -> int:
        for round_number in range(100):
            _, page = self.server.request("GET", f"{NAMESPACE}/pods?limit=1")
            number = len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))
            if number >= pods:
                return number
            wrk(self.url, self.script(CREATE, stamp=f"f{round_number}"), 32, 2, self.pid)
        return number

    def fanout(self, watchers: int) -> None:
        events, took = asyncio.run(self._fanout(watchers))
        print(
            f"fan-out to {watchers} watchers      {events / took.wall:10.0f} events/s, lost {watchers * UPDATES - events}"
            f"   CPU {took.cpu / events * 1e6:.1f} µs/event: {events / took.cpu:.0f} events/s",
            flush=True,
        )

    async def _fanout(self, watchers: int) -> tuple[int, Took]:
        context = ssl.create_default_context(cafile=str(self.server.data_dir / "pki" / "ca.crt"))
        _, page = await asyncio.to_thread(self.server.request, "GET", f"{NAMESPACE}/configmaps?limit=1")
        revision = page["metadata"]["resourceVersion"]
        waiting = watchers
        all_open = asyncio.Event()

        async def follow() -> int:
            nonlocal waiting
            reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, ssl=context, limit=1 << 22)
            path = f"{NAMESPACE}/configmaps?watch=1&resourceVersion={revision}"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.server.token}\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            waiting -= 1
            if not waiting:
                all_open.set()
            seen = 0
            while seen < UPDATES:
                data = await reader.read(1 << 18)
                if not data:
                    break
                seen += data.count(b'"type":"MODIFIED"')
            writer.close()
            return seen

        tasks = [asyncio.create_task(follow()) for _ in range(watchers)]
        await all_open.wait()
        with timed(self.pid) as took:
            await asyncio.to_thread(self._update)
            counts = await asyncio.wait_for(asyncio.gather(*tasks), 120)
        return sum(counts), took

    def _update(self) -> None:
        connection = self.server.connection()
        for number in range(UPDATES):
            headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/merge-patch+json"}
            body = json.dumps({"data": {"k": f"{time.monotonic()}"}})
            connection.request("PATCH", f"{NAMESPACE}/configmaps/cm-{number}", body, headers)
            connection.getresponse().read()


def memory_mb(server: ServerProcess) -> int:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024  # type: ignore[index]


@dataclass(slots=True)
class Took:
    """Seconds; ``cpu`` is the server's process's."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def timed(pid: int) -> Iterator[Took]:
    took = Took()
    wall, cpu = time.monotonic(), cpu_seconds(pid)
    yield took
    took.wall, took.cpu = time.monotonic() - wall, cpu_seconds(pid) - cpu


def start_seconds(server: ServerProcess, rounds: int = 3) -> Took:
    """From the command to /readyz, the best of some rounds with warm files; ``cpu`` until the end right after it."""
    best = Took(1e9, 1e9)
    for _ in range(rounds):
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        server.start()
        wall = time.monotonic() - started
        server.stop()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        best = Took(min(best.wall, wall), min(best.cpu, cpu))
    return best


def prepare(server: ServerProcess) -> None:
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
    # no controllers run, so nobody else makes what every pod needs
    server.request("POST", f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
    connection = server.connection()
    for number in range(CONFIGMAPS):
        body: Any = {"metadata": {"name": f"cm-{number}"}, "data": {"k": "v" * 200}}
        server.request("POST", f"{NAMESPACE}/configmaps", body, connection=connection)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--kinds-objects", type=int, default=10_000)
    parser.add_argument("--only", default="get,patch,apply,create,list,forms,stream,fanout,kinds")
    flags = parser.parse_args()
    chosen = flags.only.split(",")
    with tempfile.TemporaryDirectory() as directory:
        # compiled as after an installation, also where the environment forbids to write bytecode next to the sources
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{directory}/bytecode"
        server = ServerProcess(Path(directory), "--no-controllers")
        start = start_seconds(server)
        print(f"start to ready              {start.wall:10.2f} s   CPU {start.cpu:.2f} s", flush=True)
        server.start()
        bare = BareUvicorn(server)
        try:
            bench = Bench(server, flags.seconds, bare)
            prepare(server)
            print(f"memory idle                 {memory_mb(server):10} MB", flush=True)
            for name in ("get", "patch", "apply", "create"):
                if name in chosen:
                    getattr(bench, name)()
            if "list" in chosen:
                bench.list(flags.pods)
            if "forms" in chosen:
                bench.forms(flags.pods)
            if "stream" in chosen:
                bench.stream(flags.pods)
            if "fanout" in chosen:
                bench.fanout(flags.watchers)
            if "kinds" in chosen:
                bench.kinds(flags.kinds_objects)
            print(f"memory loaded               {memory_mb(server):10} MB")
        finally:
            bare.stop()
            server.stop()


if __name__ == "__main__":
    main()
