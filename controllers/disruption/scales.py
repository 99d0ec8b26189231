"""How large the controllers of a budget's pods are meant to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.discovery import discover
from controllers.client.resources import DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Resource
from controllers.lib.context import ControllerContext

#: between reads of discovery for kinds that were not there
DISCOVERY_SECONDS = 30.0
SIZED = (REPLICATION_CONTROLLERS, REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS)


class NoScale(errors.ClientError):
    """A pod's controller has no size that could be read."""


@dataclass(frozen=True, slots=True)
class Scale:
    uid: str
    replicas: int


class Scales:
    """Sizes from the shared caches; those of other kinds (custom resources) by their scale subresource."""

    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self._informers = {(r.group, r.kind): context.informers.informer(r) for r in SIZED}
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._discovered_at: float | None = None

    async def total(self, pods: Sequence[Object]) -> int:
        """The sum over the pods' controllers; pods that nobody controls do not count.

        Raises:
            NoScale, StatusError, ConnectionFailed: the size of one is not to be had.
        """
        owners = {
            str(reference.get("uid")): (objects.namespace(pod), reference)
            for pod in pods
            if (reference := objects.controller_of(pod)) is not None
        }
        found: dict[str, int] = {}
        for namespace, reference in (owners[uid] for uid in sorted(owners)):
            scale = await self._of(namespace, reference)
            found[scale.uid] = scale.replicas  # the ReplicaSets of one Deployment count once
        return sum(found.values())

    async def _of(self, namespace: str, reference: Object) -> Scale:
        group, _ = objects.group_version(str(reference.get("apiVersion")))
        kind, name, uid = str(reference.get("kind")), str(reference.get("name")), str(reference.get("uid"))
        informer = self._informers.get((group, kind))
        if informer is not None:
            owner = informer.indexer.get(f"{namespace}/{name}")
            if owner is None or objects.uid(owner) != uid:
                raise NoScale(f'found no controller for pods of {kind} "{name}"')
            above = objects.controller_of(owner)
            if kind == REPLICA_SETS.kind and above is not None and above.get("kind") == DEPLOYMENTS.kind:
                return await self._of(namespace, above)
            return Scale(uid, int(objects.get(owner, "spec", "replicas", default=1)))
        resource = await self._resource(group, kind)
        if resource is None:
            raise NoScale(f'no resource of kind {kind} for pods of "{name}"')
        try:
            scale = await self._api.get(resource, namespace, name, subresource="scale")
        except errors.StatusError as error:
            if errors.is_not_found(error):
                raise NoScale(f"{resource.qualified} does not implement the scale subresource") from error
            raise
        if objects.uid(scale) != uid:
            raise NoScale(f'found no controller for pods of {kind} "{name}"')
        return Scale(uid, int(objects.get(scale, "spec", "replicas", default=0)))

    async def _resource(self, group: str, kind: str) -> Resource | None:
        now = self._clock.monotonic()
        if (group, kind) not in self._kinds and (self._discovered_at is None or now - self._discovered_at >= DISCOVERY_SECONDS):
            self._discovered_at = now
            found = await discover(self._api)
            self._kinds.update({(one.resource.group, one.resource.kind): one.resource for one in found.resources})
        return self._kinds.get((group, kind))
