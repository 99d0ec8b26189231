"""What this member says to one peer: two channels of Raft messages that are kept connected, and one of calls, connected when needed.

Messages are encoded when they are sent. While the connection takes them they are written at once; behind a slow peer they queue up to
a bound; beyond it, and while there is no connection, they are dropped: Raft sends again what is still needed.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage import errors
from storage.member import peer_codec
from storage.member.peer_codec import Channel, FrameError, FrameType, Refusal
from storage.member.peer_connection import MISSES_MAX, FrameConnection, RefusedError, describe, dial, fail, unreachable
from storage.member.peer_metrics import PeerMetrics
from storage.member.peer_urls import PeerUrl
from storage.tls import PeerContexts, Reloaded

logger = logging.getLogger(__name__)

QUEUE_COUNT_MAX: Final = 4096
"""Messages that wait for one channel of one peer (etcd's stream buffer)."""

QUEUE_BYTES_MAX: Final = {Channel.MESSAGES: 4 * 1024 * 1024, Channel.APPENDS: 32 * 1024 * 1024}
"""Their bytes: a slow peer costs no more memory than this, and Raft probes once messages are dropped."""

WRITE_BYTES_MAX: Final = 256 * 1024
"""Queued messages joined into one write."""

BACKOFF_SECONDS_MIN: Final = 0.05
BACKOFF_SECONDS_MAX: Final = 1.0
"""Between attempts to connect, doubled at each failure; each wait is drawn from the upper half, so that members do not dial in step.
A peer that comes back is found within the maximum, and at once when it dials us."""

CALL_IDLE_SECONDS: Final = 60.0
CALLS_PENDING_MAX: Final = 1024
CALL_BYTES_PENDING_MAX: Final = 16 * 1024 * 1024
"""Of calls to one peer whose answer is not there yet; beyond it TooManyRequestsError."""

CALL_HEAD_BYTES_MAX: Final = 512
"""Of a call's frame besides its body."""


@dataclass(slots=True, kw_only=True)
class PeerLink:
    """What all channels to one peer share."""

    member_id: int
    urls: tuple[PeerUrl, ...]
    own_id: int
    cluster_id: int
    own_urls: tuple[str, ...]
    contexts: Reloaded[PeerContexts] | None
    frame_bytes_max: int
    metrics: PeerMetrics
    rng: random.Random
    on_unreachable: Callable[[int], None]
    on_removed: Callable[[], None]
    last_problem: str = ""

    def hello(self, channel: Channel) -> peer_codec.Hello:
        return peer_codec.Hello(channel=channel, cluster_id=self.cluster_id, sender=self.own_id, target=self.member_id, urls=self.own_urls)

    def name(self) -> str:
        return f"member {self.member_id:016x}" if self.member_id else "a member of the cluster"

    def report(self, url: PeerUrl, error: BaseException) -> None:
        """Log a problem once, not at every attempt."""
        if isinstance(error, RefusedError) and error.reason is Refusal.REMOVED:
            self.on_removed()
        problem = f"{url}: {describe(error)}"
        if problem != self.last_problem:
            self.last_problem = problem
            level = logging.ERROR if isinstance(error, RefusedError) else logging.WARNING
            if not self.member_id:
                level = logging.INFO  # one call, whose caller is told
            logger.log(level, "%s cannot be reached at %s", self.name(), problem)

    def recovered(self, url: PeerUrl) -> None:
        if self.last_problem:
            self.last_problem = ""
            logger.info("peer %016x is reached at %s", self.member_id, url)


class MessageChannel:
    """Keeps one connection for Raft messages. ``run`` is its task."""

    def __init__(self, link: PeerLink, channel: Channel) -> None:
        self._link = link
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._connection: FrameConnection | None = None
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._bytes_max = max(QUEUE_BYTES_MAX[channel], link.frame_bytes_max)
        self._retry = asyncio.Event()
        self.active_since: float | None = None

    def send(self, frames: list[bytes]) -> bool:
        """Whether all was taken."""
        connection = self._connection
        if connection is None or connection.closed:
            self._link.metrics.sent_failures[self._link.member_id] += len(frames)
            return False
        if not connection.paused and not self._queue:
            self._write(connection, frames)
            return True
        for at, data in enumerate(frames):
            if len(self._queue) >= QUEUE_COUNT_MAX or self._queued_bytes + len(data) > self._bytes_max:
                self._link.metrics.sent_failures[self._link.member_id] += len(frames) - at
                return False
            self._queue.append(data)
            self._queued_bytes += len(data)
        return True

    def retry_now(self) -> None:
        """The peer was heard: it is worth dialling again without waiting."""
        self._retry.set()

    async def run(self) -> None:
        backoff = BACKOFF_SECONDS_MIN
        attempt = 0
        while True:
            urls = self._link.urls
            url = urls[attempt % len(urls)]
            self._retry.clear()
            try:
                if await self._serve(url) > BACKOFF_SECONDS_MAX:
                    backoff = BACKOFF_SECONDS_MIN
            except (OSError, RefusedError) as error:
                self._link.report(url, error)
                attempt += 1
            await self._wait(backoff * self._link.rng.uniform(0.5, 1.0))
            backoff = min(2 * backoff, BACKOFF_SECONDS_MAX)

    def close(self, reason: str) -> None:
        if self._connection is not None:
            self._connection.abort(reason)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._retry.wait()
        except TimeoutError:
            pass

    async def _serve(self, url: PeerUrl) -> float:
        """How long it was connected, in seconds. Raises OSError, RefusedError where it never was."""
        link = self._link
        connection = await dial(url, link.hello(self._channel), self, contexts=link.contexts, frame_bytes_max=peer_codec.HELLO_BYTES_MAX)
        try:
            link.recovered(url)
            self._connection = connection
            self.active_since = self._loop.time()
            connection.keep_alive(ping=True, misses_max=MISSES_MAX, on_round_trip=self._round_trip)
            since = self._loop.time()
            await connection.wait_lost()
            return self._loop.time() - since
        finally:
            connection.abort("not needed any more")
            self._gone()

    def _gone(self) -> None:
        self._connection = None
        self._queue.clear()
        self._queued_bytes = 0
        if self.active_since is not None:
            self.active_since = None
            self._link.metrics.disconnected_peers[self._link.member_id] += 1
            self._link.on_unreachable(self._link.member_id)

    def _round_trip(self, seconds: float) -> None:
        self._link.metrics.observe_round_trip(self._link.member_id, seconds)

    def _write(self, connection: FrameConnection, frames: list[bytes]) -> None:
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        self._link.metrics.sent_bytes[self._link.member_id] += len(data)
        connection.write(data)

    # -- ConnectionHandler

    def connected(self, connection: FrameConnection) -> None: ...

    def frame(self, connection: FrameConnection, kind: FrameType, payload: bytes) -> None:
        if kind is not FrameType.REFUSED:
            raise FrameError(f"{kind.name} on a channel that only sends")
        refused = peer_codec.decode_refused(payload)
        self._link.report(self._link.urls[0], RefusedError(refused))
        connection.abort(refused.text)

    def writable(self, connection: FrameConnection) -> None:
        queue = self._queue
        while queue and not connection.paused and not connection.closed:
            batch: list[bytes] = []
            size = 0
            while queue and (not batch or size + len(queue[0]) <= WRITE_BYTES_MAX):
                data = queue.popleft()
                size += len(data)
                batch.append(data)
            self._queued_bytes -= size
            self._write(connection, batch)

    def lost(self, connection: FrameConnection, reason: str) -> None:
        if connection is self._connection:
            problem = f"{self._channel.name.lower()}: connection lost: {reason}"
            if not self._link.last_problem:
                self._link.last_problem = problem
                logger.warning("peer %016x: %s", self._link.member_id, problem)
            self._gone()


class CallChannel:
    """Calls to one peer, many at a time over one connection, which is made when first needed and closed when long unused."""

    def __init__(self, link: PeerLink) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._connection: FrameConnection | None = None
        self._connecting: asyncio.Task[FrameConnection] | None = None
        self._pending: dict[int, asyncio.Future[bytes]] = {}
        self._under_way = 0
        self._under_way_bytes = 0
        self._next_id = 0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def call(self, method: str, body: bytes, timeout_seconds: float) -> bytes:
        """See ``Transport.call``."""
        link = self._link
        if len(body) + CALL_HEAD_BYTES_MAX > link.frame_bytes_max:
            raise errors.RequestTooLargeError()
        if self._under_way >= CALLS_PENDING_MAX or self._under_way_bytes + len(body) > CALL_BYTES_PENDING_MAX:
            raise errors.TooManyRequestsError()
        self._under_way += 1
        self._under_way_bytes += len(body)
        self._next_id += 1
        id_ = self._next_id
        deadline = self._loop.time() + timeout_seconds
        try:
            try:
                async with asyncio.timeout_at(deadline):
                    connection = await self._connected()
            except (OSError, RefusedError) as error:
                raise unreachable(link.name(), error) from error
            future: asyncio.Future[bytes] = self._loop.create_future()
            self._pending[id_] = future
            data = peer_codec.encode_call(peer_codec.Call(id_, method, body))
            link.metrics.sent_bytes[link.member_id] += len(data)
            connection.write(data)
            async with asyncio.timeout_at(deadline):
                return await future
        except TimeoutError as error:
            raise errors.RequestTimeoutError() from error
        finally:
            self._pending.pop(id_, None)
            self._under_way -= 1
            self._under_way_bytes -= len(body)
            self._watch_idle()

    def close(self, reason: str) -> list[asyncio.Task[FrameConnection]]:
        """The tasks to wait for."""
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._connection is not None:
            self._connection.abort(reason)
        if self._connecting is None or self._connecting.done():
            return []
        self._connecting.cancel()
        return [self._connecting]

    async def _connected(self) -> FrameConnection:
        if self._closed:
            raise ConnectionError("the peer was removed, or this member stops")
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if self._connecting is None or self._connecting.done():
            self._connecting = self._loop.create_task(self._dial())
            # Where all that wanted it have given up, nobody takes its exception.
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())
        # One that gives up must not take the connection from the others.
        try:
            return await asyncio.shield(self._connecting)
        except asyncio.CancelledError:
            if self._closed:
                raise ConnectionError("the peer was removed, or this member stops") from None
            raise

    async def _dial(self) -> FrameConnection:
        link = self._link
        problem: BaseException | None = None
        for url in link.urls:
            try:
                connection = await dial(url, link.hello(Channel.CALLS), self, contexts=link.contexts, frame_bytes_max=link.frame_bytes_max)
            except (OSError, RefusedError) as error:
                link.report(url, error)
                problem = error
            else:
                connection.keep_alive(ping=True, misses_max=MISSES_MAX)
                self._connection = connection
                return connection
        assert problem is not None, "a peer has a URL"
        raise problem

    def _watch_idle(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if not self._under_way and self._connection is not None and not self._closed:
            self._idle_timer = self._loop.call_later(CALL_IDLE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        if not self._under_way and self._connection is not None:
            self._connection.close("not used any more")

    # -- ConnectionHandler

    def connected(self, connection: FrameConnection) -> None: ...

    def frame(self, connection: FrameConnection, kind: FrameType, payload: bytes) -> None:
        self._link.metrics.received_bytes[self._link.member_id] += len(payload)
        take_answer(self._pending, kind, payload, self._link.on_removed)

    def writable(self, connection: FrameConnection) -> None: ...

    def lost(self, connection: FrameConnection, reason: str) -> None:
        if connection is self._connection:
            self._connection = None
            for future in self._pending.values():
                fail(future, errors.RequestTimeoutError(f"etcdserver: request timed out: {reason}"))


def take_answer(pending: dict[int, asyncio.Future[bytes]], kind: FrameType, payload: bytes, on_removed: Callable[[], None]) -> None:
    """Give an answer to whom it belongs. Late ones, whose caller has gone, are passed over. Raises FrameError."""
    if kind is FrameType.REFUSED:
        refused = peer_codec.decode_refused(payload)
        if refused.reason is Refusal.REMOVED:
            on_removed()
        raise FrameError(refused.text)
    if kind is FrameType.ANSWER:
        id_, body = peer_codec.decode_answer(payload)
        waiting = pending.get(id_)
        if waiting is not None and not waiting.done():
            waiting.set_result(body)
    elif kind is FrameType.FAILURE:
        failure = peer_codec.decode_failure(payload)
        waiting = pending.get(failure.id)
        if waiting is not None:
            fail(waiting, failure.error)
    else:
        raise FrameError(f"{kind.name} as the answer to a call")
