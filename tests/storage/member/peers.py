"""Members without a store, to try the transport with: they write down what reaches them."""

from __future__ import annotations

import asyncio
import datetime
import random
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.cli.pki import Pki
from storage import errors, tls
from storage.member.peer_transport import PeerTransport
from storage.member.transport import SnapshotSource
from storage.raft.messages import Entry, Message, MessageType, Snapshot, SnapshotMetadata

CLUSTER_ID = 0xC1
WAIT_SECONDS = 10.0


def free_port() -> int:
    """Below the range from which the system gives ports to connections: one of those could take it before it is listened on."""
    while True:
        port = random.SystemRandom().randrange(24_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Return once it holds. The pause is no measure of anything: the bound only ends a test that would hang."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - on anything that a test can see
            await asyncio.sleep(0.005)


@dataclass
class Recorder:
    """A PeerHandler. ``answer`` and ``take`` may be replaced."""

    messages: list[Message] = field(default_factory=list)
    unreachable: list[int] = field(default_factory=list)
    sent: list[tuple[int, bool]] = field(default_factory=list)
    calls: list[tuple[int, str, bytes]] = field(default_factory=list)
    snapshots: list[tuple[Message, bytes]] = field(default_factory=list)
    fail: Exception | None = None
    hold: asyncio.Event | None = None

    def receive(self, message: Message) -> None:
        self.messages.append(message)

    async def receive_snapshot(self, message: Message, chunks: AsyncIterator[bytes]) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.fail is not None:
            raise self.fail
        self.snapshots.append((message, b"".join([chunk async for chunk in chunks])))

    def peer_unreachable(self, member_id: int) -> None:
        self.unreachable.append(member_id)

    def snapshot_sent(self, member_id: int, *, ok: bool) -> None:
        self.sent.append((member_id, ok))

    async def answer_call(self, sender_id: int, method: str, body: bytes) -> bytes:
        self.calls.append((sender_id, method, body))
        if self.hold is not None:
            await self.hold.wait()
        if self.fail is not None:
            raise self.fail
        return body[::-1]


@dataclass
class TestPeer:
    __test__ = False
    member_id: int
    url: str
    transport: PeerTransport
    handler: Recorder = field(default_factory=Recorder)

    async def start(self, cluster_id: int = CLUSTER_ID) -> None:
        await self.transport.start(self.handler, member_id=self.member_id, cluster_id=cluster_id)

    def knows(self, *others: TestPeer) -> None:
        for other in others:
            self.transport.set_peer(other.member_id, (other.url,))

    async def reaches(self, other: TestPeer) -> None:
        await until(lambda: self.transport.active_since(other.member_id) is not None)


def tls_files(directory: Path, shared: Path | None = None) -> tls.TlsFiles:
    pki = Pki(directory, datetime.datetime.now(datetime.UTC), shared)
    pair = pki.etcd_peer("m", ())
    return tls.TlsFiles(certificate=pair.certificate, key=pair.key, trusted_ca=pki.etcd_ca().certificate)


def make_peer(member_id: int, files: tls.TlsFiles | None, *, port: int | None = None, message_bytes_max: int = 1 << 20) -> TestPeer:
    url = f"{'https' if files else 'http'}://127.0.0.1:{port or free_port()}"
    transport = PeerTransport(
        listen_urls=(url,),
        advertise_urls=(url,),
        contexts=tls.mutual(files, purpose="peer") if files else None,
        rng=random.Random(member_id),
        message_bytes_max=message_bytes_max,
    )
    return TestPeer(member_id, url, transport)


def heartbeat(sender: int, to: int, commit: int = 0) -> Message:
    return Message(type=MessageType.HEARTBEAT, sender=sender, to=to, term=1, commit=commit)


def append(sender: int, to: int, data: bytes = b"x", index: int = 1) -> Message:
    return Message(type=MessageType.APPEND, sender=sender, to=to, term=1, entries=(Entry(1, index, data),))


def snapshot_message(sender: int, to: int) -> Message:
    return Message(type=MessageType.SNAPSHOT, sender=sender, to=to, term=1, snapshot=Snapshot(metadata=SnapshotMetadata(index=5, term=1)))


@dataclass
class Chunks:
    """A snapshot's database that remembers whether it was closed."""

    pieces: list[bytes]
    size: int | None = None
    closed: bool = False

    def source(self) -> SnapshotSource:
        return SnapshotSource(size=sum(map(len, self.pieces)) if self.size is None else self.size, chunks=self)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self.pieces:
            raise StopAsyncIteration
        await asyncio.sleep(0)
        return self.pieces.pop(0)

    async def aclose(self) -> None:
        self.closed = True


UNAVAILABLE = errors.UnavailableError
