"""Volumes of pods: at most one source each, and what each sort of source needs (core ``ValidateVolumes``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import duplicate, forbidden, invalid, not_supported, required, too_long
from apiserver.registry.validation import certificates, environment, formats, persistent_volume_claims, quantities
from apiserver.registry.validation.common import Errors, checked, each, local_descending_path, local_non_reserved_path, no_backsteps

Source = Mapping[str, Any]
SourceCheck = Callable[[Errors, str, Source], None]

FILE_MODE_MAX = 0o777
_BAD_FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_MORE_THAN_ONE = "may not specify more than 1 volume type"
_ISCSI_NAME = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$|^eui.[A-Za-z0-9]{16}$|^naa.[A-Za-z0-9]{32}$")
_ISCSI_LENGTH_MAX = 64
_CSI_DRIVER_LENGTH_MAX = 63
_KEY_TYPES = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")
_CERTIFICATE_SECONDS_MIN = 3600
_CERTIFICATE_SECONDS_MAX = 91 * 24 * 3600
_TOKEN_SECONDS_MIN = 600
_TOKEN_SECONDS_MAX = 1 << 32


def pod_volumes(out: Errors, path: str, volumes: Sequence[Source], pod_name: str) -> dict[str, Source]:
    """Checks the volumes and answers the good ones by name, to which containers' mounts may refer. ``pod_name`` is empty for a
    template, whose claims have no names yet."""
    good: dict[str, Source] = {}
    created_claims = {f"{pod_name}-{v.get('name')}" for v in volumes if v.get("ephemeral") is not None} if pod_name else ()
    for i, volume in each(out, volumes):
        before, at, name = len(out), f"{path}[{i}]", volume.get("name") or ""
        _sources(out, at, volume, name, pod_name)
        if not name:
            out.append(required(f"{at}.name"))
        else:
            checked(out, f"{at}.name", name, names.dns1123_label)
        if name in good:
            out.append(duplicate(f"{at}.name", name))
        if len(out) == before:
            good[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim and claim in created_claims:
            words = "must not reference a PVC that gets created for an ephemeral volume"
            out.append(invalid(f"{at}.persistentVolumeClaim.claimName", claim, words))
    return good


def _sources(out: Errors, at: str, volume: Source, name: str, pod_name: str) -> None:
    given = False
    for kind, check in _SOURCES.items():
        source = volume.get(kind)
        if source is None:
            continue
        if given:
            out.append(forbidden(f"{at}.{_FORBIDDEN_NAMES.get(kind, kind)}", _MORE_THAN_ONE))
        else:
            check(out, f"{at}.{_CHECKED_NAMES.get(kind, kind)}", source)
        if kind == "iscsi":
            _iscsi_initiator(out, at, name, source)
        elif kind == "ephemeral" and not given and pod_name and name:
            claim = f"{pod_name}-{name}"
            for message in names.dns1123_subdomain(claim):
                out.append(invalid(f"{at}.name", name, f'PVC name "{claim}": {message}'))
        given = True
    if not given:
        out.append(required(at, "must specify a volume type"))


def _iscsi_initiator(out: Errors, at: str, name: str, source: Source) -> None:
    if source.get("initiatorName") is not None and len(f"{name}:{source.get('targetPortal') or ''}") > _ISCSI_LENGTH_MAX:
        words = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."
        out.append(invalid(f"{at}.name", name, words))


#: where Kubernetes' errors name a source otherwise than its field is called; clients may have come to match on it
_FORBIDDEN_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_CHECKED_NAMES = {"gcePersistentDisk": "persistentDisk"}


def _needs(*fields: str) -> SourceCheck:
    """A source of which only these fields are checked: they must be there."""

    def check(out: Errors, path: str, source: Source) -> None:
        for name in fields:
            if not source.get(name):
                out.append(required(f"{path}.{name}"))

    return check


def file_mode(out: Errors, path: str, mode: int | None) -> None:
    if mode is not None and not 0 <= mode <= FILE_MODE_MAX:
        out.append(invalid(path, mode, _BAD_FILE_MODE))


def _empty_dir(out: Errors, path: str, source: Source) -> None:
    if quantities.amount(source.get("sizeLimit")) < 0:
        out.append(forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def host_path(out: Errors, path: str, source: Source) -> None:
    where = source.get("path") or ""
    if not where:
        out.append(required(f"{path}.path"))
        return
    no_backsteps(out, f"{path}.path", where)
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        out.append(not_supported(f"{path}.type", kind, list(_HOST_PATH_TYPES)))


def _git_repo(out: Errors, path: str, source: Source) -> None:
    if not source.get("repository"):
        out.append(required(f"{path}.repository"))
    local_descending_path(out, f"{path}.directory", source.get("directory") or "")


def _disk_partition(id_field: str) -> SourceCheck:
    def check(out: Errors, path: str, source: Source) -> None:
        if not source.get(id_field):
            out.append(required(f"{path}.{id_field}"))
        partition = source.get("partition") or 0
        if not 0 <= partition <= 255:
            out.append(invalid(f"{path}.partition", partition, formats.inclusive_range(1, 255)))

    return check


def _keys_to_paths(out: Errors, path: str, items: Sequence[Source]) -> None:
    for i, item in each(out, items):
        at = f"{path}[{i}]"
        if not item.get("key"):
            out.append(required(f"{at}.key"))
        if not item.get("path"):
            out.append(required(f"{at}.path"))
        local_non_reserved_path(out, f"{at}.path", item.get("path") or "")
        file_mode(out, f"{at}.mode", item.get("mode"))


def _files_of(name_field: str) -> SourceCheck:
    """Secret and ConfigMap volumes."""

    def check(out: Errors, path: str, source: Source) -> None:
        if not source.get(name_field):
            out.append(required(f"{path}.{name_field}"))
        file_mode(out, f"{path}.defaultMode", source.get("defaultMode"))
        _keys_to_paths(out, f"{path}.items", source.get("items") or ())

    return check


def _nfs(out: Errors, path: str, source: Source) -> None:
    where = source.get("path") or ""
    if not source.get("server"):
        out.append(required(f"{path}.server"))
    if not where:
        out.append(required(f"{path}.path"))
    if not where.startswith("/"):
        out.append(invalid(f"{path}.path", where, "must be an absolute path"))


def _iscsi(out: Errors, path: str, source: Source) -> None:
    if not source.get("targetPortal"):
        out.append(required(f"{path}.targetPortal"))
    name = source.get("iqn") or ""
    if not name:
        out.append(required(f"{path}.iqn"))
    else:
        _iscsi_name(out, f"{path}.iqn", name)
    lun = source.get("lun") or 0
    if not 0 <= lun <= 255:
        out.append(invalid(f"{path}.lun", lun, formats.inclusive_range(0, 255)))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        out.append(required(f"{path}.secretRef"))
    if (initiator := source.get("initiatorName")) is not None:
        _iscsi_name(out, f"{path}.initiatorname", initiator)


def _iscsi_name(out: Errors, path: str, name: str) -> None:
    if not name.startswith(("iqn", "eui", "naa")):
        out.append(invalid(path, name, "must be valid format starting with iqn, eui, or naa"))
    elif not _ISCSI_NAME.search(name):
        out.append(invalid(path, name, "must be valid format"))


def _flocker(out: Errors, path: str, source: Source) -> None:
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID")
    if not name and not uuid:
        out.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        out.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in name:
        out.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))


def _fibre_channel(out: Errors, path: str, source: Source) -> None:
    targets, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not targets and not ids:
        out.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if targets and ids:
        out.append(invalid(f"{path}.targetWWNs", targets, "targetWWNs and wwids can not be specified simultaneously"))
    if targets:
        if lun is None:
            out.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
        elif not 0 <= lun <= 255:
            out.append(invalid(f"{path}.lun", lun, formats.inclusive_range(0, 255)))


def _flex(out: Errors, path: str, source: Source) -> None:
    if not source.get("driver"):
        out.append(required(f"{path}.driver"))
    for option in source.get("options") or ():
        domain = f".{option.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            out.append(invalid(f"{path}.options[{option}]", option, "kubernetes.io and k8s.io namespaces are reserved"))


def _azure_disk(out: Errors, path: str, source: Source) -> None:
    if not source.get("diskName"):
        out.append(required(f"{path}.diskName"))
    uri = source.get("diskURI") or ""
    if not uri:
        out.append(required(f"{path}.diskURI"))
    caching, kind = source.get("cachingMode"), source.get("kind")
    if caching is not None and caching not in ("None", "ReadOnly", "ReadWrite"):
        out.append(not_supported(f"{path}.cachingMode", caching, ["None", "ReadOnly", "ReadWrite"]))
    if kind is not None and kind not in ("Dedicated", "Managed", "Shared"):
        out.append(not_supported(f"{path}.kind", kind, ["Dedicated", "Managed", "Shared"]))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        shape = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
        out.append(not_supported(f"{path}.diskURI", uri, [shape]))
    if kind is not None and kind != "Managed" and not uri.startswith("https://"):
        shape = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
        out.append(not_supported(f"{path}.diskURI", uri, [shape]))


def _quobyte(out: Errors, path: str, source: Source) -> None:
    registry, words = source.get("registry") or "", "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        out.append(required(f"{path}.registry", words))
    elif len(source.get("tenant") or "") >= 65:
        out.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    elif not all(":" in pair for pair in registry.split(",")):
        out.append(invalid(f"{path}.registry", registry, words))
    if not source.get("volume"):
        out.append(required(f"{path}.volume"))


def _cinder(out: Errors, path: str, source: Source) -> None:
    if not source.get("volumeID"):
        out.append(required(f"{path}.volumeID"))
    _named_secret(out, path, source)


def _named_secret(out: Errors, path: str, source: Source) -> None:
    if (reference := source.get("secretRef")) is not None and not reference.get("name"):
        out.append(required(f"{path}.secretRef.name"))


def _storage_os(out: Errors, path: str, source: Source) -> None:
    if not source.get("volumeName"):
        out.append(required(f"{path}.volumeName"))
    else:
        checked(out, f"{path}.volumeName", source["volumeName"], names.dns1123_label)
    if source.get("volumeNamespace"):
        checked(out, f"{path}.volumeNamespace", source["volumeNamespace"], names.dns1123_label)
    _named_secret(out, path, source)


def csi_driver_name(out: Errors, path: str, driver: str) -> None:
    if not driver:
        out.append(required(path))
    if len(driver) > _CSI_DRIVER_LENGTH_MAX:
        out.append(too_long(path, _CSI_DRIVER_LENGTH_MAX))
    for message in names.dns1123_subdomain(driver.lower()):
        out.append(invalid(path, driver, message))


def _csi(out: Errors, path: str, source: Source) -> None:
    csi_driver_name(out, f"{path}.driver", source.get("driver") or "")
    if (reference := source.get("nodePublishSecretRef")) is not None:
        if not reference.get("name"):
            out.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            checked(out, f"{path}.name", reference["name"], names.dns1123_subdomain)


def _downward_files(out: Errors, path: str, items: Sequence[Source]) -> None:
    for item in items:
        if not item.get("path"):
            out.append(required(f"{path}.path"))
        local_non_reserved_path(out, f"{path}.path", item.get("path") or "")
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            environment.field_reference(out, f"{path}.fieldRef", field, environment.VOLUME_FIELD_PATHS)
            if resource is not None:
                out.append(invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
        elif resource is not None:
            environment.resource_reference(out, f"{path}.resourceFieldRef", resource, in_volume=True)
        else:
            out.append(required(path, "one of fieldRef and resourceFieldRef is required"))
        file_mode(out, f"{path}.mode", item.get("mode"))


def _downward_api(out: Errors, path: str, source: Source) -> None:
    file_mode(out, f"{path}.defaultMode", source.get("defaultMode"))
    _downward_files(out, path, source.get("items") or ())


def _projected(out: Errors, path: str, source: Source) -> None:
    file_mode(out, f"{path}.defaultMode", source.get("defaultMode"))
    paths: set[str] = set()
    for i, projection in each(out, source.get("sources") or ()):
        at = f"{path}.sources[{i}]"
        given = 0
        for kind in ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"):
            part = projection.get(kind)
            if part is None:
                continue
            given += 1
            _projection(out, path, f"{at}.{kind}", kind, part, paths)
        if given > 1:
            out.append(forbidden(at, _MORE_THAN_ONE))


def _projection(out: Errors, path: str, at: str, kind: str, part: Source, paths: set[str]) -> None:
    if kind in ("secret", "configMap"):
        name = part.get("name") or ""
        if not name:
            out.append(required(f"{at}.name"))
        items = part.get("items") or ()
        _keys_to_paths(out, f"{at}.items", items)
        for item in items:
            _distinct_path(out, path, item.get("path") or "", name, paths)
    elif kind == "downwardAPI":
        items = part.get("items") or ()
        _downward_files(out, at, items)
        for item in items:
            _distinct_path(out, path, item.get("path") or "", item.get("path"), paths)
    elif kind == "serviceAccountToken":
        seconds = part.get("expirationSeconds") or 0
        if seconds < _TOKEN_SECONDS_MIN:
            out.append(invalid(f"{at}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
        if seconds > _TOKEN_SECONDS_MAX:
            out.append(invalid(f"{at}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"))
        if not part.get("path"):
            out.append(required(f"{path}.path"))
        else:
            local_non_reserved_path(out, f"{path}.path", part["path"])
    elif kind == "podCertificate":
        _pod_certificate(out, at, part)
    elif kind == "clusterTrustBundle":
        if (part.get("name") is None) == (part.get("signerName") is None):
            words = "exactly one of name or signerName must be specified"
            out.append(required(at, words) if part.get("name") is None else invalid(at, "", words))
        if not part.get("path"):
            out.append(required(f"{at}.path"))
        else:
            local_non_reserved_path(out, f"{at}.path", part["path"])


def _pod_certificate(out: Errors, path: str, part: Source) -> None:
    certificates.signer_name(out, f"{path}.signerName", part.get("signerName") or "")
    key_type = part.get("keyType") or ""
    if key_type not in _KEY_TYPES:
        out.append(not_supported(f"{path}.keyType", key_type, list(_KEY_TYPES)))
    seconds = part.get("maxExpirationSeconds")
    if seconds is not None and not _CERTIFICATE_SECONDS_MIN <= seconds <= _CERTIFICATE_SECONDS_MAX:
        words = f"must be in the range [{_CERTIFICATE_SECONDS_MIN}, {_CERTIFICATE_SECONDS_MAX}]"
        out.append(invalid(f"{path}.maxExpirationSeconds", seconds, words))
    given = [field for field in ("credentialBundlePath", "keyPath", "certificateChainPath") if part.get(field)]
    if not given:
        words = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        out.append(required(path, words))
    for field in given:
        local_non_reserved_path(out, f"{path}.{field}", part[field])


def _distinct_path(out: Errors, path: str, file_path: str, shown: Any, paths: set[str]) -> None:
    if not file_path:
        return
    if file_path in paths:
        out.append(invalid(path, shown, "conflicting duplicate paths"))
    paths.add(file_path)


def _ephemeral(out: Errors, path: str, source: Source) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        out.append(required(f"{path}.volumeClaimTemplate"))
        return
    persistent_volume_claims.template(out, f"{path}.volumeClaimTemplate", template)


def _image(out: Errors, path: str, source: Source) -> None:
    if not source.get("reference"):
        out.append(required(f"{path}.reference"))
    policy = source.get("pullPolicy")
    if policy not in ("Always", "IfNotPresent", "Never"):
        if policy:
            out.append(not_supported(f"{path}.pullPolicy", policy, ["Always", "IfNotPresent", "Never"]))


#: in the order in which Kubernetes looks at them
_SOURCES: dict[str, SourceCheck] = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk_partition("pdName"),
    "awsElasticBlockStore": _disk_partition("volumeID"),
    "secret": _files_of("secretName"),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _cinder,
    "cephfs": _needs("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": _downward_api,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "configMap": _files_of("name"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}

VOLUME_SOURCES = tuple(_SOURCES)
#: the sources that a PersistentVolume may have and that are checked as a pod's are
PERSISTENT_SOURCES: dict[str, SourceCheck] = {
    name: _SOURCES[name]
    for name in (
        "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs", "iscsi",
        "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO",
        "storageos",
    )
}  # fmt: skip
