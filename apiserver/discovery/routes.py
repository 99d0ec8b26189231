"""The routes of discovery and ``/version``.

Authentication, authorization and the like happen before these routes; they only look up bytes.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Awaitable, Callable

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from apiserver.discovery import accept, documents, merging
from apiserver.discovery.accept import DiscoveryForm, Wanted
from apiserver.discovery.cache import Body, DocumentCache
from apiserver.discovery.merging import Extensions
from apiserver.machinery import status
from apiserver.machinery.status import StatusError
from apiserver.request import negotiation
from apiserver.request.rendering import render
from apiserver.resources.table import ResourceTable

Endpoint = Callable[[Request], Awaitable[Response]]

#: all are routed, so that the ones that are not GET are refused in Kubernetes' words
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "AMD64": "amd64"}


def router(table: ResourceTable, extensions: Extensions | None = None) -> APIRouter:
    """Serves what ``table`` holds at the time of each request, and what ``extensions`` add."""
    discovery = _Discovery(table, extensions)
    routes = APIRouter()
    for path, endpoint, any_method in (
        ("/api", discovery.api, False),
        ("/api/{version}", discovery.core_version, False),
        # whoever answers for the groups does not look at the method
        ("/apis", discovery.apis, True),
        ("/apis/{group}", discovery.group, True),
        ("/apis/{group}/{version}", discovery.group_version, False),
        ("/version", discovery.version, False),
    ):
        for spelled in (path, path + "/"):
            routes.add_route(spelled, told_by_status(endpoint, any_method=any_method), methods=METHODS, include_in_schema=False)
    return routes


def only_get(endpoint: Endpoint) -> Endpoint:
    """Answers other methods, and StatusErrors, with a Status."""
    return told_by_status(endpoint)


def _of(request: Request) -> tuple[dict[bytes, bytes], dict[str, list[str]]]:
    """The headers and the query as negotiation wants them."""
    query = request.query_params
    return dict(request.scope["headers"]), {name: query.getlist(name) for name in query}


def told_by_status(endpoint: Endpoint, *, any_method: bool = False) -> Endpoint:
    """Answers StatusErrors, and methods that are not served, with a Status."""

    async def answer(request: Request) -> Response:
        try:
            if request.method != "GET" and not any_method:
                raise status.generic_method_not_allowed()
            return await endpoint(request)
        except StatusError as e:
            negotiated = negotiation.of_status(*_of(request))
            return Response(render(negotiated, e.status), e.code, {**e.headers, "Content-Type": negotiated.media_type})

    return answer


def body_response(request: Request, body: Body, media_type: str, headers: dict[str, str]) -> Response:
    """The body, compressed where the client takes that; nothing but 304 if it has it already."""
    if "etag" in {name.lower() for name in headers} and request.headers.get("if-none-match") == body.etag:
        return Response(status_code=304, headers=headers)
    if body.gzipped and "gzip" in request.headers.get("accept-encoding", ""):
        headers = {**headers, "Content-Encoding": "gzip"}
        return _exact(body.gzipped, media_type, headers)
    return _exact(body.raw, media_type, headers)


def _exact(content: bytes, media_type: str, headers: dict[str, str]) -> Response:
    """A response whose content type stands as it is, without a charset."""
    return Response(content, headers={**headers, "Content-Type": media_type})


def _page_not_found() -> Response:
    return Response("404 page not found\n", 404, {"X-Content-Type-Options": "nosniff"}, media_type="text/plain")


class _Discovery:
    def __init__(self, table: ResourceTable, extensions: Extensions | None) -> None:
        self._table = table
        self._extensions = extensions
        self._cache = DocumentCache(lambda: table.generation + (0 if extensions is None else extensions.generation))

    def _merges(self) -> Extensions | None:
        """What other servers add, and what APIServices say otherwise than this one would; None while there is neither."""
        found = self._extensions
        return found if found is not None and (found.remotes or found.local) else None

    async def api(self, request: Request) -> Response:
        wanted = self._wanted(request, aggregated=True)
        if wanted.form is DiscoveryForm.PLAIN:
            host, port = request.scope.get("server") or ("127.0.0.1", 443)
            return self._plain(wanted, documents.api_versions(f"{host}:{port}"))
        return self._aggregated(request, wanted, core=True)

    async def apis(self, request: Request) -> Response:
        wanted = self._wanted(request, aggregated=True, routed=False)
        if wanted.form is DiscoveryForm.PLAIN:
            found = self._merges()
            if found is not None:
                return self._kept(request, wanted, "groups", lambda: merging.api_group_list(self._table, found))
            return self._kept(request, wanted, "groups", lambda: documents.api_group_list(self._table))
        return self._aggregated(request, wanted, core=False)

    async def group(self, request: Request) -> Response:
        group = request.path_params["group"]
        found = self._merges()
        if found is not None and merging.changes(self._table, found, group):
            wanted = self._wanted(request, routed=False)
            return self._kept(request, wanted, ("group", group), lambda: merging.api_group(self._table, found, group))
        if not self._table.versions(group):
            return _page_not_found()
        return self._kept(request, self._wanted(request, routed=False), ("group", group), lambda: documents.api_group(self._table, group))

    async def core_version(self, request: Request) -> Response:
        return self._resources(request, "", request.path_params["version"])

    async def group_version(self, request: Request) -> Response:
        return self._resources(request, request.path_params["group"], request.path_params["version"])

    def _resources(self, request: Request, group: str, version: str) -> Response:
        if self._table.serves(group, version):
            wanted = self._wanted(request, routed=not group or self._table.is_builtin(group))
            return self._kept(request, wanted, (group, version), lambda: documents.api_resource_list(self._table, group, version))
        # what is below a built-in group is answered for by the API itself, other paths by whoever serves files
        if not group or self._table.is_builtin(group):
            raise status.generic_not_found()
        return _page_not_found()

    async def version(self, request: Request) -> Response:
        accept.check_json(_of(request)[0])
        machine = platform.machine()
        document = documents.version_info(
            self._table.kubernetes_version,
            f"{platform.system().lower()}/{_MACHINES.get(machine, machine)}",
            f"python{platform.python_version()}",
            platform.python_implementation().lower(),
        )
        return _exact(orjson.dumps(document, option=orjson.OPT_INDENT_2), "application/json", {})

    def _wanted(self, request: Request, *, aggregated: bool = False, routed: bool = True) -> Wanted:
        return accept.wanted(*_of(request), minor=self._table.minor, aggregated=aggregated, routed=routed)

    def _plain(self, wanted: Wanted, document: documents.Document) -> Response:
        return _exact(_rendered(wanted, document), wanted.content_type, {})

    def _kept(self, request: Request, wanted: Wanted, key: object, build: Callable[[], documents.Document]) -> Response:
        if wanted.negotiated.pretty:
            return self._plain(wanted, build())
        body = self._cache.get((key, wanted), build, functools.partial(_rendered, wanted))
        return body_response(request, body, wanted.content_type, {})

    def _aggregated(self, request: Request, wanted: Wanted, *, core: bool) -> Response:
        def build() -> documents.Document:
            found = documents.aggregated(self._table, core=core, version=wanted.form.value)
            extensions = None if core else self._merges()
            return found if extensions is None else merging.aggregated(self._table, extensions, found)

        body = self._cache.get((core, wanted), build, functools.partial(_rendered, wanted))
        headers = {"ETag": body.etag, "Vary": "Accept", "Cache-Control": "public"}
        return body_response(request, body, wanted.content_type, headers)


def _rendered(wanted: Wanted, document: documents.Document) -> bytes:
    return render(wanted.negotiated, document)
