"""Informers of the resources that some quota counts, of most with their metadata alone; each starts with the first quota that names it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler, SharedInformer
from controllers.client.discovery import discover
from controllers.client.interface import Api
from controllers.client.resources import Resource
from controllers.lib.clock import Clock
from controllers.resourcequota.decision import DEVICE_CLAIMS, GroupResource

#: Between reads of discovery for a resource that was not there.
DISCOVERY_SECONDS = 30.0

log = logging.getLogger(__name__)


class CountedResources:
    """``run`` until cancelled; the others may be called meanwhile. ``on_delete`` is told of every object that goes."""

    def __init__(self, api: Api, *, clock: Clock, rng: random.Random, on_delete: Callable[[Object], None]) -> None:
        self._api, self._clock, self._random, self._on_delete = api, clock, rng, on_delete
        self._informers: dict[GroupResource, SharedInformer] = {}
        self._tasks: dict[GroupResource, asyncio.Task[None]] = {}
        self._starting: asyncio.Queue[GroupResource] = asyncio.Queue()
        self._known: dict[GroupResource, Resource] = {}
        self._discovered_at: float | None = None
        self._discovering = asyncio.Lock()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                key = await self._starting.get()
                informer = self._informers.get(key)
                if informer is not None:
                    self._tasks[key] = group.create_task(self._run_one(key, informer), name=f"quota counts {informer.resource.qualified}")

    async def informer(self, key: GroupResource) -> SharedInformer | None:
        """The informer, perhaps not yet synced; None where the server has no such resource.

        Raises:
            StatusError, ConnectionFailed: discovery cannot be read.
        """
        if key not in self._informers:
            resource = await self._resource(key)
            if resource is None:
                return None
            if key not in self._informers:  # another worker may have made it during the read
                only_number = key != DEVICE_CLAIMS
                informer = SharedInformer(self._api, resource, clock=self._clock, rng=self._random, metadata_only=only_number)
                informer.add_handler(EventHandler(on_delete=self._on_delete))
                self._informers[key] = informer
                self._starting.put_nowait(key)
        return self._informers[key]

    async def keep_only(self, wanted: set[GroupResource]) -> None:
        """Stops the informers of what no quota counts any more, or what the server no longer has."""
        self._discovered_at = None
        for key in sorted(self._informers):
            if key not in wanted or await self._resource(key) is None:
                log.info("no longer counting %s.%s", key[1], key[0])
                del self._informers[key]
                task = self._tasks.pop(key, None)
                if task is not None:
                    task.cancel()

    async def _resource(self, key: GroupResource) -> Resource | None:
        async with self._discovering:
            now = self._clock.monotonic()
            fresh = self._discovered_at is not None and now - self._discovered_at < DISCOVERY_SECONDS
            if not fresh and (key not in self._known or self._discovered_at is None):
                found = await discover(self._api)
                listed = {(r.group, r.plural): r for r in found.with_verbs("list", "watch") if r.namespaced}
                self._known = {**self._known, **listed} if found.failed else listed
                self._discovered_at = now
        return self._known.get(key)

    async def _run_one(self, key: GroupResource, informer: SharedInformer) -> None:
        try:
            await informer.run()
        except asyncio.CancelledError:
            if self._informers.get(key) is informer:
                raise  # the whole is ending; else only this informer was stopped
