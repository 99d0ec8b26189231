"""The shell: events of quotas and of what they count → keys; a key → count, write the status."""

from __future__ import annotations

import asyncio
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler, SharedInformer
from controllers.client import errors
from controllers.client.resources import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES
from controllers.lib.context import ControllerContext
from controllers.resourcequota import decision
from controllers.resourcequota.counted_resources import DISCOVERY_SECONDS, CountedResources
from controllers.resourcequota.decision import GroupResource
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 5
#: between counts of everything (kube-controller-manager's ``--resource-quota-sync-period``)
RESYNC_SECONDS = 300.0
#: how long a count waits for a new informer before it is put off
SYNC_SECONDS_MAX = 10.0


class NotCountedYet(errors.ClientError):
    """An informer has not seen its resource's objects so far."""


class ResourceQuotaController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._quotas = context.informers.informer(RESOURCE_QUOTAS)
        self._quotas.add_handler(EventHandler(on_add=self._enqueue, on_update=self._on_quota_update))
        self._measured: dict[GroupResource, SharedInformer] = {
            key: context.informers.informer(resource)
            for key, resource in zip(decision.MEASURED, (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS), strict=True)
        }
        for key, informer in self._measured.items():
            informer.add_handler(self._handler(key))
        self.counted = CountedResources(context.api, clock=context.clock, rng=context.rng, on_delete=self._on_less)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.counted.run(), name="resource quota informers")
            group.create_task(self._resync(), name="resource quota resync")
            group.create_task(run_workers("resourcequota-controller", self.queue, self.sync, workers=WORKERS))

    # events → keys

    def _enqueue(self, quota: Object) -> None:
        self.queue.add(key_of(quota))

    def _on_quota_update(self, old: Object, new: Object) -> None:
        """Not what admission and this controller write into the status: only another wish, or one that is not told yet."""
        if decision.hard_of(old) != decision.hard_of(new) or decision.hard_of(new) != objects.get(new, "status", "hard", default={}):
            self._enqueue(new)

    def _handler(self, key: GroupResource) -> EventHandler:
        def on_update(old: Object, new: Object) -> None:
            quotas = self._quotas.indexer.in_namespace(objects.namespace(new))
            if quotas and decision.gives_back(key, old, new, self._clock.now().timestamp()):
                self._on_less(new)

        return EventHandler(on_update=on_update, on_delete=self._on_less)

    def _on_less(self, obj: Object) -> None:
        for quota in self._quotas.indexer.in_namespace(objects.namespace(obj)):
            self._enqueue(quota)

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(RESYNC_SECONDS)
            quotas = self._quotas.indexer.list()
            wanted = {one for quota in quotas for one in decision.counted_resources(decision.hard_of(quota))}
            try:
                await self.counted.keep_only(wanted)
            except errors.TRANSIENT:
                continue  # the server is away: the next round will do
            for quota in quotas:
                self._enqueue(quota)

    # a key → its status

    async def sync(self, key: str) -> None:
        quota = self._quotas.indexer.get(key)
        if quota is None:
            return
        namespace = objects.namespace(quota)
        sources: dict[GroupResource, SharedInformer | None] = {}
        for one in decision.counted_resources(decision.hard_of(quota)):
            sources[one] = self._measured.get(one) or await self.counted.informer(one)
        await self._wait_for([informer for informer in sources.values() if informer is not None])
        # from here to the write nothing waits, so the quota and what is counted are of one moment of the caches
        quota = self._quotas.indexer.get(key)
        if quota is None or decision.counted_resources(decision.hard_of(quota)) != list(sources):
            self.queue.add(key)
            return

        def objects_of(one: GroupResource) -> list[Object] | None:
            informer = sources[one]
            return None if informer is None else informer.indexer.in_namespace(namespace)

        status = decision.status_of(quota, objects_of, self._clock.now().timestamp())
        if None in sources.values():
            self.queue.add_after(key, DISCOVERY_SECONDS)
        if status == (quota.get("status") or {}):
            return
        try:
            await self._api.update(RESOURCE_QUOTAS, {**quota, "status": status}, subresource="status")
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise

    async def _wait_for(self, informers: list[SharedInformer]) -> None:
        if all(informer.has_synced for informer in informers):
            return
        waiting: asyncio.Future[Any] = asyncio.gather(*(informer.wait_until_synced() for informer in informers))
        giving_up: asyncio.Future[Any] = asyncio.ensure_future(self._clock.sleep(SYNC_SECONDS_MAX))
        try:
            await asyncio.wait({waiting, giving_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            giving_up.cancel()
            await asyncio.gather(waiting, giving_up, return_exceptions=True)
        late = [informer.resource.qualified for informer in informers if not informer.has_synced]
        if late:
            raise NotCountedYet(f"not synced after {SYNC_SECONDS_MAX:.0f} s: {', '.join(late)}")
