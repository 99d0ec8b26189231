"""Objects that were stored in a version which is served no longer, or never was: into the version in which they are stored today.

A cluster keeps an object in the version that was its kind's storage version when it was last written, so an old backup holds versions that
were removed long ago. Most look in JSON as their successors do, field by field; those are named in ``_RENAMED`` by what was compared: the
published types of both versions (k8s.io/api). The others have a function, after the published migration guide
(https://kubernetes.io/docs/reference/using-api/deprecation-guide/). A version that is in neither is not guessed at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import Unreadable
from apiserver.objectstore.stored_values import UnreadableValueError
from apiserver.registry import conversion
from apiserver.resources.resource_info import ResourceInfo

Upgrade = Callable[[Object], Object]


def upgrade(to: ResourceInfo, served: Iterable[str], obj: Object) -> Object:
    """``obj`` in the version of ``to``, its kind's storage version here. ``served``: the API versions that are served of the kind, which
    ``conversion`` knows. May take ``obj`` apart. Raises UnreadableValueError for a version or kind that is not known."""
    api_version, kind = obj["apiVersion"], obj["kind"]
    if kind != to.kind:
        why = f"{api_version}, Kind={kind} where {to.api_version}, Kind={to.kind} is expected"
        raise UnreadableValueError(Unreadable.UNKNOWN_TYPE, why)
    complete = _COMPLETE.get(kind)
    if complete is not None:
        obj = complete(obj)
    if api_version == to.api_version:
        return obj
    function = _UPGRADES.get((api_version, kind))
    if function is not None:
        obj = function(obj)
    elif api_version not in served and (api_version, kind) not in _RENAMED:
        raise UnreadableValueError(
            Unreadable.UNKNOWN_TYPE, f'no kind "{kind}" is registered for version "{api_version}", stored as {to.api_version} today'
        )
    return conversion.convert(obj, to)


def _names(table: dict[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((version, kind) for version, kinds in table.items() for kind in kinds.split())


#: API versions whose kinds look in JSON as the version stored today, or which ``conversion`` knows though they are not served
_RENAMED = _names(
    {
        "admissionregistration.k8s.io/v1alpha1": "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io/v1beta1": "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingWebhookConfiguration MutatingWebhookConfiguration",
        "apiregistration.k8s.io/v1beta1": "APIService",
        "apps/v1beta1": "ControllerRevision StatefulSet",
        "apps/v1beta2": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
        "autoscaling/v2beta2": "HorizontalPodAutoscaler",
        "batch/v1beta1": "CronJob",
        "batch/v2alpha1": "CronJob",
        "certificates.k8s.io/v1alpha1": "ClusterTrustBundle PodCertificateRequest",
        "certificates.k8s.io/v1beta1": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
        "coordination.k8s.io/v1beta1": "Lease",
        "extensions/v1beta1": "NetworkPolicy ReplicaSet",
        "flowcontrol.apiserver.k8s.io/v1alpha1": "FlowSchema",
        "flowcontrol.apiserver.k8s.io/v1beta1": "FlowSchema PriorityLevelConfiguration",
        "flowcontrol.apiserver.k8s.io/v1beta2": "FlowSchema PriorityLevelConfiguration",
        "flowcontrol.apiserver.k8s.io/v1beta3": "FlowSchema PriorityLevelConfiguration",
        "networking.k8s.io/v1alpha1": "IPAddress ServiceCIDR",
        "networking.k8s.io/v1beta1": "IngressClass IPAddress ServiceCIDR",
        "node.k8s.io/v1beta1": "RuntimeClass",
        "rbac.authorization.k8s.io/v1alpha1": "ClusterRole Role",
        "rbac.authorization.k8s.io/v1beta1": "ClusterRole ClusterRoleBinding Role RoleBinding",
        "resource.k8s.io/v1alpha3": "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice",
        "resource.k8s.io/v1beta1": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        "resource.k8s.io/v1beta2": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
        "scheduling.k8s.io/v1alpha1": "PriorityClass",
        "scheduling.k8s.io/v1beta1": "PriorityClass",
        "storage.k8s.io/v1alpha1": "CSIStorageCapacity VolumeAttachment VolumeAttributesClass",
        "storage.k8s.io/v1beta1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
        "storagemigration.k8s.io/v1beta1": "StorageVersionMigration",
    }
)


# -- what kube-apiserver stores without a default, and shows with it whenever it reads: parts that its own admission or registry put in
# behind the defaulting. Defaults that came with later versions are not filled in: what is shown is what the cluster showed.

#: rw-r--r--
_FILE_MODE = 0o644
_VOLUMES_OF_FILES = ("configMap", "downwardAPI", "projected", "secret")


def _complete_pod(obj: Object) -> Object:
    for volume in (obj.get("spec") or {}).get("volumes") or ():
        for source in _VOLUMES_OF_FILES:
            if source in volume:
                volume[source].setdefault("defaultMode", _FILE_MODE)
    return obj


def _complete_volume(obj: Object) -> Object:
    status = obj.setdefault("status", {})
    status.setdefault("phase", "Pending")
    return obj


def _complete_stateful_set(obj: Object) -> Object:
    """The protobuf form has no place for a kind within another."""
    spec = obj.get("spec") or {}
    if spec.get("volumeClaimTemplates"):
        spec["volumeClaimTemplates"] = [
            {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **template} for template in spec["volumeClaimTemplates"]
        ]
    return obj


_COMPLETE: dict[str, Upgrade] = {
    "PersistentVolume": _complete_volume,
    "PersistentVolumeClaim": _complete_volume,
    "Pod": _complete_pod,
    "StatefulSet": _complete_stateful_set,
}


# -- workloads of extensions/v1beta1 and apps/v1beta1: fields that went, and a selector that could be left out -----------------------


def _workload(obj: Object) -> Object:
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if key not in ("rollbackTo", "templateGeneration")}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if "selector" not in spec and labels:
        spec["selector"] = {"matchLabels": {**labels}}
    return {**obj, "spec": spec}


# -- Ingress: the backend names its service and port in an object of their own -------------------------------------------------------


def _ingress(obj: Object) -> Object:
    spec = {**(obj.get("spec") or {})}
    if "backend" in spec:
        spec["defaultBackend"] = _backend(spec.pop("backend"))
    if "rules" in spec:
        spec["rules"] = [_rule(rule) for rule in spec["rules"]]
    return {**obj, "spec": spec}


def _rule(rule: Object) -> Object:
    if not rule.get("http"):
        return rule
    paths = [{**path, "pathType": path.get("pathType", "ImplementationSpecific")} for path in rule["http"].get("paths") or ()]
    for path in paths:
        if "backend" in path:
            path["backend"] = _backend(path["backend"])
    return {**rule, "http": {**rule["http"], "paths": paths}}


def _backend(backend: Object) -> Object:
    found = {key: value for key, value in backend.items() if key not in ("serviceName", "servicePort")}
    name, port = backend.get("serviceName"), backend.get("servicePort")
    if name or port:
        service: Object = {"name": name or ""}
        if port:
            service["port"] = {"name" if isinstance(port, str) else "number": port}
        found["service"] = service
    return found


# -- PodDisruptionBudget: an empty selector selected nothing -------------------------------------------------------------------------

#: what kube-apiserver says in policy/v1 of a budget that selects nothing
_SELECTS_NOTHING = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"


def _disruption_budget(obj: Object) -> Object:
    spec = {**(obj.get("spec") or {})}
    selector = spec.get("selector")
    if selector is not None and not any(selector.values()):
        spec["selector"] = {"matchExpressions": [{"key": _SELECTS_NOTHING, "operator": "Exists"}]}
    return {**obj, "spec": spec}


# -- EndpointSlice: zone and node got fields of their own ----------------------------------------------------------------------------

_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def _endpoint_slice(obj: Object) -> Object:
    return {**obj, "endpoints": [_endpoint(endpoint) for endpoint in obj["endpoints"]]} if obj.get("endpoints") else obj


def _endpoint(endpoint: Object) -> Object:
    if not endpoint.get("topology"):
        return {key: value for key, value in endpoint.items() if key != "topology"}
    found, topology = {**endpoint}, {**endpoint["topology"]}
    del found["topology"]
    if _ZONE in topology:
        found["zone"] = topology.pop(_ZONE)
    if _HOSTNAME in topology and found.setdefault("nodeName", topology[_HOSTNAME]) == topology[_HOSTNAME]:
        del topology[_HOSTNAME]
    if topology:
        found["deprecatedTopology"] = topology
    return found


# -- RBAC's first version: a subject's API version, of which the group is what counts -------------------------------------------------


def _binding(obj: Object) -> Object:
    return {**obj, "subjects": [_subject(subject) for subject in obj["subjects"]]} if obj.get("subjects") else obj


def _subject(subject: Object) -> Object:
    found = {key: value for key, value in subject.items() if key != "apiVersion"}
    if found.get("kind") == "User" and found.get("name") == "*":
        found = {**found, "kind": "Group", "name": "system:authenticated"}
    group, slash, _ = str(subject.get("apiVersion") or "").partition("/")
    found["apiGroup"] = group if slash else ("" if found.get("kind") == "ServiceAccount" else "rbac.authorization.k8s.io")
    return found if found["apiGroup"] else {key: value for key, value in found.items() if key != "apiGroup"}


# -- RuntimeClass: its fields stood in a spec ----------------------------------------------------------------------------------------


def _runtime_class(obj: Object) -> Object:
    spec = {**(obj.get("spec") or {})}
    found = {key: value for key, value in obj.items() if key != "spec"}
    found["handler"] = spec.pop("runtimeHandler", "")
    return {**found, **spec}


# -- CustomResourceDefinition: what was said once is said of each version ------------------------------------------------------------


def _definition(obj: Object) -> Object:
    spec = {**(obj.get("spec") or {})}
    version = spec.pop("version", "")
    versions = spec.get("versions") or [{"name": version, "served": True, "storage": True}]
    schema = (spec.pop("validation", None) or {}).get("openAPIV3Schema")
    common: dict[str, Any] = {
        "subresources": spec.pop("subresources", None),
        "additionalPrinterColumns": spec.pop("additionalPrinterColumns", None),
        "selectableFields": spec.pop("selectableFields", None),
        "schema": None if schema is None else {"openAPIV3Schema": schema},
    }
    spec["versions"] = [_definition_version(each, common) for each in versions]
    conversion_of = spec.get("conversion")
    if conversion_of:
        spec["conversion"] = _definition_conversion(conversion_of)
    # v1beta1's default, which v1 does not allow to be written but keeps
    spec.setdefault("preserveUnknownFields", True)
    if spec["preserveUnknownFields"] is False:
        del spec["preserveUnknownFields"]
    return {**obj, "spec": spec}


def _definition_version(version: Object, common: dict[str, Any]) -> Object:
    found = {**version, **{key: value for key, value in common.items() if value is not None and key not in version}}
    if "additionalPrinterColumns" in found:
        found["additionalPrinterColumns"] = [
            {("jsonPath" if key == "JSONPath" else key): value for key, value in column.items()}
            for column in found["additionalPrinterColumns"]
        ]
    return found


def _definition_conversion(old: Object) -> Object:
    found: Object = {"strategy": old.get("strategy", "None")}
    if old.get("webhookClientConfig") or old.get("conversionReviewVersions"):
        webhook = {"clientConfig": old.get("webhookClientConfig"), "conversionReviewVersions": old.get("conversionReviewVersions")}
        found["webhook"] = {key: value for key, value in webhook.items() if value}
    return found


_RBAC = "rbac.authorization.k8s.io/v1alpha1"

_UPGRADES: dict[tuple[str, str], Upgrade] = {
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"): _definition,
    ("apps/v1beta1", "Deployment"): _workload,
    ("discovery.k8s.io/v1beta1", "EndpointSlice"): _endpoint_slice,
    ("events.k8s.io/v1beta1", "Event"): lambda obj: {**obj, "apiVersion": "events.k8s.io/v1"},
    ("extensions/v1beta1", "DaemonSet"): _workload,
    ("extensions/v1beta1", "Deployment"): _workload,
    ("extensions/v1beta1", "Ingress"): _ingress,
    ("flowcontrol.apiserver.k8s.io/v1alpha1", "PriorityLevelConfiguration"): lambda obj: {
        **obj,
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1beta1",
    },
    ("networking.k8s.io/v1beta1", "Ingress"): _ingress,
    ("node.k8s.io/v1alpha1", "RuntimeClass"): _runtime_class,
    ("policy/v1beta1", "PodDisruptionBudget"): _disruption_budget,
    (_RBAC, "ClusterRoleBinding"): _binding,
    (_RBAC, "RoleBinding"): _binding,
}
