"""The shell: events of sets and pods → keys; a key → claim pods, plan, carry out, write the status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of, split_key
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, Resource
from controllers.lib import pods as pod_facts
from controllers.lib import selectors
from controllers.lib.context import ControllerContext
from controllers.lib.controller_ref import claim
from controllers.lib.expectations import Expectations
from controllers.lib.owned_pods import OwnedPods
from controllers.lib.pod_control import PodControl, pod_from_template, slow_start
from controllers.lib.pod_index import BY_CONTROLLER, index_by_controller
from controllers.replicaset import decision
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 5
#: tries of a status write that meets a newer version of the set
STATUS_ATTEMPTS_MAX = 2

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sort:
    """What tells ReplicaSets from ReplicationControllers."""

    resource: Resource
    component: str
    selector_of: Callable[[Object], Object | None]


REPLICA_SET = Sort(REPLICA_SETS, "replicaset-controller", lambda o: objects.get(o, "spec", "selector"))
REPLICATION_CONTROLLER = Sort(
    REPLICATION_CONTROLLERS, "replication-controller", lambda o: {"matchLabels": objects.get(o, "spec", "selector", default={})}
)


class ReplicaSetController:
    def __init__(self, context: ControllerContext, sort: Sort = REPLICA_SET) -> None:
        self._context, self._sort = context, sort
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        self._expectations = Expectations(context.clock)
        self._pod_control = PodControl(context.api, context.recorder)
        self._sets = context.informers.informer(sort.resource)
        self._pods = context.informers.informer(PODS)
        self._owned = OwnedPods(self._pods, self._sets, sort.resource, self._expectations, self._enqueue, sort.selector_of)
        self._sets.add_index(BY_CONTROLLER, index_by_controller)
        self._sets.add_handler(
            EventHandler(on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new), on_delete=self._on_set_delete)
        )

    async def run(self) -> None:
        await run_workers(self._sort.component, self.queue, self.sync, workers=WORKERS)

    # events → keys

    def _enqueue(self, controller: Object) -> None:
        self.queue.add(key_of(controller))

    def _on_set_delete(self, controller: Object) -> None:
        self._owned.forget(key_of(controller))
        self._enqueue(controller)

    # a key → what it needs

    async def sync(self, key: str) -> None:
        controller = self._sets.indexer.get(key)
        if controller is None:
            self._owned.forget(key)
            return
        selector = self._sort.selector_of(controller)
        if selectors.is_empty(selector):
            return  # validation refuses these; an empty selector would claim every pod
        candidates, may_manage = await self._owned.look(self._api, controller)
        candidates = [pod for pod in candidates if pod_facts.is_active(pod)]
        active = await claim(
            self._api, controller, self._sort.resource, PODS, candidates, lambda pod: selectors.matches(selector, objects.labels(pod))
        )
        failure: Exception | None = None
        reason = ""
        if may_manage and not objects.is_being_deleted(controller):
            plan = decision.plan_scale(controller, active, self._related(controller, active))
            reason = "FailedCreate" if plan.create else "FailedDelete"
            failure = await self._carry_out(key, controller, plan)
        now = self._clock.now()
        told = (reason, str(failure)) if failure is not None else None
        await self._write_status(controller, decision.status_of(controller, active, told, now))
        if failure is not None:
            raise failure
        wait = decision.seconds_until_more_available(controller, active, now)
        if wait is not None:
            self.queue.add_after(key, wait)
        look = self._owned.seconds_until_next_look(key)
        if look is not None:
            self.queue.add_after(key, look)

    def _related(self, controller: Object, active: list[Object]) -> list[Object]:
        owner = objects.controller_of(controller)
        if owner is None:
            return active
        related: list[Object] = []
        for sibling in self._sets.indexer.by_index(BY_CONTROLLER, str(owner.get("uid"))):
            related += self._pods.indexer.by_index(BY_CONTROLLER, objects.uid(sibling))
        return related

    async def _carry_out(self, key: str, controller: Object, plan: decision.ScalePlan) -> Exception | None:
        if plan.create:
            return await self._create(key, controller, plan.create)
        if plan.delete:
            return await self._delete(key, controller, plan.delete)
        return None

    async def _create(self, key: str, controller: Object, count: int) -> Exception | None:
        self._expectations.expect_creations(key, count)
        pod = pod_from_template(controller["spec"]["template"], controller, self._sort.resource)
        tried = 0

        async def create_one(_: int) -> None:
            nonlocal tried
            tried += 1
            try:
                await self._pod_control.create(pod, controller)
            except errors.TRANSIENT as error:
                if errors.is_namespace_terminating(error):
                    return  # the whole set will go; its expectation is dropped with it
                self._owned.creation_failed(key, error)
                raise

        _, failure = await slow_start(count, create_one)
        self._expectations.creation_observed(key, count - tried)
        return failure

    async def _delete(self, key: str, controller: Object, pods: tuple[Object, ...]) -> Exception | None:
        self._expectations.expect_deletions(key, [key_of(pod) for pod in pods])

        async def delete_one(pod: Object) -> Exception | None:
            try:
                await self._pod_control.delete(pod, controller)
            except errors.TRANSIENT as error:
                self._expectations.deletion_observed(key, key_of(pod))
                return None if errors.is_not_found(error) else error
            return None

        results = await asyncio.gather(*(delete_one(pod) for pod in pods))
        return next((r for r in results if r is not None), None)

    async def _write_status(self, controller: Object, status: Object) -> None:
        current = controller
        for attempt in range(1, STATUS_ATTEMPTS_MAX + 1):
            if (current.get("status") or {}) == status:
                return
            try:
                await self._api.update(self._sort.resource, {**current, "status": status}, subresource="status")
                return
            except errors.StatusError as error:
                if errors.is_not_found(error):
                    return
                if not errors.is_conflict(error) or attempt == STATUS_ATTEMPTS_MAX:
                    raise
            namespace, name = split_key(key_of(controller))
            current = await self._api.get(self._sort.resource, namespace, name)
