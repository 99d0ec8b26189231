"""The door of the embedded store for operators: its client port, opened once the API server is ready, so that start stays fast."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.config import StoreConfig
from storage.tls import TlsFiles

if TYPE_CHECKING:
    from storage.etcdserver.door import Door
    from storage.member.member import Member

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientListener:
    """A bound socket of ``--listen-client-urls``."""

    socket: socket.socket
    url: str

    @property
    def with_tls(self) -> bool:
        return self.url.startswith("https:")


async def run(store: StoreConfig, member: Member, listeners: Sequence[ClientListener]) -> None:
    """Serve until cancelled. Raises OSError, ssl.SSLError for unusable certificates."""
    door = await asyncio.to_thread(_door, store, member)
    try:
        for listener in listeners:
            await door.port.start(listener.socket, _context(store) if listener.with_tls else None)
        await door.run()
    finally:
        await door.port.stop()


def _door(store: StoreConfig, member: Member) -> Door:
    """In a thread, since protobuf is imported by it."""
    from storage.etcdserver.door import Door, DoorConfig

    return Door(
        member,
        DoorConfig(
            max_request_bytes=store.max_request_bytes,
            quota_backend_bytes=store.quota_backend_bytes,
            election_timeout_seconds=store.election_timeout / 1000,
            max_concurrent_streams=store.max_concurrent_streams,
            watch_progress_notify_seconds=store.watch_progress_notify_seconds,
        ),
    )


def _context(store: StoreConfig) -> ssl.SSLContext:
    from storage.etcdserver import client_tls

    assert store.cert_file is not None and store.key_file is not None and store.trusted_ca_file is not None, "settings complete them"
    files = TlsFiles(certificate=store.cert_file, key=store.key_file, trusted_ca=store.trusted_ca_file)
    return client_tls.server_context(files, client_cert_auth=store.client_cert_auth)
