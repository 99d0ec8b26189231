"""The shell: a look at every node each monitor period, taints at once after each change of a node, deletions when they are due."""

from __future__ import annotations

import asyncio
import logging

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import LEASES, NODES, PODS
from controllers.lib import pods as pod_facts
from controllers.lib.clock import format_time
from controllers.lib.context import ControllerContext
from controllers.lib.pod_index import BY_NODE, index_by_node
from controllers.nodelifecycle import health, tainting
from controllers.nodelifecycle.evictor import Evictor
from controllers.nodelifecycle.health import Heard
from controllers.nodelifecycle.tainting import ZoneState
from controllers.options import ManagerOptions
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

LEASE_NAMESPACE = "kube-node-lease"
WORKERS = 4
#: writes of one pod-status pass at once
PODS_AT_ONCE = 16

log = logging.getLogger(__name__)


class NodeLifecycleController:
    def __init__(self, context: ControllerContext, options: ManagerOptions) -> None:
        self._api, self._clock, self._recorder, self._options = context.api, context.clock, context.recorder, options
        self.queue = RateLimitingQueue(context.clock)
        self._nodes = context.informers.informer(NODES)
        self._leases = context.informers.informer(LEASES, LEASE_NAMESPACE)
        self._pods = context.informers.informer(PODS)
        self._pods.add_index(BY_NODE, index_by_node)
        self._heard: dict[str, Heard] = {}
        self._was_ready: dict[str, str] = {}
        #: per zone: monotonic time from which the next NoExecute taint may be put on
        self._next_taint: dict[str, float] = {}
        self._all_disrupted = False
        self._evictor = Evictor(context, self._nodes.indexer)
        self._nodes.add_handler(
            EventHandler(on_add=self._on_node, on_update=lambda _, new: self._on_node(new), on_delete=self._on_node_gone)
        )
        self._pods.add_handler(
            EventHandler(
                on_add=self._evictor.on_pod, on_update=lambda _, new: self._evictor.on_pod(new), on_delete=self._evictor.on_pod_gone
            )
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(run_workers("node-controller", self.queue, self.sync, workers=WORKERS), name="node taints")
            group.create_task(self._evictor.run(), name="taint eviction")
            group.create_task(self._monitor(), name="node monitor")

    def _on_node(self, node: Object) -> None:
        self.queue.add(objects.name(node))
        for pod in self._pods.indexer.by_index(BY_NODE, objects.name(node)):
            self._evictor.on_pod(pod)

    def _on_node_gone(self, node: Object) -> None:
        name = objects.name(node)
        self._recorder.event(node, "Normal", "RemovingNode", f"Node {name} event: Removing Node {name} from Controller")
        self._heard.pop(objects.name(node), None)
        self._was_ready.pop(objects.name(node), None)

    # a change of a node → its taints

    async def sync(self, name: str) -> None:
        node = self._nodes.indexer.get(name)
        if node is None:
            return
        now_text = format_time(self._clock.now())
        wanted = tainting.no_schedule(node, now_text)
        changed = node if wanted is None else _with_taints(node, wanted)
        execute = tainting.no_execute(changed, now_text)
        if execute is not None and (tainting.only_removes(changed, execute) or self._may_taint(changed)):
            changed = _with_taints(changed, execute)
        elif execute is not None:
            self.queue.add_after(name, self._options.node_monitor_period)
        if changed is not node:
            await self._api.update(NODES, changed)  # a conflict raises; the key is tried again on fresh data

    def _may_taint(self, node: Object) -> bool:
        """Takes the zone's next slot where it is free."""
        if self._all_disrupted:
            return False
        zone = tainting.zone_of(node)
        members = [n for n in self._nodes.indexer.list() if tainting.zone_of(n) == zone]
        state = tainting.zone_state(members, self._options.unhealthy_zone_threshold)
        rate = tainting.tainting_rate(
            state,
            len(members),
            rate=self._options.node_eviction_rate,
            secondary_rate=self._options.secondary_node_eviction_rate,
            large=self._options.large_cluster_size_threshold,
        )
        now = self._clock.monotonic()
        if rate <= 0 or now < self._next_taint.get(zone, 0.0):
            return False
        self._next_taint[zone] = now + 1 / rate
        return True

    # the monitor

    async def _monitor(self) -> None:
        while True:
            for node in self._nodes.indexer.list():
                try:
                    await self._look_at(node)
                except errors.TRANSIENT as error:
                    log.warning("node %s: not updated, will look again: %s", objects.name(node), error)
            self._judge_disruption()
            await self._clock.sleep(self._options.node_monitor_period)

    async def _look_at(self, node: Object) -> None:
        name = objects.name(node)
        if name not in self._heard:
            self._recorder.event(node, "Normal", "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        now = self._clock.monotonic()
        lease = self._leases.indexer.get(key(LEASE_NAMESPACE, name))
        heard = health.listen(self._heard.get(name), node, lease, now)
        self._heard[name] = heard
        before = self._was_ready.get(name, health.ready_status(node))
        if health.is_silent(
            heard, node, now, grace=self._options.node_monitor_grace_period, startup_grace=self._options.node_startup_grace_period
        ):
            conditions = health.silent_conditions(node, self._clock.now())
            if conditions is not None:
                log.info("node %s has been silent for %.0f s", name, now - heard.at)
                status = {**(node.get("status") or {}), "conditions": conditions}
                node = await self._api.update(NODES, {**node, "status": status}, subresource="status")
                # our own write is no sign of life
                self._heard[name] = Heard(health.listen(None, node, lease, now).heartbeat, heard.renewed, heard.at)
        after = health.ready_status(node)
        self._was_ready[name] = after
        if after != "True":
            if before == "True":
                self._recorder.event(node, "Normal", "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            await self._mark_pods_not_ready(name)

    async def _mark_pods_not_ready(self, node_name: str) -> None:
        """What runs on a silent node must get no traffic."""
        limit = asyncio.Semaphore(PODS_AT_ONCE)

        async def mark(pod: Object) -> None:
            ready = pod_facts.condition(pod, "Ready")
            assert ready is not None
            new = {**ready, "status": "False", "reason": "NodeNotReady", "lastTransitionTime": format_time(self._clock.now())}
            conditions = pod_facts.with_condition(pod["status"]["conditions"], new)
            async with limit:
                try:
                    await self._api.update(PODS, {**pod, "status": {**pod["status"], "conditions": conditions}}, subresource="status")
                except errors.StatusError as error:
                    if errors.is_not_found(error) or errors.is_conflict(error):
                        return  # gone, or changed: the next look tells
                    raise
            self._recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")

        await asyncio.gather(*(mark(pod) for pod in self._pods.indexer.by_index(BY_NODE, node_name) if pod_facts.is_ready(pod)))

    def _judge_disruption(self) -> None:
        nodes = self._nodes.indexer.list()
        zones: dict[str, list[Object]] = {}
        for node in nodes:
            zones.setdefault(tainting.zone_of(node), []).append(node)
        disrupted = len(nodes) > 1 and all(
            tainting.zone_state(members, self._options.unhealthy_zone_threshold) is ZoneState.FULL_DISRUPTION for members in zones.values()
        )
        if disrupted != self._all_disrupted:
            log.warning("every node is silent: no more pods are evicted" if disrupted else "some node is alive again: evictions resume")
            self._all_disrupted = disrupted
        self._evictor.paused = disrupted


def _with_taints(node: Object, new_taints: list[Object]) -> Object:
    spec = {k: v for k, v in (node.get("spec") or {}).items() if k != "taints"}
    return {**node, "spec": {**spec, "taints": new_taints} if new_taints else spec}
