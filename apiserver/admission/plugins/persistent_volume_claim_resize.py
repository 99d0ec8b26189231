"""PersistentVolumeClaimResize: a claim grows only if it is bound and its class can do that."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import Plugin, forbidden, new_object
from apiserver.machinery import objects, quantity

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class PersistentVolumeClaimResize(Plugin):
    name = "PersistentVolumeClaimResize"
    operations = frozenset((Operation.UPDATE,))
    resources = frozenset((("", "persistentvolumeclaims"),))

    def __init__(self, getter: ObjectGetter) -> None:
        self._getter = getter

    async def validate(self, attributes: AdmissionAttributes) -> None:
        new, old = new_object(attributes), attributes.old_object or {}
        if _size(new) <= _size(old):
            return
        if objects.get(old, "status", "phase") != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        name = _class_of(new)
        found = self._getter.get("storage.k8s.io", "storageclasses", "", name) if name and name == _class_of(old) else None
        if found is None or not found.get("allowVolumeExpansion"):
            why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
            raise forbidden(attributes, why)


def _size(claim: objects.Object) -> quantity.Quantity:
    return quantity.of_json(objects.get(claim, "spec", "resources", "requests", "storage", default="0"))


def _class_of(claim: objects.Object) -> str:
    return objects.annotations(claim).get(_CLASS_ANNOTATION) or str(objects.get(claim, "spec", "storageClassName", default=""))
