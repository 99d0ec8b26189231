"""What in a pod must go together: its operating system, the namespaces that it shares with its node, its resources and its containers'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.machinery import names, quantity
from apiserver.machinery.field_errors import forbidden, invalid, not_supported, too_long
from apiserver.registry.validation.common import Errors, checked, each

Part = Mapping[str, Any]

_NOTHING: Part = {}
_KINDS = ("initContainers", "containers", "ephemeralContainers")
_NOT_WINDOWS = "cannot be set for a windows pod"
#: of a pod's spec, in the order in which Kubernetes looks at them; those under ``securityContext`` first
_LINUX_POD = (
    "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC",
    "securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy", "securityContext.sysctls",
    "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup", "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
)  # fmt: skip
_LINUX_CONTAINER = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
#: shared with the node only where they are true
_FLAGS = ("hostPID", "hostIPC")
HOSTNAME_LENGTH_MAX = 64
_POD_RESOURCES = ("cpu", "memory")


def containers_of(spec: Part, path: str) -> Iterator[tuple[str, Part]]:
    """Every container of any kind with its path."""
    for kind in _KINDS:
        for i, container in enumerate(spec.get(kind) or ()):
            yield f"{path}.{kind}[{i}]", container


def host_processes(out: Errors, path: str, spec: Part) -> None:
    """Of Windows pods: either all containers are processes of the host, on its network, or none is."""
    of_pod = ((spec.get("securityContext") or _NOTHING).get("windowsOptions") or _NOTHING).get("hostProcess")
    every = host = 0
    for at, container in containers_of(spec, path):
        every += 1
        own = ((container.get("securityContext") or _NOTHING).get("windowsOptions") or _NOTHING).get("hostProcess")
        if of_pod is not None and own is not None and of_pod != own:
            words = f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}"
            out.append(invalid(f"{at}.securityContext.windowsOptions.hostProcess", own, words))
        host += bool(of_pod if own is None else own)
    if not host:
        return
    if host != every:
        words = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        out.append(invalid(path, "", words))
    if not spec.get("hostNetwork"):
        words = "hostNetwork must be true if pod contains any hostProcess containers"
        out.append(invalid(f"{path}.hostNetwork", False, words))


def user_namespace(out: Errors, path: str, spec: Part) -> None:
    """A pod with users of its own has namespaces of its own."""
    if spec.get("hostUsers") is not False:
        return
    for field, name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            out.append(forbidden(f"{path}.{name}", "when `pod.Spec.HostUsers` is false"))


def operating_system(out: Errors, path: str, spec: Part) -> None:
    """What the other system has may not be set."""
    name = (spec.get("os") or _NOTHING).get("name")
    if name == "linux":
        words = "windows options cannot be set for a linux pod"
        if (spec.get("securityContext") or _NOTHING).get("windowsOptions") is not None:
            out.append(forbidden(f"{path}.securityContext.windowsOptions", words))
        for at, container in containers_of(spec, path):
            if (container.get("securityContext") or _NOTHING).get("windowsOptions") is not None:
                out.append(forbidden(f"{at}.securityContext.windowsOptions", words))
    elif name == "windows":
        context = spec.get("securityContext") or _NOTHING
        for field in _LINUX_POD:
            group, _, inner = field.partition(".")
            value = context.get(inner) if inner else spec.get(group)
            if value if group in _FLAGS else value is not None:
                out.append(forbidden(f"{path}.{field}", _NOT_WINDOWS))
        for at, container in containers_of(spec, path):
            own = container.get("securityContext") or _NOTHING
            for field in _LINUX_CONTAINER:
                if own.get(field) is not None:
                    out.append(forbidden(f"{at}.securityContext.{field}", _NOT_WINDOWS))


def hostname_override(out: Errors, path: str, spec: Part) -> None:
    override = spec.get("hostnameOverride")
    if override is None:
        return
    at = f"{path}.hostnameOverride"
    checked(out, at, override, names.dns1123_subdomain)
    if len(override) > HOSTNAME_LENGTH_MAX:
        out.append(too_long(at, HOSTNAME_LENGTH_MAX))
    if spec.get("hostNetwork"):
        out.append(forbidden(at, "cannot be set when `hostNetwork` is true"))
    if spec.get("setHostnameAsFQDN"):
        out.append(forbidden(at, "cannot be set when `setHostnameAsFQDN` is true"))


def pod_resources(out: Errors, path: str, spec: Part) -> None:
    """``spec.resources``: of the resources that a whole pod may ask for, no less than its containers ask for."""
    found = spec.get("resources") or _NOTHING
    if not found:
        return
    at = f"{path}.resources"
    if found.get("claims"):
        out.append(forbidden(f"{at}.claims", "claims cannot be set for Resources at pod-level"))
    for side in ("limits", "requests"):
        for name in found.get(side) or ():
            if name not in _POD_RESOURCES and not name.startswith("hugepages-"):
                out.append(not_supported(f"{at}.{side}[{name}]", name, ["cpu", "hugepages-", "memory"]))
    for name, amount in (found.get("requests") or _NOTHING).items():
        wanted = _requested(spec, name)
        if wanted > quantity.parse(str(amount)):
            words = f"must be greater than or equal to aggregate container requests of {wanted}"
            out.append(invalid(f"{at}.requests[{name}]", str(amount), words))
    limits = found.get("limits") or _NOTHING
    for where, container in containers_of(spec, path):
        for name, amount in ((container.get("resources") or _NOTHING).get("limits") or _NOTHING).items():
            if name in limits and quantity.parse(str(amount)) > quantity.parse(str(limits[name])):
                words = f"must be less than or equal to pod limits of {limits[name]}"
                out.append(invalid(f"{where}.resources.limits[{name}]", str(amount), words))


def _requested(spec: Part, name: str) -> quantity.Quantity:
    """Of all containers that run at once; of those that start one after the other the largest, with the sidecars started before it."""

    def of(container: Part) -> quantity.Quantity:
        resources = container.get("resources") or _NOTHING
        return quantity.parse(str((resources.get("requests") or _NOTHING).get(name) or 0))

    sidecars, largest = quantity.ZERO, quantity.ZERO
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars = sidecars + of(container)
            largest = max(largest, sidecars)
        else:
            largest = max(largest, sidecars + of(container))
    total = sidecars
    for container in spec.get("containers") or ():
        total = total + of(container)
    return max(total, largest)


def namespaced_sysctls(out: Errors, path: str, spec: Part) -> None:
    """A kernel parameter of a namespace that the pod shares with its node is the node's."""
    for i, sysctl in each(out, (spec.get("securityContext") or _NOTHING).get("sysctls") or ()):
        given = sysctl.get("name") or ""
        name = given.replace("/", ".")
        of_ipc = name == "kernel.sem" or name.startswith(("kernel.shm", "kernel.msg", "fs.mqueue."))
        for field, shared in (("hostNetwork", name.startswith("net.")), ("hostIPC", of_ipc)):
            if shared and spec.get(field):
                out.append(invalid(f"{path}.securityContext.sysctls[{i}].name", given, f"may not be specified when '{field}' is true"))
