"""Which strategy a resource has.

The modules are loaded when a resource of theirs is first used: with the validation behind them they are a third of what a server imports,
and a server is ready before anybody asks for most of them. ``load_all`` gets the rest while nobody waits.
"""

from __future__ import annotations

import importlib
from functools import cache

from apiserver.registry.strategy import Strategy
from apiserver.resources.resource_info import ResourceInfo

#: module → group → kinds, as the modules' own ``STRATEGIES`` have them
MODULES: dict[str, dict[str, str]] = {
    "admissionregistration": {
        "admissionregistration.k8s.io": "ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy "
        "ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
    },
    "certificates": {"certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest"},
    "core": {"": "ConfigMap Secret ServiceAccount Namespace Event LimitRange ResourceQuota", "events.k8s.io": "Event"},
    # before the module that has most of these kinds in later versions
    "first_resource_claims": {
        "resource.k8s.io": "PodScheduling PodSchedulingContext ResourceClaim ResourceClaimParameters ResourceClaimTemplate ResourceClass "
        "ResourceClassParameters ResourceSlice",
    },
    "dynamic_resources": {"resource.k8s.io": "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice"},
    "extension": {
        "apiregistration.k8s.io": "APIService",
        "apiextensions.k8s.io": "CustomResourceDefinition",
        "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    },
    "networking": {"networking.k8s.io": "Ingress IngressClass NetworkPolicy IPAddress ServiceCIDR"},
    "nodes": {"": "Node", "coordination.k8s.io": "Lease"},
    "pods": {"": "Pod PodTemplate"},
    "rbac": {"rbac.authorization.k8s.io": "Role ClusterRole RoleBinding ClusterRoleBinding"},
    "scaling": {
        "autoscaling": "HorizontalPodAutoscaler",
        "policy": "PodDisruptionBudget",
        "scheduling.k8s.io": "PriorityClass",
        "node.k8s.io": "RuntimeClass",
    },
    "services": {"": "Service Endpoints", "discovery.k8s.io": "EndpointSlice"},
    "storage": {
        "": "PersistentVolume PersistentVolumeClaim",
        "storage.k8s.io": "StorageClass VolumeAttributesClass VolumeAttachment CSINode CSIDriver CSIStorageCapacity",
        "storagemigration.k8s.io": "StorageVersionMigration",
    },
    "workloads": {
        "apps": "Deployment ReplicaSet DaemonSet StatefulSet ControllerRevision",
        "": "ReplicationController",
        "batch": "Job CronJob",
    },
}
#: of a kind in two modules the later one counts, unless the version says otherwise
_MODULE_OF = {(group, kind): name for name, groups in MODULES.items() for group, kinds in groups.items() for kind in kinds.split()}
#: API versions whose kinds have little more than their names in common with those of later ones
_OF_VERSION = {"resource.k8s.io/v1alpha1": "first_resource_claims", "resource.k8s.io/v1alpha2": "first_resource_claims"}


@cache
def strategies_in(module: str) -> dict[tuple[str, str], type[Strategy]]:
    """By group and kind."""
    found: dict[tuple[str, str], type[Strategy]] = importlib.import_module(f"apiserver.registry.strategies.{module}").STRATEGIES
    return found


def strategy_for(info: ResourceInfo) -> Strategy:
    """The rules of a resource's kind; the base ones for kinds without rules of their own, for custom resources their definition's."""
    if info.custom is not None:
        own: Strategy = info.custom.strategy()
        return own
    key = (info.group, info.kind)
    module = _OF_VERSION.get(info.api_version) or _MODULE_OF.get(key)
    strategy = Strategy() if module is None else strategies_in(module)[key]()
    strategy.has_status = info.has_status
    return strategy


def load_all() -> None:
    """Import every module that is not loaded yet."""
    for module in MODULES:
        strategies_in(module)
