"""Writes of one bucket that are not on disk yet, in a form that point reads and ordered ranges can use."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final


class _Missing(bytes):
    """Tells "not in the buffer" from None, "deleted in the buffer"."""


MISSING: Final = _Missing()


class WriteBuffer:
    """Key → value, None for a deletion; ordered on demand.

    Revision keys only ever grow, so the list of keys is nearly always in order already; it is sorted when a range is asked for
    after a write out of order.
    """

    __slots__ = ("_in_order", "_keys", "entries")

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes | None] = {}
        self._keys: list[bytes] = []
        self._in_order = True

    def write(self, key: bytes, value: bytes | None) -> None:
        entries = self.entries
        if key not in entries:
            keys = self._keys
            if keys and key < keys[-1]:
                self._in_order = False
            keys.append(key)
        entries[key] = value

    def update(self, newer: WriteBuffer) -> None:
        """Take over what was written after."""
        if not self.entries:
            self.entries, self._keys, self._in_order = dict(newer.entries), list(newer._keys), newer._in_order
            return
        for key, value in newer.entries.items():
            self.write(key, value)

    def sort(self) -> None:
        """Bring the keys in order; without effect on what is read."""
        if not self._in_order:
            self._keys.sort()
            self._in_order = True

    def keys_in(self, start: bytes, end: bytes | None) -> list[bytes]:
        """The keys of [start, end) that were written or deleted, in order."""
        self.sort()
        keys = self._keys
        high = len(keys) if end is None else bisect_left(keys, end)
        return keys[bisect_left(keys, start) : high]
