"""A small extension API server, as a user would write one: ``zoo.example.com/v1alpha1``, kind Ferret, in memory, over TLS.

It takes users from ``X-Remote-…`` headers of who shows a certificate of the front-proxy authority, asks the main API server about others'
tokens (TokenReview) and about what users may do (SubjectAccessReview) where it is given its address, and can be told to misbehave.

    python -m tests.fakes.extension_server --port 0 --certificate … --key … --client-ca … [--kubeconfig-url … --token …]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from apiserver.machinery import merge_patch

GROUP, VERSION = "zoo.example.com", "v1alpha1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{GROUP_VERSION}"
PROXY_NAME = "front-proxy-client"
SCHEMA = "com.example.zoo.v1alpha1.Ferret"
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass
class Behaviour:
    """What a test changes while the server runs."""

    hangs: bool = False
    answers_garbage: bool = False
    breaks_off: bool = False
    redirects: bool = False
    aggregated: bool = True
    openapi_v3: bool = True


@dataclass
class ExtensionServer:
    certificate: Path
    key: Path
    client_ca: Path
    main_url: str = ""
    main_token: str = ""
    behaviour: Behaviour = field(default_factory=Behaviour)
    seen: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0
    _objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    _versions: Any = field(default_factory=lambda: itertools.count(1))
    _watchers: list[tuple[str, asyncio.Queue[dict[str, Any]]]] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[ExtensionServer]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_route("*", "/{path:.*}", self._serve)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context, reuse_address=True)
        await site.start()
        assert site._server is not None
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        try:
            yield self
        finally:
            await runner.cleanup()

    # -- who and whether

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if self.behaviour.hangs:
            await asyncio.sleep(3600)
        if self.behaviour.answers_garbage:
            assert request.transport is not None
            request.transport.write(b"\x16\x03garbage\r\n\r\n" * 3)
            request.transport.close()
            return web.Response()
        user = await self._user(request)
        if user is None or request.path.startswith(f"{ROOT}/"):  # the main server looks at the documents whenever it likes
            self.seen.append({"method": request.method, "path": request.raw_path, "user": user, "headers": request.headers.copy()})
        if user is None:
            return _status(401, "Unauthorized", "Unauthorized")
        if not request.path.startswith(f"{ROOT}/"):
            return self._documents(request)
        if not await self._allowed(user, request):
            return _status(403, "Forbidden", f'ferrets.{GROUP} is forbidden: User "{user["name"]}" cannot do that here')
        return await self._resources(request)

    async def _user(self, request: web.Request) -> dict[str, Any] | None:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        names = {value for part in (certificate or {}).get("subject", ()) for kind, value in part if kind == "commonName"}
        if PROXY_NAME in names and "X-Remote-User" in request.headers:
            extra = {k[len("X-Remote-Extra-") :].lower(): v for k, v in request.headers.items() if k.lower().startswith("x-remote-extra-")}
            name = request.headers["X-Remote-User"]
            return {"name": name, "groups": request.headers.getall("X-Remote-Group", []), "extra": extra}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and self.main_url:
            path = "/apis/authentication.k8s.io/v1/tokenreviews"
            review = await self._ask(path, "authentication.k8s.io/v1", "TokenReview", {"token": token})
            if review["status"].get("authenticated"):
                found = review["status"]["user"]
                return {"name": found["username"], "groups": found.get("groups", []), "extra": {}}
        return None

    async def _allowed(self, user: dict[str, Any], request: web.Request) -> bool:
        if not self.main_url or "system:masters" in user["groups"]:
            return True
        namespace, name = _place(request.path)
        verb = {"GET": "get" if name else "list", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[request.method]
        attributes = {"group": GROUP, "resource": "ferrets", "namespace": namespace, "name": name, "verb": verb}
        spec = {"user": user["name"], "groups": user["groups"], "resourceAttributes": attributes}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        review = await self._ask(path, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return bool(review["status"]["allowed"])

    async def _ask(self, path: str, api_version: str, kind: str, spec: dict[str, Any]) -> Any:
        body = {"apiVersion": api_version, "kind": kind, "spec": spec}
        headers = {"Authorization": f"Bearer {self.main_token}"}
        async with aiohttp.ClientSession(headers=headers) as session, session.post(self.main_url + path, json=body, ssl=False) as answer:
            return await answer.json()

    # -- what there is

    def _documents(self, request: web.Request) -> web.Response:
        path = request.path
        if path == "/apis" and self.behaviour.aggregated and "as=APIGroupDiscoveryList" in request.headers.get("Accept", ""):
            kind = {"group": GROUP, "version": VERSION, "kind": "Ferret"}
            one: dict[str, Any] = {"resource": "ferrets", "responseKind": kind, "scope": "Namespaced", "singularResource": "ferret"}
            one |= {"verbs": VERBS, "shortNames": ["fer"]}
            item = {"metadata": {"name": GROUP}, "versions": [{"version": VERSION, "resources": [one], "freshness": "Current"}]}
            body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [item]}
            return web.Response(body=orjson.dumps(body), headers={"Content-Type": AGGREGATED})
        if path == "/apis":
            version = {"groupVersion": GROUP_VERSION, "version": VERSION}
            group = {"name": GROUP, "versions": [version], "preferredVersion": version}
            return web.json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})
        if path == ROOT:
            one = {"name": "ferrets", "singularName": "ferret", "namespaced": True, "kind": "Ferret"}
            one |= {"verbs": VERBS, "shortNames": ["fer"]}
            return web.json_response({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": [one]})
        if path == "/openapi/v3" and self.behaviour.openapi_v3:
            url = f"/openapi/v3{ROOT}?hash=F00D"
            return web.json_response({"paths": {ROOT[1:]: {"serverRelativeURL": url}}})
        if path == f"/openapi/v3{ROOT}" and self.behaviour.openapi_v3:
            ref = "#/components/schemas/"
            schemas = {SCHEMA: _schema(), "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"}}
            head = {"openapi": "3.0.0", "info": {"title": "zoo", "version": "1"}}
            return web.json_response({**head, "paths": _paths(ref), "components": {"schemas": schemas}})
        if path == "/openapi/v2":
            ref = "#/definitions/"
            head = {"swagger": "2.0", "info": {"title": "zoo", "version": "1"}}
            return web.json_response({**head, "paths": _paths(ref), "definitions": {SCHEMA: _schema()}})
        return _status(404, "NotFound", "the server could not find the requested resource")

    async def _resources(self, request: web.Request) -> web.StreamResponse:
        namespace, name = _place(request.path)
        if request.path.endswith("/talk") and request.headers.get("Upgrade", "").lower() == "websocket":
            return await _echo(request)
        if not name and request.method == "GET":
            if request.query.get("watch"):
                return await self._watch(request, namespace)
            items = [obj for (where, _), obj in sorted(self._objects.items()) if namespace in ("", where)]
            metadata = {"resourceVersion": str(next(self._versions))}
            return web.json_response({"kind": "FerretList", "apiVersion": GROUP_VERSION, "metadata": metadata, "items": items})
        if self.behaviour.redirects:
            raise web.HTTPTemporaryRedirect("https://elsewhere.example/")
        body = orjson.loads(await request.read() or b"{}")
        if request.method == "POST" and not name:
            name = body["metadata"]["name"]
            if (namespace, name) in self._objects:
                return _status(409, "AlreadyExists", f'ferrets.{GROUP} "{name}" already exists')
            body["metadata"] |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z"}
            return self._store(request, namespace, name, {"apiVersion": GROUP_VERSION, "kind": "Ferret", **body}, "ADDED", 201)
        current = self._objects.get((namespace, name))
        if current is None:
            return _status(404, "NotFound", f'ferrets.{GROUP} "{name}" not found')
        if request.method == "PATCH":
            return self._store(request, namespace, name, merge_patch.apply(current, body), "MODIFIED", 200)
        if request.method == "PUT":
            return self._store(request, namespace, name, body, "MODIFIED", 200)
        if request.method == "DELETE":
            del self._objects[(namespace, name)]
            self._tell(namespace, "DELETED", current)
            return web.json_response({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
        return web.json_response(current)

    def _store(self, request: web.Request, namespace: str, name: str, obj: dict[str, Any], event: str, code: int) -> web.Response:
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(next(self._versions))}}
        if not request.query.get("dryRun"):
            self._objects[(namespace, name)] = obj
            self._tell(namespace, event, obj)
        return web.json_response(obj, status=code, headers={"Warning": '299 - "ferrets bite"'})

    def _tell(self, namespace: str, event: str, obj: dict[str, Any]) -> None:
        for where, queue in self._watchers:
            if where in ("", namespace):
                queue.put_nowait({"type": event, "object": obj})

    async def _watch(self, request: web.Request, namespace: str) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        entry = (namespace, asyncio.Queue[dict[str, Any]]())
        self._watchers.append(entry)
        try:
            while True:
                await answer.write(orjson.dumps(await entry[1].get()) + b"\n")
                if self.behaviour.breaks_off:
                    assert request.transport is not None
                    request.transport.abort()
        finally:
            self._watchers.remove(entry)

    @property
    def watchers(self) -> int:
        return len(self._watchers)


def _place(path: str) -> tuple[str, str]:
    """Namespace and name."""
    parts = path.removeprefix(f"{ROOT}/").split("/")
    if parts[0] == "namespaces":
        return parts[1], parts[3] if len(parts) > 3 else ""
    return "", ""


async def _echo(request: web.Request) -> web.StreamResponse:
    answer = web.WebSocketResponse(max_msg_size=0)
    await answer.prepare(request)
    async for message in answer:
        await answer.send_bytes(message.data if message.type is aiohttp.WSMsgType.BINARY else message.data.encode())
    return answer


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}
    return web.json_response(body, status=code)


def _schema() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "Ferret is a small animal.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {"color": {"type": "string", "description": "Color of the fur."}}},
        },
        "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": "Ferret"}],
    }


def _paths(ref: str) -> dict[str, Any]:
    gvk = {"group": GROUP, "version": VERSION, "kind": "Ferret"}
    schema = {"schema": {"$ref": ref + SCHEMA}}
    ok = {"200": {"description": "OK", **(schema if ref == "#/definitions/" else {"content": {"application/json": schema}})}}
    get = {"operationId": "readFerret", "responses": ok, "x-kubernetes-action": "get", "x-kubernetes-group-version-kind": gvk}
    return {f"{ROOT}/namespaces/{{namespace}}/ferrets/{{name}}": {"get": get}, "/elsewhere": {"get": {"responses": ok}}}


async def _main(flags: argparse.Namespace) -> None:
    server = ExtensionServer(flags.certificate, flags.key, flags.client_ca, flags.main_url, flags.token)
    async with server.running(flags.port):
        print(f"ready {server.port}", flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    for flag in ("certificate", "key", "client-ca"):
        parser.add_argument(f"--{flag}", type=Path, required=True)
    for flag in ("main-url", "token"):
        parser.add_argument(f"--{flag}", default="")
    asyncio.run(_main(parser.parse_args()))
