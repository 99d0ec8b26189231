"""The shell: events of sets and pods → keys; a key → revisions, plan, carry out, write the status."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import Indexer, key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import DeleteOptions
from controllers.client.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from controllers.lib import selectors
from controllers.lib.context import ControllerContext
from controllers.lib.controller_history import History
from controllers.lib.controller_ref import claim
from controllers.lib.pod_control import slow_start
from controllers.lib.pod_index import BY_CONTROLLER, index_by_controller, orphans_key
from controllers.lib.status_writer import write_status
from controllers.statefulset import claims, decision, identity
from controllers.statefulset.decision import Action, Create, Delete, Mend, Revisions
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 5
HASH_LABEL = "controller.kubernetes.io/hash"


class StatefulSetController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock, self._recorder = context.api, context.clock, context.recorder
        self.queue = RateLimitingQueue(context.clock)
        self._history = History(context.api, STATEFUL_SETS, HASH_LABEL)
        self._sets = context.informers.informer(STATEFUL_SETS)
        self._pods = context.informers.informer(PODS)
        self._claims = context.informers.informer(PERSISTENT_VOLUME_CLAIMS)
        self._revisions = context.informers.informer(CONTROLLER_REVISIONS)
        for informer in (self._pods, self._revisions):
            informer.add_index(BY_CONTROLLER, index_by_controller)
        self._sets.add_handler(EventHandler.for_each(self._enqueue))
        self._pods.add_handler(EventHandler(on_add=self._on_pod, on_update=self._on_pod_update, on_delete=self._on_pod))

    async def run(self) -> None:
        await run_workers("statefulset-controller", self.queue, self.sync, workers=WORKERS)

    # events → keys

    def _enqueue(self, stateful_set: Object) -> None:
        self.queue.add(key_of(stateful_set))

    def _on_pod(self, pod: Object) -> None:
        reference = objects.controller_of(pod)
        if reference is not None:
            if reference.get("kind") == STATEFUL_SETS.kind:
                self.queue.add(f"{objects.namespace(pod)}/{reference.get('name')}")
            return
        for candidate in self._sets.indexer.in_namespace(objects.namespace(pod)):
            if _is_member(candidate, pod):
                self._enqueue(candidate)

    def _on_pod_update(self, old: Object, new: Object) -> None:
        if objects.resource_version(old) == objects.resource_version(new):
            return
        if objects.controller_of(old) != objects.controller_of(new):
            self._on_pod(old)
        self._on_pod(new)

    # a key → what it needs

    async def sync(self, key: str) -> None:
        stateful_set = self._sets.indexer.get(key)
        if stateful_set is None or selectors.is_empty(objects.get(stateful_set, "spec", "selector")):
            return
        pods = await claim(
            self._api,
            stateful_set,
            STATEFUL_SETS,
            PODS,
            self._candidates(self._pods.indexer, stateful_set),
            lambda pod: _is_member(stateful_set, pod),
        )
        if objects.is_being_deleted(stateful_set):
            return  # its pods go by the garbage collector
        known = await claim(
            self._api,
            stateful_set,
            STATEFUL_SETS,
            CONTROLLER_REVISIONS,
            self._candidates(self._revisions.indexer, stateful_set),
            lambda revision: selectors.matches(stateful_set["spec"]["selector"], objects.labels(revision)),
        )
        newest = await self._history.sync(stateful_set, known)
        named = objects.get(stateful_set, "status", "currentRevision", default="")
        current = next((r for r in newest.others if objects.name(r) == named), newest.revision)
        revisions = Revisions(current=current, update=newest.revision)
        now = self._clock.now()
        plan = decision.plan(stateful_set, pods, revisions, now)
        counts, failure = plan.counts, None
        try:
            await self._carry_out_all(stateful_set, plan.actions)
        except errors.TRANSIENT as error:
            # the status tells what is; what was done before the failure comes with the next sync
            counts, failure = decision.counts_of(stateful_set, pods, revisions, now), error
        status = decision.status_of(stateful_set, counts, revisions, newest.collision_count)
        await write_status(self._api, STATEFUL_SETS, stateful_set, status)
        if failure is not None:
            raise failure
        live = {identity.revision_of(pod) for pod in pods} | {revisions.current_name, revisions.update_name}
        limit = int(objects.get(stateful_set, "spec", "revisionHistoryLimit", default=10))
        await self._history.truncate(newest.others, live, limit)
        wait = decision.seconds_until_more_available(stateful_set, pods, now)
        if wait is not None:
            self.queue.add_after(key, wait)

    @staticmethod
    def _candidates(indexer: Indexer, stateful_set: Object) -> list[Object]:
        mine = indexer.by_index(BY_CONTROLLER, objects.uid(stateful_set))
        return mine + indexer.by_index(BY_CONTROLLER, orphans_key(objects.namespace(stateful_set)))

    async def _carry_out_all(self, stateful_set: Object, actions: list[Action]) -> None:
        """One after the other, and in a Parallel set many at once; the first failure ends it.

        Raises:
            StatusError, ConnectionFailed: that failure.
        """
        if decision.is_monotonic(stateful_set):
            for action in actions:
                await self._carry_out(stateful_set, action)
            return
        _, failure = await slow_start(len(actions), lambda number: self._carry_out(stateful_set, actions[number]))
        if failure is not None:
            raise failure

    async def _carry_out(self, stateful_set: Object, action: Action) -> None:
        match action:
            case Create():
                await self._make_claims(stateful_set, action.ordinal, None)
                await self._create(stateful_set, action)
            case Delete():
                if action.condemned:
                    await self._own_claims(stateful_set, action.pod)
                await self._delete(stateful_set, action)
            case Mend():
                ordinal = identity.ordinal_of(stateful_set, action.pod)
                assert ordinal is not None
                await self._make_claims(stateful_set, ordinal, action.pod)
                if not identity.has_identity(stateful_set, action.pod):
                    await self._api.update(PODS, identity.with_identity(stateful_set, action.pod))

    async def _create(self, stateful_set: Object, action: Create) -> None:
        wanted = identity.pod(stateful_set, action.ordinal, action.revision)
        name = objects.name(wanted)
        what = f"create Pod {name} in StatefulSet {objects.name(stateful_set)}"
        try:
            await self._api.create(PODS, objects.namespace(stateful_set), wanted)
        except errors.TRANSIENT as error:
            if errors.is_already_exists(error) and await self._is_ours(stateful_set, name):
                return  # made by an earlier sync; its watch event has not come yet
            if not errors.is_namespace_terminating(error):
                self._recorder.event(stateful_set, "Warning", "FailedCreate", f"{what} failed error: {error}")
            raise
        self._recorder.event(stateful_set, "Normal", "SuccessfulCreate", f"{what} successful")

    async def _is_ours(self, stateful_set: Object, name: str) -> bool:
        try:
            found = await self._api.get(PODS, objects.namespace(stateful_set), name)
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return False
            raise
        return (objects.controller_of(found) or {}).get("uid") == objects.uid(stateful_set)

    async def _delete(self, stateful_set: Object, action: Delete) -> None:
        name, set_name = objects.name(action.pod), objects.name(stateful_set)
        if action.recreate:
            phase = str(objects.get(action.pod, "status", "phase")).lower()
            self._recorder.event(
                stateful_set,
                "Warning" if phase == "failed" else "Normal",
                f"Recreating{phase.capitalize()}Pod",
                f"StatefulSet {objects.namespace(stateful_set)}/{set_name} is recreating {phase} Pod {name}",
            )
        what = f"delete Pod {name} in StatefulSet {set_name}"
        try:
            await self._api.delete(PODS, objects.namespace(stateful_set), name, DeleteOptions(uid=objects.uid(action.pod)))
        except errors.TRANSIENT as error:
            if errors.is_not_found(error) or errors.is_conflict(error):
                return  # gone, or another pod has its name by now: the watch will tell
            self._recorder.event(stateful_set, "Warning", "FailedDelete", f"{what} failed error: {error}")
            raise
        self._recorder.event(stateful_set, "Normal", "SuccessfulDelete", f"{what} successful")

    # claims

    async def _make_claims(self, stateful_set: Object, ordinal: int, pod: Object | None) -> None:
        for wanted in identity.claims(stateful_set, ordinal):
            existing = self._claims.indexer.get(key_of(wanted))
            if existing is not None:
                await self._set_owners(stateful_set, existing, pod, condemned=False)
                continue
            name = objects.name(wanted)
            what = f"create Claim {name} Pod {identity.pod_name(stateful_set, ordinal)} in StatefulSet {objects.name(stateful_set)}"
            owned = claims.with_owners(stateful_set, pod, wanted, condemned=False)
            try:
                await self._api.create(PERSISTENT_VOLUME_CLAIMS, objects.namespace(stateful_set), owned)
            except errors.TRANSIENT as error:
                if errors.is_already_exists(error):
                    continue
                if not errors.is_namespace_terminating(error):
                    self._recorder.event(stateful_set, "Warning", "FailedCreate", f"{what} failed error: {error}")
                raise
            self._recorder.event(stateful_set, "Normal", "SuccessfulCreate", f"{what} success")

    async def _own_claims(self, stateful_set: Object, pod: Object) -> None:
        ordinal = identity.ordinal_of(stateful_set, pod)
        assert ordinal is not None
        for wanted in identity.claims(stateful_set, ordinal):
            existing = self._claims.indexer.get(key_of(wanted))
            if existing is not None:
                await self._set_owners(stateful_set, existing, pod, condemned=True)

    async def _set_owners(self, stateful_set: Object, existing: Object, pod: Object | None, *, condemned: bool) -> None:
        owned = claims.with_owners(stateful_set, pod, existing, condemned=condemned)
        if owned is not existing and not objects.is_being_deleted(existing):
            await self._api.update(PERSISTENT_VOLUME_CLAIMS, owned)


def _is_member(stateful_set: Object, pod: Object) -> bool:
    selected = selectors.matches(objects.get(stateful_set, "spec", "selector"), objects.labels(pod))
    return selected and identity.ordinal_of(stateful_set, pod) is not None
