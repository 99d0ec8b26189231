"""A small world for a controller's shell: fake API, informers with mutation detection, events, a virtual clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from apiserver.machinery.objects import Object
from controllers.cache.informer_factory import InformerFactory
from controllers.client.resources import EVENTS
from controllers.lib.context import Controller, ControllerContext
from controllers.lib.events import EventBroadcaster
from tests.controllers.fake_api import FakeApi
from tests.controllers.virtual_clock import VirtualClock, settle


class World:
    def __init__(self, *, graceful_pods: bool = False) -> None:
        self.clock = VirtualClock()
        self.api = FakeApi(self.clock, graceful_pods=graceful_pods)
        self.rng = random.Random(1)
        self.informers = InformerFactory(self.api, clock=self.clock, rng=self.rng, detect_mutations=True)
        self.broadcaster = EventBroadcaster(self.api, clock=self.clock, rng=self.rng)

    def context(self, component: str = "tester") -> ControllerContext:
        return ControllerContext(
            api=self.api, informers=self.informers.view(), recorder=self.broadcaster.recorder(component), clock=self.clock, rng=self.rng
        )

    @asynccontextmanager
    async def running(self, *build: Callable[[ControllerContext], Controller]) -> AsyncIterator[World]:
        """Controllers at work; afterwards nothing may have changed a cached object."""
        controllers = [make(self.context()) for make in build]
        tasks = [asyncio.create_task(self.informers.run()), asyncio.create_task(self.broadcaster.run())]
        await self.rest()
        tasks += [asyncio.create_task(c.run()) for c in controllers]
        await self.rest()
        try:
            yield self
            self.informers.check_mutations()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def rest(self) -> None:
        """Lets everything that needs no time to pass happen: until a while goes by without a request."""
        for _ in range(200):
            before = len(self.api.requests)
            await settle(100)
            if len(self.api.requests) == before:
                return
        raise AssertionError("the controllers do not come to rest")

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await self.rest()

    def events(self, reason: str = "") -> list[Object]:
        return [e for e in self.api.all(EVENTS) if not reason or e["reason"] == reason]


def template(**labels: str) -> Object:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def ready(clock: VirtualClock) -> Object:
    return {"type": "Ready", "status": "True", "lastTransitionTime": clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")}
