"""``Tunnel``: an upgraded connection (``kubectl exec`` over SPDY, WebSockets) through to an extension API server.

The request's head goes out on a connection of its own. Where the other server switches protocols, bytes go both ways until either side
ends, no faster than the slower one takes them; any other answer is passed back as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from apiserver.aggregation import go_words, headers
from apiserver.aggregation.connections import CONNECT_SECONDS, Connections
from apiserver.aggregation.remote import RemoteService
from apiserver.filters.asgi import Scope, Send
from apiserver.outbound.service_endpoints import Place
from apiserver.request.request_context import SCOPE_KEY, RequestContext

#: key of the ASGI scope under which the server puts a function that writes a head and gives the connection to another protocol
TAKE_OVER_KEY = "sampan.take_over"
TakeOver = Callable[[bytes, asyncio.Protocol], None]

HEAD_BYTES_MAX = 64 * 1024
#: of an answer that refuses the upgrade, or of what is passed at a time
PIECE_BYTES = 64 * 1024
REFUSAL_BYTES_MAX = 1024 * 1024


class TunnelOpener:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def open(self, remote: RemoteService, place: Place, scope: Scope, send: Send, target: str, sent: list[tuple[str, str]]) -> None:
        from apiserver.aggregation.forwarding import send_text

        take_over: TakeOver | None = scope.get(TAKE_OVER_KEY)
        if take_over is None:
            await send_text(send, 501, "this connection cannot be upgraded")
            return
        tls = self._connections.pool(remote).context
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    place.host, place.port, ssl=tls, server_hostname=remote.server_name, limit=HEAD_BYTES_MAX
                )
                head = "".join(f"{name}: {value}\r\n" for name, value in sent)
                writer.write(f"{scope['method']} {target} HTTP/1.1\r\n{head}\r\n".encode())
                answer = await reader.readuntil(b"\r\n\r\n")
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            await send_text(send, 503, f"error trying to reach service: {go_words.of_connection(error, place, remote.server_name)}")
            return
        try:
            code, found = _parsed(answer)
            if code == 101:
                context: RequestContext = scope[SCOPE_KEY]
                context.response_status = code
                await _switched(take_over, answer, reader, writer)
            else:
                await _refused(send, code, found, reader)
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                await writer.wait_closed()


def _parsed(head: bytes) -> tuple[int, list[tuple[bytes, bytes]]]:
    first, *lines = head.rstrip(b"\r\n").split(b"\r\n")
    parts = first.split(b" ", 2)
    is_http = len(parts) > 1 and parts[0].startswith(b"HTTP/1.") and len(parts[1]) == 3 and parts[1].isdigit()
    code = int(parts[1]) if is_http else 502  # what is no HTTP has no headers that could be passed back either
    return code, [(name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]


async def _switched(take_over: TakeOver, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    client = _Client(writer)
    take_over(head, client)
    try:
        while piece := await reader.read(PIECE_BYTES):
            await client.send(piece)
            if client.ended.done():
                return
    except OSError:
        pass
    finally:
        client.close()


async def _refused(send: Send, code: int, found: list[tuple[bytes, bytes]], reader: asyncio.StreamReader) -> None:
    sizes = [int(value) for name, value in found if name.lower() == b"content-length" and value.isdigit()]
    body = b""
    with contextlib.suppress(asyncio.IncompleteReadError):
        body = await reader.readexactly(min(sizes[0], REFUSAL_BYTES_MAX)) if sizes else b""
    kept = [(name, value) for name, value in headers.answered(found) if name != b"content-length"]
    await send({"type": "http.response.start", "status": code, "headers": [*kept, (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


class _Client(asyncio.Protocol):
    """The client's side, once its connection is ours."""

    def __init__(self, server: asyncio.StreamWriter) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._draining: asyncio.Task[None] | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write"), transport
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._server.write(data)
        if self._draining is None or self._draining.done():
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        """While the other server takes no more, the client is not read."""
        assert self._transport is not None
        self._transport.pause_reading()
        try:
            await self._server.drain()
        except OSError:
            self.close()
        else:
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._writable.set()
        if not self.ended.done():
            self.ended.set_result(None)
        self._server.close()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def send(self, piece: bytes) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(piece)
        await self._writable.wait()

    def close(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
