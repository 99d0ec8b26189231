"""``Client``: ``Api`` over HTTP/1.1 with pooled connections (aiohttp), orjson bodies, a rate limit and bounded retries of reads."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import orjson
from multidict import CIMultiDict

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import DELETE_DEFAULTS, LIST_DEFAULTS, DeleteOptions, ListOptions, PatchType, WatchEvent
from controllers.client.kubeconfig import ClientConfig
from controllers.client.rate_limiter import TokenBucket
from controllers.client.resources import Resource
from controllers.lib.clock import Clock, SystemClock

#: A read is tried this often in all; then the caller's own backoff takes over.
READ_ATTEMPTS_MAX = 5
#: Seconds before the second try; doubles, with jitter. A Retry-After header overrides it up to the cap.
RETRY_DELAY_SECONDS = 0.1
RETRY_DELAY_SECONDS_MAX = 5.0
RETRIED_CODES = frozenset({429, 500, 502, 503, 504})
#: Seconds for a whole request that is not a watch: a little more than kube-apiserver's own limit of 60.
REQUEST_TIMEOUT_SECONDS = 65.0
#: Of one watch event; objects are at most 1.5 MiB in the store, so a longer line is no event. The stream is then given up.
EVENT_BYTES_MAX = 32 * 1024 * 1024
#: Connections in use at once by requests; more wait. Watches have a pool of their own, so that they never starve requests.
CONNECTIONS_MAX = 32
#: Seconds a watch outlives the timeout it asked the server for, before the client ends it.
WATCH_GRACE_SECONDS = 30.0

JSON = "application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

TokenSource = Callable[[], Awaitable[str]]


class Transport:
    """The pooled connections to one server with one TLS identity; shared by many ``Client``s."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._ssl = config.ssl_context()
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None

    def session(self, *, watch: bool) -> aiohttp.ClientSession:
        if watch:
            if self._watches is None:
                self._watches = self._open(0)
            return self._watches
        if self._requests is None:
            self._requests = self._open(CONNECTIONS_MAX)
        return self._requests

    def _open(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=limit, ssl=self._ssl if self._ssl is not None else True, keepalive_timeout=60)
        return aiohttp.ClientSession(
            connector=connector,
            auto_decompress=True,
            skip_auto_headers=("User-Agent",),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def close(self) -> None:
        for session in (self._requests, self._watches):
            if session is not None:
                await session.close()
        self._requests = self._watches = None


class Client:
    """One identity on a transport: a user agent, perhaps a token (asked for before each request, so it may be renewed), a rate limit."""

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str = "sampan-controllers",
        token_source: TokenSource | None = None,
        limiter: TokenBucket | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.transport = transport
        self._config = transport.config
        self._user_agent = user_agent
        self._token_source = token_source
        self._limiter = limiter
        self._clock = clock or SystemClock()
        self._random = rng or random.Random()

    async def close(self) -> None:
        await self.transport.close()

    # verbs

    async def get(self, resource: Resource, namespace: str, name: str, *, subresource: str = "", metadata_only: bool = False) -> Object:
        assert name, resource
        accept = f"{METADATA},{JSON}" if metadata_only else JSON
        return await self._object("GET", resource.path(namespace, name, subresource), accept=accept)

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = LIST_DEFAULTS) -> Object:
        accept = f"{METADATA_LIST},{JSON}" if options.metadata_only else JSON
        return await self._object("GET", resource.path(namespace), params=_list_params(options), accept=accept)

    async def create(self, resource: Resource, namespace: str, obj: Object, *, name: str = "", subresource: str = "") -> Object:
        return await self._object("POST", resource.path(namespace, name, subresource), body=obj)

    async def update(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        path = resource.path(objects.namespace(obj), objects.name(obj), subresource)
        return await self._object("PUT", path, body=obj)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType = PatchType.MERGE,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Object:
        params = {"fieldManager": field_manager} if field_manager else {}
        return await self._object(
            "PATCH", resource.path(namespace, name, subresource), params=params, body=patch, content_type=patch_type.value
        )

    async def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions = DELETE_DEFAULTS) -> Object:
        assert name, resource
        return await self._object("DELETE", resource.path(namespace, name), body=options.body())

    async def delete_collection(
        self, resource: Resource, namespace: str, options: DeleteOptions = DELETE_DEFAULTS, selection: ListOptions = LIST_DEFAULTS
    ) -> Object:
        return await self._object("DELETE", resource.path(namespace), params=_list_params(selection), body=options.body())

    async def raw(self, method: str, path: str, *, accept: str = JSON) -> Any:
        return await self._json(method, path, accept=accept)

    async def watch(self, resource: Resource, namespace: str = "", options: ListOptions = LIST_DEFAULTS) -> AsyncIterator[WatchEvent]:
        params = {**_list_params(options), "watch": "true"}
        accept = f"{METADATA},{JSON}" if options.metadata_only else JSON
        total = options.timeout_seconds + WATCH_GRACE_SECONDS if options.timeout_seconds else None
        try:
            await self._throttle()
            async with self.transport.session(watch=True).get(
                self._config.server + resource.path(namespace),
                params=params,
                headers=await self._headers(accept),
                timeout=aiohttp.ClientTimeout(total=total, sock_connect=10),
            ) as response:
                if response.status >= 400:
                    raise errors.status_error(response.status, _decode(await response.read()), dict(response.headers))
                async for line in _lines(response.content):
                    event = _decode(line)
                    if not isinstance(event, dict) or "type" not in event:
                        raise errors.DecodeFailed(f"watch of {resource.qualified}: not an event: {line[:200]!r}")
                    yield WatchEvent(event["type"], event["object"])
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise errors.ConnectionFailed(f"watch of {resource.qualified}: {error or type(error).__name__}") from error

    # below the verbs

    async def _object(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        body: Any = None,
        accept: str = JSON,
        content_type: str = JSON,
    ) -> Object:
        answer = await self._json(method, path, params=params, body=body, accept=accept, content_type=content_type)
        if not isinstance(answer, dict):
            raise errors.DecodeFailed(f"{method} {path}: the answer is no JSON object: {answer!r:.200}")
        return answer

    async def _json(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        body: Any = None,
        accept: str = JSON,
        content_type: str = JSON,
    ) -> Any:
        attempts = READ_ATTEMPTS_MAX if method == "GET" else 1
        delay = RETRY_DELAY_SECONDS
        for attempt in range(1, attempts + 1):
            try:
                return await self._once(method, path, params, body, accept, content_type)
            except errors.StatusError as error:
                if attempt == attempts or error.code not in RETRIED_CODES or errors.is_too_large_resource_version(error):
                    raise
                asked = error.headers.get("Retry-After", "")
                pause = float(asked) if asked.isdigit() else delay
            except errors.ConnectionFailed:
                if attempt == attempts:
                    raise
                pause = delay
            await self._clock.sleep(min(pause, RETRY_DELAY_SECONDS_MAX) * (1 + self._random.random() * 0.2))
            delay *= 2
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(self, method: str, path: str, params: dict[str, str] | None, body: Any, accept: str, content_type: str) -> Any:
        await self._throttle()
        headers = await self._headers(accept)
        data = None
        if body is not None:
            data = orjson.dumps(body)
            headers["Content-Type"] = content_type
        try:
            async with self.transport.session(watch=False).request(
                method,
                self._config.server + path,
                params=params or None,
                data=data,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SECONDS, sock_connect=10),
            ) as response:
                answer = await response.read()
                if response.status >= 400:
                    raise errors.status_error(response.status, _decode(answer), dict(response.headers))
                return _decode(answer)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise errors.ConnectionFailed(f"{method} {path}: {error or type(error).__name__}") from error

    async def _throttle(self) -> None:
        if self._limiter is not None:
            await self._limiter.wait()

    async def _headers(self, accept: str) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": accept, "User-Agent": self._user_agent})
        token = await self._token_source() if self._token_source is not None else self._config.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self._config.impersonate_user:
            headers["Impersonate-User"] = self._config.impersonate_user
            for group in self._config.impersonate_groups:
                headers.add("Impersonate-Group", group)
        return headers


def _list_params(options: ListOptions) -> dict[str, str]:
    params: dict[str, str] = {}
    if options.label_selector:
        params["labelSelector"] = options.label_selector
    if options.field_selector:
        params["fieldSelector"] = options.field_selector
    if options.limit:
        params["limit"] = str(options.limit)
    if options.continue_token:
        params["continue"] = options.continue_token
    if options.resource_version:
        params["resourceVersion"] = options.resource_version
    if options.allow_watch_bookmarks:
        params["allowWatchBookmarks"] = "true"
    if options.timeout_seconds:
        params["timeoutSeconds"] = str(options.timeout_seconds)
    return params


def _decode(data: bytes) -> Any:
    """The JSON value, or the bytes themselves where they are none (a plain-text answer)."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return data


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of a stream, whatever its chunks; aiohttp's own ``readline`` refuses lines above its buffer."""
    parts: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        head, *rest = chunk.split(b"\n")
        parts.append(head)
        size += len(head)
        if size > EVENT_BYTES_MAX:
            raise errors.DecodeFailed(f"a watch event of more than {EVENT_BYTES_MAX} bytes")
        if not rest:
            continue
        line = b"".join(parts)
        if line:
            yield line
        for line in rest[:-1]:
            if line:
                yield line
        parts, size = [rest[-1]], len(rest[-1])


async def wait_until_ready(client: Client, *, timeout_seconds: float, clock: Clock) -> None:
    """Returns once ``/readyz`` answers; raises the last error after the timeout. Polls each 50 ms."""
    deadline = clock.monotonic() + timeout_seconds
    while True:
        try:
            await asyncio.wait_for(client._once("GET", "/readyz", None, None, "*/*", JSON), 5)
            return
        except (errors.StatusError, errors.ConnectionFailed, TimeoutError):
            if clock.monotonic() >= deadline:
                raise
        await clock.sleep(0.05)
