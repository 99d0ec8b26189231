"""Columns of volumes, claims, storage classes and what CSI drivers say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from apiserver.machinery.objects import Object, get, metadata
from apiserver.resources import cell_texts as texts
from apiserver.resources.columns import AGE, NAME, Dated, Printer, age, column, name, printer

#: where the class of a volume stood before it had a field
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_IS_DEFAULT_ATTRIBUTES_CLASS = "volumeattributesclass.alpha.kubernetes.io/is-default-class"


def _annotations(obj: Object) -> dict[str, str]:
    return metadata(obj).get("annotations") or {}


def _phase(obj: Object) -> str:
    return "Terminating" if metadata(obj).get("deletionTimestamp") else str(get(obj, "status", "phase", default=""))


def _class(obj: Object) -> str:
    return str(_annotations(obj).get(_BETA_CLASS, get(obj, "spec", "storageClassName", default="")))


def _volume(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    claim = spec.get("claimRef")
    return [
        name(obj),
        get(spec, "capacity", "storage", default="0"),
        texts.access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or texts.UNSET,
        get(obj, "status", "reason", default=""),
        age(obj, now),
        spec.get("volumeMode") or texts.UNSET,
    ]


def _claim(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    return [
        name(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        get(status, "capacity", "storage", default="0") if bound else "",
        texts.access_modes(status.get("accessModes")) if bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName") or texts.UNSET,
        age(obj, now),
        spec.get("volumeMode") or texts.UNSET,
    ]


def _storage_class(obj: Object, now: float) -> list[Any]:
    default = any(_annotations(obj).get(key) == "true" for key in _IS_DEFAULT)
    return [
        name(obj) + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _volume_attributes_class(obj: Object, now: float) -> list[Any]:
    default = _annotations(obj).get(_IS_DEFAULT_ATTRIBUTES_CLASS) == "true"
    return [name(obj) + (" (default)" if default else ""), obj.get("driverName", ""), age(obj, now)]


def _volume_attachment(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name(obj),
        spec.get("attacher", ""),
        get(spec, "source", "persistentVolumeName", default=""),
        spec.get("nodeName", ""),
        bool(get(obj, "status", "attached")),
        age(obj, now),
    ]


def _csi_node(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(get(obj, "spec", "drivers", default=[])), age(obj, now)]


def _csi_driver(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    tokens = spec.get("tokenRequests")
    return [
        name(obj),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        texts.UNSET if tokens is None else ",".join(str(t.get("audience", "")) for t in tokens),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or texts.NONE,
        age(obj, now),
    ]


def _csi_storage_capacity(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("storageClassName", ""), obj.get("capacity") or texts.UNSET]


def _migration(obj: Object, now: float) -> list[Any]:
    resource = get(obj, "spec", "resource", default={})
    qualified = ".".join(str(part) for part in (resource.get("resource"), resource.get("group")) if part)
    return [name(obj), qualified]


_ATTRIBUTES_CLASS = {
    what: Dated(column=column("VolumeAttributesClass", description=f"VolumeAttributesClass of the {what}"), since=29)
    for what in ("pv", "pvc")
}

PRINTERS: dict[tuple[str, str], Callable[[int], Printer]] = {
    ("", "PersistentVolume"): printer(
        NAME,
        column("Capacity", documented="core.v1.PersistentVolumeSpec.capacity"),
        column("Access Modes", documented="core.v1.PersistentVolumeSpec.accessModes"),
        column("Reclaim Policy", documented="core.v1.PersistentVolumeSpec.persistentVolumeReclaimPolicy"),
        column("Status", documented="core.v1.PersistentVolumeStatus.phase"),
        column("Claim", documented="core.v1.PersistentVolumeSpec.claimRef"),
        column("StorageClass", description="StorageClass of the pv"),
        _ATTRIBUTES_CLASS["pv"],
        column("Reason", documented="core.v1.PersistentVolumeStatus.reason"),
        AGE,
        column("VolumeMode", priority=1, documented="core.v1.PersistentVolumeSpec.volumeMode"),
        cells=_volume,
    ),
    ("", "PersistentVolumeClaim"): printer(
        NAME,
        column("Status", documented="core.v1.PersistentVolumeClaimStatus.phase"),
        column("Volume", documented="core.v1.PersistentVolumeClaimSpec.volumeName"),
        column("Capacity", documented="core.v1.PersistentVolumeClaimStatus.capacity"),
        column("Access Modes", documented="core.v1.PersistentVolumeClaimStatus.accessModes"),
        column("StorageClass", description="StorageClass of the pvc"),
        _ATTRIBUTES_CLASS["pvc"],
        AGE,
        column("VolumeMode", priority=1, documented="core.v1.PersistentVolumeClaimSpec.volumeMode"),
        cells=_claim,
    ),
    ("storage.k8s.io", "StorageClass"): printer(
        NAME,
        column("Provisioner", documented="storage.v1.StorageClass.provisioner"),
        column("ReclaimPolicy", documented="storage.v1.StorageClass.reclaimPolicy"),
        column("VolumeBindingMode", documented="storage.v1.StorageClass.volumeBindingMode"),
        column("AllowVolumeExpansion", documented="storage.v1.StorageClass.allowVolumeExpansion"),
        AGE,
        cells=_storage_class,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): printer(
        NAME, column("DriverName", documented="storage.v1.VolumeAttributesClass.driverName"), AGE, cells=_volume_attributes_class
    ),
    ("storage.k8s.io", "VolumeAttachment"): printer(
        NAME,
        # so it is, although it names no object of the kind
        replace(column("Attacher", documented="storage.v1.VolumeAttachmentSpec.attacher"), format="name"),
        column("PV", documented="storage.v1.VolumeAttachmentSource.persistentVolumeName"),
        column("Node", documented="storage.v1.VolumeAttachmentSpec.nodeName"),
        column("Attached", "boolean", documented="storage.v1.VolumeAttachmentStatus.attached"),
        AGE,
        cells=_volume_attachment,
    ),
    ("storage.k8s.io", "CSINode"): printer(
        NAME,
        column("Drivers", "integer", description="Drivers indicates the number of CSI drivers registered on the node"),
        AGE,
        cells=_csi_node,
    ),
    ("storage.k8s.io", "CSIDriver"): printer(
        NAME,
        column("AttachRequired", "boolean", documented="storage.v1.CSIDriverSpec.attachRequired"),
        column("PodInfoOnMount", "boolean", documented="storage.v1.CSIDriverSpec.podInfoOnMount"),
        column("StorageCapacity", "boolean", documented="storage.v1.CSIDriverSpec.storageCapacity"),
        column("TokenRequests", documented="storage.v1.CSIDriverSpec.tokenRequests"),
        column("RequiresRepublish", "boolean", documented="storage.v1.CSIDriverSpec.requiresRepublish"),
        column("Modes", documented="storage.v1.CSIDriverSpec.volumeLifecycleModes"),
        AGE,
        cells=_csi_driver,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): printer(
        NAME,
        column("StorageClassName", documented="storage.v1.CSIStorageCapacity.storageClassName"),
        column("Capacity", documented="storage.v1.CSIStorageCapacity.capacity"),
        cells=_csi_storage_capacity,
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): printer(
        replace(NAME, format=""), column("Resource", description="Fully qualified resource to migrate"), cells=_migration
    ),
}
