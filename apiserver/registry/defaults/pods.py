"""Defaults of pods, of the pod specs in templates, and of their volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apiserver.machinery import quantity
from apiserver.machinery.objects import Object
from apiserver.registry.defaults.images import image_tag
from apiserver.registry.validation.volumes import VOLUME_SOURCES

DEFAULT_GRACE_SECONDS = 30
#: rw-r--r--
FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_FINER_THAN_MILLI = ("n", "u")
_MILLI = quantity.NANOS // 1000
_VOLUME_SOURCES = frozenset(VOLUME_SOURCES)


def default_pod(obj: Object) -> None:
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    default_pod_spec(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            _requests_from_limits(container["resources"])
    if resources := spec.get("resources"):
        _requests_from_limits(resources)
    if spec.get("hostNetwork"):
        for kind in ("containers", "initContainers"):
            for container in spec.get(kind) or ():
                for port in container.get("ports") or ():
                    if not port.get("hostPort") and port.get("containerPort"):
                        port["hostPort"] = port["containerPort"]


def default_template(holder: Object, field: str = "template") -> None:
    """``holder[field]`` is a ``PodTemplateSpec``."""
    template = holder.get(field)
    if template is None:
        template = holder[field] = {}
    if template.get("metadata") is None:
        template["metadata"] = {}
    spec = template.get("spec")
    if spec is None:
        spec = template["spec"] = {}
    default_pod_spec(spec)


def default_pod_spec(spec: Object) -> None:
    """What pods and templates share."""
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = DEFAULT_GRACE_SECONDS
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    same_service_account(spec)
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if field in spec and not spec[field]:
            del spec[field]
    if containers := spec.get("containers"):
        for container in containers:
            _container(container)
    if containers := spec.get("initContainers"):
        for container in containers:
            _container(container)
    if containers := spec.get("ephemeralContainers"):
        for container in containers:
            _container(container)
    if volumes := spec.get("volumes"):
        for volume in volumes:
            default_volume(volume)


def same_service_account(spec: Object) -> None:
    """``serviceAccount`` is the old name of ``serviceAccountName``; both are always written."""
    if name := spec.get("serviceAccountName"):
        spec["serviceAccount"] = name
    elif name := spec.get("serviceAccount"):
        spec["serviceAccountName"] = name


def round_up_to_milli(amounts: dict[str, Any] | None) -> None:
    """Resource lists hold nothing finer than thousandths: ``100u`` becomes ``1m``."""
    if not amounts:
        return
    for name, value in amounts.items():
        if isinstance(value, str) and value.endswith(_FINER_THAN_MILLI):
            nanos = quantity.parse(value).nanos
            amounts[name] = str(quantity.Quantity(-(-nanos // _MILLI) * _MILLI))


def _container(container: Object) -> None:
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    else:
        round_up_to_milli(resources.get("limits"))
        round_up_to_milli(resources.get("requests"))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image"))
    if ports := container.get("ports"):
        for port in ports:
            if not port.get("protocol"):
                port["protocol"] = "TCP"
    if variables := container.get("env"):
        for variable in variables:
            if source := variable.get("valueFrom"):
                _references(source)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            _probe(probe)
    if lifecycle := container.get("lifecycle"):
        for hook in ("postStart", "preStop"):
            if handler := lifecycle.get(hook):
                _http_get(handler.get("httpGet"))


def _pull_policy(image: str | None) -> str:
    return "Always" if image_tag(image or "") == "latest" else "IfNotPresent"


def _requests_from_limits(resources: Object) -> None:
    if limits := resources.get("limits"):
        requests = resources.get("requests")
        if requests is None:
            requests = resources["requests"] = {}
        for name, value in limits.items():
            requests.setdefault(name, value)


def _probe(probe: Object) -> None:
    if not probe.get("timeoutSeconds"):
        probe["timeoutSeconds"] = 1
    if not probe.get("periodSeconds"):
        probe["periodSeconds"] = 10
    if not probe.get("successThreshold"):
        probe["successThreshold"] = 1
    if not probe.get("failureThreshold"):
        probe["failureThreshold"] = 3
    _http_get(probe.get("httpGet"))
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _http_get(action: Object | None) -> None:
    if action is None:
        return
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


def _references(source: Object) -> None:
    """To a field of the pod, or to a resource of a container: an unset divisor reads 0."""
    if (field := source.get("fieldRef")) is not None and not field.get("apiVersion"):
        field["apiVersion"] = "v1"
    if (resource := source.get("resourceFieldRef")) is not None and resource.get("divisor") is None:
        resource["divisor"] = "0"


def default_volume(volume: Object) -> None:
    """A volume without a source is an empty directory."""
    kind = next((k for k in volume if k in _VOLUME_SOURCES and volume[k] is not None), None)
    if kind is None:
        volume["emptyDir"] = {}
    for source in volume:
        if (fill := _FILLERS.get(source)) is not None and volume[source] is not None:
            fill(volume[source])


def _default_mode(source: Object) -> None:
    if source.get("defaultMode") is None:
        source["defaultMode"] = FILE_MODE


def _downward_api(source: Object) -> None:
    _default_mode(source)
    for item in source.get("items") or ():
        _references(item)


def _projected(source: Object) -> None:
    _default_mode(source)
    for projection in source.get("sources") or ():
        if (token := projection.get("serviceAccountToken")) is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = _TOKEN_SECONDS
        if downward := projection.get("downwardAPI"):
            for item in downward.get("items") or ():
                _references(item)


def _image(source: Object) -> None:
    if not source.get("pullPolicy"):
        source["pullPolicy"] = _pull_policy(source.get("reference"))


def _ephemeral(source: Object) -> None:
    if template := source.get("volumeClaimTemplate"):
        template.setdefault("metadata", {})
        default_claim_spec(template.setdefault("spec", {}))


def _values(**defaults: Any) -> Callable[[Object], None]:
    """Fills in these where the field is unset: missing, null, or empty for strings (Go's are plain strings)."""

    def fill(source: Object) -> None:
        for field, value in defaults.items():
            found = source.get(field)
            if found is None or found == "":
                source[field] = value

    return fill


def _pointers(**defaults: Any) -> Callable[[Object], None]:
    """Fills in these where the field is missing or null; an empty string is a value (Go's are pointers)."""

    def fill(source: Object) -> None:
        for field, value in defaults.items():
            if source.get(field) is None:
                source[field] = value

    return fill


def _host_path(source: Object) -> None:
    if source.get("type") is None:
        source["type"] = ""


_ISCSI = _values(iscsiInterface="default")
_RBD = _values(pool="rbd", user="admin", keyring="/etc/ceph/keyring")
_SCALE_IO = _values(storageMode="ThinProvisioned", fsType="xfs")
_AZURE_DISK = _pointers(cachingMode="ReadWrite", kind="Shared", fsType="ext4", readOnly=False)

_FILLERS: dict[str, Callable[[Object], None]] = {
    "secret": _default_mode,
    "configMap": _default_mode,
    "downwardAPI": _downward_api,
    "projected": _projected,
    "hostPath": _host_path,
    "iscsi": _ISCSI,
    "rbd": _RBD,
    "scaleIO": _SCALE_IO,
    "azureDisk": _AZURE_DISK,
    "image": _image,
    "ephemeral": _ephemeral,
}

#: those of a PersistentVolume's spec
PERSISTENT_FILLERS = {name: _FILLERS[name] for name in ("hostPath", "iscsi", "rbd", "scaleIO", "azureDisk")}


def default_claim_spec(spec: Object) -> None:
    """Of a PersistentVolumeClaim. ``dataSource`` and ``dataSourceRef`` stand for each other."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    if spec.get("resources") is None:
        spec["resources"] = {}
    for side in ("requests", "limits"):
        round_up_to_milli(spec["resources"].get(side))
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        group, kind = reference.get("apiGroup") or "", reference.get("kind")
        if (group, kind) in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")):
            spec["dataSource"] = dict(reference)


def merge_label_keys(spec: Object, labels: Mapping[str, str]) -> None:
    """``matchLabelKeys`` and ``mismatchLabelKeys`` of a new pod become requirements on its own values of those labels."""
    for kind in ("podAffinity", "podAntiAffinity"):
        found = (spec.get("affinity") or {}).get(kind) or {}
        for term in found.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_keys(term, labels)
        for weighted in found.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_keys(weighted.get("podAffinityTerm") or {}, labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_keys(constraint, labels)


def _merge_keys(part: Object, labels: Mapping[str, str]) -> None:
    selector = part.get("labelSelector")
    if selector is None:
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in part.get(field) or ():
            if key in labels:
                selector.setdefault("matchExpressions", []).append({"key": key, "operator": operator, "values": [labels[key]]})
