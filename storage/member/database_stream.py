"""A database as bytes on their way from one member to another.

    stream = record* end
    record = bucket u8 | key length u32 | value length u32 | key | value       (numbers big endian)
    end    = 0xff | count of records u64 | CRC-32 of all bytes before it u32

Records are in the order of buckets and keys, each key once. It is no file format: both ends run the same version, or one that knows it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from storage import errors
from storage.backend.backend import BackendView, Bucket

CHUNK_BYTES: Final = 1024 * 1024
"""About the size of a chunk; a single larger value makes a larger one."""

_HEAD: Final = struct.Struct(">BII")
_END: Final = struct.Struct(">BQI")
_END_MARK: Final = 0xFF
VALUE_BYTES_MAX: Final = 64 * 1024 * 1024
"""No value is as large: requests are limited far below. A longer one is damage."""


@dataclass(frozen=True, slots=True)
class Record:
    bucket: Bucket
    key: bytes
    value: bytes


def chunks_of(view: BackendView) -> Iterator[bytes]:
    """Everything in ``view``. May run in any thread. Raises UnavailableError, CorruptError."""
    count = checksum = 0
    for bucket in Bucket:
        start = b""
        while pairs := view.chunk(bucket, start, CHUNK_BYTES):
            chunk = b"".join([part for key, value in pairs for part in (_HEAD.pack(bucket, len(key), len(value)), key, value)])
            count += len(pairs)
            checksum = zlib.crc32(chunk, checksum)
            yield chunk
            start = pairs[-1][0] + b"\0"
    yield _END.pack(_END_MARK, count, checksum)


class Reader:
    """``feed`` the stream as it comes, ``finish`` at its end."""

    def __init__(self) -> None:
        self._buffer = b""
        self._count = 0
        self._checksum = 0
        self._is_complete = False

    def feed(self, data: bytes) -> list[Record]:
        """The records that are complete now. Raises SnapshotFileError."""
        buffer = self._buffer + data
        at = 0
        records: list[Record] = []
        while at < len(buffer):
            if self._is_complete:
                raise errors.SnapshotFileError("a database from another member goes on after its end")
            if buffer[at] == _END_MARK:
                if len(buffer) - at < _END.size:
                    break
                self._end(buffer, at, count=len(records))
                at += _END.size
                continue
            if len(buffer) - at < _HEAD.size:
                break
            bucket, key_bytes, value_bytes = _HEAD.unpack_from(buffer, at)
            if bucket >= len(Bucket) or key_bytes > VALUE_BYTES_MAX or value_bytes > VALUE_BYTES_MAX:
                raise errors.SnapshotFileError("a database from another member is damaged")
            key_at = at + _HEAD.size
            value_at = key_at + key_bytes
            end = value_at + value_bytes
            if end > len(buffer):
                break
            records.append(Record(Bucket(bucket), buffer[key_at:value_at], buffer[value_at:end]))
            at = end
        if not self._is_complete:
            self._checksum = zlib.crc32(memoryview(buffer)[:at], self._checksum)
        self._count += len(records)
        self._buffer = buffer[at:]
        return records

    def finish(self) -> None:
        """Raises SnapshotFileError if the stream is not complete."""
        if not self._is_complete:
            raise errors.SnapshotFileError("a database from another member is cut short")

    def _end(self, buffer: bytes, at: int, *, count: int) -> None:
        _, expected_count, expected_checksum = _END.unpack_from(buffer, at)
        checksum = zlib.crc32(memoryview(buffer)[:at], self._checksum)
        if (self._count + count, checksum) != (expected_count, expected_checksum):
            raise errors.SnapshotFileError("a database from another member is damaged: its checksum does not match")
        self._is_complete = True
