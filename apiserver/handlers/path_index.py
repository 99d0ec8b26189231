"""``/`` and every path that nothing serves: the list of paths that are served (apiserver ``server/routes/index.go``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_PARAMETER = re.compile(r"\{.*")


def with_path_index(app: FastAPI) -> FastAPI:
    """Call once all routes are in: they are what is listed."""
    paths = sorted({path for route in app.routes if isinstance(route, Route) for path in _listed(route.path)})

    async def index(request: Request) -> Response:
        return JSONResponse({"paths": paths})

    async def not_found(request: Request, error: Exception) -> Response:
        return JSONResponse({"paths": paths}, status_code=404)

    app.add_route("/", index, methods=["GET"], include_in_schema=False)
    app.add_exception_handler(404, not_found)
    return app


def _listed(path: str) -> Iterable[str]:
    if not _PARAMETER.search(path):
        yield path
