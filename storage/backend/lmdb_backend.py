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
from collections.abc import Callable
from pathlib import Path

import lmdb

from storage import errors, failpoints
from storage.backend.backend import (
    BATCH_INTERVAL_SECONDS,
    BATCH_OPERATIONS_MAX,
    BUFFERED_OPERATIONS_MAX,
    Bucket,
    PreCommitHook,
)
from storage.backend.lmdb_defragmentation import DEFRAGMENTATION_SUFFIX, LmdbDefragmentation, lock_path
from storage.backend.lmdb_file import Buffers, LmdbFile, LmdbView, merge, sync_directory
from storage.backend.write_buffer import MISSING, WriteBuffer

#: The map is address space, not memory or disk. Twice the quota leaves room for what is above it before the alarm stops writes, and
#: for the deletes that must go on after; it doubles should that not do.
MAP_BYTES_PER_QUOTA_BYTE = 2
MAP_BYTES_MIN = 64 * 1024 * 1024


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
        self._path = path
        self._sync = sync
        for left in path.parent.glob(f"{path.name}{DEFRAGMENTATION_SUFFIX}*"):
            left.unlink()
        self._file = LmdbFile(path, self._map_bytes, sync=sync)
        self._reader = self._file.env.begin()
        self._pending = _new_buffers()
        self._pending_operations = 0
        self._in_flight: Buffers | None = None
        self._last_commit: float | None = None
        self._pre_commit: PreCommitHook | None = None
        self._failure: BaseException | None = None
        self._is_closed = False
        self._defragmentation: LmdbDefragmentation | None = None
        self._defragmentation_count = 0
        #: files before a defragmentation that a view still reads
        self._replaced: list[LmdbFile] = []
        self._worker = _CommitWorker(self._file, on_commit, name=f"commit {path.name}")

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
        return self._stored(bucket, key)

    def range(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, bytes]]:
        buffered = self._buffered(bucket, start, end)
        cursor = self._reader.cursor(self._file.databases[bucket])
        file = self._file
        unseal = file.unseal
        with file.translated():
            found = cursor.set_range(start) if start else cursor.first()
            stored = ((key, unseal(bucket, key, value)) for key, value in cursor.iternext()) if found else iter(())
            return list(merge(stored, buffered, end, limit))

    def keys(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[bytes]:
        buffered = self._buffered(bucket, start, end)
        cursor = self._reader.cursor(self._file.databases[bucket])
        with self._file.translated():
            found = cursor.set_range(start) if start else cursor.first()
            stored = ((key, b"") for key in cursor.iternext(values=False)) if found else iter(())
            return [key for key, _ in merge(stored, buffered, end, limit)]

    def put(self, bucket: Bucket, key: bytes, value: bytes) -> None:
        self._pending[bucket].write(key, value)
        self._pending_operations += 1

    def delete(self, bucket: Bucket, key: bytes) -> None:
        self._pending[bucket].write(key, None)
        self._pending_operations += 1

    def durable_get(self, bucket: Bucket, key: bytes) -> bytes | None:
        self._maybe_finish()
        return self._stored(bucket, key)

    def set_pre_commit(self, hook: PreCommitHook | None) -> None:
        self._pre_commit = hook

    def maybe_commit(self, now: float) -> bool:
        self._maybe_finish()
        self._raise_failure()
        if not self._pending_operations:
            return False
        if self._defragmentation is not None and self._defragmentation.holds_commits:
            if self._pending_operations < BUFFERED_OPERATIONS_MAX:
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

    def view(self) -> LmdbView:
        self._maybe_finish()
        self._raise_failure()
        if self._pre_commit is not None:
            self._pre_commit()
        overlay = _new_buffers()
        for batch in (self._in_flight, self._pending):
            if batch is not None:
                for buffer, newer in zip(overlay, batch, strict=True):
                    buffer.update(newer)
        return self._file.view(overlay)

    def begin_defragmentation(self) -> LmdbDefragmentation:
        if self._defragmentation is not None:
            raise errors.UnavailableError("etcdserver: a defragmentation is under way")
        self._maybe_finish()
        self._raise_failure()
        self._defragmentation_count += 1
        copy = self._path.with_name(f"{self._path.name}{DEFRAGMENTATION_SUFFIX}-{self._defragmentation_count}")
        self._defragmentation = LmdbDefragmentation(self, self._file, self._worker.wait, copy, self._map_bytes, sync=self._sync)
        if self._in_flight is not None:
            self._defragmentation.record(self._in_flight)
        return self._defragmentation

    def maybe_submit(self) -> bool:
        """For the defragmentation: hand in what is written, if no batch is under way."""
        self._maybe_finish()
        self._raise_failure()
        if self._in_flight is not None:
            return False
        if self._pre_commit is not None:
            self._pre_commit()
        if self._pending_operations:
            self._submit()
        return True

    def maybe_replace(self, copy: LmdbFile, copy_path: Path) -> bool:
        """For the defragmentation: use ``copy``, which holds every batch that was handed in, if none is under way."""
        self._maybe_finish()
        self._raise_failure()
        if self._in_flight is not None:
            return False
        os.replace(copy_path, self._path)
        failpoints.hit("backend.after_defragmented")
        os.replace(lock_path(copy_path), lock_path(self._path))
        try:
            if self._sync:
                sync_directory(self._path.parent)
        except OSError as error:
            # Which of the two files a crash would leave is not known.
            self._failure = error
            raise
        self._reader.abort()
        self._file.replaced()
        self._replaced = [file for file in (*self._replaced, self._file) if file.has_views()]
        self._file = copy
        self._worker.use(copy)
        self._reader = copy.env.begin()
        return True

    def end_defragmentation(self) -> None:
        self._defragmentation = None

    def size(self) -> int:
        return self._file.size()

    def size_in_use(self) -> int:
        self._maybe_finish()
        stats = [self._file.env.stat(), *(self._reader.stat(db=database) for database in self._file.databases)]
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
            if self._defragmentation is not None:
                self._defragmentation.abandon()
            for file in (*self._replaced, self._file):
                file.close()

    def _stored(self, bucket: Bucket, key: bytes) -> bytes | None:
        file = self._file
        try:
            sealed: bytes | None = self._reader.get(key, None, file.databases[bucket])
        except lmdb.Error as error:
            raise file.damaged(str(error)) from error
        return None if sealed is None else file.unseal(bucket, key, sealed)

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
        if self._defragmentation is not None:
            self._defragmentation.record(self._in_flight)
        self._worker.submit(self._in_flight)

    def _wait(self) -> None:
        while self._in_flight is not None and self._failure is None:
            self._worker.wait()
            self._finish()
        self._raise_failure()

    def _maybe_finish(self) -> None:
        if self._in_flight is not None and self._worker.is_done and self._failure is None:
            if self._worker.has_failed and self._defragmentation is not None and self._defragmentation.is_copying:
                return  # the map cannot be moved under the copy; what is written stays in memory until it is done
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
            self._reader = self._file.env.begin()
        elif isinstance(failure, lmdb.MapFullError):
            # The map may only be moved while no transaction of this process is open, and the worker's is not.
            self._reader.abort()
            self._file.take_back_views()
            if self._defragmentation is not None:
                self._defragmentation.interrupt()
            self._map_bytes *= 2
            self._file.env.set_mapsize(self._map_bytes)
            self._reader = self._file.env.begin()
            self._worker.submit(batch)
        else:
            self._failure = failure

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise OSError(f"the store's file {self._path} cannot be written: {self._failure}") from self._failure


class _CommitWorker:
    """One thread that commits one batch at a time. ``is_done`` tells, without waiting, that the batch handed in last is dealt with."""

    def __init__(self, file: LmdbFile, on_commit: Callable[[float], None] | None, *, name: str) -> None:
        self._file = file
        self._on_commit = on_commit
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

    def use(self, file: LmdbFile) -> None:
        """Commit to another file from the next batch on."""
        assert self.is_done
        self._file = file

    def wait(self) -> None:
        self._done.wait()

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

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
                self._file.commit(batch)
                if self._on_commit is not None:
                    self._on_commit(time.perf_counter() - started)
                failpoints.hit("backend.after_commit")
            except Exception as error:  # the thread's edge: the owner decides
                self._failure = error
            # The owner may look at any moment and hand in the next batch at once, so this must be one step, and the last.
            self._done.set()
