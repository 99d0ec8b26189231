"""Scripts made by hand: one group of rules each."""

from __future__ import annotations

from tests.differential_writes import scripts_of_kinds, scripts_of_objects, scripts_of_patches
from tests.differential_writes.client import Step

ALL: dict[str, list[Step]] = {
    "generation": scripts_of_kinds.GENERATIONS,
    "create": scripts_of_objects.CREATE,
    "update": scripts_of_objects.UPDATE,
    "finalizers": scripts_of_objects.FINALIZERS,
    "delete": scripts_of_objects.DELETE,
    "collection": scripts_of_objects.COLLECTION,
    "grace": scripts_of_objects.PODS_GRACE,
    "json-patch": scripts_of_patches.JSON_PATCHES,
    "merge-patch": scripts_of_patches.MERGE_PATCHES,
    "strategic": scripts_of_patches.STRATEGIC_PATCHES,
    "apply": scripts_of_patches.APPLY_STEPS,
    "scale": scripts_of_patches.SCALE,
    "pods": scripts_of_kinds.POD_SUBRESOURCES,
    "validation": scripts_of_kinds.FIELD_VALIDATION_FREE,
}
