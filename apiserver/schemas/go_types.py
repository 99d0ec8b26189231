"""How Go names the types of fields, since its decoder's messages do (``… into Go struct field PodSpec.spec.nodeName of type string``).

The published schemas do not know Go's named string and map types; those that people meet are listed here.
"""

from __future__ import annotations

from apiserver.machinery.types import Shape, Type

_NAMED: dict[tuple[str, str], str] = {
    ("Container", "imagePullPolicy"): "v1.PullPolicy",
    ("Container", "terminationMessagePolicy"): "v1.TerminationMessagePolicy",
    ("Container", "restartPolicy"): "v1.ContainerRestartPolicy",
    ("ContainerPort", "protocol"): "v1.Protocol",
    ("ServicePort", "protocol"): "v1.Protocol",
    ("EndpointPort", "protocol"): "v1.Protocol",
    ("NetworkPolicyPort", "protocol"): "v1.Protocol",
    ("HTTPGetAction", "scheme"): "v1.URIScheme",
    ("PodSpec", "restartPolicy"): "v1.RestartPolicy",
    ("PodSpec", "dnsPolicy"): "v1.DNSPolicy",
    ("PodSpec", "preemptionPolicy"): "v1.PreemptionPolicy",
    ("PodSpec", "overhead"): "v1.ResourceList",
    ("PodStatus", "phase"): "v1.PodPhase",
    ("PodStatus", "qosClass"): "v1.PodQOSClass",
    ("Toleration", "operator"): "v1.TolerationOperator",
    ("Toleration", "effect"): "v1.TaintEffect",
    ("Taint", "effect"): "v1.TaintEffect",
    ("ResourceRequirements", "limits"): "v1.ResourceList",
    ("ResourceRequirements", "requests"): "v1.ResourceList",
    ("VolumeResourceRequirements", "limits"): "v1.ResourceList",
    ("VolumeResourceRequirements", "requests"): "v1.ResourceList",
    ("NodeStatus", "capacity"): "v1.ResourceList",
    ("NodeStatus", "allocatable"): "v1.ResourceList",
    ("ResourceQuotaSpec", "hard"): "v1.ResourceList",
    ("ServiceSpec", "type"): "v1.ServiceType",
    ("ServiceSpec", "sessionAffinity"): "v1.ServiceAffinity",
    ("ServiceSpec", "externalTrafficPolicy"): "v1.ServiceExternalTrafficPolicy",
    ("ServiceSpec", "internalTrafficPolicy"): "v1.ServiceInternalTrafficPolicy",
    ("ServiceSpec", "ipFamilyPolicy"): "v1.IPFamilyPolicy",
    ("Secret", "type"): "v1.SecretType",
    ("DeploymentStrategy", "type"): "v1.DeploymentStrategyType",
    ("StatefulSetSpec", "podManagementPolicy"): "v1.PodManagementPolicyType",
    ("StatefulSetUpdateStrategy", "type"): "v1.StatefulSetUpdateStrategyType",
    ("DaemonSetUpdateStrategy", "type"): "v1.DaemonSetUpdateStrategyType",
    ("CronJobSpec", "concurrencyPolicy"): "v1.ConcurrencyPolicy",
    ("JobSpec", "completionMode"): "v1.CompletionMode",
    ("PersistentVolumeSpec", "capacity"): "v1.ResourceList",
    ("PersistentVolumeSpec", "persistentVolumeReclaimPolicy"): "v1.PersistentVolumeReclaimPolicy",
    ("PersistentVolumeClaimSpec", "volumeMode"): "v1.PersistentVolumeMode",
    ("ObjectMeta", "uid"): "types.UID",
    ("OwnerReference", "uid"): "types.UID",
    ("LabelSelectorRequirement", "operator"): "v1.LabelSelectorOperator",
    ("NodeSelectorRequirement", "operator"): "v1.NodeSelectorOperator",
    ("CustomResourceDefinitionSpec", "scope"): "v1.ResourceScope",
    ("IngressPath", "pathType"): "v1.PathType",
    ("HTTPIngressPath", "pathType"): "v1.PathType",
    ("PriorityClass", "preemptionPolicy"): "v1.PreemptionPolicy",
}
_NAMED_ELEMENTS: dict[tuple[str, str], str] = {
    ("PersistentVolumeClaimSpec", "accessModes"): "v1.PersistentVolumeAccessMode",
    ("PersistentVolumeSpec", "accessModes"): "v1.PersistentVolumeAccessMode",
    ("Capabilities", "add"): "v1.Capability",
    ("Capabilities", "drop"): "v1.Capability",
    ("NetworkPolicySpec", "policyTypes"): "v1.PolicyType",
    ("ServiceSpec", "ipFamilies"): "v1.IPFamily",
    ("CertificateSigningRequestSpec", "usages"): "v1.KeyUsage",
}
_SCALARS = {
    Shape.STRING: "string",
    Shape.NUMBER: "float64",
    Shape.BOOLEAN: "bool",
    Shape.QUANTITY: "resource.Quantity",
    Shape.INT_OR_STRING: "intstr.IntOrString",
    Shape.TIME: "v1.Time",
    Shape.MICRO_TIME: "v1.MicroTime",
    Shape.ANY: "interface {}",
}


def go_type(type_: Type, struct: str = "", field: str = "", *, element: bool = False) -> str:
    """The name of a value's Go type; ``struct`` and ``field`` say where the value, or with ``element`` its container, stands."""
    named = (_NAMED_ELEMENTS if element else _NAMED).get((struct, field))
    if named:
        return named
    if type_.shape is Shape.STRUCT:
        version = type_.definition.split(".")[-2] if "." in type_.definition else "v1"
        return f"{version}.{type_.go_name}"
    if type_.shape is Shape.LIST:
        assert type_.element is not None
        return "[]" + go_type(type_.element, struct, field, element=True)
    if type_.shape is Shape.MAP:
        assert type_.element is not None
        return "map[string]" + go_type(type_.element)
    if type_.shape is Shape.INTEGER:
        return type_.format or "int64"
    if type_.format == "byte":
        return "[]uint8"
    return _SCALARS[type_.shape]
