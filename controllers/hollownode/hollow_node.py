"""``HollowNode``: the shell of one hollow node; registers, renews, and moves its pods on."""

from __future__ import annotations

import asyncio
import logging
import random

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler, SharedInformer
from controllers.client import errors
from controllers.client.interface import Api, DeleteOptions, PatchType
from controllers.client.resources import LEASES, NODES, PODS
from controllers.hollownode import node_object, pod_lifecycle, pod_run, pod_status
from controllers.hollownode.options import HollowNodeOptions
from controllers.hollownode.pod_run import Instant, PodRun
from controllers.lib import pods as pod_facts
from controllers.lib.clock import Clock
from controllers.lib.events import EventBroadcaster
from controllers.workqueue.rate_limiter import ItemExponentialFailure
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 8
#: between tries to register or to renew while the server is away
RETRY_SECONDS = 1.0
#: host parts 2 … 254 of the node's pod network
ADDRESSES = 253

log = logging.getLogger(__name__)


class HollowNode:
    """``run`` until cancelled; a cancelled node just falls silent, as a crashed kubelet would."""

    def __init__(self, name: str, api: Api, options: HollowNodeOptions, *, version: str, clock: Clock, rng: random.Random) -> None:
        self.name = name
        self._api, self._options, self._version, self._clock, self._random = api, options, version, clock, rng
        self._host_ip = node_object.internal_ip(name)
        self._node_uid = ""
        self._unschedulable = False
        self._runs: dict[str, PodRun] = {}
        self._addresses: dict[str, str] = {}
        self.queue = RateLimitingQueue(clock, ItemExponentialFailure())
        self._pods = SharedInformer(api, PODS, clock=clock, rng=rng, field_selector=f"spec.nodeName={name}")
        self._pods.add_handler(EventHandler.for_each(lambda pod: self.queue.add(key_of(pod))))
        self._broadcaster = EventBroadcaster(api, clock=clock, rng=rng)
        self._recorder = self._broadcaster.recorder("kubelet", name)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._broadcaster.run(), name=f"{self.name} events")
            await self._register()
            group.create_task(self._keep_lease(), name=f"{self.name} lease")
            group.create_task(self._keep_status(), name=f"{self.name} status")
            group.create_task(self._pods.run(), name=f"{self.name} pods")
            group.create_task(run_workers(f"node {self.name}", self.queue, self.sync, workers=WORKERS), name=f"{self.name} workers")

    def _now(self) -> Instant:
        return Instant(self._clock.monotonic(), self._clock.now())

    # the node

    async def _register(self) -> None:
        while True:
            try:
                was = await self._register_once()
                self._tell("Starting", "Starting hollow kubelet.")
                self._tell_changes(was)
                return
            except errors.TRANSIENT as error:
                log.warning("node %s: registration failed, will try again: %s", self.name, error)
                await self._clock.sleep(RETRY_SECONDS)

    def _tell(self, reason: str, message: str = "") -> None:
        """An event about the node; of a kubelet's statuses the message is made of the reason."""
        about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": self.name, "uid": self._node_uid}}
        self._recorder.event(about, "Normal", reason, message or f"Node {self.name} status is now: {reason}")

    def _tell_changes(self, before: Object) -> None:
        """What a kubelet tells when its conditions become what a healthy node's are; it has told what they were ``before``."""
        for type_, status, reason, _ in node_object.GOOD_CONDITIONS:
            if (pod_facts.condition(before, type_) or {}).get("status") != status:
                self._tell("NodeReady" if type_ == "Ready" else reason.replace("Kubelet", "Node"))

    def _tell_schedulable(self, node: Object) -> None:
        unschedulable = bool(objects.get(node, "spec", "unschedulable", default=False))
        if unschedulable != self._unschedulable:
            self._unschedulable = unschedulable
            self._tell("NodeNotSchedulable" if unschedulable else "NodeSchedulable")

    async def _register_once(self) -> Object:
        """The Node as it was before: empty where it is new."""
        now = self._clock.now()
        before: Object = {}
        try:
            node = await self._api.create(NODES, "", node_object.node_of(self.name, self._options, self._version, now))
        except errors.StatusError as error:
            if not errors.is_already_exists(error):
                raise
            node = before = await self._api.get(NODES, "", self.name)
            self._unschedulable = bool(objects.get(node, "spec", "unschedulable", default=False))
            labels = node_object.labels_of(self.name, self._options)
            if not labels.items() <= objects.labels(node).items():
                node = await self._api.patch(NODES, "", self.name, {"metadata": {"labels": labels}}, PatchType.STRATEGIC)
            await self._report(node)
        self._node_uid = objects.uid(node)
        await self._renew(None)
        return before

    async def _report(self, node: Object) -> None:
        status = node_object.status_of(self.name, self._options, self._version, node.get("status") or {}, self._clock.now())
        await self._api.patch(NODES, "", self.name, {"status": status}, PatchType.STRATEGIC, subresource="status")

    async def _keep_status(self) -> None:
        reported = self._clock.monotonic()
        while True:
            await self._clock.sleep(self._options.node_status_update_frequency)
            try:
                node = await self._api.get(NODES, "", self.name)
                self._tell_schedulable(node)
                wanted = node_object.status_of(self.name, self._options, self._version, node.get("status") or {}, self._clock.now())
                due = self._clock.monotonic() - reported >= self._options.node_status_report_frequency
                if due or node_object.is_stale(node, wanted):
                    await self._api.patch(NODES, "", self.name, {"status": wanted}, PatchType.STRATEGIC, subresource="status")
                    self._tell_changes(node)
                    reported = self._clock.monotonic()
            except errors.TRANSIENT as error:
                log.warning("node %s: status not reported: %s", self.name, error)
                if errors.is_not_found(error):
                    await self._register()  # somebody deleted the Node: a kubelet that lives comes back

    async def _keep_lease(self) -> None:
        lease: Object | None = None
        while True:
            pause = self._options.node_lease_renew_seconds
            try:
                lease = await self._renew(lease)
            except errors.TRANSIENT as error:
                log.warning("node %s: lease not renewed: %s", self.name, error)
                lease, pause = None, RETRY_SECONDS
            await self._clock.sleep(pause)

    async def _renew(self, last: Object | None) -> Object:
        """Writes a new renewTime over the lease as last seen; without one it is read, or made."""

        def wanted(old: Object | None) -> Object:
            return node_object.lease_of(self.name, self._node_uid, self._options, old, self._clock.now())

        if last is not None:
            return await self._api.update(LEASES, wanted(last))
        try:
            return await self._api.update(LEASES, wanted(await self._api.get(LEASES, node_object.LEASE_NAMESPACE, self.name)))
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
            return await self._api.create(LEASES, node_object.LEASE_NAMESPACE, wanted(None))

    # its pods

    async def sync(self, key: str) -> None:
        cached = self._pods.indexer.get(key)
        if cached is None:
            self._forget(key)
            return
        run = self._runs.get(key)
        if run is not None and run.latest is not None and objects.uid(run.latest) != objects.uid(cached):
            self._forget(key)  # another pod of the same name
            run = None
        pod = cached if run is None or run.latest is None else _newer(cached, run.latest)
        if run is None:
            if objects.get(pod, "status", "phase") in ("Succeeded", "Failed") and not objects.is_being_deleted(pod):
                return
            run = pod_run.begin(pod, self._address_for(key, pod), self._now())
            run.latest = pod
            self._runs[key] = run
        if run.removed:
            return
        now = self._now()
        progress = pod_lifecycle.advance(pod, run, now, self._options)
        for event in progress.events:
            self._recorder.event(pod, event.type, event.reason, event.message, field_path=event.field_path)
        await self._write_status(key, pod, run, now)
        if progress.gone:
            await self._remove(key, pod, run)
        elif progress.due is not None:
            self.queue.add_after(key, progress.due - self._clock.monotonic())

    async def _write_status(self, key: str, pod: Object, run: PodRun, now: Instant) -> None:
        status = pod_status.known_to(self._version, pod_status.status_of(pod, run, now, self._host_ip))
        if not pod_status.differs(status, pod.get("status") or {}):
            return
        # entries of ``conditions`` are merged: what a condition no longer says must be taken out
        conditions = [{"reason": None, "message": None, **c} for c in status["conditions"]]
        patch = {"metadata": {"uid": objects.uid(pod)}, "status": {**status, "conditions": conditions}}
        try:
            run.latest = await self._api.patch(
                PODS, objects.namespace(pod), objects.name(pod), patch, PatchType.STRATEGIC, subresource="status"
            )
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise

    async def _remove(self, key: str, pod: Object, run: PodRun) -> None:
        run.removed = True
        try:
            await self._api.delete(
                PODS, objects.namespace(pod), objects.name(pod), DeleteOptions(grace_period_seconds=0, uid=objects.uid(pod))
            )
        except errors.TRANSIENT as error:
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                run.removed = False
                raise

    def _address_for(self, key: str, pod: Object) -> str:
        """The pod's own address where it has one already, else the lowest that is free; past the network's size they repeat."""
        known = objects.get(pod, "status", "podIP", default="")
        if known:
            self._addresses[key] = known
            return str(known)
        network = node_object.pod_network(self.name)
        taken = set(self._addresses.values())
        number = len(taken)
        # from the number of pods on: mostly free at once
        for offset in range(ADDRESSES):
            address = f"{network}.{2 + (number + offset) % ADDRESSES}"
            if address not in taken:
                break
        self._addresses[key] = address
        return address

    def _forget(self, key: str) -> None:
        self._runs.pop(key, None)
        self._addresses.pop(key, None)


def _newer(left: Object, right: Object) -> Object:
    """Of two states of one object the later: resourceVersions of one resource are ordered numbers."""
    try:
        return left if int(objects.resource_version(left)) >= int(objects.resource_version(right)) else right
    except ValueError:
        return left
