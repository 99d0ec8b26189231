"""The shell: events of budgets, pods and their controllers → keys; a key → count, write the status."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import POD_DISRUPTION_BUDGETS, PODS
from controllers.disruption import decision
from controllers.disruption.scales import SIZED, NoScale, Scales
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 2


class DisruptionController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock, self._recorder = context.api, context.clock, context.recorder
        self.queue = RateLimitingQueue(context.clock)
        self._scales = Scales(context)
        self._budgets = context.informers.informer(POD_DISRUPTION_BUDGETS)
        self._pods = context.informers.informer(PODS)
        self._budgets.add_handler(EventHandler(on_add=self._enqueue, on_update=self._on_budget_update))
        self._pods.add_handler(EventHandler(on_add=self._on_pod, on_update=self._on_pod_update, on_delete=self._on_pod))
        for resource in SIZED:
            context.informers.informer(resource).add_handler(EventHandler(on_update=self._on_owner_update))

    async def run(self) -> None:
        await run_workers("disruption-controller", self.queue, self.sync, workers=WORKERS)

    # events → keys

    def _enqueue(self, budget: Object) -> None:
        self.queue.add(key_of(budget))

    def _on_budget_update(self, old: Object, new: Object) -> None:
        if objects.resource_version(old) != objects.resource_version(new):
            self._enqueue(new)  # also for what an eviction wrote into the status

    def _on_pod(self, pod: Object) -> None:
        for budget in self._budgets.indexer.in_namespace(objects.namespace(pod)):
            if decision.selects(budget, pod):
                self._enqueue(budget)

    def _on_pod_update(self, old: Object, new: Object) -> None:
        if objects.resource_version(old) == objects.resource_version(new):
            return
        if objects.labels(old) != objects.labels(new):
            self._on_pod(old)
        self._on_pod(new)

    def _on_owner_update(self, old: Object, new: Object) -> None:
        """Its size is part of what a budget expects, also before the pods follow."""
        if objects.get(old, "spec", "replicas") != objects.get(new, "spec", "replicas"):
            for budget in self._budgets.indexer.in_namespace(objects.namespace(new)):
                if decision.needs_scale(budget):
                    self._enqueue(budget)

    # a key → its status

    async def sync(self, key: str) -> None:
        budget = self._budgets.indexer.get(key)
        if budget is None:
            return
        pods = self._pods_of(budget)
        scale = 0
        if decision.needs_scale(budget):
            try:
                scale = await self._scales.total(pods)
            except errors.TRANSIENT as error:
                reason = "NoControllers" if isinstance(error, NoScale) else "CalculateExpectedPodCountFailed"
                self._recorder.event(budget, "Warning", reason, f"Failed to calculate the number of expected pods: {error}")
                await self._write(budget, decision.fail_safe(budget, str(error), self._clock.now()))
                raise
            # the caches may have moved on meanwhile
            current = self._budgets.indexer.get(key)
            if current is None:
                return
            budget, pods = current, self._pods_of(current)
        if not pods:
            self._recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        now = self._clock.now()
        verdict = decision.judge(budget, pods, decision.needs_of(budget, pods, scale), now)
        for name in verdict.not_deleted:
            pod = self._pods.indexer.get(f"{objects.namespace(budget)}/{name}")
            if pod is not None:
                self._recorder.event(pod, "Warning", "NotDeleted", f"Pod was expected by PDB {key} to be deleted but it wasn't")
        await self._write(budget, verdict.status)
        if verdict.again_seconds is not None:
            self.queue.add_after(key, verdict.again_seconds)

    def _pods_of(self, budget: Object) -> list[Object]:
        return [pod for pod in self._pods.indexer.in_namespace(objects.namespace(budget)) if decision.selects(budget, pod)]

    async def _write(self, budget: Object, status: Object) -> None:
        """Raises a conflict where an eviction has spent of the budget since: the count must be made again from what it is now."""
        if status == (budget.get("status") or {}):
            return
        try:
            await self._api.update(POD_DISRUPTION_BUDGETS, {**budget, "status": status}, subresource="status")
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
