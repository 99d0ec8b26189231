"""From a view of the backend to a snapshot, as a stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from crc32c import crc32c

from storage.backend import schema
from storage.backend.backend import BUCKET_NAMES, BackendView, Bucket
from storage.bbolt import writer

HASH_BYTES: Final = hashlib.sha256().digest_size

CHUNK_BYTES: Final = 1024 * 1024
"""Read at once, by size; a larger value comes alone."""

SIZES_MAX: Final = 10_000
"""Sizes looked at at once."""

_BUCKETS: Final = {name: Bucket(number) for number, name in enumerate(BUCKET_NAMES)}


class ViewSource:
    """A view in the form that the writer of database files takes. Every bucket is there, also empty ones, as in etcd's files."""

    def __init__(self, view: BackendView) -> None:
        self._view = view

    def buckets(self) -> Sequence[bytes]:
        return sorted(BUCKET_NAMES)

    def sizes(self, bucket: bytes) -> Iterator[tuple[bytes, int]]:
        start = b""
        while True:
            sizes = self._view.sizes(_BUCKETS[bucket], start, None, SIZES_MAX)
            yield from sizes
            if len(sizes) < SIZES_MAX:
                return
            start = sizes[-1][0] + b"\0"

    def items(self, bucket: bytes) -> Iterator[tuple[bytes, bytes]]:
        start = b""
        while pairs := self._view.chunk(_BUCKETS[bucket], start, CHUNK_BYTES):
            yield from pairs
            start = pairs[-1][0] + b"\0"


class Snapshot:
    """The file that a view makes. All is for one thread at a time and takes time in proportion to the data; every method raises
    UnavailableError if the view was taken back."""

    def __init__(self, view: BackendView) -> None:
        """Finds out how large the file will be."""
        self._source = ViewSource(view)
        self._plan = writer.plan(self._source)
        self.file_bytes = self._plan.file_bytes + HASH_BYTES

    def chunks(self) -> Iterator[bytes]:
        """``file_bytes`` in all."""
        sha256 = hashlib.sha256()
        for chunk in writer.write(self._source, self._plan):
            sha256.update(chunk)
            yield chunk
        yield sha256.digest()


class Items(Protocol):
    """What is hashed: a view through ``ViewSource``, or a file."""

    def buckets(self) -> Sequence[bytes]: ...

    def items(self, bucket: bytes) -> Iterable[tuple[bytes, bytes]]: ...


def _ignores_nothing(bucket: bytes, key: bytes) -> bool:
    return False


def ignores_own(bucket: bytes, key: bytes) -> bool:
    """What may differ between members that hold the same: how far their backends are (etcd's ``DefaultIgnores``)."""
    return bucket == BUCKET_NAMES[Bucket.META] and key in (schema.CONSISTENT_INDEX, schema.TERM, schema.STORAGE_VERSION)


def database_hash(source: Items, ignores: Callable[[bytes, bytes], bool] = _ignores_nothing) -> int:
    """CRC-32C over the names, keys and values of all buckets, as etcd's ``Hash`` and ``etcdutl snapshot status`` have it."""
    crc = 0
    for bucket in source.buckets():
        crc = crc32c(bucket, crc)
        is_ignoring = bucket == BUCKET_NAMES[Bucket.META]
        for key, value in source.items(bucket):
            if not is_ignoring or not ignores(bucket, key):
                crc = crc32c(value, crc32c(key, crc))
    return crc
