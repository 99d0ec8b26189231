"""Where the durable part of the log is read from: the protocol and its in-memory form.

The member keeps the WAL as the durable truth and this list in memory; the WAL is written first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from storage.raft.messages import ConfState, Entry, HardState, Snapshot, SnapshotMetadata, entries_within


class LogCompactedError(Exception):
    """The entry asked for was compacted away; a snapshot holds what it did."""


class EntryUnavailableError(Exception):
    """The entry asked for does not exist (yet)."""


class SnapshotUnavailableError(Exception):
    """No snapshot can be sent now; the leader asks again later."""


class LogStorage(Protocol):
    def initial_state(self) -> tuple[HardState, ConfState]:
        """What was saved before the last stop. The configuration is the one in force at the applied index of ``Config``."""

    def first_index(self) -> int:
        """The first index that ``entries`` can give."""

    def last_index(self) -> int: ...

    def term(self, index: int) -> int:
        """The term of an entry from ``first_index - 1`` on. Raises LogCompactedError, EntryUnavailableError."""

    def entries(self, low: int, high: int, bytes_max: int) -> list[Entry]:
        """Entries of [low, high), cut to ``bytes_max`` but at least one. Raises LogCompactedError, EntryUnavailableError."""

    def snapshot(self) -> Snapshot:
        """The newest snapshot, from whose end on the log goes on (``metadata.index`` ≥ ``first_index - 1``).

        It may be metadata only, the state itself then goes another way, and may be newer there: the transport puts the metadata of
        what it really sends into the message. Raises SnapshotUnavailableError.
        """


class MemoryLogStorage:
    """The log in a list. ``entries[0]`` is a stand-in for the last compacted entry: only its index and term count."""

    def __init__(self, snapshot: SnapshotMetadata | None = None, hard_state: HardState | None = None) -> None:
        snapshot = snapshot or SnapshotMetadata()
        self.hard_state = hard_state or HardState()
        self.conf_state = snapshot.conf_state
        self._snapshot = snapshot
        self._snapshot_source: Callable[[], SnapshotMetadata] | None = None
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

    def use_snapshots_of(self, source: Callable[[], SnapshotMetadata]) -> None:
        """``source`` tells up to where the state machine can be sent now, each time a snapshot is asked for. A member that is added
        long after the last ``set_snapshot`` needs one that knows of it."""
        self._snapshot_source = source

    def snapshot(self) -> Snapshot:
        """Metadata only."""
        if self._snapshot_source is not None:
            self.set_snapshot(self._snapshot_source())
        if self._snapshot.index == 0 or self._snapshot.index < self._entries[0].index:
            raise SnapshotUnavailableError(f"the log begins after {self._entries[0].index}, the last snapshot is of {self._snapshot.index}")
        return Snapshot(metadata=self._snapshot)

    def set_snapshot(self, metadata: SnapshotMetadata) -> None:
        """The state machine can be sent as it was after ``metadata.index`` (or later). Older ones than the last are ignored.

        Call it before ``compact`` passes the last one, or a member that lags finds no snapshot to start from.
        """
        if metadata.index > self._snapshot.index:
            assert metadata.index <= self.last_index(), (metadata.index, self.last_index())
            self._snapshot = metadata

    def apply_snapshot(self, metadata: SnapshotMetadata) -> None:
        """A snapshot from the leader is installed: it takes the place of the whole log."""
        assert metadata.index > self._entries[0].index, (metadata.index, self._entries[0].index)
        self._snapshot = metadata
        self.conf_state = metadata.conf_state
        self._entries = [Entry(metadata.term, metadata.index)]
