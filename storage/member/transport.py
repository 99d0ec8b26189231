"""How members reach each other: the protocol between a ``Member`` and what carries its messages.

``storage.member.peer_transport`` carries them over mutual TLS; the simulation carries them in memory, with faults. Nothing here blocks:
what cannot be sent is dropped and reported, Raft sends it again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from storage.raft.messages import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSource:
    """A database that goes along with a SNAPSHOT message. ``size`` in bytes (0: not known). ``chunks`` is read once and always closed
    (``aclose``), also when the peer is gone."""

    size: int
    chunks: AsyncIterator[bytes]


class PeerHandler(Protocol):
    """What a member does with what comes from its peers. The transport has checked that the sender belongs to the cluster (cluster id,
    certificate) and that ``message.sender`` is who it says; all calls are on the event loop's thread."""

    def receive(self, message: Message) -> None:
        """A Raft message other than SNAPSHOT. Returns at once."""

    async def receive_snapshot(self, message: Message, chunks: AsyncIterator[bytes]) -> None:
        """A SNAPSHOT message and its database. Returning means that it was taken; raising tells the sender that it was not."""

    def peer_unreachable(self, member_id: int) -> None:
        """Messages to it were dropped."""

    def snapshot_sent(self, member_id: int, *, ok: bool) -> None:
        """What became of a ``send_snapshot``; called exactly once for each."""

    async def answer_call(self, sender_id: int, method: str, body: bytes) -> bytes:
        """A request of a peer, or of one that is about to join (``sender_id`` 0: it holds a certificate of the cluster's CA and nothing
        more). Raises StoreError, which reaches the caller as the same class and text."""


class Transport(Protocol):
    """``start`` before anything else but ``call_url``, which is how a member that is about to join learns its ids; ``stop`` is idempotent,
    also without ``start``, and leaves no task behind."""

    async def start(self, handler: PeerHandler, *, member_id: int, cluster_id: int) -> None:
        """Listen for peers. Raises UnavailableError when it cannot listen, naming the address."""

    async def stop(self) -> None: ...

    def set_peer(self, member_id: int, urls: tuple[str, ...]) -> None:
        """Add a peer or change where it is. Connections are made in the background and kept."""

    def remove_peer(self, member_id: int) -> None:
        """Close what leads to it and refuse what it sends from now on (it learns that it was removed). Unknown ids are ignored."""

    def send(self, messages: Sequence[Message]) -> None:
        """Queue messages by ``message.to``; what finds its bounded queue full, or no peer, is dropped and reported by
        ``peer_unreachable``."""

    def send_snapshot(self, message: Message, source: SnapshotSource) -> None:
        """Send a SNAPSHOT message with its database on a stream of its own; ``snapshot_sent`` tells the end."""

    async def call(self, member_id: int, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """Ask a peer (lease renewal, hashes …). Raises the StoreError that the peer raised, UnavailableError when it certainly was not
        reached, RequestTimeoutError when it may have been."""

    async def call_url(self, url: str, method: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """As ``call``, to a member whose id is not known yet (joining a cluster that runs)."""

    def active_since(self, member_id: int) -> float | None:
        """Since when (the loop's time, seconds) messages reach the peer; None while they do not."""

    def was_removed(self) -> bool:
        """Whether a peer has told this member that it was removed from the cluster."""
