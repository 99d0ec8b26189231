"""Which volume suits a claim, and what both say once they are bound. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apiserver.machinery import objects, quantity
from apiserver.machinery.objects import Object
from controllers.client.resources import PERSISTENT_VOLUME_CLAIMS
from controllers.lib import selectors
from controllers.lib.node_matching import matches_term

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def class_of(obj: Object) -> str:
    """Of a claim or a volume; "" is a class like others: that of volumes made by hand."""
    return objects.annotations(obj).get(CLASS_ANNOTATION) or str(objects.get(obj, "spec", "storageClassName", default=""))


def claim_ref(volume: Object) -> Object | None:
    found: Object | None = objects.get(volume, "spec", "claimRef")
    return found


def refers_to(volume: Object, claim: Object) -> bool:
    """The volume is kept for this claim, by uid or, where a user reserved it, by name alone."""
    reference = claim_ref(volume)
    if reference is None:
        return False
    named = (reference.get("namespace"), reference.get("name")) == (objects.namespace(claim), objects.name(claim))
    return named and reference.get("uid") in (None, "", objects.uid(claim))


def is_bound(claim: Object) -> bool:
    return BIND_COMPLETED in objects.annotations(claim)


def suits(volume: Object, claim: Object) -> bool:
    """Free or reserved for the claim, and all that it asks for."""
    spec, wanted = volume.get("spec") or {}, claim.get("spec") or {}
    if objects.is_being_deleted(volume) or (claim_ref(volume) is not None and not refers_to(volume, claim)):
        return False
    if class_of(volume) != class_of(claim) or (spec.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
        return False
    if (spec.get("volumeAttributesClassName") or "") != (wanted.get("volumeAttributesClassName") or ""):
        return False
    if not set(wanted.get("accessModes") or []) <= set(spec.get("accessModes") or []):
        return False
    if wanted.get("selector") is not None and not selectors.matches(wanted["selector"], objects.labels(volume)):
        return False
    return _capacity(volume) >= quantity.of_json(objects.get(wanted, "resources", "requests", "storage", default="0"))


def find(claim: Object, volumes: Iterable[Object], node: Object | None = None) -> Object | None:
    """The smallest that suits; one that is reserved for the claim before all others. ``node``: that it has to be reachable from."""
    fitting = [v for v in volumes if suits(v, claim) and (node is None or is_reachable(v, node))]
    return min(fitting, key=lambda v: (claim_ref(v) is None, _capacity(v), objects.name(v)), default=None)


def is_reachable(volume: Object, node: Object) -> bool:
    required = objects.get(volume, "spec", "nodeAffinity", "required")
    return required is None or any(matches_term(term, node) for term in required.get("nodeSelectorTerms") or [])


def _capacity(volume: Object) -> quantity.Quantity:
    return quantity.of_json(objects.get(volume, "spec", "capacity", "storage", default="0"))


def bound_volume(volume: Object, claim: Object) -> Object:
    """The volume with the claim's reference; the same object where it has it."""
    current = claim_ref(volume)
    if current is not None and current.get("uid") == objects.uid(claim):
        return volume
    reference = {
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "namespace": objects.namespace(claim),
        "name": objects.name(claim),
        "uid": objects.uid(claim),
        "resourceVersion": objects.resource_version(claim),
    }
    out = {**volume, "spec": {**volume["spec"], "claimRef": reference}}
    return out if current is not None else _annotated(out, BOUND_BY_CONTROLLER)


def bound_claim(claim: Object, volume: Object) -> Object:
    """The claim with the volume's name; the same object where it is bound."""
    out = claim
    if objects.get(claim, "spec", "volumeName", default="") != objects.name(volume):
        out = _annotated({**claim, "spec": {**claim["spec"], "volumeName": objects.name(volume)}}, BOUND_BY_CONTROLLER)
    return out if is_bound(out) else _annotated(out, BIND_COMPLETED)


def unbound_volume(volume: Object) -> Object:
    """The volume without what this controller wrote of a claim that took another volume."""
    spec = {k: v for k, v in volume["spec"].items() if k != "claimRef"}
    annotations = {k: v for k, v in objects.annotations(volume).items() if k != BOUND_BY_CONTROLLER}
    return {**volume, "metadata": {**volume["metadata"], "annotations": annotations}, "spec": spec}


def _annotated(obj: Object, name: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**objects.annotations(obj), name: "yes"}}}


def claim_status(claim: Object, volume: Object | None) -> Object:
    """Bound to that volume; None: the volume it was bound to is lost."""
    status = claim.get("status") or {}
    if volume is None:
        return {"phase": "Lost", **{k: v for k, v in status.items() if k not in ("phase", "accessModes", "capacity")}}
    out = {**status, "phase": "Bound", "accessModes": list(objects.get(volume, "spec", "accessModes", default=[]))}
    if status.get("phase") != "Bound":
        out["capacity"] = dict(objects.get(volume, "spec", "capacity", default={}))  # later on resizing tells it
    return out


@dataclass(frozen=True, slots=True)
class VolumePhase:
    phase: str
    reason: str = ""
    message: str = ""


def volume_phase(volume: Object, claim: Object | None) -> VolumePhase:
    """``claim``: that of the volume's reference, if it is still there."""
    reference = claim_ref(volume)
    if reference is None or not reference.get("uid"):
        return VolumePhase("Available")
    if claim is not None and objects.uid(claim) == reference["uid"]:
        taken = objects.get(claim, "spec", "volumeName", default="")
        return VolumePhase("Bound") if taken == objects.name(volume) else VolumePhase("Available")
    if objects.get(volume, "spec", "persistentVolumeReclaimPolicy", default="Retain") == "Retain":
        return VolumePhase("Released")
    if PROVISIONED_BY in objects.annotations(volume):
        return VolumePhase("Released")  # its provisioner deletes it
    return VolumePhase(
        "Failed", "VolumeFailedDelete", f'error getting deleter volume plugin for volume "{objects.name(volume)}": no volume plugin matched'
    )


def volume_status(volume: Object, found: VolumePhase, stamp: str) -> Object:
    status = volume.get("status") or {}
    out = {k: v for k, v in status.items() if k not in ("reason", "message")}
    out["phase"] = found.phase
    if found.reason:
        out |= {"reason": found.reason, "message": found.message}
    if status.get("phase") != found.phase:
        out["lastPhaseTransitionTime"] = stamp
    return out
