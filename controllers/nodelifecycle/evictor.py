"""``Evictor``: deletes pods whose time under a NoExecute taint is over (``pkg/controller/tainteviction``)."""

from __future__ import annotations

import logging

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import Indexer, key_of, split_key
from controllers.client import errors
from controllers.client.interface import DeleteOptions, PatchType
from controllers.client.resources import PODS
from controllers.lib import pods as pod_facts
from controllers.lib import taints
from controllers.lib.context import ControllerContext
from controllers.nodelifecycle import tainting
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 8
#: between looks at pods that are due while evictions are paused
PAUSED_SECONDS = 5.0

log = logging.getLogger(__name__)


class Evictor:
    """``on_pod`` is called for each change of a pod or of its node."""

    def __init__(self, context: ControllerContext, nodes: Indexer) -> None:
        self._api, self._clock, self._recorder, self._nodes = context.api, context.clock, context.recorder, nodes
        self.queue = RateLimitingQueue(context.clock)
        self._pods: dict[str, Object] = {}
        #: when each pod under taints goes, and since when it stands under them (monotonic)
        self._due: dict[str, float] = {}
        self._since: dict[str, float] = {}
        self.paused = False

    async def run(self) -> None:
        await run_workers("taint-eviction-controller", self.queue, self.sync, workers=WORKERS)

    def on_pod(self, pod: Object) -> None:
        key = key_of(pod)
        node = self._nodes.get(pod_facts.node_name(pod)) if pod_facts.node_name(pod) else None
        execute = [] if node is None else [t for t in taints.of_node(node) if t.get("effect") == taints.NO_EXECUTE]
        seconds = tainting.seconds_tolerated(pod, execute) if execute else None
        if seconds is None or objects.is_being_deleted(pod) or pod_facts.is_terminal(pod):
            self._call_off(key, pod, told=not objects.is_being_deleted(pod))
            return
        now = self._clock.monotonic()
        since = self._since.setdefault(key, now)
        self._pods[key] = pod
        self._due[key] = since + seconds
        self.queue.add_after(key, self._due[key] - now)

    def on_pod_gone(self, pod: Object) -> None:
        self._call_off(key_of(pod), pod, told=False)

    def _call_off(self, key: str, pod: Object, *, told: bool) -> None:
        self._since.pop(key, None)
        self._pods.pop(key, None)
        if self._due.pop(key, None) is not None and told:
            self._recorder.event(pod, "Normal", "TaintManagerEviction", f"Cancelling deletion of Pod {key}")

    async def sync(self, key: str) -> None:
        due = self._due.get(key)
        if due is None:
            return
        left = due - self._clock.monotonic()
        if left > 0 or self.paused:
            self.queue.add_after(key, max(left, PAUSED_SECONDS if self.paused else 0.0))
            return
        pod = self._pods[key]
        namespace, name = split_key(key)
        self._recorder.event(pod, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {key}")
        condition = pod_facts.new_condition(
            "DisruptionTarget", True, self._clock.now(), "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        )
        try:
            patch = {"metadata": {"uid": objects.uid(pod)}, "status": {"conditions": [condition]}}
            await self._api.patch(PODS, namespace, name, patch, PatchType.STRATEGIC, subresource="status")
            await self._api.delete(PODS, namespace, name, DeleteOptions(uid=objects.uid(pod)))
        except errors.StatusError as error:
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                raise
        self._due.pop(key, None)
        self._since.pop(key, None)
