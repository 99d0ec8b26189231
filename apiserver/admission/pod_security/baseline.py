"""The rules of the level ``baseline`` (Pod Security Standards)."""

from __future__ import annotations

from typing import Any

from apiserver.admission.pod_security.spec import (
    Spec,
    Violation,
    bad_values,
    containers,
    in_own_users,
    names_where,
    quoted,
    security,
    setters,
    subject,
    uses,
)
from apiserver.machinery import objects

_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
    "net.ipv4.tcp_slow_start_after_idle": 37,
    "net.ipv4.tcp_notsent_lowat": 37,
}
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"


def check(metadata: dict[str, Any], spec: Spec, minor: int, replaced: frozenset[str] = frozenset()) -> list[Violation]:
    """``minor``: the Kubernetes version whose rules are asked for. ``replaced``: the rules that the restricted level says more of."""
    found = [
        _apparmor(metadata, spec),
        None if "capabilities" in replaced else _capabilities(spec),
        _host_namespaces(spec),
        None if "hostPath" in replaced else _host_paths(spec),
        _host_ports(spec),
        _host_probes(spec) if minor >= 34 else None,
        _privileged(spec),
        # in a user namespace an unmasked /proc shows nothing of the host
        None if "procMount" in replaced or (minor >= 35 and in_own_users(spec)) else proc_mount(spec),
        _selinux(spec, minor),
        None if "seccomp" in replaced else seccomp_setters(spec) if minor >= 19 else _seccomp_annotations(metadata, spec),
        _sysctls(spec, minor),
        _windows_host_process(spec),
    ]
    return [violation for violation in found if violation is not None]


def _apparmor(metadata: dict[str, Any], spec: Spec) -> Violation | None:
    annotations = metadata.get("annotations") or {}
    marked = [
        f'{key}="{value}"'
        for key, value in sorted(annotations.items())
        if key.startswith(_APPARMOR_PREFIX) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    ]
    kinds = sorted(bad_values(spec, "appArmorProfile", "type", allowed=("RuntimeDefault", "Localhost")))
    who = setters(spec, "appArmorProfile", "type", bad=kinds)
    if marked:
        who = " and ".join([*filter(None, [who]), f"annotation{'s' if len(marked) > 1 else ''}"])
    if not who:
        return None
    wrong = [*kinds, *marked]
    reason = f"forbidden AppArmor profile{'s' if len(wrong) > 1 else ''}"
    return Violation(reason=reason, detail=f"{who} must not set AppArmor profile type to {quoted(wrong)}")


def _capabilities(spec: Spec) -> Violation | None:
    names: list[str] = []
    added: set[str] = set()
    for container in containers(spec):
        wrong = {c for c in objects.get(security(container), "capabilities", "add", default=()) if c not in _CAPABILITIES}
        if wrong:
            names.append(str(container.get("name")))
            added |= wrong
    if not names:
        return None
    detail = f"{subject(names)} must not include {quoted(sorted(added))} in securityContext.capabilities.add"
    return Violation(reason="non-default capabilities", detail=detail)


def _host_namespaces(spec: Spec) -> Violation | None:
    wrong = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return Violation(reason="host namespaces", detail=", ".join(wrong)) if wrong else None


def _host_paths(spec: Spec) -> Violation | None:
    wrong = [str(v.get("name")) for v in spec.get("volumes") or () if v.get("hostPath") is not None]
    return Violation(reason="hostPath volumes", detail=subject(wrong, "volume")) if wrong else None


def _host_ports(spec: Spec) -> Violation | None:
    names: list[str] = []
    ports: set[str] = set()
    for container in containers(spec):
        used = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            names.append(str(container.get("name")))
            ports |= used
    return Violation(reason="hostPort", detail=uses(names, "container", "hostPort", sorted(ports))) if names else None


def _host_probes(spec: Spec) -> Violation | None:
    names: set[str] = set()
    hosts: set[str] = set()
    for container in containers(spec):
        handlers = [container.get(probe) or {} for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [objects.get(container, "lifecycle", hook, default={}) for hook in ("postStart", "preStop")]
        named = [objects.get(h, kind, "host") for h in handlers for kind in ("httpGet", "tcpSocket")]
        wrong = {str(host) for host in named if host}
        if wrong:
            names.add(str(container.get("name")))
            hosts |= wrong
    if not names:
        return None
    shown = [f'"{host}"' for host in sorted(hosts)]
    return Violation(reason="probe or lifecycle host", detail=uses(sorted(names), "container", "probe or lifecycle host", shown))


def _privileged(spec: Spec) -> Violation | None:
    names = names_where(spec, "privileged", bad=(True,))
    if not names:
        return None
    return Violation(reason="privileged", detail=f"{subject(names)} must not set securityContext.privileged=true")


def proc_mount(spec: Spec) -> Violation | None:
    wrong = sorted({str(objects.get(security(c), "procMount")) for c in containers(spec)} - {"None", "Default"})
    if not wrong:
        return None
    detail = f"{subject(names_where(spec, 'procMount', bad=wrong))} must not set securityContext.procMount to {quoted(wrong)}"
    return Violation(reason="procMount", detail=detail)


def _selinux(spec: Spec, minor: int) -> Violation | None:
    allowed = _SELINUX_TYPES if minor < 31 else (*_SELINUX_TYPES, "container_engine_t")
    types = sorted(bad_values(spec, "seLinuxOptions", "type", allowed=allowed))
    who: list[str] = []
    names: list[str] = []
    fields: set[str] = set()
    for holder in (spec, *containers(spec)):
        options = security(holder).get("seLinuxOptions") or {}
        set_here = {field for field in ("user", "role") if options.get(field)}
        fields |= set_here
        if set_here or options.get("type") in types:
            (who if holder is spec else names).append("pod" if holder is spec else str(holder.get("name")))
    if names:
        who.append(subject(names))
    if not who:
        return None
    told = [f"type{'s' if len(types) > 1 else ''} {quoted(types)}"] if types else []
    told += [f"{field} may not be set" for field in ("user", "role") if field in fields]
    detail = f"{' and '.join(who)} set forbidden securityContext.seLinuxOptions: {'; '.join(told)}"
    return Violation(reason="seLinuxOptions", detail=detail)


def seccomp_setters(spec: Spec) -> Violation | None:
    """Who asks for what is no profile of the runtime or of the node."""
    wrong = sorted(bad_values(spec, "seccompProfile", "type", allowed=("RuntimeDefault", "Localhost")))
    if not wrong:
        return None
    who = setters(spec, "seccompProfile", "type", bad=wrong)
    return Violation(reason="seccompProfile", detail=f"{who} must not set securityContext.seccompProfile.type to {quoted(wrong)}")


def _seccomp_annotations(metadata: dict[str, Any], spec: Spec) -> Violation | None:
    """Before there was a field for it."""
    annotations = metadata.get("annotations") or {}
    wrong: set[str] = set()
    for key in (_SECCOMP_POD, *(f"{_SECCOMP_CONTAINER}{c.get('name')}" for c in containers(spec))):
        value = annotations.get(key)
        if value is not None and value not in ("runtime/default", "docker/default") and not value.startswith("localhost/"):
            wrong.add(f'{key}="{value}"')
    if not wrong:
        return None
    return Violation(reason="seccompProfile", detail=f"forbidden annotation{'s' if len(wrong) > 1 else ''} {', '.join(sorted(wrong))}")


def _sysctls(spec: Spec, minor: int) -> Violation | None:
    names = [str(s.get("name")) for s in security(spec).get("sysctls") or ()]
    wrong = [name for name in names if _SYSCTLS.get(name, 1 << 30) > minor]
    return Violation(reason="forbidden sysctls", detail=", ".join(wrong)) if wrong else None


def _windows_host_process(spec: Spec) -> Violation | None:
    who = setters(spec, "windowsOptions", "hostProcess", bad=(True,))
    return Violation(reason="hostProcess", detail=f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None
