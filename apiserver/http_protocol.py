"""HTTP/1.1 for the API server: uvicorn's httptools protocol with the client's certificate in the scope and a bound on slow heads; and the
listener that ends gracefully."""

from __future__ import annotations

import asyncio
import email.utils
import socket
import ssl
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from apiserver.handler_chain import PEER_CERTIFICATE_KEY
from apiserver.handlers.watch import WRITE_CHUNK_KEY

#: From the first byte of a connection, or of a further request, to the end of its head.
HEAD_TIMEOUT_SECONDS = 30.0
#: An idle connection is kept for Go's clients, which reuse theirs (kube-apiserver's IdleTimeout is three minutes).
KEEP_ALIVE_SECONDS = 180
TLS_HANDSHAKE_TIMEOUT_SECONDS = 10.0
#: What requests in flight get to finish when the server ends.
SHUTDOWN_SECONDS = 10.0


class CorkedTransport:
    """A transport that holds the head of a response until its first piece of body, so that both leave as one TLS record and one system
    call: for small answers that is a third of the server's work."""

    __slots__ = ("_held", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held = b""

    def write(self, data: bytes) -> None:
        if self._held:
            data, self._held = self._held + data, b""
        elif data.startswith(_HEAD_START) and not data.startswith(_INTERIM_START):
            self._held = data
            return
        if data:
            self._transport.write(data)

    def flush(self) -> None:
        """For answers without a body."""
        if self._held:
            data, self._held = self._held, b""
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


#: of a response's head as uvicorn writes it; a body that begins so is merely held for the moment until the next write or the end
_HEAD_START = b"HTTP/1.1 "
#: of an interim response (100 Continue), which the client waits for
_INTERIM_START = b"HTTP/1.1 1"


class ApiProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._peer_certificate: bytes | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_head = True
        self._corked: CorkedTransport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._corked = CorkedTransport(transport)
        super().connection_made(self._corked)  # type: ignore[arg-type]
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._peer_certificate = tls.getpeercert(binary_form=True)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head and self._head_timer is None:
            self._watch_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[PEER_CERTIFICATE_KEY] = self._peer_certificate  # type: ignore[literal-required]
        self.scope[WRITE_CHUNK_KEY] = self.write_chunk  # type: ignore[literal-required]
        self._in_head = True

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_watching()
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """kubectl tries WebSockets for exec and the like before it takes no for an answer: nothing to log."""

    def write_chunk(self, framed: bytes) -> bool:
        """Write a chunk of a chunked response that has begun, with its framing, past the ASGI messages; False where that cannot be
        done at once: the client is slow or gone, or the response is not such a one. For watches, whose events go to many at a time."""
        cycle = self.cycle
        if cycle is None or not cycle.chunked_encoding or cycle.response_complete or cycle.disconnected:
            return False
        if self.flow.write_paused or self.transport.is_closing():
            return False
        self.transport.write(framed)
        return True

    def _unsupported_upgrade_warning(self) -> None:
        """A client that asks to upgrade (kubectl exec, port-forward) is answered as any other; nothing for the server's log."""

    def on_response_complete(self) -> None:
        if self._corked is not None:
            self._corked.flush()
        super().on_response_complete()

    def _watch_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_SECONDS, self._give_up)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()


class HttpListener:
    """Serves ``app`` on a bound socket until ``stop``."""

    def __init__(self, app: Any, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        config = uvicorn.Config(
            app,
            loop="none",
            http=ApiProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            proxy_headers=False,
        )
        config.load()
        self._config = config
        self._state = ServerState()
        self._socket = listener
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._ticker: asyncio.Task[None] | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        handshake = None if self._tls is None else TLS_HANDSHAKE_TIMEOUT_SECONDS
        self._set_date()
        self._server = await loop.create_server(
            self._protocol, sock=self._socket, ssl=self._tls, backlog=1024, ssl_handshake_timeout=handshake
        )
        self._ticker = asyncio.create_task(self._tick())

    def _protocol(self) -> ApiProtocol:
        return ApiProtocol(config=self._config, server_state=self._state, app_state={})

    def _set_date(self) -> None:
        self._state.default_headers = [(b"date", email.utils.formatdate(usegmt=True).encode())]

    async def _tick(self) -> None:
        """The Date header is made once a second, not once a request."""
        while True:
            await asyncio.sleep(1)
            self._set_date()

    async def stop(self) -> None:
        """Take no further connections, let requests end, close what is left after ``SHUTDOWN_SECONDS``."""
        assert self._server is not None and self._ticker is not None, "start comes first"
        self._ticker.cancel()
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        pending = {task for task in self._state.tasks if not task.done()}
        if pending:
            _, late = await asyncio.wait(pending, timeout=SHUTDOWN_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1)
        for connection in list(self._state.connections):
            connection.transport.close()
