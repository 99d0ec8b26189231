"""HashKV: one number for all versions that members can compare at a revision (etcd's corruption check).

CRC-32C (Castagnoli) over the name of the ``key`` bucket, then key and value of every record up to the revision; records at or below
the compact revision count only if a compaction there keeps them, and a tombstone at the compact revision does not count, so that
members before and after their physical compaction agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage import errors
from storage.backend.backend import BUCKET_NAMES, Bucket
from storage.mvcc.revision import REVISION_BYTES, is_tombstone, main_of, revision_key

if TYPE_CHECKING:
    from storage.mvcc.store import Store

_CASTAGNOLI_REVERSED = 0x82F6_3B78

#: Records read at once: bounds the memory that hashing takes.
CHUNK_RECORDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class KvHash:
    hash: int
    compact_revision: int
    revision: int


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI_REVERSED if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _table()


def crc32c(data: bytes, crc: int = 0) -> int:
    """The checksum of what ``crc`` is the checksum of, and ``data`` behind it. About 0.1 µs a byte."""
    crc ^= 0xFFFF_FFFF
    table = _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFF_FFFF


def hash_kv(store: Store, revision: int = 0) -> KvHash:
    """The hash of the versions up to main revision ``revision``, 0 for the newest. Takes time in proportion to the data.

    Raises CompactedError, FutureRevisionError.
    """
    if revision > 0 and revision < store.compact_revision:
        raise errors.CompactedError(store.compact_revision)
    if revision > store.current_revision:
        raise errors.FutureRevisionError(store.current_revision)
    revision = revision or store.current_revision
    keep = {kept for index in store.index.key_indexes_from(b"", len(store.index)) if (kept := index.keep(revision)) is not None}
    crc = crc32c(BUCKET_NAMES[Bucket.KEY])
    start, end = b"", revision_key(revision + 1)
    kept_only_below = revision_key(store.compact_revision + 1)
    while True:
        records = store.backend.range(Bucket.KEY, start, end, CHUNK_RECORDS)
        for record, value in records:
            if record < kept_only_below and keep and record[:REVISION_BYTES] not in keep:
                continue
            if is_tombstone(record) and main_of(record) == store.compact_revision:
                continue
            crc = crc32c(value, crc32c(record, crc))
        if len(records) < CHUNK_RECORDS:
            return KvHash(hash=crc, compact_revision=store.compact_revision, revision=revision)
        start = records[-1][0] + b"\0"
