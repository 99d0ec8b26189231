"""``/healthz``, ``/livez``, ``/readyz``: named checks, each with a path of its own ("Kubernetes API health endpoints").

    GET /readyz              ok                      | 500 with the list of checks
    GET /readyz?verbose      [+]ping ok … readyz check passed
    GET /readyz?exclude=etcd the rest decides
    GET /readyz/etcd         that check alone

Checks answer from memory: what needs waiting is found out elsewhere and remembered.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_NO_SNIFF = (b"x-content-type-options", b"nosniff")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """``check`` answers "" while all is well, else what is wrong, for the log and for the check's own path."""

    name: str
    check: Callable[[], str]


PING = HealthCheck(name="ping", check=lambda: "")


def evaluate(endpoint: str, checks: Sequence[HealthCheck], excluded: Sequence[str], *, verbose: bool) -> tuple[int, str]:
    """(status, body) of ``/endpoint``. Why a check fails is not told here: anybody may read this."""
    lines: list[str] = []
    failed: list[str] = []
    unknown = dict.fromkeys(excluded)
    for check in checks:
        if check.name in excluded:
            unknown.pop(check.name, None)
            lines.append(f"[+]{check.name} excluded: ok")
            continue
        problem = check.check()
        if problem:
            failed.append(check.name)
            lines.append(f"[-]{check.name} failed: reason withheld")
            logger.info("health check failed: endpoint=%s check=%s problem=%s", endpoint, check.name, problem)
        else:
            lines.append(f"[+]{check.name} ok")
    if unknown:
        listed = ",".join(json.dumps(name) for name in sorted(unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {listed}")
    if failed:
        return 500, "\n".join([*lines, f"{endpoint} check failed\n"])
    return 200, "\n".join([*lines, f"{endpoint} check passed\n"]) if verbose else "ok"


class HealthEndpoints:
    """An ASGI app: the three endpoints, everything else is ``fallback``'s. It needs no framework, since a server is asked whether it
    is ready before the framework for its documents has been loaded."""

    def __init__(
        self, fallback: ASGIApp, *, healthz: Sequence[HealthCheck], livez: Sequence[HealthCheck], readyz: Sequence[HealthCheck]
    ) -> None:
        """``ping`` comes first in each by itself."""
        self._fallback = fallback
        self._endpoints = {f"/{name}": (PING, *checks) for name, checks in (("healthz", healthz), ("livez", livez), ("readyz", readyz))}
        self._single = {f"{path}/{check.name}": check for path, checks in self._endpoints.items() for check in checks}

    def paths(self) -> list[str]:
        return [*self._endpoints, *self._single]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer(scope["path"], scope["query_string"]) if scope["method"] in ("GET", "HEAD") else None
        if answer is None:
            await self._fallback(scope, receive, send)
            return
        code, text = answer
        body = text.encode()
        headers = [_TEXT, (b"content-length", str(len(body)).encode())]
        if scope["path"] in self._endpoints or code != 200:
            headers.append(_NO_SNIFF)
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, path: str, query_string: bytes) -> tuple[int, str] | None:
        checks = self._endpoints.get(path)
        if checks is not None:
            query = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
            return evaluate(path[1:], checks, query.get("exclude", []), verbose="verbose" in query)
        check = self._single.get(path)
        if check is None:
            return None
        problem = check.check()
        return (500, f"internal server error: {problem}\n") if problem else (200, "ok")
