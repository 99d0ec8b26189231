"""Reads the buckets of a bbolt file, the format of etcd's own backend, to compare layouts with.

A page: u64 id, u16 flags (1 branch, 2 leaf, 4 meta), u16 count, u32 overflow pages; then elements. A branch element is u32 position,
u32 key size, u64 page id; a leaf element u32 flags (1: a bucket), u32 position, u32 key size, u32 value size; positions count from the
element. A bucket's value is u64 root page and u64 sequence; a root of 0 means its page is inline, right behind. Source: bbolt's
``internal/common`` page and bucket descriptions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_PAGE = struct.Struct("<QHHI")
_BRANCH_ELEMENT = struct.Struct("<IIQ")
_LEAF_ELEMENT = struct.Struct("<IIII")
_META = struct.Struct("<IIIIQQQQQQ")
_MAGIC = 0xED0CDAED


@dataclass(frozen=True, slots=True)
class _Leaf:
    is_bucket: bool
    key: bytes
    value: bytes


class BboltFile:
    def __init__(self, data: bytes) -> None:
        metas = []
        for position in (0, 4096):
            magic, _version, page_bytes, _flags, root, _sequence, _freelist, _high, txn_id, _sum = _META.unpack_from(data, position + 16)
            assert magic == _MAGIC, hex(magic)
            metas.append((txn_id, page_bytes, root))
        _, self._page_bytes, self._root = max(metas)
        self._data = data

    def buckets(self) -> dict[bytes, list[tuple[bytes, bytes]]]:
        return {leaf.key: list(self._bucket(leaf.value)) for leaf in self._leaves(self._root * self._page_bytes, self._data)}

    def _bucket(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        root, _sequence = struct.unpack_from("<QQ", value)
        leaves = self._leaves(16, value) if root == 0 else self._leaves(root * self._page_bytes, self._data)
        for leaf in leaves:
            assert not leaf.is_bucket
            yield leaf.key, leaf.value

    def _leaves(self, page: int, data: bytes) -> Iterator[_Leaf]:
        _, flags, count, _ = _PAGE.unpack_from(data, page)
        for number in range(count):
            at = page + 16 + 16 * number
            if flags & 1:
                _, _, child = _BRANCH_ELEMENT.unpack_from(data, at)
                yield from self._leaves(child * self._page_bytes, self._data)
            else:
                leaf_flags, position, key_bytes, value_bytes = _LEAF_ELEMENT.unpack_from(data, at)
                key_at = at + position
                value_at = key_at + key_bytes
                yield _Leaf(bool(leaf_flags & 1), data[key_at:value_at], data[value_at : value_at + value_bytes])
