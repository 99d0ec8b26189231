"""The groups by which the API itself is extended and guarded: ``admissionregistration.k8s.io``, ``apiextensions.k8s.io`` and
``apiregistration.k8s.io``."""

from __future__ import annotations

from typing import Any

from apiserver.resources.facts import resource
from apiserver.resources.resource_info import ResourceInfo

_CATEGORIES = ("api-extensions",)


def _admission(plural: str, kind: str, **facts: Any) -> ResourceInfo:
    return resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False, categories=_CATEGORIES, **facts)


RESOURCES: tuple[ResourceInfo, ...] = (
    _admission("mutatingadmissionpolicies", "MutatingAdmissionPolicy", since=36),
    _admission("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", since=36),
    _admission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    _admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy", status=True, since=30),
    _admission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", since=30),
    _admission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=_CATEGORIES,
        status=True,
        storage_prefix="apiextensions.k8s.io/customresourcedefinitions",
    ),
    resource(
        "apiregistration.k8s.io",
        "v1",
        "apiservices",
        "APIService",
        namespaced=False,
        categories=_CATEGORIES,
        status=True,
        storage_prefix="apiregistration.k8s.io/apiservices",
    ),
)
