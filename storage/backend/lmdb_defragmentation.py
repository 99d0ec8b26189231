"""Rewriting the LMDB file without its holes while writes go on.

1. A read transaction sees the file as it is; a thread copies what it sees, without the free pages, to a file beside it. From the same
   moment on every batch that goes to the file is also kept for the copy.
2. The thread writes the batches that came meanwhile to the copy.
3. The owner hands in what is written by then as one more batch and holds the next one back (writes stay in memory and in the log); the
   thread writes that last batch to the copy.
4. The owner renames the copy over the file, syncs the directory, and works on the copy from then on. That is the only pause.

A crash before 4 leaves the old file and a copy, which the next start removes; after it the new file, which holds the same.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import lmdb

from storage import errors, failpoints
from storage.backend.backend import BUFFERED_OPERATIONS_MAX
from storage.backend.lmdb_file import Buffers, LmdbFile

DEFRAGMENTATION_SUFFIX: Final = ".defragmentation"
"""Of the copy's name; what a crash leaves of it is removed at the next start."""


class Owner(Protocol):
    """What is needed of the backend."""

    def maybe_submit(self) -> bool: ...

    def maybe_replace(self, copy: LmdbFile, copy_path: Path) -> bool: ...

    def end_defragmentation(self) -> None: ...


class LmdbDefragmentation:
    """``backend.Defragmentation``."""

    def __init__(
        self, owner: Owner, file: LmdbFile, wait_for_commit: Callable[[], None], path: Path, map_bytes: int, *, sync: bool
    ) -> None:
        self._owner = owner
        self._file = file
        self._wait_for_commit = wait_for_commit
        self._path = path
        self._map_bytes = map_bytes
        self._sync = sync
        self._source: lmdb.Transaction | None = file.env.begin()
        self._copy: LmdbFile | None = None
        #: held while the copy is written
        self._busy = threading.Lock()
        #: guards what follows, and the life of ``_source``
        self._lock = threading.Lock()
        self._missing: deque[Buffers] = deque()
        self._missing_operations = 0
        self._failure: BaseException | None = None
        self._is_over = False
        self.is_copying = False
        self.holds_commits = False

    def record(self, batch: Buffers) -> None:
        """For the backend: ``batch`` is on its way to the file."""
        with self._lock:
            self._missing_operations += _operations(batch)
            self._missing.append(batch)
            if self._missing_operations > BUFFERED_OPERATIONS_MAX:
                self._missing.clear()
                self._failure = errors.UnavailableError("etcdserver: defragmentation given up: writes come in faster than it copies")

    def interrupt(self) -> None:
        """For the backend: the map of the file is about to move."""
        with self._lock:
            if self._source is not None:
                self._end_source()
                self._failure = errors.UnavailableError("etcdserver: interrupted: the store's file had to grow; try again")

    def catch_up(self) -> None:
        with self._busy:
            self._raise_failure()
            if self._is_over:
                return
            if self._copy is None:
                self._copy_file()
                self._raise_failure()
            copy = self._copy
            assert copy is not None
            while (batch := self._next_missing()) is not None:
                copy.commit(batch)
        self._wait_for_commit()

    def maybe_finish(self) -> bool:
        self._raise_failure()
        if self._is_over:
            return True
        if not self.holds_commits:
            # Everything written by now is to be in the new file.
            self.holds_commits = self._owner.maybe_submit()
            return False
        if self._copy is None or self._missing or not self._owner.maybe_replace(self._copy, self._path):
            return False
        self._is_over = True
        self._owner.end_defragmentation()
        return True

    def abandon(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._failure = self._failure or errors.UnavailableError("etcdserver: the defragmentation was given up")
        self._owner.end_defragmentation()
        with self._busy:
            with self._lock:
                self._end_source()
            if self._copy is not None:
                self._copy.close()
        for path in (self._path, lock_path(self._path)):
            path.unlink(missing_ok=True)

    def _copy_file(self) -> None:
        with self._lock:
            if self._source is None:
                return
            self.is_copying = True
        try:
            self._file.env.copy(str(self._path), compact=True, txn=self._source)
        except lmdb.Error as error:
            raise OSError(f"{self._path} cannot be written: {error}") from error
        finally:
            self.is_copying = False
            with self._lock:
                self._end_source()
        os.chmod(self._path, 0o600)
        if self._sync:
            descriptor = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        failpoints.hit("backend.before_defragmented")
        self._copy = LmdbFile(self._path, self._map_bytes, sync=self._sync)

    def _next_missing(self) -> Buffers | None:
        with self._lock:
            if not self._missing:
                return None
            batch = self._missing.popleft()
            self._missing_operations -= _operations(batch)
            return batch

    def _end_source(self) -> None:
        if self._source is not None:
            self._source.abort()
            self._source = None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _operations(batch: Buffers) -> int:
    return sum(len(buffer.entries) for buffer in batch)


def lock_path(path: Path) -> Path:
    """LMDB's, beside the file."""
    return path.with_name(path.name + "-lock")
