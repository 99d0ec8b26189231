"""The routes of ``/openapi/v2`` and ``/openapi/v3``.

Documents are built at the first request, in a thread (some 10 ms for one of version 3, some 300 ms for all of version 2), and kept
compressed until the resources change. Requests for a document that is being built wait for the same build.
"""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from apiserver.aggregation import openapi
from apiserver.aggregation.fetching import FetchError
from apiserver.discovery import merging
from apiserver.discovery.merging import Extensions
from apiserver.discovery.routes import METHODS, only_get
from apiserver.resources.table import ResourceTable
from apiserver.schemas.schema_set import SchemaSet

logger = logging.getLogger(__name__)

_JSON = "application/json"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
#: what kubectl has asked for since it knew of the protobuf form; an @ is not allowed in a media type
_PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_GZIP_LEVEL = 4
#: of a document that was asked for by its hash: it never changes
_YEAR_SECONDS = 365 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    gzipped: bytes
    etag: str


def router(table: ResourceTable, schemas: SchemaSet, extensions: Extensions | None = None) -> APIRouter:
    """Serves what ``table`` holds at the time of each request, and what ``extensions`` add."""
    documents = _Documents(table, schemas, extensions)
    routes = APIRouter()
    for path, endpoint in (("/openapi/v2", documents.v2), ("/openapi/v3", documents.v3_index), ("/openapi/v3/{name:path}", documents.v3)):
        routes.add_route(path, only_get(endpoint), methods=METHODS, include_in_schema=False)
    return routes


class _Documents:
    def __init__(self, table: ResourceTable, schemas: SchemaSet, extensions: Extensions | None) -> None:
        self._table = table
        self._extensions = extensions
        self._schemas = schemas
        #: by what they are of and a mark that changes when they do: finished and unfinished builds
        self._builds: dict[tuple[str, object], asyncio.Task[_Kept]] = {}

    async def v2(self, request: Request) -> Response:
        accepted = _accepted(request, (_JSON, _PROTOBUF, _PROTOBUF_OLD))
        if accepted is None:
            return Response(status_code=406)
        as_json = accepted == _JSON
        schemas, remotes = self._schemas, merging.openapi(self._extensions)

        def build(snapshot: ResourceTable) -> bytes:
            from apiserver.schemas.openapi import gnostic, swagger2

            encode = orjson.dumps if as_json else gnostic.encode
            if remotes:
                try:
                    return encode(openapi.merged_swagger(swagger2.document(snapshot, schemas.definitions), remotes))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    # nothing of this server's own: without the others' the document is whole
                    logger.warning("OpenAPI of extension API servers is left out: %r", error)
            return encode(swagger2.document(snapshot, schemas.definitions))

        kept = await self._kept("v2 json" if as_json else "v2 protobuf", self._generation(), build)
        return _answer(request, kept, _JSON if as_json else _PROTOBUF, {})

    def _generation(self) -> int:
        return self._table.generation + (0 if self._extensions is None else self._extensions.generation)

    async def v3_index(self, request: Request) -> Response:
        remotes = merging.openapi(self._extensions)

        def build(snapshot: ResourceTable) -> bytes:
            from apiserver.schemas.openapi import openapi3

            found = openapi3.index(snapshot)
            return orjson.dumps(openapi.index(found, remotes) if remotes else found)

        return _answer(request, await self._kept("v3", self._generation(), build), _JSON, {})

    async def v3(self, request: Request) -> Response:
        from apiserver.schemas.openapi import openapi3

        name = request.path_params["name"].strip("/")
        if not name:
            return await self.v3_index(request)
        if _accepted(request, (_JSON,)) is None:
            return Response(status_code=406)
        elsewhere = await self._of_extension(request, name)
        if elsewhere is not None:
            return elsewhere
        try:
            current = openapi3.document_hash(self._table, name)
        except KeyError:
            return Response("404 page not found\n", 404, media_type="text/plain")
        asked = request.query_params.get("hash")
        if asked is not None and asked != current:
            return RedirectResponse(f"/openapi/v3/{name}?hash={current}", 301)

        def build(snapshot: ResourceTable) -> bytes:
            return orjson.dumps(openapi3.document(snapshot, self._schemas.definitions, name))

        kept = await self._kept(f"v3 {name}", current, build)
        headers = {}
        if asked is not None:
            expires = email.utils.formatdate(time.time() + _YEAR_SECONDS, usegmt=True)
            headers = {"Cache-Control": f"public, max-age={_YEAR_SECONDS}, immutable", "Expires": expires}
        return _answer(request, _Kept(gzipped=kept.gzipped, etag=f'"{current}"'), _JSON, headers)

    async def _of_extension(self, request: Request, name: str) -> Response | None:
        """The document of another server's group and version; None where it is this server's."""
        extensions = self._extensions
        remote = None if extensions is None else next((r for r in extensions.remotes.all() if r.path == f"/{name}"), None)
        if extensions is None or remote is None:
            return None
        known = extensions.documents.of(remote)
        source = openapi.RemoteOpenApi(path=remote.path, v3_url=known.openapi_v3, swagger=known.swagger)
        current = openapi.v3_hash(source)
        if not current:
            return Response("404 page not found\n", 404, media_type="text/plain")
        if known.openapi_v3:
            try:
                raw = await extensions.documents.openapi_v3_document(remote)
            except FetchError:
                return Response("service unavailable\n", 503, media_type="text/plain")
        else:
            try:
                made = openapi.v3_of_swagger(source, {"title": "Kubernetes", "version": f"v{self._table.kubernetes_version}.0"})
                raw = orjson.dumps(made)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return Response("service unavailable\n", 503, media_type="text/plain")
        kept = _Kept(gzipped=gzip.compress(raw, _GZIP_LEVEL, mtime=0), etag=f'"{current}"')
        return _answer(request, kept, _JSON, {})

    async def _kept(self, what: str, mark: object, build: Callable[[ResourceTable], bytes]) -> _Kept:
        key = (what, mark)
        task = self._builds.get(key)
        if task is None:
            _ = self._schemas.definitions  # read here, so that only one thread does
            task = asyncio.create_task(asyncio.to_thread(_built, build, self._table.snapshot()), name=f"openapi {what}")
            for old in [k for k in self._builds if k[0] == what]:
                del self._builds[old]
            self._builds[key] = task
        try:
            # one who goes away does not stop the build that others wait for
            return await asyncio.shield(task)
        except Exception:
            self._builds.pop(key, None)
            raise


def _built(build: Callable[[ResourceTable], bytes], table: ResourceTable) -> _Kept:
    raw = build(table)
    return _Kept(gzipped=gzip.compress(raw, _GZIP_LEVEL, mtime=0), etag=f'"{hashlib.sha512(raw).hexdigest().upper()}"')


def _answer(request: Request, kept: _Kept, media_type: str, headers: dict[str, str]) -> Response:
    headers = {**headers, "Etag": kept.etag, "Vary": "Accept-Encoding, Accept"}
    if request.headers.get("if-none-match") == kept.etag:
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = media_type
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(kept.gzipped, headers={**headers, "Content-Encoding": "gzip"})
    return Response(gzip.decompress(kept.gzipped), headers=headers)


def _accepted(request: Request, offered: tuple[str, ...]) -> str | None:
    """The first of the header's clauses that is offered, ``*`` standing for the first offer; None where none is."""
    accept = ",".join(request.headers.getlist("accept"))
    if not accept.strip():
        return offered[0]
    for clause in accept.split(","):
        media_range = clause.partition(";")[0].strip().lower()
        if media_range in offered:
            return media_range
        if media_range in ("*/*", "application/*"):
            return offered[0]
    return None
