"""Which served kinds are deprecated, and the sentence that every answer about them carries as a ``Warning`` header.

The facts are the ``prerelease-lifecycle`` marks of the published API types; the wording is kube-apiserver's
(``k8s.io/apiserver/pkg/endpoints/deprecation``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apiserver.resources.resource_info import ResourceInfo

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """``since`` and ``gone`` are minors of Kubernetes 1.x; ``gone`` 0: it stays. ``instead`` is ``group/version Kind``."""

    since: int
    gone: int = 0
    instead: str = ""


def _previews(group: str, kinds: str, **versions: tuple[int, int, str]) -> dict[Key, Deprecation]:
    """Of each version since when, until when, and the version that stands in for it ("": none is named): three minors after a version came
    it is deprecated and three later it is gone, where nothing else is said."""
    return {
        (group, version, kind): Deprecation(since=since, gone=gone, instead=f"{group}/{instead} {kind}" if instead else "")
        for kind in kinds.split()
        for version, (since, gone, instead) in versions.items()
    }


#: by group, version and kind
_DEPRECATED: dict[Key, Deprecation] = {
    ("", "v1", "ComponentStatus"): Deprecation(since=19),
    ("", "v1", "Endpoints"): Deprecation(since=33, instead="discovery.k8s.io/v1 EndpointSlice"),
    ("autoscaling", "v2beta2", "HorizontalPodAutoscaler"): Deprecation(since=23, gone=26, instead="autoscaling/v2 HorizontalPodAutoscaler"),
    **_previews(
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
        v1alpha1=(29, 32, "v1"),
        v1beta1=(31, 34, "v1"),
    ),
    **_previews(
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        v1alpha1=(35, 38, ""),
        v1beta1=(37, 40, "v1"),
    ),
    **_previews("authentication.k8s.io", "SelfSubjectReview", v1alpha1=(29, 32, ""), v1beta1=(30, 33, "")),
    **_previews("certificates.k8s.io", "ClusterTrustBundle", v1alpha1=(34, 37, ""), v1beta1=(37, 40, "v1")),
    **_previews("certificates.k8s.io", "PodCertificateRequest", v1alpha1=(37, 40, ""), v1beta1=(37, 41, "v1")),
    **_previews("coordination.k8s.io", "LeaseCandidate", v1alpha1=(34, 37, ""), v1alpha2=(35, 38, ""), v1beta1=(36, 39, "")),
    **_previews("networking.k8s.io", "IPAddress ServiceCIDR", v1alpha1=(30, 33, ""), v1beta1=(34, 37, "")),
    **_previews("resource.k8s.io", "DeviceTaintRule", v1alpha3=(36, 39, ""), v1beta2=(39, 42, "")),
    **_previews(
        "resource.k8s.io",
        "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        v1alpha3=(34, 37, ""),
        v1beta1=(35, 38, ""),
        v1beta2=(36, 39, ""),
    ),
    **_previews("storage.k8s.io", "VolumeAttributesClass", v1alpha1=(32, 35, "v1"), v1beta1=(34, 37, "v1")),
    **_previews("storagemigration.k8s.io", "StorageVersionMigration", v1alpha1=(33, 36, ""), v1beta1=(37, 41, "v1")),
    ("storage.k8s.io", "v1beta1", "CSIStorageCapacity"): Deprecation(since=24, gone=27, instead="storage.k8s.io/v1 CSIStorageCapacity"),
    **{
        ("flowcontrol.apiserver.k8s.io", version, kind): Deprecation(
            since=since, gone=gone, instead=f"flowcontrol.apiserver.k8s.io/{following} {kind}"
        )
        for version, since, gone, following in (("v1beta1", 23, 26, "v1beta2"), ("v1beta2", 26, 29, "v1beta3"), ("v1beta3", 29, 32, "v1"))
        for kind in ("FlowSchema", "PriorityLevelConfiguration")
    },
}


def warnings_of(resources: Iterable[ResourceInfo], minor: int) -> dict[Key, str]:
    """The warning of each deprecated resource, by group, version and plural, in Kubernetes 1.``minor``."""
    found: dict[Key, str] = {}
    for info in resources:
        deprecated = _DEPRECATED.get((info.group, info.version, info.kind))
        if info.builtin and deprecated is not None and deprecated.since <= minor:
            found[(info.group, info.version, info.resource)] = _warning(info, deprecated)
    return found


def _warning(info: ResourceInfo, deprecated: Deprecation) -> str:
    text = f"{info.api_version} {info.kind} is deprecated in v1.{deprecated.since}+"
    if deprecated.gone:
        text += f", unavailable in v1.{deprecated.gone}+"
    return f"{text}; use {deprecated.instead}" if deprecated.instead else text
