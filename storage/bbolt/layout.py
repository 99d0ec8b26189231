"""The structures of the file and its limits."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

PAGE_BYTES: Final = 4096
"""Of the files that are written. bbolt takes the page size of the machine that made a file; ``PAGE_BYTES_ALLOWED`` can be read."""
PAGE_BYTES_ALLOWED: Final = tuple(512 << shift for shift in range(8))

MAGIC: Final = 0xED0CDAED
VERSION: Final = 2

FLAG_BRANCH: Final = 0x01
FLAG_LEAF: Final = 0x02
FLAG_META: Final = 0x04
FLAG_FREELIST: Final = 0x10
LEAF_IS_BUCKET: Final = 0x01

NO_FREELIST: Final = 0xFFFF_FFFF_FFFF_FFFF
"""Freelist page of a file that keeps none (etcd's own backend): it is made by a scan."""

PAGE_HEAD: Final = struct.Struct("<QHHI")
BRANCH_ELEMENT: Final = struct.Struct("<IIQ")
LEAF_ELEMENT: Final = struct.Struct("<IIII")
META: Final = struct.Struct("<IIIIQQQQQ")
CHECKSUM: Final = struct.Struct("<Q")
BUCKET: Final = struct.Struct("<QQ")
assert PAGE_HEAD.size == BRANCH_ELEMENT.size == LEAF_ELEMENT.size == 16

HEAD_BYTES: Final = 16
"""Of a page's head and of an element alike."""

ELEMENTS_MAX: Final = 0xFFFF
"""Of one page."""

KEY_BYTES_MAX: Final = 32768
"""bbolt's bound."""

_FNV_OFFSET: Final = 0xCBF2_9CE4_8422_2325
_FNV_PRIME: Final = 0x0000_0100_0000_01B3


def fnv1a_64(data: bytes) -> int:
    """The checksum of a meta page (FNV-1a, 64 bits)."""
    result = _FNV_OFFSET
    for byte in data:
        result = (result ^ byte) * _FNV_PRIME & 0xFFFF_FFFF_FFFF_FFFF
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    page_bytes: int
    root_page: int
    freelist_page: int
    page_count: int
    """Pages in use: what is beyond is not part of the database."""
    transaction_id: int


def encode_meta_page(page_id: int, meta: Meta) -> bytes:
    body = META.pack(MAGIC, VERSION, meta.page_bytes, 0, meta.root_page, 0, meta.freelist_page, meta.page_count, meta.transaction_id)
    page = PAGE_HEAD.pack(page_id, FLAG_META, 0, 0) + body + CHECKSUM.pack(fnv1a_64(body))
    return page.ljust(meta.page_bytes, b"\0")


META_PAGE_BYTES: Final = HEAD_BYTES + META.size + CHECKSUM.size


def decode_meta_page(data: bytes) -> Meta | None:
    """The meta page at the start of ``data``, None if there is no whole one."""
    if len(data) < META_PAGE_BYTES:
        return None
    _, flags, _, _ = PAGE_HEAD.unpack_from(data)
    body = data[HEAD_BYTES : HEAD_BYTES + META.size]
    magic, version, page_bytes, _, root, _, freelist, page_count, transaction_id = META.unpack(body)
    (checksum,) = CHECKSUM.unpack_from(data, HEAD_BYTES + META.size)
    if magic != MAGIC or version != VERSION or not flags & FLAG_META or checksum != fnv1a_64(body):
        return None
    if page_bytes not in PAGE_BYTES_ALLOWED:
        return None
    return Meta(page_bytes=page_bytes, root_page=root, freelist_page=freelist, page_count=page_count, transaction_id=transaction_id)
