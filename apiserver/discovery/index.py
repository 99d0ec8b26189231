"""``/``, and the answer for paths that lead nowhere: both name the paths that lead somewhere (apiserver ``routes/index``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from apiserver.machinery import status
from apiserver.resources.table import ResourceTable


def install(app: FastAPI, table: ResourceTable, further: Sequence[str] = ()) -> None:
    """``app`` may get more routes later; they are listed as well, and so are ``further`` paths, which others serve."""

    async def index(request: Request) -> Response:
        return _answer(app, table, further, 200)

    async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
        await _answer(app, table, further, 404)(scope, receive, send)

    async def refused(request: Request, error: Exception) -> Response:
        """What the framework refuses by itself: a method that a path does not take."""
        assert isinstance(error, HTTPException)
        method = error.status_code == 405
        body = status.generic_method_not_allowed().status if method else status.failure(error.status_code, "", error.detail)
        return Response(orjson.dumps(body), error.status_code, error.headers, media_type="application/json")

    app.add_exception_handler(HTTPException, refused)
    app.add_route("/", index, methods=["GET"], include_in_schema=False)
    app.router.default = not_found


def paths(app: FastAPI, table: ResourceTable, further: Sequence[str] = ()) -> list[str]:
    """All fixed paths, sorted."""
    found = {"/api", "/apis", "/apis/", *further}
    for path in _route_paths(app.routes):
        if len(path) > 1 and "{" not in path:
            found.add(path.rstrip("/"))
    for group in table.groups():
        if group:
            found.add(f"/apis/{group}")
        found |= {f"/apis/{group}/{version}" if group else f"/api/{version}" for version in table.versions(group)}
    return sorted(found)


def _route_paths(routes: Iterable[BaseRoute]) -> Iterator[str]:
    """Of the routes and of the routers among them, which FastAPI keeps whole."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _route_paths(inner.routes)
        else:
            yield getattr(route, "path", "")


def _answer(app: FastAPI, table: ResourceTable, further: Sequence[str], code: int) -> Response:
    body = orjson.dumps({"paths": paths(app, table, further)}, option=orjson.OPT_INDENT_2)
    return Response(body, code, media_type="application/json")
