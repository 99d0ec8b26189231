"""Who controls what: adoption of matching orphans and release of what no longer matches (``controller_ref_manager.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.interface import Api, PatchType
from controllers.client.resources import Resource

log = logging.getLogger(__name__)


def owner_reference(owner: Object, resource: Resource) -> Object:
    """The reference that a controller puts on what it makes."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": objects.name(owner),
        "uid": objects.uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """``mine`` are controlled already and match; ``adopt`` match and have no controller; ``release`` are controlled and do not match."""

    mine: tuple[Object, ...]
    adopt: tuple[Object, ...]
    release: tuple[Object, ...]


def plan_claim(
    owner: Object, candidates: Iterable[Object], matches: Callable[[Object], bool], may_adopt: Callable[[Object], bool] = lambda _: True
) -> ClaimPlan:
    """Pure. An owner that is being deleted neither adopts nor releases; an orphan that is being deleted is not adopted."""
    mine: list[Object] = []
    adopt: list[Object] = []
    release: list[Object] = []
    owner_going = objects.is_being_deleted(owner)
    for candidate in candidates:
        controller = objects.controller_of(candidate)
        if controller is not None:
            if controller.get("uid") != objects.uid(owner):
                continue
            if matches(candidate):
                mine.append(candidate)
            elif not owner_going:
                release.append(candidate)
        elif not owner_going and not objects.is_being_deleted(candidate) and matches(candidate) and may_adopt(candidate):
            adopt.append(candidate)
    return ClaimPlan(tuple(mine), tuple(adopt), tuple(release))


async def claim(
    api: Api,
    owner: Object,
    owner_resource: Resource,
    resource: Resource,
    candidates: Iterable[Object],
    matches: Callable[[Object], bool],
    may_adopt: Callable[[Object], bool] = lambda _: True,
) -> list[Object]:
    """Carries the plan out and returns what is controlled now, in the order of the candidates' keys.

    Before the first adoption the owner is read live: one that was deleted or replaced behind our cache's back adopts nothing.

    Raises:
        StatusError, ConnectionFailed: an adoption or release failed other than by the object being gone or changed hands.
    """
    plan = plan_claim(owner, candidates, matches, may_adopt)
    claimed = list(plan.mine)
    if plan.adopt and await _still_there(api, owner, owner_resource):
        adopted = await asyncio.gather(*(_adopt(api, owner, owner_resource, resource, one) for one in plan.adopt))
        claimed += [one for one in adopted if one is not None]
    await asyncio.gather(*(_release(api, owner, resource, one) for one in plan.release))
    return sorted(claimed, key=lambda one: (objects.namespace(one), objects.name(one)))


async def _still_there(api: Api, owner: Object, owner_resource: Resource) -> bool:
    try:
        fresh = await api.get(owner_resource, objects.namespace(owner), objects.name(owner))
    except errors.StatusError as error:
        if errors.is_not_found(error):
            return False
        raise
    return objects.uid(fresh) == objects.uid(owner) and not objects.is_being_deleted(fresh)


async def _adopt(api: Api, owner: Object, owner_resource: Resource, resource: Resource, orphan: Object) -> Object | None:
    # The uid in the patch makes it fail on another object of that name.
    patch = {"metadata": {"uid": objects.uid(orphan), "ownerReferences": [owner_reference(owner, owner_resource)]}}
    return await _patch_or_gone(api, resource, orphan, patch)


async def _release(api: Api, owner: Object, resource: Resource, dependent: Object) -> None:
    log.info("releasing %s %s/%s: labels no longer match", resource.kind, objects.namespace(dependent), objects.name(dependent))
    patch = {"metadata": {"uid": objects.uid(dependent), "ownerReferences": [{"$patch": "delete", "uid": objects.uid(owner)}]}}
    await _patch_or_gone(api, resource, dependent, patch)


async def _patch_or_gone(api: Api, resource: Resource, obj: Object, patch: Object) -> Object | None:
    try:
        return await api.patch(resource, objects.namespace(obj), objects.name(obj), patch, PatchType.STRATEGIC)
    except errors.StatusError as error:
        if errors.is_not_found(error) or errors.is_invalid(error) or errors.is_conflict(error):
            return None  # gone, replaced, or already another's: its next event tells
        raise
