"""OpenAPI over HTTP: forms, hashes, conditional requests, and the real kubectl reading it."""

from __future__ import annotations

import asyncio
import gzip
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import fastapi
import httpx
import pytest
import uvicorn

from apiserver.discovery import openapi_routes, routes
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable
from apiserver.schemas.schema_set import SchemaSet

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def app(table: ResourceTable) -> fastapi.FastAPI:
    found = fastapi.FastAPI(openapi_url=None)
    found.include_router(routes.router(table))
    found.include_router(openapi_routes.router(table, SchemaSet.load(table.kubernetes_version)))
    return found


def client(table: ResourceTable) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app(table)), base_url="http://127.0.0.1:6443")


async def test_version_2_comes_as_json_or_protobuf() -> None:
    async with client(ResourceTable("1.30")) as http:
        as_json = await http.get("/openapi/v2")
        as_protobuf = await http.get("/openapi/v2", headers={"Accept": PROTOBUF})
        neither = await http.get("/openapi/v2", headers={"Accept": "text/csv"})
        again = await http.get("/openapi/v2", headers={"If-None-Match": as_json.headers["etag"]})
    assert (as_json.headers["content-type"], as_json.json()["info"]["version"]) == ("application/json", "v1.30.0")
    assert as_protobuf.headers["content-type"] == PROTOBUF.replace("@", ".")
    assert as_protobuf.content.startswith(b"\x0a\x032.0")
    assert neither.status_code == 406
    assert (again.status_code, again.content) == (304, b"")


async def test_version_3_is_found_by_its_index() -> None:
    async with client(ResourceTable("1.37")) as http:
        index = (await http.get("/openapi/v3")).json()["paths"]
        url = index["apis/apps/v1"]["serverRelativeURL"]
        found = await http.get(url)
        old = await http.get("/openapi/v3/apis/apps/v1?hash=ABC")
        unnamed = await http.get("/openapi/v3/apis/apps/v1")
        missing = await http.get("/openapi/v3/apis/nothing.test/v1")
        wrong = await http.post("/openapi/v3")
    assert "immutable" in found.headers["cache-control"]
    assert "/apis/apps/v1/deployments" in found.json()["paths"]
    assert (old.status_code, old.headers["location"]) == (301, url)
    assert "cache-control" not in unnamed.headers
    assert unnamed.headers["etag"].strip('"') == url.partition("hash=")[2]
    assert (missing.status_code, missing.text) == (404, "404 page not found\n")
    assert wrong.json()["reason"] == "MethodNotAllowed"


async def test_who_cannot_unpack_gets_it_unpacked() -> None:
    async with client(ResourceTable("1.37")) as http:
        async with http.stream("GET", "/openapi/v3/apis/policy/v1", headers={"Accept-Encoding": "gzip"}) as packed:
            raw = b"".join([chunk async for chunk in packed.aiter_raw()])
        plain = await http.get("/openapi/v3/apis/policy/v1", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert "content-encoding" not in plain.headers


async def test_documents_follow_the_resources() -> None:
    table = ResourceTable("1.37")
    gadgets = ResourceInfo(group="demo.test", version="v1", resource="gadgets", kind="Gadget", list_kind="GadgetList", builtin=False)
    async with client(table) as http:
        before = (await http.get("/openapi/v2")).json()["definitions"]
        table.add(gadgets)
        after = (await http.get("/openapi/v2")).json()["definitions"]
        document = await http.get("/openapi/v3/apis/demo.test/v1")
    assert "test.demo.v1.Gadget" not in before
    assert "test.demo.v1.Gadget" in after
    assert "/apis/demo.test/v1/namespaces/{namespace}/gadgets" in document.json()["paths"]


async def test_many_who_ask_at_once_wait_for_one_build_and_the_loop_goes_on() -> None:
    async with client(ResourceTable("1.37")) as http:
        answers = await asyncio.gather(*(http.get("/openapi/v2") for _ in range(5)))
    assert len({answer.headers["etag"] for answer in answers}) == 1


@asynccontextmanager
async def listening(table: ResourceTable) -> AsyncIterator[str]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()  # so that who comes before the server is up waits for it
        server = uvicorn.Server(uvicorn.Config(app(table), log_level="error", lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("output", ["plaintext", "plaintext-openapiv2"])
async def test_kubectl_explains_from_either_version(tmp_path: Path, output: str) -> None:
    async with listening(ResourceTable("1.37")) as url:
        command = ["kubectl", "-s", url, "explain", "deployment.spec.strategy", "--recursive", "--output", output]
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=environment
        )
        text = (await process.communicate())[0].decode()
    assert process.returncode == 0, text
    assert "Deployment" in text
    for field in ("rollingUpdate", "maxSurge", "maxUnavailable", "type"):
        assert field in text
