"""PersistentVolumes, and the inline volumes of VolumeAttachments."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names, spec_diff
from apiserver.machinery.field_errors import FieldError, forbidden, invalid, not_supported, required
from apiserver.registry.validation import persistent_volume_claims, quantities, scheduling, volumes
from apiserver.registry.validation.common import Errors, checked, equal, immutable

Part = Mapping[str, Any]

_NOTHING: Part = {}
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")
#: in the order in which Kubernetes looks at them
_SOURCES = (*[kind for kind in volumes.PERSISTENT_SOURCES if kind != "storageos"], "local", "storageos", "csi")


def create(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec(out, "spec", obj.get("spec") or _NOTHING, inline=False)
    return out


def spec(out: Errors, path: str, found: Part, *, inline: bool) -> None:
    if inline:
        _inline(out, path, found)
    modes = found.get("accessModes") or ()
    if not modes:
        out.append(required(f"{path}.accessModes"))
    persistent_volume_claims.access_modes(out, f"{path}.accessModes", modes)
    if not inline:
        _capacity(out, f"{path}.capacity", found.get("capacity") or {})
    policy = found.get("persistentVolumeReclaimPolicy")
    if policy and inline and policy != "Retain":
        out.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", "may only be Retain in the context of inline volumes"))
    elif policy and not inline and policy not in _RECLAIM_POLICIES:
        out.append(not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, list(_RECLAIM_POLICIES)))
    affinity = found.get("nodeAffinity")
    if affinity is not None and inline:
        out.append(forbidden(f"{path}.nodeAffinity", "may not be specified in the context of inline volumes"))
    elif affinity is not None:
        if affinity.get("required") is None:
            out.append(required(f"{path}.nodeAffinity.required", "must specify required node constraints"))
        else:
            scheduling.node_selector(out, f"{path}.nodeAffinity.required", affinity["required"])
    _sources(out, path, found)
    host_path = (found.get("hostPath") or _NOTHING).get("path")
    if host_path and posixpath.normpath(host_path) == "/" and policy == "Recycle":
        words = "may not be 'recycle' for a hostPath mount of '/'"
        out.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", words))
    if storage_class := found.get("storageClassName"):
        if inline:
            out.append(forbidden(f"{path}.storageClassName", "may not be specified in the context of inline volumes"))
        else:
            checked(out, f"{path}.storageClassName", storage_class, names.dns1123_subdomain)
    mode = found.get("volumeMode")
    if mode is not None and not inline and mode not in persistent_volume_claims.VOLUME_MODES:
        out.append(not_supported(f"{path}.volumeMode", mode, list(persistent_volume_claims.VOLUME_MODES)))
    elif mode is not None and inline and mode != "Filesystem":
        words = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        out.append(forbidden(f"{path}.volumeMode", words))
    if attributes_class := found.get("volumeAttributesClassName"):
        checked(out, f"{path}.volumeAttributesClassName", attributes_class, names.dns1123_subdomain)
        if found.get("csi") is None:
            words = "has to be specified when using volumeAttributesClassName"
            out.append(required(f"{path}.csi", words))


def _inline(out: Errors, path: str, found: Part) -> None:
    if found.get("claimRef") is not None:
        out.append(forbidden(f"{path}.claimRef", "may not be specified in the context of inline volumes"))
    if found.get("capacity"):
        out.append(forbidden(f"{path}.capacity", "may not be specified in the context of inline volumes"))
    if found.get("csi") is None:
        out.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))


def _capacity(out: Errors, path: str, capacity: dict[str, Any]) -> None:
    if not capacity:
        out.append(required(path))
    if "storage" not in capacity or len(capacity) > 1:
        out.append(not_supported(path, capacity, ["storage"]))
    for name, value in capacity.items():
        if quantities.amount(value) < 0:
            out.append(invalid(f"{path}[{name}]", quantities.whole(value), "must be a valid resource quantity"))
        if quantities.amount(value) <= 0:
            out.append(invalid(f"{path}[{name}]", str(value), "must be greater than zero"))


def _local(out: Errors, path: str, source: Part, found: Part) -> None:
    volumes.host_path(out, path, {"path": source.get("path")})
    if found.get("nodeAffinity") is None:
        out.append(required(f"{path.rpartition('.')[0]}.nodeAffinity", "Local volume requires node affinity"))


def _csi(out: Errors, path: str, source: Part) -> None:
    volumes.csi_driver_name(out, f"{path}.driver", source.get("driver") or "")
    if not source.get("volumeHandle"):
        out.append(required(f"{path}.volumeHandle"))
    for field in _SECRETS:
        reference = source.get(field)
        if reference is None:
            continue
        for part, check in (("name", names.dns1123_subdomain), ("namespace", names.dns1123_label)):
            if not reference.get(part):
                out.append(required(f"{path}.{field}.{part}"))
            else:
                checked(out, f"{path}.{part}", reference[part], check)


def _endpoints_namespace(out: Errors, path: str, namespace: str) -> None:
    if not namespace:
        words = "if the endpointnamespace is set, it must be a valid namespace name"
        out.append(invalid(path, namespace, words))
    else:
        checked(out, path, namespace, names.dns1123_label)


def _sources(out: Errors, path: str, found: Part) -> None:
    given = False
    for kind in _SOURCES:
        source = found.get(kind)
        if source is None:
            continue
        if given and kind != "flexVolume":
            name = "cephFS" if kind == "cephfs" else kind
            out.append(forbidden(f"{path}.{name}", "may not specify more than 1 volume type"))
            continue
        given = True
        if kind == "local":
            _local(out, f"{path}.local", source, found)
        elif kind == "csi":
            _csi(out, f"{path}.csi", source)
        else:
            if kind == "glusterfs" and source.get("endpointsNamespace") is not None:
                _endpoints_namespace(out, f"{path}.glusterfs.endpointsNamespace", source["endpointsNamespace"])
            name = "persistentDisk" if kind == "gcePersistentDisk" else kind
            volumes.PERSISTENT_SOURCES[kind](out, f"{path}.{name}", source)
            _beyond_a_pod_s(out, f"{path}.{name}", kind, source)
    if not given:
        out.append(required(path, "must specify a volume type"))


def _beyond_a_pod_s(out: Errors, path: str, kind: str, source: Part) -> None:
    """What a cluster's volume needs besides what a pod's own volume of that sort needs: secrets of a namespace."""
    secret = source.get("secretRef")
    if kind == "iscsi" and secret is not None and not secret.get("name"):
        out.append(required(f"{path}.secretRef.name"))
    if kind in ("cinder", "storageos") and secret is not None and not secret.get("namespace"):
        out.append(required(f"{path}.secretRef.namespace"))
    if kind == "azureFile" and source.get("secretNamespace") == "":
        out.append(required(f"{path}.secretNamespace"))


def update(new: Part, old: Part) -> list[FieldError]:
    out = create(new)
    have, had = new.get("spec") or _NOTHING, old.get("spec") or _NOTHING
    now, was = ({k: v for k, v in spec.items() if k in _SOURCES} for spec in (have, had))
    if "csi" in now and "csi" in was:
        for field in ("controllerExpandSecretRef", "nodeExpandSecretRef"):
            if was["csi"].get(field) is None:
                now["csi"] = {k: v for k, v in now["csi"].items() if k != field}
    if not equal(now, was):
        words = f"spec.persistentvolumesource is immutable after creation\n{spec_diff.describe(was, now)}"
        out.append(forbidden("spec.persistentvolumesource", words))
    immutable(out, "volumeMode", have.get("volumeMode"), had.get("volumeMode"))
    if had.get("nodeAffinity") is not None:
        immutable(out, "nodeAffinity", have.get("nodeAffinity"), had.get("nodeAffinity"))
    return out
