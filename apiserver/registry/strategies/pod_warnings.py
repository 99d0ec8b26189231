"""What the API server remarks about pods and templates that it nevertheless takes (``Warning`` headers; ``pkg/api/pod/warnings.go``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names, objects
from apiserver.machinery.objects import Object
from apiserver.registry.validation.quantities import is_whole

Part = Mapping[str, Any]

_DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'use "node.kubernetes.io/instance-type" instead',
}
_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "seccomp.security.alpha.kubernetes.io/pod": 'non-functional in v1.27+; use the "seccompProfile" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}


def of_pod(new: Object, old: Object | None) -> list[str]:
    if old is not None and new.get("spec") == old.get("spec"):
        return []
    found = of_pod_spec("spec", new.get("spec") or {}, "metadata", new.get("metadata") or {})
    if old is None and (wrong := names.dns1123_label(objects.name(new))):
        words = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        found.insert(0, f"metadata.name: {words}: {wrong}".replace("['", "[").replace("']", "]"))
    return found


def of_template(path: str, new: Part | None, old: Part | None) -> list[str]:
    if new is None or new == old:
        return []
    return of_pod_spec(f"{path}.spec", new.get("spec") or {}, f"{path}.metadata", new.get("metadata") or {})


def of_pod_spec(path: str, spec: Part, metadata_path: str, metadata: Part) -> list[str]:
    found: list[str] = []
    get = spec.get
    for key in get("nodeSelector") or ():
        if hint := _DEPRECATED_NODE_LABELS.get(key):
            found.append(f"{path}.nodeSelector[{key}]: deprecated since v1.14; {hint}")
    for key in metadata.get("annotations") or ():
        if hint := _DEPRECATED_ANNOTATIONS.get(key):
            found.append(f"{metadata_path}.annotations[{key}]: {hint}")
    if volumes := get("volumes"):
        _volumes(found, path, volumes)
    if aliases := get("hostAliases"):
        _repeated(found, f"{path}.hostAliases", [a.get("ip") or "" for a in aliases], "ip", "hosts")
    if pull_secrets := get("imagePullSecrets"):
        secrets = [s.get("name") or "" for s in pull_secrets]
        _repeated(found, f"{path}.imagePullSecrets", secrets, "name", "name")
        for i, name in enumerate(secrets):
            if not name:
                found.append(f'{path}.imagePullSecrets[{i}]: invalid empty name ""')
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(get(kind) or ()):
            _container(found, f"{path}.{kind}[{i}]", container)
    if (grace := get("terminationGracePeriodSeconds")) is not None and grace < 0:
        found.append(f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1")
    return found


def _volumes(found: list[str], path: str, volumes: Sequence[Part]) -> None:
    for i, volume in enumerate(volumes):
        at = f"{path}.volumes[{i}]"
        if volume.get("gitRepo") is not None:
            found.append(f"{at}.gitRepo: deprecated in v1.11, and disabled by default in v1.33+")
        if volume.get("glusterfs") is not None:
            found.append(f"{at}.glusterfs: deprecated in v1.25, this feature is no longer functional and will be removed")
        if volume.get("scaleIO") is not None:
            found.append(f"{at}.scaleIO: deprecated in v1.16, non-functional in v1.22+")
        if volume.get("flocker") is not None:
            found.append(f"{at}.flocker: deprecated in v1.22, non-functional in v1.25+")
        for kind, since in (("cephfs", "1.28"), ("rbd", "1.28")):
            if volume.get(kind) is not None:
                found.append(f"{at}.{kind}: deprecated in v{since}, non-functional in v1.31+")


def _container(found: list[str], at: str, container: Part) -> None:
    if env := container.get("env"):
        seen: set[str] = set()
        for i, variable in enumerate(env):
            name = variable.get("name") or ""
            if name in seen:
                found.append(f'{at}.env[{i}]: hides previous definition of "{name}", which may be dropped when using apply')
            seen.add(name)
    if ports := container.get("ports"):
        taken = Counter((p.get("containerPort"), p.get("protocol")) for p in ports)
        first: dict[tuple[Any, Any], int] = {}
        for i, port in enumerate(ports):
            key = (port.get("containerPort"), port.get("protocol"))
            if taken[key] > 1 and key in first:
                found.append(f"{at}.ports[{i}]: duplicate port definition with {at}.ports[{first[key]}]")
            first.setdefault(key, i)
    resources = container.get("resources")
    if not resources:
        return
    for side in ("limits", "requests"):
        value = (resources.get(side) or {}).get("memory")
        if value is not None and not is_whole(value):
            found.append(f'{at}.resources.{side}[memory]: fractional byte value "{value}" is invalid, must be an integer')


def _repeated(found: list[str], path: str, keys: Sequence[str], field: str, what: str) -> None:
    seen: set[str] = set()
    for i, key in enumerate(keys):
        if key in seen:
            found.append(f'{path}[{i}].{field}: duplicate {what} "{key}"')
        seen.add(key)
