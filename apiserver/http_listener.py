"""The listener of the API server: takes connections as long as there are descriptors for them, and ends gracefully.

Connections are accepted here and not by the event loop's own server, since that one takes each that comes. Without a bound, clients that
connect and do nothing (they need not even speak TLS) would have every descriptor that the process may open, and the store could not begin
its next file, nor a webhook be called. The kernel gives the lowest free descriptor, so that the one of a new connection tells how many
are in use, whatever they are for.
"""

from __future__ import annotations

import asyncio
import email.utils
import errno
import logging
import resource
import socket
import ssl
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from apiserver import garbage_collection
from apiserver.http_protocol import KEEP_ALIVE_SECONDS, ApiProtocol

logger = logging.getLogger(__name__)

#: What the kernel takes for a connection beyond what it may send at the moment. Its own limit is megabytes for each, all of which has to
#: be encrypted and copied before a reader that does not read is known for one.
UNSENT_BYTES_MAX = 512 * 1024
#: Connections that the kernel completes before they are accepted here.
BACKLOG = 1024
#: Accepted in one turn of the event loop, so that a flood of connections leaves the others theirs.
ACCEPTS_PER_TURN = 64
#: Of the descriptors that the process may open, those that no connection gets: for the store's files, webhooks, kubelets, peers.
DESCRIPTORS_RESERVED = 256
#: The same where there are few: a part of them.
RESERVED_FRACTION = 0.25
#: After the system had no descriptor or memory for a connection, until it is asked again.
EXHAUSTED_PAUSE_SECONDS = 0.5
#: Connections that may have ended before the memory that they had is given back, some 15 KiB each.
ENDED_PER_GIVING_BACK = 2_000
#: From the connection to the end of its TLS handshake.
TLS_HANDSHAKE_TIMEOUT_SECONDS = 10.0
#: What requests in flight get to finish when the server ends.
SHUTDOWN_SECONDS = 10.0

_EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


def descriptors_for_connections() -> int:
    """The first descriptor that is none for a connection."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return soft - min(DESCRIPTORS_RESERVED, int(soft * RESERVED_FRACTION))


class HttpListener:
    """Serves ``app`` on a bound socket until ``stop``. ``refused``: connections for which there was no descriptor."""

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
        self._descriptors = 0
        self._paused: asyncio.TimerHandle | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self._taken = 0
        self._ended_before = 0
        self.refused = 0

    async def start(self) -> None:
        self._set_date()
        self._descriptors = descriptors_for_connections()
        if self._socket.family != socket.AF_UNIX:
            # connections have both from their listener
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
        self._socket.setblocking(False)
        self._socket.listen(BACKLOG)
        asyncio.get_running_loop().add_reader(self._socket, self._accept)
        self._ticker = asyncio.create_task(self._tick())

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    # it stays ready: asked at once it would say the same for ever
                    self._pause(error)
                    return
                continue  # ECONNABORTED and its like: that client has gone
            if connection.fileno() >= self._descriptors:
                self._refuse(connection)
                continue
            connection.setblocking(False)
            self._taken += 1
            task = asyncio.create_task(self._open(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _pause(self, error: OSError) -> None:
        logger.warning("no connection can be accepted for a moment: %s", error)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        self._paused = loop.call_later(EXHAUSTED_PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._paused = None
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    def _refuse(self, connection: socket.socket) -> None:
        connection.close()
        self.refused += 1
        if not self.refused & (self.refused - 1):  # at each power of two: there may be thousands
            logger.warning(
                "connections are refused, since too many are open: refused=%s descriptors_max=%s", self.refused, self._descriptors
            )

    async def _open(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            if self._tls is None:
                await loop.connect_accepted_socket(self._protocol, connection)
            else:
                await loop.connect_accepted_socket(
                    self._protocol, connection, ssl=self._tls, ssl_handshake_timeout=TLS_HANDSHAKE_TIMEOUT_SECONDS
                )
        except (OSError, ssl.SSLError):
            connection.close()  # no TLS, or none that both speak, or not in time

    def _protocol(self) -> ApiProtocol:
        return ApiProtocol(config=self._config, server_state=self._state, app_state={})

    def _set_date(self) -> None:
        self._state.default_headers = [(b"date", email.utils.formatdate(usegmt=True).encode())]

    async def _tick(self) -> None:
        """The Date header is made once a second, not once a request; the system's limits may be changed while this process runs."""
        while True:
            await asyncio.sleep(1)
            self._set_date()
            self._descriptors = descriptors_for_connections()
            self._give_back()

    def _give_back(self) -> None:
        """What ended connections had; a small part of the time that their handshakes took."""
        ended = self._taken - len(self._opening) - len(self._state.connections)
        if ended - self._ended_before >= ENDED_PER_GIVING_BACK:
            self._ended_before = ended
            garbage_collection.give_back()

    async def stop(self) -> None:
        """Take no further connections, let requests end, close what is left after ``SHUTDOWN_SECONDS``."""
        assert self._ticker is not None, "start comes first"
        self._ticker.cancel()
        if self._paused is not None:
            self._paused.cancel()
        elif self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        for opening in self._opening:
            opening.cancel()
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
