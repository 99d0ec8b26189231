"""Every entry that a member's log ever held, also of segments that it has released since."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from storage.raft import codec
from storage.raft.messages import Entry
from storage.wal.record import Frame, RecordType, parse_records
from storage.wal.repair import read_segments
from storage.wal.segment import list_segments


class LogArchive:
    """A second name (hard link) for each segment, made before the log may release it: what is written to a segment later is here too."""

    def __init__(self, log_dir: Path, archive_dir: Path) -> None:
        self._log_dir = log_dir
        self._archive_dir = archive_dir

    def keep(self) -> None:
        """Keep what is there now. Cheap; to be called at the failpoint ``wal.before_release`` and whenever the member is down."""
        self._archive_dir.mkdir(parents=True, exist_ok=True)
        if self._log_dir.is_dir():
            for name in list_segments(self._log_dir):
                with contextlib.suppress(FileExistsError):
                    os.link(self._log_dir / name.file_name(), self._archive_dir / name.file_name())

    def entries(self) -> list[Entry]:
        """In the order of their index, those that a later leader overwrote left out. Raises CorruptError."""
        self.keep()
        return all_entries(self._archive_dir)


def all_entries(log_dir: Path) -> list[Entry]:
    """As ``LogArchive.entries``, of one directory. Where a snapshot from the leader took the place of the log only what came after it is
    given: what stood before need not have been committed. Raises CorruptError."""
    entries: list[Entry] = []

    def take(path: Path, frame: Frame) -> None:
        for record in parse_records(frame.payload):
            if record.type == RecordType.ENTRY:
                entry = codec.decode_entry(record.data)
                while entries and entries[-1].index >= entry.index:
                    entries.pop()
                if entries and entries[-1].index + 1 != entry.index:
                    entries.clear()
                entries.append(entry)

    read_segments(log_dir, take)
    return entries
