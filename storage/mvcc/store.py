"""The store of versions: the index in memory over the backend's ``key`` bucket."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from storage import api, errors, failpoints
from storage.backend import schema
from storage.backend.backend import Backend, Bucket
from storage.mvcc import kv_codec, read_txn
from storage.mvcc.compaction import Compaction
from storage.mvcc.key_index import KeyIndex
from storage.mvcc.revision import REVISION_BYTES, is_tombstone, main_of, revision_key
from storage.mvcc.tree_index import TreeIndex
from storage.mvcc.write_txn import WriteTxn

logger = logging.getLogger(__name__)

#: An empty store is at revision 1 and has never been compacted; etcd's numbers, which clients see.
EMPTY_REVISION = 1
NEVER_COMPACTED = -1

#: Records read at once while the index is rebuilt: bounds the memory that start takes above the index itself.
RESTORE_CHUNK_RECORDS = 10_000

Observer = Callable[[int, Sequence[api.Event]], None]


class LeaseAttacher(Protocol):
    """What the store needs of a lessor."""

    def attach(self, key: bytes, lease_id: int) -> None:
        """``key`` belongs to ``lease_id`` from now on, and to no other; 0 is to none."""


class StoreCounts:
    """Of what was done since the start, for metrics."""

    __slots__ = ("deletes", "events", "puts", "ranges", "records_compacted", "txns")

    def __init__(self) -> None:
        self.puts = 0
        self.deletes = 0
        self.ranges = 0
        #: transactions with more than one change
        self.txns = 0
        self.events = 0
        self.records_compacted = 0


class Store:
    """All versions of all keys. ``index`` and ``backend`` are for the transactions and the compaction of this package."""

    def __init__(self, backend: Backend, lessor: LeaseAttacher) -> None:
        """Load what ``backend`` holds; the lessor must have loaded its leases before. Raises CorruptError."""
        self.lessor = lessor
        self.counts = StoreCounts()
        self._observer: Observer | None = None
        self.backend = backend
        self.index = TreeIndex()
        self.current_revision: int = EMPTY_REVISION
        self.compact_revision: int = NEVER_COMPACTED
        self.consistent_index: int = 0
        self._consistent_term: int = 0
        self._written_consistent_index: int = 0
        self._compaction: Compaction | None = None
        self._load()

    def set_observer(self, observer: Observer) -> None:
        """``observer(revision, events)`` is called at the end of every write transaction, before its caller goes on."""
        self._observer = observer

    def range(self, request: api.RangeRequest) -> read_txn.RangeResult:
        """Raises FutureRevisionError, CompactedError."""
        self.counts.ranges += 1
        return read_txn.read_range(self, request, self.current_revision)

    def get(self, key: bytes, at: int | None = None) -> api.KeyValue | None:
        """The key as of main revision ``at`` (None: the newest), which must not be compacted."""
        return read_txn.read_key(self, key, at)

    def write_txn(self) -> WriteTxn:
        return WriteTxn(self)

    def finish_write(self, main: int, changes: Sequence[api.Event]) -> None:
        """For ``WriteTxn.end``: move to the revision it wrote and tell the observer."""
        assert main == self.current_revision + 1, (main, self.current_revision)
        self.current_revision = main
        counts = self.counts
        counts.events += len(changes)
        if len(changes) > 1:
            counts.txns += 1
        if self._observer is not None:
            self._observer(main, changes)

    def compact(self, revision: int) -> None:
        """Refuse reads below ``revision`` from now on; ``compaction_step`` does the rest.

        Raises CompactedError, FutureRevisionError.
        """
        if revision <= self.compact_revision:
            raise errors.CompactedError(self.compact_revision)
        if revision > self.current_revision:
            raise errors.FutureRevisionError(self.current_revision)
        self.backend.put(Bucket.META, schema.SCHEDULED_COMPACT_REVISION, revision_key(revision))
        self.compact_revision = revision
        # One that is still under way is contained in the newer one.
        self._compaction = Compaction(self, revision)

    def compaction_step(self) -> bool:
        """Do a slice of pending physical compaction; answers whether more is pending. Not within the application of an entry."""
        compaction = self._compaction
        if compaction is None:
            return False
        failpoints.hit("mvcc.before_compaction_slice")
        compaction.step()
        failpoints.hit("mvcc.after_compaction_slice")
        if compaction.done:
            logger.info("finished compaction at revision %d: %d records removed", compaction.at, compaction.records_removed)
            self.counts.records_compacted += compaction.records_removed
            self._compaction = None
        return self._compaction is not None

    @property
    def is_compacting(self) -> bool:
        return self._compaction is not None

    def set_consistent_index(self, index: int, term: int) -> None:
        """Note that the log's entry ``index`` is applied, after its writes and before the next commit. It goes into the backend
        with that commit, so an entry's writes and its index are there together or not at all."""
        assert index >= self.consistent_index, (self.consistent_index, index)
        self.consistent_index = index
        self._consistent_term = term

    @property
    def durable_consistent_index(self) -> int:
        """The newest entry whose effects a crash now would not undo: the log before it may be discarded."""
        return schema.read_uint64(self.backend, Bucket.META, schema.CONSISTENT_INDEX, durable=True)

    def restore(self, backend: Backend) -> None:
        """Go on from another backend, as after a snapshot from the leader. Raises CorruptError."""
        self.backend.set_pre_commit(None)
        self.backend = backend
        self.index = TreeIndex()
        self.current_revision = EMPTY_REVISION
        self._compaction = None
        self._load()

    def _put_consistent_index(self) -> None:
        """Runs at the start of each commit. An index of 0 is none, and is not written."""
        if self.consistent_index != self._written_consistent_index:
            self._written_consistent_index = self.consistent_index
            schema.put_consistent_index(self.backend, self.consistent_index, self._consistent_term)

    def _load(self) -> None:
        self.consistent_index = schema.read_uint64(self.backend, Bucket.META, schema.CONSISTENT_INDEX)
        self._written_consistent_index = self.consistent_index
        self._consistent_term = schema.read_uint64(self.backend, Bucket.META, schema.TERM)
        self.backend.set_pre_commit(self._put_consistent_index)
        finished = _read_revision(self.backend, schema.FINISHED_COMPACT_REVISION)
        scheduled = _read_revision(self.backend, schema.SCHEDULED_COMPACT_REVISION)
        self.compact_revision = max(finished, scheduled)
        self._load_index()
        # All records up to the compact revision may be gone, that of the newest revision among them.
        self.current_revision = max(self.current_revision, self.compact_revision)
        if scheduled > finished:
            logger.info("resuming compaction at revision %d", scheduled)
            self._compaction = Compaction(self, scheduled)

    def _load_index(self) -> None:
        indexes: dict[bytes, KeyIndex] = {}
        leases: dict[bytes, int] = {}
        start = revision_key(1)
        record = b""
        decode, backend_range = kv_codec.decode, self.backend.range
        while True:
            records = backend_range(Bucket.KEY, start, None, RESTORE_CHUNK_RECORDS)
            for record, value in records:
                kv = decode(value, with_value=False)
                key = kv.key
                index = indexes.get(key)
                revision = record[:REVISION_BYTES]
                if is_tombstone(record):
                    if index is None:
                        indexes[key] = KeyIndex.restored_tombstone(key, revision, main_of(record))
                    elif index.is_live:
                        index.tombstone(revision)
                    leases.pop(key, None)
                    continue
                if index is None:
                    indexes[key] = KeyIndex.restored(key, revision, kv.create_revision, kv.version)
                else:
                    index.put(revision, main_of(record))
                if kv.lease:
                    leases[key] = kv.lease
                elif leases:
                    leases.pop(key, None)
            if len(records) < RESTORE_CHUNK_RECORDS:
                break
            start = record + b"\0"
        if record:
            self.current_revision = main_of(record)
        self.index.load(indexes)
        for key, lease in leases.items():
            try:
                self.lessor.attach(key, lease)
            except errors.LeaseNotFoundError:
                # Seen in real clusters after a restore from an old backup; the key then stays until someone deletes it.
                logger.warning("key %r hangs on lease %016x, which does not exist", key, lease)


def _read_revision(backend: Backend, name: bytes) -> int:
    value = backend.get(Bucket.META, name)
    return NEVER_COMPACTED if value is None else main_of(value)
