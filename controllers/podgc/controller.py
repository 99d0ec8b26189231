"""A look at all pods each period."""

from __future__ import annotations

import asyncio
import logging

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import DeleteOptions, PatchType
from controllers.client.resources import NODES, PODS
from controllers.lib import pods as pod_facts
from controllers.lib.context import ControllerContext
from controllers.podgc import decision
from controllers.podgc.decision import Removal, Why

PERIOD_SECONDS = 20.0
#: how long a node must be missing before its pods count as orphaned: it may be about to register again
QUARANTINE_SECONDS = 40.0
REMOVED_AT_ONCE = 16

log = logging.getLogger(__name__)

_MESSAGES = {
    Why.ORPHANED: "PodGC: node no longer exists",
    Why.OUT_OF_SERVICE: "PodGC: node is out of service",
}


class PodGarbageCollector:
    def __init__(self, context: ControllerContext, terminated_pod_threshold: int) -> None:
        self._api, self._clock, self._threshold = context.api, context.clock, terminated_pod_threshold
        self._pods = context.informers.informer(PODS)
        self._nodes = context.informers.informer(NODES)
        #: since when (monotonic) a node that pods name has been missing
        self._missing_since: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except errors.TRANSIENT as error:
                log.warning("pods not looked at, again in %.0f s: %s", PERIOD_SECONDS, error)
            await self._clock.sleep(PERIOD_SECONDS)

    async def look(self) -> None:
        pods = self._pods.indexer.list()
        nodes = {objects.name(n): n for n in self._nodes.indexer.list()}
        missing = await self._missing_nodes(decision.node_names(pods) - set(nodes))
        limit = asyncio.Semaphore(REMOVED_AT_ONCE)
        await asyncio.gather(*(self._remove(removal, limit) for removal in decision.plan(pods, nodes, missing, self._threshold)))

    async def _missing_nodes(self, unknown: set[str]) -> set[str]:
        """Those that were missing for the quarantine, and that the server does not know either."""
        now = self._clock.monotonic()
        self._missing_since = {name: self._missing_since.get(name, now) for name in unknown}
        out = set()
        for name in sorted(n for n, since in self._missing_since.items() if now - since >= QUARANTINE_SECONDS):
            try:
                await self._api.get(NODES, "", name)
            except errors.StatusError as error:
                if not errors.is_not_found(error):
                    raise
                out.add(name)
        return out

    async def _remove(self, removal: Removal, limit: asyncio.Semaphore) -> None:
        pod = removal.pod
        namespace, name = objects.namespace(pod), objects.name(pod)
        async with limit:
            log.info("removing pod %s/%s: %s", namespace, name, removal.why.value)
            try:
                if not pod_facts.is_terminal(pod):
                    await self._mark_failed(pod, removal.why)
                await self._api.delete(PODS, namespace, name, DeleteOptions(grace_period_seconds=0, uid=objects.uid(pod)))
            except errors.StatusError as error:
                if not errors.is_not_found(error) and not errors.is_conflict(error):
                    log.warning("pod %s/%s not removed: %s", namespace, name, error)

    async def _mark_failed(self, pod: Object, why: Why) -> None:
        status: Object = {"phase": "Failed"}
        if why in _MESSAGES:
            condition = pod_facts.new_condition("DisruptionTarget", True, self._clock.now(), "DeletionByPodGC", _MESSAGES[why])
            status["conditions"] = [condition]
        patch = {"metadata": {"uid": objects.uid(pod)}, "status": status}
        await self._api.patch(PODS, objects.namespace(pod), objects.name(pod), patch, PatchType.STRATEGIC, subresource="status")
