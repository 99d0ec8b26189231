"""``/debug/api_priority_and_fairness/dump_*``: what waits and runs at each priority level."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from apiserver.flowcontrol import dump
from apiserver.flowcontrol.dispatcher import Dispatcher

_PREFIX = "/debug/api_priority_and_fairness"


def router(dispatcher: Dispatcher) -> APIRouter:
    routes = APIRouter()

    async def levels() -> PlainTextResponse:
        return PlainTextResponse(dump.priority_levels(dispatcher))

    async def queues() -> PlainTextResponse:
        return PlainTextResponse(dump.queues(dispatcher.levels()))

    async def requests(request: Request) -> PlainTextResponse:
        details = bool(request.query_params.get("includeRequestDetails"))
        return PlainTextResponse(dump.requests(dispatcher.levels(), time.monotonic(), time.time(), details=details))

    for name, endpoint in (("dump_priority_levels", levels), ("dump_queues", queues), ("dump_requests", requests)):
        routes.add_api_route(f"{_PREFIX}/{name}", endpoint, methods=["GET"], include_in_schema=False)
    return routes
