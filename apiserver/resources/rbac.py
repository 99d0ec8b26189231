"""The group ``rbac.authorization.k8s.io``."""

from __future__ import annotations

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

_GROUP = "rbac.authorization.k8s.io"

RESOURCES: tuple[ResourceInfo, ...] = (
    resource(_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    resource(_GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False),
    resource(_GROUP, "v1", "rolebindings", "RoleBinding"),
    resource(_GROUP, "v1", "roles", "Role"),
)
