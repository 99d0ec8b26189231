"""HashKV: one number for all versions that members can compare at a revision (etcd's corruption check).

CRC-32C (Castagnoli) over the name of the ``key`` bucket, then key and value of every record up to the revision; records at or below
the compact revision count only if a compaction there keeps them, and a tombstone at the compact revision does not count, so that
members before and after their physical compaction agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crc32c import crc32c

from storage import errors
from storage.backend.backend import BUCKET_NAMES, Bucket
from storage.mvcc import kv_codec
from storage.mvcc.revision import REVISION_BYTES, is_tombstone, main_of, revision_key

if TYPE_CHECKING:
    from storage.mvcc.store import Store

#: Bytes read at once: bounds the memory that hashing takes beside the names of the keys.
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class KvHash:
    hash: int
    compact_revision: int
    revision: int


class KvHasher:
    """Hashes a view of the backend, so that it may take its time in another thread; ``close`` in the owner's thread, at the end."""

    def __init__(self, store: Store, revision: int = 0) -> None:
        """``revision`` 0 is the newest. Raises CompactedError, FutureRevisionError."""
        if revision > 0 and revision < store.compact_revision:
            raise errors.CompactedError(store.compact_revision)
        if revision > store.current_revision:
            raise errors.FutureRevisionError(store.current_revision)
        self._revision = revision if revision > 0 else store.current_revision
        self._compact_revision = store.compact_revision
        self._view = store.backend.view()

    def run(self) -> KvHash:
        """Takes time in proportion to the data. Raises UnavailableError if the view was taken back, CorruptError."""
        keep = self._kept() if self._compact_revision > 0 else frozenset()
        kept_only_below = revision_key(self._compact_revision + 1) if keep else b""
        crc = crc32c(BUCKET_NAMES[Bucket.KEY])
        for pairs in self._chunks():
            hashed: list[bytes] = []
            for record, value in pairs:
                if record < kept_only_below and record[:REVISION_BYTES] not in keep:
                    continue
                if is_tombstone(record) and main_of(record) == self._compact_revision:
                    continue
                hashed += (record, value)
            crc = crc32c(b"".join(hashed), crc)
        return KvHash(hash=crc, compact_revision=self._compact_revision, revision=self._revision)

    def close(self) -> None:
        self._view.close()

    def _kept(self) -> AbstractSet[bytes]:
        """The revisions that a compaction at the hash's revision would keep: of each key the newest, if it is no tombstone. It is asked
        of the records, not of the index, which may be compacted further by the time."""
        newest: dict[bytes, bytes | None] = {}
        for pairs in self._chunks():
            for record, value in pairs:
                newest[kv_codec.decode_key(value)] = None if is_tombstone(record) else record
        return {record for record in newest.values() if record is not None}

    def _chunks(self) -> Iterator[list[tuple[bytes, bytes]]]:
        start, end = b"", revision_key(self._revision + 1)
        while True:
            pairs = self._view.chunk(Bucket.KEY, start, CHUNK_BYTES)
            if pairs and pairs[-1][0] >= end:
                yield [pair for pair in pairs if pair[0] < end]
                return
            if not pairs:
                return
            yield pairs
            start = pairs[-1][0] + b"\0"


def hash_kv(store: Store, revision: int = 0) -> KvHash:
    """The hash of the versions up to main revision ``revision``, 0 for the newest, in one go.

    Raises CompactedError, FutureRevisionError.
    """
    hasher = KvHasher(store, revision)
    try:
        return hasher.run()
    finally:
        hasher.close()
