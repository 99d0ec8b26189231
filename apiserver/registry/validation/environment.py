"""Environment variables of containers and references to fields of the pod (core ``ValidateEnv``, ``ValidateEnvFrom``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names, release
from apiserver.machinery.field_errors import invalid, not_supported, required
from apiserver.registry.validation import formats
from apiserver.registry.validation.common import Errors, checked, each, local_non_reserved_path, required_name

#: in the order in which the refusals tell them (sorted)
ENV_FIELD_PATHS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELD_PATHS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELD_PATHS = frozenset((*ENV_FIELD_PATHS, *VOLUME_FIELD_PATHS, "spec.restartPolicy", "spec.schedulerName"))
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE_PAGE_PREFIXES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = ("1m", "1")
_SIZE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPT = re.compile(r"(.*)\['(.*)'\]")


def variables(out: Errors, path: str, found: Sequence[Mapping[str, Any]]) -> None:
    for i, variable in each(out, found):
        name = variable.get("name")
        if not name:
            out.append(required(f"{path}[{i}].name"))
        else:
            for message in _variable_name(name):
                out.append(invalid(f"{path}[{i}].name", name, message))
        if (source := variable.get("valueFrom")) is not None:
            _value_from(out, f"{path}[{i}].valueFrom", source, variable.get("value") or "")


def _variable_name(name: str) -> list[str]:
    """Nearly all that can be printed, since 1.32, where RelaxedEnvironmentVariableValidation is on by default (KEP-4369)."""
    return names.relaxed_env_var_name(name) if release.since(32) else names.env_var_name(name)


def _value_from(out: Errors, path: str, source: Mapping[str, Any], value: str) -> None:
    given = 0
    if (reference := source.get("fieldRef")) is not None:
        given += 1
        field_reference(out, f"{path}.fieldRef", reference, ENV_FIELD_PATHS)
    if (reference := source.get("resourceFieldRef")) is not None:
        given += 1
        resource_reference(out, f"{path}.resourceFieldRef", reference, in_volume=False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(kind)) is not None:
            given += 1
            _key_reference(out, f"{path}.{kind}", reference)
    if (reference := source.get("fileKeyRef")) is not None:
        given += 1
        _file_key_reference(out, f"{path}.fileKeyRef", reference)
    if not given:
        # EnvFiles, KEP-3721
        last = "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`" if release.since(34) else "`configMapKeyRef` or `secretKeyRef`"
        words = f"must specify one of: `fieldRef`, `resourceFieldRef`, {last}"
        out.append(invalid(path, "", words))
    elif value:
        out.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif given > 1:
        out.append(invalid(path, "", "may not have more than one field specified at a time"))


def _key_reference(out: Errors, path: str, reference: Mapping[str, Any]) -> None:
    name = reference.get("name") or ""
    checked(out, f"{path}.name", name, names.dns1123_subdomain)
    required_name(out, f"{path}.key", reference.get("key"), names.config_map_key)


def _file_key_reference(out: Errors, path: str, reference: Mapping[str, Any]) -> None:
    required_name(out, f"{path}.key", reference.get("key"), names.relaxed_env_var_name)
    if not reference.get("path"):
        out.append(required(f"{path}.path"))
    else:
        local_non_reserved_path(out, f"{path}.path", reference["path"])
    if not reference.get("volumeName"):
        out.append(required(f"{path}.volumeName"))


def field_reference(out: Errors, path: str, reference: Mapping[str, Any], supported: Sequence[str]) -> None:
    """An ``ObjectFieldSelector``: an annotation or label by subscript, or one of the named fields."""
    if not reference.get("apiVersion"):
        out.append(required(f"{path}.apiVersion"))
        return
    field_path = reference.get("fieldPath") or ""
    if not field_path:
        out.append(required(f"{path}.fieldPath"))
        return
    if reference["apiVersion"] != "v1":
        words = f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}"
        out.append(invalid(f"{path}.fieldPath", field_path, words))
        return
    subscripted = _SUBSCRIPT.fullmatch(field_path)
    whole = subscripted[1] if subscripted else field_path
    if whole not in _KNOWN_FIELD_PATHS:
        words = f"error converting fieldPath: field label not supported: {field_path}"
        out.append(invalid(f"{path}.fieldPath", field_path, words))
    elif subscripted:
        if whole == "metadata.annotations":
            checked(out, path, subscripted[2].lower(), formats.qualified_name)
        elif whole == "metadata.labels":
            checked(out, path, subscripted[2], formats.qualified_name)
        else:
            out.append(invalid(path, whole, "does not support subscript"))
    elif field_path not in supported:
        out.append(not_supported(f"{path}.fieldPath", field_path, list(supported)))


def resource_reference(out: Errors, path: str, reference: Mapping[str, Any], *, in_volume: bool) -> None:
    """A ``ResourceFieldSelector``."""
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        out.append(required(f"{path}.containerName"))
    elif not resource:
        out.append(required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGE_PREFIXES):
        out.append(not_supported(f"{path}.resource", resource, list(_RESOURCES)))
    divisor = reference.get("divisor")
    if not divisor or str(divisor) == "0":
        return
    if resource in ("limits.cpu", "requests.cpu"):
        if str(divisor) not in _CPU_DIVISORS:
            words = "only divisor's values 1m and 1 are supported with the cpu resource"
            out.append(invalid(f"{path}.divisor", resource, words))
    elif str(divisor) not in _SIZE_DIVISORS and (resource in _RESOURCES or resource.startswith(_HUGE_PAGE_PREFIXES)):
        what = "memory" if resource.endswith(".memory") else "hugepages" if "hugepages-" in resource else "local ephemeral storage"
        words = f"only divisor's values {', '.join(_SIZE_DIVISORS)} are supported with the {what} resource"
        out.append(invalid(f"{path}.divisor", resource, words))


def sources(out: Errors, path: str, found: Sequence[Mapping[str, Any]]) -> None:
    """``envFrom``: whole ConfigMaps and Secrets."""
    for i, source in each(out, found):
        if prefix := source.get("prefix"):
            checked(out, f"{path}[{i}].prefix", prefix, _variable_name)
        given = 0
        for kind in ("configMapRef", "secretRef"):
            if (reference := source.get(kind)) is not None:
                given += 1
                required_name(out, f"{path}[{i}].{kind}.name", reference.get("name"), names.dns1123_subdomain)
        if not given:
            out.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif given > 1:
            out.append(invalid(path, "", "may not have more than one field specified at a time"))
