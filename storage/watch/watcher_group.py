"""Which watchers see a key, at a cost that does not grow with the number of watchers that do not.

Single keys are in a dictionary. Ranges are cut at each other's ends into segments; each segment knows the ranges that cover it, so
the ranges around a key are found by one bisection. Watchers of the same range share one entry.

Example: with [a, m) and [c, f) the segments are ``"" → (), a → ([a,m)), c → ([a,m), [c,f)), f → ([a,m)), m → ()``; key ``d``
falls into the third.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

from storage.watch.event_batch import WatchOptions

W = TypeVar("W")

FROM_KEY = b"\0"


class RangeGroup(Generic[W]):
    """The watchers of one range, by what they want to see of it. Dictionaries, so that order is the order of arrival."""

    __slots__ = ("by_options", "key", "range_end")

    def __init__(self, key: bytes, range_end: bytes) -> None:
        self.key = key
        self.range_end = range_end
        self.by_options: dict[WatchOptions, dict[W, None]] = {}


class WatcherGroup(Generic[W]):
    __slots__ = ("_points", "_ranges", "_segments")

    def __init__(self) -> None:
        self._points: dict[bytes, RangeGroup[W]] = {}
        self._ranges: dict[tuple[bytes, bytes], RangeGroup[W]] = {}
        #: where a segment begins → the ranges that cover it; b"" is always there
        self._segments: SortedDict = SortedDict({b"": ()})

    def add(self, watcher: W, key: bytes, range_end: bytes, options: WatchOptions) -> None:
        if not range_end:
            group = self._points.get(key)
            if group is None:
                group = self._points[key] = RangeGroup(key, b"")
        else:
            group = self._ranges.get((key, range_end))
            if group is None:
                group = self._ranges[key, range_end] = RangeGroup(key, range_end)
                self._cover(group)
        group.by_options.setdefault(options, {})[watcher] = None

    def remove(self, watcher: W, key: bytes, range_end: bytes, options: WatchOptions) -> None:
        """Remove a watcher that was added with the same arguments."""
        group = self._ranges[key, range_end] if range_end else self._points[key]
        watchers = group.by_options[options]
        del watchers[watcher]
        if watchers:
            return
        del group.by_options[options]
        if group.by_options:
            return
        if range_end:
            del self._ranges[key, range_end]
            self._uncover(group)
        else:
            del self._points[key]

    def covering(self, key: bytes) -> list[RangeGroup[W]]:
        """The ranges that hold ``key``."""
        segments = self._segments
        ranges: tuple[RangeGroup[W], ...] = segments.peekitem(segments.bisect_right(key) - 1)[1]
        point = self._points.get(key)
        return [point, *ranges] if point is not None else list(ranges)

    def watchers(self) -> Iterator[W]:
        for groups in (self._points, self._ranges):
            for group in groups.values():
                for watchers in group.by_options.values():
                    yield from watchers

    def _bounds(self, group: RangeGroup[W]) -> tuple[bytes, bytes | None]:
        return group.key, None if group.range_end == FROM_KEY else group.range_end

    def _cover(self, group: RangeGroup[W]) -> None:
        start, end = self._bounds(group)
        if end is not None and end <= start:
            return
        self._cut(start)
        if end is not None:
            self._cut(end)
        segments = self._segments
        for boundary in list(segments.irange(start, end, inclusive=(True, False))):
            segments[boundary] = (*segments[boundary], group)

    def _uncover(self, group: RangeGroup[W]) -> None:
        start, end = self._bounds(group)
        if end is not None and end <= start:
            return
        segments = self._segments
        for boundary in list(segments.irange(start, end, inclusive=(True, False))):
            segments[boundary] = tuple(each for each in segments[boundary] if each is not group)
        for boundary in (start, end):
            if boundary is not None:
                self._maybe_join(boundary)

    def _cut(self, boundary: bytes) -> None:
        segments = self._segments
        if boundary not in segments:
            segments[boundary] = segments.peekitem(segments.bisect_right(boundary) - 1)[1]

    def _maybe_join(self, boundary: bytes) -> bool:
        """Drop a boundary that no range needs: the same ranges cover both sides."""
        segments = self._segments
        position = segments.bisect_left(boundary)
        if position == 0 or boundary not in segments:
            return False
        before, after = segments.peekitem(position - 1)[1], segments[boundary]
        if before != after:
            return False
        del segments[boundary]
        return True
