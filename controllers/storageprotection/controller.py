"""The shells: events of claims, pods and volumes → keys; a key → the finalizer put on or taken off."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import Api, list_all
from controllers.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Resource
from controllers.lib import pods as pod_facts
from controllers.lib.context import ControllerContext
from controllers.storageprotection import decision
from controllers.storageprotection.decision import BY_CLAIM, CLAIM_FINALIZER, VOLUME_FINALIZER, index_by_claim
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 1


class ClaimProtectionController:
    def __init__(self, context: ControllerContext) -> None:
        self._api = context.api
        self.queue = RateLimitingQueue(context.clock)
        self._claims = context.informers.informer(PERSISTENT_VOLUME_CLAIMS)
        self._pods = context.informers.informer(PODS)
        self._pods.add_index(BY_CLAIM, index_by_claim)
        self._claims.add_handler(EventHandler(on_add=self._on_claim, on_update=lambda _, new: self._on_claim(new)))
        self._pods.add_handler(EventHandler(on_update=self._on_pod_update, on_delete=self._on_pod_gone))

    async def run(self) -> None:
        await run_workers("pvc-protection-controller", self.queue, self.sync, workers=WORKERS)

    def _on_claim(self, claim: Object) -> None:
        if decision.may_go(claim, CLAIM_FINALIZER, used=False) or decision.lacks(claim, CLAIM_FINALIZER):
            self.queue.add(key_of(claim))

    def _on_pod_update(self, old: Object, new: Object) -> None:
        if objects.uid(old) != objects.uid(new):
            self._on_pod_gone(old)

    def _on_pod_gone(self, pod: Object) -> None:
        if pod_facts.node_name(pod):
            for key in index_by_claim(pod):
                self.queue.add(key)

    async def sync(self, key: str) -> None:
        claim = self._claims.indexer.get(key)
        if claim is None:
            return
        if decision.lacks(claim, CLAIM_FINALIZER):
            await _update(self._api, PERSISTENT_VOLUME_CLAIMS, decision.with_finalizer(claim, CLAIM_FINALIZER))
            return
        used = decision.is_claim_used(claim, self._pods.indexer.by_index(BY_CLAIM, key))
        if not decision.may_go(claim, CLAIM_FINALIZER, used=used):
            return
        pods, _ = await list_all(self._api, PODS, objects.namespace(claim))
        if not decision.is_claim_used(claim, pods):
            await _update(self._api, PERSISTENT_VOLUME_CLAIMS, decision.without_finalizer(claim, CLAIM_FINALIZER))


class VolumeProtectionController:
    def __init__(self, context: ControllerContext) -> None:
        self._api = context.api
        self.queue = RateLimitingQueue(context.clock)
        self._volumes = context.informers.informer(PERSISTENT_VOLUMES)
        self._volumes.add_handler(EventHandler(on_add=self._on_volume, on_update=lambda _, new: self._on_volume(new)))

    async def run(self) -> None:
        await run_workers("pv-protection-controller", self.queue, self.sync, workers=WORKERS)

    def _on_volume(self, volume: Object) -> None:
        used = decision.is_volume_used(volume)
        if decision.may_go(volume, VOLUME_FINALIZER, used=used) or decision.lacks(volume, VOLUME_FINALIZER):
            self.queue.add(key_of(volume))

    async def sync(self, key: str) -> None:
        volume = self._volumes.indexer.get(key)
        if volume is None:
            return
        if decision.lacks(volume, VOLUME_FINALIZER):
            await _update(self._api, PERSISTENT_VOLUMES, decision.with_finalizer(volume, VOLUME_FINALIZER))
        elif decision.may_go(volume, VOLUME_FINALIZER, used=decision.is_volume_used(volume)):
            await _update(self._api, PERSISTENT_VOLUMES, decision.without_finalizer(volume, VOLUME_FINALIZER))


async def _update(api: Api, resource: Resource, obj: Object) -> None:
    try:
        await api.update(resource, obj)
    except errors.StatusError as error:
        if not errors.is_not_found(error):
            raise
