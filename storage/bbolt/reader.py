"""Reads a database page by page, checking what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from storage.bbolt.layout import (
    BRANCH_ELEMENT,
    BUCKET,
    FLAG_BRANCH,
    FLAG_LEAF,
    HEAD_BYTES,
    LEAF_ELEMENT,
    LEAF_IS_BUCKET,
    META_PAGE_BYTES,
    NO_FREELIST,
    PAGE_BYTES_ALLOWED,
    PAGE_HEAD,
    Meta,
    decode_meta_page,
)
from storage.errors import CorruptError

DEPTH_MAX: Final = 64
"""Of branches above a leaf: a tree with two children each would fill any disk before that."""

PAGE_RUN_BYTES_MAX: Final = 1 << 30
"""A page with its overflow is read as one; etcd's requests, and so its values, are far below (1.5 MB unless configured)."""

Pair = tuple[bytes, bytes]


class BboltReader:
    """``path`` up to ``size`` bytes (default: all of it). Use as a context manager. Every method raises CorruptError, naming file and
    page, for what contradicts itself, and OSError."""

    def __init__(self, path: Path, *, size: int | None = None) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._size = os.fstat(self._fd).st_size if size is None else size
            self.meta = self._read_meta()
            self._directory = self._read_directory()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> BboltReader:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def buckets(self) -> tuple[bytes, ...]:
        """Names, in ascending order."""
        return tuple(self._directory)

    def items(self, bucket: bytes) -> Iterator[Pair]:
        """The pairs of a bucket in key order; nothing if there is no such bucket."""
        value = self._directory.get(bucket)
        if value is None:
            return
        root, _ = BUCKET.unpack_from(value)
        if root:
            pairs = self._tree(root)
        else:
            pairs = iter(self._leaf_pairs(value[BUCKET.size :], f"the inline page of bucket {bucket!r}"))
        last = b""
        for is_bucket, key, content in pairs:
            if is_bucket:
                raise self._corrupt(f"bucket {bucket!r} has a bucket inside, {key!r}, which etcd never makes")
            if key <= last:
                raise self._corrupt(f"bucket {bucket!r} is not in order: {key!r} comes after {last!r}")
            last = key
            yield key, content

    def check_pages(self) -> None:
        """Every page that is in use is reached exactly once; those of the freelist are not looked at."""
        seen = _Seen(self.meta.page_count)
        self._walk_pages(self.meta.root_page, seen)
        for value in self._directory.values():
            root, _ = BUCKET.unpack_from(value)
            if root:
                self._walk_pages(root, seen)

    def _walk_pages(self, root: int, seen: _Seen) -> None:
        for _ in self._tree(root, seen):
            pass

    # -- pages

    def _read_meta(self) -> Meta:
        first = decode_meta_page(self._pread(META_PAGE_BYTES, 0))
        # Where the second one is depends on the page size, which only a whole first one tells.
        sizes = PAGE_BYTES_ALLOWED if first is None else (first.page_bytes,)
        second = None
        for page_bytes in sizes:
            found = decode_meta_page(self._pread(META_PAGE_BYTES, page_bytes))
            if found is not None and found.page_bytes == page_bytes:
                second = found
                break
        metas = [meta for meta in (first, second) if meta is not None]
        if not metas:
            raise self._corrupt("it is no bbolt database: neither of its two meta pages is whole")
        meta = max(metas, key=lambda each: each.transaction_id)
        if meta.page_count * meta.page_bytes > self._size:
            raise self._corrupt(f"it is cut short: it has {self._size} bytes, its header speaks of {meta.page_count * meta.page_bytes}")
        if not 1 < meta.root_page < meta.page_count:
            raise self._corrupt(f"its root is page {meta.root_page} of {meta.page_count}")
        if meta.freelist_page != NO_FREELIST and not 1 < meta.freelist_page < meta.page_count:
            raise self._corrupt(f"its freelist is page {meta.freelist_page} of {meta.page_count}")
        return meta

    def _read_directory(self) -> dict[bytes, bytes]:
        directory: dict[bytes, bytes] = {}
        for is_bucket, name, value in self._tree(self.meta.root_page):
            if not is_bucket or len(value) < BUCKET.size:
                raise self._corrupt(f"its directory holds {name!r}, which is no bucket")
            if directory and name <= next(reversed(directory)):
                raise self._corrupt(f"its directory is not in order at {name!r}")
            directory[name] = value
        return directory

    def _tree(self, root: int, seen: _Seen | None = None) -> Iterator[tuple[bool, bytes, bytes]]:
        """(is a bucket, key, value) of every leaf element below ``root``, in order of the branches."""
        seen = seen or _Seen(self.meta.page_count)
        walk: list[Iterator[tuple[bytes, bytes | None, int]]] = [iter([(b"", None, root)])]
        while walk:
            step = next(walk[-1], None)
            if step is None:
                walk.pop()
                continue
            least, bound, page = step
            data, flags = self._page(page, seen)
            where = f"page {page}"
            if flags & FLAG_BRANCH:
                if len(walk) > DEPTH_MAX:
                    raise self._corrupt(f"{where} is {DEPTH_MAX} branches deep")
                walk.append(iter(self._children(data, where, least, bound)))
                continue
            for element in self._leaf_pairs(data, where):
                key = element[1]
                if key < least or (bound is not None and key >= bound):
                    raise self._corrupt(f"{where} holds key {key!r}, the branch above it has [{least!r}, {bound!r})")
                yield element

    def _page(self, page: int, seen: _Seen) -> tuple[bytes, int]:
        """The page with its overflow, and its flags: a branch or a leaf."""
        page_bytes, page_count = self.meta.page_bytes, self.meta.page_count
        if not 1 < page < page_count:
            raise self._corrupt(f"a branch names page {page} of {page_count}")
        data = self._pread(page_bytes, page * page_bytes)
        if len(data) < page_bytes:
            raise self._corrupt(f"page {page} is beyond its end")
        number, flags, _, overflow = PAGE_HEAD.unpack_from(data)
        if number != page or flags not in (FLAG_BRANCH, FLAG_LEAF):
            raise self._corrupt(f"page {page} says that it is page {number} with flags {flags:#x}")
        if page + overflow >= page_count or (overflow + 1) * page_bytes > PAGE_RUN_BYTES_MAX:
            raise self._corrupt(f"page {page} goes on for {overflow} pages, of {page_count}")
        for each in range(page, page + overflow + 1):
            if not seen.maybe_add(each):
                raise self._corrupt(f"page {each} is used twice")
        if overflow:
            data = self._pread((overflow + 1) * page_bytes, page * page_bytes)
            if len(data) < (overflow + 1) * page_bytes:
                raise self._corrupt(f"page {page} is beyond its end")
        return data, flags

    def _children(self, data: bytes, where: str, least: bytes, bound: bytes | None) -> list[tuple[bytes, bytes | None, int]]:
        """(least key, bound, page) of each child."""
        _, _, count, _ = PAGE_HEAD.unpack_from(data)
        if HEAD_BYTES * (count + 1) > len(data) or not count:
            raise self._corrupt(f"{where} is a branch of {count} children")
        keys: list[bytes] = []
        pages: list[int] = []
        for at in range(HEAD_BYTES, HEAD_BYTES * (count + 1), HEAD_BYTES):
            position, key_bytes, page = BRANCH_ELEMENT.unpack_from(data, at)
            key = data[at + position : at + position + key_bytes]
            if len(key) < key_bytes:
                raise self._corrupt(f"{where} has a key beyond its end")
            if key < least or (bound is not None and key >= bound) or (keys and key <= keys[-1]):
                raise self._corrupt(f"{where} is not in order at key {key!r}")
            keys.append(key)
            pages.append(page)
        # A key below the first child's would be looked for there.
        return list(zip((least, *keys[1:]), (*keys[1:], bound), pages, strict=True))

    def _leaf_pairs(self, data: bytes, where: str) -> list[tuple[bool, bytes, bytes]]:
        if len(data) < HEAD_BYTES:
            raise self._corrupt(f"{where} is cut short")
        _, flags, count, _ = PAGE_HEAD.unpack_from(data)
        size = len(data)
        if flags != FLAG_LEAF or HEAD_BYTES * (count + 1) > size:
            raise self._corrupt(f"{where} is a leaf of {count} pairs with flags {flags:#x}")
        pairs = []
        for number, (element_flags, position, key_bytes, value_bytes) in enumerate(
            LEAF_ELEMENT.iter_unpack(data[HEAD_BYTES : HEAD_BYTES * (count + 1)]), 1
        ):
            start = HEAD_BYTES * number + position
            middle = start + key_bytes
            end = middle + value_bytes
            if end > size or not key_bytes:
                raise self._corrupt(f"{where} has a pair of {key_bytes} and {value_bytes} bytes at {start}, beyond its end")
            pairs.append((bool(element_flags & LEAF_IS_BUCKET), data[start:middle], data[middle:end]))
        return pairs

    def _pread(self, count: int, offset: int) -> bytes:
        return os.pread(self._fd, max(min(count, self._size - offset), 0), offset)

    def _corrupt(self, what: str) -> CorruptError:
        return CorruptError(f"{self._path}: {what}")


class _Seen:
    """A set of page numbers, a bit each."""

    __slots__ = ("_bits",)

    def __init__(self, page_count: int) -> None:
        self._bits = bytearray(page_count // 8 + 1)

    def maybe_add(self, page: int) -> bool:
        """False if it is there already."""
        mask = 1 << (page & 7)
        if self._bits[page >> 3] & mask:
            return False
        self._bits[page >> 3] |= mask
        return True
