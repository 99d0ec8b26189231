"""Which fields Go writes whether or not anybody gave them a value.

A field without ``omitempty`` that is no pointer is written with the zero of its type (``"revision": 0`` of a ControllerRevision), and a
struct that is no pointer even where it may be left out (``"metadata": {}`` of a pod template, ``"conditions": {}`` of an endpoint).
Mostly these are the fields that the published schemas call required; what differs is listed here, as the Go types of Kubernetes 1.37
(k8s.io/api) declare it. Not listed is what the strategies' defaults put there anyway (``resources`` of containers), and what Go writes as
null, which to a reader is nothing (times, lists and maps).
"""

from __future__ import annotations

import re

from apiserver.machinery.types import Shape, Type

#: required ones that are pointers, or left out when zero; by the last three parts of a definition's name
_REQUIRED_BUT_LEFT_OUT: dict[str, str] = {
    "admissionregistration.v1.MutatingWebhook": "sideEffects",
    "admissionregistration.v1.ValidatingWebhook": "sideEffects",
    "apps.v1.DaemonSetSpec": "selector",
    "apps.v1.DeploymentSpec": "selector",
    "apps.v1.ReplicaSetSpec": "selector",
    "apps.v1.StatefulSetSpec": "selector",
    "certificates.v1.CertificateSigningRequestSpec": "request",
    "certificates.v1.PodCertificateRequestSpec": "stubPKCS10Request",
    "core.v1.EvictionResponder": "priority",
    "core.v1.NodeAllocatableMappedResources": "quantity",
    "core.v1.ScaleIOPersistentVolumeSource": "secretRef",
    "core.v1.ScaleIOVolumeSource": "secretRef",
    "networking.v1.HTTPIngressPath": "pathType",
    "networking.v1.IPAddressSpec": "parentRef",
    "resource.v1.CapacityRequestPolicyRange": "min",
    "resource.v1.DeviceDerivedAttribute": "expression name",
}
_ALSO_WRITTEN: dict[str, str] = {
    "apps.v1.ControllerRevision": "revision",
    "apps.v1.DaemonSetCondition": "status type",
    "apps.v1.DeploymentCondition": "status type",
    "apps.v1.ReplicaSetCondition": "status type",
    "apps.v1.StatefulSetCondition": "status type",
    "apps.v1.StatefulSetOrdinals": "start",
    "apps.v1.StatefulSetSpec": "serviceName",
    "batch.v1.JobTemplateSpec": "metadata spec",
    "core.v1.ContainerStatus": "lastState state",
    "core.v1.LimitRange": "spec",
    "core.v1.NodeDaemonEndpoints": "kubeletEndpoint",
    "core.v1.PersistentVolumeClaimTemplate": "metadata",
    "core.v1.PodTemplateSpec": "metadata spec",
    "core.v1.ResourceQuota": "spec",
    "discovery.v1.Endpoint": "conditions",
    "events.v1.Event": "deprecatedSource regarding",
    "networking.v1.Ingress": "spec",
    "networking.v1.IngressClass": "spec",
    "networking.v1.IngressServiceBackend": "port",
    "networking.v1.ServiceCIDR": "spec",
    "policy.v1.PodDisruptionBudget": "spec",
    "rbac.v1.RoleRef": "apiGroup",
    "resource.v1.AllocationResult": "devices",
    "resource.v1.DeviceClass": "spec",
    "resource.v1.ResourceClaimSpec": "devices",
    "resource.v1.ResourceClaimTemplateSpec": "metadata spec",
    "scheduling.v1.PriorityClass": "value",
    "storagemigration.v1.StorageVersionMigration": "spec",
}
_STABLE = re.compile(r"^io\.k8s\.(api|apiextensions-apiserver\.pkg\.apis)\.\w+\.v[1-9]\d*\.\w+$")
_SHAPES = (Shape.STRING, Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN, Shape.STRUCT, Shape.QUANTITY, Shape.INT_OR_STRING)


def always_written(definition: str, short_name: str, type_: Type) -> tuple[str, ...]:
    """Of a struct whose fields are known. Only types of stable versions: the marks of the others are not the same throughout."""
    if not _STABLE.match(definition):
        return ()
    left_out = _REQUIRED_BUT_LEFT_OUT.get(short_name, "").split()
    found = []
    for name in (*type_.required, *_ALSO_WRITTEN.get(short_name, "").split()):
        field = type_.fields.get(name)
        if field is not None and field.shape in _SHAPES and not field.zero_is_absent and name not in left_out and name not in found:
            found.append(name)
    return tuple(found)
