"""Names that wait to be looked at."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from apiserver import upkeep
from apiserver.upkeep import Upkeep


class World:
    """``gates``: names whose look does not end before they are set; ``fails``: errors of the next looks."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.fails: dict[str, list[Exception]] = {}
        self.upkeep = Upkeep("a thing", self.sync, (OSError,), lane=lambda name: name.partition(".")[2])

    async def sync(self, name: str) -> None:
        self.begun.append(name)
        if name in self.gates:
            await self.gates[name].wait()
        if self.fails.get(name):
            raise self.fails[name].pop(0)

    async def begins(self, *names: str) -> None:
        async with asyncio.timeout(10):
            while True:
                if len(self.begun) >= len(names):
                    break
                await asyncio.sleep(0.001)
        for _ in range(5):
            await asyncio.sleep(0)
        assert self.begun == list(names)


@contextlib.asynccontextmanager
async def running(world: World) -> AsyncIterator[None]:
    task = asyncio.create_task(world.upkeep.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_names_of_a_lane_go_one_after_the_other_and_lanes_side_by_side() -> None:
    world = World()
    world.gates["a.x"] = asyncio.Event()
    async with running(world):
        for name in ("a.x", "b.x", "c.x", "d.y"):
            world.upkeep.enqueue(name)
        await world.begins("a.x", "d.y")
        world.upkeep.enqueue("b.x")
        world.gates["a.x"].set()
        await world.begins("a.x", "d.y", "b.x", "c.x")


async def test_what_changes_while_it_is_looked_at_is_looked_at_again() -> None:
    world = World()
    gate = world.gates["a.x"] = asyncio.Event()
    async with running(world):
        world.upkeep.enqueue("a.x")
        await world.begins("a.x")
        world.upkeep.enqueue("a.x")
        world.upkeep.enqueue("a.x")
        await world.begins("a.x")
        gate.set()
        await world.begins("a.x", "a.x")


async def test_no_more_than_the_bound_are_looked_at_at_a_time() -> None:
    world = World()
    names = [f"a.{n}" for n in range(upkeep.WORKERS + 3)]
    gate = asyncio.Event()
    world.gates = dict.fromkeys(names, gate)
    async with running(world):
        for name in names:
            world.upkeep.enqueue(name)
        await world.begins(*names[: upkeep.WORKERS])
        gate.set()
        await world.begins(*names)


@pytest.mark.parametrize("error", [OSError("the store is away"), KeyError("a fault of this program")])
async def test_what_failed_is_looked_at_again_and_holds_up_no_other(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "PAUSE_SECONDS", 0.01)
    world = World()
    world.fails["a.x"] = [error, error]
    async with running(world):
        world.upkeep.enqueue("a.x")
        world.upkeep.enqueue("b.x")
        await world.begins("a.x", "b.x", "a.x", "a.x")


def test_pauses_double_up_to_a_limit_until_they_are_forgotten() -> None:
    pauses = upkeep.Pauses()
    assert [pauses.next("a") for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert pauses.next("b") == 0.5
    pauses.forget("a")
    assert pauses.next("a") == 0.5
