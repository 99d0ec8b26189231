"""ControllerRevisions: the pod templates that a StatefulSet or DaemonSet has had (``pkg/controller/history``).

A revision holds a template as a patch that puts it back (``kubectl rollout undo`` sends it as it is). The newest has the highest number;
a template that comes back makes its old revision the newest again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import Api, DeleteOptions
from controllers.client.resources import CONTROLLER_REVISIONS, Resource
from controllers.lib.controller_ref import owner_reference
from controllers.lib.template_hash import normalized, template_hash

#: Other templates whose hash is the same by chance; a hundred in a row do not happen.
COLLISIONS_MAX = 100


def number(revision: Object) -> int:
    return int(revision.get("revision") or 0)


def ordered(revisions: Iterable[Object]) -> list[Object]:
    """The oldest first."""
    return sorted(revisions, key=lambda r: (number(r), str(objects.metadata(r).get("creationTimestamp") or ""), objects.name(r)))


def patch_of(template: Object) -> Object:
    """What a revision of the template holds."""
    return {"spec": {"template": {**objects.deep_copy(template), "$patch": "replace"}}}


def template_of(revision: Object) -> Object:
    found: Object = objects.get(revision, "data", "spec", "template", default={})
    return {k: v for k, v in found.items() if k != "$patch"}


def holds(revision: Object, template: Object) -> bool:
    return normalized(template_of(revision)) == normalized(template)


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The revision of the owner's template, all others, and the collision count to keep in the owner's status."""

    revision: Object
    others: tuple[Object, ...]
    collision_count: int | None


class History:
    def __init__(self, api: Api, owner_resource: Resource, hash_label: str) -> None:
        """``hash_label``: the label of a revision that says its hash."""
        self._api, self._owner_resource, self._hash_label = api, owner_resource, hash_label

    async def sync(self, owner: Object, revisions: Sequence[Object]) -> Newest:
        """Finds or makes the revision of the owner's template, and makes it the newest.

        Raises:
            StatusError, ConnectionFailed: it could not be written.
        """
        template = owner["spec"]["template"]
        in_order = ordered(revisions)
        collisions: int | None = objects.get(owner, "status", "collisionCount")
        equal = [r for r in in_order if holds(r, template)]
        following = number(in_order[-1]) + 1 if in_order else 1
        if not equal:
            newest, collisions = await self._create(owner, following, collisions)
        elif equal[-1] is in_order[-1]:
            newest = equal[-1]
        else:
            newest = await self._api.update(CONTROLLER_REVISIONS, {**equal[-1], "revision": following})
        others = tuple(r for r in in_order if objects.name(r) != objects.name(newest))
        return Newest(revision=newest, others=others, collision_count=collisions)

    async def _create(self, owner: Object, revision: int, collisions: int | None) -> tuple[Object, int | None]:
        template = owner["spec"]["template"]
        for _ in range(COLLISIONS_MAX):
            wanted = self._new(owner, revision, collisions)
            try:
                return await self._api.create(CONTROLLER_REVISIONS, objects.namespace(owner), wanted), collisions
            except errors.StatusError as error:
                if not errors.is_already_exists(error):
                    raise
            found = await self._api.get(CONTROLLER_REVISIONS, objects.namespace(owner), objects.name(wanted))
            if holds(found, template) and (objects.controller_of(found) or {}).get("uid") == objects.uid(owner):
                return found, collisions  # made by an earlier sync whose watch event has not come yet
            collisions = (collisions or 0) + 1
        raise AssertionError(f"{COLLISIONS_MAX} templates of {objects.name(owner)} with one hash")

    def _new(self, owner: Object, revision: int, collisions: int | None) -> Object:
        template = owner["spec"]["template"]
        hashed = template_hash(template, collisions)
        metadata: Object = {
            "name": f"{objects.name(owner)}-{hashed}",
            "namespace": objects.namespace(owner),
            "labels": {**objects.labels(template), self._hash_label: hashed},
            "ownerReferences": [owner_reference(owner, self._owner_resource)],
        }
        if objects.annotations(owner):
            metadata["annotations"] = dict(objects.annotations(owner))
        return {
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": metadata,
            "data": patch_of(template),
            "revision": revision,
        }

    async def truncate(self, others: Iterable[Object], live: set[str], limit: int) -> None:
        """Deletes the oldest of those that are not live (by name), until ``limit`` of them are left."""
        idle = [r for r in ordered(others) if objects.name(r) not in live]
        for revision in idle[: max(0, len(idle) - limit)]:
            try:
                await self._api.delete(
                    CONTROLLER_REVISIONS, objects.namespace(revision), objects.name(revision), DeleteOptions(uid=objects.uid(revision))
                )
            except errors.StatusError as error:
                if not errors.is_not_found(error):
                    raise
