"""The end of the log that is not known to be durable yet."""

from __future__ import annotations

from storage.raft.messages import Entry, Snapshot


class Unstable:
    """Entries from ``offset`` on. Those before ``offset_in_progress`` have been given to the disk, which has not answered yet.

    Example: offset 5, entries 5 6 7, offset_in_progress 7: the log storage ends at 4, 5 and 6 are being written, 7 is not yet
    handed out. When the disk reports 6, offset becomes 7.

    ``snapshot``, if any, is to be installed before the entries: it takes the place of the whole log before ``offset``.
    ``snapshot_in_progress``: it has been given to the disk.
    """

    __slots__ = ("entries", "offset", "offset_in_progress", "snapshot", "snapshot_in_progress")

    def __init__(self, offset: int) -> None:
        self.entries: list[Entry] = []
        self.offset = offset
        self.offset_in_progress = offset
        self.snapshot: Snapshot | None = None
        self.snapshot_in_progress = False

    def maybe_term(self, index: int) -> int | None:
        position = index - self.offset
        if 0 <= position < len(self.entries):
            return self.entries[position].term
        return None

    def next_entries(self) -> list[Entry]:
        """What has not been given to the disk yet."""
        return self.entries[self.offset_in_progress - self.offset :]

    def accept_in_progress(self) -> None:
        """What ``next_entries`` gave, and the snapshot, is at the disk now."""
        self.offset_in_progress = self.offset + len(self.entries)
        self.snapshot_in_progress = self.snapshot is not None

    def stable_to(self, index: int, term: int) -> None:
        """The disk holds the entry (index, term) and all before it. An answer about an entry that a new leader has overwritten since
        is ignored: the entry now at that index is another one."""
        if self.maybe_term(index) != term:
            return
        del self.entries[: index + 1 - self.offset]
        self.offset = index + 1
        self.offset_in_progress = max(self.offset_in_progress, self.offset)

    def restore(self, snapshot: Snapshot) -> None:
        """Begin anew after ``snapshot``. What is at the disk now is of no use any more."""
        self.entries = []
        self.offset = self.offset_in_progress = snapshot.metadata.index + 1
        self.snapshot = snapshot
        self.snapshot_in_progress = False

    def snapshot_stable(self, index: int) -> None:
        """The snapshot of ``index`` is installed. A newer one may have come since."""
        if self.snapshot is not None and self.snapshot.metadata.index == index:
            self.snapshot = None
            self.snapshot_in_progress = False

    def truncate_and_append(self, entries: list[Entry]) -> None:
        first = entries[0].index
        if first == self.offset + len(self.entries):
            self.entries.extend(entries)
            return
        if first <= self.offset:
            self.entries = list(entries)
            self.offset = first
        else:
            del self.entries[first - self.offset :]
            self.entries.extend(entries)
        # what follows must be written (again), also where its index has been given to the disk before
        self.offset_in_progress = max(self.offset, min(self.offset_in_progress, first))

    def slice(self, low: int, high: int) -> list[Entry]:
        assert self.offset <= low <= high <= self.offset + len(self.entries), (self.offset, low, high, len(self.entries))
        return self.entries[low - self.offset : high - self.offset]
