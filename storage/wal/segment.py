"""One segment file: its name, making it so that it is there whole or not at all, appending, cutting."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage import failpoints

_NAME: Final = re.compile(r"(?P<sequence>[0-9a-f]{16})-(?P<index>[0-9a-f]{16})\.wal")
_TEMPORARY_SUFFIX: Final = ".tmp"
# Linux has all three; elsewhere a write is followed by a full sync, and no space is set aside.
_WRITE_AND_SYNC: Final[int] = getattr(os, "RWF_DSYNC", 0)
_sync_data: Final = getattr(os, "fdatasync", os.fsync)
_allocate: Final = getattr(os, "posix_fallocate", None)

PREALLOCATE_BYTES: Final = 4 * 1024 * 1024
"""Space is set aside in steps of this size: a sync that does not change the file's size spares the disk a journal write. Small
enough that a young data directory stays small."""


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """``sequence`` counts segments, ``first_index`` is the index of the first entry that can be in it."""

    sequence: int
    first_index: int

    def file_name(self) -> str:
        return f"{self.sequence:016x}-{self.first_index:016x}.wal"


def parse_name(name: str) -> SegmentName | None:
    match = _NAME.fullmatch(name)
    return SegmentName(int(match["sequence"], 16), int(match["index"], 16)) if match else None


def list_segments(directory: Path) -> list[SegmentName]:
    """The segments in order of their sequence."""
    return sorted(name for entry in directory.iterdir() if (name := parse_name(entry.name)) is not None)


def remove_temporary_files(directory: Path) -> None:
    """What a crash left of segments that were being made; no name refers to them."""
    for entry in list(directory.iterdir()):
        if entry.name.endswith(".wal" + _TEMPORARY_SUFFIX):
            entry.unlink()


def sync_directory(directory: Path) -> None:
    """Make names that were created, renamed or removed durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class SegmentWriter:
    """The open end of the log. ``end`` is where the next frame goes."""

    def __init__(self, path: Path, name: SegmentName, fd: int, end: int, *, sync: bool) -> None:
        self.path = path
        self.name = name
        self.end = end
        self._fd = fd
        self._sync = sync
        self._write_flags = _WRITE_AND_SYNC if sync else 0
        self._allocated = end

    @classmethod
    def create(cls, directory: Path, name: SegmentName, first_frame: bytes, *, sync: bool) -> SegmentWriter:
        """Make a segment that holds ``first_frame``. It gets its name after it is durable, so a named segment always has it."""
        path = directory / name.file_name()
        temporary = directory / (name.file_name() + _TEMPORARY_SUFFIX)
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        writer = cls(path, name, fd, 0, sync=sync)
        try:
            writer.append(first_frame)
            if sync:
                os.fsync(fd)
            failpoints.hit("wal.before_segment_is_named")
            os.rename(temporary, path)
            failpoints.hit("wal.after_segment_is_named")
            if sync:
                sync_directory(directory)
        except BaseException:
            os.close(fd)
            raise
        return writer

    @classmethod
    def open(cls, directory: Path, name: SegmentName, *, end: int, sync: bool) -> SegmentWriter:
        """Go on writing at ``end``; what stands behind it is cut off first."""
        path = directory / name.file_name()
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_size != end:
                failpoints.hit("wal.before_cut")
                os.ftruncate(fd, end)
                failpoints.hit("wal.after_cut")
                if sync:
                    os.fsync(fd)
        except BaseException:
            os.close(fd)
            raise
        return cls(path, name, fd, end, sync=sync)

    def append(self, frame: bytes) -> None:
        """Write a frame; it is durable on return (unless made without ``sync``).

        One system call for write and sync: the thread that writes lets go of the interpreter once, and has to get it back once,
        which takes a switch interval each time while the event loop is busy.
        """
        if self.end + len(frame) > self._allocated:
            self._preallocate(len(frame))
        written = self._write(frame, self.end)
        while written < len(frame):
            written += self._write(frame[written:], self.end + written)
        self.end += written

    def _write(self, data: bytes, at: int) -> int:
        if self._write_flags or not self._sync:
            try:
                return os.pwritev(self._fd, (data,), at, self._write_flags)
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP or not self._sync:
                    raise
                self._write_flags = 0  # a file system without flags for a write
        written = os.pwrite(self._fd, data, at)
        _sync_data(self._fd)
        return written

    def finish(self) -> None:
        """No more is written here: give back the space that was set aside, make all durable, close."""
        os.ftruncate(self._fd, self.end)
        if self._sync:
            os.fsync(self._fd)
        os.close(self._fd)

    def abandon(self) -> None:
        """Close the file as it is."""
        os.close(self._fd)

    def _preallocate(self, needed: int) -> None:
        if _allocate is None:
            return
        steps = -(-needed // PREALLOCATE_BYTES)
        try:
            _allocate(self._fd, self.end, steps * PREALLOCATE_BYTES)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSPC, errno.ENOSYS):
                raise
            return  # it only makes syncs cheaper; a disk that is really full will say so at the write
        self._allocated = self.end + steps * PREALLOCATE_BYTES
