"""Reading all segments of a directory: the chain is checked, a torn tail is found and told from damage."""

from __future__ import annotations

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
    """``last`` is the segment to go on with, ``end`` where in it; ``dropped`` segments had no whole frame and are to be removed."""

    frames: list[Frame]
    last: SegmentName
    end: int
    repair: Repair | None
    dropped: tuple[SegmentName, ...]


def read_segments(directory: Path) -> Scanned:
    """Raises CorruptError (names file and offset), OSError."""
    names = list_segments(directory)
    assert names, f"no segments in {directory}"
    frames: list[Frame] = []
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
            return Scanned(frames=frames, last=last, end=end, repair=_repair(path, data, tail, torn=True), dropped=(name,))
        frames += found
        number, previous = found[-1].number + 1, found[-1].checksum
        last, end = name, found[-1].end
        if is_last:
            repair = None
            if tail.kind is TailKind.TORN or len(data) > end:
                repair = _repair(path, data, tail, torn=tail.kind is TailKind.TORN)
            return Scanned(frames=frames, last=last, end=end, repair=repair, dropped=())
    raise AssertionError("unreachable")


def _repair(path: Path, data: bytes, tail: Tail, *, torn: bool) -> Repair:
    return Repair(file=str(path), offset=tail.offset, bytes_cut=len(data) - tail.offset, torn=torn, reason=tail.reason)
