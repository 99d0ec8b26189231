"""Which watchers see a key: the segments against looking at every range."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storage.watch.event_batch import WatchOptions, matches
from storage.watch.watcher_group import WatcherGroup

PLAIN = WatchOptions(False, False, False)
FILTERED = WatchOptions(True, False, True)

points = st.sampled_from([b"a", b"b", b"b\0", b"c", b"d", b"e"])
ranges = st.tuples(points, points | st.just(b"\0") | st.just(b""), st.sampled_from([PLAIN, FILTERED]))


@given(st.lists(st.one_of(ranges.map(lambda each: ("add", each)), st.integers(0, 9).map(lambda at: ("remove", at))), max_size=25))
def test_the_ranges_around_a_key_are_those_that_hold_it(steps: list[tuple[str, object]]) -> None:
    group: WatcherGroup[int] = WatcherGroup()
    added: dict[int, tuple[bytes, bytes, WatchOptions]] = {}
    for number, (step, argument) in enumerate(steps):
        if step == "add":
            assert isinstance(argument, tuple)
            added[number] = argument
            group.add(number, *argument)
        elif added:
            assert isinstance(argument, int)
            watcher = sorted(added)[argument % len(added)]
            group.remove(watcher, *added.pop(watcher))
        assert sorted(group.watchers()) == sorted(added)
        for key in (b"", b"a", b"a\0", b"b", b"b\0", b"b\0\0", b"c", b"d", b"dz", b"e", b"zz"):
            found = [
                (watcher, options)
                for covering in group.covering(key)
                for options, watchers in covering.by_options.items()
                for watcher in watchers
            ]
            expected = [(watcher, each[2]) for watcher, each in added.items() if matches(key, each[0], each[1])]
            assert sorted(found, key=lambda pair: pair[0]) == expected


def test_segments_are_joined_again_when_ranges_go() -> None:
    """Ten thousand watches that come and go must not leave ten thousand segments behind."""
    group: WatcherGroup[int] = WatcherGroup()
    group.add(-1, b"k", b"l", PLAIN)
    before = len(group._starts)
    for number in range(100):
        group.add(number, b"k%03d" % number, b"k%03d" % (number + 7), PLAIN)
    for number in range(100):
        group.remove(number, b"k%03d" % number, b"k%03d" % (number + 7), PLAIN)
    assert len(group._starts) == before
    assert len(group.covering(b"k5")) == 1
