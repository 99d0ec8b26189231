"""The shell: events of Deployments, ReplicaSets and pods → keys; a key → claim ReplicaSets, one step of the strategy, the status."""

from __future__ import annotations

import logging

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import DeleteOptions
from controllers.client.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from controllers.deployment import facts, revisions, rolling, status
from controllers.deployment.revisions import Sets
from controllers.deployment.rolling import ScaleTo
from controllers.lib import selectors
from controllers.lib.context import ControllerContext
from controllers.lib.controller_ref import claim
from controllers.lib.pod_index import BY_CONTROLLER, index_by_controller, orphans_key
from controllers.lib.template_hash import equal_ignoring
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 5
#: a Deployment that fails is tried so often before it waits for the next event (kube-controller-manager's maxRetries)
RETRIES_MAX = 15

log = logging.getLogger(__name__)


class DeploymentController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock, self._recorder = context.api, context.clock, context.recorder
        self.queue = RateLimitingQueue(context.clock)
        self._deployments = context.informers.informer(DEPLOYMENTS)
        self._sets = context.informers.informer(REPLICA_SETS)
        self._pods = context.informers.informer(PODS)
        self._sets.add_index(BY_CONTROLLER, index_by_controller)
        self._pods.add_index(BY_CONTROLLER, index_by_controller)
        self._deployments.add_handler(EventHandler.for_each(self._enqueue))
        self._sets.add_handler(EventHandler(on_add=self._on_set, on_update=self._on_set_update, on_delete=self._on_set))
        self._pods.add_handler(EventHandler(on_delete=self._on_pod_delete))

    async def run(self) -> None:
        await run_workers("deployment-controller", self.queue, self.sync, workers=WORKERS, retries_max=RETRIES_MAX)

    # events → keys

    def _enqueue(self, deployment: Object) -> None:
        self.queue.add(key_of(deployment))

    def _owner_of(self, replica_set: Object) -> Object | None:
        reference = objects.controller_of(replica_set)
        if reference is None or reference.get("kind") != DEPLOYMENTS.kind:
            return None
        found = self._deployments.indexer.get(f"{objects.namespace(replica_set)}/{reference.get('name')}")
        return found if found is not None and objects.uid(found) == reference.get("uid") else None

    def _on_set(self, replica_set: Object) -> None:
        owner = self._owner_of(replica_set)
        if owner is not None:
            self._enqueue(owner)
        elif objects.controller_of(replica_set) is None:
            self._enqueue_possible_owners(replica_set)

    def _on_set_update(self, old: Object, new: Object) -> None:
        if objects.resource_version(old) == objects.resource_version(new):
            return
        before = self._owner_of(old)
        if before is not None and objects.controller_of(old) != objects.controller_of(new):
            self._enqueue(before)
        self._on_set(new)

    def _enqueue_possible_owners(self, replica_set: Object) -> None:
        for candidate in self._deployments.indexer.in_namespace(objects.namespace(replica_set)):
            selector = candidate["spec"].get("selector")
            if not selectors.is_empty(selector) and selectors.matches(selector, objects.labels(replica_set)):
                self._enqueue(candidate)

    def _on_pod_delete(self, pod: Object) -> None:
        """A Recreate waits for the last old pod to end."""
        reference = objects.controller_of(pod)
        if reference is None or reference.get("kind") != REPLICA_SETS.kind:
            return
        replica_set = self._sets.indexer.get(f"{objects.namespace(pod)}/{reference.get('name')}")
        owner = self._owner_of(replica_set) if replica_set is not None else None
        if owner is not None and not facts.is_rolling(owner):
            self._enqueue(owner)

    # a key → one step

    async def sync(self, key: str) -> None:
        cached = self._deployments.indexer.get(key)
        if cached is None:
            return
        deployment = cached
        if selectors.is_empty(deployment["spec"].get("selector")):
            self._recorder.event(
                deployment, "Warning", "SelectingAll", "This deployment is selecting all pods. A non-empty selector is required."
            )
            return
        sets = revisions.split(deployment, await self._claim_sets(deployment))
        if objects.is_being_deleted(deployment):
            await self._write_status(cached, deployment, status.counted(deployment, sets, self._clock.now()))
            return
        paused = status.pause_condition(deployment, self._clock.now())
        if paused is not None:
            deployment = {**deployment, "status": status.with_condition(deployment.get("status") or {}, paused)}
        if facts.is_paused(deployment):
            sets = await self._scale(deployment, sets)
            await self._clean_up(deployment, sets)
            await self._write_status(cached, deployment, status.counted(deployment, sets, self._clock.now()))
            return
        if rolling.is_scaling_event(deployment, sets):
            deployment, sets = await self._sync_new_set(deployment, sets, create=False)
            sets = await self._scale(deployment, sets)
            await self._write_status(cached, deployment, status.counted(deployment, sets, self._clock.now()))
            return
        if facts.is_rolling(deployment):
            deployment, sets = await self._roll(deployment, sets)
        else:
            deployment, sets = await self._recreate(deployment, sets)
        now = self._clock.now()
        found = status.rollout(deployment, sets, now)
        await self._write_status(cached, deployment, found)
        if facts.is_complete(deployment, found):
            await self._clean_up(deployment, sets)
        wait = status.seconds_until_timeout(deployment, found, now)
        if wait is not None:
            self.queue.add_after(key, wait)

    async def _claim_sets(self, deployment: Object) -> list[Object]:
        indexer = self._sets.indexer
        candidates = indexer.by_index(BY_CONTROLLER, objects.uid(deployment)) + indexer.by_index(
            BY_CONTROLLER, orphans_key(objects.namespace(deployment))
        )
        selector = deployment["spec"]["selector"]
        return await claim(
            self._api,
            deployment,
            DEPLOYMENTS,
            REPLICA_SETS,
            candidates,
            lambda replica_set: selectors.matches(selector, objects.labels(replica_set)),
        )

    async def _roll(self, deployment: Object, sets: Sets) -> tuple[Object, Sets]:
        """One step: the new set grows, or else old ones shrink. The next event leads to the next step."""
        deployment, sets = await self._sync_new_set(deployment, sets, create=True)
        steps = rolling.plan_growth(deployment, sets) or rolling.plan_shrinkage(deployment, sets)
        return deployment, await self._apply(deployment, sets, steps)

    async def _recreate(self, deployment: Object, sets: Sets) -> tuple[Object, Sets]:
        deployment, sets = await self._sync_new_set(deployment, sets, create=False)
        old = facts.active(sets.old)
        if old:
            return deployment, await self._apply(deployment, sets, [ScaleTo(s, 0) for s in old])
        pods = [pod for s in sets.old for pod in self._pods.indexer.by_index(BY_CONTROLLER, objects.uid(s))]
        if facts.any_pods_running(pods):
            return deployment, sets
        deployment, sets = await self._sync_new_set(deployment, sets, create=True)
        assert sets.new is not None
        wanted = facts.replicas(deployment)
        steps = [] if facts.replicas(sets.new) == wanted else [ScaleTo(sets.new, wanted)]
        return deployment, await self._apply(deployment, sets, steps)

    async def _sync_new_set(self, deployment: Object, sets: Sets, *, create: bool) -> tuple[Object, Sets]:
        """The new set with its annotations and revision up to date, made where it is missing and ``create``; the Deployment with that
        revision, and with a condition that says which."""
        if sets.new is None:
            return await self._create_new_set(deployment, sets) if create else (deployment, sets)
        updated = revisions.updated_new(deployment, sets)
        if updated is not None:
            sets = sets.with_updated(await self._api.update(REPLICA_SETS, updated))
        assert sets.new is not None
        deployment = self._with_revision(deployment, sets.new)
        has_condition = status.condition(deployment.get("status") or {}, status.PROGRESSING) is not None
        if not has_condition and facts.progress_deadline(deployment) is not None:
            deployment = self._with_progress(deployment, "True", "FoundNewReplicaSet", f'Found new replica set "{objects.name(sets.new)}"')
        return deployment, sets

    async def _create_new_set(self, deployment: Object, sets: Sets) -> tuple[Object, Sets]:
        wanted = revisions.new_replica_set(deployment, sets)
        name = objects.name(wanted)
        try:
            new = await self._api.create(REPLICA_SETS, objects.namespace(deployment), wanted)
        except errors.StatusError as error:
            if errors.is_already_exists(error):
                new = await self._same_set_or_collision(deployment, name)
                return self._with_revision(deployment, new), Sets(new, sets.old)
            if not errors.is_namespace_terminating(error):
                message = f'Failed to create new replica set "{name}": {error}'
                failed = self._with_progress(deployment, "False", status.CREATE_FAILED, message)
                self._recorder.event(deployment, "Warning", status.CREATE_FAILED, message)
                await self._write_status(deployment, failed, failed["status"])
            raise
        if facts.replicas(new) > 0:
            self._recorder.event(deployment, "Normal", "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {facts.replicas(new)}")
        deployment = self._with_revision(deployment, new)
        if facts.progress_deadline(deployment) is not None:
            deployment = self._with_progress(deployment, "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        return deployment, Sets(new, sets.old)

    async def _same_set_or_collision(self, deployment: Object, name: str) -> Object:
        """A set of that name is there: ours, and only our cache is behind; or another's with the same hash. Then the collision count
        rises, which makes another hash at the next try."""
        existing = await self._api.get(REPLICA_SETS, objects.namespace(deployment), name)
        reference = objects.controller_of(existing)
        if (
            reference is not None
            and reference.get("uid") == objects.uid(deployment)
            and equal_ignoring(existing["spec"]["template"], deployment["spec"]["template"], facts.HASH_LABEL)
        ):
            return existing
        collisions = facts.status_count(deployment, "collisionCount") + 1
        log.info("deployment %s: the name %s is taken, collision count is now %d", key_of(deployment), name, collisions)
        await self._write_status(deployment, deployment, {**(deployment.get("status") or {}), "collisionCount": collisions})
        raise errors.status_error(
            409,
            {
                "kind": "Status",
                "code": 409,
                "reason": "AlreadyExists",
                "status": "Failure",
                "message": f'replica set name "{name}" collides',
            },
            {},
        )

    def _with_progress(self, deployment: Object, truth: str, reason: str, message: str) -> Object:
        new = status.new_condition(status.PROGRESSING, truth, reason, message, self._clock.now())
        return {**deployment, "status": status.with_condition(deployment.get("status") or {}, new)}

    @staticmethod
    def _with_revision(deployment: Object, new: Object) -> Object:
        """The Deployment with the new set's revision, to be written with its status."""
        wanted = objects.annotations(new).get(facts.REVISION, "")
        if not wanted or objects.annotations(deployment).get(facts.REVISION) == wanted:
            return deployment
        annotations = {**objects.annotations(deployment), facts.REVISION: wanted}
        return {**deployment, "metadata": {**deployment["metadata"], "annotations": annotations}}

    async def _scale(self, deployment: Object, sets: Sets) -> Sets:
        return await self._apply(deployment, sets, rolling.plan_scaling(deployment, sets))

    async def _apply(self, deployment: Object, sets: Sets, steps: list[ScaleTo]) -> Sets:
        for step in steps:
            before = facts.replicas(step.replica_set)
            annotations = {**objects.annotations(step.replica_set), **revisions.replicas_annotations(deployment)}
            if before == step.replicas and annotations == objects.annotations(step.replica_set):
                continue
            wanted = {
                **step.replica_set,
                "metadata": {**step.replica_set["metadata"], "annotations": annotations},
                "spec": {**step.replica_set["spec"], "replicas": step.replicas},
            }
            written = await self._api.update(REPLICA_SETS, wanted)
            sets = sets.with_updated(written)
            if before != step.replicas:
                direction = "up" if before < step.replicas else "down"
                self._recorder.event(
                    deployment,
                    "Normal",
                    "ScalingReplicaSet",
                    f"Scaled {direction} replica set {objects.name(written)} from {before} to {step.replicas}",
                )
        return sets

    async def _clean_up(self, deployment: Object, sets: Sets) -> None:
        for old in revisions.to_clean_up(deployment, sets):
            try:
                await self._api.delete(REPLICA_SETS, objects.namespace(old), objects.name(old), DeleteOptions(uid=objects.uid(old)))
            except errors.StatusError as error:
                if not errors.is_not_found(error):
                    raise

    async def _write_status(self, cached: Object, deployment: Object, new: Object) -> None:
        """Writes status and revision where they differ from what the cache has. A conflict is raised: the key is tried again on fresh data.

        The status subresource takes annotations too, as it does in kube-apiserver; where it did not, the object itself is written.
        """
        wanted = objects.annotations(deployment).get(facts.REVISION)
        same_revision = objects.annotations(cached).get(facts.REVISION) == wanted
        if (cached.get("status") or {}) == new and same_revision:
            return
        metadata = {**cached["metadata"], "annotations": objects.annotations(deployment)}
        if not metadata["annotations"]:
            del metadata["annotations"]
        written = await self._api.update(DEPLOYMENTS, {**cached, "metadata": metadata, "status": new}, subresource="status")
        if wanted and objects.annotations(written).get(facts.REVISION) != wanted:
            annotations = {**objects.annotations(written), facts.REVISION: wanted}
            await self._api.update(DEPLOYMENTS, {**written, "metadata": {**written["metadata"], "annotations": annotations}})
