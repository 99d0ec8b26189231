"""Which watchers see a key, at a cost that does not grow with the number of watchers that do not.

Single keys are in a dictionary. Ranges are cut at each other's ends into segments; each segment knows the ranges that cover it, so
the ranges around a key are found by one bisection. Watchers of the same range share one entry.

Example: with [a, m) and [c, f) the segments are ``"" → (), a → ([a,m)), c → ([a,m), [c,f)), f → ([a,m)), m → ()``; key ``d``
falls into the third.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

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
    __slots__ = ("_covers", "_points", "_ranges", "_starts")

    def __init__(self) -> None:
        self._points: dict[bytes, RangeGroup[W]] = {}
        self._ranges: dict[tuple[bytes, bytes], RangeGroup[W]] = {}
        #: where each segment begins, in order; the first begins at b""
        self._starts: list[bytes] = [b""]
        #: the ranges that cover the segment of the same position
        self._covers: list[tuple[RangeGroup[W], ...]] = [()]

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

    def covering(self, key: bytes) -> tuple[RangeGroup[W], ...]:
        """The ranges that hold ``key``."""
        ranges = self._covers[bisect_right(self._starts, key) - 1]
        point = self._points.get(key)
        return ranges if point is None else (point, *ranges)

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
        low = self._cut(start)
        high = len(self._starts) if end is None else self._cut(end)
        for position in range(low, high):
            self._covers[position] += (group,)

    def _uncover(self, group: RangeGroup[W]) -> None:
        start, end = self._bounds(group)
        if end is not None and end <= start:
            return
        low = self._cut(start)
        high = len(self._starts) if end is None else self._cut(end)
        for position in range(low, high):
            self._covers[position] = tuple(each for each in self._covers[position] if each is not group)
        if end is not None:
            self._maybe_join(high)
        self._maybe_join(low)

    def _cut(self, boundary: bytes) -> int:
        """The position of the segment that begins at ``boundary``, made if there is none."""
        position = bisect_left(self._starts, boundary)
        if position == len(self._starts) or self._starts[position] != boundary:
            self._starts.insert(position, boundary)
            self._covers.insert(position, self._covers[position - 1])
        return position

    def _maybe_join(self, position: int) -> bool:
        """Drop the start of a segment that no range needs: the same ranges cover both sides."""
        if position == 0 or self._covers[position - 1] != self._covers[position]:
            return False
        del self._starts[position], self._covers[position]
        return True
