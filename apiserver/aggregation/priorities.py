"""APIServices of what this server serves itself (kube-apiserver ``controlplane/apiserver/aggregator.go``).

Groups are ranked, and versions within a group; clients list resources in this order. Custom resources all have the same rank.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.machinery.objects import Object
from apiserver.resources.table import version_priority

GROUP = "apiregistration.k8s.io"
RESOURCE = "apiservices"
#: says how an APIService is kept: once at each start, or always
MANAGED_LABEL = "kube-aggregator.kubernetes.io/automanaged"
ON_START = "onstart"
ALWAYS = "true"

#: The group of APIServices itself has none, and comes before all others.
FIRST = 20_001
CUSTOM_GROUP = 1000
CUSTOM_VERSION = 100
#: what Kubernetes advises for a new group below all others
UNKNOWN_GROUP = 15_000

GROUP_PRIORITIES = {
    GROUP: FIRST,
    "": 18_000,
    "apps": 17_800,
    "events.k8s.io": 17_750,
    "authentication.k8s.io": 17_700,
    "authorization.k8s.io": 17_600,
    "autoscaling": 17_500,
    "batch": 17_400,
    "certificates.k8s.io": 17_300,
    "networking.k8s.io": 17_200,
    "policy": 17_100,
    "rbac.authorization.k8s.io": 17_000,
    "storage.k8s.io": 16_800,
    "apiextensions.k8s.io": 16_700,
    "admissionregistration.k8s.io": 16_700,
    "scheduling.k8s.io": 16_600,
    "coordination.k8s.io": 16_500,
    "node.k8s.io": 16_300,
    "discovery.k8s.io": 16_200,
    "flowcontrol.apiserver.k8s.io": 16_100,
    "internal.apiserver.k8s.io": 16_000,
    "resource.k8s.io": 15_900,
    "storagemigration.k8s.io": 15_800,
    "lifecycle.k8s.io": 15_700,
}
#: where a version's rank is not that of its stability
_VERSIONS = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("events.k8s.io", "v1beta1"): 5,
    ("admissionregistration.k8s.io", "v1beta1"): 12,
    ("admissionregistration.k8s.io", "v1alpha1"): 9,
    ("coordination.k8s.io", "v1beta1"): 13,
    ("coordination.k8s.io", "v1alpha2"): 12,
    ("discovery.k8s.io", "v1beta1"): 12,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("flowcontrol.apiserver.k8s.io", "v1beta3"): 18,
    ("flowcontrol.apiserver.k8s.io", "v1beta2"): 15,
    ("flowcontrol.apiserver.k8s.io", "v1beta1"): 12,
    ("resource.k8s.io", "v1"): 20,
    ("resource.k8s.io", "v1beta2"): 15,
    ("internal.apiserver.k8s.io", "v1alpha1"): 9,
}
_STABLE, _BETA, _ALPHA = 15, 9, 1


def name_of(group: str, version: str) -> str:
    return f"{version}.{group}"


def version_rank(group: str, version: str) -> int:
    found = _VERSIONS.get((group, version))
    if found is not None:
        return found
    return _ALPHA if "alpha" in version else _BETA if "beta" in version else _STABLE


def builtin(versions: Iterable[tuple[str, str]]) -> dict[str, Object]:
    """The APIServices of built-in groups and versions, by name; the aggregator's own group has none."""
    found = {}
    for group, version in versions:
        if group != GROUP:
            rank = GROUP_PRIORITIES.get(group, UNKNOWN_GROUP)
            found[name_of(group, version)] = _local(group, version, rank, version_rank(group, version), ON_START)
    return found


def of_definition(group: str, version: str) -> Object:
    """The APIService of a group and version in which there are custom resources."""
    return _local(group, version, CUSTOM_GROUP, CUSTOM_VERSION, ALWAYS)


def local_rank(group: str, version: str, *, is_builtin: bool) -> tuple[int, int]:
    """Of a group and of a version that this server serves itself."""
    if not is_builtin:
        return CUSTOM_GROUP, CUSTOM_VERSION
    return GROUP_PRIORITIES.get(group, UNKNOWN_GROUP), version_rank(group, version)


def version_order(version: str, rank: int) -> tuple[int, tuple[int, int, int, int, str]]:
    """A sort key of versions in a group, the preferred one first."""
    return -rank, version_priority(version)


def _local(group: str, version: str, group_rank: int, rank: int, managed: str) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "APIService",
        "metadata": {"name": name_of(group, version), "labels": {MANAGED_LABEL: managed}},
        "spec": {**({"group": group} if group else {}), "version": version, "groupPriorityMinimum": group_rank, "versionPriority": rank},
    }
