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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

logger = logging.getLogger(__name__)

_HEADERS = {"X-Content-Type-Options": "nosniff"}


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


def router(*, healthz: Sequence[HealthCheck], livez: Sequence[HealthCheck], readyz: Sequence[HealthCheck]) -> APIRouter:
    """The three endpoints; ``ping`` comes first in each by itself."""
    routes = APIRouter()
    for endpoint, checks in (("healthz", healthz), ("livez", livez), ("readyz", readyz)):
        _add(routes, endpoint, (PING, *checks))
    return routes


def _add(routes: APIRouter, endpoint: str, checks: Sequence[HealthCheck]) -> None:
    async def root(request: Request) -> PlainTextResponse:
        query = request.query_params
        code, body = evaluate(endpoint, checks, query.getlist("exclude"), verbose="verbose" in query)
        return PlainTextResponse(body, code, _HEADERS)

    routes.add_api_route(f"/{endpoint}", root, methods=["GET", "HEAD"], include_in_schema=False)
    for check in checks:
        _add_single(routes, endpoint, check)


def _add_single(routes: APIRouter, endpoint: str, check: HealthCheck) -> None:
    async def single() -> PlainTextResponse:
        problem = check.check()
        return PlainTextResponse(f"internal server error: {problem}\n" if problem else "ok", 500 if problem else 200, _HEADERS)

    routes.add_api_route(f"/{endpoint}/{check.name}", single, methods=["GET", "HEAD"], include_in_schema=False)
