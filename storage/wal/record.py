"""Frames and records as bytes. Pure: files are read and written in ``segment`` and ``wal``."""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

FRAME_ALIGNMENT: Final = 32
"""A header never straddles a sector, so it is on disk as a whole or not at all."""
SECTOR_BYTES: Final = 512
"""The smallest unit that disks write as a whole."""
END_MARK: Final = 0xA5
"""Behind the records. Not zero, so a frame whose last bytes did not reach the disk shows."""
FRAME_BYTES_MAX: Final = (1 << 32) - 1
MAGIC: Final = b"SWAL"

_HEADER: Final = struct.Struct("<4sIQIIII")
_HEADER_CHECKED_BYTES: Final = _HEADER.size - 4
_CHAINED_BYTES: Final = 20  # of the header: up to and including the checksum of the frame before
_RECORD: Final = struct.Struct("<BI")
assert _HEADER.size == FRAME_ALIGNMENT


class RecordType(enum.IntEnum):
    METADATA = 1
    ENTRY = 2
    STATE = 3
    SNAPSHOT = 5


@dataclass(frozen=True, slots=True)
class Record:
    type: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One good frame: it stands at [offset, end) of its segment. ``records`` are raw (``parse_records``)."""

    offset: int
    end: int
    number: int
    previous: int
    checksum: int
    payload: bytes


class TailKind(enum.Enum):
    CLEAN = "clean"
    """Nothing but zeros (space that was set aside) or the end of the file."""
    TORN = "torn"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What follows the good frames of a segment, from ``offset`` on."""

    kind: TailKind
    offset: int
    reason: str


def encode_record(kind: int, data: bytes) -> bytes:
    return _RECORD.pack(kind, len(data)) + data


def encode_frame(payload: bytes, *, number: int, previous: int) -> tuple[bytes, int]:
    """The frame around encoded records, and its checksum (the ``previous`` of the next)."""
    length = len(payload)
    assert 0 < length <= FRAME_BYTES_MAX, length
    header = _HEADER.pack(MAGIC, length, number, previous, 0, 0, 0)
    checksum = zlib.crc32(payload, zlib.crc32(header[:_CHAINED_BYTES]))
    checked = _HEADER.pack(MAGIC, length, number, previous, checksum, 0, 0)[:_HEADER_CHECKED_BYTES]
    padding = bytes(-(length + 1) % FRAME_ALIGNMENT)
    return b"".join((checked, zlib.crc32(checked).to_bytes(4, "little"), payload, b"\xa5", padding)), checksum


def parse_records(payload: bytes) -> list[Record]:
    """The records of a frame. Raises ValueError if they do not fill it exactly (a frame with a right checksum always does)."""
    records: list[Record] = []
    at, end = 0, len(payload)
    while at < end:
        if end - at < _RECORD.size:
            raise ValueError("record header cut off")
        kind, length = _RECORD.unpack_from(payload, at)
        at += _RECORD.size
        if length > end - at:
            raise ValueError("record cut off")
        records.append(Record(kind, payload[at : at + length]))
        at += length
    return records


def scan(data: bytes, *, number: int | None, previous: int | None) -> tuple[list[Frame], Tail]:
    """The good frames of a segment and what stands behind them.

    Args:
        number, previous: what the first frame must have; None takes what is there (the oldest segment that is kept).
    """
    frames: list[Frame] = []
    offset = 0
    while offset < len(data):
        frame, reason = _read_frame(data, offset, number, previous)
        if frame is None:
            return frames, _judge_tail(data, offset, number, reason)
        frames.append(frame)
        offset, number, previous = frame.end, frame.number + 1, frame.checksum
    return frames, Tail(kind=TailKind.CLEAN, offset=min(offset, len(data)), reason="end of file")


def _header_at(data: bytes, offset: int) -> tuple[int, int, int, int] | None:
    """(length, number, previous, checksum) of a header that is whole and right, else None."""
    if offset + _HEADER.size > len(data) or data[offset : offset + 4] != MAGIC:
        return None
    _, length, number, previous, checksum, _, header_checksum = _HEADER.unpack_from(data, offset)
    if zlib.crc32(data[offset : offset + _HEADER_CHECKED_BYTES]) != header_checksum or not length:
        return None
    return length, number, previous, checksum


def _read_frame(data: bytes, offset: int, number: int | None, previous: int | None) -> tuple[Frame | None, str]:
    header = _header_at(data, offset)
    if header is None:
        return None, "no frame header"
    length, found_number, found_previous, checksum = header
    if number is not None and found_number != number:
        return None, f"frame number {found_number} where {number} was due"
    if previous is not None and found_previous != previous:
        return None, "checksum of the frame before does not match"
    start = offset + _HEADER.size
    payload = data[start : start + length]
    if len(payload) < length or data[start + length : start + length + 1] != b"\xa5":
        return None, "frame without its end"
    if zlib.crc32(payload, zlib.crc32(data[offset : offset + _CHAINED_BYTES])) != checksum:
        return None, "checksum mismatch"
    end = start + length + 1
    end += -end % FRAME_ALIGNMENT
    # the padding of the last frame may be cut off with the file
    return Frame(offset=offset, end=end, number=found_number, previous=found_previous, checksum=checksum, payload=payload), ""


def _judge_tail(data: bytes, offset: int, number: int | None, reason: str) -> Tail:
    """Tell a write that a crash cut short from damage to what had been written whole. See the package docstring for the reasoning."""
    content_end = len(data.rstrip(b"\0"))
    if content_end <= offset:
        return Tail(kind=TailKind.CLEAN, offset=offset, reason="zeros up to the end of the file")
    later = _later_frame(data, offset, number)
    if later is not None:
        return Tail(kind=TailKind.DAMAGED, offset=offset, reason=f"{reason}, but a later frame stands at offset {later}")
    start = offset + _HEADER.size
    header = _header_at(data, offset)
    if header is not None:
        mark_at = start + header[0]
        if content_end > mark_at + 1:  # a later write had begun, so this one was synced
            return Tail(kind=TailKind.DAMAGED, offset=offset, reason=f"{reason}, but more was written behind it")
        if mark_at >= len(data) or data[mark_at] == 0:
            return Tail(kind=TailKind.TORN, offset=offset, reason="the last write did not reach its end")
        if _has_zero_sector(data, start, mark_at):
            return Tail(kind=TailKind.TORN, offset=offset, reason="a sector of the last write is missing")
        return Tail(kind=TailKind.DAMAGED, offset=offset, reason=reason)
    if content_end <= start and _is_header_prefix(data[offset:content_end]):
        return Tail(kind=TailKind.TORN, offset=offset, reason="the last write did not get past its header")
    sector_end = offset - offset % SECTOR_BYTES + SECTOR_BYTES
    if not data[offset:sector_end].strip(b"\0"):
        return Tail(kind=TailKind.TORN, offset=offset, reason="the first sector of the last write is missing")
    return Tail(kind=TailKind.DAMAGED, offset=offset, reason=reason)


def _is_header_prefix(found: bytes) -> bool:
    return found[:4] == MAGIC[: len(found)]


def _has_zero_sector(data: bytes, start: int, end: int) -> bool:
    """Whether [start, end) touches a sector of which its part is all zero."""
    at = start
    while at < end:
        sector_end = min(at - at % SECTOR_BYTES + SECTOR_BYTES, end)
        if not data[at:sector_end].strip(b"\0"):
            return True
        at = sector_end
    return False


def _later_frame(data: bytes, offset: int, number: int | None) -> int | None:
    """The offset of a good header of a frame after the one that is due at ``offset``."""
    at = offset
    while (at := data.find(MAGIC, at + 1)) != -1:
        if at % FRAME_ALIGNMENT:
            continue
        header = _header_at(data, at)
        if header is not None and (number is None or header[1] > number):
            return at
    return None


def encode_payload(records: Iterable[bytes]) -> bytes:
    return b"".join(records)
