"""Databases between members: a follower that lacks what the log holds no more is sent the whole state.

The leader sends a view of its backend, as it is when the message leaves. The follower goes through these steps; a crash after any of them
leaves a directory that starts:

| step | on disk | after a crash |
|---|---|---|
| 1 write the records into ``db.incoming`` | old database, old log | the file is removed |
| 2 make it durable as ``db.received`` | the same, and the whole new database | the file is removed: the log does not speak of it |
| 3 note in the log that it begins anew after the snapshot | new log, old database | the start goes on with step 4 |
| 4 put it in the place of ``db`` | new log, new database | |

Raft decides between 2 and 3 whether it wants the snapshot, and is told after 4.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from storage import errors, failpoints
from storage.backend import schema
from storage.backend.backend import Backend, Bucket
from storage.config import MemberConfig
from storage.member import opening
from storage.member.database_stream import Reader, Record, chunks_of
from storage.member.environment import Environment, run_to_end
from storage.member.membership import decode_conf_state
from storage.member.metrics import MemberMetrics
from storage.member.raft_loop import RaftLoop
from storage.member.transport import SnapshotSource
from storage.member.upkeep import SnapshotChunks
from storage.raft.messages import ConfState, Message, Snapshot, SnapshotMetadata

logger = logging.getLogger(__name__)

INCOMING_SUFFIX: Final = ".incoming"
RECEIVED_SUFFIX: Final = ".received"


def outgoing(message: Message, backend: Backend, conf_state: ConfState, environment: Environment) -> tuple[Message, SnapshotSource]:
    """The SNAPSHOT message for what is really sent: the backend as it is now, which may be newer than what Raft asked for.
    ``conf_state`` is that of a backend that holds none. Raises OSError."""
    view = backend.view()
    stored = dict(view.range(Bucket.META, b"", None))
    state = stored.get(schema.CONF_STATE)
    metadata = SnapshotMetadata(
        conf_state if state is None else decode_conf_state(state),
        int.from_bytes(stored.get(schema.CONSISTENT_INDEX, b""), "big"),
        int.from_bytes(stored.get(schema.TERM, b""), "big"),
    )
    assert message.snapshot is not None, message
    assert metadata.index >= message.snapshot.metadata.index, (metadata, message.snapshot.metadata)
    chunks = SnapshotChunks(chunks_of(view), view, environment.run_blocking)
    return replace(message, snapshot=Snapshot(metadata=metadata)), SnapshotSource(size=0, chunks=chunks)


def open_backend(config: MemberConfig, environment: Environment, metrics: MemberMetrics, *, begin: SnapshotMetadata) -> Backend:
    """Open the database, after finishing or undoing what a crash interrupted. ``begin`` is where the log begins. Raises CorruptError,
    DataDirError."""
    backends, path = environment.backends, config.backend_file()
    backends.remove(_beside(path, INCOMING_SUFFIX))
    received = _beside(path, RECEIVED_SUFFIX)
    if backends.exists(received):
        if begin.index and _index_of(config, environment, received) == begin.index:
            backend = opening.open_backend(config, environment, metrics)
            index = schema.read_uint64(backend, Bucket.META, schema.CONSISTENT_INDEX)
            backend.close()
            if index < begin.index:
                logger.info("the database of the snapshot at %d is put in place", begin.index)
                backends.replace(received, path)
        backends.remove(received)
    return opening.open_backend(config, environment, metrics)


def _index_of(config: MemberConfig, environment: Environment, path: Path) -> int:
    backend = environment.backends.open(path, quota_bytes=config.quota_backend_bytes, sync=False, on_commit=lambda seconds: None)
    try:
        return schema.read_uint64(backend, Bucket.META, schema.CONSISTENT_INDEX)
    finally:
        backend.close()


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


class SnapshotReceiver:
    """One database at a time."""

    def __init__(self, config: MemberConfig, environment: Environment, metrics: MemberMetrics, raft: RaftLoop) -> None:
        self._config = config
        self._environment = environment
        self._metrics = metrics
        self._raft = raft
        self._path = config.backend_file()
        self._is_receiving = False
        self._awaited_index: int | None = None

    @property
    def is_installing(self) -> bool:
        """Whether Raft has taken a snapshot that is not in place yet."""
        return self._awaited_index is not None

    @property
    def is_busy(self) -> bool:
        """Whether a database is being received or put in place."""
        return self._is_receiving or self.is_installing

    async def receive(self, message: Message, chunks: AsyncIterator[bytes]) -> None:
        """Steps 1 and 2, then ask Raft. Raises UnavailableError when another is under way, SnapshotFileError for what is damaged,
        DataDirError, OSError."""
        assert message.snapshot is not None, message
        index = message.snapshot.metadata.index
        if self.is_busy:
            raise errors.UnavailableError("etcdserver: another snapshot is being received")
        self._is_receiving = True
        backends, run = self._environment.backends, self._environment.run_blocking
        incoming, received = _beside(self._path, INCOMING_SUFFIX), _beside(self._path, RECEIVED_SUFFIX)
        try:
            await self._write(incoming, index, chunks)
            failpoints.hit("member.before_received")
            await run_to_end(run, lambda: backends.replace(incoming, received))
            failpoints.hit("member.after_received")
            if self._raft.step_snapshot(message):
                self._awaited_index = index
            else:
                logger.info("the snapshot at %d is not needed", index)
        finally:
            self._is_receiving = False
            if not self.is_installing:
                backends.remove(incoming)
                backends.remove(received)

    def install(self, metadata: SnapshotMetadata, old: Backend) -> Backend:
        """Step 4, after step 3. Closes ``old``, opens the new one. Raises CorruptError, DataDirError, OSError."""
        assert self._awaited_index == metadata.index, (self._awaited_index, metadata)
        failpoints.hit("member.before_installed")
        old.set_pre_commit(None)
        old.close()
        self._environment.backends.replace(_beside(self._path, RECEIVED_SUFFIX), self._path)
        failpoints.hit("member.after_installed")
        self._awaited_index = None
        return opening.open_backend(self._config, self._environment, self._metrics)

    async def _write(self, path: Path, index: int, chunks: AsyncIterator[bytes]) -> None:
        backends, run = self._environment.backends, self._environment.run_blocking
        backends.remove(path)
        # Not synced batch by batch: the file counts only once it is durable as a whole (``Backends.replace``).
        backend = backends.open(path, quota_bytes=self._config.quota_backend_bytes, sync=False, on_commit=lambda seconds: None)
        try:
            reader = Reader()
            async for chunk in chunks:
                await run_to_end(run, _writing(backend, reader.feed(chunk)))
            reader.finish()
            found = schema.read_uint64(backend, Bucket.META, schema.CONSISTENT_INDEX)
            if found != index:
                raise errors.SnapshotFileError(f"a database from another member ends at entry {found}, its message says {index}")
        finally:
            await run_to_end(run, backend.close)


def _writing(backend: Backend, records: list[Record]) -> Callable[[], None]:
    def write() -> None:
        for record in records:
            backend.put(record.bucket, record.key, record.value)
        backend.commit()

    return write
