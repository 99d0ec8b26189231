"""Members in one process, their messages carried from loop pass to loop pass: ``storage.member.transport.Transport`` without sockets.

Messages travel as bytes, as they would between processes. ``Network.cut`` loses what one member sends to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from storage import errors
from storage.member.transport import PeerHandler, SnapshotSource
from storage.raft import codec
from storage.raft.messages import Message


class Network:
    """``transports`` holds those that listen, by URL. ``blocked`` holds (from, to) pairs whose messages are lost, by member id."""

    def __init__(self) -> None:
        self.transports: dict[str, MemoryTransport] = {}
        self.blocked: set[tuple[int, int]] = set()
        self.removed: set[int] = set()

    def cut(self, one: int, other: int) -> None:
        self.blocked |= {(one, other), (other, one)}

    def isolate(self, member_id: int) -> None:
        for other in self.listening():
            if other != member_id:
                self.cut(member_id, other)

    def heal(self) -> None:
        self.blocked.clear()

    def listening(self) -> dict[int, MemoryTransport]:
        return {one.member_id: one for one in self.transports.values()}

    def passes(self, sender: int, to: int) -> bool:
        return (sender, to) not in self.blocked


class MemoryTransport:
    """One member's end. ``urls`` are where it listens."""

    def __init__(self, network: Network, urls: Sequence[str]) -> None:
        self.network = network
        self.urls = tuple(urls)
        self.member_id = 0
        self.cluster_id = 0
        self.handler: PeerHandler | None = None
        self._peers: dict[int, tuple[str, ...]] = {}
        self._refused: set[int] = set()
        self._was_removed = False
        self._started_at: float | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def start(self, handler: PeerHandler, *, member_id: int, cluster_id: int) -> None:
        for url in self.urls:
            if url in self.network.transports:
                raise errors.UnavailableError(f"{url}: address in use")
        self.handler, self.member_id, self.cluster_id = handler, member_id, cluster_id
        self._started_at = asyncio.get_running_loop().time()
        for url in self.urls:
            self.network.transports[url] = self

    async def stop(self) -> None:
        for url in self.urls:
            if self.network.transports.get(url) is self:
                del self.network.transports[url]
        self.handler = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def set_peer(self, member_id: int, urls: tuple[str, ...]) -> None:
        self._peers[member_id] = urls
        self._refused.discard(member_id)

    def remove_peer(self, member_id: int) -> None:
        self._peers.pop(member_id, None)
        self._refused.add(member_id)

    def send(self, messages: Sequence[Message]) -> None:
        loop = asyncio.get_running_loop()
        for message in messages:
            assert message.sender == self.member_id, message
            loop.call_soon(self._deliver, message.to, codec.encode_message(message))

    def send_snapshot(self, message: Message, source: SnapshotSource) -> None:
        task = asyncio.get_running_loop().create_task(self._send_snapshot(message, source))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def call(self, member_id: int, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        peer = self._peer(member_id)
        if peer is None or peer.handler is None or not self.network.passes(member_id, self.member_id):
            raise errors.UnavailableError(f"member {member_id:016x} cannot be reached")
        try:
            return await asyncio.wait_for(peer.handler.answer_call(self.member_id, method, body), timeout_seconds)
        except TimeoutError:
            raise errors.RequestTimeoutError() from None

    async def call_url(self, url: str, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        peer = self.network.transports.get(url)
        if peer is None or peer.handler is None:
            raise errors.UnavailableError(f"{url} cannot be reached")
        try:
            return await asyncio.wait_for(peer.handler.answer_call(self.member_id, method, body), timeout_seconds)
        except TimeoutError:
            raise errors.RequestTimeoutError() from None

    def active_since(self, member_id: int) -> float | None:
        peer = self._peer(member_id)
        if peer is None or not self.network.passes(member_id, self.member_id):
            return None
        assert self._started_at is not None
        assert peer._started_at is not None
        return max(self._started_at, peer._started_at)

    def was_removed(self) -> bool:
        return self._was_removed

    def _peer(self, member_id: int) -> MemoryTransport | None:
        """The other end, if what is sent now arrives."""
        if not self.network.passes(self.member_id, member_id):
            return None
        for url in self._peers.get(member_id, ()):
            peer = self.network.transports.get(url)
            if peer is not None and peer.member_id == member_id and peer.cluster_id == self.cluster_id:
                if self.member_id in peer._refused:
                    self._was_removed = True
                    return None
                return peer
        return None

    def _deliver(self, to: int, data: bytes) -> None:
        peer = self._peer(to)
        if peer is not None and peer.handler is not None:
            peer.handler.receive(codec.decode_message(data))
        elif self.handler is not None:
            self.handler.peer_unreachable(to)

    async def _send_snapshot(self, message: Message, source: SnapshotSource) -> None:
        ok = False
        try:
            peer = self._peer(message.to)
            if peer is not None and peer.handler is not None:
                await peer.handler.receive_snapshot(codec.decode_message(codec.encode_message(message)), self._chunks(message.to, source))
                ok = True
        except errors.StoreError:
            pass  # told by ``snapshot_sent``
        finally:
            aclose = getattr(source.chunks, "aclose", None)
            if aclose is not None:
                await aclose()
            if self.handler is not None:
                self.handler.snapshot_sent(message.to, ok=ok)

    async def _chunks(self, to: int, source: SnapshotSource) -> AsyncIterator[bytes]:
        async for chunk in source.chunks:
            if self._peer(to) is None:
                raise errors.UnavailableError("the connection broke")
            yield chunk
