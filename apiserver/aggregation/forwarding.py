"""``Forwarder``: a request that is an extension API server's is passed on, and its answer back (kube-aggregator ``proxyHandler``).

Authentication, authorization and audit have happened here. Bodies are streams both ways: neither side is read faster than the other side
takes it. A client that goes away ends the request there, a server that breaks off in the middle of an answer ends the connection here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from apiserver.aggregation import go_words, headers
from apiserver.aggregation.connections import Connections, UnusableError
from apiserver.aggregation.headers import BadHeaderError
from apiserver.aggregation.remote import RemoteService, RemoteServices
from apiserver.filters.asgi import ASGIApp, Receive, Scope, Send
from apiserver.machinery import status
from apiserver.outbound import service_endpoints
from apiserver.outbound.service_endpoints import Objects, Place, UnresolvedError
from apiserver.request.request_context import SCOPE_KEY, RequestContext, RequestInfo

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

#: Go writes a path so again that it has once taken apart (``url.URL.EscapedPath``): what was an escaped slash is one for good, so that the
#: other server sees the path that was authorized here
_PATH_SAFE = "/$&+,:;=@-_.~"


class ClientGoneError(Exception):
    """The client's connection ended while its body was read."""


class Tunnels(Protocol):
    async def open(
        self, remote: RemoteService, place: Place, scope: Scope, send: Send, target: str, sent: list[tuple[str, str]]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class _Request:
    session: aiohttp.ClientSession
    url: str
    headers: list[tuple[str, str]]


class Forwarder:
    """An ASGI app in front of ``fallback``, which serves what no APIService gives to another server."""

    def __init__(
        self, fallback: ASGIApp, remotes: RemoteServices, connections: Connections, cached: Objects, tunnels: Tunnels, source: random.Random
    ) -> None:
        self._fallback = fallback
        self._remotes = remotes
        self._connections = connections
        self._cached = cached
        self._tunnels = tunnels
        self._source = source

    def takes(self, info: RequestInfo) -> bool:
        """Whether the request is passed on, and so holds no seat here."""
        return self._remotes.of_path(info.path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        remote = self._remotes.of_path(scope["path"])
        if remote is None:
            await self._fallback(scope, receive, send)
            return
        context: RequestContext = scope[SCOPE_KEY]
        if not remote.available:
            await send_text(send, 503, "service unavailable")
            return
        if headers.goes_round(scope["headers"]):
            raise status.StatusError(status.failure(508, "", "the request was passed on too often: its APIServices lead in a circle"))
        try:
            pool = self._connections.pool(remote)
        except UnusableError as error:
            await send_text(send, 500, str(error))
            return
        try:
            place = service_endpoints.choose(self._cached, remote.namespace, remote.service, remote.port, self._source)
        except UnresolvedError as error:
            logger.warning("an extension API server has no address: apiservice=%s error=%s", remote.name, error)
            await send_text(send, 503, "service unavailable")
            return
        with pool.use() as session:
            await self._forward(remote, place, session, context, scope, receive, send)

    async def _forward(
        self,
        remote: RemoteService,
        place: Place,
        session: aiohttp.ClientSession,
        context: RequestContext,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        assert context.user is not None, "authentication comes first"
        client = scope.get("client")
        upgrade = headers.is_upgrade(scope["headers"])
        try:
            sent = headers.forwarded(scope["headers"], context.user, client[0] if client else "", context.audit_id, upgrade=upgrade)
        except BadHeaderError as error:
            await send_text(send, 503, f"error trying to reach service: {error}")
            return
        target = quote(scope["path"], safe=_PATH_SAFE)
        if scope["query_string"]:
            target += "?" + scope["query_string"].decode("latin-1")
        if upgrade:
            await self._tunnels.open(remote, place, scope, send, target, sent)
        else:
            url = f"https://{place}{target}"
            await self._exchange(remote, place, _Request(session, url, sent), scope, receive, send)

    async def _exchange(self, remote: RemoteService, place: Place, asked: _Request, scope: Scope, receive: Receive, send: Send) -> None:
        import aiohttp
        import yarl

        body = _Body(receive)
        try:
            has_body = await body.begins()
        except ClientGoneError:
            return
        request = asked.session.request(
            scope["method"],
            yarl.URL(asked.url, encoded=True),
            headers=asked.headers,
            data=body.pieces() if has_body else None,
            allow_redirects=False,
            server_hostname=remote.server_name,
        )
        watcher = asyncio.create_task(body.client_gone())
        try:
            answer = await _unless(watcher, request)
        except ClientGoneError:
            return
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            watcher.cancel()
            await send_text(send, 503, f"error trying to reach service: {go_words.of_connection(error, place, remote.server_name)}")
            return
        except BaseException:
            watcher.cancel()
            raise
        try:
            if answer.status // 100 == 3 and answer.headers.get("Location"):
                # A client would follow it with its credentials, to wherever an extension server that has been taken over sends it.
                await _send_redirect_refused(send)
                return
            await send({"type": "http.response.start", "status": answer.status, "headers": headers.answered(answer.raw_headers)})
            await _unless(watcher, _relay(answer, send))
        except ClientGoneError:
            return
        except (aiohttp.ClientError, OSError) as error:
            logger.info("an extension API server broke an answer off: apiservice=%s error=%r", remote.name, error)
            raise status.internal_error("the extension API server broke its answer off") from error
        finally:
            watcher.cancel()
            answer.close()


async def _relay(answer: Any, send: Send) -> None:
    async for piece in answer.content.iter_any():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    answer.release()
    await send({"type": "http.response.body", "body": b""})


async def _unless(watcher: asyncio.Task[None], work: Any) -> Any:
    """What the work answers, unless the client goes before: then the work is cancelled. Raises ClientGoneError."""
    task = asyncio.ensure_future(_awaited(work))
    try:
        await asyncio.wait((task, watcher), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


async def _awaited(work: Any) -> Any:
    return await work


class _Body:
    """The request's body as its client sends it, then the end of the connection; ``receive`` has one reader at a time."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first = b""
        self._more = True
        self._read = asyncio.Event()

    async def begins(self) -> bool:
        """Whether there is one. Raises ClientGoneError."""
        self._first = await self._next()
        return bool(self._first) or self._more

    async def pieces(self) -> AsyncIterator[bytes]:
        if self._first:
            yield self._first
        while self._more:
            piece = await self._next()
            if piece:
                yield piece

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        self._more = bool(message.get("more_body"))
        if not self._more:
            self._read.set()
        return bytes(message.get("body") or b"")

    async def client_gone(self) -> None:
        """Ends when the client has."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def _send_redirect_refused(send: Send) -> None:
    """apimachinery ``UpgradeAwareHandler``, with ``RejectForwardingRedirects``."""
    body = b"the backend attempted to redirect this request, which is not permitted"
    await send({"type": "http.response.start", "status": 502, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def send_text(send: Send, code: int, text: str) -> None:
    """As Go's ``http.Error``."""
    body = text.encode() + b"\n"
    found = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": code, "headers": found})
    await send({"type": "http.response.body", "body": body})
