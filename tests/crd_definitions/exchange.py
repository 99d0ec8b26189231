"""How either server is asked: one request in, the outcome in the form that is compared out."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import orjson

from tests.apiserver.api import JSON, config_in, running
from tests.crd_definitions import outcomes

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: of the server that was recorded
MINOR = "1.36"
SECONDS_MAX = 60
ESTABLISHED_SECONDS_MAX = 60
ASKED_AT_ONCE = 8
HEADERS = {"accept": JSON, "user-agent": "probe/1"}


@dataclass(frozen=True, slots=True)
class Reply:
    code: int
    body: Any
    warnings: tuple[str, ...]


#: method, path with query, body (bytes as they are, else JSON), content type, accept
Ask = Callable[[str, str, Any, str, str], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request. ``quiet``: prepares, and only has to succeed. ``established``: wait until the definition at ``path`` is, and answer it.
    ``again``: may be asked any number of times, so that an order of causes that is an accident shows itself."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    quiet: bool = False
    established: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    steps: tuple[Step, ...]


def create(body: Any, *, query: str = "dryRun=All", **more: Any) -> Step:
    return Step(method="POST", path=f"{DEFINITIONS}?{query}", body=body, again="dryRun" in query, **more)


@contextlib.asynccontextmanager
async def over_http(url: str, token: str) -> AsyncIterator[Ask]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a server on this machine, with a certificate of its own
    timeout = aiohttp.ClientTimeout(total=SECONDS_MAX)
    connector = aiohttp.TCPConnector(ssl=context, limit=ASKED_AT_ONCE)
    headers = {**HEADERS, "authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:

        async def ask(method: str, path: str, body: Any, content_type: str, accept: str) -> Reply:
            data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
            sent = {"accept": accept} if data is None else {"accept": accept, "content-type": content_type}
            async with session.request(method, url + path, data=data, headers=sent) as answer:
                return _reply(answer.status, await answer.read(), answer.headers.getall("warning", []))

        yield ask


@contextlib.asynccontextmanager
async def in_process(directory: Path) -> AsyncIterator[Ask]:
    async with running(config_in(directory, kubernetes_version=MINOR)) as api:

        async def ask(method: str, path: str, body: Any, content_type: str, accept: str) -> Reply:
            at, _, query = path.partition("?")
            headers = {**HEADERS, "accept": accept}
            kind = "" if body is None else content_type
            answer = await api.request(method, at, body, query=query, content_type=kind, headers=headers)
            return _reply(answer.status, answer.body, answer.headers.get("warning", []))

        yield ask


def _reply(code: int, body: bytes, warnings: list[str]) -> Reply:
    try:
        parsed = orjson.loads(body)
    except ValueError:
        parsed = body.decode(errors="replace")
    return Reply(code, parsed, tuple(warnings))


def quoted(**query: str) -> str:
    return urlencode(query)


async def outcome(ask: Ask, case: Case, *, times: int = 1) -> list[Any]:
    """What each step that is not quiet answers. ``times``: how often a step is asked that can be, to tell orders from accidents."""
    found: list[Any] = []
    for step in case.steps:
        if step.established:
            found.append(outcomes.of(await _established(ask, step.path, case.name)))
            continue
        body = step.body
        reply = await ask(step.method, step.path, body, step.content_type, step.accept)
        if step.quiet:
            assert reply.code < 300, (case.name, step.path, reply)
            continue
        shown = outcomes.of(reply)
        for _ in range(times - 1 if step.again and len(outcomes.causes(reply)) > 1 else 0):
            more = outcomes.of(await ask(step.method, step.path, body, step.content_type, step.accept))
            if outcomes.unordered(more) != outcomes.unordered(shown):
                shown["unsteady"] = True
            elif more != shown:
                shown["any_order"] = True
        found.append(shown)
    return found


async def _established(ask: Ask, path: str, name: str) -> Reply:
    async with asyncio.timeout(ESTABLISHED_SECONDS_MAX):
        while True:
            reply = await ask("GET", path, None, JSON, JSON)
            assert reply.code == 200, (name, reply)
            conditions = (reply.body.get("status") or {}).get("conditions") or ()
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return reply
            await asyncio.sleep(0.02)


async def outcomes_of(ask: Ask, cases: list[Case], *, times: int = 1) -> dict[str, list[Any]]:
    gate = asyncio.Semaphore(ASKED_AT_ONCE)

    async def one(case: Case) -> tuple[str, list[Any]]:
        async with gate:
            return case.name, await outcome(ask, case, times=times)

    return dict(await asyncio.gather(*(one(case) for case in cases)))
