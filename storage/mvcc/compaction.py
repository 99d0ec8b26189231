"""Physical compaction: removing from index and backend the records that no allowed read needs, in slices.

The compact revision itself takes effect at once (``Store.compact``); what follows is housekeeping and may take its time. It goes in
slices that are short enough to run between two requests on an event loop. ``scheduledCompactRev`` is written with the first slice at
the latest and ``finishedCompactRev`` after the last, so a crash between them is mended by starting over at the next start.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from storage.backend.backend import Bucket
from storage.backend.schema import FINISHED_COMPACT_REVISION
from storage.mvcc.revision import REVISION_BYTES, revision_key

if TYPE_CHECKING:
    from storage.mvcc.store import Store

#: Keys or records looked at in one slice: about 2 ms of work (etcd's batch is 1000 too).
SLICE_RECORDS = 1000

#: etcd's pause between slices is 10 ms; less is enough here, since a slice waits for no disk.
SLICE_PAUSE_SECONDS = 0.002


class Compaction:
    """One run at main revision ``at``: first over the index, which says what to keep, then over the records up to ``at``."""

    __slots__ = ("_end", "_keep", "_next_key", "_next_record", "_store", "at", "done", "records_removed")

    def __init__(self, store: Store, at: int) -> None:
        self._store = store
        self.at = at
        self.done = False
        self.records_removed = 0
        self._keep: set[bytes] = set()
        self._next_key: bytes | None = b""
        self._next_record = revision_key(0)
        self._end = revision_key(at + 1)

    def step(self, records_max: int = SLICE_RECORDS) -> bool:
        """Do one slice; answers whether all is done."""
        assert not self.done
        if self._next_key is not None:
            self._compact_index(self._next_key, records_max)
        else:
            self._remove_records(records_max)
        return self.done

    def _compact_index(self, start: bytes, keys_max: int) -> None:
        index = self._store.index
        slice_ = index.key_indexes_from(start, keys_max)
        for key_index in slice_:
            kept = key_index.compact(self.at)
            if kept is not None:
                self._keep.add(kept)
            if key_index.is_empty:
                index.drop(key_index.key)
        self._next_key = slice_[-1].key + b"\0" if len(slice_) == keys_max else None

    def _remove_records(self, records_max: int) -> None:
        backend, keep = self._store.backend, self._keep
        records = backend.keys(Bucket.KEY, self._next_record, self._end, records_max)
        for record in records:
            if record[:REVISION_BYTES] not in keep:
                backend.delete(Bucket.KEY, record)
                self.records_removed += 1
        if len(records) < records_max:
            backend.put(Bucket.META, FINISHED_COMPACT_REVISION, revision_key(self.at))
            self.done = True
        else:
            self._next_record = records[-1] + b"\0"


async def run(store: Store) -> None:
    """Finish the store's compactions, giving way to other tasks between slices."""
    while store.compaction_step():  # noqa: ASYNC110  (a pause between slices of work, not a poll)
        await asyncio.sleep(SLICE_PAUSE_SECONDS)
