"""Snapshots between members: a database on a connection of its own, in chunks, at the receiver's pace, so that neither side holds more
than a few chunks and no other message waits behind it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

from storage import errors
from storage.member import peer_codec
from storage.member.peer_channel import PeerLink
from storage.member.peer_codec import CHUNK_BYTES_MAX, Channel, FrameError, FrameType
from storage.member.peer_connection import FrameConnection, RefusedError, describe, dial, fail
from storage.member.transport import SnapshotSource
from storage.raft import codec
from storage.raft.messages import Message

logger = logging.getLogger(__name__)

SNAPSHOT_MISSES_MAX: Final = 30
"""Seconds without any progress after which a snapshot's stream is given up: the receiver may be busy with its disk."""

BUFFERED_BYTES_MAX: Final = 4 * CHUNK_BYTES_MAX
"""Chunks that wait for the receiving member; beyond it reading pauses."""

TAKE_SECONDS: Final = 300.0
"""From the last chunk to the receiver's word that it has taken the snapshot."""


class Outgoing:
    """One snapshot on its way to a peer; handles its own connection."""

    def __init__(self, link: PeerLink, message: Message, source: SnapshotSource) -> None:
        self._link = link
        self._message = message
        self._source = source
        self._connection: FrameConnection | None = None
        self._taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def send(self) -> bool:
        """Whether the peer has taken it. The source is closed in any case."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        member_id, metrics = self._link.member_id, self._link.metrics
        metrics.snapshot_send_inflights[member_id] += 1
        ok = False
        try:
            sent_bytes = await self._stream()
            ok = True
            logger.info("snapshot sent to %016x: %d bytes in %.1f s", member_id, sent_bytes, loop.time() - started)
        except (OSError, RefusedError, errors.StoreError) as error:
            logger.warning("snapshot not sent to %016x: %s", member_id, describe(error))
        finally:
            metrics.snapshot_send_inflights[member_id] -= 1
            metrics.observe_snapshot_sent(member_id, loop.time() - started, ok=ok)
            await close_chunks(self._source.chunks)
        return ok

    def stop(self, reason: str) -> None:
        """Give up: ``send`` answers False soon."""
        fail(self._taken, ConnectionError(reason))
        if self._connection is not None:
            self._connection.abort(reason)

    async def _stream(self) -> int:
        link, source = self._link, self._source
        connection = await self._dial()
        try:
            connection.keep_alive(ping=True, misses_max=SNAPSHOT_MISSES_MAX)
            connection.write(peer_codec.encode_snapshot_head(source.size, codec.encode_message(self._message)))
            total = 0
            async for piece in source.chunks:
                for at in range(0, len(piece), CHUNK_BYTES_MAX):
                    await connection.drained()
                    if self._taken.done():
                        await self._taken  # it failed at the other side: no use to send the rest
                        raise ConnectionError("taken before its end")
                    part = piece[at : at + CHUNK_BYTES_MAX]
                    connection.write(peer_codec.frame(FrameType.CHUNK, part))
                    total += len(part)
            if source.size and total != source.size:
                raise errors.UnavailableError(f"etcdserver: a snapshot of {source.size} bytes ended after {total}")
            connection.write(peer_codec.number_frame(FrameType.END, total))
            async with asyncio.timeout(TAKE_SECONDS):
                await self._taken
            return total
        finally:
            link.metrics.sent_bytes[link.member_id] += connection.sent_bytes
            connection.abort("the snapshot is over")

    async def _dial(self) -> FrameConnection:
        link = self._link
        problem: BaseException = ConnectionError("it has no URL")
        for url in link.urls:
            hello = link.hello(Channel.SNAPSHOT)
            dialling = asyncio.ensure_future(dial(url, hello, self, contexts=link.contexts, frame_bytes_max=peer_codec.HELLO_BYTES_MAX))
            try:
                waited: set[asyncio.Future[Any]] = {dialling, self._taken}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if self._taken.done():  # stopped meanwhile
                    dialling.cancel()
                    await asyncio.wait({dialling})
                    await self._taken
                self._connection = await dialling
                return self._connection
            except (OSError, RefusedError) as error:
                link.report(url, error)
                problem = error
        raise problem

    # -- ConnectionHandler

    def connected(self, connection: FrameConnection) -> None: ...

    def frame(self, connection: FrameConnection, kind: FrameType, payload: bytes) -> None:
        if self._taken.done():
            raise FrameError("more than one answer to a snapshot")
        if kind is FrameType.TAKEN:
            self._taken.set_result(None)
        elif kind is FrameType.FAILURE:
            fail(self._taken, peer_codec.decode_failure(payload).error)
        elif kind is FrameType.REFUSED:
            fail(self._taken, RefusedError(peer_codec.decode_refused(payload)))
        else:
            raise FrameError(f"{kind.name} as the answer to a snapshot")

    def writable(self, connection: FrameConnection) -> None: ...

    def lost(self, connection: FrameConnection, reason: str) -> None:
        fail(self._taken, ConnectionError(reason))


async def close_chunks(chunks: AsyncIterator[bytes]) -> None:
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()


class IncomingChunks:
    """The chunks of a snapshot as they come. Ends where END says so, and raises UnavailableError where the stream is cut off."""

    def __init__(self, connection: FrameConnection, size: int) -> None:
        self._connection = connection
        self._size = size
        self._chunks: deque[bytes] = deque()
        self._buffered_bytes = 0
        self._total = 0
        self._ended = False
        self._failure: str | None = None
        self._more = asyncio.Event()

    def feed(self, chunk: bytes) -> None:
        if self._ended or not chunk:
            raise FrameError("a chunk after the end of a snapshot, or an empty one")
        self._total += len(chunk)
        if self._size and self._total > self._size:
            raise FrameError(f"a snapshot of {self._size} bytes goes on after them")
        self._chunks.append(chunk)
        self._buffered_bytes += len(chunk)
        if self._buffered_bytes > BUFFERED_BYTES_MAX:
            self._connection.pause_reading(True)
        self._more.set()

    def end(self, total: int) -> None:
        if self._ended or total != self._total or (self._size and total != self._size):
            raise FrameError(f"the end of a snapshot of {total} bytes after {self._total} ({self._size} were announced)")
        self._ended = True
        self._more.set()

    def fail(self, reason: str) -> None:
        self._failure = reason
        self._more.set()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._ended:
                raise StopAsyncIteration
            if self._failure is not None:
                raise errors.UnavailableError(f"etcdserver: a snapshot's stream was cut off: {self._failure}")
            self._more.clear()
            await self._more.wait()
        chunk = self._chunks.popleft()
        self._buffered_bytes -= len(chunk)
        if self._buffered_bytes <= BUFFERED_BYTES_MAX // 2:
            self._connection.pause_reading(False)
        return chunk

    async def aclose(self) -> None:
        self._chunks.clear()
        self._buffered_bytes = 0
