"""Which ReplicaSet is the new one, its annotations and revision, what it is made of, and which old ones may go. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import DEPLOYMENTS
from controllers.deployment import facts, rolling
from controllers.lib.controller_ref import owner_reference
from controllers.lib.template_hash import equal_ignoring, template_hash

#: of the annotation that lists earlier revisions of a ReplicaSet that became the new one again
REVISION_HISTORY_LENGTH_MAX = 2000


@dataclass(frozen=True, slots=True)
class Sets:
    """``old`` are all but ``new``, oldest first."""

    new: Object | None
    old: tuple[Object, ...]

    @property
    def all(self) -> tuple[Object, ...]:
        return self.old if self.new is None else (*self.old, self.new)

    def with_updated(self, updated: Object) -> Sets:
        """The same with one set as it is now."""
        uid = objects.uid(updated)
        new = updated if self.new is not None and objects.uid(self.new) == uid else self.new
        return Sets(new, tuple(updated if objects.uid(s) == uid else s for s in self.old))


def split(deployment: Object, sets: Sequence[Object]) -> Sets:
    """The oldest set with the Deployment's template is the new one (more than one may have it after the hashing has changed)."""
    ordered = facts.by_creation(sets)
    template = deployment["spec"]["template"]
    new = next((s for s in ordered if equal_ignoring(s["spec"]["template"], template, facts.HASH_LABEL)), None)
    return Sets(new, tuple(s for s in ordered if s is not new))


def next_revision(sets: Sets) -> int:
    return max((facts.revision(s) for s in sets.old), default=0) + 1


def new_replica_set(deployment: Object, sets: Sets) -> Object:
    """The ReplicaSet of the Deployment's template, not yet there, with as many replicas as the strategy allows at once."""
    template = objects.deep_copy(deployment["spec"]["template"])
    hashed = template_hash(template, objects.get(deployment, "status", "collisionCount"))
    labels = {**objects.labels(template), facts.HASH_LABEL: hashed}
    template.setdefault("metadata", {})["labels"] = labels
    selector = objects.deep_copy(deployment["spec"]["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), facts.HASH_LABEL: hashed}
    spec: Object = {"replicas": 0, "selector": selector, "template": template}
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    out: Object = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{objects.name(deployment)}-{hashed}",
            "namespace": objects.namespace(deployment),
            "labels": dict(labels),
            "annotations": {},
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": spec,
    }
    spec["replicas"] = rolling.new_set_replicas(deployment, sets.all, out)
    annotations = annotations_of_new(deployment, out, next_revision(sets))
    out["metadata"]["annotations"] = {**annotations, **replicas_annotations(deployment)}
    return out


def replicas_annotations(deployment: Object) -> dict[str, str]:
    """What a set was scaled for; proportional scaling reads it."""
    wanted = facts.replicas(deployment)
    return {facts.DESIRED_REPLICAS: str(wanted), facts.MAX_REPLICAS: str(wanted + facts.max_surge(deployment))}


def annotations_of_new(deployment: Object, new: Object, revision: int) -> dict[str, str]:
    """The new set's annotations: the Deployment's, and the revision where that is higher than the one it has; the one it had is kept in
    the history."""
    out = dict(objects.annotations(new))
    for name, value in objects.annotations(deployment).items():
        if name not in facts.NOT_COPIED:
            out[name] = value
    old_revision = facts.revision(new)
    if old_revision < revision:
        out[facts.REVISION] = str(revision)
        if old_revision:
            earlier = [r for r in out.get(facts.REVISION_HISTORY, "").split(",") if r]
            history = [*earlier, str(old_revision)]
            while len(",".join(history)) > REVISION_HISTORY_LENGTH_MAX:
                history.pop(0)
            out[facts.REVISION_HISTORY] = ",".join(history)
    return out


def updated_new(deployment: Object, sets: Sets) -> Object | None:
    """The new set as it must be written, or None where nothing about it changes."""
    assert sets.new is not None
    annotations = annotations_of_new(deployment, sets.new, next_revision(sets))
    minimum = int(deployment["spec"].get("minReadySeconds") or 0)
    if annotations == objects.annotations(sets.new) and minimum == int(sets.new["spec"].get("minReadySeconds") or 0):
        return None
    return {
        **sets.new,
        "metadata": {**sets.new["metadata"], "annotations": annotations},
        "spec": {**sets.new["spec"], "minReadySeconds": minimum},
    }


def to_clean_up(deployment: Object, sets: Sets) -> list[Object]:
    """Old sets beyond the history limit that hold no pods, lowest revision first."""
    limit = int(objects.get(deployment, "spec", "revisionHistoryLimit", default=10))
    if limit == facts.UNLIMITED:
        return []
    cleanable = [s for s in sets.old if not objects.is_being_deleted(s)]
    surplus = len(cleanable) - limit
    if surplus <= 0:
        return []
    ordered = sorted(facts.by_creation(cleanable), key=facts.revision)
    return [
        s
        for s in ordered[:surplus]
        if facts.replicas(s) == 0
        and facts.status_count(s, "replicas") == 0
        and int(objects.metadata(s).get("generation") or 0) <= facts.status_count(s, "observedGeneration")
    ]
