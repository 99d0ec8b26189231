"""Reading all segments of a directory, one at a time: the chain is checked, a torn tail is found and told from damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storage.errors import CorruptError
from storage.wal.record import Frame, Tail, TailKind, scan
from storage.wal.segment import SegmentName, list_segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What was cut off at the end of the log. ``torn`` is False for mere zeros (space that was set aside)."""

    file: str
    offset: int
    bytes_cut: int
    torn: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: cut {self.bytes_cut} bytes at offset {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """``last`` is the segment to go on with, ``end`` where in it; ``number`` and ``checksum`` are those of the last frame.
    ``dropped`` segments had no whole frame and are to be removed."""

    last: SegmentName
    end: int
    number: int
    checksum: int
    repair: Repair | None
    dropped: tuple[SegmentName, ...]


def read_segments(directory: Path, take: Callable[[Path, Frame], None]) -> Scanned:
    """Give each frame to ``take``, in order. Raises CorruptError (names file and offset), OSError."""
    names = list_segments(directory)
    assert names, f"no segments in {directory}"
    last, end = names[0], 0
    number: int | None = None
    previous: int | None = None
    for position, name in enumerate(names):
        path = directory / name.file_name()
        if name.sequence != names[0].sequence + position:
            raise CorruptError(f"{directory}: segment {names[0].sequence + position:016x} is missing before {path.name}")
        data = path.read_bytes()
        found, tail = scan(data, number=number, previous=previous)
        is_last = position == len(names) - 1
        if tail.kind is TailKind.DAMAGED or (tail.kind is TailKind.TORN and not is_last):
            raise CorruptError(f"{path}: damaged at offset {tail.offset}: {tail.reason}")
        if not found:
            if not is_last or position == 0:
                raise CorruptError(f"{path}: damaged at offset 0: the first frame is missing ({tail.reason})")
            # Nothing was ever acknowledged of a segment without its first frame: it is written whole before the file gets its name.
            assert number is not None
            assert previous is not None
            dropped_repair = _repair(path, data, tail, torn=True)
            return Scanned(last=last, end=end, number=number - 1, checksum=previous, repair=dropped_repair, dropped=(name,))
        for frame in found:
            take(path, frame)
        number, previous = found[-1].number + 1, found[-1].checksum
        last, end = name, found[-1].end
        if is_last:
            repair = None
            if tail.kind is TailKind.TORN or len(data) > end:
                repair = _repair(path, data, tail, torn=tail.kind is TailKind.TORN)
            return Scanned(last=last, end=end, number=found[-1].number, checksum=previous, repair=repair, dropped=())
    raise AssertionError("unreachable")


def _repair(path: Path, data: bytes, tail: Tail, *, torn: bool) -> Repair:
    return Repair(file=str(path), offset=tail.offset, bytes_cut=len(data) - tail.offset, torn=torn, reason=tail.reason)
