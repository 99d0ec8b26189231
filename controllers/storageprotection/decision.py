"""Who uses a claim or a volume. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"

BY_CLAIM = "claim"


def claim_names(pod: Object) -> list[str]:
    """The claims that a pod names; an ephemeral volume's claim is called ``<pod>-<volume>``."""
    names: list[str] = []
    for volume in objects.get(pod, "spec", "volumes", default=[]):
        if volume.get("persistentVolumeClaim"):
            names.append(str(volume["persistentVolumeClaim"].get("claimName")))
        elif volume.get("ephemeral") is not None:
            names.append(f"{objects.name(pod)}-{volume.get('name')}")
    return names


def index_by_claim(pod: Object) -> list[str]:
    """Under the keys of its claims."""
    return [f"{objects.namespace(pod)}/{name}" for name in claim_names(pod)]


def is_claim_used(claim: Object, pods: Iterable[Object]) -> bool:
    """By a pod that has a node. One without will not start there: nodes refuse pods whose claim is on its way out."""
    return any(pod_facts.node_name(pod) and objects.name(claim) in claim_names(pod) for pod in pods)


def may_go(obj: Object, finalizer: str, *, used: bool) -> bool:
    return objects.is_being_deleted(obj) and finalizer in objects.finalizers(obj) and not used


def lacks(obj: Object, finalizer: str) -> bool:
    """An object that came in without the finalizer, as where the admission plugin is off."""
    return not objects.is_being_deleted(obj) and finalizer not in objects.finalizers(obj)


def with_finalizer(obj: Object, finalizer: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "finalizers": [*objects.finalizers(obj), finalizer]}}


def without_finalizer(obj: Object, finalizer: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "finalizers": [f for f in objects.finalizers(obj) if f != finalizer]}}


def is_volume_used(volume: Object) -> bool:
    return bool(objects.get(volume, "status", "phase") == "Bound")
