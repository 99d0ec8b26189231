"""The store of versions with watches on it."""

from __future__ import annotations

from collections.abc import Sequence

from storage import api, errors
from storage.backend.backend import Backend
from storage.mvcc import store
from storage.mvcc.read_txn import RangeResult
from storage.mvcc.write_txn import WriteTxn
from storage.watch import event_batch, history
from storage.watch.watcher import Watcher
from storage.watch.watcher_group import RangeGroup, WatcherGroup


class WatchableStore:
    """``mvcc.Store`` whose write transactions, whoever makes them, post their events to watchers before ``end`` returns."""

    def __init__(self, backend: Backend, lessor: store.LeaseAttacher) -> None:
        """Load what ``backend`` holds; the lessor has loaded its leases. Raises CorruptError."""
        self.store = store.Store(backend, lessor)
        self.store.set_observer(self._notify)
        self._synced: WatcherGroup[Watcher] = WatcherGroup()
        self._lagging: dict[Watcher, None] = {}
        self.is_closed = False

    @property
    def current_revision(self) -> int:
        return self.store.current_revision

    @property
    def compact_revision(self) -> int:
        return self.store.compact_revision

    def range(self, request: api.RangeRequest) -> RangeResult:
        """Raises FutureRevisionError, CompactedError."""
        return self.store.range(request)

    def write_txn(self) -> WriteTxn:
        return self.store.write_txn()

    def compact(self, revision: int) -> None:
        """Raises CompactedError, FutureRevisionError. Lagging watchers that it overtakes are told at their next ``take``."""
        self.store.compact(revision)

    def compaction_step(self) -> bool:
        """See ``mvcc.Store``."""
        return self.store.compaction_step()

    def set_consistent_index(self, index: int, term: int) -> None:
        """See ``mvcc.Store``."""
        self.store.set_consistent_index(index, term)

    def watch(self, request: api.WatchRequest) -> Watcher:
        watcher = Watcher(self, request, self.current_revision)
        if watcher.is_lagging:
            self._lagging[watcher] = None
        else:
            self._synced.add(watcher, watcher.key, watcher.range_end, watcher.options)
        return watcher

    def restore(self, backend: Backend) -> None:
        """Go on from another backend; watchers catch up from its history. The lessor has been restored before."""
        seen = self.current_revision
        self.store.restore(backend)
        for watcher in list(self._synced.watchers()):
            next_revision = max(seen + 1, watcher.start_revision)
            if next_revision <= self.current_revision:
                self._become_lagging(watcher, next_revision)
                watcher.wake()

    def close(self) -> None:
        """Every watcher raises StoppedError once what it has buffered is taken; idempotent."""
        self.is_closed = True
        for watcher in [*self._synced.watchers(), *self._lagging]:
            watcher.wake()

    def watcher_count(self) -> int:
        return sum(1 for _ in self._synced.watchers()) + len(self._lagging)

    def pending_events(self) -> int:
        """Events that wait in the buffers of watchers."""
        return sum(watcher.pending_events() for watcher in (*self._synced.watchers(), *self._lagging))

    def lagging_count(self) -> int:
        return len(self._lagging)

    def forget(self, watcher: Watcher) -> None:
        """See ``watcher.History``."""
        if watcher.is_lagging:
            del self._lagging[watcher]
        else:
            self._synced.remove(watcher, watcher.key, watcher.range_end, watcher.options)

    def catch_up(self, watcher: Watcher) -> int | None:
        """See ``watcher.History``."""
        if watcher.next_revision < self.compact_revision:
            raise errors.CompactedError(self.compact_revision)
        found = history.read_slice(self.store, watcher.next_revision, watcher.key, watcher.range_end)
        for revision in found.revisions:
            selected = event_batch.select(revision.events, watcher.options, self._prev_kv)
            if selected:
                batch = api.WatchBatch(revision=revision.revision, events=selected)
                watcher.post(batch, event_batch.payload_bytes(selected))
        watcher.next_revision = found.next_revision
        if not found.is_complete:
            return found.next_revision - 1
        watcher.is_lagging = False
        del self._lagging[watcher]
        self._synced.add(watcher, watcher.key, watcher.range_end, watcher.options)
        return None

    def _become_lagging(self, watcher: Watcher, next_revision: int) -> None:
        self._synced.remove(watcher, watcher.key, watcher.range_end, watcher.options)
        watcher.is_lagging = True
        watcher.next_revision = next_revision
        self._lagging[watcher] = None

    def _notify(self, revision: int, events: Sequence[api.Event]) -> None:
        """Post the events of a transaction that has just ended to the synced watchers."""
        if len(events) == 1:
            for group in self._synced.covering(events[0].kv.key):
                self._post(revision, events, group)
            return
        seen_by: dict[RangeGroup[Watcher], list[api.Event]] = {}
        for event in events:
            for group in self._synced.covering(event.kv.key):
                seen_by.setdefault(group, []).append(event)
        for group, seen in seen_by.items():
            self._post(revision, seen, group)

    def _post(self, revision: int, events: Sequence[api.Event], group: RangeGroup[Watcher]) -> None:
        slow: list[Watcher] = []
        for options, watchers in group.by_options.items():
            selected = event_batch.select(events, options, self._prev_kv)
            if not selected:
                continue
            batch = api.WatchBatch(revision=revision, events=selected)
            size = event_batch.payload_bytes(selected)
            for watcher in watchers:
                if revision < watcher.start_revision:
                    continue
                if watcher.has_room():
                    watcher.post(batch, size)
                else:
                    slow.append(watcher)
        for watcher in slow:
            self._become_lagging(watcher, revision)

    def _prev_kv(self, event: api.Event) -> api.KeyValue | None:
        """The key before the event's revision; None if it did not exist, or if that revision is compacted."""
        before = event.kv.mod_revision - 1
        if before < self.compact_revision:
            return None
        return self.store.get(event.kv.key, before)
