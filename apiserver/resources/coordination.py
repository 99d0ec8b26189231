"""The group ``coordination.k8s.io``."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

RESOURCES: tuple[ResourceInfo, ...] = (resource("coordination.k8s.io", "v1", "leases", "Lease"),)
