"""The log as Raft sees it: the durable part and the unstable end as one sequence, with commit and apply positions."""

from __future__ import annotations

from typing import Final

from storage.raft.log_storage import EntryUnavailableError, LogCompactedError, LogStorage
from storage.raft.messages import Entry, EntryType, Snapshot, entries_within
from storage.raft.unstable import Unstable

_SCAN_BYTES_MAX: Final = 1 << 20
"""Entry data looked at in one step, so that a scan of a long log does not copy all of it."""


class RaftLog:
    """``applied`` ≤ ``applying`` ≤ ``committed`` ≤ ``last_index()``. ``applying`` is the last entry given out to be applied.

    While a snapshot is to be installed the durable part does not count and nothing is given out.
    """

    __slots__ = ("applied", "applying", "committed", "storage", "unstable")

    def __init__(self, storage: LogStorage) -> None:
        self.storage = storage
        self.unstable = Unstable(storage.last_index() + 1)
        self.committed = storage.first_index() - 1
        self.applying = self.committed
        self.applied = self.committed

    def first_index(self) -> int:
        snapshot = self.unstable.snapshot
        return self.storage.first_index() if snapshot is None else snapshot.metadata.index + 1

    def last_index(self) -> int:
        unstable = self.unstable
        return unstable.offset + len(unstable.entries) - 1

    def last_term(self) -> int:
        return self.term(self.last_index())

    def term(self, index: int) -> int:
        """Raises LogCompactedError, EntryUnavailableError."""
        term = self.unstable.maybe_term(index)
        if term is not None:
            return term
        if index > self.last_index():
            raise EntryUnavailableError(index)
        if index >= self.unstable.offset:
            raise AssertionError(f"unstable entry {index} is missing")
        snapshot = self.unstable.snapshot
        if snapshot is not None:
            if index < snapshot.metadata.index:
                raise LogCompactedError(index)
            return snapshot.metadata.term
        return self.storage.term(index)

    def matches(self, index: int, term: int) -> bool:
        try:
            return self.term(index) == term
        except (LogCompactedError, EntryUnavailableError):
            return False

    def is_up_to_date(self, index: int, term: int) -> bool:
        """Whether a log that ends with (index, term) is at least as up to date as this one (Raft §5.4.1)."""
        last_term = self.last_term()
        return term > last_term or (term == last_term and index >= self.last_index())

    def append(self, entries: list[Entry]) -> int:
        """Add entries, replacing what stands at their indexes. Returns the new last index."""
        if entries:
            assert entries[0].index > self.committed, f"entry {entries[0].index} would replace a committed one (commit {self.committed})"
            self.unstable.truncate_and_append(entries)
        return self.last_index()

    def maybe_append(self, index: int, log_term: int, committed: int, entries: tuple[Entry, ...]) -> int | None:
        """The follower's part of AppendEntries (Raft figure 2, steps 2 to 5).

        Returns the last index that now matches the leader's log, None when (index, log_term) does not match here.
        """
        if not self.matches(index, log_term):
            return None
        last_new = index + len(entries)
        for position, entry in enumerate(entries):
            if not self.matches(entry.index, entry.term):
                assert entry.index > self.committed, f"entry {entry.index} conflicts with a committed one (commit {self.committed})"
                self.append(list(entries[position:]))
                break
        self.commit_to(min(committed, last_new))
        return last_new

    def find_conflict_by_term(self, index: int, term: int) -> tuple[int, int]:
        """The last index ≤ ``index`` whose term is ≤ ``term``, with its term: the furthest entry at which a log that holds
        (index, term) could agree with this one. Lets a leader skip a whole term of a follower's log at a time (Raft §5.3)."""
        index = min(index, self.last_index())
        while index > 0:
            try:
                ours = self.term(index)
            except LogCompactedError:
                return index, 0
            if ours <= term:
                return index, ours
            index -= 1
        return 0, 0

    def commit_to(self, index: int) -> None:
        if index > self.committed:
            assert index <= self.last_index(), f"commit {index} beyond the last entry {self.last_index()}: was the log lost?"
            self.committed = index

    def maybe_commit(self, index: int, term: int) -> bool:
        """Move the commit index if the entry is of ``term``: only entries of the leader's own term are committed by counting
        copies (Raft §5.4.2, figure 8)."""
        if index > self.committed and self.matches(index, term):
            self.commit_to(index)
            return True
        return False

    def entries(self, low: int, bytes_max: int) -> list[Entry]:
        """Entries from ``low`` on, cut to ``bytes_max`` but at least one if any is there. Raises LogCompactedError."""
        if low > self.last_index():
            return []
        return self.slice(low, self.last_index() + 1, bytes_max)

    def slice(self, low: int, high: int, bytes_max: int) -> list[Entry]:
        if low < self.first_index():
            raise LogCompactedError(low)
        offset = self.unstable.offset
        if low >= offset:
            return entries_within(self.unstable.slice(low, high), bytes_max)
        found = self.storage.entries(low, min(high, offset), bytes_max)
        if high <= offset or len(found) < offset - low:
            return found
        return entries_within(found + self.unstable.slice(offset, high), bytes_max)

    def has_next_committed(self) -> bool:
        unstable = self.unstable
        return self.applying < min(self.committed, unstable.offset - 1) and unstable.snapshot is None

    def next_committed(self, bytes_max: int) -> list[Entry]:
        """Committed entries that have not been given out. Only durable ones: what is applied here can be replayed here."""
        high = min(self.committed, self.unstable.offset - 1)
        if self.applying >= high or self.unstable.snapshot is not None:
            return []
        return self.storage.entries(self.applying + 1, high + 1, bytes_max)

    def has_unapplied_conf_change(self) -> bool:
        """Whether a configuration change is committed but not applied."""
        low, high = self.applied + 1, self.committed + 1
        while low < high:
            page = self.slice(low, high, _SCAN_BYTES_MAX)
            if any(entry.type is not EntryType.NORMAL for entry in page):
                return True
            low += len(page)
        return False

    def accept_applying(self, index: int) -> None:
        assert self.applying <= index <= self.committed, (self.applying, index, self.committed)
        self.applying = index

    def applied_to(self, index: int) -> None:
        assert self.applied <= index <= self.applying, (self.applied, index, self.applying)
        self.applied = index

    def snapshot(self) -> Snapshot:
        """What a member is sent that lacks compacted entries. Raises SnapshotUnavailableError."""
        return self.storage.snapshot() if self.unstable.snapshot is None else self.unstable.snapshot

    def restore(self, snapshot: Snapshot) -> None:
        """Take ``snapshot``, which is newer than all that is committed here, in place of the whole log."""
        assert snapshot.metadata.index > self.committed, (snapshot.metadata.index, self.committed)
        self.committed = snapshot.metadata.index
        self.unstable.restore(snapshot)

    def snapshot_installed(self, index: int) -> None:
        """The state machine and the log storage hold what the snapshot of ``index`` holds."""
        assert self.storage.last_index() >= index, f"snapshot {index} is not in the log storage, which ends at {self.storage.last_index()}"
        self.unstable.snapshot_stable(index)
        self.applying = max(self.applying, index)
        self.applied = max(self.applied, index)
