"""Who owns a set's claims, by ``persistentVolumeClaimRetentionPolicy``: the garbage collector deletes them with their owner. Pure.

| whenDeleted | whenScaled | owner |
|---|---|---|
| Retain | Retain | none: claims outlive pods and set (the default) |
| Delete | Retain | the set |
| Retain | Delete | the pod, once its ordinal is no longer wanted |
| Delete | Delete | the set; the pod instead, once its ordinal is no longer wanted |

Other owners, whom a user may have added, stay.
"""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import PODS, STATEFUL_SETS, Resource


def _reference(owner: Object, resource: Resource) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": objects.name(owner), "uid": objects.uid(owner)}


def policy(stateful_set: Object) -> tuple[bool, bool]:
    """(claims go with the set, claims go when the set is scaled down)."""
    found = objects.get(stateful_set, "spec", "persistentVolumeClaimRetentionPolicy", default={})
    return found.get("whenDeleted") == "Delete", found.get("whenScaled") == "Delete"


def with_owners(stateful_set: Object, pod: Object | None, claim: Object, *, condemned: bool) -> Object:
    """The claim as it is to be; the same object where nothing changes. ``pod`` None: it is not made yet."""
    when_deleted, when_scaled = policy(stateful_set)
    wanted: list[Object] = []
    if when_scaled and condemned and pod is not None:
        wanted.append(_reference(pod, PODS))
    elif when_deleted:
        wanted.append(_reference(stateful_set, STATEFUL_SETS))
    current = objects.owner_references(claim)
    kept = [o for o in current if not _is_managed(stateful_set, pod, o)]
    ours = [o for o in current if _is_managed(stateful_set, pod, o)]
    if sorted(o["uid"] for o in ours) == sorted(o["uid"] for o in wanted):
        return claim
    metadata = {k: v for k, v in claim["metadata"].items() if k != "ownerReferences"}
    if kept or wanted:
        metadata["ownerReferences"] = [*kept, *wanted]
    return {**claim, "metadata": metadata}


def _is_managed(stateful_set: Object, pod: Object | None, reference: Object) -> bool:
    """The set's reference, or one of the pod's, also of an earlier pod of that name."""
    if reference.get("uid") == objects.uid(stateful_set):
        return True
    return pod is not None and reference.get("kind") == PODS.kind and reference.get("name") == objects.name(pod)
