"""A metadata informer for every resource that can be deleted, kept in step with discovery."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler, SharedInformer
from controllers.client import errors
from controllers.client.discovery import discover
from controllers.client.interface import Api
from controllers.client.resources import Resource
from controllers.lib.clock import Clock

#: How often discovery is asked for new resources; a changed CustomResourceDefinition is a reason to ask sooner, though not at once: an
#: operator's installation brings dozens of definitions within seconds, which then cost one look at discovery.
DISCOVERY_SECONDS = 30.0
SOON_SECONDS = 5.0
#: how long new monitors may take to sync before work goes on without them
SYNC_SECONDS_MAX = 30.0
#: kinds that own nothing and are owned by nothing worth a watch
IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})
CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")

log = logging.getLogger(__name__)


class Monitors:
    """``run`` until cancelled. ``synced`` is clear while new monitors have not seen everything: dependents could be missed."""

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        rng: random.Random,
        on_object: Callable[[Resource, Object], None],
        on_gone: Callable[[Object], None],
    ) -> None:
        self._api, self._clock, self._random = api, clock, rng
        self._on_object, self._on_gone = on_object, on_gone
        self._running: dict[Resource, tuple[SharedInformer, asyncio.Task[None]]] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        self._soon = asyncio.Event()
        self.synced = asyncio.Event()

    def resource_of(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind, in the version that the server prefers; None where there is no such kind."""
        return self._by_kind.get((api_version.rpartition("/")[0], kind))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    await self._sync(group)
                except errors.TRANSIENT as error:
                    log.warning("discovery failed, the monitors stay as they are: %s", error)
                self._soon.clear()
                await self._pause()

    async def _pause(self) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(DISCOVERY_SECONDS))
        asked = asyncio.ensure_future(self._soon.wait())
        try:
            done, _ = await asyncio.wait({sleeping, asked}, return_when=asyncio.FIRST_COMPLETED)
            if asked in done:
                await self._clock.sleep(SOON_SECONDS)
        finally:
            for task in (sleeping, asked):
                task.cancel()
            await asyncio.gather(sleeping, asked, return_exceptions=True)

    async def _sync(self, group: asyncio.TaskGroup) -> None:
        found = await discover(self._api)
        for one in found.resources:
            self._by_kind[one.resource.group, one.resource.kind] = one.resource
        wanted = {r for r in found.with_verbs("list", "watch", "delete") if (r.group, r.plural) not in IGNORED}
        if not found.failed:
            for resource in [r for r in self._running if r not in wanted]:
                self._running.pop(resource)[1].cancel()
        new = sorted(wanted - set(self._running))
        if not new:
            self.synced.set()
            return
        self.synced.clear()
        for resource in new:
            informer = SharedInformer(self._api, resource, clock=self._clock, rng=self._random, metadata_only=True)
            informer.add_handler(self._handler(resource))
            self._running[resource] = informer, group.create_task(self._run_one(informer), name=f"monitor {resource.qualified}")
        await self._wait_for(new)
        self.synced.set()

    async def _wait_for(self, new: list[Resource]) -> None:
        waiting: asyncio.Future[Any] = asyncio.gather(*(self._running[r][0].wait_until_synced() for r in new))
        giving_up: asyncio.Future[Any] = asyncio.ensure_future(self._clock.sleep(SYNC_SECONDS_MAX))
        try:
            await asyncio.wait({waiting, giving_up}, return_when=asyncio.FIRST_COMPLETED)
            late = [r.qualified for r in new if not self._running[r][0].has_synced]
            if late:
                log.warning("monitors not synced after %.0f s: %s", SYNC_SECONDS_MAX, ", ".join(late))
        finally:
            waiting.cancel()
            giving_up.cancel()
            await asyncio.gather(waiting, giving_up, return_exceptions=True)

    async def _run_one(self, informer: SharedInformer) -> None:
        try:
            await informer.run()
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling() and informer.resource in self._running:
                raise  # the whole is ending; else only this resource went away

    def _handler(self, resource: Resource) -> EventHandler:
        is_crd = (resource.group, resource.plural) == CRDS

        def seen(obj: Object) -> None:
            if is_crd:
                self._soon.set()
            self._on_object(resource, obj)

        def gone(obj: Object) -> None:
            if is_crd:
                self._soon.set()
            self._on_gone(obj)

        return EventHandler(on_add=seen, on_update=lambda _, new: seen(new), on_delete=gone)
