"""The dumb twin of the store of versions: every revision's whole state, and the log of events."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage import api, errors


def in_range(key: bytes, start: bytes, range_end: bytes) -> bool:
    if not range_end:
        return key == start
    return key >= start and (range_end == b"\0" or key < range_end)


@dataclass
class VersionModel:
    """``states[r]`` is the whole store at main revision r."""

    revision: int = 1
    compact_revision: int = -1
    states: dict[int, dict[bytes, api.KeyValue]] = field(default_factory=lambda: {1: {}})
    events: list[api.Event] = field(default_factory=list)

    @property
    def now(self) -> dict[bytes, api.KeyValue]:
        return self.states[self.revision]

    def put(self, key: bytes, value: bytes, lease: int = 0) -> api.KeyValue:
        before = self.now.get(key)
        created, version = (before.create_revision, before.version + 1) if before else (self.revision + 1, 1)
        kv = api.KeyValue(key, created, self.revision + 1, version, value, lease)
        self._advance({**self.now, key: kv}, [api.Event(api.EventType.PUT, kv)])
        return kv

    def delete_range(self, key: bytes, range_end: bytes = b"") -> int:
        gone = sorted(each for each in self.now if in_range(each, key, range_end))
        if gone:
            left = {each: kv for each, kv in self.now.items() if each not in gone}
            deletions = [api.Event(api.EventType.DELETE, api.KeyValue(each, 0, self.revision + 1, 0, b"", 0)) for each in gone]
            self._advance(left, deletions)
        return len(gone)

    def compact(self, revision: int) -> None:
        if revision <= self.compact_revision:
            raise errors.CompactedError(self.compact_revision)
        if revision > self.revision:
            raise errors.FutureRevisionError(self.revision)
        self.compact_revision = revision

    def range(self, key: bytes, range_end: bytes, at: int = 0) -> list[api.KeyValue]:
        if at > self.revision:
            raise errors.FutureRevisionError(self.revision)
        if 0 < at < self.compact_revision:
            raise errors.CompactedError(self.compact_revision)
        state = self.states[at] if at > 0 else self.now
        return [state[each] for each in sorted(state) if in_range(each, key, range_end)]

    def _advance(self, state: dict[bytes, api.KeyValue], events: list[api.Event]) -> None:
        self.revision += 1
        self.states[self.revision] = state
        self.events += events
