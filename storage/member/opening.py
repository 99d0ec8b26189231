"""Opening a member's directory: its lock, its log, its database, and whether they belong together."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from typing import Final

from storage import errors
from storage.backend.backend import Backend
from storage.config import MemberConfig
from storage.member.disk_worker import Log
from storage.member.environment import Environment, Lock
from storage.member.metrics import MemberMetrics
from storage.raft import codec
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, HardState, SnapshotMetadata
from storage.raft.rawnode import Config, RawNode
from storage.wal.wal import Replay

logger = logging.getLogger(__name__)

MAP_BYTES_WITHOUT_QUOTA: Final = 8 * 1024**3
"""The quota that the backend reckons with where none is set: etcd's advised maximum. It grows beyond if it must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this member is: written once, at the beginning of its log."""

    member_id: int
    cluster_id: int

    def encode(self) -> bytes:
        """As etcd's ``Metadata``: NodeID 1, ClusterID 2."""
        return b"\x08" + codec.varint(self.member_id) + b"\x10" + codec.varint(self.cluster_id)


def decode_identity(data: bytes) -> Identity:
    """Raises CorruptError."""
    try:
        numbers = {number: value for number, value in codec.fields(data) if isinstance(value, int)}
        return Identity(member_id=numbers[1], cluster_id=numbers[2])
    except (codec.CodecError, KeyError) as error:
        raise errors.CorruptError(f"the log's metadata cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLog:
    identity: Identity
    log: Log
    replay: Replay


def has_log(config: MemberConfig, environment: Environment) -> bool:
    """Whether this member has run before. Raises DataDirError."""
    return environment.logs.exists(config.log_dir())


def open_log(config: MemberConfig, environment: Environment) -> OpenedLog:
    """Raises CorruptError, DataDirError, DataDirLockedError."""
    log, replay = environment.logs.open(config.log_dir(), segment_bytes=config.wal_segment_bytes, sync=not config.unsafe_no_fsync)
    if replay.repair is not None:
        logger.log(logging.WARNING if replay.repair.torn else logging.INFO, "log repaired: %s", replay.repair)
    try:
        return OpenedLog(identity=decode_identity(replay.metadata), log=log, replay=replay)
    except errors.CorruptError:
        log.close()
        raise


def create_log(config: MemberConfig, environment: Environment, identity: Identity, conf_state: ConfState) -> OpenedLog:
    """Raises DataDirError, DataDirLockedError."""
    metadata = identity.encode()
    snapshot = SnapshotMetadata(conf_state)
    log = environment.logs.create(
        config.log_dir(),
        metadata=metadata,
        snapshot=snapshot,
        segment_bytes=config.wal_segment_bytes,
        sync=not config.unsafe_no_fsync,
    )
    logger.info("new member %016x in %s", identity.member_id, config.data_dir)
    replay = Replay(metadata=metadata, hard_state=HardState(), snapshot=snapshot, entries=[], repair=None)
    return OpenedLog(identity=identity, log=log, replay=replay)


def lock_directory(config: MemberConfig, environment: Environment) -> Lock:
    """Raises DataDirError, DataDirLockedError."""
    if config.unsafe_no_fsync:
        logger.info("fsync is off: what is acknowledged is lost if the machine stops")
    return environment.lock(config.member_dir())


def open_backend(config: MemberConfig, environment: Environment, metrics: MemberMetrics) -> Backend:
    """Raises CorruptError, DataDirError."""
    return environment.backends.open(
        config.backend_file(),
        quota_bytes=config.quota_backend_bytes or MAP_BYTES_WITHOUT_QUOTA,
        sync=not config.unsafe_no_fsync,
        on_commit=metrics.backend_commit_seconds.observe,
    )


def make_node(
    config: MemberConfig,
    opened: OpenedLog,
    *,
    conf_state: ConfState,
    applied: int,
    uncommitted_bytes_max: int,
    rng: random.Random,
) -> tuple[RawNode, MemoryLogStorage]:
    """The Raft node and its log in memory. ``conf_state`` is the configuration at ``applied``, which the backend holds."""
    replay = opened.replay
    begin = SnapshotMetadata(conf_state, replay.snapshot.index, replay.snapshot.term)
    log_storage = MemoryLogStorage(begin, replay.hard_state)
    log_storage.append(replay.entries)
    node_config = Config(
        id=opened.identity.member_id,
        election_ticks=config.election_timeout_ms // config.heartbeat_interval_ms,
        heartbeat_ticks=1,
        uncommitted_bytes_max=uncommitted_bytes_max,
        pre_vote=config.pre_vote,
        applied=applied,
    )
    return RawNode(node_config, log_storage, rng), log_storage
