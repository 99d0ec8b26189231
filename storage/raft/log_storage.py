"""Where the durable part of the log is read from: the protocol and its in-memory form.

The member keeps the WAL as the durable truth and this list in memory; the WAL is written first.
"""

from __future__ import annotations

from typing import Protocol

from storage.raft.messages import ConfState, Entry, HardState, SnapshotMetadata, entries_within


class LogCompactedError(Exception):
    """The entry asked for was compacted away; a snapshot holds what it did."""


class EntryUnavailableError(Exception):
    """The entry asked for does not exist (yet)."""


class LogStorage(Protocol):
    def initial_state(self) -> tuple[HardState, ConfState]:
        """What was saved before the last stop."""

    def first_index(self) -> int:
        """The first index that ``entries`` can give."""

    def last_index(self) -> int: ...

    def term(self, index: int) -> int:
        """The term of an entry from ``first_index - 1`` on. Raises LogCompactedError, EntryUnavailableError."""

    def entries(self, low: int, high: int, bytes_max: int) -> list[Entry]:
        """Entries of [low, high), cut to ``bytes_max`` but at least one. Raises LogCompactedError, EntryUnavailableError."""


class MemoryLogStorage:
    """The log in a list. ``entries[0]`` is a stand-in for the last compacted entry: only its index and term count."""

    def __init__(self, snapshot: SnapshotMetadata | None = None, hard_state: HardState | None = None) -> None:
        snapshot = snapshot or SnapshotMetadata()
        self.hard_state = hard_state or HardState()
        self.conf_state = snapshot.conf_state
        self._entries: list[Entry] = [Entry(snapshot.term, snapshot.index)]

    def initial_state(self) -> tuple[HardState, ConfState]:
        return self.hard_state, self.conf_state

    def first_index(self) -> int:
        return self._entries[0].index + 1

    def last_index(self) -> int:
        return self._entries[-1].index

    def term(self, index: int) -> int:
        offset = index - self._entries[0].index
        if offset < 0:
            raise LogCompactedError(index)
        if offset >= len(self._entries):
            raise EntryUnavailableError(index)
        return self._entries[offset].term

    def entries(self, low: int, high: int, bytes_max: int) -> list[Entry]:
        offset = self._entries[0].index
        if low <= offset:
            raise LogCompactedError(low)
        if high > self.last_index() + 1:
            raise EntryUnavailableError(high - 1)
        return entries_within(self._entries[low - offset : high - offset], bytes_max)

    def append(self, entries: list[Entry]) -> None:
        """Add durable entries; those that overlap replace what was there, and everything after it."""
        if not entries:
            return
        offset = self._entries[0].index
        if entries[-1].index <= offset:
            return  # all of it is compacted
        if entries[0].index <= offset:
            entries = entries[offset + 1 - entries[0].index :]
        keep = entries[0].index - offset
        assert keep <= len(self._entries), f"gap in the log: have up to {self.last_index()}, got {entries[0].index}"
        if keep < len(self._entries):
            del self._entries[keep:]
        self._entries.extend(entries)

    def compact(self, index: int) -> None:
        """Forget the entries up to and including ``index``, which must be applied."""
        offset = index - self._entries[0].index
        if offset <= 0:
            return
        assert offset < len(self._entries), f"compaction at {index} beyond the last entry {self.last_index()}"
        self._entries[0] = Entry(self._entries[offset].term, index)
        del self._entries[1 : offset + 1]

    def entry_count(self) -> int:
        return len(self._entries) - 1
