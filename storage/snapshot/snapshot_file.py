"""Opens a snapshot file, checks it, and says what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage.backend import schema
from storage.backend.backend import BUCKET_NAMES, Bucket
from storage.bbolt.reader import BboltReader
from storage.errors import CorruptError, SnapshotFileError
from storage.mvcc import kv_codec
from storage.mvcc.revision import REVISION_BYTES, TOMBSTONE_SUFFIX, is_tombstone, main_of
from storage.snapshot.database import HASH_BYTES, database_hash

SECTOR_BYTES: Final = 512
"""A database is a multiple of it long, so what is left over tells whether a hash is behind it (etcd's test)."""

_READ_BYTES: Final = 1024 * 1024
_KEY: Final = BUCKET_NAMES[Bucket.KEY]
_META: Final = BUCKET_NAMES[Bucket.META]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStatus:
    """As ``etcdutl snapshot status`` says it: ``hash`` is CRC-32C over all buckets, ``total_keys`` counts the keys that exist,
    ``total_size`` is that of the database in bytes, ``version`` is that of its layout (empty before etcd 3.6)."""

    hash: int
    revision: int
    total_keys: int
    total_size: int
    version: str


@contextmanager
def open_snapshot(path: Path, *, skip_hash_check: bool = False) -> Iterator[BboltReader]:
    """The database in the file. Raises SnapshotFileError: for a file that is truncated or altered, that has no hash (unless
    ``skip_hash_check``), that is no database, or cannot be read; also while it is read."""
    try:
        with BboltReader(path, size=_checked_size(path, skip_hash_check=skip_hash_check)) as reader:
            yield reader
    except CorruptError as error:
        raise SnapshotFileError(str(error)) from error
    except OSError as error:
        raise SnapshotFileError(f"{error.filename or path}: {error.strerror or error}") from error


def status(path: Path) -> SnapshotStatus:
    """Reads and checks all of the file; one without a hash is taken. Raises SnapshotFileError."""
    with open_snapshot(path, skip_hash_check=not _has_hash(path)) as reader:
        reader.check_pages()
        keys: set[bytes] = set()
        record = b""
        for record, value in reader.items(_KEY):
            check_record(path, record)
            key = kv_codec.decode_key(value)
            if is_tombstone(record):
                keys.discard(key)
            else:
                keys.add(key)
        meta = dict(reader.items(_META))
        return SnapshotStatus(
            hash=database_hash(reader),
            revision=main_of(record) if record else 0,
            total_keys=len(keys),
            total_size=reader.meta.page_count * reader.meta.page_bytes,
            version=meta.get(schema.STORAGE_VERSION, b"").decode("utf-8", "replace"),
        )


def check_record(path: Path, record: bytes) -> None:
    """Raises SnapshotFileError for a key of the ``key`` bucket that is no revision."""
    if len(record) != REVISION_BYTES and not (len(record) == REVISION_BYTES + 1 and record.endswith(TOMBSTONE_SUFFIX)):
        raise SnapshotFileError(f"{path}: the key bucket holds {record!r}, which is no revision")


def _has_hash(path: Path) -> bool:
    try:
        return path.stat().st_size % SECTOR_BYTES == HASH_BYTES
    except OSError as error:
        raise SnapshotFileError(f"{path}: {error.strerror or error}") from error


def _checked_size(path: Path, *, skip_hash_check: bool) -> int:
    """The size of the database, after its hash was found right."""
    size = path.stat().st_size
    has_hash = _has_hash(path)
    if not has_hash:
        if not skip_hash_check:
            raise SnapshotFileError(f"{path}: no hash at its end: it is cut short, or a copy of a database (then --skip-hash-check)")
        return size
    if skip_hash_check:
        return size - HASH_BYTES
    sha256 = hashlib.sha256()
    left = size - HASH_BYTES
    with open(path, "rb") as file:
        while left:
            data = file.read(min(_READ_BYTES, left))
            if not data:
                raise SnapshotFileError(f"{path}: became shorter while it was read")
            sha256.update(data)
            left -= len(data)
        if file.read(HASH_BYTES) != sha256.digest():
            raise SnapshotFileError(f"{path}: its hash does not fit: it was altered or cut short")
    return size - HASH_BYTES
