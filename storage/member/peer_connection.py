"""One connection between members: frames in and out over an asyncio transport, and the watch on whether the other side lives.

A connection never blocks and never grows: what is written beyond the transport's high-water mark is the caller's to hold back
(``paused``, ``on_writable``). Who dialled sends PING at each interval; a connection on which nothing came and nothing could be written
for ``misses_max`` intervals is dropped, so a stopped process, a pulled cable and a half-open connection are found alike. Intervals are
counted, not time, so that a process which was stopped itself does not condemn all its peers when it goes on.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol

from storage import errors
from storage.member import peer_codec
from storage.member.peer_codec import FrameError, FrameType
from storage.member.peer_urls import PeerUrl
from storage.tls import PeerContexts, Reloaded

PING_SECONDS: Final = 1.0
MISSES_MAX: Final = 5
"""Silent intervals after which a peer counts as gone; Raft's own timeouts are shorter, this one only frees what leads nowhere."""

IDLE_MISSES_MAX: Final = 15
"""The same for who accepted the connection: the dialler's pings must come."""

DIAL_SECONDS: Final = 5.0
"""For the connection, the TLS handshake and ours, together."""

HIGH_WATER_BYTES: Final = 256 * 1024
"""Of the transport's write buffer, past which the writer is told to wait (one frame may go beyond)."""


class ConnectionHandler(Protocol):
    """What a connection tells its owner; calls come on the loop's thread."""

    def connected(self, connection: FrameConnection) -> None: ...

    def frame(self, connection: FrameConnection, kind: FrameType, payload: bytes) -> None:
        """Raises FrameError to end the connection."""

    def writable(self, connection: FrameConnection) -> None:
        """What was written went out, more may come."""

    def lost(self, connection: FrameConnection, reason: str) -> None:
        """Called once; nothing comes after it."""


class FrameConnection(asyncio.Protocol):
    def __init__(self, handler: ConnectionHandler, *, frame_bytes_max: int = peer_codec.HELLO_BYTES_MAX) -> None:
        self._handler = handler
        self._loop = asyncio.get_running_loop()
        self._reader = peer_codec.FrameReader(frame_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._misses_max = MISSES_MAX
        self._pings = False
        self._reason = "closed"
        self._reading_paused = False
        self._alive = False
        self._misses = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ping_number = 0
        self._ping_sent_at = 0.0
        self._on_round_trip: Callable[[float], None] | None = None
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self.paused = False
        self.closed = False
        self.sent_bytes = 0
        self.received_bytes = 0

    # -- for the owner

    def take_over(self, handler: ConnectionHandler, frame_bytes_max: int) -> None:
        """After the handshake: to whom what comes belongs from now on, and how large a frame may be."""
        self._handler = handler
        self._reader.frame_bytes_max = frame_bytes_max

    def write(self, data: bytes) -> None:
        """Hand over whole frames. Ignored once the connection is closed."""
        if not self.closed and self._transport is not None:
            self.sent_bytes += len(data)
            self._transport.write(data)

    async def drained(self) -> None:
        """Return when more may be written, or the connection is gone (``closed``)."""
        while self.paused and not self.closed:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._drain_waiters.append(waiter)
            await waiter

    def pause_reading(self, paused: bool) -> None:
        """Stop taking what comes, until the owner has room again: the other side's kernel and queues hold it meanwhile."""
        if self._transport is None or self.closed or paused == self._reading_paused or self._transport.is_closing():
            return
        self._reading_paused = paused
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def keep_alive(self, *, ping: bool, misses_max: int, on_round_trip: Callable[[float], None] | None = None) -> None:
        """Watch the other side from now on; ``ping`` makes it answer."""
        self._on_round_trip = on_round_trip
        self._misses_max, self._pings = misses_max, ping
        if self._timer is None and not self.closed:
            self._beat()

    def close(self, reason: str = "closed") -> None:
        """Send what has been written, then end."""
        if not self.closed:
            self._reason = reason
            if self._transport is not None:
                self._transport.close()
                # A peer that does not read would keep what is written, and the connection, for ever.
                self._loop.call_later(DIAL_SECONDS, self._transport.abort)

    def abort(self, reason: str) -> None:
        if not self.closed:
            self._reason = reason
            if self._transport is not None:
                self._transport.abort()

    async def wait_lost(self) -> None:
        await asyncio.shield(self._lost)

    def peer_certificate(self) -> bytes | None:
        """DER; None without TLS."""
        assert self._transport is not None
        tls = self._transport.get_extra_info("ssl_object")
        return None if tls is None else tls.getpeercert(binary_form=True)

    def remote(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{name[0]}:{name[1]}" if name else "unknown"

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)  # type: ignore[union-attr]
        self._handler.connected(self)

    def data_received(self, data: bytes) -> None:
        self._alive = True
        self.received_bytes += len(data)
        if self.closed:
            return
        try:
            for kind, payload in self._reader.feed(data):
                if kind is FrameType.PING:
                    if not self.paused:  # a peer that asks and does not read gets no answers piled up for it
                        self.write(peer_codec.number_frame(FrameType.PONG, peer_codec.decode_number(payload)))
                elif kind is FrameType.PONG:
                    self._pong(peer_codec.decode_number(payload))
                else:
                    self._handler.frame(self, kind, payload)
                if self.closed or self._transport is None or self._transport.is_closing():
                    return
        except FrameError as error:
            self.abort(f"what it sends cannot be understood: {error}")

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._alive = True
        self._wake()
        self._handler.writable(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self.paused = False
        if self._timer is not None:
            self._timer.cancel()
        self._wake()
        if not self._lost.done():
            self._lost.set_result(None)
        reason = self._reason
        if error is not None and reason == "closed":
            reason = describe(error)
        self._handler.lost(self, reason)

    # -- inside

    def _wake(self) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _beat(self) -> None:
        self._misses = 0 if self._alive or self._reading_paused else self._misses + 1
        self._alive = False
        if self._misses >= self._misses_max:
            self.abort(f"nothing came for {self._misses} s")
            return
        if self._pings and not self.paused:
            self._ping_number += 1
            self._ping_sent_at = self._loop.time()
            self.write(peer_codec.number_frame(FrameType.PING, self._ping_number))
        self._timer = self._loop.call_later(PING_SECONDS, self._beat)

    def _pong(self, number: int) -> None:
        if number == self._ping_number and self._on_round_trip is not None:
            self._on_round_trip(self._loop.time() - self._ping_sent_at)


def describe(error: BaseException) -> str:
    """One line of what went wrong with a connection."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message} (members must trust one authority)"
    return str(error).partition("\n")[0] or type(error).__name__


def fail(future: asyncio.Future[Any], error: Exception) -> None:
    """Give a future that nobody may be waiting for any more an exception."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # taken note of: else it would be logged as forgotten


class RefusedError(Exception):
    """The other side, or our look at it, ended the handshake."""

    def __init__(self, refused: peer_codec.Refused) -> None:
        super().__init__(refused.text)
        self.reason = refused.reason


class _Handshake:
    """The dialler's half: HELLO out, WELCOME or REFUSED in; then the owner's handler takes over."""

    def __init__(self, hello: peer_codec.Hello) -> None:
        self._hello = hello
        self.welcome: asyncio.Future[peer_codec.Welcome] = asyncio.get_running_loop().create_future()

    def connected(self, connection: FrameConnection) -> None:
        connection.write(peer_codec.encode_hello(self._hello))

    def frame(self, connection: FrameConnection, kind: FrameType, payload: bytes) -> None:
        if self.welcome.done():
            raise FrameError("more than an answer to the handshake")
        if kind is FrameType.WELCOME:
            self.welcome.set_result(peer_codec.decode_welcome(payload))
        elif kind is FrameType.REFUSED:
            fail(self.welcome, RefusedError(peer_codec.decode_refused(payload)))
        else:
            raise FrameError(f"{kind.name} before the handshake")

    def writable(self, connection: FrameConnection) -> None:
        pass

    def lost(self, connection: FrameConnection, reason: str) -> None:
        fail(self.welcome, ConnectionError(reason))


async def dial(
    url: PeerUrl,
    hello: peer_codec.Hello,
    handler: ConnectionHandler,
    *,
    contexts: Reloaded[PeerContexts] | None,
    frame_bytes_max: int,
) -> FrameConnection:
    """A connection whose handshake is over; ``handler`` gets all that comes from then on (its ``connected`` is not called).

    Raises OSError, TimeoutError or RefusedError; nothing is left open then.
    """
    handshake = _Handshake(hello)
    connection: FrameConnection | None = None

    def make() -> FrameConnection:
        nonlocal connection
        connection = FrameConnection(handshake)
        return connection

    try:
        async with asyncio.timeout(DIAL_SECONDS):
            if url.tls:
                if contexts is None:
                    raise OSError(f"{url}: no certificate to show to peers")
                await asyncio.get_running_loop().create_connection(
                    make, url.host, url.port, ssl=contexts.current().client, server_hostname=url.host
                )
            else:
                await asyncio.get_running_loop().create_connection(make, url.host, url.port)
            welcome = await handshake.welcome
        assert connection is not None
        if hello.target and welcome.member_id != hello.target:
            raise RefusedError(
                peer_codec.Refused(peer_codec.Refusal.MEMBER, f"{url} is member {welcome.member_id:016x}, {hello.target:016x} was wanted")
            )
        if hello.cluster_id and welcome.cluster_id != hello.cluster_id:
            raise RefusedError(
                peer_codec.Refused(
                    peer_codec.Refusal.CLUSTER,
                    f"{url} belongs to the cluster {welcome.cluster_id:016x}, this member to {hello.cluster_id:016x}",
                )
            )
        if connection.closed:
            raise ConnectionError("closed after the handshake")
    except BaseException:
        if connection is not None:
            connection.abort("the handshake failed")
        raise
    connection.take_over(handler, frame_bytes_max)
    return connection


def unreachable(what: str, error: BaseException) -> errors.UnavailableError:
    """What a caller gets who needs a connection that cannot be had."""
    return errors.UnavailableError(f"etcdserver: {what} cannot be reached: {describe(error)}")
