"""The groups ``storage.k8s.io`` and ``storagemigration.k8s.io``."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

_GROUP = "storage.k8s.io"

RESOURCES: tuple[ResourceInfo, ...] = (
    resource(_GROUP, "v1", "csidrivers", "CSIDriver", namespaced=False),
    resource(_GROUP, "v1", "csinodes", "CSINode", namespaced=False),
    resource(_GROUP, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    # a beta from before betas were off by default
    resource(_GROUP, "v1beta1", "csistoragecapacities", "CSIStorageCapacity", storage_version="v1", until=26),
    resource(_GROUP, "v1", "storageclasses", "StorageClass", namespaced=False, short_names=("sc",)),
    resource(_GROUP, "v1", "volumeattachments", "VolumeAttachment", namespaced=False, status=True),
    resource(_GROUP, "v1", "volumeattributesclasses", "VolumeAttributesClass", namespaced=False, short_names=("vac",), since=34),
    resource(
        "storagemigration.k8s.io", "v1", "storageversionmigrations", "StorageVersionMigration", namespaced=False, status=True, since=37
    ),
)
