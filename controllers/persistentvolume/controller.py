"""The shell: events of claims, volumes, classes and pods → keys; a claim → a volume; a volume → its phase."""

from __future__ import annotations

import asyncio

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from controllers.lib import pods as pod_facts
from controllers.lib.clock import format_time
from controllers.lib.context import ControllerContext
from controllers.lib.status_writer import write_status
from controllers.persistentvolume import decision
from controllers.storageprotection.decision import BY_CLAIM, index_by_claim
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

#: one, so that two claims do not race for a volume
CLAIM_WORKERS = 1
VOLUME_WORKERS = 2
BY_CLAIM_REF = "claimRef"


class PersistentVolumeController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock, self._recorder = context.api, context.clock, context.recorder
        self.claim_queue = RateLimitingQueue(context.clock)
        self.volume_queue = RateLimitingQueue(context.clock)
        self._claims = context.informers.informer(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.informers.informer(PERSISTENT_VOLUMES)
        self._classes = context.informers.informer(STORAGE_CLASSES)
        self._pods = context.informers.informer(PODS)
        self._nodes = context.informers.informer(NODES)
        self._pods.add_index(BY_CLAIM, index_by_claim)
        self._volumes.add_index(BY_CLAIM_REF, _index_by_claim_ref)
        self._claims.add_handler(EventHandler.for_each(self._on_claim))
        self._volumes.add_handler(EventHandler.for_each(self._on_volume))
        self._classes.add_handler(EventHandler(on_add=self._on_class))
        self._pods.add_handler(EventHandler(on_add=self._on_pod, on_update=lambda _, new: self._on_pod(new)))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run_workers("persistentvolume-binder claims", self.claim_queue, self.sync_claim, workers=CLAIM_WORKERS))
            group.create_task(run_workers("persistentvolume-binder volumes", self.volume_queue, self.sync_volume, workers=VOLUME_WORKERS))

    # events → keys

    def _on_claim(self, claim: Object) -> None:
        self.claim_queue.add(key_of(claim))
        for volume in self._volumes.indexer.by_index(BY_CLAIM_REF, key_of(claim)):
            self.volume_queue.add(key_of(volume))

    def _on_volume(self, volume: Object) -> None:
        self.volume_queue.add(key_of(volume))
        reference = decision.claim_ref(volume)
        if reference is not None:
            self.claim_queue.add(f"{reference.get('namespace')}/{reference.get('name')}")
            return
        for claim in self._claims.indexer.list():
            if not decision.is_bound(claim) and decision.class_of(claim) == decision.class_of(volume):
                self.claim_queue.add(key_of(claim))

    def _on_class(self, storage_class: Object) -> None:
        for claim in self._claims.indexer.list():
            if not decision.is_bound(claim) and decision.class_of(claim) == objects.name(storage_class):
                self.claim_queue.add(key_of(claim))

    def _on_pod(self, pod: Object) -> None:
        if pod_facts.node_name(pod):
            for key in index_by_claim(pod):
                claim = self._claims.indexer.get(key)
                if claim is not None and not decision.is_bound(claim):
                    self.claim_queue.add(key)

    # claims

    async def sync_claim(self, key: str) -> None:
        claim = self._claims.indexer.get(key)
        if claim is None or objects.is_being_deleted(claim):
            return
        named = objects.get(claim, "spec", "volumeName", default="")
        if decision.is_bound(claim):
            await self._check_bound(claim, self._volumes.indexer.get(named))
            return
        if named:
            volume = self._volumes.indexer.get(named)
            if volume is None:
                return  # its volume may still come
            if decision.claim_ref(volume) is not None and not decision.refers_to(volume, claim):
                self._recorder.event(claim, "Warning", "FailedBinding", f'volume "{named}" already bound to a different claim.')
                return
        else:
            volume = self._choose(claim)
            if volume is None:
                self._tell_why_not(claim)
                return
        await self._bind(claim, volume)

    def _choose(self, claim: Object) -> Object | None:
        node: Object | None = None
        if self._waits_for_consumer(claim):
            nodes = (self._nodes.indexer.get(pod_facts.node_name(p)) for p in self._pods.indexer.by_index(BY_CLAIM, key_of(claim)))
            node = next((n for n in nodes if n is not None), None)
            if node is None:
                # a volume that is reserved for the claim needs no choice
                return next((v for v in self._volumes.indexer.list() if decision.refers_to(v, claim) and decision.suits(v, claim)), None)
        return decision.find(claim, self._volumes.indexer.list(), node)

    def _waits_for_consumer(self, claim: Object) -> bool:
        found = self._classes.indexer.get(decision.class_of(claim))
        return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _tell_why_not(self, claim: Object) -> None:
        name = decision.class_of(claim)
        found = self._classes.indexer.get(name) if name else None
        if not name:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._recorder.event(claim, "Normal", "FailedBinding", message)
        elif found is None:
            self._recorder.event(claim, "Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
        elif self._waits_for_consumer(claim):
            self._recorder.event(claim, "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
        elif found.get("provisioner") != "kubernetes.io/no-provisioner":
            self._recorder.event(
                claim,
                "Normal",
                "ExternalProvisioning",
                f"Waiting for a volume to be created either by the external provisioner '{found.get('provisioner')}' or manually by the "
                "system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
                "registered.",
            )

    async def _bind(self, claim: Object, volume: Object) -> None:
        reserved = decision.bound_volume(volume, claim)
        if reserved is not volume:
            reserved = await self._api.update(PERSISTENT_VOLUMES, reserved)
        bound = decision.bound_claim(claim, reserved)
        if bound is not claim:
            bound = await self._api.update(PERSISTENT_VOLUME_CLAIMS, bound)
        await self._write_phase(reserved, decision.volume_phase(reserved, bound))
        await write_status(self._api, PERSISTENT_VOLUME_CLAIMS, bound, decision.claim_status(bound, reserved))

    async def _check_bound(self, claim: Object, volume: Object | None) -> None:
        if volume is not None and (decision.claim_ref(volume) is None or decision.refers_to(volume, claim)):
            await self._bind(claim, volume)
            return
        if volume is None:
            try:
                await self._api.get(PERSISTENT_VOLUMES, "", str(objects.get(claim, "spec", "volumeName", default="")))
                return  # the cache is late
            except errors.StatusError as error:
                if not errors.is_not_found(error):
                    raise
        if objects.get(claim, "status", "phase") == "Lost":
            return
        reason, message = (
            ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
            if volume is None
            else ("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
        )
        await write_status(self._api, PERSISTENT_VOLUME_CLAIMS, claim, decision.claim_status(claim, None))
        self._recorder.event(claim, "Warning", reason, message)

    # volumes

    async def sync_volume(self, name: str) -> None:
        volume = self._volumes.indexer.get(name)
        if volume is None:
            return
        claim = await self._claim_of(volume)
        found = decision.volume_phase(volume, claim)
        if found.phase == "Available" and claim is not None and decision.BOUND_BY_CONTROLLER in objects.annotations(volume):
            taken = objects.get(claim, "spec", "volumeName", default="")
            if taken and taken != name:
                # the claim was given another volume before this binding was complete
                await self._api.update(PERSISTENT_VOLUMES, decision.unbound_volume(volume))
                return
        await self._write_phase(volume, found)

    async def _claim_of(self, volume: Object) -> Object | None:
        reference = decision.claim_ref(volume)
        if reference is None or not reference.get("uid"):
            return None
        namespace, name = str(reference.get("namespace")), str(reference.get("name"))
        found = self._claims.indexer.get(f"{namespace}/{name}")
        if found is None and objects.get(volume, "status", "phase") not in ("Released", "Failed"):
            try:  # before a volume is given up, the server is asked
                found = await self._api.get(PERSISTENT_VOLUME_CLAIMS, namespace, name)
            except errors.StatusError as error:
                if not errors.is_not_found(error):
                    raise
        return found if found is not None and objects.uid(found) == reference["uid"] else None

    async def _write_phase(self, volume: Object, found: decision.VolumePhase) -> None:
        before = objects.get(volume, "status", "phase")
        status = decision.volume_status(volume, found, format_time(self._clock.now()))
        if status == (volume.get("status") or {}):
            return
        try:
            await self._api.update(PERSISTENT_VOLUMES, {**volume, "status": status}, subresource="status")
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return
            raise
        if found.reason and before != found.phase:
            self._recorder.event(volume, "Warning", found.reason, found.message)


def _index_by_claim_ref(volume: Object) -> list[str]:
    reference = decision.claim_ref(volume)
    return [] if reference is None else [f"{reference.get('namespace')}/{reference.get('name')}"]
