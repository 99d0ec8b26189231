"""Revisions as the backend's keys: 8-byte big-endian main, ``_``, 8-byte big-endian sub; a tombstone's key ends in ``t``.

The index in memory keeps revisions in this form too (without the ``t``): the order of the bytes is the order of the revisions, a
read needs no conversion, and 50 bytes of memory are less than a tuple of two numbers takes.
"""

from __future__ import annotations

import struct

REVISION_BYTES = 17
TOMBSTONE_SUFFIX = b"t"

_pack = struct.Struct(">Q1sQ").pack


def revision_key(main: int, sub: int = 0) -> bytes:
    """The revision as bytes; ``revision_key(main)`` is at or below every revision of that main."""
    return _pack(main, b"_", sub)


def main_of(key: bytes) -> int:
    """The main part of a revision or of a backend key."""
    return int.from_bytes(key[:8], "big")


def sub_of(key: bytes) -> int:
    return int.from_bytes(key[9:17], "big")


def is_tombstone(backend_key: bytes) -> bool:
    return len(backend_key) > REVISION_BYTES
