"""Volumes and claims of the core group, and the groups storage.k8s.io and storagemigration.k8s.io."""

from __future__ import annotations

from apiserver.machinery import release
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.defaults import pods as pod_defaults
from apiserver.registry.strategies.parts import keep
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import persistent_volume_claims, persistent_volumes, storage, storage_migration

_PENDING = "Pending"


def _tells_transitions() -> bool:
    """PersistentVolumeLastPhaseTransitionTime is on by default since 1.29 (kubernetes 120627)."""
    return release.since(29)


class PersistentVolumeStrategy(Strategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        pod_defaults.round_up_to_milli(spec.get("capacity"))
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        for source, fill in pod_defaults.PERSISTENT_FILLERS.items():
            if spec.get(source) is not None:
                fill(spec[source])
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = _PENDING

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {"phase": _PENDING}
        if _tells_transitions():
            obj["status"]["lastPhaseTransitionTime"] = context.now

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return persistent_volumes.create(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return persistent_volumes.update(new, old)

    def prepare_for_status_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        super().prepare_for_status_update(context, new, old)
        status, had = new.setdefault("status", {}), old.get("status") or {}
        if not _tells_transitions():
            return
        if status.get("phase") != had.get("phase") and status.get("lastPhaseTransitionTime") == had.get("lastPhaseTransitionTime"):
            status["lastPhaseTransitionTime"] = context.now


class PersistentVolumeClaimStrategy(Strategy):
    def default(self, obj: Object) -> None:
        pod_defaults.default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = _PENDING

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {"phase": _PENDING}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return persistent_volume_claims.create(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return persistent_volume_claims.update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return persistent_volume_claims.status_update(new, old)


class StorageClassStrategy(Strategy):
    def default(self, obj: Object) -> None:
        if obj.get("reclaimPolicy") is None:
            obj["reclaimPolicy"] = "Delete"
        if obj.get("volumeBindingMode") is None:
            obj["volumeBindingMode"] = "Immediate"

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return storage.storage_class(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return [*storage.storage_class(new), *storage.storage_class_update(new, old)]


class VolumeAttributesClassStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return storage.volume_attributes_class(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return [*storage.volume_attributes_class(new), *storage.volume_attributes_class_update(new, old)]


class VolumeAttachmentStrategy(Strategy):
    def default(self, obj: Object) -> None:
        if (obj.get("status") or {}).get("attached") is None:
            obj["status"] = {"attached": False, **(obj.get("status") or {})}

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {"attached": False}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return storage.volume_attachment_create(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return storage.volume_attachment_update(new, old)


class CsiNodeStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return storage.csi_node(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return storage.csi_node_update(new, old)


class CsiDriverStrategy(Strategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        defaults = {
            "attachRequired": True,
            "podInfoOnMount": False,
            "storageCapacity": False,
            "fsGroupPolicy": "ReadWriteOnceWithFSType",
            "requiresRepublish": False,
            "seLinuxMount": False,
        }
        for field, value in defaults.items():
            if spec.get(field) is None:
                spec[field] = value
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return storage.csi_driver(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return storage.csi_driver_update(new, old)


class CsiStorageCapacityStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return storage.csi_storage_capacity(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return storage.csi_storage_capacity_update(new, old)


class StorageVersionMigrationStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return storage_migration.migration(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return storage_migration.update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return storage_migration.status_update(new, old)


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("", "PersistentVolume"): PersistentVolumeStrategy,
    ("", "PersistentVolumeClaim"): PersistentVolumeClaimStrategy,
    ("storage.k8s.io", "StorageClass"): StorageClassStrategy,
    ("storage.k8s.io", "VolumeAttributesClass"): VolumeAttributesClassStrategy,
    ("storage.k8s.io", "VolumeAttachment"): VolumeAttachmentStrategy,
    ("storage.k8s.io", "CSINode"): CsiNodeStrategy,
    ("storage.k8s.io", "CSIDriver"): CsiDriverStrategy,
    ("storage.k8s.io", "CSIStorageCapacity"): CsiStorageCapacityStrategy,
    ("storagemigration.k8s.io", "StorageVersionMigration"): StorageVersionMigrationStrategy,
}
