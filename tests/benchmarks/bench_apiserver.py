"""The API server under load, next to bare uvicorn in the same run.

    python -m tests.benchmarks.bench_apiserver [--seconds 5] [--pods 5000] [--watchers 100] [--only get,patch,create,list,fanout]

Needs ``wrk``. Prints one line a workload: its figure, and its ratio to what bare uvicorn answers over TLS on this machine. Also how
long the start takes (the command to /readyz, files warm) and the memory of the server's process, idle and loaded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
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
PAGE = HEAD + f'request = function() return wrk.format("GET", "{NAMESPACE}/pods?limit=500", h) end'
BARE = 'request = function() return wrk.format("GET", "/") end'


def wrk(url: str, script: str, connections: int, seconds: int) -> float:
    """Requests a second; anything but 2xx ends the benchmark."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as handle:
        handle.write(script)
        handle.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", handle.name, url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    if wrong:
        raise SystemExit(f"{wrong[1]} requests were refused:\n{done.stdout}")
    found = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    assert found, done.stdout
    return float(found[1])


def bare_uvicorn(server: ServerProcess, seconds: int) -> float:
    port = free_port()
    pki = server.data_dir / "pki"
    command = [sys.executable, "-m", "tests.benchmarks.bare", str(port), str(pki / "apiserver.crt"), str(pki / "apiserver.key")]
    process = subprocess.Popen(command)
    try:
        time.sleep(1.5)
        return wrk(f"https://127.0.0.1:{port}", BARE, 16, seconds)
    finally:
        process.terminate()
        process.wait()


class Bench:
    def __init__(self, server: ServerProcess, seconds: int, bare: float) -> None:
        self.server, self.seconds, self.bare = server, seconds, bare
        self.url = f"https://127.0.0.1:{server.port}"

    def script(self, text: str, content: str = "application/json", stamp: str = "") -> str:
        return text.replace("TOKEN", self.server.token).replace("CONTENT", content).replace("STAMP", stamp)

    def show(self, what: str, rate: float) -> None:
        print(f"{what:28} {rate:10.0f}/s   {rate / self.bare:6.3f} of bare uvicorn", flush=True)

    def get(self) -> None:
        self.show("GET, 16 clients", wrk(self.url, self.script(GET), 16, self.seconds))

    def patch(self) -> None:
        self.show("merge patch, 16 clients", wrk(self.url, self.script(PATCH, "application/merge-patch+json"), 16, self.seconds))

    def create(self) -> None:
        for clients in (1, 32):
            rate = wrk(self.url, self.script(CREATE, stamp=f"c{clients}"), clients, self.seconds)
            self.show(f"create pods, {clients} clients", rate)

    def list(self, pods: int) -> None:
        number = self._fill(pods)
        for what, query in (("", ""), ("resourceVersion=0", "?resourceVersion=0"), ("by label", "?labelSelector=tier%3Dt3")):
            connection = self.server.connection()
            started = time.monotonic()
            connection.request("GET", f"{NAMESPACE}/pods{query}", headers={"Authorization": f"Bearer {self.server.token}"})
            size = len(connection.getresponse().read())
            took = time.monotonic() - started
            connection.close()
            print(f"LIST of {number} pods {what:18} {took:.3f} s   {size / 1e6:.1f} MB   {size / 1e6 / took:.0f} MB/s", flush=True)
        self.show("LIST limit=500, 8 clients", wrk(self.url, self.script(PAGE), 8, self.seconds))

    def _fill(self, pods: int) -> int:
        for round_number in range(100):
            _, page = self.server.request("GET", f"{NAMESPACE}/pods?limit=1")
            number = len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))
            if number >= pods:
                return number
            wrk(self.url, self.script(CREATE, stamp=f"f{round_number}"), 32, 2)
        return number

    def fanout(self, watchers: int) -> None:
        events, took = asyncio.run(self._fanout(watchers))
        print(f"fan-out to {watchers} watchers      {events / took:10.0f} events/s, lost {watchers * UPDATES - events}", flush=True)

    async def _fanout(self, watchers: int) -> tuple[int, float]:
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
        started = time.monotonic()
        await asyncio.to_thread(self._update)
        counts = await asyncio.wait_for(asyncio.gather(*tasks), 120)
        return sum(counts), time.monotonic() - started

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


def start_seconds(server: ServerProcess, rounds: int = 3) -> float:
    """From the command to /readyz, the best of some rounds with warm files."""
    best = 1e9
    for _ in range(rounds):
        started = time.monotonic()
        server.start()
        best = min(best, time.monotonic() - started)
        server.stop()
    return best


def prepare(server: ServerProcess) -> None:
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
    for _ in range(100):
        if server.request("GET", f"{NAMESPACE}/serviceaccounts/default")[0] == 200:
            break
        time.sleep(0.1)
    connection = server.connection()
    for number in range(CONFIGMAPS):
        body: Any = {"metadata": {"name": f"cm-{number}"}, "data": {"k": "v" * 200}}
        server.request("POST", f"{NAMESPACE}/configmaps", body, connection=connection)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--only", default="get,patch,create,list,fanout")
    flags = parser.parse_args()
    chosen = flags.only.split(",")
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess(Path(directory), "--no-controllers")
        print(f"start to ready              {start_seconds(server):10.2f} s")
        server.start()
        try:
            bench = Bench(server, flags.seconds, bare_uvicorn(server, flags.seconds))
            bench.show("bare uvicorn over TLS", bench.bare)
            prepare(server)
            print(f"memory idle                 {memory_mb(server):10} MB")
            for name in ("get", "patch", "create"):
                if name in chosen:
                    getattr(bench, name)()
            if "list" in chosen:
                bench.list(flags.pods)
            if "fanout" in chosen:
                bench.fanout(flags.watchers)
            print(f"memory loaded               {memory_mb(server):10} MB")
        finally:
            server.stop()


if __name__ == "__main__":
    main()
