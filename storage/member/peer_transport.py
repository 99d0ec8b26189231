"""The transport between real members: ``Transport`` over TCP with mutual TLS.

Every member dials every other one. To a peer it keeps two connections for Raft messages (``peer_channel``: heartbeats, votes and answers
on one, entries on the other), one for calls when there are some, and one for each snapshot (``peer_snapshot``). What it receives comes
over the connections that the others dialled (``peer_listener``). ``peer_codec`` has the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Any, Final

from storage import errors
from storage.member import peer_codec, peer_snapshot, peer_urls
from storage.member.peer_channel import CallChannel, MessageChannel, PeerLink
from storage.member.peer_codec import Channel, Refusal
from storage.member.peer_listener import PeerListener
from storage.member.peer_metrics import PeerMetrics
from storage.member.transport import PeerHandler, SnapshotSource
from storage.raft import codec
from storage.raft.messages import Message, MessageType
from storage.tls import PeerContexts, Reloaded

logger = logging.getLogger(__name__)

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Default bound of one message: far more than an append of many entries or one entry of the largest request."""

REMOTES_MAX: Final = 16
"""Senders that this member has not learned of yet (its log lags behind the change that added them), answered at the URLs they tell."""

_ENTRY_MESSAGES = frozenset({MessageType.APPEND, MessageType.PROPOSE})


class _Peer:
    """The channels to one peer and their tasks."""

    def __init__(self, link: PeerLink) -> None:
        self.link = link
        loop = asyncio.get_running_loop()
        self.messages = MessageChannel(link, Channel.MESSAGES)
        self.appends = MessageChannel(link, Channel.APPENDS)
        self.calls = CallChannel(link)
        self.tasks = [loop.create_task(channel.run()) for channel in (self.messages, self.appends)]
        for task in self.tasks:
            task.add_done_callback(_report_failure)

    def active_since(self) -> float | None:
        first, second = self.messages.active_since, self.appends.active_since
        return None if first is None or second is None else max(first, second)

    def close(self, reason: str) -> list[asyncio.Task[Any]]:
        """The tasks to wait for."""
        for channel in (self.messages, self.appends):
            channel.close(reason)
        for task in self.tasks:
            task.cancel()
        return [*self.tasks, *self.calls.close(reason)]


class PeerTransport:
    """Implements ``transport.Transport``. ``call_url`` may be used before ``start``: a member that joins asks who it is to become."""

    def __init__(
        self,
        *,
        listen_urls: tuple[str, ...],
        advertise_urls: tuple[str, ...],
        contexts: Reloaded[PeerContexts] | None,
        rng: random.Random,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        """``contexts`` may be None where all URLs are ``http://``, which is for loopback. Raises ValueError for bad URLs."""
        self._listen_urls = tuple(map(peer_urls.parse, listen_urls))
        self._advertise_urls = advertise_urls
        self._contexts = contexts
        self._rng = rng
        self._frame_bytes_max = max(message_bytes_max, peer_codec.CHUNK_BYTES_MAX)
        self.metrics = PeerMetrics()
        self._handler: PeerHandler | None = None
        self._listener: PeerListener | None = None
        self._member_id = 0
        self._cluster_id = 0
        self._peers: dict[int, _Peer] = {}
        self._remotes: dict[int, _Peer] = {}
        self._removed: set[int] = set()
        self._was_removed = False
        self._snapshots: dict[int, peer_snapshot.Outgoing] = {}
        self._ending: set[asyncio.Task[Any]] = set()
        self._unreachable: dict[int, None] = {}

    async def start(self, handler: PeerHandler, *, member_id: int, cluster_id: int) -> None:
        """See ``Transport``. Raises UnavailableError."""
        assert self._listener is None, "already started"
        self._handler = handler
        self._member_id = member_id
        self._cluster_id = cluster_id
        listener = PeerListener(
            handler,
            member_id=member_id,
            cluster_id=cluster_id,
            contexts=self._contexts,
            frame_bytes_max=self._frame_bytes_max,
            metrics=self.metrics,
            refuse=self._refuse,
            heard=self._heard,
        )
        await listener.listen(self._listen_urls)
        self._listener = listener

    async def stop(self) -> None:
        """See ``Transport``."""
        # First what comes in: a peer that is heard would be dialled.
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.stop()
        tasks: list[asyncio.Task[Any]] = []
        for peer in (*self._peers.values(), *self._remotes.values()):
            tasks += peer.close("this member stops")
        self._peers.clear()
        self._remotes.clear()
        for snapshot in self._snapshots.values():
            snapshot.stop("this member stops")
        tasks += self._ending
        if tasks:
            await asyncio.wait(tasks)

    # -- peers

    def set_peer(self, member_id: int, urls: tuple[str, ...]) -> None:
        """See ``Transport``. URLs that cannot be used are passed over (a cluster's members are checked when they are added)."""
        assert self._handler is not None, "start comes first"
        if member_id == self._member_id or self._listener is None:
            return
        self._removed.discard(member_id)
        self._close_peer(self._remotes.pop(member_id, None), "it is known now")
        usable = self._usable(member_id, urls)
        known = self._peers.get(member_id)
        if known is not None and known.link.urls == usable:
            return
        self._close_peer(self._peers.pop(member_id, None), "its URLs have changed")
        if usable:
            self._peers[member_id] = _Peer(self._link(member_id, usable))

    def remove_peer(self, member_id: int) -> None:
        """See ``Transport``."""
        self._removed.add(member_id)
        for peers in (self._peers, self._remotes):
            self._close_peer(peers.pop(member_id, None), "it was removed")
        self.metrics.active_peers.pop(member_id, None)
        snapshot = self._snapshots.get(member_id)
        if snapshot is not None:
            snapshot.stop("the peer was removed")
        if self._listener is not None:
            self._listener.end_sender(member_id, _removed(member_id))

    def _usable(self, member_id: int, urls: tuple[str, ...]) -> tuple[peer_urls.PeerUrl, ...]:
        usable: list[peer_urls.PeerUrl] = []
        for url in urls:
            try:
                usable.append(peer_urls.parse(url))
            except ValueError as error:
                logger.error("peer %016x: %s", member_id, error)
        return tuple(usable)

    def _link(self, member_id: int, urls: tuple[peer_urls.PeerUrl, ...]) -> PeerLink:
        return PeerLink(
            member_id=member_id,
            urls=urls,
            own_id=self._member_id,
            cluster_id=self._cluster_id,
            own_urls=self._advertise_urls,
            contexts=self._contexts,
            frame_bytes_max=self._frame_bytes_max,
            metrics=self.metrics,
            rng=self._rng,
            on_unreachable=self._report_unreachable,
            on_removed=self._learn_removal,
        )

    def _close_peer(self, peer: _Peer | None, reason: str) -> None:
        if peer is not None:
            for task in peer.close(reason):
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    def _report_unreachable(self, member_id: int) -> None:
        """Once for all that is dropped in this pass of the loop, and not from inside ``send``: its caller is in the middle of its work."""
        if not self._unreachable:
            asyncio.get_running_loop().call_soon(self._tell_unreachable)
        self._unreachable[member_id] = None

    def _tell_unreachable(self) -> None:
        unreachable, self._unreachable = self._unreachable, {}
        if self._handler is not None and self._listener is not None:
            for member_id in unreachable:
                self._handler.peer_unreachable(member_id)

    def _learn_removal(self) -> None:
        if not self._was_removed:
            self._was_removed = True
            logger.error("a peer says that this member was removed from the cluster")

    def was_removed(self) -> bool:
        """See ``Transport``."""
        return self._was_removed

    def active_since(self, member_id: int) -> float | None:
        """See ``Transport``."""
        peer = self._peers.get(member_id)
        return None if peer is None else peer.active_since()

    def describe_peers(self) -> str:
        """One line on who is reached and who is not, for a person who waits."""
        words = []
        for member_id, peer in sorted(self._peers.items()):
            where = ",".join(map(str, peer.link.urls))
            problem = peer.link.last_problem.removeprefix(f"{where}: ")
            words.append(f"{member_id:x} at {where} {'is reached' if peer.active_since() is not None else problem or 'is not reached yet'}")
        return "; ".join(words)

    def collect_metrics(self) -> PeerMetrics:
        """The counters, with what is only known by looking."""
        for member_id in self._peers:
            self.metrics.active_peers[member_id] = int(self.active_since(member_id) is not None)
        return self.metrics

    # -- what comes in

    def _refuse(self, hello: peer_codec.Hello) -> peer_codec.Refused | None:
        if hello.sender in self._removed:
            return _removed(hello.sender)
        if hello.target and hello.target != self._member_id:
            return peer_codec.Refused(Refusal.MEMBER, f"{hello.target:016x} was wanted, this is member {self._member_id:016x}")
        if hello.sender == self._member_id:
            return peer_codec.Refused(Refusal.MEMBER, f"the id {hello.sender:016x} is this member's own")
        return None

    def _heard(self, hello: peer_codec.Hello) -> None:
        if self._listener is None:
            return
        peer = self._peers.get(hello.sender)
        if peer is not None:
            peer.messages.retry_now()
            peer.appends.retry_now()
        elif hello.sender and hello.sender not in self._remotes and len(self._remotes) < REMOTES_MAX:
            urls = self._usable(hello.sender, hello.urls)
            if urls:
                self._remotes[hello.sender] = _Peer(self._link(hello.sender, urls))

    # -- what goes out

    def send(self, messages: Sequence[Message]) -> None:
        """See ``Transport``."""
        batches: dict[tuple[int, bool], list[bytes]] = {}
        for message in messages:
            assert message.type is not MessageType.SNAPSHOT, "snapshots have a stream of their own"
            entries = message.type in _ENTRY_MESSAGES and bool(message.entries)
            batches.setdefault((message.to, entries), []).append(
                peer_codec.frame(peer_codec.FrameType.MESSAGE, codec.encode_message(message))
            )
        for (member_id, entries), frames in batches.items():
            peer = self._peers.get(member_id) or self._remotes.get(member_id)
            sendable = [data for data in frames if len(data) <= self._frame_bytes_max]
            if peer is None or not (peer.appends if entries else peer.messages).send(sendable) or len(sendable) < len(frames):
                self._report_unreachable(member_id)

    def send_snapshot(self, message: Message, source: SnapshotSource) -> None:
        """See ``Transport``. One at a time to each peer."""
        assert message.type is MessageType.SNAPSHOT, message.type
        member_id = message.to
        peer = self._peers.get(member_id) or self._remotes.get(member_id)
        sending: asyncio.Task[None] | None = None
        if peer is None or member_id in self._snapshots:
            logger.warning("snapshot not sent to %016x: %s", member_id, "no such peer" if peer is None else "another is under way")
        else:
            outgoing = peer_snapshot.Outgoing(peer.link, message, source)
            self._snapshots[member_id] = outgoing
            sending = asyncio.get_running_loop().create_task(self._send_snapshot(member_id, outgoing))
        work = sending or asyncio.get_running_loop().create_task(self._refuse_snapshot(member_id, source))
        self._ending.add(work)
        work.add_done_callback(self._ending.discard)

    async def _send_snapshot(self, member_id: int, outgoing: peer_snapshot.Outgoing) -> None:
        ok = False
        try:
            ok = await outgoing.send()
        finally:
            del self._snapshots[member_id]
            assert self._handler is not None, "start comes first"
            self._handler.snapshot_sent(member_id, ok=ok)

    async def _refuse_snapshot(self, member_id: int, source: SnapshotSource) -> None:
        await peer_snapshot.close_chunks(source.chunks)
        assert self._handler is not None, "start comes first"
        self._handler.snapshot_sent(member_id, ok=False)

    async def call(self, member_id: int, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """See ``Transport``. Raises TooManyRequestsError where too many calls to it are under way."""
        peer = self._peers.get(member_id) or self._remotes.get(member_id)
        if peer is None:
            raise errors.UnavailableError(f"etcdserver: no member {member_id:016x} is known here")
        return await peer.calls.call(method, body, timeout_seconds)

    async def call_url(self, url: str, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """See ``Transport``. Raises InvalidUrlsError for a bad URL."""
        try:
            parsed = peer_urls.parse(url)
        except ValueError as error:
            raise errors.InvalidUrlsError(f"etcdserver: {error}") from error
        calls = CallChannel(self._link(0, (parsed,)))
        try:
            return await calls.call(method, body, timeout_seconds)
        finally:
            ending = calls.close("the call is over")
            if ending:
                await asyncio.wait(ending)


def _report_failure(task: asyncio.Task[None]) -> None:
    """A channel ends only when it is cancelled; a peer that nobody dials any more must be seen."""
    if not task.cancelled() and task.exception() is not None:
        logger.critical("a channel to a peer has failed", exc_info=task.exception())


def _removed(member_id: int) -> peer_codec.Refused:
    return peer_codec.Refused(Refusal.REMOVED, f"the member {member_id:016x} has been permanently removed from the cluster")
