"""The revisions of one key, in generations.

A generation is one life of the key: from its creation to its tombstone, which is its last revision. A key that is deleted has an
empty last generation. Revisions are in the form of ``revision.revision_key``; below they are written main.sub.

Worked example::

    put at 1.0, put at 2.0, tombstone at 3.0, put at 4.0, tombstone at 5.0
        {1.0, 2.0, 3.0(t)}  {4.0, 5.0(t)}  {}
    get at 2 → 2.0        get at 3 → none (deleted by then)        get at 4 → 4.0        get at 9 → none

Compaction at r forgets, of each generation, the revisions below the newest one at or below r, and generations that ended before r.
A tombstone at r itself stays, since a watch may still start at r::

    compact(2)   {2.0, 3.0(t)}  {4.0, 5.0(t)}  {}
    compact(4)   {4.0, 5.0(t)}  {}
    compact(5)   {5.0(t)}  {}
    compact(6)   {}                                  → the key can be dropped from the index

Source: the behaviour of etcd's ``mvcc/key_index.go``, whose on-disk results this must equal.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from storage.mvcc.revision import TOMBSTONE_SUFFIX, revision_key


class Found(NamedTuple):
    """A version of a key as the index knows it; ``created`` is its generation's first main revision."""

    revision: bytes
    created: int
    version: int


class Generation:
    """``version`` is that of the last revision; revisions before the first kept one are counted in it."""

    __slots__ = ("created", "revisions", "version")

    def __init__(self, created: int, version: int, revisions: list[bytes]) -> None:
        self.created = created
        self.version = version
        self.revisions = revisions


class KeyIndex:
    __slots__ = ("generations", "key")

    def __init__(self, key: bytes, generations: list[Generation] | None = None) -> None:
        self.key = key
        self.generations = generations or [Generation(0, 0, [])]

    @classmethod
    def restored(cls, key: bytes, revision: bytes, created: int, version: int) -> KeyIndex:
        """The index of a key whose first kept version is ``revision``; older ones were compacted."""
        return cls(key, [Generation(created, version, [revision])])

    @classmethod
    def restored_tombstone(cls, key: bytes, revision: bytes, main: int) -> KeyIndex:
        """The index of a key of whose life only the tombstone is kept."""
        return cls(key, [Generation(main, 1, [revision]), Generation(0, 0, [])])

    @property
    def is_live(self) -> bool:
        """Whether the key exists at the newest revision."""
        return bool(self.generations[-1].revisions)

    def put(self, revision: bytes, main: int) -> Generation:
        """Append a version; answers its generation, whose ``created`` and ``version`` are those of the new version."""
        generation = self.generations[-1]
        revisions = generation.revisions
        if not revisions:
            generation.created = main
        else:
            assert revision > revisions[-1], (self.key, revisions[-1], revision)
        revisions.append(revision)
        generation.version += 1
        return generation

    def tombstone(self, revision: bytes) -> None:
        """End the key's life."""
        generation = self.generations[-1]
        assert generation.revisions, (self.key, "is not live")
        assert revision > generation.revisions[-1], (self.key, generation.revisions[-1], revision)
        generation.revisions.append(revision)
        generation.version += 1
        self.generations.append(Generation(0, 0, []))

    def get(self, bound: bytes) -> bytes | None:
        """The newest revision below ``bound`` (``revision_key(at + 1)``), None if the key does not exist there."""
        generations = self.generations
        last = len(generations) - 1
        for number in range(last, -1, -1):
            revisions = generations[number].revisions
            if not revisions:
                continue
            if revisions[-1] < bound:
                return revisions[-1] if number == last else None
            if revisions[0] < bound:
                return revisions[bisect_left(revisions, bound) - 1]
        return None

    def find(self, bound: bytes) -> Found | None:
        """As ``get``, with when the key was created and which version it is."""
        revision = self.get(bound)
        if revision is None:
            return None
        for generation in reversed(self.generations):
            revisions = generation.revisions
            if revisions and revisions[0] <= revision:
                position = bisect_left(revisions, revision)
                return Found(revision, generation.created, generation.version - (len(revisions) - 1 - position))
        raise AssertionError((self.key, revision))

    def records_since(self, floor: bytes) -> list[bytes]:
        """The backend's keys of the versions at or after revision ``floor``, tombstones among them, in order."""
        records: list[bytes] = []
        last = len(self.generations) - 1
        for number, generation in enumerate(self.generations):
            revisions = generation.revisions
            if revisions and revisions[-1] >= floor:
                records += revisions[bisect_left(revisions, floor) :]
                if number != last:
                    records[-1] += TOMBSTONE_SUFFIX
        return records

    def compact(self, at: int) -> bytes | None:
        """Forget what no read at or after main revision ``at`` needs; answers the kept revision at or below ``at``, if any."""
        generation_number, position = self._keep_position(at)
        generations = self.generations
        kept = None
        if position >= 0:
            revisions = generations[generation_number].revisions
            kept = revisions[position]
            del revisions[:position]
        del generations[:generation_number]
        return kept

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left, so that the index can drop the key."""
        return len(self.generations) == 1 and not self.generations[0].revisions

    def _keep_position(self, at: int) -> tuple[int, int]:
        """The generation that a compaction at ``at`` begins with, and the position in it of the revision to keep, or -1."""
        generations = self.generations
        floor = revision_key(at)
        number = 0
        while number < len(generations) - 1 and generations[number].revisions[-1] < floor:
            number += 1
        return number, bisect_left(generations[number].revisions, revision_key(at + 1)) - 1
