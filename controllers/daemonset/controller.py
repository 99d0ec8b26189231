"""The shell: events of sets, nodes and pods → keys; a key → revisions, plans, carry out, write the status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from controllers.daemonset import decision, placement
from controllers.daemonset.decision import Plan, Situation
from controllers.daemonset.status import seconds_until_more_available, status_of
from controllers.lib import pods as pod_facts
from controllers.lib import selectors, taints
from controllers.lib.context import ControllerContext
from controllers.lib.controller_history import History
from controllers.lib.controller_ref import claim
from controllers.lib.expectations import Expectations
from controllers.lib.owned_pods import OwnedPods
from controllers.lib.pod_control import PodControl, slow_start
from controllers.lib.pod_index import BY_CONTROLLER, index_by_controller, orphans_key
from controllers.lib.status_writer import write_status
from controllers.workqueue.rate_limiter import ItemExponentialFailure
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 2
#: how long a pod that ended stays before it is made again: the first, doubling up to the second
ENDED_SECONDS, ENDED_SECONDS_MAX = 1.0, 900.0


class DaemonSetController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock, self._recorder = context.api, context.clock, context.recorder
        self.queue = RateLimitingQueue(context.clock)
        self._expectations = Expectations(context.clock)
        self._pod_control = PodControl(context.api, context.recorder)
        self._history = History(context.api, DAEMON_SETS, placement.REVISION_LABEL)
        self._sets = context.informers.informer(DAEMON_SETS)
        self._nodes = context.informers.informer(NODES)
        self._revisions = context.informers.informer(CONTROLLER_REVISIONS)
        self._revisions.add_index(BY_CONTROLLER, index_by_controller)
        self._pods = OwnedPods(
            context.informers.informer(PODS),
            self._sets,
            DAEMON_SETS,
            self._expectations,
            self._enqueue,
            lambda daemon_set: objects.get(daemon_set, "spec", "selector"),
        )
        self._sets.add_handler(EventHandler.for_each(self._enqueue))
        self._nodes.add_handler(EventHandler(on_add=self._on_node, on_update=self._on_node_update, on_delete=self._on_node))
        #: by set and node: how often pods ended there, and when the next one may go
        self._ended = ItemExponentialFailure(ENDED_SECONDS, ENDED_SECONDS_MAX)
        self._ended_until: dict[str, dict[str, float]] = {}

    async def run(self) -> None:
        await run_workers("daemonset-controller", self.queue, self.sync, workers=WORKERS)

    # events → keys

    def _enqueue(self, daemon_set: Object) -> None:
        self.queue.add(key_of(daemon_set))

    def _on_node(self, node: Object) -> None:
        for daemon_set in self._sets.indexer.list():
            self._enqueue(daemon_set)

    def _on_node_update(self, old: Object, new: Object) -> None:
        """Heartbeats change nothing here."""
        if objects.labels(old) != objects.labels(new) or taints.of_node(old) != taints.of_node(new):
            self._on_node(new)

    # a key → what it needs

    async def sync(self, key: str) -> None:
        daemon_set = self._sets.indexer.get(key)
        if daemon_set is None:
            self._forget(key)
            return
        selector = objects.get(daemon_set, "spec", "selector")
        if selectors.is_empty(selector):
            self._recorder.event(
                daemon_set, "Warning", "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required."
            )
            return
        if objects.is_being_deleted(daemon_set):
            return  # its pods go by the garbage collector
        known = await claim(
            self._api,
            daemon_set,
            DAEMON_SETS,
            CONTROLLER_REVISIONS,
            self._known_revisions(daemon_set),
            lambda revision: selectors.matches(selector, objects.labels(revision)),
        )
        newest = await self._history.sync(daemon_set, known)
        revision_hash = objects.labels(newest.revision).get(placement.REVISION_LABEL, "")
        situation = await self._situation(daemon_set, revision_hash)
        failure: Exception | None = None
        if self._expectations.is_expired(key):
            self._expectations.forget(key)
        if self._expectations.satisfied(key):
            failure = await self._carry_out(key, situation, decision.plan_keeping(situation, self._may_replace(key)))
        if failure is None and self._expectations.satisfied(key) and decision.is_rolling(daemon_set):
            situation = await self._situation(daemon_set, revision_hash)
            failure = await self._carry_out(key, situation, decision.plan_update(situation))
        await write_status(self._api, DAEMON_SETS, daemon_set, status_of(situation, newest.collision_count))
        if failure is not None:
            raise failure
        used = {objects.labels(pod).get(placement.REVISION_LABEL) for pods in situation.by_node.values() for pod in pods}
        live = {objects.name(r) for r in newest.others if objects.labels(r).get(placement.REVISION_LABEL) in used}
        await self._history.truncate(newest.others, live, int(objects.get(daemon_set, "spec", "revisionHistoryLimit", default=10)))
        self._look_again(key, situation)

    def _forget(self, key: str) -> None:
        self._expectations.forget(key)
        for node_name in self._ended_until.pop(key, {}):
            self._ended.forget(f"{key}@{node_name}")

    def _known_revisions(self, daemon_set: Object) -> list[Object]:
        indexer = self._revisions.indexer
        mine = indexer.by_index(BY_CONTROLLER, objects.uid(daemon_set))
        return mine + indexer.by_index(BY_CONTROLLER, orphans_key(objects.namespace(daemon_set)))

    async def _situation(self, daemon_set: Object, revision_hash: str) -> Situation:
        selector = objects.get(daemon_set, "spec", "selector")
        pods = await claim(
            self._api,
            daemon_set,
            DAEMON_SETS,
            PODS,
            self._pods.candidates(daemon_set),
            lambda pod: selectors.matches(selector, objects.labels(pod)),
        )
        return Situation(
            daemon_set=daemon_set,
            fits={objects.name(node): placement.fit_of(daemon_set, node) for node in self._nodes.indexer.list()},
            by_node=decision.group_by_node(pods),
            revision_hash=revision_hash,
            now=self._clock.now(),
        )

    def _may_replace(self, key: str) -> Callable[[str], bool]:
        def may_replace(node_name: str) -> bool:
            until = self._ended_until.setdefault(key, {})
            if node_name not in until:
                until[node_name] = self._clock.monotonic() + self._ended.when(f"{key}@{node_name}")
            if self._clock.monotonic() < until[node_name]:
                self.queue.add_after(key, until[node_name] - self._clock.monotonic())
                return False
            del until[node_name]
            return True

        return may_replace

    def _look_again(self, key: str, situation: Situation) -> None:
        wait = seconds_until_more_available(situation)
        if wait is not None:
            self.queue.add_after(key, wait)
        if not self._expectations.satisfied(key):
            # nothing else wakes us if the watch events never come
            self.queue.add_after(key, self._expectations.seconds_until_expired(key) + 1)

    async def _carry_out(self, key: str, situation: Situation, whole: Plan) -> Exception | None:
        plan, daemon_set = whole.bounded(), situation.daemon_set
        if not plan.create and not plan.delete:
            return None
        for pod in plan.ended:
            failed = pod_facts.phase(pod) == "Failed"
            self._recorder.event(
                daemon_set,
                "Warning" if failed else "Normal",
                "FailedDaemonPod" if failed else "SucceededDaemonPod",
                f"Found {'failed' if failed else 'succeeded'} daemon pod {key_of(pod)} on node {placement.target_node(pod)}, "
                "will try to " + ("kill it" if failed else "delete it"),
            )
        if plan.create:
            self._expectations.expect_creations(key, len(plan.create))
        if plan.delete:
            self._expectations.expect_deletions(key, [key_of(pod) for pod in plan.delete])
        created, deleted = await asyncio.gather(self._create(key, situation, plan.create), self._delete(key, daemon_set, plan.delete))
        return created or deleted

    async def _create(self, key: str, situation: Situation, nodes: list[str]) -> Exception | None:
        tried = 0

        async def create_one(number: int) -> None:
            nonlocal tried
            tried += 1
            pod = placement.pod_for(situation.daemon_set, nodes[number], situation.revision_hash)
            try:
                await self._pod_control.create(pod, situation.daemon_set)
            except errors.TRANSIENT as error:
                # a pod that was made though no answer came is found as the second on its node, and goes
                self._expectations.creation_observed(key)
                if not errors.is_namespace_terminating(error):
                    raise

        _, failure = await slow_start(len(nodes), create_one)
        self._expectations.creation_observed(key, len(nodes) - tried)
        return failure

    async def _delete(self, key: str, daemon_set: Object, pods: list[Object]) -> Exception | None:
        async def delete_one(pod: Object) -> Exception | None:
            try:
                await self._pod_control.delete(pod, daemon_set)
            except errors.TRANSIENT as error:
                self._expectations.deletion_observed(key, key_of(pod))
                return None if errors.is_not_found(error) else error
            return None

        results = await asyncio.gather(*(delete_one(pod) for pod in pods))
        return next((r for r in results if r is not None), None)
