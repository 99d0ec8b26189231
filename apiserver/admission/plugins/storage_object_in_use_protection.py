"""StorageObjectInUseProtection: claims and volumes get the finalizer that keeps them while they are used."""

from __future__ import annotations

from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, new_object
from apiserver.machinery import objects

_FINALIZERS = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    name = "StorageObjectInUseProtection"
    operations = frozenset((Operation.CREATE,))
    resources = frozenset((("", "persistentvolumeclaims"), ("", "persistentvolumes"), ("storage.k8s.io", "volumeattributesclasses")))

    async def admit(self, attributes: AdmissionAttributes) -> None:
        obj = new_object(attributes)
        finalizer = _FINALIZERS[attributes.info.resource]
        if finalizer not in objects.finalizers(obj):
            obj.setdefault("metadata", {})["finalizers"] = [*objects.finalizers(obj), finalizer]
