"""What the system itself sets in ``metadata`` before a create and an update, for every kind alike (apiserver ``registry/rest``,
``BeforeCreate`` and ``BeforeUpdate``). Objects are changed in place."""

from __future__ import annotations

import random
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.objects import Object
from apiserver.registry.strategy import Strategy

#: A generated name that is taken is made again so often (kube-apiserver's number).
GENERATE_NAME_ATTEMPTS = 8


def wipe(metadata: dict[str, Any]) -> None:
    """What a client says of the identity and the life of an object to be created does not count; nor does it own these fields."""
    for field in ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        metadata.pop(field, None)


def of_create(obj: Object, *, namespace: str, namespaced: bool, strategy: Strategy, now: str, source: random.Random) -> None:
    """Identity and times are the system's, whatever the client sent; the name is made up from ``generateName`` if there is none."""
    metadata: dict[str, Any] = obj["metadata"]
    metadata["uid"] = names.new_uid(source)
    metadata["creationTimestamp"] = now
    if namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if strategy.has_generation:
        metadata["generation"] = 1
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = names.generate_name(metadata["generateName"], source)


def of_update(new: Object, old: Object) -> None:
    """What an update cannot change keeps its value where the client left it out; the rest of the immutable is refused later."""
    metadata: dict[str, Any] = new["metadata"]
    before: dict[str, Any] = old["metadata"]
    metadata.pop("selfLink", None)
    if not metadata.get("uid"):
        metadata["uid"] = before.get("uid")
    if before.get("creationTimestamp"):
        metadata["creationTimestamp"] = before["creationTimestamp"]
    if before.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = before["deletionTimestamp"]
        if before.get("deletionGracePeriodSeconds") is not None and metadata.get("deletionGracePeriodSeconds") is None:
            metadata["deletionGracePeriodSeconds"] = before["deletionGracePeriodSeconds"]
    keep_generation(metadata, before)


def keep_generation(metadata: dict[str, Any], before: dict[str, Any]) -> None:
    if "generation" in before:
        metadata["generation"] = before["generation"]
    else:
        metadata.pop("generation", None)


def drop_empty_metadata(metadata: dict[str, Any]) -> None:
    """Empty maps and lists are not stored: Go leaves them out."""
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
        if field in metadata and not metadata[field]:
            del metadata[field]
