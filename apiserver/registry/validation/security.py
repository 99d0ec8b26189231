"""Security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import duplicate, invalid, not_supported, required
from apiserver.registry.validation import pod_platform
from apiserver.registry.validation.common import Errors, each, known_value, local_descending_path, user_or_group_id

_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL_NAME = rf"({_SYSCTL}[\./])*{_SYSCTL}"
SYSCTL_LENGTH_MAX = 253


def container_context(out: Errors, path: str, context: Mapping[str, Any], host_users: bool = True) -> None:
    user_or_group_id(out, f"{path}.runAsUser", context.get("runAsUser"))
    user_or_group_id(out, f"{path}.runAsGroup", context.get("runAsGroup"))
    if (proc_mount := context.get("procMount")) is not None:
        known_value(out, f"{path}.procMount", proc_mount, ("Default", "Unmasked"))
        if host_users and proc_mount == "Unmasked":
            out.append(invalid(f"{path}.procMount", proc_mount, "`hostUsers` must be false to use `Unmasked`"))
    if (profile := context.get("seccompProfile")) is not None:
        _profile(out, f"{path}.seccompProfile", profile, "seccomp", "seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            out.append(invalid(path, dict(context), words))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            words = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            out.append(invalid(path, dict(context), words))
    if (windows := context.get("windowsOptions")) is not None:
        _windows_options(out, f"{path}.windowsOptions", windows)
    if (profile := context.get("appArmorProfile")) is not None:
        _app_armor_profile(out, f"{path}.appArmorProfile", profile)


def pod_context(out: Errors, spec_path: str, spec: Mapping[str, Any]) -> None:
    """``spec.securityContext`` with what in the spec goes with it: host ports and namespaces."""
    path = f"{spec_path}.securityContext"
    if spec.get("hostNetwork"):
        for i, container in each(out, spec.get("containers") or ()):
            for j, port in each(out, container.get("ports") or ()):
                host_port = port.get("hostPort") or 0
                if host_port and host_port != (port.get("containerPort") or 0):
                    words = "must match `containerPort` when `hostNetwork` is true"
                    out.append(invalid(f"{spec_path}.containers[{i}].ports[{j}].hostPort", host_port, words))
    context = spec.get("securityContext")
    if context:
        pod_platform.namespaced_sysctls(out, spec_path, spec)
        _pod_ids(out, path, context)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        words = "ShareProcessNamespace and HostPID cannot both be enabled"
        out.append(invalid(f"{path}.shareProcessNamespace", True, words))
    if context:
        _pod_context_rest(out, path, context)


def _pod_ids(out: Errors, path: str, context: Mapping[str, Any]) -> None:
    user_or_group_id(out, f"{path}.fsGroup", context.get("fsGroup"))
    user_or_group_id(out, f"{path}.runAsUser", context.get("runAsUser"))
    user_or_group_id(out, f"{path}.runAsGroup", context.get("runAsGroup"))
    for i, group in each(out, context.get("supplementalGroups") or ()):
        user_or_group_id(out, f"{path}.supplementalGroups[{i}]", group)


def _pod_context_rest(out: Errors, path: str, context: Mapping[str, Any]) -> None:
    if sysctls := context.get("sysctls"):
        _sysctls(out, f"{path}.sysctls", sysctls)
    if (policy := context.get("fsGroupChangePolicy")) is not None:
        known_value(out, f"{path}.fsGroupChangePolicy", policy, ("Always", "OnRootMismatch"))
    if (profile := context.get("seccompProfile")) is not None:
        _profile(out, f"{path}.seccompProfile", profile, "seccomp", "seccompProfile")
    if (windows := context.get("windowsOptions")) is not None:
        _windows_options(out, f"{path}.windowsOptions", windows)
    if (profile := context.get("appArmorProfile")) is not None:
        _app_armor_profile(out, f"{path}.appArmorProfile", profile)
    if (policy := context.get("supplementalGroupsPolicy")) is not None:
        known_value(out, f"{path}.supplementalGroupsPolicy", policy, ("Merge", "Strict"))
    if (policy := context.get("seLinuxChangePolicy")) is not None:
        known_value(out, f"{path}.seLinuxChangePolicy", policy, ("MountOption", "Recursive"))


def _profile(out: Errors, path: str, profile: Mapping[str, Any], what: str, field: str) -> None:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        out.append(required(f"{path}.type", f"type is required when {field} is set"))
    elif kind not in _PROFILE_TYPES:
        out.append(not_supported(f"{path}.type", kind, list(_PROFILE_TYPES)))
    if kind == "Localhost":
        if local is None:
            out.append(required(f"{path}.localhostProfile", f"must be set when {what} type is Localhost"))
        else:
            local_descending_path(out, f"{path}.localhostProfile", local)
    elif local is not None:
        out.append(invalid(f"{path}.localhostProfile", dict(profile), f"can only be set when {what} type is Localhost"))


def _app_armor_profile(out: Errors, path: str, profile: Mapping[str, Any]) -> None:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if kind == "Localhost":
        if local is None:
            out.append(required(f"{path}.localhostProfile", "must be set when AppArmor type is Localhost"))
        elif not local.strip() or local != local.strip():
            out.append(invalid(f"{path}.localhostProfile", local, "must not be padded with whitespace"))
    elif kind in ("RuntimeDefault", "Unconfined"):
        if local is not None:
            words = "can only be set when AppArmor type is Localhost"
            out.append(invalid(f"{path}.localhostProfile", local, words))
    elif kind:
        out.append(not_supported(f"{path}.type", kind, list(_PROFILE_TYPES)))
    else:
        out.append(required(f"{path}.type", "type is required when appArmorProfile is set"))


def _sysctls(out: Errors, path: str, found: Sequence[Mapping[str, Any]]) -> None:
    seen: set[str] = set()
    for i, sysctl in each(out, found):
        name = sysctl.get("name") or ""
        if not name:
            out.append(required(f"{path}[{i}].name"))
        elif len(name) > SYSCTL_LENGTH_MAX or not re.fullmatch(_SYSCTL_NAME, name):
            words = f"must have at most {SYSCTL_LENGTH_MAX} characters and match regex {_SYSCTL_NAME}"
            out.append(invalid(f"{path}[{i}].name", name, words))
        elif name in seen:
            out.append(duplicate(f"{path}[{i}].name", name))
        seen.add(name)


def _windows_options(out: Errors, path: str, options: Mapping[str, Any]) -> None:
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        for message in names.dns1123_subdomain(name):
            out.append(invalid(f"{path}.gmsaCredentialSpecName", name, message))
    if (spec := options.get("gmsaCredentialSpec")) is not None:
        if not spec:
            out.append(invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string"))
        elif len(spec) > 64 * 1024:
            out.append(invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec size must be under 65536 bytes"))
    if (user := options.get("runAsUserName")) is not None:
        _windows_user(out, f"{path}.runAsUserName", user)


def _windows_user(out: Errors, path: str, user: str) -> None:
    """``DOMAIN\\user`` as Windows takes it."""
    if not user:
        out.append(invalid(path, user, "runAsUserName cannot be an empty string"))
        return
    if re.search("[\x00-\x1f\x7f]", user):
        out.append(invalid(path, user, "runAsUserName cannot contain control characters"))
    parts = user.split("\\")
    if len(parts) > 2:
        out.append(invalid(path, user, "runAsUserName cannot contain more than one backslash"))
        return
    domain, name = (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])
    if len(parts) == 2 and not re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?", domain):
        out.append(invalid(path, user, "runAsUserName's Domain doesn't match the NetBios nor the DNS format"))
    if not name:
        out.append(invalid(path, user, "runAsUserName's User cannot be empty"))
    elif len(name) > 104:
        out.append(invalid(path, user, "runAsUserName's User length must not be longer than 104 characters"))
    if name.strip(". ") == "" and name:
        out.append(invalid(path, user, "runAsUserName's User cannot contain only periods or spaces"))
    if re.search(r'["/\\:;|=,+*?<>@\[\]]', name):
        out.append(invalid(path, user, "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"))
