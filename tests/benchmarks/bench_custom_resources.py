"""A thousand definitions, and the objects of one: what they cost the server's process.

    python -m tests.benchmarks.bench_custom_resources [--definitions 1000] [--properties 60] [--objects 3000]

Definitions have schemas of some kilobytes (``--properties`` fields with descriptions). Told are wall and CPU seconds of the server until
all are established, and its memory: before, after, with every resource listed once (as a garbage collector does), and with the documents
of discovery and OpenAPI made. Then objects are created by 32 clients under no, one, five and twenty rules, next to bare uvicorn (needs
``wrk``). Last the server is killed and started again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.benchmarks.bench_apiserver import HEAD, BareUvicorn, Load, cpu_seconds, wrk
from tests.e2e.server_process import ServerProcess

CLIENTS = 32
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CREATE = HEAD + (
    "request = function() c = c + 1\n"
    """local body = string.format('{"apiVersion":"g0.bench.test/v1","kind":"Thing","metadata":{"name":"t-STAMP-%d"},"""
    """"spec":{"field0":"a","field1":"b","field2":"c","field3":"d"}}', c)\n"""
    'return wrk.format("POST", "/apis/g0.bench.test/v1/namespaces/default/things", h, body) end'
)


#: rules as operators write them: of one field, of several, of old and new, over a list of what is there
RULES = (
    "self.field0 != 'forbidden'",
    "!has(self.field4) || has(self.field5)",
    "self.field1.matches('^[a-z]+$')",
    "[self.field0, self.field1, self.field2, self.field3].all(x, x.size() < 20)",
    "self.field2 >= oldSelf.field2",
)


#: rules of the last definitions, the last one's first
RULE_COUNTS = (1, 5, 20)


def of_number(number: int, count: int) -> list[str]:
    """The rules of one of ``count`` definitions."""
    back = count - number - 1
    wanted = RULE_COUNTS[back] if back < len(RULE_COUNTS) else 0
    return [RULES[n % len(RULES)] + f" || self.field{n % 4} == 'v{n}'" * (n >= len(RULES)) for n in range(wanted)]


def definition(number: int, properties: int, rules: Sequence[str] = ()) -> dict[str, Any]:
    group = f"g{number}.bench.test"
    about = "What this field is for, in a sentence or two, as generated definitions have it from the comments of their source."
    fields: dict[str, Any] = {f"field{i}": {"type": "string", "description": about} for i in range(properties)}
    if rules:
        fields = {name: {**field, "maxLength": 100} for name, field in fields.items()}
    spec: dict[str, Any] = {"type": "object", "properties": fields}
    if rules:
        spec["x-kubernetes-validations"] = [{"rule": rule} for rule in rules]
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    names = {"plural": "things", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def register(server: ServerProcess, count: int, properties: int) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    base = f"https://127.0.0.1:{server.port}"
    assert server.process is not None
    pid = server.process.pid
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=False, limit=CLIENTS)) as session:

        async def get(path: str, accept: str = "application/json") -> bytes:
            async with session.get(base + path, headers={"Accept": accept}) as answer:
                assert answer.status == 200, (path, await answer.text())
                return await answer.read()

        async def create(number: int) -> None:
            body = definition(number, properties, of_number(number, count))
            async with session.post(base + CRDS, json=body) as answer:
                assert answer.status == 201, await answer.text()

        print(f"idle: {resident_mb(pid):.0f} MB")
        began, spent = time.monotonic(), cpu_seconds(pid)
        for start in range(0, count, CLIENTS):
            await asyncio.gather(*(create(number) for number in range(start, min(start + CLIENTS, count))))
        while True:
            items = json.loads(await get(CRDS))["items"]
            done = sum(
                any(c["type"] == "Established" and c["status"] == "True" for c in item["status"].get("conditions") or ()) for item in items
            )
            if done == count:
                break
            await asyncio.sleep(0.5)
        wall, cpu = time.monotonic() - began, cpu_seconds(pid) - spent
        size = len(json.dumps(definition(0, properties)))
        print(f"{count} definitions of {size} bytes established: {wall:.1f} s wall, {cpu:.1f} s CPU; {resident_mb(pid):.0f} MB")
        for number in range(count):
            await get(f"/apis/g{number}.bench.test/v1/things")
        print(f"every resource listed once: {resident_mb(pid):.0f} MB")
        began = time.monotonic()
        document = await get("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        print(f"aggregated discovery: {len(document)} bytes, {time.monotonic() - began:.2f} s")
        began = time.monotonic()
        document = await get("/openapi/v3")
        print(f"index of OpenAPI v3: {len(document)} bytes, {time.monotonic() - began:.2f} s")
        began = time.monotonic()
        document = await get("/openapi/v2")
        print(f"OpenAPI v2: {len(document)} bytes, {time.monotonic() - began:.2f} s; {resident_mb(pid):.0f} MB")


def create_objects(server: ServerProcess, seconds: int, definitions: int) -> None:
    assert server.process is not None
    script = CREATE.replace("TOKEN", server.token).replace("CONTENT", "application/json").replace("STAMP", "a")
    bare = BareUvicorn(server)
    try:
        reference = bare.load(seconds)
    finally:
        bare.stop()
    found = wrk(f"https://127.0.0.1:{server.port}", script, CLIENTS, seconds, server.process.pid)
    tell("creates", found, reference)
    for back, rules in enumerate(RULE_COUNTS, 1):
        ruled = script.replace("g0.bench.test", f"g{definitions - back}.bench.test")
        found = wrk(f"https://127.0.0.1:{server.port}", ruled, CLIENTS, seconds, server.process.pid)
        tell(f"creates under {rules} rule{'s' if rules > 1 else ''}", found, reference)


def tell(what: str, found: Load, reference: Load) -> None:
    print(
        f"{what} by {CLIENTS} clients: {found.rate:.0f}/s, {found.cpu_us:.0f} us of CPU; bare uvicorn {reference.rate:.0f}/s, "
        f"{reference.cpu_us:.0f} us; ratio by CPU {reference.cpu_us / found.cpu_us:.3f}"
    )


def restart(server: ServerProcess, definitions: int) -> None:
    """After a SIGKILL, until it is ready and until the objects of a definition are listed."""
    server.kill()
    began = time.monotonic()
    server.start()
    assert server.process is not None
    pid, ready = server.process.pid, time.monotonic() - began
    spent = cpu_seconds(pid)
    code, _ = server.request("GET", f"/apis/g{definitions // 2}.bench.test/v1/things")
    assert code == 200, code
    print(f"killed and started again: ready after {ready:.2f} s ({spent:.2f} s CPU), objects listed after {time.monotonic() - began:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--definitions", type=int, default=1000)
    parser.add_argument("--properties", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--no-objects", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = ServerProcess(Path(directory), "--nodes", "0", "--controllers=serviceaccount")
        server.start()
        try:
            asyncio.run(register(server, args.definitions, args.properties))
            if not args.no_objects:
                create_objects(server, args.seconds, args.definitions)
            restart(server, args.definitions)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
