"""One LMDB file: the environment, its databases, the checksums in it, and the reads on it that outlast a batch.

LMDB writes safely and believes what it reads: a bit that rots on the disk would become an answer. So each value is followed by a
checksum of bucket, key and value, which every read of it checks; and when the file is opened, its tree must hold as many keys as its
header says, for a key that has got lost would not be missed otherwise.

LMDB forbids to move the map or to close the environment while a transaction reads from it, and a transaction is read from one thread
while another decides to do so. Each view therefore has a lock, held for each read and taken to end it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import lmdb

from storage import errors
from storage.backend import schema
from storage.backend.backend import BUCKET_NAMES, Bucket
from storage.backend.write_buffer import WriteBuffer

logger = logging.getLogger(__name__)

#: Buckets that LMDB makes room for; a few more than there are.
DATABASES_MAX = 16

CHECKSUM_BYTES = 4
#: The CRC-32 of anything that its own CRC-32 (little endian) follows.
CHECKSUM_RESIDUE = 0x2144DF1C

Buffers = tuple[WriteBuffer, ...]
V = TypeVar("V")


class LmdbFile:
    """``env`` is closed by ``close``, or, if it was ``replace``d, with the last view on it."""

    def __init__(self, path: Path, map_bytes: int, *, sync: bool) -> None:
        """Raises CorruptError for a file that is no LMDB file or is cut short, OSError if it cannot be opened."""
        self.path = path
        self.env = open_env(path, map_bytes, sync)
        try:
            with self.translated():
                self.databases = tuple(self.env.open_db(name) for name in BUCKET_NAMES)
                self._maybe_seal()
                self._check_counts()
        except BaseException:
            self.env.close()
            raise
        self._views: dict[LmdbView, None] = {}
        self._is_replaced = False

    def view(self, overlay: Buffers) -> LmdbView:
        view = LmdbView(self, overlay)
        self._views[view] = None
        return view

    def forget(self, view: LmdbView) -> None:
        self._views.pop(view, None)
        if self._is_replaced and not self._views:
            self.env.close()

    def has_views(self) -> bool:
        return bool(self._views)

    def take_back_views(self) -> None:
        """End every view's reading, so that the map can be moved."""
        for view in list(self._views):
            view.close()

    def replaced(self) -> None:
        """Another file is used from now on; this one lasts as long as the views on it."""
        self._is_replaced = True
        if not self._views:
            self.env.close()

    def close(self) -> None:
        self.take_back_views()
        self.env.close()

    def commit(self, batch: Buffers) -> None:
        """Write a batch in one transaction."""
        with self.env.begin(write=True) as txn:
            for database_bucket, database, buffer in zip(Bucket, self.databases, batch, strict=True):
                seed = SEEDS[database_bucket]
                writes = [(key, seal(seed, key, value)) for key, value in buffer.entries.items() if value is not None]
                if writes:
                    txn.cursor(database).putmulti(writes)
                if len(writes) < len(buffer.entries):
                    for key, value in buffer.entries.items():
                        if value is None:
                            txn.delete(key, db=database)

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """What LMDB finds wrong with the file as CorruptError."""
        try:
            yield
        except lmdb.Error as error:
            raise self.damaged(str(error)) from error

    def damaged(self, what: str) -> errors.CorruptError:
        return errors.CorruptError(f"{self.path} is damaged: {what}")

    def unseal(self, bucket: Bucket, key: bytes, sealed: bytes) -> bytes:
        """The value within what ``seal`` made. Raises CorruptError."""
        if zlib.crc32(sealed, zlib.crc32(key, SEEDS[bucket])) != CHECKSUM_RESIDUE:
            raise self.damaged(f"{key!r} in the bucket {bucket.name.lower()} does not match its checksum")
        return sealed[:-CHECKSUM_BYTES]

    def _maybe_seal(self) -> bool:
        """Give the values of a file that was written before there were checksums theirs, in one transaction. The length of the
        consistent index, which every store has, tells such a file."""
        with self.env.begin() as txn:
            index = txn.get(schema.CONSISTENT_INDEX, db=self.databases[Bucket.META])
        if index is None or len(index) != schema.UINT64_BYTES:
            return False
        logger.info("adding checksums to %s, which an earlier version wrote", self.path)
        with self.env.begin(write=True) as txn:
            for seed, database in zip(SEEDS, self.databases, strict=True):
                cursor = txn.cursor(database)
                more = cursor.first()
                while more:
                    key, value = cursor.item()
                    cursor.put(key, seal(seed, key, value))
                    more = cursor.next()
        return True

    def _check_counts(self) -> None:
        with self.env.begin() as txn:
            for name, database in zip(BUCKET_NAMES, self.databases, strict=True):
                expected = txn.stat(database)["entries"]
                found = sum(1 for _ in txn.cursor(database).iternext(keys=True, values=False))
                if found != expected:
                    raise self.damaged(f"the bucket {name.decode()} has {found} keys where its header says {expected}")

    def size(self) -> int:
        info = self.env.info()
        page_bytes: int = self.env.stat()["psize"]
        pages: int = info["last_pgno"] + 1
        return pages * page_bytes


class LmdbView:
    """``backend.BackendView``: a read transaction, and over it what had not reached the file."""

    def __init__(self, file: LmdbFile, overlay: Buffers) -> None:
        self._file = file
        self._overlay = overlay
        self._lock = threading.Lock()
        self._txn: lmdb.Transaction | None = file.env.begin(buffers=True)

    def range(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, bytes]]:
        buffered = self._buffered(bucket, start, end)
        with self._lock, self._file.translated():
            stored = self._stored(bucket, start)
            return list(merge(stored, buffered, end, limit))

    def keys(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[bytes]:
        return [key for key, _ in self.sizes(bucket, start, end, limit)]

    def sizes(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, int]]:
        buffered = [(key, None if value is None else len(value)) for key, value in self._buffered(bucket, start, end)]
        with self._lock, self._file.translated():
            stored = ((bytes(key), len(value) - CHECKSUM_BYTES) for key, value in self._views(bucket, start))
            return list(merge(stored, buffered, end, limit))

    def chunk(self, bucket: Bucket, start: bytes, bytes_max: int) -> list[tuple[bytes, bytes]]:
        buffered = self._buffered(bucket, start, None)
        pairs: list[tuple[bytes, bytes]] = []
        size = 0
        with self._lock, self._file.translated():
            stored = self._stored(bucket, start)
            for key, value in merge(stored, buffered, None, 0):
                pairs.append((key, value))
                size += len(key) + len(value)
                if size >= bytes_max:
                    break
        return pairs

    def close(self) -> None:
        with self._lock:
            txn, self._txn = self._txn, None
        if txn is not None:
            txn.abort()
            self._overlay = ()
            self._file.forget(self)

    def _stored(self, bucket: Bucket, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        unseal = self._file.unseal
        for key_view, value_view in self._views(bucket, start):
            key = bytes(key_view)
            yield key, unseal(bucket, key, bytes(value_view))

    def _views(self, bucket: Bucket, start: bytes) -> Iterator[tuple[memoryview, memoryview]]:
        if self._txn is None:
            raise errors.UnavailableError("etcdserver: interrupted: the store's file had to grow or was closed; try again")
        cursor = self._txn.cursor(self._file.databases[bucket])
        found = cursor.set_range(start) if start else cursor.first()
        # With ``buffers=True`` both are views of the map, good until the transaction ends.
        pairs: Iterator[tuple[memoryview, memoryview]] = cursor.iternext()  # type: ignore[assignment]
        return pairs if found else iter(())

    def _buffered(self, bucket: Bucket, start: bytes, end: bytes | None) -> list[tuple[bytes, bytes | None]]:
        if not self._overlay:
            return []
        buffer = self._overlay[bucket]
        return [(key, buffer.entries[key]) for key in buffer.keys_in(start, end)]


def seal(seed: int, key: bytes, value: bytes) -> bytes:
    """The value as it is in the file; ``seed`` is of ``SEEDS``."""
    return value + zlib.crc32(value, zlib.crc32(key, seed)).to_bytes(CHECKSUM_BYTES, "little")


#: A value that came into another bucket does not match there.
SEEDS = tuple(zlib.crc32(name) for name in BUCKET_NAMES)


def merge(
    stored: Iterator[tuple[bytes, V]], buffered: list[tuple[bytes, V | None]], end: bytes | None, limit: int
) -> Iterator[tuple[bytes, V]]:
    """Both in key order as one; where both have a key the buffered value counts, and None hides it."""
    if not buffered and end is None:
        yield from islice(stored, limit or None)
        return
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


def open_env(path: Path, map_bytes: int, sync: bool) -> lmdb.Environment:
    try:
        env = lmdb.open(str(path), subdir=False, map_size=map_bytes, max_dbs=DATABASES_MAX, sync=sync, mode=0o600, max_spare_txns=1)
    except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.VersionMismatchError, lmdb.PageNotFoundError) as error:
        raise errors.CorruptError(f"{path} is not a store's file: {error}") from error
    except lmdb.Error as error:
        raise OSError(f"{path} cannot be opened: {error}") from error
    if sync:
        sync_directory(path.parent)
    # A page beyond the end of the file would be a bus error at some later read, not an exception.
    needed = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    actual = path.stat().st_size
    if actual and actual < needed:
        env.close()
        raise errors.CorruptError(f"{path} is cut short: it has {actual} bytes, its header speaks of {needed}")
    return env


def sync_directory(directory: Path) -> None:
    """A new file is only safe once its name is; LMDB syncs the file alone."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
