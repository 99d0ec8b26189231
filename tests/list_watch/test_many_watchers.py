"""Five hundred watches of one resource: each is told its own events, once and in order; those who do not read cost the others nothing."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.api import Api, config_in, running

CM = "/api/v1/namespaces/default/configmaps"
WATCHERS = 500
STUCK = 20
WRITES = 30
#: Far fewer than the server keeps for a watch, so that this many writes are too many for one who takes none.
KEPT_EVENTS = WRITES // 2


async def stuck_watch(api: Api, revision: str) -> tuple[asyncio.Task[None], list[int]]:
    """A watch whose reader takes the head and then nothing. What was being sent to it is counted in bytes."""
    started, held = asyncio.Event(), list[int]()

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        started.set()
        if message.get("body"):
            held.append(len(message["body"]))
            await asyncio.Event().wait()

    scope = api.scope("GET", CM, {"watch": "1", "resourceVersion": revision}, {"authorization": "Bearer admin-token"})
    task = asyncio.create_task(api.server.app(scope, receive, send))
    await started.wait()
    return task, held


@pytest.mark.slow
async def test_five_hundred_watches_and_twenty_that_do_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.objectstore.cache_watcher.QUEUE_EVENTS_MAX", KEPT_EVENTS)
    async with running(config_in(tmp_path)) as api, AsyncExitStack() as stack:
        revision = (await api.get(CM)).json["metadata"]["resourceVersion"]
        cache = api.server.objects.storages()["configmaps"].cache
        stuck = [await stuck_watch(api, revision) for _ in range(STUCK)]
        watches = []
        for number in range(WATCHERS):
            # every write, the writes of one label, or those to one name
            query = ({}, {"labelSelector": f"n={number % WRITES}"}, {"fieldSelector": f"metadata.name=c-{number % WRITES}"})[number % 3]
            asked: dict[str, Any] = {"resourceVersion": revision, **query}
            watches.append((await stack.enter_async_context(api.watch(CM, **asked)), number))
        assert len(cache.watchers()) == WATCHERS + STUCK
        written = []
        for number in range(WRITES):
            made = await api.created(CM, {"metadata": {"name": f"c-{number}", "labels": {"n": str(number)}}})
            written.append((made["metadata"]["name"], made["metadata"]["resourceVersion"]))
            for _ in range(5):
                await asyncio.sleep(0)  # a write in memory waits for nothing: those who read get their turn
        for watch, number in watches:
            expected = written if number % 3 == 0 else [written[number % WRITES]]
            events = await watch.take(len(expected))
            assert [(e["object"]["metadata"]["name"], e["object"]["metadata"]["resourceVersion"]) for e in events] == expected
        # cut, with no more than one piece on its way, and their queues are gone
        await asyncio.wait_for(asyncio.gather(*(task for task, _ in stuck)), 10)
        assert all(len(held) == 1 for _, held in stuck)
        assert len(cache.watchers()) == WATCHERS
    assert not cache.watchers()
