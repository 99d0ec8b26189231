"""Writes a database front to back, as one stream, without a seek.

The first pages must tell where the last ones are, so the source is read twice: ``plan`` looks at the sizes only and finds out where
every page goes, ``write`` then makes the pages. Both run the same packing, so they agree as long as the source does not change.

    pages: meta 0 | meta 1 | freelist (empty) | directory of the buckets | pages of the first bucket | … of the second | …

The pages of a bucket come in the order in which they are full: leaves, and after some of them the branch above; its root is the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from storage.bbolt.layout import (
    BRANCH_ELEMENT,
    BUCKET,
    ELEMENTS_MAX,
    FLAG_BRANCH,
    FLAG_FREELIST,
    FLAG_LEAF,
    HEAD_BYTES,
    KEY_BYTES_MAX,
    LEAF_ELEMENT,
    LEAF_IS_BUCKET,
    PAGE_BYTES,
    PAGE_HEAD,
    Meta,
    encode_meta_page,
)

CHUNK_BYTES: Final = 256 * 1024
"""About so much is handed out at once; a chunk is larger only for a larger value."""

_META_PAGES: Final = 2
_FREELIST_PAGE: Final = 2
_DIRECTORY_PAGE: Final = 3
_CHILDREN_MIN: Final = 2
"""Of a branch; bbolt's deletes rely on it."""


class Source(Protocol):
    """What to write. It gives the same at every call, keys in ascending order without repeats."""

    def buckets(self) -> Sequence[bytes]:
        """Names, in ascending order."""

    def sizes(self, bucket: bytes) -> Iterator[tuple[bytes, int]]:
        """Each key with the size of its value."""

    def items(self, bucket: bytes) -> Iterator[tuple[bytes, bytes]]: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """``roots``: of the buckets in their order."""

    page_count: int
    roots: tuple[int, ...]

    @property
    def file_bytes(self) -> int:
        return self.page_count * PAGE_BYTES


def plan(source: Source) -> Plan:
    """Find out where everything goes. Raises ValueError for keys out of order, empty or too long."""
    names = source.buckets()
    directory = _TreePacker(_DIRECTORY_PAGE)
    for name in names:
        directory.add(name, BUCKET.size)
    directory.finish()
    next_page = directory.next_page
    roots = []
    for name in names:
        packer = _TreePacker(next_page)
        for key, value_bytes in source.sizes(name):
            packer.add(key, value_bytes)
        roots.append(packer.finish())
        next_page = packer.next_page
    return Plan(next_page, tuple(roots))


def write(source: Source, planned: Plan, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The file, ``planned.file_bytes`` long. Raises ValueError if the source is not what it was when it was planned."""
    names = source.buckets()
    directory = _TreeEncoder(_DIRECTORY_PAGE, LEAF_IS_BUCKET)
    for name, root in zip(names, planned.roots, strict=True):
        directory.append(name, BUCKET.pack(root, 0))
    directory_root = directory.finish()
    head = [
        encode_meta_page(
            page_id,
            Meta(
                page_bytes=PAGE_BYTES,
                root_page=directory_root,
                freelist_page=_FREELIST_PAGE,
                page_count=planned.page_count,
                transaction_id=page_id,
            ),
        )
        for page_id in range(_META_PAGES)
    ]
    head.append(PAGE_HEAD.pack(_FREELIST_PAGE, FLAG_FREELIST, 0, 0).ljust(PAGE_BYTES, b"\0"))
    chunk = [*head, *directory.take()]
    size = sum(map(len, chunk))
    next_page = directory.next_page
    for name, root in zip(names, planned.roots, strict=True):
        encoder = _TreeEncoder(next_page, 0)
        for key, value in source.items(name):
            encoder.append(key, value)
            if size + encoder.waiting_bytes >= chunk_bytes:
                yield b"".join((*chunk, *encoder.take()))
                chunk, size = [], 0
        actual_root = encoder.finish()
        if actual_root != root:
            raise ValueError(f"bucket {name!r} was planned with its root at page {root}, it came out at {actual_root}")
        size += encoder.waiting_bytes
        chunk += encoder.take()
        next_page = encoder.next_page
    if next_page != planned.page_count:
        raise ValueError(f"{planned.page_count} pages were planned, {next_page} came out")
    yield b"".join(chunk)


class _Level:
    """One height of branches: the children that wait for their page. The full page before is held back, so that the last one can
    get a second child from it."""

    __slots__ = ("children", "held", "size")

    def __init__(self) -> None:
        self.held: list[tuple[bytes, int]] | None = None
        self.children: list[tuple[bytes, int]] = []
        self.size = HEAD_BYTES

    def add(self, key: bytes, child: int) -> list[tuple[bytes, int]] | None:
        """Answers a page that is to be written now, if there is one."""
        element_bytes = HEAD_BYTES + len(key)
        ready = None
        if self.size + element_bytes > PAGE_BYTES and len(self.children) >= _CHILDREN_MIN:
            ready, self.held = self.held, self.children
            self.children, self.size = [], HEAD_BYTES
        self.children.append((key, child))
        self.size += element_bytes
        return ready

    def rest(self) -> list[list[tuple[bytes, int]]]:
        """The last pages."""
        if self.held is None:
            return [self.children]
        if len(self.children) >= _CHILDREN_MIN:
            return [self.held, self.children]
        if len(self.held) > _CHILDREN_MIN:
            return [self.held[:-1], [self.held[-1], *self.children]]
        return [self.held + self.children]


class _TreePacker:
    """Decides which pairs share a page and where the pages go, from keys and sizes alone. Memory: a page of pairs and two pages of
    children for each height."""

    __slots__ = ("_count", "_first_key", "_last_key", "_levels", "_size", "next_page")

    def __init__(self, first_page: int) -> None:
        self.next_page = first_page
        self._levels: list[_Level] = []
        self._count = 0
        self._size = HEAD_BYTES
        self._first_key = b""
        self._last_key = b""

    def add(self, key: bytes, value_bytes: int) -> None:
        """Raises ValueError."""
        if key <= self._last_key:
            raise ValueError(f"key {key!r} does not come after {self._last_key!r}")
        if len(key) > KEY_BYTES_MAX:
            raise ValueError(f"a key of {len(key)} bytes is too long")
        element_bytes = HEAD_BYTES + len(key) + value_bytes
        if self._count and (self._size + element_bytes > PAGE_BYTES or self._count == ELEMENTS_MAX):
            self._end_leaf()
        if not self._count:
            self._first_key = key
        self._last_key = key
        self._count += 1
        self._size += element_bytes

    def finish(self) -> int:
        """The page of the root."""
        if not self._levels:
            return self._end_leaf(is_root=True)
        if self._count:
            self._end_leaf()
        height = 0
        while True:
            level = self._levels[height]
            if level.held is None and len(level.children) == 1:
                return level.children[0][1]
            for children in level.rest():
                self._end_branch(children, height)
            height += 1

    def _end_leaf(self, *, is_root: bool = False) -> int:
        page = self._take_pages(self._size)
        self._leaf_ended(page)
        self._count = 0
        self._size = HEAD_BYTES
        if not is_root:
            self._add_child(self._first_key, page, 0)
        return page

    def _add_child(self, key: bytes, page: int, height: int) -> None:
        if height == len(self._levels):
            self._levels.append(_Level())
        ready = self._levels[height].add(key, page)
        if ready is not None:
            self._end_branch(ready, height)

    def _end_branch(self, children: list[tuple[bytes, int]], height: int) -> None:
        page = self._take_pages(HEAD_BYTES + sum([HEAD_BYTES + len(key) for key, _ in children]))
        self._branch_ended(page, children)
        self._add_child(children[0][0], page, height + 1)

    def _take_pages(self, content_bytes: int) -> int:
        page = self.next_page
        self.next_page += _pages(content_bytes)
        return page

    def _leaf_ended(self, page: int) -> None:
        """The pairs since the last leaf make ``page``."""

    def _branch_ended(self, page: int, children: list[tuple[bytes, int]]) -> None:
        """``children`` make ``page``."""


class _TreeEncoder(_TreePacker):
    """A packer that also makes the pages."""

    __slots__ = ("_element_flags", "_pages", "_pairs", "waiting_bytes")

    def __init__(self, first_page: int, element_flags: int) -> None:
        super().__init__(first_page)
        self._element_flags = element_flags
        self._pairs: list[tuple[bytes, bytes]] = []
        self._pages: list[bytes] = []
        self.waiting_bytes = 0

    def append(self, key: bytes, value: bytes) -> None:
        """Raises ValueError."""
        self.add(key, len(value))
        self._pairs.append((key, value))

    def take(self) -> list[bytes]:
        """The pages that are ready, in the order of the file."""
        pages, self._pages = self._pages, []
        self.waiting_bytes = 0
        return pages

    def _leaf_ended(self, page: int) -> None:
        # ``add`` ends a leaf before the pair that does not fit any more is in ``_pairs``.
        pairs, self._pairs = self._pairs, []
        flags, pack = self._element_flags, LEAF_ELEMENT.pack
        position = HEAD_BYTES * len(pairs)
        elements: list[bytes] = []
        contents: list[bytes] = []
        for key, value in pairs:
            key_bytes, value_bytes = len(key), len(value)
            elements.append(pack(flags, position, key_bytes, value_bytes))
            contents += (key, value)
            position += key_bytes + value_bytes - HEAD_BYTES
        self._page_ended(page, FLAG_LEAF, elements, contents)

    def _branch_ended(self, page: int, children: list[tuple[bytes, int]]) -> None:
        position = HEAD_BYTES * len(children)
        elements: list[bytes] = []
        contents: list[bytes] = []
        for key, child in children:
            elements.append(BRANCH_ELEMENT.pack(position, len(key), child))
            contents.append(key)
            position += len(key) - HEAD_BYTES
        self._page_ended(page, FLAG_BRANCH, elements, contents)

    def _page_ended(self, page: int, flags: int, elements: list[bytes], contents: list[bytes]) -> None:
        body = b"".join((*elements, *contents))
        pages = _pages(HEAD_BYTES + len(body))
        data = PAGE_HEAD.pack(page, flags, len(elements), pages - 1) + body
        self._pages.append(data.ljust(pages * PAGE_BYTES, b"\0"))
        self.waiting_bytes += pages * PAGE_BYTES


def _pages(content_bytes: int) -> int:
    return -(-content_bytes // PAGE_BYTES)
