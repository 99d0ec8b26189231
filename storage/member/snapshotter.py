"""When to note in the log how far the backend is, and when to forget entries in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from storage.backend import schema
from storage.backend.backend import Backend, Bucket
from storage.member.membership import decode_conf_state
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, SnapshotMetadata

SEGMENTS_MAX: Final = 4
"""A marker is also due when the log has grown beyond so many files, so that a log of few large entries stays small on disk, and at a
restart in memory."""

CATCH_UP_BYTES_MAX: Final = 128 * 1024 * 1024
"""Of entry data kept in memory for followers that lag. Entries may be a megabyte each; a follower that lacks so much is sent the database
in the same time."""

WEIGH_EVERY: Final = 10
"""Looks at the log in memory from one weighing to the next: it is a pass over all entries."""


class Snapshotter:
    """The backend is the snapshot: a marker in the log says up to where a replay is not needed. It names the entry that is *durable* in
    the backend at that time, so nothing waits for the disk here."""

    def __init__(
        self,
        backend: Backend,
        log_storage: MemoryLogStorage,
        *,
        snapshot_count: int,
        catch_up_entries: int,
        marked_index: int,
        mark: Callable[[SnapshotMetadata], None],
    ) -> None:
        """``catch_up_entries`` stay in memory for followers that lag; a single voter needs none."""
        self._backend = backend
        self._log_storage = log_storage
        self._snapshot_count = snapshot_count
        self._catch_up_entries = catch_up_entries
        self._marked_index = marked_index
        self._mark = mark
        self._looks = 0

    def restored(self, backend: Backend, index: int) -> None:
        """The log begins anew after ``index``, on another backend."""
        self._backend = backend
        self._marked_index = index

    def maybe_mark(self, applied: int, conf_state: ConfState, *, segment_count: int) -> bool:
        """Mark if ``snapshot_count`` entries were applied since the last marker, or the log is long, and the backend has (half) that
        on disk."""
        is_long = segment_count > SEGMENTS_MAX
        if applied - self._marked_index < self._snapshot_count and not is_long:
            return False
        durable = self._durable(conf_state)
        if durable.index - self._marked_index < (1 if is_long else max(1, self._snapshot_count // 2)):
            return False  # the batch that is on its way to the disk will do
        self._marked_index = durable.index
        self._mark(durable)
        return True

    def maybe_compact_memory(self, applied: int) -> bool:
        """Forget applied entries in memory; a follower that lacks them is sent the backend."""
        keep = self._catch_up_entries
        self._looks += 1
        if keep and self._looks % WEIGH_EVERY == 0 and self._weight() > CATCH_UP_BYTES_MAX:
            keep = min(keep, self._log_storage.entry_count()) // 2
        if self._log_storage.entry_count() <= keep or applied - keep < self._log_storage.first_index():
            return False
        self._log_storage.compact(applied - keep)
        return True

    def _weight(self) -> int:
        """Bytes of the entries in memory."""
        log = self._log_storage
        entries = log.entries(log.first_index(), log.last_index() + 1, sys.maxsize) if log.entry_count() else []
        return sum([len(entry.data) for entry in entries])

    def _durable(self, conf_state: ConfState) -> SnapshotMetadata:
        """What a crash now would leave of the backend. ``conf_state`` is that of the log's beginning, if the backend holds none."""
        durable = self._backend.durable_get(Bucket.META, schema.CONF_STATE)
        return SnapshotMetadata(
            conf_state if durable is None else decode_conf_state(durable),
            schema.read_uint64(self._backend, Bucket.META, schema.CONSISTENT_INDEX, durable=True),
            schema.read_uint64(self._backend, Bucket.META, schema.TERM, durable=True),
        )
