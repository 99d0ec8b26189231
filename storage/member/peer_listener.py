"""What peers say to this member: the listening sockets and the accepted connections.

Each connection proves itself first: TLS with a certificate that the peers' authority signed for a server, then HELLO with the cluster's
id, who it is and whom it wants. Whoever fails is told why, and both sides log it once. Sockets are accepted here and not by
``create_server``, so that every handshake uses the certificates of that moment and the number of unproven connections is bounded.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

from storage import errors
from storage.member import peer_codec
from storage.member.peer_channel import CALL_HEAD_BYTES_MAX
from storage.member.peer_codec import Channel, FrameError, FrameType, Refusal
from storage.member.peer_connection import DIAL_SECONDS, IDLE_MISSES_MAX, FrameConnection, describe, fail
from storage.member.peer_metrics import PeerMetrics
from storage.member.peer_snapshot import SNAPSHOT_MISSES_MAX, IncomingChunks
from storage.member.peer_urls import PeerUrl
from storage.member.transport import PeerHandler
from storage.raft import codec
from storage.raft.messages import LOCAL_MESSAGES, Message, MessageType
from storage.tls import PeerContexts, Reloaded, offers_server_auth

logger = logging.getLogger(__name__)

LISTEN_BACKLOG: Final = 128
UNPROVEN_MAX: Final = 64
"""Connections in their handshake at once; further ones wait in the kernel's queue."""

JOINING_MAX: Final = 16
"""Connections of callers that have no id yet."""

SENDERS_MAX: Final = 64
"""Members that may be connected at once: more than any cluster has, so that forged ids cannot fill the memory."""

CALLS_AT_ONCE_MAX: Final = 64
"""Calls of one connection under way; beyond it reading pauses."""

COMPLAINTS_MAX: Final = 256
"""Different problems logged; past it the memory of them starts anew."""


class PeerListener:
    """``refuse`` decides on a HELLO (None: welcome); ``heard`` is told of each welcome one."""

    def __init__(
        self,
        handler: PeerHandler,
        *,
        member_id: int,
        cluster_id: int,
        contexts: Reloaded[PeerContexts] | None,
        frame_bytes_max: int,
        metrics: PeerMetrics,
        refuse: Callable[[peer_codec.Hello], peer_codec.Refused | None],
        heard: Callable[[peer_codec.Hello], None],
    ) -> None:
        self.handler = handler
        self.member_id = member_id
        self.cluster_id = cluster_id
        self.frame_bytes_max = frame_bytes_max
        self.metrics = metrics
        self.refuse = refuse
        self.heard = heard
        self._contexts = contexts
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections: set[FrameConnection] = set()
        self._accepted: dict[tuple[int, Channel], FrameConnection] = {}
        self._joining: set[FrameConnection] = set()
        self._unproven = asyncio.Semaphore(UNPROVEN_MAX)
        self._complaints: set[str] = set()

    async def listen(self, urls: tuple[PeerUrl, ...]) -> None:
        """Raises UnavailableError that names the address."""
        for url in urls:
            try:
                found = await self._loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
                for family, kind, protocol, _, address in found:
                    listener = socket.socket(family, kind, protocol)
                    self._sockets.append(listener)
                    listener.setblocking(False)
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if family == socket.AF_INET6:
                        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    listener.bind(address)
                    listener.listen(LISTEN_BACKLOG)
                    self.spawn(self._accept(listener, url.tls))
            except OSError as error:
                await self.stop()
                raise errors.UnavailableError(f"etcdserver: cannot listen for peers on {url}: {error.strerror or error}") from error

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
        for connection in tuple(self.connections):
            connection.abort("this member stops")
        for listener in self._sockets:
            listener.close()
        self._sockets.clear()

    def end_sender(self, member_id: int, refused: peer_codec.Refused) -> None:
        """Tell a peer why, and close its connections."""
        for channel in Channel:
            connection = self._accepted.pop((member_id, channel), None)
            if connection is not None:
                connection.write(peer_codec.encode_refused(refused))
                connection.close(refused.text)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """A task that ends with this listener."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a task of the peers' listener failed", exc_info=task.exception())

    # -- connections

    def register(self, connection: FrameConnection, hello: peer_codec.Hello) -> peer_codec.Refused | None:
        """Take a connection in; of one sender and channel the newest counts, since the older may lead nowhere."""
        if not hello.sender:
            if len(self._joining) >= JOINING_MAX:
                return peer_codec.Refused(Refusal.BUSY, "too many connections of members that are about to join")
            self._joining.add(connection)
            return None
        key = (hello.sender, hello.channel)
        older = self._accepted.get(key)
        if older is None and len({sender for sender, _ in self._accepted} | {hello.sender}) > SENDERS_MAX:
            return peer_codec.Refused(Refusal.BUSY, "too many members are connected")
        self._accepted[key] = connection
        if older is not None:
            older.abort("replaced by a newer connection")
        return None

    def forget(self, connection: FrameConnection, hello: peer_codec.Hello | None) -> None:
        self.connections.discard(connection)
        self._joining.discard(connection)
        if hello is not None and self._accepted.get((hello.sender, hello.channel)) is connection:
            del self._accepted[hello.sender, hello.channel]

    def complain(self, who: str, what: str) -> None:
        """Log a refusal once for each who and what."""
        key = f"{who} {what}"
        if key not in self._complaints:
            if len(self._complaints) >= COMPLAINTS_MAX:
                self._complaints.clear()
            self._complaints.add(key)
            logger.warning("connection of %s refused: %s", who, what)

    async def _accept(self, listener: socket.socket, tls: bool) -> None:
        while True:
            await self._unproven.acquire()
            try:
                accepted, address = await self._loop.sock_accept(listener)
            except OSError as error:
                # Out of descriptors, mostly: others may end; a loop without a pause would starve them.
                self._unproven.release()
                self.complain("a peer", f"cannot accept: {error.strerror or error}")
                await asyncio.sleep(0.1)
                continue
            except BaseException:
                self._unproven.release()
                raise
            self.spawn(self._prove(accepted, str(address[0]), tls))

    async def _prove(self, accepted: socket.socket, host: str, tls: bool) -> None:
        """Up to the end of the handshake."""
        session = _Session(self)

        def make() -> FrameConnection:
            connection = session.connection = FrameConnection(session)
            return connection

        try:
            async with asyncio.timeout(DIAL_SECONDS):
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if tls and self._contexts is None:
                    raise OSError("no certificate to show to peers")
                context = self._contexts.current().server if tls and self._contexts is not None else None
                # What it returns is no use: on uvloop the protocol under TLS.
                await self._loop.connect_accepted_socket(make, accepted, ssl=context)
                await session.proven
        except (OSError, TimeoutError) as error:
            self.complain(host, describe(error))
            if session.connection is not None:
                session.connection.abort("the handshake failed")
            else:
                accepted.close()
        finally:
            self._unproven.release()


class _Session:
    """One accepted connection: first the handshake, then frames by its channel."""

    def __init__(self, listener: PeerListener) -> None:
        self._listener = listener
        self.connection: FrameConnection | None = None
        self._hello: peer_codec.Hello | None = None
        self._chunks: IncomingChunks | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self.proven: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # -- ConnectionHandler

    def connected(self, connection: FrameConnection) -> None:
        self._listener.connections.add(connection)

    def frame(self, connection: FrameConnection, kind: FrameType, payload: bytes) -> None:
        hello = self._hello
        if hello is None:
            if kind is not FrameType.HELLO:
                raise FrameError(f"{kind.name} before the handshake")
            self._greet(connection, peer_codec.decode_hello(payload))
            return
        metrics = self._listener.metrics
        metrics.received_bytes[hello.sender] += len(payload) + 5
        try:
            if hello.channel in (Channel.MESSAGES, Channel.APPENDS) and kind is FrameType.MESSAGE:
                self._listener.handler.receive(self._checked(codec.decode_message(payload), hello))
            elif hello.channel is Channel.CALLS and kind is FrameType.CALL:
                self._call(connection, hello, peer_codec.decode_call(payload))
            elif hello.channel is Channel.SNAPSHOT:
                self._snapshot(connection, hello, kind, payload)
            else:
                raise FrameError(f"{kind.name} on the channel {hello.channel.name}")
        except (FrameError, codec.CodecError) as error:
            metrics.received_failures[hello.sender] += 1
            self._listener.complain(f"{hello.sender:016x}", str(error))
            raise FrameError(str(error)) from error

    def writable(self, connection: FrameConnection) -> None: ...

    def lost(self, connection: FrameConnection, reason: str) -> None:
        fail(self.proven, ConnectionError(reason))
        if self._chunks is not None:
            self._chunks.fail(reason)
        for task in self._calls:
            task.cancel()
        self._listener.forget(connection, self._hello)

    # -- handshake

    def _greet(self, connection: FrameConnection, hello: peer_codec.Hello) -> None:
        refused = self._judge(connection, hello) or self._listener.register(connection, hello)
        if refused is not None:
            self._listener.complain(f"{hello.sender:016x} from {connection.remote().rpartition(':')[0]}", refused.text)
            connection.write(peer_codec.encode_refused(refused))
            connection.close(refused.text)
            if not self.proven.done():
                self.proven.set_result(None)
            return
        self._hello = hello
        listener = self._listener
        connection.take_over(self, listener.frame_bytes_max)
        connection.write(peer_codec.encode_welcome(peer_codec.Welcome(cluster_id=listener.cluster_id, member_id=listener.member_id)))
        misses = SNAPSHOT_MISSES_MAX if hello.channel is Channel.SNAPSHOT else IDLE_MISSES_MAX
        connection.keep_alive(ping=False, misses_max=misses)
        if not self.proven.done():
            self.proven.set_result(None)
        listener.heard(hello)

    def _judge(self, connection: FrameConnection, hello: peer_codec.Hello) -> peer_codec.Refused | None:
        listener = self._listener
        if hello.version != peer_codec.VERSION:
            return peer_codec.Refused(Refusal.VERSION, f"version {hello.version} of the peers' protocol, {peer_codec.VERSION} is spoken")
        certificate = connection.peer_certificate()
        if certificate is not None and not offers_server_auth(certificate):
            return peer_codec.Refused(Refusal.CERTIFICATE, "the certificate is a client's and not a member's (no server authentication)")
        if not hello.sender:
            if hello.channel is not Channel.CALLS:
                return peer_codec.Refused(Refusal.MEMBER, "without a member id one can only call")
        elif hello.cluster_id != listener.cluster_id:
            return peer_codec.Refused(
                Refusal.CLUSTER,
                f"cluster ID mismatch: the sender belongs to {hello.cluster_id:016x}, the receiver to {listener.cluster_id:016x}",
            )
        return listener.refuse(hello)

    # -- by channel

    def _checked(self, message: Message, hello: peer_codec.Hello) -> Message:
        if message.sender != hello.sender:
            raise FrameError(f"a message of {message.sender:016x} on the connection of {hello.sender:016x}")
        if message.to != self._listener.member_id:
            raise FrameError(f"a message to {message.to:016x}, this is {self._listener.member_id:016x}")
        if message.type in LOCAL_MESSAGES or (message.type is MessageType.SNAPSHOT) is not (hello.channel is Channel.SNAPSHOT):
            raise FrameError(f"a message {message.type.name} on the channel {hello.channel.name}")
        return message

    def _call(self, connection: FrameConnection, hello: peer_codec.Hello, call: peer_codec.Call) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(connection, hello.sender, call))
        self._calls.add(task)
        task.add_done_callback(lambda done: self._call_done(connection, done))
        if len(self._calls) >= CALLS_AT_ONCE_MAX:
            connection.pause_reading(True)

    def _call_done(self, connection: FrameConnection, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        if len(self._calls) <= CALLS_AT_ONCE_MAX // 2:
            connection.pause_reading(False)

    async def _answer(self, connection: FrameConnection, sender: int, call: peer_codec.Call) -> None:
        try:
            body = await self._listener.handler.answer_call(sender, call.method, call.body)
            if len(body) + CALL_HEAD_BYTES_MAX > self._listener.frame_bytes_max:
                raise errors.RequestTooLargeError(f"etcdserver: the answer to {call.method} is too large")
            data = peer_codec.encode_answer(call.id, body)
        except errors.StoreError as error:
            data = peer_codec.encode_failure(peer_codec.Failure(call.id, error))
        except Exception as error:
            # The outermost edge of a call: the caller must not wait for the answer of a program that failed.
            logger.exception("the call %s of %016x failed", call.method, sender)
            failed = errors.RequestTimeoutError(f"etcdserver: the call {call.method} failed at the peer: {type(error).__name__}")
            data = peer_codec.encode_failure(peer_codec.Failure(call.id, failed))
        await connection.drained()
        self._listener.metrics.sent_bytes[sender] += len(data)
        connection.write(data)

    def _snapshot(self, connection: FrameConnection, hello: peer_codec.Hello, kind: FrameType, payload: bytes) -> None:
        if kind is FrameType.SNAPSHOT and self._chunks is None:
            size, encoded = peer_codec.decode_snapshot_head(payload)
            message = self._checked(codec.decode_message(encoded), hello)
            self._chunks = IncomingChunks(connection, size)
            self._listener.spawn(self._take(connection, message, self._chunks))
        elif kind is FrameType.CHUNK and self._chunks is not None:
            self._chunks.feed(payload)
        elif kind is FrameType.END and self._chunks is not None:
            self._chunks.end(peer_codec.decode_number(payload))
        else:
            raise FrameError(f"{kind.name} out of turn in a snapshot")

    async def _take(self, connection: FrameConnection, message: Message, chunks: IncomingChunks) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        metrics = self._listener.metrics
        metrics.snapshot_receive_inflights[message.sender] += 1
        ok = False
        try:
            await self._listener.handler.receive_snapshot(message, chunks)
            ok = True
            connection.write(peer_codec.frame(FrameType.TAKEN))
        except Exception as error:
            # The outermost edge of receiving: whatever went wrong, the sender must learn that it was not taken.
            expected = isinstance(error, errors.StoreError)
            logger.log(logging.WARNING if expected else logging.ERROR, "snapshot of %016x not taken: %s", message.sender,
                       describe(error), exc_info=not expected)  # fmt: skip
            told = error if isinstance(error, errors.StoreError) else errors.UnavailableError(f"etcdserver: {describe(error)}")
            connection.write(peer_codec.encode_failure(peer_codec.Failure(0, told)))
        finally:
            metrics.snapshot_receive_inflights[message.sender] -= 1
            metrics.observe_snapshot_received(message.sender, loop.time() - started, ok=ok)
            await chunks.aclose()
            connection.close("the snapshot is over")
