"""The embedded store of an API server: a member with its peers, from the configuration to a leader that is known."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from apiserver.config import StoreConfig
from storage import errors, tls
from storage.config import MemberConfig

if TYPE_CHECKING:
    from storage.member.member import Member
    from storage.member.peer_transport import PeerTransport

logger = logging.getLogger(__name__)

#: seconds between two words on what the start waits for
PROGRESS_SECONDS: Final = 5.0
#: room for what a message holds besides the entries of a request
MESSAGE_SLACK_BYTES: Final = 4 * 1024 * 1024

OnProgress = Callable[[str], object]


def member_config(store: StoreConfig) -> MemberConfig:
    """Raises ValueError, worded for the person who set the flag."""
    config = MemberConfig(
        data_dir=store.data_dir,
        wal_dir=store.wal_dir,
        name=store.name,
        initial_cluster=store.initial_cluster,
        initial_cluster_state=store.initial_cluster_state,
        initial_cluster_token=store.initial_cluster_token,
        advertise_client_urls=store.advertise_client_urls,
        snapshot_count=store.snapshot_count,
        snapshot_catchup_entries=store.snapshot_catchup_entries,
        quota_backend_bytes=store.quota_backend_bytes,
        auto_compaction_mode=store.auto_compaction_mode,
        auto_compaction_retention=store.auto_compaction_retention,
        corrupt_check_seconds=store.corrupt_check_time_seconds,
        lease_checkpoint_interval_seconds=store.lease_checkpoint_interval_seconds,
        heartbeat_interval_ms=store.heartbeat_interval,
        election_timeout_ms=store.election_timeout,
        max_request_bytes=store.max_request_bytes,
        expire_leases=store.expire_leases,
        unsafe_no_fsync=store.unsafe_no_fsync,
    )
    config.validate()
    return config


def peer_transport(store: StoreConfig) -> PeerTransport | None:
    """None for a member that is alone and stays so. Raises OSError, ssl.SSLError for unusable certificates."""
    if not store.listen_peer_urls:
        return None
    from storage.member.peer_transport import MESSAGE_BYTES_MAX, PeerTransport

    contexts = None
    if store.peer_cert_file is not None:
        assert store.peer_key_file is not None and store.peer_trusted_ca_file is not None, "settings complete them"
        files = tls.TlsFiles(certificate=store.peer_cert_file, key=store.peer_key_file, trusted_ca=store.peer_trusted_ca_file)
        contexts = tls.mutual(files, purpose="peer")
    return PeerTransport(
        listen_urls=store.listen_peer_urls,
        advertise_urls=store.initial_advertise_peer_urls,
        contexts=contexts,
        rng=random.SystemRandom(),
        message_bytes_max=max(MESSAGE_BYTES_MAX, store.max_request_bytes + MESSAGE_SLACK_BYTES),
    )


@contextlib.asynccontextmanager
async def running_member(store: StoreConfig, stop: asyncio.Event, on_progress: OnProgress | None) -> AsyncIterator[Member | None]:
    """A member that serves: it leads, or knows who does. None where ``stop`` was set before that. Raises StoreError, also at the end for a
    member that failed or was removed meanwhile."""
    from storage.member.environment import Environment
    from storage.member.member import Member

    transport = peer_transport(store)
    member = Member(member_config(store), environment=Environment(transport=transport))
    await member.start()
    try:
        ready = transport is None or await _wait_ready(member, transport, stop, on_progress)
        yield member if ready else None
    finally:
        await member.stop()
    if member.failure is not None:
        # It stopped by itself, and with it the server: whoever started it learns why.
        raise _store_error(member.failure)


def _store_error(failure: BaseException) -> errors.StoreError:
    if isinstance(failure, errors.StoreError):
        return failure
    return errors.UnavailableError(f"etcdserver: stopped after a failure: {type(failure).__name__}: {failure}")


async def _wait_ready(member: Member, transport: PeerTransport, stop: asyncio.Event, on_progress: OnProgress | None) -> bool:
    """Whether there is a leader; False when it shall stop. The other members may be started much later than this one."""
    waiting = asyncio.create_task(member.wait_ready())
    stopping = asyncio.create_task(stop.wait())
    try:
        while True:
            done, _ = await asyncio.wait({waiting, stopping}, timeout=PROGRESS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if waiting in done:
                await waiting
                return True
            if stop.is_set():
                return False
            if transport.was_removed():
                raise errors.MemberRemovedError()
            if on_progress is not None:
                on_progress(transport.describe_peers())
    finally:
        for task in (waiting, stopping):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, errors.StoreError):
                await task
