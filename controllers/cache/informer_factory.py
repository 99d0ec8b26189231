"""``InformerFactory``: one informer a resource for all controllers of a process."""

from __future__ import annotations

import asyncio
import random

from controllers.cache.shared_informer import SharedInformer
from controllers.client.interface import Api
from controllers.client.resources import Resource
from controllers.lib.clock import Clock


class InformerView:
    """The factory as one controller sees it: it remembers which informers that one asked for, and waits for no others."""

    def __init__(self, factory: InformerFactory) -> None:
        self._factory = factory
        self._asked_for: dict[SharedInformer, None] = {}

    def informer(self, resource: Resource, namespace: str = "") -> SharedInformer:
        found = self._factory.informer(resource, namespace)
        self._asked_for[found] = None
        return found

    async def wait_until_synced(self) -> None:
        for informer in self._asked_for:
            await informer.wait_until_synced()


class InformerFactory:
    """Informers are asked for while controllers are built, then ``run``; one asked for later is started by the caller."""

    def __init__(self, api: Api, *, clock: Clock, rng: random.Random, resync_seconds: float = 0.0, detect_mutations: bool = False) -> None:
        self._api, self._clock, self._random = api, clock, rng
        self._resync_seconds, self._detect_mutations = resync_seconds, detect_mutations
        self._informers: dict[tuple[Resource, str], SharedInformer] = {}

    def informer(self, resource: Resource, namespace: str = "") -> SharedInformer:
        """Of all namespaces, or of one."""
        found = self._informers.get((resource, namespace))
        if found is None:
            found = SharedInformer(
                self._api,
                resource,
                clock=self._clock,
                rng=self._random,
                namespace=namespace,
                resync_seconds=self._resync_seconds,
                detect_mutations=self._detect_mutations,
            )
            self._informers[resource, namespace] = found
        return found

    def view(self) -> InformerView:
        return InformerView(self)

    async def run(self) -> None:
        """Runs every informer until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run(), name=f"informer {informer.resource.qualified}")

    async def wait_until_synced(self) -> None:
        for informer in list(self._informers.values()):
            await informer.wait_until_synced()

    def not_synced(self) -> list[str]:
        return sorted(r.qualified for (r, _), informer in self._informers.items() if not informer.has_synced)

    def check_mutations(self) -> None:
        for informer in self._informers.values():
            informer.check_mutations()
