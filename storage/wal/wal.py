"""``Wal``: the log of a member on disk. See the package docstring for the format and the promises."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage import failpoints
from storage.errors import CorruptError, DataDirError, DataDirLockedError
from storage.raft import codec
from storage.raft.messages import Entry, HardState, SnapshotMetadata
from storage.wal.record import FRAME_BYTES_MAX, Frame, Record, RecordType, encode_frame, encode_payload, encode_record, parse_records
from storage.wal.repair import Repair, read_segments
from storage.wal.segment import SegmentName, SegmentWriter, list_segments, remove_temporary_files, sync_directory

SEGMENT_BYTES: Final = 64 * 1024 * 1024
"""A segment is closed once it is this long: small enough to be read at once at a restart, large enough to be rare."""

MARKED_SEGMENT_BYTES: Final = 4 * 1024 * 1024
"""With a marker a segment is closed once it is this long, so that the next marker can release it: a restart then reads little more than
what was written since the last two markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a log holds. ``entries`` are those after ``snapshot.index``, without gaps and without overwritten ones."""

    metadata: bytes
    hard_state: HardState
    snapshot: SnapshotMetadata
    entries: list[Entry]
    repair: Repair | None


class Wal:
    def __init__(self, directory: Path, lock_fd: int, *, segment_bytes: int, sync: bool) -> None:
        self.directory = directory
        self._lock_fd = lock_fd
        self._segment_bytes = segment_bytes
        #: written since this log was opened; for metrics, from any thread
        self.written_bytes = 0
        self._sync = sync
        self._metadata = b""
        self._hard_state = HardState()
        self._snapshot = SnapshotMetadata()
        self._last_index = 0
        self._number = 0
        self._checksum = 0
        self._writer: SegmentWriter | None = None
        self._names: list[SegmentName] = []

    # -- making and opening

    @classmethod
    def exists(cls, directory: Path) -> bool:
        """Raises DataDirError when that cannot be told."""
        try:
            return directory.is_dir() and bool(list_segments(directory))
        except OSError as error:
            raise _unusable(directory, error) from error

    @classmethod
    def create(
        cls, directory: Path, *, metadata: bytes, snapshot: SnapshotMetadata, segment_bytes: int = SEGMENT_BYTES, sync: bool = True
    ) -> Wal:
        """Make a new log. ``snapshot`` is its starting point (index 0 and the first voters). Raises DataDirError, DataDirLockedError."""
        lock_fd = -1
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if sync:
                sync_directory(directory.parent)
            lock_fd = _lock(directory)
            remove_temporary_files(directory)
            wal = cls(directory, lock_fd, segment_bytes=segment_bytes, sync=sync)
            wal._metadata = metadata
            wal._snapshot = snapshot
            wal._last_index = snapshot.index
            failpoints.hit("wal.before_create")
            wal._begin_segment(SegmentName(0, snapshot.index + 1))
            failpoints.hit("wal.after_create")
            return wal
        except BaseException as error:
            raise _give_up(directory, lock_fd, error) from None

    @classmethod
    def open(cls, directory: Path, *, segment_bytes: int = SEGMENT_BYTES, sync: bool = True) -> tuple[Wal, Replay]:
        """Read all, cut a torn tail, be ready to append. Raises CorruptError, DataDirError, DataDirLockedError."""
        lock_fd = -1
        try:
            lock_fd = _lock(directory)
            wal = cls(directory, lock_fd, segment_bytes=segment_bytes, sync=sync)
            return wal, wal._load()
        except BaseException as error:
            raise _give_up(directory, lock_fd, error) from None

    def _load(self) -> Replay:
        remove_temporary_files(self.directory)
        reader = _Reader()
        scanned = read_segments(self.directory, reader.take)
        replay = reader.finish(self.directory, scanned.repair)
        for name in scanned.dropped:
            (self.directory / name.file_name()).unlink()
            sync_directory(self.directory)
        self._metadata = replay.metadata
        self._hard_state = replay.hard_state
        self._snapshot = replay.snapshot
        self._last_index = replay.entries[-1].index if replay.entries else replay.snapshot.index
        self._number = scanned.number + 1
        self._checksum = scanned.checksum
        self._names = [name for name in list_segments(self.directory) if name not in scanned.dropped]
        self._writer = SegmentWriter.open(self.directory, scanned.last, end=scanned.end, sync=self._sync)
        return replay

    # -- writing

    def save(self, hard_state: HardState | None, entries: Sequence[Entry]) -> None:
        """Make them durable as one frame. Raises OSError; then nothing more can be written."""
        records = [encode_record(RecordType.ENTRY, codec.encode_entry(entry)) for entry in entries]
        if hard_state is not None:
            self._hard_state = hard_state
            records.append(encode_record(RecordType.STATE, codec.encode_hard_state(hard_state)))
        if not records:
            return
        self._append(encode_payload(records))
        if entries:
            self._last_index = entries[-1].index
        self._maybe_rotate(self._segment_bytes)

    def save_snapshot(self, snapshot: SnapshotMetadata) -> None:
        """Note that the state machine holds all up to ``snapshot.index`` durably: a replay begins after it."""
        assert snapshot.index >= self._snapshot.index, (snapshot.index, self._snapshot.index)
        self._snapshot = snapshot
        failpoints.hit("wal.before_snapshot_marker")
        self._append(encode_record(RecordType.SNAPSHOT, codec.encode_snapshot_metadata(snapshot)))
        failpoints.hit("wal.after_snapshot_marker")
        self._maybe_rotate(min(self._segment_bytes, MARKED_SEGMENT_BYTES))

    def restart_at(self, snapshot: SnapshotMetadata) -> None:
        """Note that a snapshot from the leader takes the place of the whole log: no entry that was written before counts any more, also
        none after ``snapshot.index``. A replay tells such a marker from ``save_snapshot``'s by its entry, which the log does not hold."""
        assert snapshot.index > self._snapshot.index, (snapshot.index, self._snapshot.index)
        self._snapshot = snapshot
        self._last_index = snapshot.index
        failpoints.hit("wal.before_restart")
        self._append(encode_record(RecordType.SNAPSHOT, codec.encode_snapshot_metadata(snapshot)))
        failpoints.hit("wal.after_restart")
        self._maybe_rotate(self._segment_bytes)

    def release(self) -> int:
        """Remove the segments that hold only entries up to the last snapshot marker. Returns how many."""
        removed = 0
        while len(self._names) > 1 and self._names[1].first_index <= self._snapshot.index + 1:
            failpoints.hit("wal.before_release")
            (self.directory / self._names[0].file_name()).unlink()
            if self._sync:
                # One at a time: a file system may forget removals in any order, and a log with a hole is refused.
                sync_directory(self.directory)
            failpoints.hit("wal.after_release")
            del self._names[0]
            removed += 1
        return removed

    def close(self) -> None:
        """Idempotent."""
        if self._writer is not None:
            self._writer.finish()
            self._writer = None
        self._unlock()

    def abandon(self) -> None:
        """Close after a failure, without touching the files."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None
        self._unlock()

    @property
    def segment_count(self) -> int:
        return len(self._names)

    @property
    def snapshot(self) -> SnapshotMetadata:
        return self._snapshot

    # -- inside

    def _append(self, payload: bytes) -> None:
        self.written_bytes += len(payload)
        assert self._writer is not None, "the log is closed"
        assert len(payload) <= FRAME_BYTES_MAX, len(payload)
        frame, checksum = encode_frame(payload, number=self._number, previous=self._checksum)
        failpoints.hit("wal.before_write")
        self._writer.append(frame)
        failpoints.hit("wal.after_write")
        self._number += 1
        self._checksum = checksum

    def _maybe_rotate(self, segment_bytes: int) -> None:
        assert self._writer is not None
        if self._writer.end < segment_bytes:
            return
        failpoints.hit("wal.before_rotate")
        self._writer.finish()
        self._writer = None
        self._begin_segment(SegmentName(self._names[-1].sequence + 1, self._last_index + 1))
        failpoints.hit("wal.after_rotate")

    def _begin_segment(self, name: SegmentName) -> None:
        payload = encode_payload(
            (
                encode_record(RecordType.METADATA, self._metadata),
                encode_record(RecordType.SNAPSHOT, codec.encode_snapshot_metadata(self._snapshot)),
                encode_record(RecordType.STATE, codec.encode_hard_state(self._hard_state)),
            )
        )
        frame, checksum = encode_frame(payload, number=self._number, previous=self._checksum)
        self._writer = SegmentWriter.create(self.directory, name, frame, sync=self._sync)
        self._number += 1
        self._checksum = checksum
        self._names.append(name)

    def _unlock(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


class _Reader:
    """Builds the Replay from the records in their order."""

    def __init__(self) -> None:
        self.metadata: bytes | None = None
        self.hard_state = HardState()
        self.snapshot = SnapshotMetadata()
        self.entries: list[Entry] = []

    def take(self, path: Path, frame: Frame) -> None:
        """Raises CorruptError for a frame that is whole and makes no sense."""
        try:
            self._take(parse_records(frame.payload))
        except ValueError as error:
            raise CorruptError(f"{path}: frame {frame.number} at offset {frame.offset} cannot be read: {error}") from error

    def _take(self, records: list[Record]) -> None:
        for record in records:
            if record.type == RecordType.ENTRY:
                self._take_entry(codec.decode_entry(record.data))
            elif record.type == RecordType.STATE:
                self.hard_state = codec.decode_hard_state(record.data)
            elif record.type == RecordType.SNAPSHOT:
                self._take_snapshot(codec.decode_snapshot_metadata(record.data))
            elif record.type == RecordType.METADATA:
                if self.metadata not in (None, record.data):
                    raise ValueError("the metadata differs from that of an older segment")
                self.metadata = record.data
            else:
                raise ValueError(f"unknown record type {record.type}")

    def _take_snapshot(self, snapshot: SnapshotMetadata) -> None:
        """A marker of what is applied leaves the entries after it. That of a snapshot from the leader replaces the log: its entry is not
        there, or is another one (of another term). Entries that are left after such a one would make the log look newer than it is,
        and its votes go to a leader that lacks what was committed (Raft §5.4.1)."""
        known = (self.snapshot.index, self.snapshot.term)
        self.snapshot = snapshot
        entries = self.entries
        if not entries or known == (snapshot.index, snapshot.term):
            return  # the second is the head of a new segment
        offset = snapshot.index - entries[0].index
        if offset >= len(entries) or (offset >= 0 and entries[offset].term != snapshot.term):
            self.entries = []
        else:
            self._forget_up_to(snapshot.index)

    def _forget_up_to(self, index: int) -> None:
        """What a marker covers is not needed; a log with large entries would not fit into memory otherwise."""
        if self.entries and self.entries[0].index <= index:
            del self.entries[: index + 1 - self.entries[0].index]

    def _take_entry(self, entry: Entry) -> None:
        """An entry replaces the one at its index and all after it (a newer leader overwrote them, Raft §5.3). It may replace all that
        is known and begin before it: the entries between were in a segment that is released since. ``finish`` sees gaps."""
        if entry.index <= self.snapshot.index:
            return
        if not self.entries or entry.index < self.entries[0].index:
            self.entries = [entry]
            return
        keep = entry.index - self.entries[0].index
        if keep > len(self.entries):
            raise ValueError(f"entry {entry.index} does not follow entry {self.entries[-1].index}")
        if keep < len(self.entries):
            del self.entries[keep:]
        self.entries.append(entry)

    def finish(self, directory: Path, repair: Repair | None) -> Replay:
        snapshot = self.snapshot
        entries = self.entries
        if entries and entries[0].index != snapshot.index + 1:
            raise CorruptError(f"{directory}: entries {snapshot.index + 1} to {entries[0].index - 1} are missing after the snapshot marker")
        last_index = entries[-1].index if entries else snapshot.index
        hard_state = self.hard_state
        if hard_state.commit > last_index:
            raise CorruptError(f"{directory}: commit index {hard_state.commit} is beyond the last entry {last_index}")
        return Replay(
            metadata=self.metadata or b"",
            hard_state=HardState(hard_state.term, hard_state.vote, max(hard_state.commit, snapshot.index)),
            snapshot=snapshot,
            entries=entries,
            repair=repair,
        )


def _lock(directory: Path) -> int:
    """Hold the directory for this process; the lock goes with the process."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise DataDirLockedError(f"{directory}: in use by another process") from None
    return fd


def _give_up(directory: Path, lock_fd: int, error: BaseException) -> BaseException:
    if lock_fd >= 0:
        os.close(lock_fd)
    return _unusable(directory, error) if isinstance(error, OSError) else error


def _unusable(directory: Path, error: OSError) -> DataDirError:
    return DataDirError(f"{error.filename or directory}: {error.strerror or error}")
