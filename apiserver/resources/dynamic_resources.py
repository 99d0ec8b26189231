"""The group ``resource.k8s.io``: dynamic resource allocation, stable since 1.34."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

_GROUP = "resource.k8s.io"

RESOURCES: tuple[ResourceInfo, ...] = (
    resource(_GROUP, "v1", "deviceclasses", "DeviceClass", namespaced=False, since=34),
    resource(_GROUP, "v1", "devicetaintrules", "DeviceTaintRule", namespaced=False, status=True, since=37),
    resource(_GROUP, "v1", "resourceclaims", "ResourceClaim", status=True, since=34),
    resource(_GROUP, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", since=34),
    resource(_GROUP, "v1", "resourceslices", "ResourceSlice", namespaced=False, since=34),
)
