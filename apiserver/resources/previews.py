"""Alpha and beta versions that a server serves only when it is told to (``--runtime-config``): since 1.24 new betas are off by default.

Objects are stored in the stable version where a release has one, else in the newest version that is served.
"""

from __future__ import annotations

from typing import Any

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

_CATEGORIES = ("api-extensions",)
_CLUSTER: dict[str, Any] = {"namespaced": False}
_ADMISSION: dict[str, Any] = {"namespaced": False, "categories": _CATEGORIES}
_WITH_STATUS: dict[str, Any] = {"namespaced": False, "status": True}

#: group, kind, plural, facts, and the first and last minor that has each version
_ROWS: tuple[tuple[str, str, str, dict[str, Any], dict[str, tuple[int, int]]], ...] = (
    (
        "admissionregistration.k8s.io", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", _ADMISSION,
        {"v1alpha1": (32, 37), "v1beta1": (34, 37)},
    ),
    (
        "admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", _ADMISSION,
        {"v1alpha1": (32, 37), "v1beta1": (34, 37)},
    ),
    (
        "admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", {**_ADMISSION, "status": True},
        {"v1alpha1": (26, 31), "v1beta1": (28, 33)},
    ),
    (
        "admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", _ADMISSION,
        {"v1alpha1": (26, 31), "v1beta1": (28, 33)},
    ),
    (
        "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", {"namespaced": False, "verbs": ("create",)},
        {"v1alpha1": (26, 31), "v1beta1": (27, 32)},
    ),
    ("certificates.k8s.io", "ClusterTrustBundle", "clustertrustbundles", _CLUSTER, {"v1alpha1": (27, 36), "v1beta1": (33, 37)}),
    (
        "certificates.k8s.io", "PodCertificateRequest", "podcertificaterequests", {"status": True},
        {"v1alpha1": (34, 34), "v1beta1": (35, 37)},
    ),
    (
        "coordination.k8s.io", "LeaseCandidate", "leasecandidates", {},
        {"v1alpha1": (31, 31), "v1alpha2": (32, 37), "v1beta1": (33, 37)},
    ),
    ("internal.apiserver.k8s.io", "StorageVersion", "storageversions", _WITH_STATUS, {"v1alpha1": (25, 37)}),
    ("lifecycle.k8s.io", "Eviction", "evictions", {"status": True}, {"v1alpha1": (37, 37)}),
    ("lifecycle.k8s.io", "EvictionRequest", "evictionrequests", {"status": True}, {"v1alpha1": (37, 37)}),
    ("networking.k8s.io", "ClusterCIDR", "clustercidrs", _CLUSTER, {"v1alpha1": (25, 28)}),
    (
        "networking.k8s.io", "IPAddress", "ipaddresses", {**_CLUSTER, "short_names": ("ip",)},
        {"v1alpha1": (27, 30), "v1beta1": (31, 36)},
    ),
    ("networking.k8s.io", "ServiceCIDR", "servicecidrs", _WITH_STATUS, {"v1alpha1": (29, 30), "v1beta1": (31, 36)}),
    (
        "resource.k8s.io", "DeviceClass", "deviceclasses", _CLUSTER,
        {"v1alpha3": (31, 33), "v1beta1": (32, 37), "v1beta2": (33, 37)},
    ),
    ("resource.k8s.io", "PodScheduling", "podschedulings", {"status": True}, {"v1alpha1": (26, 26)}),
    (
        "resource.k8s.io", "PodSchedulingContext", "podschedulingcontexts", {"status": True},
        {"v1alpha2": (27, 30), "v1alpha3": (31, 31)},
    ),
    ("resource.k8s.io", "ResourceClass", "resourceclasses", _CLUSTER, {"v1alpha1": (26, 26), "v1alpha2": (27, 30)}),
    ("resource.k8s.io", "ResourceClaimParameters", "resourceclaimparameters", {}, {"v1alpha2": (30, 30)}),
    ("resource.k8s.io", "ResourceClassParameters", "resourceclassparameters", {}, {"v1alpha2": (30, 30)}),
    ("resource.k8s.io", "DeviceTaintRule", "devicetaintrules", _WITH_STATUS, {"v1alpha3": (33, 37), "v1beta2": (36, 37)}),
    (
        "resource.k8s.io", "ResourceClaim", "resourceclaims", {"status": True},
        {"v1alpha1": (26, 26), "v1alpha2": (27, 30), "v1alpha3": (31, 33), "v1beta1": (32, 37), "v1beta2": (33, 37)},
    ),
    (
        "resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", {},
        {"v1alpha1": (26, 26), "v1alpha2": (27, 30), "v1alpha3": (31, 33), "v1beta1": (32, 37), "v1beta2": (33, 37)},
    ),
    ("resource.k8s.io", "ResourcePoolStatusRequest", "resourcepoolstatusrequests", _WITH_STATUS, {"v1alpha3": (36, 37)}),
    (
        "resource.k8s.io", "ResourceSlice", "resourceslices", _CLUSTER,
        {"v1alpha2": (30, 30), "v1alpha3": (31, 33), "v1beta1": (32, 37), "v1beta2": (33, 37)},
    ),
    ("scheduling.k8s.io", "CompositePodGroup", "compositepodgroups", {"status": True}, {"v1alpha3": (37, 37)}),
    (
        "scheduling.k8s.io", "PodGroup", "podgroups", {"status": True},
        {"v1alpha2": (36, 36), "v1alpha3": (37, 37), "v1beta1": (37, 37)},
    ),
    (
        "scheduling.k8s.io", "Workload", "workloads", {},
        {"v1alpha1": (35, 35), "v1alpha2": (36, 36), "v1alpha3": (37, 37), "v1beta1": (37, 37)},
    ),
    (
        "storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", {**_CLUSTER, "short_names": ("vac",)},
        {"v1alpha1": (29, 34), "v1beta1": (31, 36)},
    ),
    (
        "storagemigration.k8s.io", "StorageVersionMigration", "storageversionmigrations", _WITH_STATUS,
        {"v1alpha1": (30, 34), "v1beta1": (35, 37)},
    ),
)  # fmt: skip


def _resources() -> tuple[ResourceInfo, ...]:
    return tuple(
        resource(group, version, plural, kind, since=since, until=until, storage_version="", **facts)
        for group, kind, plural, facts, versions in _ROWS
        for version, (since, until) in versions.items()
    )


RESOURCES: tuple[ResourceInfo, ...] = _resources()
