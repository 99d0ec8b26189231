"""All keys in order, each with its revisions.

Range bounds are as in ``storage.api``: ``range_end`` empty is the one key, ``b"\\0"`` is every key from ``key`` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sortedcontainers import SortedDict, SortedSet

from storage.mvcc.key_index import Generation, KeyIndex
from storage.mvcc.revision import revision_key

FROM_KEY = b"\0"


class TreeIndex:
    """``dead`` are the keys whose newest revision is a tombstone that is not compacted yet: with them the number of live keys in a
    range is a difference of two positions instead of a walk."""

    __slots__ = ("_dead", "_tree")

    def __init__(self) -> None:
        self._tree: SortedDict = SortedDict()
        self._dead: SortedSet = SortedSet()

    def __len__(self) -> int:
        return len(self._tree)

    def key_index(self, key: bytes) -> KeyIndex | None:
        found: KeyIndex | None = self._tree.get(key)
        return found

    def load(self, indexes: dict[bytes, KeyIndex]) -> None:
        """Fill an empty index in one go."""
        assert not self._tree, len(self._tree)
        self._tree = SortedDict(indexes)
        self._dead = SortedSet(key for key, index in indexes.items() if not index.is_live)

    def put(self, key: bytes, revision: bytes, main: int) -> Generation:
        """Append a version; answers the generation it belongs to."""
        index: KeyIndex | None = self._tree.get(key)
        if index is None:
            index = self._tree[key] = KeyIndex(key)
        elif not index.generations[-1].revisions:
            self._dead.discard(key)
        return index.put(revision, main)

    def tombstone(self, key: bytes, revision: bytes) -> None:
        """End the life of a live key."""
        index: KeyIndex = self._tree[key]
        index.tombstone(revision)
        self._dead.add(key)

    def get(self, key: bytes, at: int) -> bytes | None:
        """The key's newest revision at or before main revision ``at``."""
        index: KeyIndex | None = self._tree.get(key)
        return None if index is None else index.get(revision_key(at + 1))

    def live_keys(self, key: bytes, range_end: bytes) -> list[bytes]:
        """The keys of the range that exist at the newest revision, in order."""
        if not range_end:
            index = self._tree.get(key)
            return [key] if index is not None and index.is_live else []
        tree = self._tree
        return [each for each in self._irange(key, range_end) if tree[each].generations[-1].revisions]

    def revisions(self, key: bytes, range_end: bytes, at: int | None, limit: int = 0) -> list[bytes]:
        """The newest revision at or before ``at`` (None: of all) of each key of the range that exists there, in key order."""
        bound = None if at is None else revision_key(at + 1)
        if not range_end:
            index = self._tree.get(key)
            found = None if index is None else self._newest(index) if bound is None else index.get(bound)
            return [] if found is None else [found]
        tree = self._tree
        if bound is None:
            walk = (tree[each].generations[-1].revisions for each in self._irange(key, range_end))
            newest = (revisions[-1] for revisions in walk if revisions)
        else:
            newest = (found for each in self._irange(key, range_end) if (found := tree[each].get(bound)) is not None)
        return list(islice(newest, limit) if limit else newest)

    def count(self, key: bytes, range_end: bytes, at: int | None) -> int:
        """How many keys of the range exist at ``at``; for the newest revision (None) without a walk."""
        if not range_end or at is not None:
            return len(self.revisions(key, range_end, at))
        if range_end != FROM_KEY and range_end <= key:
            return 0
        return self._between(self._tree, key, range_end) - self._between(self._dead, key, range_end)

    def records_since(self, key: bytes, range_end: bytes, main: int, keys_max: int) -> list[bytes] | None:
        """The backend's keys of every version of the range at or after ``main``, in order; None if the range has more keys than
        ``keys_max``."""
        tree = self._tree
        if not range_end:
            keys = [key] if key in tree else []
        else:
            keys = list(islice(self._irange(key, range_end), keys_max + 1))
        if len(keys) > keys_max:
            return None
        floor = revision_key(main)
        records: list[bytes] = []
        for each in keys:
            records += tree[each].records_since(floor)
        records.sort()
        return records

    def key_indexes_from(self, key: bytes, limit: int) -> list[KeyIndex]:
        """Up to ``limit`` keys from ``key`` on, for work done in slices."""
        tree = self._tree
        return [tree[each] for each in islice(self._irange(key, FROM_KEY), limit)]

    def drop(self, key: bytes) -> None:
        """Remove a key of which compaction left nothing."""
        index: KeyIndex = self._tree.pop(key)
        assert index.is_empty, (key, len(index.generations))
        self._dead.discard(key)

    def _irange(self, key: bytes, range_end: bytes) -> Iterator[bytes]:
        end = None if range_end == FROM_KEY else range_end
        walk: Iterator[bytes] = self._tree.irange(key, end, inclusive=(True, False))
        return walk

    @staticmethod
    def _newest(index: KeyIndex) -> bytes | None:
        revisions = index.generations[-1].revisions
        return revisions[-1] if revisions else None

    @staticmethod
    def _between(keys: SortedDict | SortedSet, key: bytes, range_end: bytes) -> int:
        high: int = len(keys) if range_end == FROM_KEY else keys.bisect_left(range_end)
        low: int = keys.bisect_left(key)
        return high - low
