"""NodeRestriction: a kubelet writes its own Node, its own pods, its own lease, and nothing that would widen what it may see."""

from __future__ import annotations

from typing import Any

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import Plugin, forbidden, is_mirror_pod, new_object
from apiserver.admission.plugins import node_tokens
from apiserver.authentication.user import node_name
from apiserver.authorization.authorizer import Authorizer
from apiserver.machinery import objects, spec_diff, status
from apiserver.resources.facts import LAST_MINOR

#: the minors since which nodes ask for certificates in their own name only, and for tokens of audiences that their pods name
CERTIFICATES_SINCE, AUDIENCES_SINCE = 31, 33
_MIRROR = "kubernetes.io/config.mirror"
_LEASES = "kube-node-lease"
_RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"
#: labels under kubernetes.io and k8s.io that a kubelet may set on its Node
_KUBELET_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "node.kubernetes.io/windows-build",
    )
)
_KUBELET_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")


class NodeRestriction(Plugin):
    name = "NodeRestriction"
    operations = frozenset((Operation.CREATE, Operation.UPDATE, Operation.DELETE))
    resources = frozenset(
        (
            ("", "pods"),
            ("", "nodes"),
            ("", "persistentvolumeclaims"),
            ("", "serviceaccounts"),
            ("coordination.k8s.io", "leases"),
            ("storage.k8s.io", "csinodes"),
            ("resource.k8s.io", "resourceslices"),
            ("certificates.k8s.io", "certificatesigningrequests"),
        )
    )
    subresources = None

    def __init__(self, getter: ObjectGetter, authorizer: Authorizer, minor: int = LAST_MINOR) -> None:
        """``minor``: the served Kubernetes version, which says what nodes may ask certificates and tokens for."""
        self._getter = getter
        self._authorizer = authorizer
        self._minor = minor

    async def admit(self, attributes: AdmissionAttributes) -> None:
        node = node_name(attributes.user)
        if node is None:
            return
        if not node:
            raise forbidden(attributes, f'could not determine node from user "{attributes.user.name}"')
        match attributes.info.resource:
            case "pods":
                self._pod(attributes, node)
            case "nodes":
                _check_node(attributes, node)
            case "persistentvolumeclaims":
                _check_claim(attributes, node)
            case "serviceaccounts":
                await self._token(attributes, node)
            case "certificatesigningrequests":
                if attributes.operation is Operation.CREATE and self._minor >= CERTIFICATES_SINCE:
                    node_tokens.check_certificate_request(attributes, node)
            case "leases":
                if attributes.namespace != _LEASES:
                    raise forbidden(attributes, f'can only access leases in the "{_LEASES}" system namespace')
                _check_own_name(attributes, node, "node lease")
            case "csinodes":
                _check_own_name(attributes, node, "CSINode")
            case "resourceslices":
                _check_resource_slice(attributes, node)

    def _existing_pod(self, attributes: AdmissionAttributes, name: str) -> objects.Object:
        pod = self._getter.get("", "pods", attributes.namespace, name)
        if pod is None:
            # by the name of the kind in a cache of such objects, not by that of the resource
            raise status.not_found("", "pod", name)
        return pod

    def _pod(self, attributes: AdmissionAttributes, node: str) -> None:
        match attributes.subresource, attributes.operation:
            case "", Operation.CREATE:
                self._pod_create(attributes, node)
            case "", Operation.DELETE:
                if _node_of(self._existing_pod(attributes, attributes.name)) != node:
                    raise forbidden(attributes, f'node "{node}" can only delete pods with spec.nodeName set to itself')
            case "", operation:
                why = f'unexpected operation "{operation.value}", node "{node}" can only create and delete mirror pods'
                raise forbidden(attributes, why)
            case "status", Operation.UPDATE:
                _check_pod_status(attributes, node)
            case "eviction", Operation.CREATE:
                name = attributes.name or objects.name(new_object(attributes))
                if _node_of(self._existing_pod(attributes, name)) != node:
                    raise forbidden(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")
            case (("status" | "eviction"), operation):
                raise forbidden(attributes, f'unexpected operation "{operation.value}"')
            case subresource, _:
                why = f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed"
                raise forbidden(attributes, why)

    def _pod_create(self, attributes: AdmissionAttributes, node: str) -> None:
        pod = new_object(attributes)
        if not is_mirror_pod(pod):
            raise forbidden(attributes, f'pod does not have "{_MIRROR}" annotation, node "{node}" can only create mirror pods')
        if _node_of(pod) != node:
            raise forbidden(attributes, f'node "{node}" can only create pods with spec.nodeName set to itself')
        self._check_owner(attributes, node, objects.owner_references(pod))
        if what := _reference_of(pod.get("spec") or {}):
            raise forbidden(attributes, f'node "{node}" can not create pods that reference {what}')

    def _check_owner(self, attributes: AdmissionAttributes, node: str, owners: list[dict[str, Any]]) -> None:
        can_only = f'node "{node}" can only create pods with'
        if len(owners) > 1:
            raise forbidden(attributes, f"{can_only} a single owner reference set to itself")
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            raise forbidden(attributes, f"{can_only} an owner reference set to itself")
        if not owner.get("controller"):
            raise forbidden(attributes, f"{can_only} a controller owner reference set to itself")
        if owner.get("blockOwnerDeletion"):
            raise forbidden(attributes, f'node "{node}" must not set blockOwnerDeletion on an owner reference')
        existing = self._getter.get("", "nodes", "", node)
        if existing is None:
            raise status.not_found("", "node", node)
        if owner.get("uid") != objects.uid(existing):
            raise forbidden(attributes, f"node {node} UID mismatch: expected {owner.get('uid')} got {objects.uid(existing)}")

    async def _token(self, attributes: AdmissionAttributes, node: str) -> None:
        if attributes.operation is not Operation.CREATE or attributes.subresource != "token":
            return
        reference = objects.get(new_object(attributes), "spec", "boundObjectRef", default={})
        if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not reference.get("name"):
            raise forbidden(attributes, "node requested token not bound to a pod")
        if not reference.get("uid"):
            raise forbidden(attributes, "node requested token with a pod binding without a uid")
        pod = self._existing_pod(attributes, reference["name"])
        if reference["uid"] != objects.uid(pod):
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            raise forbidden(attributes, why + "The object might have been deleted and then recreated")
        if _node_of(pod) != node:
            raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
        if self._minor >= AUDIENCES_SINCE:
            await node_tokens.check_audience(attributes, pod, self._getter, self._authorizer)


def _node_of(pod: objects.Object | None) -> str:
    return str(objects.get(pod, "spec", "nodeName", default=""))


def _reference_of(spec: dict[str, Any]) -> str:
    """The first kind of object that a pod's spec refers to, in words; "" where there is none."""
    if spec.get("serviceAccountName"):
        return "a service account"
    sources: list[Any] = []
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            sources += container.get("envFrom") or ()
            sources += [variable.get("valueFrom") or {} for variable in container.get("env") or ()]
    volumes = spec.get("volumes") or []
    projected = [source for volume in volumes for source in objects.get(volume, "projected", "sources", default=())]
    if spec.get("imagePullSecrets") or any(s.get("secretRef") or s.get("secretKeyRef") for s in sources):
        return "secrets"
    if any(v.get("secret") for v in volumes) or any(s.get("secret") for s in projected):
        return "secrets"
    if any(s.get("configMapRef") or s.get("configMapKeyRef") for s in sources):
        return "configmaps"
    if any(v.get("configMap") for v in volumes) or any(s.get("configMap") for s in projected):
        return "configmaps"
    if any(s.get("clusterTrustBundle") for s in projected):
        return "clustertrustbundles"
    if any(v.get("persistentVolumeClaim") for v in volumes):
        return "persistentvolumeclaims"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    return ""


def _check_pod_status(attributes: AdmissionAttributes, node: str) -> None:
    old = attributes.old_object or {}
    if _node_of(old) != node:
        raise forbidden(attributes, f'node "{node}" can only update pod status for pods with spec.nodeName set to itself')
    if objects.labels(new_object(attributes)) != objects.labels(old):
        raise forbidden(attributes, f'node "{node}" cannot update labels through pod status')
    if _claims_of(new_object(attributes)) != _claims_of(old):
        raise forbidden(attributes, f'node "{node}" cannot update resource claim statues')


def _claims_of(pod: objects.Object) -> list[tuple[Any, Any]]:
    """Which claims were made for a pod, as its status tells."""
    return [(c.get("name"), c.get("resourceClaimName")) for c in objects.get(pod, "status", "resourceClaimStatuses", default=())]


def _check_node(attributes: AdmissionAttributes, node: str) -> None:
    requested = attributes.name
    if attributes.operation is Operation.CREATE and not requested:
        requested = objects.name(new_object(attributes))
    if requested != node:
        raise forbidden(attributes, f'node "{node}" is not allowed to modify node "{requested}"')
    if attributes.operation is Operation.DELETE:
        return
    new, old = new_object(attributes), attributes.old_object or {}
    config = objects.get(new, "spec", "configSource")
    if config is not None and config != objects.get(old, "spec", "configSource"):
        if attributes.operation is Operation.CREATE:
            raise forbidden(attributes, f'node "{node}" is not allowed to create pods with a non-nil configSource')
        raise forbidden(attributes, f'node "{node}" is not allowed to update configSource to a new non-nil configSource')
    if attributes.operation is Operation.UPDATE:
        if (objects.get(new, "spec", "taints") or []) != (objects.get(old, "spec", "taints") or []):
            raise forbidden(attributes, f'node "{node}" is not allowed to modify taints')
        if objects.owner_references(new) != objects.owner_references(old):
            raise forbidden(attributes, f'node "{node}" is not allowed to modify ownerReferences')
    _check_labels(attributes, node, objects.labels(new), objects.labels(old))


def _check_labels(attributes: AdmissionAttributes, node: str, new: dict[str, str], old: dict[str, str]) -> None:
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    wrong = ", ".join(sorted(key for key in changed if _is_forbidden_label(key)))
    if not wrong:
        return
    if attributes.operation is Operation.CREATE:
        raise forbidden(attributes, f'node "{node}" is not allowed to set the following labels: {wrong}')
    raise forbidden(attributes, f"is not allowed to modify labels: {wrong}")


def _is_forbidden_label(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    if not slash:
        return False
    if _within(domain, _RESTRICTED_DOMAIN):
        return True
    if not _within(domain, "kubernetes.io") and not _within(domain, "k8s.io"):
        return False
    return key not in _KUBELET_LABELS and not any(_within(domain, allowed) for allowed in _KUBELET_DOMAINS)


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith("." + parent)


def _check_claim(attributes: AdmissionAttributes, node: str) -> None:
    if attributes.subresource != "status":
        raise forbidden(attributes, "may only update PVC status")
    if attributes.operation is not Operation.UPDATE:
        raise forbidden(attributes, f'unexpected operation "{attributes.operation.value}"')
    old, new = _frozen_part(attributes.old_object or {}), _frozen_part(new_object(attributes))
    if old != new:
        what = f"fields other than status.quantity and status.conditions: {spec_diff.describe(old, new)}"
        raise forbidden(attributes, f'node "{node}" is not allowed to update {what}')


def _frozen_part(claim: objects.Object) -> objects.Object:
    """A claim without what its node may change while it grows."""
    metadata = {k: v for k, v in objects.metadata(claim).items() if k not in ("resourceVersion", "managedFields")}
    growing = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses", "modifyVolumeStatus")
    state = {k: v for k, v in (claim.get("status") or {}).items() if k not in growing}
    return {**claim, "metadata": metadata, "status": state}


def _check_own_name(attributes: AdmissionAttributes, node: str, what: str) -> None:
    name = objects.name(new_object(attributes)) if attributes.operation is Operation.CREATE else attributes.name
    if name != node:
        raise forbidden(attributes, f"can only access {what} with the same name as the requesting node")


def _check_resource_slice(attributes: AdmissionAttributes, node: str) -> None:
    slice_ = new_object(attributes) if attributes.operation is Operation.CREATE else attributes.old_object
    if objects.get(slice_, "spec", "nodeName") != node:
        if attributes.operation is Operation.CREATE:
            raise forbidden(attributes, "can only create ResourceSlice with the same NodeName as the requesting node")
        raise forbidden(attributes, "can only delete ResourceSlice with the same NodeName as the requesting node")
