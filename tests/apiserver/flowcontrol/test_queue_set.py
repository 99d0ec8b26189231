"""Seats, queues and fairness of one priority level, on a clock of the test's."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from apiserver.flowcontrol.queue_set import Outcome, QueueSet, Queuing, Refusal, State, Ticket, deal

QUEUING = Queuing(queues=8, hand_size=2, length_limit=3)


def ticket(level: QueueSet, flow: str = "", seats: int = 1) -> Ticket:
    return Ticket(level, flow, seats, 0.0)


def begin(level: QueueSet, hand: tuple[int, ...] = (0, 1), flow: str = "", seats: int = 1) -> tuple[Ticket, Outcome | Refusal]:
    made = ticket(level, flow, seats)
    return made, level.begin(made, hand, 0.0)


@pytest.mark.parametrize(("deck", "hand"), [(8, 3), (128, 6), (16, 4), (1, 1), (5, 5)])
def test_a_hand_is_of_distinct_cards_and_each_card_comes_as_often(deck: int, hand: int) -> None:
    seen: Counter[int] = Counter()
    for value in range(3000):
        cards = deal(value * 2_654_435_761, deck, hand)
        assert len(set(cards)) == hand and all(0 <= card < deck for card in cards)
        seen.update(cards)
    assert set(seen) == set(range(deck))
    assert max(seen.values()) < 3 * 3000 * hand / deck


def test_every_hand_of_a_small_deck_is_dealt() -> None:
    hands = {tuple(sorted(deal(value, 5, 2))) for value in range(20)}
    assert hands == set(itertools.combinations(range(5), 2))


def test_seats_are_taken_and_given_back_in_order_of_arrival() -> None:
    level = QueueSet("l", queuing=QUEUING, seats_max=2)
    (first, a), (second, b), (third, c) = begin(level), begin(level), begin(level)
    assert (a, b, c) == (Outcome.RUN, Outcome.RUN, Outcome.WAIT)
    assert level.dispatch(0.0) is None
    level.finish(first, 1.0)
    assert level.dispatch(1.0) is third and third.state is State.RUNNING
    level.finish(second, 2.0)
    level.finish(third, 2.0)
    assert level.is_idle and level.seats_in_use == 0


def test_a_full_queue_and_a_level_without_queues_refuse() -> None:
    level = QueueSet("l", queuing=QUEUING, seats_max=1)
    outcomes = [begin(level, (4,))[1] for _ in range(5)]
    assert outcomes == [Outcome.RUN, *[Outcome.WAIT] * 3, Refusal.QUEUE_FULL]
    assert begin(level, (4, 5))[1] is Outcome.WAIT, "the other queue of the hand has room"
    plain = QueueSet("p", seats_max=1)
    assert [begin(plain)[1] for _ in range(2)] == [Outcome.RUN, Refusal.CONCURRENCY_LIMIT]


def test_the_exempt_level_never_waits() -> None:
    level = QueueSet("exempt", exempt=True)
    assert {begin(level)[1] for _ in range(1000)} == {Outcome.RUN}


def test_places_of_clients_that_are_gone_are_free() -> None:
    level = QueueSet("l", queuing=QUEUING, seats_max=1)
    running, _ = begin(level, (0,))
    told: list[bool] = []
    for _ in range(3):
        waiting, _ = begin(level, (0,))
        waiting.is_gone, waiting.tell = (lambda: True), told.append
    last, outcome = begin(level, (0,))
    assert (outcome, told) == (Outcome.WAIT, [False] * 3)
    level.finish(running, 1.0)
    assert level.dispatch(1.0) is last


def test_a_request_wider_than_its_level_runs_alone() -> None:
    level = QueueSet("l", queuing=QUEUING, seats_max=2)
    wide, outcome = begin(level, seats=5)
    assert outcome is Outcome.RUN
    narrow, outcome = begin(level)
    assert outcome is Outcome.WAIT
    level.finish(wide, 1.0)
    assert level.dispatch(1.0) is narrow


def test_a_flow_that_floods_does_not_hold_up_another() -> None:
    """Of two flows in queues of their own each has half of the work done, however many requests one of them sends."""
    level = QueueSet("l", queuing=Queuing(queues=2, hand_size=1, length_limit=1000), seats_max=1)
    running, _ = begin(level, (0,), "loud")
    for _ in range(500):
        begin(level, (0,), "loud")
    for _ in range(10):
        begin(level, (1,), "quiet")
    now, order = 0.0, []
    for _ in range(20):
        now += 0.1
        level.finish(running, now)
        found = level.dispatch(now)
        assert found is not None
        running = found
        order.append(found.flow)
    assert order.count("quiet") == 10, order


def test_work_counts_by_seats_and_time() -> None:
    """One flow's requests take four times as long: it gets a quarter as many."""
    level = QueueSet("l", queuing=Queuing(queues=2, hand_size=1, length_limit=1000), seats_max=1)
    running, _ = begin(level, (0,), "slow")
    for _ in range(100):
        begin(level, (0,), "slow")
        begin(level, (1,), "fast")
    now, order = 0.0, []
    for _ in range(50):
        now += 0.4 if running.flow == "slow" else 0.1
        level.finish(running, now)
        found = level.dispatch(now)
        assert found is not None
        running = found
        order.append(found.flow)
    assert 3 <= order.count("fast") / order.count("slow") <= 5, order
