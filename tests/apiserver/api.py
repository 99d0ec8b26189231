"""An API server over a store in memory, called in process: no socket, no thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.config import ServerConfig, StoreConfig
from apiserver.server import ApiServer
from storage import api as storage_api
from tests.fakes.stores import store

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, list[str]]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])

    @property
    def reason(self) -> str:
        return str(self.json.get("reason", ""))

    @property
    def causes(self) -> list[dict[str, str]]:
        return list(self.json["details"]["causes"])


@dataclass(slots=True)
class Watch:
    """An open watch: ``next`` answers the next event; ``ended`` whether the response ended as it should."""

    task: asyncio.Task[None]
    queue: asyncio.Queue[bytes | None]
    started: asyncio.Event
    gone: asyncio.Event
    head: dict[str, Any] = field(default_factory=dict)
    _rest: bytes = b""
    _lines: list[bytes] = field(default_factory=list)
    ended: bool = False

    async def next(self, seconds: float = 5) -> Any:
        async with asyncio.timeout(seconds):
            while not self._lines:
                piece = await self.queue.get()
                if piece is None:
                    self.ended = True
                    return None
                *lines, self._rest = (self._rest + piece).split(b"\n")
                self._lines += lines
            return orjson.loads(self._lines.pop(0))

    async def take(self, count: int) -> list[Any]:
        return [await self.next() for _ in range(count)]

    async def close(self) -> None:
        self.gone.set()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


class Api:
    """``server`` is the real thing; requests are made as an administrator unless ``token`` says otherwise."""

    def __init__(self, server: ApiServer, kv: storage_api.KV) -> None:
        self.server = server
        self.kv = kv

    def scope(self, method: str, path: str, query: Any, headers: dict[str, str]) -> dict[str, Any]:
        return {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": (query if isinstance(query, str) else urlencode(query or {}, doseq=True)).encode(),
            "headers": [(key.lower().encode(), value.encode()) for key, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "scheme": "https",
            "http_version": "1.1",
            "root_path": "",
            "server": ("127.0.0.1", 6443),
        }

    def _headers(self, headers: dict[str, str] | None, content_type: str, token: str) -> dict[str, str]:
        found = {"accept": JSON, **(headers or {})}
        if token:
            found["authorization"] = f"Bearer {token}"
        if content_type:
            found["content-type"] = content_type
        return found

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Any = None,
        content_type: str = "",
        headers: dict[str, str] | None = None,
        token: str = "admin-token",
    ) -> Answer:
        raw = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        if body is not None and not content_type:
            content_type = JSON
        messages: list[dict[str, Any]] = []
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()
            sent = True
            return {"type": "http.request", "body": raw, "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        await self.server.app(self.scope(method, path, query, self._headers(headers, content_type, token)), receive, send)
        found: dict[str, list[str]] = {}
        for key, value in messages[0]["headers"]:
            found.setdefault(key.decode(), []).append(value.decode())
        return Answer(messages[0]["status"], found, b"".join(m.get("body", b"") for m in messages[1:]))

    async def get(self, path: str, **more: Any) -> Answer:
        return await self.request("GET", path, **more)

    async def post(self, path: str, body: Any, **more: Any) -> Answer:
        return await self.request("POST", path, body, **more)

    async def put(self, path: str, body: Any, **more: Any) -> Answer:
        return await self.request("PUT", path, body, **more)

    async def patch(self, path: str, body: Any, content_type: str = MERGE, **more: Any) -> Answer:
        return await self.request("PATCH", path, body, content_type=content_type, **more)

    async def delete(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self.request("DELETE", path, body, **more)

    async def created(self, path: str, body: Any) -> Any:
        answer = await self.post(path, body)
        assert answer.status == 201, answer.body
        return answer.json

    @contextlib.asynccontextmanager
    async def watch(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> AsyncIterator[Watch]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        started, gone = asyncio.Event(), asyncio.Event()
        scope = self.scope("GET", path, {"watch": "1", **query}, self._headers(headers, "", "admin-token"))
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found.head.update(message)
                started.set()
                return
            if message.get("body"):
                queue.put_nowait(message["body"])
            if not message.get("more_body"):
                queue.put_nowait(None)

        task = asyncio.create_task(self.server.app(scope, receive, send))
        found = Watch(task, queue, started, gone)
        await started.wait()
        try:
            yield found
        finally:
            await found.close()


def config_in(directory: Path, **more: Any) -> ServerConfig:
    """Keys are made once per directory."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = directory / "sa.key", directory / "sa.pub"
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    tokens = directory / "tokens.csv"
    tokens.write_text('admin-token,admin,1,"system:masters"\nalice-token,alice,2,"devs"\n')
    return ServerConfig(
        cert_dir=directory,
        tls_cert_file=directory / "unused.crt",
        tls_private_key_file=directory / "unused.key",
        token_auth_file=tokens,
        service_account_key_file=(public,),
        service_account_signing_key_file=private,
        store=StoreConfig(data_dir=directory),
        **more,
    )


@contextlib.asynccontextmanager
async def running(config: ServerConfig, kv: storage_api.KV | None = None) -> AsyncIterator[Api]:
    """Over ``kv``, or over an empty store of the kind that the tests run on."""
    async with contextlib.AsyncExitStack() as stack:
        kv = kv if kv is not None else await stack.enter_async_context(store())
        server = ApiServer(config, kv)
        await server.start("127.0.0.1", 6443)
        task = asyncio.create_task(server.run())
        try:
            yield Api(server, kv)
        finally:
            server.stop()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
