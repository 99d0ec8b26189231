"""What a member needs of the world: files, threads, clocks, peers. The defaults are the real ones.

A simulation gives its own: then a member runs on one thread, all that it does follows from its random generator and ``loop.time()``,
and what a crash leaves of its files is the simulation's to decide.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from storage.backend.backend import Backend
from storage.backend.lmdb_backend import LmdbBackend
from storage.backend.lmdb_defragmentation import lock_path
from storage.backend.lmdb_file import sync_directory
from storage.member.data_dir import DirectoryLock, data_dir_error
from storage.member.disk_worker import DiskWorker, Job, Log, OnFailed, OnSaved
from storage.member.transport import Transport
from storage.raft.messages import HardState, SnapshotMetadata
from storage.wal.wal import Replay, Wal

T = TypeVar("T")


class Logs(Protocol):
    """Where logs are made and found; the class ``Wal`` is one."""

    def exists(self, directory: Path) -> bool:
        """Raises DataDirError when that cannot be told."""

    def create(self, directory: Path, *, metadata: bytes, snapshot: SnapshotMetadata, segment_bytes: int, sync: bool) -> Log:
        """Raises DataDirError, DataDirLockedError."""

    def open(self, directory: Path, *, segment_bytes: int, sync: bool) -> tuple[Log, Replay]:
        """Raises CorruptError, DataDirError, DataDirLockedError."""


class LogWriter(Protocol):
    """Does jobs in order, away from the loop. ``disk_worker.DiskWorker`` says what the callbacks are."""

    def start(self) -> None: ...

    def submit(self, job: Job) -> None: ...

    def stop(self, final_state: HardState | None) -> None: ...

    async def join(self) -> None: ...


class LogWriterFactory(Protocol):
    def __call__(self, log: Log, *, on_saved: OnSaved, on_failed: OnFailed, name: str) -> LogWriter: ...


class Backends(Protocol):
    """Where the databases of members are."""

    def open(self, path: Path, *, quota_bytes: int, sync: bool, on_commit: Callable[[float], None]) -> Backend:
        """Open or make the database ``path``. ``on_commit`` is told the seconds of each commit. Raises CorruptError, DataDirError."""

    def exists(self, path: Path) -> bool: ...

    def remove(self, path: Path) -> None:
        """Nothing happens if it is not there. Raises DataDirError."""

    def replace(self, source: Path, target: Path) -> None:
        """Make ``source``, which is closed, durable, and then in one step ``target``, also durably; what that was is gone. Takes the
        disk's time. Raises DataDirError."""


class Lock(Protocol):
    def release(self) -> None:
        """Idempotent."""


class LmdbBackends:
    """Databases in files."""

    def open(self, path: Path, *, quota_bytes: int, sync: bool, on_commit: Callable[[float], None]) -> Backend:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return LmdbBackend(path, quota_bytes=quota_bytes, sync=sync, on_commit=on_commit)
        except OSError as error:
            raise data_dir_error(path, error) from error

    def exists(self, path: Path) -> bool:
        return path.exists()

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
            lock_path(path).unlink(missing_ok=True)
        except OSError as error:
            raise data_dir_error(path, error) from error

    def replace(self, source: Path, target: Path) -> None:
        try:
            sync_directory(source)  # which syncs a file as well
            source.replace(target)
            lock_path(source).replace(lock_path(target))
            sync_directory(target.parent)
        except OSError as error:
            raise data_dir_error(target, error) from error


async def run_in_thread(work: Callable[[], T]) -> T:
    """``work`` on a thread of the loop's executor; the loop goes on meanwhile."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


class RunBlocking(Protocol):
    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


async def run_to_end(run: RunBlocking, work: Callable[[], T]) -> T:
    """``work`` on a thread; a cancellation takes effect only when it is done, so that nobody takes from under it what it works on."""
    running = asyncio.ensure_future(run(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait((running,))
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    transport: Transport | None = None
    """None: a member that is alone in its cluster and stays so."""
    lock: Callable[[Path], Lock] = DirectoryLock
    """Holds a directory for this member; raises DataDirError, DataDirLockedError."""
    logs: Logs = Wal
    log_writer: LogWriterFactory = DiskWorker
    backends: Backends = field(default_factory=LmdbBackends)
    run_blocking: RunBlocking = run_in_thread
    wall_time: Callable[[], float] = time.time
    """Seconds since 1970; used where something must differ from all earlier runs, never to measure."""
    stopwatch: Callable[[], float] = time.perf_counter
    """Seconds, within one pass of the loop too; only for metrics and warnings."""
