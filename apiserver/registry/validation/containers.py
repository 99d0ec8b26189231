"""Containers of a pod: names, ports, environment, mounts, policies, resources (core ``validateContainers``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import duplicate, forbidden, invalid, not_found, not_supported, required
from apiserver.registry.validation import environment, formats, probes, quantities, restart_rules, security
from apiserver.registry.validation.common import Errors, each, local_descending_path, no_backsteps

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_MOUNT_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RESTARTABLE_ONLY = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
#: what an ephemeral container may say; all else belongs to containers that a pod depends on
_EPHEMERAL_FIELDS = frozenset((
    "name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices", "terminationMessagePath",
    "terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce", "tty", "targetContainerName",
))  # fmt: skip
_REFUSED_EPHEMERAL_FIELDS = (
    "ports", "resources", "resizePolicy", "restartPolicy", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip


@dataclass(slots=True)
class PodScope:
    """What the containers of one pod refer to: its good volumes by name, its claims, its grace period in seconds, whether the
    pod's containers share the host's network."""

    volumes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    claim_names: frozenset[str] = frozenset()
    grace_period_seconds: int | None = None
    host_network: bool = False
    host_users: bool = True
    #: the pod's
    restart_policy: str = ""
    #: the name of its operating system, "" where it does not say
    system: str = ""


def containers(out: Errors, path: str, found: Sequence[Mapping[str, Any]] | None, scope: PodScope) -> None:
    if not found:
        out.append(required(path))
        return
    seen: set[str] = set()
    for i, container in each(out, found):
        at = f"{path}[{i}]"
        name = container.get("name") or ""
        _common(out, at, container, name, scope)
        if name in seen:
            out.append(duplicate(f"{at}.name", name))
        seen.add(name)
        _long_running_parts(out, at, container, scope)
        restart_rules.of_container(out, at, container)
    _host_port_conflicts(out, path, found)


def init_containers(
    out: Errors, path: str, found: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], scope: PodScope
) -> None:
    seen = {container.get("name") or "" for container in others}
    for i, container in each(out, found):
        at = f"{path}[{i}]"
        name = container.get("name") or ""
        _common(out, at, container, name, scope)
        policy = container.get("restartPolicy")
        restart_rules.of_container(out, at, container)
        if name in seen:
            out.append(duplicate(f"{at}.name", name))
        elif name:
            seen.add(name)
        _host_port_conflicts(out, path, [container])
        if policy == "Always":
            _long_running_parts(out, at, container, scope)
        else:
            for part in _RESTARTABLE_ONLY:
                if container.get(part) is not None:
                    out.append(forbidden(f"{at}.{part}", "may not be set for init containers without restartPolicy=Always"))


def ephemeral_containers(
    out: Errors, path: str, found: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], scope: PodScope
) -> None:
    """``others`` are the pod's containers and init containers."""
    targets = {container.get("name") or "" for container in others}
    seen = set(targets)
    for i, container in each(out, found):
        at = f"{path}[{i}]"
        name = container.get("name") or ""
        _common(out, at, container, name, scope)
        if name in seen:
            out.append(duplicate(f"{at}.name", name))
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in targets:
            out.append(not_found(f"{at}.targetContainerName", target))
        for part in _REFUSED_EPHEMERAL_FIELDS:
            if container.get(part):
                out.append(forbidden(f"{at}.{part}", "cannot be set for an Ephemeral Container"))
        for j, mount in each(out, container.get("volumeMounts") or ()):
            if mount.get("subPath"):
                out.append(forbidden(f"{at}.volumeMounts[{j}].subPath", "cannot be set for an Ephemeral Container"))
            if mount.get("subPathExpr"):
                out.append(forbidden(f"{at}.volumeMounts[{j}].subPathExpr", "cannot be set for an Ephemeral Container"))


def image_whitespace(out: Errors, path: str, found: Sequence[Mapping[str, Any]]) -> None:
    """Of pods only: templates have always taken images with spaces around them."""
    for i, container in each(out, found):
        image = container.get("image") or ""
        if image != image.strip():
            out.append(invalid(f"{path}[{i}].image", image, "must not have leading or trailing whitespace"))


def _common(out: Errors, at: str, container: Mapping[str, Any], name: str, scope: PodScope) -> None:
    """What holds of every sort of container."""
    get = container.get
    if not name:
        out.append(required(f"{at}.name"))
    else:
        for message in names.dns1123_label(name):
            out.append(invalid(f"{at}.name", name, message))
    if not get("image"):
        out.append(required(f"{at}.image"))
    message_policy = get("terminationMessagePolicy")
    if message_policy not in _MESSAGE_POLICIES:
        if message_policy:
            out.append(invalid(f"{at}.terminationMessagePolicy", message_policy, "must be 'File' or 'FallbackToLogsOnError'"))
        else:
            out.append(required(f"{at}.terminationMessagePolicy", "must be 'File' or 'FallbackToLogsOnError'"))
    if ports := get("ports"):
        _ports(out, f"{at}.ports", ports)
    if env := get("env"):
        environment.variables(out, f"{at}.env", env)
    if env_from := get("envFrom"):
        environment.sources(out, f"{at}.envFrom", env_from)
    mounts, devices = get("volumeMounts") or (), get("volumeDevices") or ()
    if mounts:
        _volume_mounts(out, f"{at}.volumeMounts", mounts, devices, container, scope)
    if devices:
        _volume_devices(out, f"{at}.volumeDevices", devices, mounts, scope)
    pull_policy = get("imagePullPolicy")
    if pull_policy not in _PULL_POLICIES:
        if pull_policy:
            out.append(not_supported(f"{at}.imagePullPolicy", pull_policy, list(_PULL_POLICIES)))
        else:
            out.append(required(f"{at}.imagePullPolicy"))
    if resources := get("resources"):
        quantities.resource_requirements(out, f"{at}.resources", resources, scope.claim_names)
    if resize := get("resizePolicy"):
        _resize_policy(out, f"{at}.resizePolicy", resize, scope.restart_policy)
    if context := get("securityContext"):
        security.container_context(out, f"{at}.securityContext", context, scope.host_users)


def _long_running_parts(out: Errors, at: str, container: Mapping[str, Any], scope: PodScope) -> None:
    get = container.get
    if lifecycle := get("lifecycle"):
        probes.lifecycle(out, f"{at}.lifecycle", lifecycle, scope.grace_period_seconds, scope.system)
    if (probe := get("livenessProbe")) is not None:
        probes.liveness(out, f"{at}.livenessProbe", probe)
    if (probe := get("readinessProbe")) is not None:
        probes.readiness(out, f"{at}.readinessProbe", probe)
    if (probe := get("startupProbe")) is not None:
        probes.liveness(out, f"{at}.startupProbe", probe)


def _ports(out: Errors, path: str, ports: Sequence[Mapping[str, Any]]) -> None:
    seen: set[str] = set()
    for i, port in each(out, ports):
        if name := port.get("name"):
            found = names.port_name(name)
            for message in found:
                out.append(invalid(f"{path}[{i}].name", name, message))
            if not found and name in seen:
                out.append(duplicate(f"{path}[{i}].name", name))
            elif not found:
                seen.add(name)
        number = port.get("containerPort") or 0
        if number == 0:
            out.append(required(f"{path}[{i}].containerPort"))
        elif not 1 <= number <= 65535:
            out.append(invalid(f"{path}[{i}].containerPort", number, formats.inclusive_range(1, 65535)))
        host_port = port.get("hostPort") or 0
        if host_port and not 1 <= host_port <= 65535:
            out.append(invalid(f"{path}[{i}].hostPort", host_port, formats.inclusive_range(1, 65535)))
        protocol = port.get("protocol")
        if protocol not in _PROTOCOLS:
            if protocol:
                out.append(not_supported(f"{path}[{i}].protocol", protocol, list(_PROTOCOLS)))
            else:
                out.append(required(f"{path}[{i}].protocol"))


def _host_port_conflicts(out: Errors, path: str, found: Sequence[Mapping[str, Any]]) -> None:
    """Two containers of one pod that want the same port of the node."""
    taken: set[str] = set()
    for i, container in each(out, found):
        for j, port in each(out, container.get("ports") or ()):
            if host_port := port.get("hostPort"):
                name = f"{port.get('protocol') or ''}/{port.get('hostIP') or ''}/{host_port}"
                if name in taken:
                    out.append(duplicate(f"{path}[{i}].ports[{j}].hostPort", name))
                taken.add(name)


def _volume_mounts(
    out: Errors,
    path: str,
    mounts: Sequence[Mapping[str, Any]],
    devices: Sequence[Mapping[str, Any]],
    container: Mapping[str, Any],
    scope: PodScope,
) -> None:
    mount_points: set[str] = set()
    device_names = {device.get("name") or "" for device in devices}
    device_paths = {device.get("devicePath") or "" for device in devices}
    for i, mount in each(out, mounts):
        name, mount_path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            out.append(required(f"{path}[{i}].name"))
        if name not in scope.volumes:
            out.append(not_found(f"{path}[{i}].name", name))
        if not mount_path:
            out.append(required(f"{path}[{i}].mountPath"))
        if mount_path in mount_points:
            out.append(invalid(f"{path}[{i}].mountPath", mount_path, "must be unique"))
        mount_points.add(mount_path)
        if name in device_names:
            out.append(invalid(f"{path}[{i}].name", name, "must not already exist in volumeDevices"))
        if mount_path in device_paths:
            out.append(invalid(f"{path}[{i}].mountPath", mount_path, "must not already exist as a path in volumeDevices"))
        sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
        if sub_path:
            local_descending_path(out, f"{path}.subPath", sub_path)
        if expression:
            if sub_path:
                out.append(invalid(f"{path}[{i}].subPathExpr", expression, "subPathExpr and subPath are mutually exclusive"))
            local_descending_path(out, f"{path}.subPathExpr", expression)
        if (propagation := mount.get("mountPropagation")) is not None:
            _mount_propagation(out, f"{path}.mountPropagation", propagation, container)
        if (recursive := mount.get("recursiveReadOnly")) is not None:
            _recursive_read_only(out, f"{path}.recursiveReadOnly", recursive, mount)


def _mount_propagation(out: Errors, path: str, propagation: str, container: Mapping[str, Any]) -> None:
    if propagation not in _MOUNT_PROPAGATIONS:
        out.append(not_supported(path, propagation, list(_MOUNT_PROPAGATIONS)))
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        out.append(forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))


def _recursive_read_only(out: Errors, path: str, value: str, mount: Mapping[str, Any]) -> None:
    if value not in ("Disabled", "Enabled", "IfPossible"):
        out.append(not_supported(path, value, ["Disabled", "Enabled", "IfPossible"]))
    elif value != "Disabled":
        if not mount.get("readOnly"):
            out.append(forbidden(path, "may only be specified when readOnly is true"))
        if mount.get("mountPropagation") not in (None, "", "None"):
            out.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))


def _volume_devices(
    out: Errors, path: str, devices: Sequence[Mapping[str, Any]], mounts: Sequence[Mapping[str, Any]], scope: PodScope
) -> None:
    seen: set[str] = set()
    paths: set[str] = set()
    mount_names = {mount.get("name") or "" for mount in mounts}
    mount_paths = {mount.get("mountPath") or "" for mount in mounts}
    for i, device in each(out, devices):
        name, device_path = device.get("name") or "", device.get("devicePath") or ""
        volume = scope.volumes.get(name)
        if not name:
            out.append(required(f"{path}[{i}].name"))
        if name in seen:
            out.append(invalid(f"{path}[{i}].name", name, "must be unique"))
        if volume is not None and not ("persistentVolumeClaim" in volume or "ephemeral" in volume):
            words = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            out.append(invalid(f"{path}[{i}].name", name, words))
        if volume is None:
            out.append(not_found(f"{path}[{i}].name", name))
        if not device_path:
            out.append(required(f"{path}[{i}].devicePath"))
        if device_path in paths:
            out.append(invalid(f"{path}[{i}].devicePath", device_path, "must be unique"))
        backsteps: Errors = []
        no_backsteps(backsteps, "", device_path)
        if backsteps:
            out.append(invalid(f"{path}[{i}].devicePath", device_path, "can not contain backsteps ('..')"))
        else:
            paths.add(device_path)
        if name in mount_names:
            out.append(invalid(f"{path}[{i}].name", name, "must not already exist in volumeMounts"))
        if device_path in mount_paths:
            out.append(invalid(f"{path}[{i}].devicePath", device_path, "must not already exist as a path in volumeMounts"))
        if name:
            seen.add(name)


def _resize_policy(out: Errors, path: str, policies: Sequence[Mapping[str, Any]], pod_restart_policy: str) -> None:
    seen: set[str] = set()
    for i, policy in each(out, policies):
        resource = policy.get("resourceName") or ""
        if resource in seen:
            out.append(duplicate(f"{path}[{i}]", resource))
        seen.add(resource)
        if resource not in ("cpu", "memory"):
            if resource:
                out.append(not_supported(path, resource, ["cpu", "memory"]))
            else:
                out.append(required(path))
        restart = policy.get("restartPolicy") or ""
        if restart not in ("NotRequired", "RestartContainer"):
            if restart:
                out.append(not_supported(path, restart, ["NotRequired", "RestartContainer"]))
            else:
                out.append(required(path))
        if pod_restart_policy == "Never" and restart != "NotRequired":
            out.append(invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
