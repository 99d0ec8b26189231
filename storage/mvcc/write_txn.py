"""One write transaction: its changes share one main revision and are numbered by sub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage import api
from storage.backend.backend import Bucket
from storage.mvcc import kv_codec, read_txn
from storage.mvcc.revision import TOMBSTONE_SUFFIX, revision_key

if TYPE_CHECKING:
    from storage.mvcc.store import Store


class WriteTxn:
    """Made by ``Store.write_txn``; ``end`` must follow. There is no rollback: check everything before the first change.

    ``changes`` are the events so far, in order. ``revision`` is the newest main revision that the transaction itself can read: the
    store's until it has changed something, then its own.
    """

    __slots__ = ("_main", "_store", "changes")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._main = store.current_revision + 1
        self.changes: list[api.Event] = []

    @property
    def revision(self) -> int:
        return self._main if self.changes else self._main - 1

    def range(self, request: api.RangeRequest) -> read_txn.RangeResult:
        """As ``Store.range``, with the changes made so far. Raises FutureRevisionError, CompactedError."""
        return read_txn.read_range(self._store, request, self.revision)

    def get(self, key: bytes) -> api.KeyValue | None:
        return read_txn.read_key(self._store, key)

    def put(self, key: bytes, value: bytes, lease: int = 0) -> api.KeyValue:
        """Write a version of ``key``; ``lease``, if not 0, exists. Answers what was written."""
        store, main = self._store, self._main
        revision = revision_key(main, len(self.changes))
        generation = store.index.put(key, revision, main)
        created, version = generation.created, generation.version
        store.backend.put(Bucket.KEY, revision, kv_codec.encode_fields(key, created, main, version, value, lease))
        kv = kv_codec.new_key_value(key, created, main, version, value, lease)
        self.changes.append(api.Event(api.EventType.PUT, kv))
        store.counts.puts += 1
        store.lessor.attach(key, lease)
        return kv

    def delete_range(self, key: bytes, range_end: bytes = b"") -> int:
        """Delete every key of the range that exists; answers how many."""
        store, main, changes = self._store, self._main, self.changes
        keys = store.index.live_keys(key, range_end)
        store.counts.deletes += 1
        for each in keys:
            revision = revision_key(main, len(changes))
            store.backend.put(Bucket.KEY, revision + TOMBSTONE_SUFFIX, kv_codec.encode_tombstone(each))
            store.index.tombstone(each, revision)
            changes.append(api.Event(api.EventType.DELETE, kv_codec.new_key_value(each, 0, main, 0, b"", 0)))
            store.lessor.attach(each, 0)
        return len(keys)

    def end(self) -> None:
        """Make the changes visible to others and tell the observer; a transaction without changes moves no revision."""
        if self.changes:
            self._store.finish_write(self._main, self.changes)
