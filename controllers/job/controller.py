"""The shell of the Job controller."""

from __future__ import annotations

import asyncio

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import JOBS, PODS
from controllers.job import decision, indexes
from controllers.lib import selectors
from controllers.lib.context import ControllerContext
from controllers.lib.controller_ref import claim
from controllers.lib.expectations import Expectations
from controllers.lib.owned_pods import OwnedPods
from controllers.lib.pod_control import GENERATE_NAME_MAX, PodControl, pod_from_template, slow_start
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 5


class JobController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock, self._recorder = context.api, context.clock, context.recorder
        self.queue = RateLimitingQueue(context.clock)
        self._expectations = Expectations(context.clock)
        self._pod_control = PodControl(context.api, context.recorder)
        self._jobs = context.informers.informer(JOBS)
        self._pods = OwnedPods(
            context.informers.informer(PODS),
            self._jobs,
            JOBS,
            self._expectations,
            self._enqueue,
            lambda job: objects.get(job, "spec", "selector"),
        )
        self._jobs.add_handler(EventHandler.for_each(self._enqueue))

    async def run(self) -> None:
        await run_workers("job-controller", self.queue, self.sync, workers=WORKERS)

    def _enqueue(self, job: Object) -> None:
        self.queue.add(key_of(job))

    async def sync(self, key: str) -> None:
        job = self._jobs.indexer.get(key)
        if job is None:
            self._pods.forget(key)
            return
        selector = objects.get(job, "spec", "selector")
        candidates, may_manage = await self._pods.look(self._api, job)
        pods = await claim(self._api, job, JOBS, PODS, candidates, lambda pod: selectors.matches(selector, objects.labels(pod)))
        may_manage = may_manage and not objects.is_being_deleted(job)
        plan = decision.plan(job, pods, self._clock.now(), may_manage=may_manage)
        failure: Exception | None = None
        if may_manage:
            failure = await self._delete(key, job, plan.delete) or await self._create(key, job, plan.create)
        await self._write_status(job, plan)
        if plan.again_seconds is not None:
            self.queue.add_after(key, max(plan.again_seconds, 0.01))
        look = self._pods.seconds_until_next_look(key)
        if look is not None:
            self.queue.add_after(key, look)
        if failure is not None:
            raise failure

    async def _create(self, key: str, job: Object, wanted: tuple[int | None, ...]) -> Exception | None:
        if not wanted:
            return None
        self._expectations.expect_creations(key, len(wanted))
        tried = 0

        async def create_one(number: int) -> None:
            nonlocal tried
            tried += 1
            try:
                await self._pod_control.create(pod_of(job, wanted[number]), job)
            except errors.TRANSIENT as error:
                self._pods.creation_failed(key, error)
                raise

        _, failure = await slow_start(len(wanted), create_one)
        self._expectations.creation_observed(key, len(wanted) - tried)
        return failure

    async def _delete(self, key: str, job: Object, pods: tuple[Object, ...]) -> Exception | None:
        if not pods:
            return None
        self._expectations.expect_deletions(key, [key_of(pod) for pod in pods])

        async def delete_one(pod: Object) -> Exception | None:
            try:
                await self._pod_control.delete(pod, job)
            except errors.TRANSIENT as error:
                self._expectations.deletion_observed(key, key_of(pod))
                return None if errors.is_not_found(error) else error
            return None

        return next((r for r in await asyncio.gather(*(delete_one(p) for p in pods)) if r is not None), None)

    async def _write_status(self, job: Object, plan: decision.JobPlan) -> None:
        if (job.get("status") or {}) == plan.status:
            return
        try:
            await self._api.update(JOBS, {**job, "status": plan.status}, subresource="status")
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
            return
        for type_, reason, message in plan.events:
            self._recorder.event(job, type_, reason, message)


def pod_of(job: Object, index: int | None) -> Object:
    """A pod of the Job's template; of an Indexed one with its index in name, hostname, annotation, label and environment."""
    pod = pod_from_template(job["spec"]["template"], job, JOBS)
    if index is None:
        return pod
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["generateName"] = f"{objects.name(job)[: GENERATE_NAME_MAX - len(str(index)) - 2]}-{index}-"
    metadata.setdefault("annotations", {})[indexes.ANNOTATION] = str(index)
    metadata.setdefault("labels", {})[indexes.ANNOTATION] = str(index)
    spec["hostname"] = f"{objects.name(job)}-{index}"
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{indexes.ANNOTATION}']"}}}
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        if not any(e.get("name") == variable["name"] for e in container.get("env") or []):
            container["env"] = [*(container.get("env") or []), variable]
    return pod
