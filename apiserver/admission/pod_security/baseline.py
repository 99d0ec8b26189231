"""The rules of the level ``baseline`` (Pod Security Standards)."""

from __future__ import annotations

from typing import Any

from apiserver.admission.pod_security.spec import Spec, Violation, containers, names_where, quoted, security, subject
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
}
_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
_APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"


def check(metadata: dict[str, Any], spec: Spec, minor: int) -> list[Violation]:
    """``minor``: the Kubernetes version whose rules are asked for."""
    found = [
        _apparmor(metadata, spec),
        _capabilities(spec),
        _host_namespaces(spec),
        _host_paths(spec),
        _host_ports(spec),
        _host_probes(spec) if minor >= 34 else None,
        _privileged(spec),
        _proc_mount(spec, minor),
        _selinux(spec, minor),
        _seccomp(spec),
        _sysctls(spec, minor),
        _windows_host_process(spec),
    ]
    return [violation for violation in found if violation is not None]


def _apparmor(metadata: dict[str, Any], spec: Spec) -> Violation | None:
    annotations = metadata.get("annotations") or {}
    wrong = [
        f'{key}="{value}"'
        for key, value in sorted(annotations.items())
        if key.startswith(_APPARMOR_PREFIX) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    ]
    kinds = [objects.get(security(spec), "appArmorProfile", "type")]
    kinds += [objects.get(security(c), "appArmorProfile", "type") for c in containers(spec)]
    if "Unconfined" in kinds:
        wrong.append('type "Unconfined"')
    if not wrong:
        return None
    return Violation(rule="apparmor", reason=f"forbidden AppArmor profile{'s' if len(wrong) > 1 else ''}", detail=", ".join(wrong))


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
    return Violation(rule="capabilities", reason="non-default capabilities", detail=detail)


def _host_namespaces(spec: Spec) -> Violation | None:
    wrong = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return Violation(rule="hostNamespaces", reason="host namespaces", detail=", ".join(wrong)) if wrong else None


def _host_paths(spec: Spec) -> Violation | None:
    wrong = [str(v.get("name")) for v in spec.get("volumes") or () if v.get("hostPath") is not None]
    return Violation(rule="hostPath", reason="hostPath volumes", detail=subject(wrong, "volume")) if wrong else None


def _host_ports(spec: Spec) -> Violation | None:
    names: list[str] = []
    ports: set[int] = set()
    for container in containers(spec):
        used = {int(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            names.append(str(container.get("name")))
            ports |= used
    if not names:
        return None
    listed = ", ".join(str(port) for port in sorted(ports))
    detail = f"{subject(names)} use{'' if len(names) > 1 else 's'} hostPort{'s' if len(ports) > 1 else ''} {listed}"
    return Violation(rule="hostPorts", reason="hostPort", detail=detail)


def _host_probes(spec: Spec) -> Violation | None:
    names: list[str] = []
    hosts: set[str] = set()
    for container in containers(spec):
        handlers = [container.get(probe) or {} for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [objects.get(container, "lifecycle", hook, default={}) for hook in ("postStart", "preStop")]
        named = [objects.get(h, kind, "host") for h in handlers for kind in ("httpGet", "tcpSocket")]
        wrong = {str(host) for host in named if host}
        if wrong:
            names.append(str(container.get("name")))
            hosts |= wrong
    if not names:
        return None
    detail = f"{subject(names)} use{'' if len(names) > 1 else 's'} probe or lifecycle host{'s' if len(hosts) > 1 else ''} "
    return Violation(rule="hostProbes", reason="probe or lifecycle host", detail=detail + quoted(sorted(hosts)))


def _privileged(spec: Spec) -> Violation | None:
    names = names_where(spec, "privileged", bad=(True,))
    if not names:
        return None
    return Violation(rule="privileged", reason="privileged", detail=f"{subject(names)} must not set securityContext.privileged=true")


def _proc_mount(spec: Spec, minor: int) -> Violation | None:
    if minor >= 35 and spec.get("hostUsers") is False:
        # in a user namespace an unmasked /proc shows nothing of the host
        return None
    kinds = {objects.get(security(c), "procMount"): str(c.get("name")) for c in containers(spec)}
    wrong = sorted(str(kind) for kind in kinds if kind not in (None, "", "Default"))
    if not wrong:
        return None
    names = [str(c.get("name")) for c in containers(spec) if objects.get(security(c), "procMount") not in (None, "", "Default")]
    detail = f"{subject(names)} must not set securityContext.procMount to {quoted(wrong)}"
    return Violation(rule="procMount", reason="procMount", detail=detail)


def _selinux(spec: Spec, minor: int) -> Violation | None:
    allowed = _SELINUX_TYPES if minor < 31 else (*_SELINUX_TYPES, "container_engine_t")
    setters: list[str] = []
    problems: dict[str, None] = {}
    holders: list[tuple[str, dict[str, Any]]] = [("pod", spec)]
    holders += [(f'container "{c.get("name")}"', c) for c in containers(spec)]
    for who, holder in holders:
        options = security(holder).get("seLinuxOptions") or {}
        wrong: list[str] = []
        if (options.get("type") or "") not in allowed:
            wrong.append(f'type "{options["type"]}"')
        wrong += [f"{field} may not be set" for field in ("user", "role") if options.get(field)]
        if wrong:
            setters.append(who)
            problems |= dict.fromkeys(wrong)
    if not setters:
        return None
    detail = f"{', '.join(setters)} set forbidden securityContext.seLinuxOptions: {'; '.join(problems)}"
    return Violation(rule="seLinux", reason="seLinuxOptions", detail=detail)


def _seccomp(spec: Spec) -> Violation | None:
    setters = ["pod"] if objects.get(security(spec), "seccompProfile", "type") == "Unconfined" else []
    names = names_where(spec, "seccompProfile", "type", bad=("Unconfined",))
    if names:
        setters.append(subject(names))
    if not setters:
        return None
    detail = f'{" and ".join(setters)} must not set securityContext.seccompProfile.type to "Unconfined"'
    return Violation(rule="seccomp", reason="seccompProfile", detail=detail)


def _sysctls(spec: Spec, minor: int) -> Violation | None:
    names = [str(s.get("name")) for s in security(spec).get("sysctls") or ()]
    wrong = [name for name in names if _SYSCTLS.get(name, 1 << 30) > minor]
    return Violation(rule="sysctls", reason="forbidden sysctls", detail=", ".join(wrong)) if wrong else None


def _windows_host_process(spec: Spec) -> Violation | None:
    setters = ["pod"] if objects.get(security(spec), "windowsOptions", "hostProcess") else []
    names = names_where(spec, "windowsOptions", "hostProcess", bad=(True,))
    if names:
        setters.append(subject(names))
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation(rule="windowsHostProcess", reason="hostProcess", detail=detail)
