"""The shell: uids from the graph → live reads → the verdict carried out."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import DeleteOptions
from controllers.client.resources import Resource
from controllers.garbagecollector import decision
from controllers.garbagecollector.decision import Delete, DropReferences, Keep, OwnerState
from controllers.garbagecollector.graph import FOREGROUND, ORPHAN, Concerns, Graph, Identity, Node, identity_of
from controllers.garbagecollector.monitors import Monitors
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiter import ItemExponentialFailure
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 20
#: absent owners remembered; more than that are asked for again
ABSENT_MAX = 2000
#: dependents of one owner orphaned at once
ORPHANED_AT_ONCE = 16

log = logging.getLogger(__name__)


class KindUnknown(errors.ClientError):
    """An owner of a kind that discovery does not name (yet): nothing is decided."""


class GarbageCollector:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._recorder = context.api, context.recorder
        self.graph = Graph()
        self.delete_queue = RateLimitingQueue(context.clock, ItemExponentialFailure(seconds_max=60.0))
        self.orphan_queue = RateLimitingQueue(context.clock, ItemExponentialFailure(seconds_max=60.0))
        self.monitors = Monitors(context.api, clock=context.clock, rng=context.rng, on_object=self._on_object, on_gone=self._on_gone)
        #: owners known not to exist, as their dependents name them; a uid never comes back
        self._absent: OrderedDict[Identity, None] = OrderedDict()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.monitors.run(), name="garbage collector monitors")
            group.create_task(run_workers("garbage-collector", self.delete_queue, self.attempt_to_delete, workers=WORKERS))
            group.create_task(run_workers("garbage-collector", self.orphan_queue, self.attempt_to_orphan, workers=WORKERS // 4))

    # the graph

    def _on_object(self, resource: Resource, obj: Object) -> None:
        self._concern(self.graph.observe(resource, obj))

    def _on_gone(self, obj: Object) -> None:
        node = self.graph.nodes.get(objects.uid(obj))
        if node is not None:
            self._forget(node)

    def _forget(self, node: Node) -> None:
        identity = node.identity
        if node.dependents:
            self._remember_absent(Identity(identity.uid, identity.api_version, identity.kind, identity.namespace, identity.name))
        self._concern(self.graph.forget(identity.uid))

    def _concern(self, concerns: Concerns) -> None:
        for uid in concerns.delete:
            self.delete_queue.add(uid)
        for uid in concerns.orphan:
            self.orphan_queue.add(uid)
        for uid, reference in concerns.misplaced:
            self._tell_misplaced(self.graph.nodes[uid], reference)

    def _tell_misplaced(self, node: Node, reference: Object) -> None:
        identity = node.identity
        about = {
            "apiVersion": identity.api_version,
            "kind": identity.kind,
            "metadata": {"name": identity.name, "namespace": identity.namespace, "uid": identity.uid},
        }
        named = (
            f"ownerRef [{reference.get('apiVersion')}/{reference.get('kind')}, namespace: {identity.namespace}, "
            f"name: {reference.get('name')}, uid: {reference.get('uid')}]"
        )
        self._recorder.event(about, "Warning", "OwnerRefInvalidNamespace", f'{named} does not exist in namespace "{identity.namespace}"')

    def _remember_absent(self, identity: Identity) -> None:
        self._absent[identity] = None
        self._absent.move_to_end(identity)
        if len(self._absent) > ABSENT_MAX:
            self._absent.popitem(last=False)

    # to delete

    async def attempt_to_delete(self, uid: str) -> None:
        await self.monitors.synced.wait()
        node = self.graph.nodes.get(uid)
        if node is None or (node.being_deleted and not node.deleting_dependents):
            return
        resource = self._resource_of(node.identity)
        latest = await self._read(resource, node.identity)
        if latest is None:
            self._forget(node)
            return
        if node.virtual:
            return  # it exists; its monitor will show it
        if node.deleting_dependents:
            await self._delete_dependents_first(node, resource, latest)
            return
        owners = [(reference, await self._state_of(reference, node.identity)) for reference in objects.owner_references(latest)]
        if any(state is None for _, state in owners):
            return
        dependents = self.graph.dependents(uid)
        verdict = decision.judge(
            latest,
            [(o, s) for o, s in owners if s is not None],
            has_dependents=bool(dependents),
            dependents_wait=any(d.deleting_dependents for d in dependents),
        )
        await self._carry_out(verdict, resource, latest)

    async def _carry_out(self, verdict: decision.Verdict, resource: Resource, latest: Object) -> None:
        namespace, name = objects.namespace(latest), objects.name(latest)
        if isinstance(verdict, Keep):
            return
        if isinstance(verdict, DropReferences):
            log.info("%s %s/%s: dropping references to %d owners", resource.kind, namespace, name, len(verdict.uids))
            left = [o for o in objects.owner_references(latest) if o.get("uid") not in verdict.uids]
            await self._patch_owners(resource, latest, left)
            return
        assert isinstance(verdict, Delete)
        if verdict.unblock_first:
            unblocked = [{k: v for k, v in o.items() if k != "blockOwnerDeletion"} for o in objects.owner_references(latest)]
            await self._patch_owners(resource, latest, unblocked)
        log.debug("deleting %s %s/%s (%s)", resource.kind, namespace, name, verdict.propagation.value)
        try:
            # The uid keeps a namesake safe; the version would also keep it from going with owners it has just been given.
            version = "" if verdict.unblock_first else objects.resource_version(latest)
            await self._api.delete(
                resource, namespace, name, DeleteOptions(propagation=verdict.propagation, uid=objects.uid(latest), resource_version=version)
            )
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise

    async def _delete_dependents_first(self, node: Node, resource: Resource, latest: Object) -> None:
        blocking = self.graph.blocking_dependents(node.identity.uid)
        if not blocking:
            await self._remove_finalizer(resource, latest, FOREGROUND)
            return
        for dependent in blocking:
            if not dependent.deleting_dependents:
                self.delete_queue.add(dependent.identity.uid)

    async def _state_of(self, reference: Object, dependent: Identity) -> OwnerState | None:
        """None: a cluster-wide dependent names a namespaced owner; nothing can be said of that, and it stays."""
        resource = self.monitors.resource_of(str(reference.get("apiVersion")), str(reference.get("kind")))
        if resource is None:
            owner_kind = f"{reference.get('apiVersion')} {reference.get('kind')}"
            raise KindUnknown(f"{owner_kind}, an owner of {dependent.kind} {dependent.name}, is unknown")
        if resource.namespaced and not dependent.namespace:
            node = self.graph.nodes.get(dependent.uid)
            if node is not None:
                self._tell_misplaced(node, reference)
            return None
        identity = identity_of(reference, dependent.namespace if resource.namespaced else "")
        if identity in self._absent:
            return OwnerState.ABSENT
        owner = await self._read(resource, identity)
        if owner is None:
            self._remember_absent(identity)
            return OwnerState.ABSENT
        if objects.is_being_deleted(owner) and FOREGROUND in objects.finalizers(owner):
            return OwnerState.WAITING
        return OwnerState.SOLID

    # to orphan

    async def attempt_to_orphan(self, uid: str) -> None:
        await self.monitors.synced.wait()
        node = self.graph.nodes.get(uid)
        if node is None:
            return
        limit = asyncio.Semaphore(ORPHANED_AT_ONCE)

        async def orphan(dependent: Node) -> None:
            async with limit:
                resource = self._resource_of(dependent.identity)
                latest = await self._read(resource, dependent.identity)
                if latest is None:
                    return
                left = [o for o in objects.owner_references(latest) if o.get("uid") != uid]
                if len(left) != len(objects.owner_references(latest)):
                    await self._patch_owners(resource, latest, left)

        await asyncio.gather(*(orphan(d) for d in self.graph.dependents(uid) if not d.virtual))
        resource = self._resource_of(node.identity)
        latest = await self._read(resource, node.identity)
        if latest is not None:
            await self._remove_finalizer(resource, latest, ORPHAN)

    # below

    def _resource_of(self, identity: Identity) -> Resource:
        resource = identity.resource or self.monitors.resource_of(identity.api_version, identity.kind)
        if resource is None:
            raise KindUnknown(f"kind {identity.api_version} {identity.kind} is unknown")
        return resource

    async def _read(self, resource: Resource, identity: Identity) -> Object | None:
        """The object's metadata as it is now; None where it is gone, or another has its name."""
        try:
            found = await self._api.get(resource, identity.namespace, identity.name, metadata_only=True)
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return None
            raise
        return found if objects.uid(found) == identity.uid else None

    async def _patch_owners(self, resource: Resource, latest: Object, left: list[Object]) -> None:
        await self._patch_or_gone(resource, latest, {"ownerReferences": left or None})

    async def _remove_finalizer(self, resource: Resource, latest: Object, finalizer: str) -> None:
        if finalizer not in objects.finalizers(latest):
            return
        left = [f for f in objects.finalizers(latest) if f != finalizer]
        await self._patch_or_gone(resource, latest, {"finalizers": left or None})

    async def _patch_or_gone(self, resource: Resource, latest: Object, metadata: Object) -> None:
        """Uid and version make it fail on anything but the object as it was read."""
        patch = {"metadata": {"uid": objects.uid(latest), "resourceVersion": objects.resource_version(latest), **metadata}}
        try:
            await self._api.patch(resource, objects.namespace(latest), objects.name(latest), patch)
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise  # a conflict too: the uid is tried again on what is there then
