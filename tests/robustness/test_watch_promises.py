"""The checker itself: streams that keep the promises, and one broken stream for each promise."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import api, errors
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import Lessor
from storage.member.applier import Applier
from storage.member.request import CompactionRequest
from storage.watch.watchable_store import WatchableStore
from tests.robustness import kv_model
from tests.robustness.watch_promises import Compacted, Stream, Truth, check_watch


def put(key: bytes, value: bytes) -> api.PutRequest:
    return api.PutRequest(key=key, value=value)


LOG: tuple[kv_model.Request, ...] = (
    put(b"a", b"1"),  # 2
    put(b"b", b"1"),  # 3
    api.TxnRequest(success=(put(b"a", b"2"), put(b"b", b"2"))),  # 4
    api.DeleteRangeRequest(key=b"a"),  # 5
    put(b"x", b"1"),  # 6
    put(b"b", b"3"),  # 7
)
TRUTH = Truth.of(LOG)
ALL = api.WatchRequest(key=b"a", range_end=b"c", start_revision=2)
FROM_4 = api.WatchRequest(key=b"a", range_end=b"c", start_revision=4, prev_kv=True)


def batch(revision: int, request: api.WatchRequest = ALL, **changes: object) -> api.WatchBatch:
    """A right one."""
    events = []
    for event in TRUTH.selected(request, revision):
        before = TRUTH.key_before(event.kv.key, revision) if request.prev_kv else None
        events.append(replace(event, prev_kv=before))
    return replace(api.WatchBatch(revision=revision, events=tuple(events)), **changes)  # type: ignore[arg-type]


def notice(revision: int) -> api.WatchBatch:
    return api.WatchBatch(revision=revision, events=())


GOOD = [batch(2), batch(3), batch(4), batch(5), batch(7)]


def problems(items: Sequence[api.WatchBatch | Compacted], request: api.WatchRequest = ALL, **options: object) -> list[str]:
    return check_watch([Stream(request, items)], TRUTH, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "items",
    [
        GOOD,
        GOOD[:2],
        [],
        [*GOOD[:4], notice(5), notice(6), *GOOD[4:], notice(7)],
        [api.WatchBatch(revision=4, events=(*GOOD[0].events, *GOOD[1].events, *GOOD[2].events)), *GOOD[3:]],
        [*GOOD[:4], replace(GOOD[4])],
    ],
)
def test_streams_that_keep_the_promises(items: list[api.WatchBatch | Compacted]) -> None:
    assert problems(items) == []
    assert check_watch([Stream(ALL, items)]) == []


def test_a_stream_with_values_before() -> None:
    assert problems([batch(4, FROM_4), batch(5, FROM_4), batch(7, FROM_4)], FROM_4, complete_to=7) == []


def test_a_watch_from_now_on_is_judged_from_what_it_was_told() -> None:
    request = replace(ALL, start_revision=0)
    told = Stream(request, GOOD[2:], created_revision=3)
    assert check_watch([told], TRUTH, complete_to=7) == []
    assert check_watch([replace(told, created_revision=2)], TRUTH) != []
    assert check_watch([Stream(request, GOOD[3:])], TRUTH) == []


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([GOOD[0], GOOD[2], GOOD[1]], "has a gap"),
        ([GOOD[0], GOOD[1], GOOD[0]], "was said to have come"),
        ([GOOD[0], GOOD[1], GOOD[1]], "was said to have come"),
        ([GOOD[0], GOOD[1], GOOD[3]], "has a gap"),
        ([*GOOD[:2], notice(4), *GOOD[3:]], "has a gap"),
        ([*GOOD[:2], replace(GOOD[2], events=GOOD[2].events[:1]), replace(GOOD[2], events=GOOD[2].events[1:])], "is not what happened"),
        ([*GOOD[:2], replace(GOOD[2], events=GOOD[2].events[::-1])], "is not ordered"),
        ([*GOOD[:2], replace(GOOD[2], events=GOOD[2].events[:1] * 2)], "is not what happened"),
        ([*GOOD[:2], notice(3), notice(2)], "goes back"),
        ([replace(GOOD[0], revision=1)], "holds an event of 2"),
        ([batch(6, replace(ALL, key=b"x", range_end=b""))], "did not ask for"),
        ([*GOOD, notice(9)], "there are only 7"),
        ([replace(GOOD[0], events=(replace(GOOD[0].events[0], kv=replace(GOOD[0].events[0].kv, value=b"9")),))], "is not what happened"),
        ([replace(GOOD[0], events=(replace(GOOD[0].events[0], kv=replace(GOOD[0].events[0].kv, version=9)),))], "wrong value at"),
        ([replace(GOOD[0], events=(replace(GOOD[0].events[0], prev_kv=GOOD[0].events[0].kv),))], "value before that it did not ask for"),
        ([GOOD[0], Compacted(1)], "does not reach"),
        ([GOOD[0], Compacted(5)], "there was none"),
    ],
)
def test_streams_that_break_a_promise(items: list[api.WatchBatch | Compacted], text: str) -> None:
    found = problems(items)
    assert any(text in problem for problem in found), found


def test_a_start_that_is_too_early() -> None:
    found = problems([batch(3, FROM_4), batch(4, FROM_4)], FROM_4)
    assert any("starts too early" in problem for problem in found), found


def test_a_missing_or_wrong_value_before() -> None:
    right = batch(5, FROM_4)
    for wrong in (None, replace(right.events[0].prev_kv, value=b"9")):  # type: ignore[type-var]
        found = problems([batch(4, FROM_4), replace(right, events=(replace(right.events[0], prev_kv=wrong),))], FROM_4)
        assert any("wrong value before" in problem for problem in found), found


def test_a_stream_that_ends_too_soon() -> None:
    assert problems(GOOD[:4], complete_to=6) == []
    assert any("has a gap" in problem for problem in problems(GOOD[:4], complete_to=7))


def test_filters_are_kept() -> None:
    no_put = replace(ALL, no_put=True)
    assert problems([batch(5, no_put)], no_put, complete_to=7) == []
    assert any("did not ask for" in problem for problem in problems([GOOD[0]], no_put))


def test_a_door_that_passes_events_on_one_by_one() -> None:
    first, second = (replace(GOOD[2], events=(event,)) for event in GOOD[2].events)
    assert problems([*GOOD[:2], first, second, GOOD[3]], atomic=False) == []
    assert problems([*GOOD[:2], first, second, GOOD[3]]) != []
    assert problems([*GOOD[:2], first, GOOD[3]], atomic=False) != []


def test_resuming_is_where_the_stream_before_ended() -> None:
    first = Stream(ALL, GOOD[:2])
    assert check_watch([first, Stream(replace(ALL, start_revision=4), GOOD[2:])], TRUTH, complete_to=7) == []
    assert check_watch([first, Stream(replace(ALL, start_revision=5), GOOD[3:])], TRUTH) != []
    again = Stream(replace(ALL, start_revision=4), [GOOD[1], *GOOD[2:]])
    assert any("starts too early" in problem for problem in check_watch([first, again], TRUTH))


def test_a_compaction_that_overtakes_a_watch_ends_it() -> None:
    truth = Truth.of([*LOG, CompactionRequest(revision=5)])
    first = Stream(ALL, [GOOD[0], Compacted(5)])
    assert check_watch([first], truth) == []
    assert check_watch([first, Stream(replace(ALL, start_revision=6), GOOD[4:])], truth, complete_to=7) == []
    assert check_watch([Stream(ALL, [GOOD[0], GOOD[3]])], truth) != [], "a jump without being told"


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 32))
def test_the_stores_own_watches_keep_them(seed: int) -> None:
    """Random requests, watches that begin anywhere and lag at will, compactions that overtake them."""
    rng = random.Random(seed)
    backend = MemoryBackend()
    lessor = Lessor(backend)
    store = WatchableStore(backend, lessor)
    applier = Applier(
        store, lessor, make_header=lambda revision: api.ResponseHeader(cluster_id=1, member_id=1, revision=revision, raft_term=1),
        monotonic=lambda: 0.0,
    )  # fmt: skip
    log: list[kv_model.Request] = []
    watches: list[tuple[api.WatchRequest, int, api.Watcher, list[api.WatchBatch | Compacted]]] = []
    keys = [b"a", b"b", b"c"]

    def read(index: int) -> None:
        _, _, watcher, items = watches[index]
        if items and isinstance(items[-1], Compacted):
            return
        try:
            while (one := watcher.take()) is not None:
                items.append(one)
        except errors.CompactedError as error:
            items.append(Compacted(error.compact_revision))

    for _ in range(60):
        match rng.randrange(7):
            case 0:
                start = rng.randrange(store.store.current_revision + 5)
                request = api.WatchRequest(
                    key=rng.choice(keys), range_end=rng.choice((b"", b"\0", b"c")), start_revision=start, prev_kv=rng.random() < 0.5,
                    no_put=rng.random() < 0.1, no_delete=rng.random() < 0.1,
                )  # fmt: skip
                watches.append((request, store.store.current_revision, store.watch(request), []))
            case 1:
                if watches:
                    read(rng.randrange(len(watches)))
            case 2:
                if rng.random() < 0.3 and store.store.current_revision > max(store.compact_revision, 1):
                    at = rng.randint(max(store.compact_revision, 0) + 1, store.store.current_revision)
                    log.append(CompactionRequest(revision=at))
                    applier.compact(at)
                    while store.compaction_step():
                        pass
            case 3:
                delete = api.DeleteRangeRequest(key=rng.choice(keys), range_end=rng.choice((b"", b"\0")))
                log.append(delete)
                applier.delete_range(delete)
            case 4:
                chosen = rng.sample(keys, 2)
                both = api.TxnRequest(success=tuple(put(key, b"%d" % rng.randrange(99)) for key in chosen))
                log.append(both)
                applier.txn(both)
            case _:
                one = put(rng.choice(keys), b"%d" % rng.randrange(99))
                log.append(one)
                applier.put(one)
    truth = Truth.of(log)
    for index, (request, created, _, items) in enumerate(watches):
        read(index)
        stream = Stream(request, items, created)
        assert check_watch([stream], truth, complete_to=truth.revision, name=str(index)) == []
