"""The backend on disk: LMDB, a copy-on-write B+tree in one mapped file, as bbolt is.

How a write gets there: it goes into a buffer in memory that reads look at first; every batch the whole buffer is handed to one worker
thread, which writes it in one LMDB transaction, synced, while the next buffer fills. The event loop never waits for the disk.

Why the commits are synced although the WAL is the truth: LMDB's two meta pages make a commit atomic only if its pages are on disk
before its meta page. Without sync the kernel may write them in any order, and after a power failure the tree can be garbage that still
opens. Off the loop's thread ten synced commits a second cost nothing that anyone waits for, so they stay; ``sync=False`` is for data
that may be lost with the machine (it still survives the death of the process: the pages are the kernel's by then).

Threads: all methods are for one thread, the owner's. The worker touches only the batch it was handed, which nobody changes any
more, and its own LMDB transaction. The owner notices that a batch is done when it next reads or writes: it then moves its read
transaction forward and forgets the batch, in one step, so a key is never invisible in between.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

from storage import errors, failpoints
from storage.backend.backend import (
    BATCH_INTERVAL_SECONDS,
    BATCH_OPERATIONS_MAX,
    BUCKET_NAMES,
    BUFFERED_OPERATIONS_MAX,
    Bucket,
    PreCommitHook,
)
from storage.backend.write_buffer import MISSING, WriteBuffer

#: The map is address space, not memory or disk. Twice the quota leaves room for what is above it before the alarm stops writes, and
#: for the deletes that must go on after; it doubles should that not do.
MAP_BYTES_PER_QUOTA_BYTE = 2
MAP_BYTES_MIN = 64 * 1024 * 1024

#: Buckets that LMDB makes room for; a few more than there are.
DATABASES_MAX = 16

Buffers = tuple[WriteBuffer, ...]


def _new_buffers() -> Buffers:
    return tuple(WriteBuffer() for _ in Bucket)


class LmdbBackend:
    """``backend.Backend`` over the LMDB file ``path`` (and ``path``-lock beside it), made if it is not there."""

    def __init__(
        self, path: Path, *, quota_bytes: int = 2 * 1024**3, sync: bool = True, on_commit: Callable[[float], None] | None = None
    ) -> None:
        """``on_commit`` is told the seconds of each commit, on the worker's thread.

        Raises CorruptError for a file that is no LMDB file or is cut short, OSError if it cannot be opened.
        """
        self._map_bytes = max(quota_bytes * MAP_BYTES_PER_QUOTA_BYTE, MAP_BYTES_MIN)
        self._env = _open(path, self._map_bytes, sync)
        self._databases = tuple(self._env.open_db(name) for name in BUCKET_NAMES)
        self._reader = self._env.begin()
        self._pending = _new_buffers()
        self._pending_operations = 0
        self._in_flight: Buffers | None = None
        self._last_commit: float | None = None
        self._pre_commit: PreCommitHook | None = None
        self._failure: BaseException | None = None
        self._is_closed = False
        self._worker = _CommitWorker(self._env, self._databases, on_commit, name=f"commit {path.name}")

    def get(self, bucket: Bucket, key: bytes) -> bytes | None:
        value = self._pending[bucket].entries.get(key, MISSING)
        if value is not MISSING:
            return value
        if self._in_flight is not None:
            self._maybe_finish()
            if self._in_flight is not None:
                value = self._in_flight[bucket].entries.get(key, MISSING)
                if value is not MISSING:
                    return value
        stored: bytes | None = self._reader.get(key, None, self._databases[bucket])
        return stored

    def range(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, bytes]]:
        buffered = self._buffered(bucket, start, end)
        cursor = self._reader.cursor(self._databases[bucket])
        found = cursor.set_range(start) if start else cursor.first()
        stored = iter(cursor.iternext()) if found else iter(())
        return list(_merge(stored, buffered, end, limit))

    def keys(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[bytes]:
        buffered = self._buffered(bucket, start, end)
        cursor = self._reader.cursor(self._databases[bucket])
        found = cursor.set_range(start) if start else cursor.first()
        stored = ((key, b"") for key in cursor.iternext(values=False)) if found else iter(())
        return [key for key, _ in _merge(stored, buffered, end, limit)]

    def put(self, bucket: Bucket, key: bytes, value: bytes) -> None:
        self._pending[bucket].write(key, value)
        self._pending_operations += 1

    def delete(self, bucket: Bucket, key: bytes) -> None:
        self._pending[bucket].write(key, None)
        self._pending_operations += 1

    def durable_get(self, bucket: Bucket, key: bytes) -> bytes | None:
        self._maybe_finish()
        stored: bytes | None = self._reader.get(key, None, self._databases[bucket])
        return stored

    def set_pre_commit(self, hook: PreCommitHook | None) -> None:
        self._pre_commit = hook

    def maybe_commit(self, now: float) -> bool:
        self._maybe_finish()
        self._raise_failure()
        if not self._pending_operations:
            return False
        if self._in_flight is not None:
            if self._pending_operations < BUFFERED_OPERATIONS_MAX:
                return False
            self._wait()
        if self._last_commit is None:
            self._last_commit = now
        if self._pending_operations < BATCH_OPERATIONS_MAX and now - self._last_commit < BATCH_INTERVAL_SECONDS:
            return False
        self._last_commit = now
        if self._pre_commit is not None:
            self._pre_commit()
        self._submit()
        return True

    def commit(self) -> None:
        self._wait()
        if self._pre_commit is not None:
            self._pre_commit()
        if self._pending_operations:
            self._submit()
            self._wait()

    def save_to(self, path: Path) -> None:
        """Write a compacted, consistent copy of everything written so far into the new file ``path``, and sync it. Takes as long as
        writing the data does. Raises OSError; an incomplete file is then left to the caller."""
        self.commit()
        assert not path.exists(), path
        self._env.copy(str(path), compact=True, txn=self._reader)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _sync_directory(path.parent)

    def size(self) -> int:
        info = self._env.info()
        page_bytes: int = self._env.stat()["psize"]
        pages: int = info["last_pgno"] + 1
        return pages * page_bytes

    def size_in_use(self) -> int:
        self._maybe_finish()
        stats = [self._env.stat(), *(self._reader.stat(db=database) for database in self._databases)]
        meta_pages = 2
        pages = meta_pages + sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
        page_bytes: int = stats[0]["psize"]
        return pages * page_bytes

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._failure is None:
                self.commit()
        finally:
            self._worker.stop()
            self._reader.abort()
            self._env.close()

    def _buffered(self, bucket: Bucket, start: bytes, end: bytes | None) -> list[tuple[bytes, bytes | None]]:
        """What the batches not on disk hold of the range, in order; the newer one counts."""
        self._maybe_finish()
        buffer = self._pending[bucket]
        keys = buffer.keys_in(start, end)
        entries = buffer.entries
        if self._in_flight is not None:
            older = self._in_flight[bucket]
            older_keys = older.keys_in(start, end)
            if older_keys:
                merged = {key: older.entries[key] for key in older_keys}
                merged.update((key, entries[key]) for key in keys)
                return sorted(merged.items())
        return [(key, entries[key]) for key in keys]

    def _submit(self) -> None:
        assert self._in_flight is None
        self._raise_failure()
        for buffer in self._pending:
            # The worker reads the buffer while the owner's ranges may: neither may find it in need of sorting.
            buffer.sort()
        self._in_flight = self._pending
        self._pending = _new_buffers()
        self._pending_operations = 0
        self._worker.submit(self._in_flight)

    def _wait(self) -> None:
        while self._in_flight is not None and self._failure is None:
            self._worker.wait()
            self._finish()
        self._raise_failure()

    def _maybe_finish(self) -> None:
        if self._in_flight is not None and self._worker.is_done and self._failure is None:
            self._finish()

    def _finish(self) -> None:
        """The worker is done with the batch in flight. If it is committed, look at the new state of the file; if it failed, keep the
        batch where reads find it and write nothing more."""
        failure = self._worker.take_failure()
        batch = self._in_flight
        assert batch is not None
        if failure is None:
            self._in_flight = None
            self._reader.abort()
            self._reader = self._env.begin()
        elif isinstance(failure, lmdb.MapFullError):
            # The map may only be moved while no transaction of this process is open, and the worker's is not.
            self._reader.abort()
            self._map_bytes *= 2
            self._env.set_mapsize(self._map_bytes)
            self._reader = self._env.begin()
            self._worker.submit(batch)
        else:
            self._failure = failure

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise OSError(f"the store's file {self._env.path()} cannot be written: {self._failure}") from self._failure


class _CommitWorker:
    """One thread that commits one batch at a time. ``is_done`` tells, without waiting, that the batch handed in last is dealt with."""

    def __init__(
        self, env: lmdb.Environment, databases: tuple[lmdb._Database, ...], on_commit: Callable[[float], None] | None, *, name: str
    ) -> None:
        self._env = env
        self._on_commit = on_commit
        self._databases = databases
        self._batches: queue.SimpleQueue[Buffers | None] = queue.SimpleQueue()
        self._done = threading.Event()
        self._done.set()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    def submit(self, batch: Buffers) -> None:
        assert self.is_done
        self._done.clear()
        self._batches.put(batch)

    def wait(self) -> None:
        self._done.wait()

    def take_failure(self) -> BaseException | None:
        """Why the last batch was not committed, if it was not."""
        assert self.is_done
        failure, self._failure = self._failure, None
        return failure

    def stop(self) -> None:
        self._batches.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            try:
                failpoints.hit("backend.before_commit")
                started = time.perf_counter()
                self._commit(batch)
                if self._on_commit is not None:
                    self._on_commit(time.perf_counter() - started)
                failpoints.hit("backend.after_commit")
            except Exception as error:  # the thread's edge: the owner decides
                self._failure = error
            # The owner may look at any moment and hand in the next batch at once, so this must be one step, and the last.
            self._done.set()

    def _commit(self, batch: Buffers) -> None:
        with self._env.begin(write=True) as txn:
            for database, buffer in zip(self._databases, batch, strict=True):
                writes = [(key, value) for key, value in buffer.entries.items() if value is not None]
                if writes:
                    txn.cursor(database).putmulti(writes)
                if len(writes) < len(buffer.entries):
                    for key, value in buffer.entries.items():
                        if value is None:
                            txn.delete(key, db=database)


def _open(path: Path, map_bytes: int, sync: bool) -> lmdb.Environment:
    try:
        env = lmdb.open(str(path), subdir=False, map_size=map_bytes, max_dbs=DATABASES_MAX, sync=sync, mode=0o600, max_spare_txns=1)
    except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.VersionMismatchError, lmdb.PageNotFoundError) as error:
        raise errors.CorruptError(f"{path} is not a store's file: {error}") from error
    except lmdb.Error as error:
        raise OSError(f"{path} cannot be opened: {error}") from error
    if sync:
        _sync_directory(path.parent)
    # A page beyond the end of the file would be a bus error at some later read, not an exception.
    needed = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    actual = path.stat().st_size
    if actual and actual < needed:
        env.close()
        raise errors.CorruptError(f"{path} is cut short: it has {actual} bytes, its header speaks of {needed}")
    return env


def _sync_directory(directory: Path) -> None:
    """A new file is only safe once its name is; LMDB syncs the file alone."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _merge(
    stored: Iterator[tuple[bytes, bytes]], buffered: list[tuple[bytes, bytes | None]], end: bytes | None, limit: int
) -> Iterator[tuple[bytes, bytes]]:
    """Both in key order as one; where both have a key the buffered value counts, and None hides it."""
    remaining = limit or -1
    position = 0
    for key, value in stored:
        if end is not None and key >= end:
            break
        while position < len(buffered) and buffered[position][0] <= key:
            buffered_key, buffered_value = buffered[position]
            position += 1
            if buffered_value is not None:
                if not remaining:
                    return
                yield buffered_key, buffered_value
                remaining -= 1
            if buffered_key == key:
                break
        else:
            if not remaining:
                return
            yield key, value
            remaining -= 1
        if not remaining:
            return
    for buffered_key, buffered_value in buffered[position:]:
        if not remaining:
            return
        if buffered_value is not None:
            yield buffered_key, buffered_value
            remaining -= 1
