"""``World``: a server that a story is told to, and the webhook that the server calls."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import parse_qsl

import aiohttp
import orjson

from tests.apiserver.api import JSON, Api
from tests.fakes.webhook_server import WebhookServer, http, serving
from tests.webhook_differential.told import told

READY_SECONDS = 60
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"

#: From path and body of a review to its response, or to the bytes of a whole HTTP answer.
Respond = Callable[[str, dict[str, Any]], Any]


class Asked(Protocol):
    async def __call__(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, Any, list[str]]: ...

    def watched(self, path: str, count: int) -> Awaitable[list[Any]]: ...


class RealServer:
    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self._session = session
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Accept": JSON}

    async def __call__(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, Any, list[str]]:
        headers = {**self._headers, "Content-Type": content_type}
        data = None if body is None else orjson.dumps(body)
        async with self._session.request(method, self._url + path, data=data, headers=headers) as answer:
            text = await answer.read()
            warnings = answer.headers.getall("Warning", [])
            try:
                return answer.status, orjson.loads(text), warnings
            except orjson.JSONDecodeError:
                return answer.status, text.decode(), warnings

    async def watched(self, path: str, count: int) -> list[Any]:
        found: list[Any] = []
        async with asyncio.timeout(20), self._session.get(f"{self._url}{path}", headers=self._headers) as answer:
            async for line in answer.content:
                found.append(orjson.loads(line))
                if len(found) == count:
                    break
        return found


class OwnServer:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def __call__(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, Any, list[str]]:
        path, _, query = path.partition("?")
        headers = {"user-agent": "Python/3 aiohttp/3"}  # as the real server is asked: the field manager of who names none
        content_type = content_type if body is not None else ""
        answer = await self._api.request(method, path, body, query=query, content_type=content_type, headers=headers)
        try:
            found = answer.json
        except orjson.JSONDecodeError:
            found = answer.body.decode()
        return answer.status, found, answer.headers.get("warning", [])

    async def watched(self, path: str, count: int) -> list[Any]:
        path, _, query = path.partition("?")
        pairs: dict[str, Any] = {name: value for name, value in parse_qsl(query) if name != "watch"}
        async with asyncio.timeout(20), self._api.watch(path, **pairs) as watch:
            return await watch.take(count)


class World:
    """``steps`` is what has come of the story so far."""

    def __init__(self, asked: Asked, server: WebhookServer, respond: list[Respond]) -> None:
        self.asked = asked
        self.server = server
        self.steps: list[dict[str, Any]] = []
        self._respond = respond
        self._reviews_seen = 0

    def webhook(self, respond: Respond) -> None:
        """How the webhook answers from now on."""
        self._respond[:] = [respond]

    def always(self, answer: dict[str, Any] | bytes) -> None:
        """The same response, or whole HTTP answer, to every review."""
        self.webhook(lambda path, review: answer)

    async def quiet(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> tuple[int, Any]:
        """A step that is no part of the story."""
        status, found, _ = await self.asked(method, path, body, content_type)
        return status, found

    async def do(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        """A step of the story; what was answered."""
        status, found, warnings = await self.asked(method, path, body, content_type)
        step: dict[str, Any] = {"did": told(f"{method} {path}"), "status": status, "body": told(found)}
        if warnings:
            step["warnings"] = told(warnings)
        self.steps.append(step)
        return found

    async def watch(self, path: str, count: int) -> list[Any]:
        """What a watch tells first."""
        found = await self.asked.watched(path, count)
        self.steps.append({"did": f"WATCH {told(path)}", "events": told(found)})
        return found

    def reviews(self) -> list[dict[str, Any]]:
        """What the webhook was asked since the last look: part of the story."""
        fresh = [{"path": told(path), "review": body} for path, body in self.server.asked[self._reviews_seen :]]
        self.forget_reviews()
        self.steps.append({"reviews": told(fresh)})
        return fresh

    def forget_reviews(self) -> None:
        self._reviews_seen = len(self.server.asked)

    async def until(self, path: str, holds: Callable[[int, Any], bool]) -> Any:
        ends = time.monotonic() + READY_SECONDS
        while True:
            status, found = await self.quiet("GET", path)
            if holds(status, found):
                return found
            assert time.monotonic() < ends, (path, found)
            await asyncio.sleep(0.02)


Story = Callable[[World], Awaitable[None]]


@contextlib.asynccontextmanager
async def world(asked: Asked) -> AsyncIterator[World]:
    behaviour: list[Respond] = []

    async def respond(path: str, body: bytes, writer: asyncio.StreamWriter) -> bytes:
        review = orjson.loads(body)
        answer = behaviour[0](path, review)
        if isinstance(answer, bytes):
            return answer
        response = {"uid": review["request"]["uid"], **answer}
        return http(orjson.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}))

    async with serving(respond) as server:
        yield World(asked, server, behaviour)


async def tell(story: Story, asked: Asked) -> list[dict[str, Any]]:
    async with world(asked) as found:
        await story(found)
        return found.steps
