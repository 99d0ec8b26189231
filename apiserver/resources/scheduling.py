"""The groups ``scheduling.k8s.io`` and ``node.k8s.io``."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

RESOURCES: tuple[ResourceInfo, ...] = (
    resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, short_names=("pc",)),
    resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
)
