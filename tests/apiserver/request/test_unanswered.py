"""Answers of other servers for code that never waits: asked once, remembered for a time, bounded in number."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.request import unanswered
from apiserver.request.unanswered import RemoteAnswers, Unanswered, settled, settled_work


class World:
    def __init__(self, ttl: float = 10.0, entries_max: int = 3) -> None:
        self.now = 0.0
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers: RemoteAnswers[str] = RemoteAnswers(
            now=lambda: self.now, entries_max=entries_max, ttl_seconds=lambda _: ttl, overloaded=lambda: "overloaded"
        )

    def get(self, question: str) -> str:
        async def ask() -> str:
            self.asked.append(question)
            await self.gate.wait()
            return f"{question}!"

        return self.answers.get(question, ask)


async def test_memory_raises_and_the_step_is_done_again() -> None:
    world = World()
    with pytest.raises(Unanswered):
        world.get("a")
    assert await settled(lambda: world.get("a") + world.get("b")) == "a!b!"
    assert world.get("a") == "a!" and world.asked == ["a", "b"]


async def test_an_answer_holds_for_its_time_and_the_longest_unused_goes_first() -> None:
    world = World()
    for question in "abc":
        await settled(lambda question=question: world.get(question))  # type: ignore[misc]
    world.get("a")
    await settled(lambda: world.get("d"))
    assert len(world.answers) == 3 and world.get("a") == "a!"
    with pytest.raises(Unanswered):
        world.get("b")
    world.now = 10.0
    with pytest.raises(Unanswered):
        world.get("a")


async def test_without_a_time_to_live_an_answer_is_for_one_step() -> None:
    world = World(ttl=0.0)
    assert await settled(lambda: world.get("a") + world.get("b") + world.get("a")) == "a!b!a!"
    assert await settled(lambda: world.get("a")) == "a!"
    assert world.asked == ["a", "b", "a"] and len(world.answers) == 0


async def test_equal_questions_are_asked_once_and_one_that_gives_up_takes_nothing_from_the_others() -> None:
    world = World()
    world.gate.clear()
    first, second = (asyncio.create_task(settled(lambda: world.get("a"))) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    world.gate.set()
    assert await second == "a!" and world.asked == ["a"]


async def test_beyond_the_bound_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unanswered, "PENDING_MAX", 2)
    world = World()
    world.gate.clear()
    waiting = [asyncio.create_task(settled(lambda question=question: world.get(question))) for question in "ab"]  # type: ignore[misc]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await settled(lambda: world.get("c")) == "overloaded"
    world.gate.set()
    assert await asyncio.gather(*waiting) == ["a!", "b!"]
    assert await settled(lambda: world.get("c")) == "c!", "it was not remembered"


async def test_a_step_that_itself_waits_begins_anew() -> None:
    world = World()
    begun: list[Any] = []

    async def step() -> str:
        begun.append(None)
        await asyncio.sleep(0)
        return world.get("a") + world.get("b")

    assert await settled_work(step) == "a!b!" and len(begun) == 3


async def test_a_step_that_never_ends_asking_is_ended() -> None:
    world = World(ttl=0.0)
    count = iter(range(10_000))
    with pytest.raises(RuntimeError):
        await settled(lambda: world.get(f"new {next(count)}"))
    assert len(world.asked) == unanswered.ROUNDS_MAX
