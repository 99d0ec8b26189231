"""The groups ``authentication.k8s.io``, ``authorization.k8s.io`` (reviews: asked, answered, never stored) and ``certificates.k8s.io``."""

from __future__ import annotations

from typing import Any

from apiserver.resources.facts import CREATE_ONLY, resource
from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo


def _review(group: str, plural: str, kind: str, **facts: Any) -> ResourceInfo:
    return resource(group, "v1", plural, kind, verbs=CREATE_ONLY, **{"namespaced": False, **facts})


_CERTIFICATES = "certificates.k8s.io"

RESOURCES: tuple[ResourceInfo, ...] = (
    _review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", since=28),
    _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    _review("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    resource(
        _CERTIFICATES,
        "v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        namespaced=False,
        short_names=("csr",),
        status=True,
        subresources=(SubresourceInfo(name="approval", kind="CertificateSigningRequest", group=_CERTIFICATES, version="v1"),),
    ),
    resource(_CERTIFICATES, "v1", "clustertrustbundles", "ClusterTrustBundle", namespaced=False, since=37),
    resource(_CERTIFICATES, "v1", "podcertificaterequests", "PodCertificateRequest", status=True, since=37),
)
