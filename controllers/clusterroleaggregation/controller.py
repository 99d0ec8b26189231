"""The shell of the aggregation: a change of any cluster role may change every aggregating one."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import CLUSTER_ROLES
from controllers.clusterroleaggregation import decision
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

COMPONENT = "clusterrole-aggregation-controller"
WORKERS = 2


class ClusterRoleAggregationController:
    """Keys are the names of aggregating roles. Roles that aggregate aggregating ones (admin over edit over view) settle step by step,
    since each write is a change again."""

    def __init__(self, context: ControllerContext) -> None:
        self._api = context.api
        self.queue = RateLimitingQueue(context.clock)
        self._roles = context.informers.informer(CLUSTER_ROLES)
        handler = EventHandler(on_add=self._on_change, on_update=lambda _, new: self._on_change(new), on_delete=self._on_change)
        self._roles.add_handler(handler)

    async def run(self) -> None:
        await run_workers(COMPONENT, self.queue, self.sync, workers=WORKERS)

    def _on_change(self, _: Object) -> None:
        for role in self._roles.indexer.list():
            if decision.aggregates(role):
                self.queue.add(objects.name(role))

    async def sync(self, name: str) -> None:
        role = self._roles.indexer.get(name)
        if role is None or not decision.aggregates(role):
            return
        wanted = decision.with_rules(role, self._roles.indexer.list())
        if wanted is None:
            return
        try:
            await self._api.update(CLUSTER_ROLES, wanted)
        except errors.StatusError as error:
            # gone: nothing to do; changed: its event brings it here again
            if not errors.is_not_found(error) and not errors.is_conflict(error):
                raise
