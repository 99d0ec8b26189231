"""The database of a simulated member: in memory, with the crash semantics of LMDB.

Writes are visible at once, are committed in batches in the background, and a crash leaves the last commit that reached the disk; a
commit that was under way is there as a whole or not at all, as the seed decides.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from sortedcontainers import SortedDict

from storage import failpoints
from storage.backend.backend import BATCH_INTERVAL_SECONDS, BATCH_OPERATIONS_MAX, Bucket, PreCommitHook
from storage.backend.memory_backend import MemoryView
from tests.simulation.world import ProcessLoop

Buckets = tuple[SortedDict, ...]

PAGE_BYTES: Final = 4096


def empty_buckets() -> Buckets:
    return tuple(SortedDict() for _ in Bucket)


def copy_buckets(buckets: Buckets) -> Buckets:
    return tuple(SortedDict(bucket) for bucket in buckets)


class _Undo:
    """What the keys of one batch held before it."""

    __slots__ = ("before",)

    def __init__(self) -> None:
        self.before: dict[tuple[Bucket, bytes], bytes | None] = {}

    def remember(self, buckets: Buckets, bucket: Bucket, key: bytes) -> None:
        if (bucket, key) not in self.before:
            self.before[bucket, key] = buckets[bucket].get(key)

    def apply(self, buckets: Buckets) -> None:
        for (bucket, key), value in self.before.items():
            if value is None:
                buckets[bucket].pop(key, None)
            else:
                buckets[bucket][key] = value


class SimulatedBackend:
    """``storage.backend.Backend`` of one process. ``commit_seconds`` draws how long the next commit takes, or raises OSError."""

    def __init__(self, buckets: Buckets, process: ProcessLoop, *, commit_seconds: Callable[[], float]) -> None:
        self._buckets = buckets
        self._process = process
        self._commit_seconds = commit_seconds
        self._pending = _Undo()
        self._in_flight: _Undo | None = None
        self._operations = 0
        self._pre_commit: PreCommitHook | None = None
        self._last_commit: float | None = None
        self._failure: OSError | None = None
        self._bytes = sum(len(key) + len(value) for bucket in buckets for key, value in bucket.items())
        self._bytes_max = self._bytes
        self.is_closed = False

    # -- Backend

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
        assert not self.is_closed
        entries = self._buckets[bucket]
        self._pending.remember(self._buckets, bucket, key)
        self._operations += 1
        before = entries.get(key)
        self._bytes += len(value) - (-len(key) if before is None else len(before))
        self._bytes_max = max(self._bytes_max, self._bytes)
        entries[key] = value

    def delete(self, bucket: Bucket, key: bytes) -> None:
        assert not self.is_closed
        self._pending.remember(self._buckets, bucket, key)
        self._operations += 1
        before = self._buckets[bucket].pop(key, None)
        if before is not None:
            self._bytes -= len(key) + len(before)

    def durable_get(self, bucket: Bucket, key: bytes) -> bytes | None:
        for batch in (self._in_flight, self._pending):
            if batch is not None and (bucket, key) in batch.before:
                return batch.before[bucket, key]
        return self.get(bucket, key)

    def set_pre_commit(self, hook: PreCommitHook | None) -> None:
        self._pre_commit = hook

    def maybe_commit(self, now: float) -> bool:
        self._raise_failure()
        if not self._operations or self._in_flight is not None:
            return False
        if self._last_commit is None:
            self._last_commit = now
        if self._operations < BATCH_OPERATIONS_MAX and now - self._last_commit < BATCH_INTERVAL_SECONDS:
            return False
        self._last_commit = now
        self._begin()
        world = self._process.world
        try:
            seconds = self._commit_seconds()
        except OSError as error:
            self._failure = error
            return True
        world.call_at(world.now + seconds, self._process, self._finish, self._in_flight)
        return True

    def commit(self) -> None:
        """Durable at once: whoever waits for a disk waits in real time, and no virtual time passes within a callback."""
        self._raise_failure()
        self._finish(self._in_flight)
        self._begin()
        self._finish(self._in_flight)

    def size(self) -> int:
        return self._bytes_max + PAGE_BYTES

    def size_in_use(self) -> int:
        return self._bytes + PAGE_BYTES

    def view(self) -> MemoryView:
        self._raise_failure()
        if self._pre_commit is not None:
            self._pre_commit()
        return MemoryView(copy_buckets(self._buckets))

    def begin_defragmentation(self) -> _Defragmentation:
        return _Defragmentation(self)

    def close(self) -> None:
        if self.is_closed:
            return
        if self._failure is None and not self._process.is_dead:
            self.commit()
        self.is_closed = True

    # -- for the simulation

    def shrink(self) -> None:
        """Give back what is not in use."""
        self._bytes_max = self._bytes

    def crash(self) -> Buckets:
        """What the next process finds. This object must not be used again."""
        if not self.is_closed or self._failure is not None:
            self._pending.apply(self._buckets)
            if self._in_flight is not None and (self._failure is not None or self._process.world.rng.random() < 0.5):
                self._in_flight.apply(self._buckets)
        self.is_closed = True
        return self._buckets

    def _begin(self) -> None:
        if self._pre_commit is not None:
            self._pre_commit()
        failpoints.hit("backend.before_commit")
        self._in_flight = self._pending
        self._pending = _Undo()
        self._operations = 0

    def _finish(self, batch: _Undo | None) -> None:
        if batch is not None and batch is self._in_flight and not self.is_closed:
            self._in_flight = None
            failpoints.hit("backend.after_commit")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise OSError(f"the store's file cannot be written: {self._failure}") from self._failure


class _Defragmentation:
    """``storage.backend.Defragmentation``: a copy that is never behind."""

    def __init__(self, backend: SimulatedBackend) -> None:
        self._backend = backend

    def catch_up(self) -> None:
        """Nothing is missing."""

    def maybe_finish(self) -> bool:
        self._backend.shrink()
        return True

    def abandon(self) -> None:
        """Nothing is left to drop."""
