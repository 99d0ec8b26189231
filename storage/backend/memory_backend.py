"""A backend in memory: for tests and for data that may be lost.

It keeps the difference between what was written and what a crash would leave: ``durable_get`` and ``crash`` see only committed
batches, so that tests of recovery need no disk.
"""

from __future__ import annotations

from itertools import islice

from sortedcontainers import SortedDict

from storage import errors
from storage.backend.backend import BATCH_INTERVAL_SECONDS, BATCH_OPERATIONS_MAX, Bucket, PreCommitHook


class MemoryBackend:
    """``backend.Backend`` over sorted dictionaries."""

    def __init__(self) -> None:
        self._buckets: tuple[SortedDict, ...] = tuple(SortedDict() for _ in Bucket)
        #: what the committed state holds (None: nothing) under each key written since the last commit
        self._committed_before: dict[tuple[Bucket, bytes], bytes | None] = {}
        self._operations = 0
        self._pre_commit: PreCommitHook | None = None
        self._last_commit: float | None = None

    def get(self, bucket: Bucket, key: bytes) -> bytes | None:
        value: bytes | None = self._buckets[bucket].get(key)
        return value

    def range(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, bytes]]:
        entries = self._buckets[bucket]
        return [(key, entries[key]) for key in self.keys(bucket, start, end, limit)]

    def keys(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[bytes]:
        keys = self._buckets[bucket].irange(start, end, inclusive=(True, False))
        return list(islice(keys, limit) if limit else keys)

    def put(self, bucket: Bucket, key: bytes, value: bytes) -> None:
        self._remember(bucket, key)
        self._buckets[bucket][key] = value

    def delete(self, bucket: Bucket, key: bytes) -> None:
        self._remember(bucket, key)
        self._buckets[bucket].pop(key, None)

    def durable_get(self, bucket: Bucket, key: bytes) -> bytes | None:
        if (bucket, key) in self._committed_before:
            return self._committed_before[bucket, key]
        return self.get(bucket, key)

    def set_pre_commit(self, hook: PreCommitHook | None) -> None:
        self._pre_commit = hook

    def maybe_commit(self, now: float) -> bool:
        if not self._operations:
            return False
        if self._last_commit is None:
            self._last_commit = now
        if self._operations < BATCH_OPERATIONS_MAX and now - self._last_commit < BATCH_INTERVAL_SECONDS:
            return False
        self._last_commit = now
        self.commit()
        return True

    def commit(self) -> None:
        if self._pre_commit is not None:
            self._pre_commit()
        self._committed_before.clear()
        self._operations = 0

    def crash(self) -> MemoryBackend:
        """What a new process finds after this one died now: the committed batches. This object must not be used again."""
        survivor = MemoryBackend()
        survivor._buckets = self._buckets
        for (bucket, key), value in self._committed_before.items():
            if value is None:
                survivor._buckets[bucket].pop(key, None)
            else:
                survivor._buckets[bucket][key] = value
        return survivor

    def view(self) -> MemoryView:
        if self._pre_commit is not None:
            self._pre_commit()
        return MemoryView(tuple(SortedDict(entries) for entries in self._buckets))

    def begin_defragmentation(self) -> MemoryDefragmentation:
        return MemoryDefragmentation()

    def size(self) -> int:
        return sum(len(key) + len(value) for entries in self._buckets for key, value in entries.items())

    def size_in_use(self) -> int:
        return self.size()

    def close(self) -> None:
        self.commit()

    def _remember(self, bucket: Bucket, key: bytes) -> None:
        self._operations += 1
        if (bucket, key) not in self._committed_before:
            self._committed_before[bucket, key] = self._buckets[bucket].get(key)


class MemoryView:
    """``backend.BackendView``: a copy."""

    def __init__(self, buckets: tuple[SortedDict, ...]) -> None:
        self._buckets: tuple[SortedDict, ...] | None = buckets

    def range(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, bytes]]:
        entries = self._entries(bucket)
        return [(key, entries[key]) for key in self.keys(bucket, start, end, limit)]

    def keys(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[bytes]:
        keys = self._entries(bucket).irange(start, end, inclusive=(True, False))
        return list(islice(keys, limit) if limit else keys)

    def sizes(self, bucket: Bucket, start: bytes, end: bytes | None, limit: int = 0) -> list[tuple[bytes, int]]:
        return [(key, len(value)) for key, value in self.range(bucket, start, end, limit)]

    def chunk(self, bucket: Bucket, start: bytes, bytes_max: int) -> list[tuple[bytes, bytes]]:
        pairs: list[tuple[bytes, bytes]] = []
        size = 0
        for key in self._entries(bucket).irange(start):
            value = self._entries(bucket)[key]
            pairs.append((key, value))
            size += len(key) + len(value)
            if size >= bytes_max:
                break
        return pairs

    def close(self) -> None:
        self._buckets = None

    def _entries(self, bucket: Bucket) -> SortedDict:
        if self._buckets is None:
            raise errors.UnavailableError("etcdserver: interrupted: the view is closed")
        return self._buckets[bucket]


class MemoryDefragmentation:
    """``backend.Defragmentation`` of what has no holes."""

    def catch_up(self) -> None:
        pass

    def maybe_finish(self) -> bool:
        return True

    def abandon(self) -> None:
        pass
