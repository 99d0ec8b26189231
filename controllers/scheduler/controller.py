"""The shell: keeps the picture of the cluster, takes waiting pods one by one, binds many at once."""

from __future__ import annotations

import asyncio
import logging

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import PatchType
from controllers.client.resources import NAMESPACES, NODES, PODS
from controllers.lib import pods as pod_facts
from controllers.lib import selectors
from controllers.lib.context import ControllerContext
from controllers.lib.pods import new_condition
from controllers.scheduler import decision
from controllers.scheduler.cluster import Cluster
from controllers.scheduler.scheduling_queue import SchedulingQueue

#: Bindings on their way at once; deciding waits when there are more.
BINDINGS_MAX = 32
#: After this many decisions the loop is given to others.
BATCH = 20

log = logging.getLogger(__name__)


class Scheduler:
    def __init__(self, context: ControllerContext, name: str = "default-scheduler") -> None:
        self._api, self._clock, self._recorder, self._random = context.api, context.clock, context.recorder, context.rng
        self._name = name
        self._cluster = Cluster()
        self.queue = SchedulingQueue(context.clock)
        self._namespaces = context.informers.informer(NAMESPACES)
        context.informers.informer(NODES).add_handler(
            EventHandler(on_add=self._on_node, on_update=self._on_node_update, on_delete=self._on_node_delete)
        )
        context.informers.informer(PODS).add_handler(
            EventHandler(on_add=self._on_pod, on_update=lambda _, new: self._on_pod(new), on_delete=self._on_pod_delete)
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.queue.run(), name="scheduling queue")
            group.create_task(self._schedule(group), name="scheduling")

    # events

    def _on_node(self, node: Object) -> None:
        self._cluster.set_node(node)
        self.queue.move_all()

    def _on_node_update(self, old: Object, new: Object) -> None:
        self._cluster.set_node(new)
        if _matters(old) != _matters(new):
            self.queue.move_all()

    def _on_node_delete(self, node: Object) -> None:
        self._cluster.remove_node(objects.name(node))

    def _on_pod(self, pod: Object) -> None:
        if pod_facts.node_name(pod):
            self.queue.remove(objects.uid(pod))
            self._cluster.set_pod(pod)
            if pod_facts.is_terminal(pod):
                self.queue.move_all()
        elif self._is_ours(pod) and not self._cluster.is_placed(objects.uid(pod)):
            self.queue.add(pod)
        elif not self._is_ours(pod):
            self.queue.remove(objects.uid(pod))

    def _on_pod_delete(self, pod: Object) -> None:
        self.queue.remove(objects.uid(pod))
        self._cluster.remove_pod(pod)
        if pod_facts.node_name(pod):
            self.queue.move_all()

    def _is_ours(self, pod: Object) -> bool:
        return (
            objects.get(pod, "spec", "schedulerName", default="default-scheduler") == self._name
            and not objects.is_being_deleted(pod)
            and not pod_facts.is_terminal(pod)
            and not objects.get(pod, "spec", "schedulingGates", default=[])
        )

    # decisions

    async def _schedule(self, group: asyncio.TaskGroup) -> None:
        room = asyncio.Semaphore(BINDINGS_MAX)
        decided = 0
        while True:
            pod = await self.queue.pop()
            await room.acquire()
            uid = objects.uid(pod)
            # room may have been long in coming: only a pod that still waits is tried
            if self._cluster.is_placed(uid):
                room.release()
                continue
            moves = self.queue.moves
            result = self._place(pod)
            if isinstance(result, decision.Fits):
                self._cluster.assume(pod, result.node_name)
                group.create_task(self._bind(pod, result.node_name, room), name=f"bind {objects.name(pod)}")
            else:
                self.queue.did_not_fit(uid, moves)
                group.create_task(self._tell(pod, result.message, room), name=f"tell {objects.name(pod)}")
            decided += 1
            if decided % BATCH == 0:
                await asyncio.sleep(0)

    def _place(self, pod: Object) -> decision.Fits | decision.DoesNotFit:
        """A fault in the decision is told with its traceback, and costs this pod its turn, not all others theirs."""
        try:
            return decision.place(pod, self._cluster, self._select_namespaces, self._random)
        except Exception:  # the outermost edge of one pod's turn
            log.exception("no decision for pod %s/%s by a fault in the scheduler", objects.namespace(pod), objects.name(pod))
            return decision.DoesNotFit("running the scheduler's plugins failed")

    def _select_namespaces(self, selector: Object | None) -> frozenset[str]:
        return frozenset(objects.name(n) for n in self._namespaces.indexer.list() if selectors.matches(selector, objects.labels(n)))

    async def _bind(self, pod: Object, node_name: str, room: asyncio.Semaphore) -> None:
        namespace, name = objects.namespace(pod), objects.name(pod)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": objects.uid(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        try:
            await self._api.create(PODS, namespace, binding, name=name, subresource="binding")
        except errors.TRANSIENT as error:
            self._cluster.forget(pod)
            if errors.is_not_found(error):
                return  # the pod is gone; its event cleans up
            log.info("binding %s/%s to %s failed: %s", namespace, name, node_name, error)
            self._recorder.event(pod, "Warning", "FailedScheduling", f"binding rejected: {error}")
            # the pod is tried again in a moment, unless the server says meanwhile that it is bound after all
            self.queue.did_not_fit(objects.uid(pod), self.queue.moves - 1)
        else:
            self._recorder.event(pod, "Normal", "Scheduled", f"Successfully assigned {namespace}/{name} to {node_name}")
        finally:
            room.release()

    async def _tell(self, pod: Object, message: str, room: asyncio.Semaphore) -> None:
        """The event each time; the condition where it says something new."""
        try:
            self._recorder.event(pod, "Warning", "FailedScheduling", message)
            current = pod_facts.condition(pod, "PodScheduled")
            if current is not None and current.get("reason") == "Unschedulable" and current.get("message") == message:
                return
            wanted = new_condition("PodScheduled", False, self._clock.now(), "Unschedulable", message)
            if current is not None and current.get("status") == "False":
                wanted["lastTransitionTime"] = current.get("lastTransitionTime")
            patch = {"metadata": {"uid": objects.uid(pod)}, "status": {"conditions": [wanted]}}
            await self._api.patch(PODS, objects.namespace(pod), objects.name(pod), patch, PatchType.STRATEGIC, subresource="status")
        except errors.TRANSIENT as error:
            log.debug("condition of %s not written: %s", objects.name(pod), error)
        finally:
            room.release()


def _matters(node: Object) -> object:
    """What of a node decides where pods can run: not its heartbeats."""
    spec = node.get("spec") or {}
    return (objects.get(node, "status", "allocatable"), objects.labels(node), spec.get("taints"), spec.get("unschedulable"))
