"""One watch's queue: bounded in events and in bytes, and emptied in pieces."""

from __future__ import annotations

import pytest

from apiserver.objectstore import cache_watcher
from apiserver.objectstore.cache_watcher import CacheWatcher
from apiserver.objectstore.interface import ChangeEvent, EventType, Selection, StoredObject


def changed(revision: int, size: int = 100) -> ChangeEvent:
    return ChangeEvent(EventType.MODIFIED, StoredObject("ns/a", b"x" * size, revision), None)


def watcher(dirty: list[CacheWatcher] | None = None) -> CacheWatcher:
    return CacheWatcher(Selection(), 0, lambda watcher: None, dirty)


def revisions(found: list[cache_watcher.Delivery | cache_watcher.Bookmark]) -> list[int]:
    return [entry[1].revision for entry in found if not isinstance(entry, cache_watcher.Bookmark)]


def test_a_reader_that_lags_by_too_many_events_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_watcher, "QUEUE_EVENTS_MAX", 10)
    lagging = watcher()
    for revision in range(1, 11):
        lagging.push(changed(revision))
    assert not lagging.ended
    lagging.push(changed(11))
    assert lagging.overflowed and lagging.ended


def test_a_reader_that_lags_by_too_many_bytes_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few large objects keep as much memory as many small ones."""
    monkeypatch.setattr(cache_watcher, "QUEUE_BYTES_MAX", 1000)
    lagging = watcher()
    for revision in range(1, 11):
        lagging.push(changed(revision))
    assert not lagging.ended
    lagging.push(changed(11))
    assert lagging.overflowed and lagging.ended


def test_what_was_taken_no_longer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_watcher, "QUEUE_BYTES_MAX", 1000)
    dirty: list[CacheWatcher] = []
    reading = watcher(dirty)
    for revision in range(1, 101):
        reading.push(changed(revision, 600))
        reading.take(300)
    reading.direct = lambda batch: True
    for revision in range(101, 201):
        reading.push(changed(revision, 600))
        reading.flush()
    assert not reading.ended and reading.take() == []


def test_a_long_queue_is_taken_in_pieces_and_in_order() -> None:
    reading = watcher()
    for revision in range(1, 11):
        reading.push(changed(revision))
        if revision == 5:
            reading.bookmark(5)
    pieces = [reading.take(250) for _ in range(5)]
    assert [revisions(piece) for piece in pieces] == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10], []]
    assert isinstance(pieces[1][2], cache_watcher.Bookmark), "behind what it promises"


def test_a_client_that_asks_for_much_history_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut at the next event it would ask for the same again, for ever."""
    monkeypatch.setattr(cache_watcher, "QUEUE_EVENTS_MAX", 10)
    monkeypatch.setattr(cache_watcher, "QUEUE_BYTES_MAX", 1000)
    behind = watcher()
    behind.push_all([changed(revision, 200) for revision in range(1, 101)])
    for revision in range(101, 106):
        behind.push(changed(revision, 200))
    assert not behind.ended and len(behind.take()) == 105


def test_a_large_batch_is_not_made_for_each_watcher_but_passed_on_in_pieces() -> None:
    lagging = watcher([])
    asked: list[int] = []
    lagging.direct = lambda batch: not asked.append(len(batch))  # type: ignore[func-returns-value]
    for revision in (1, 2):
        lagging.push(changed(revision, cache_watcher.DIRECT_BYTES_MAX // 2 + 1))
    lagging.flush()
    assert asked == [] and len(lagging.take()) == 2
    lagging.push(changed(3))
    lagging.flush()
    assert asked == [1]
