"""An ASGI app that is built when it is first needed, or ahead of that when there is time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class LazyApp:
    """``build`` runs once, in a thread, so that requests to other apps go on while it imports a framework."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._building: asyncio.Future[ASGIApp] | None = None

    async def load(self) -> ASGIApp:
        """The app, built if it was not; a build that failed is tried again by the next caller."""
        if self._building is None or (self._building.done() and self._building.exception() is not None):
            self._building = asyncio.ensure_future(asyncio.to_thread(self._build))
        return await asyncio.shield(self._building)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        building = self._building
        done = building is not None and building.done() and building.exception() is None
        app = building.result() if done and building is not None else await self.load()
        await app(scope, receive, send)
