"""Queue semantics against a model, delays and back-off on a virtual clock, workers' retries."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controllers.client.errors import ConnectionFailed
from controllers.workqueue.queue import ShutDown, WorkQueue
from controllers.workqueue.rate_limiter import ItemExponentialFailure
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers
from tests.controllers.virtual_clock import VirtualClock, settle


class QueueModel(RuleBasedStateMachine):
    """The model: an ordered list of waiting keys, the keys being worked on, and those to be put back when done."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue()
        self.waiting: list[str] = []
        self.working: set[str] = set()
        self.again: set[str] = set()

    @rule(key=st.sampled_from("abcd"))
    def add(self, key: str) -> None:
        self.queue.add(key)
        if key in self.working:
            self.again.add(key)
        elif key not in self.waiting:
            self.waiting.append(key)

    @precondition(lambda self: self.waiting)
    @rule()
    def get(self) -> None:
        got = self.queue.get()
        try:
            got.send(None)
        except StopIteration as stop:
            assert stop.value == self.waiting.pop(0)
            assert stop.value not in self.working
            self.working.add(stop.value)
        else:
            raise AssertionError("a key was waiting, and get did not give it")

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key)
        self.working.discard(key)
        if key in self.again:
            self.again.discard(key)
            self.waiting.append(key)

    @invariant()
    def same_length(self) -> None:
        assert len(self.queue) == len(self.waiting)
        assert self.queue.idle == (not self.waiting and not self.working)


QueueModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_queue_equals_its_model = QueueModel.TestCase


async def test_a_cancelled_worker_does_not_swallow_a_key() -> None:
    queue = WorkQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"


async def test_shut_down_gives_out_the_rest_and_then_ends() -> None:
    queue = WorkQueue()
    queue.add("a")
    queue.shut_down()
    queue.add("b")
    assert await queue.get() == "a"
    with pytest.raises(ShutDown):
        await queue.get()


def test_failures_wait_exponentially_up_to_a_maximum() -> None:
    limiter = ItemExponentialFailure()
    waits = [limiter.when("a") for _ in range(20)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04] and waits[-1] == 1000.0
    assert limiter.when("b") == 0.005
    limiter.forget("a")
    assert limiter.when("a") == 0.005


async def test_delayed_keys_come_at_their_times_and_the_earlier_of_two_wins() -> None:
    clock = VirtualClock()
    queue = RateLimitingQueue(clock)
    task = asyncio.create_task(queue.run())
    queue.add_after("late", 10)
    queue.add_after("late", 20)
    queue.add_after("soon", 5)
    queue.add_after("moved", 30)
    queue.add_after("moved", 5)
    await clock.advance(4.9)
    assert len(queue) == 0
    await clock.advance(0.2)
    assert [await queue.get(), await queue.get()] == ["moved", "soon"]
    await clock.advance(5)
    assert await queue.get() == "late"
    await clock.advance(60)
    assert len(queue) == 0 and queue.waiting == 0
    task.cancel()


async def test_workers_try_a_failed_key_again_later_and_others_meanwhile() -> None:
    clock = VirtualClock()
    queue = RateLimitingQueue(clock)
    calls: list[str] = []

    async def sync(key: str) -> None:
        calls.append(key)
        if key == "bad" and calls.count("bad") < 4:
            raise ConnectionFailed("away")
        if key == "fault" and calls.count("fault") < 2:
            raise KeyError("a fault of the controller")

    task = asyncio.create_task(run_workers("test", queue, sync, workers=2))
    for key in ("bad", "good", "fault"):
        queue.add(key)
    await clock.advance(1)
    assert calls.count("bad") == 4 and calls.count("good") == 1 and calls.count("fault") == 2
    assert queue.failures("bad") == 0
    task.cancel()


async def test_workers_give_a_key_up_where_asked_to() -> None:
    clock = VirtualClock()
    queue = RateLimitingQueue(clock)
    calls: list[str] = []

    async def sync(key: str) -> None:
        calls.append(key)
        raise ConnectionFailed("away")

    task = asyncio.create_task(run_workers("test", queue, sync, workers=1, retries_max=3))
    queue.add("bad")
    await clock.advance(100)
    assert len(calls) == 4
    task.cancel()
