"""The rules that the level ``restricted`` adds to ``baseline`` (Pod Security Standards)."""

from __future__ import annotations

from typing import Any

from apiserver.admission.pod_security.spec import Spec, Violation, containers, is_windows, names_where, quoted, security, subject
from apiserver.machinery import objects

_VOLUMES = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret")


def check(metadata: dict[str, Any], spec: Spec, minor: int) -> list[Violation]:
    """``minor``: the Kubernetes version whose rules are asked for."""
    # since 1.25 what only Linux knows is not asked of Windows pods
    windows = minor >= 25 and is_windows(spec)
    # since 1.35 root in a user namespace of its own is nobody outside
    own_users = minor >= 35 and spec.get("hostUsers") is False
    found = [
        None if windows or minor < 8 else _privilege_escalation(spec),
        None if windows or minor < 22 else _capabilities(spec),
        _volumes(spec),
        None if own_users else _run_as_non_root(spec),
        None if own_users or minor < 23 else _run_as_user(spec),
        None if windows or minor < 19 else _seccomp(spec),
    ]
    return [violation for violation in found if violation is not None]


def _privilege_escalation(spec: Spec) -> Violation | None:
    names = [str(c.get("name")) for c in containers(spec) if security(c).get("allowPrivilegeEscalation") is not False]
    if not names:
        return None
    detail = f"{subject(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation(rule="allowPrivilegeEscalation", reason="allowPrivilegeEscalation != false", detail=detail)


def _capabilities(spec: Spec) -> Violation | None:
    keeping: list[str] = []
    adding: list[str] = []
    added: set[str] = set()
    for container in containers(spec):
        capabilities = security(container).get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(str(container.get("name")))
        wrong = {c for c in capabilities.get("add") or () if c != "NET_BIND_SERVICE"}
        if wrong:
            adding.append(str(container.get("name")))
            added |= wrong
    details: list[str] = []
    if keeping:
        details.append(f'{subject(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(f"{subject(adding)} must not include {quoted(sorted(added))} in securityContext.capabilities.add")
    return Violation(rule="capabilities", reason="unrestricted capabilities", detail="; ".join(details)) if details else None


def _volumes(spec: Spec) -> Violation | None:
    names: list[str] = []
    kinds: set[str] = set()
    for volume in spec.get("volumes") or ():
        wrong = {kind for kind, source in volume.items() if kind != "name" and source is not None and kind not in _VOLUMES}
        if wrong:
            names.append(str(volume.get("name")))
            kinds |= wrong
    if not names:
        return None
    word = "types" if len(kinds) > 1 else "type"
    use = "use" if len(names) > 1 else "uses"
    detail = f"{subject(names, 'volume')} {use} restricted volume {word} {quoted(sorted(kinds))}"
    return Violation(rule="restrictedVolumes", reason="restricted volume types", detail=detail)


def _run_as_non_root(spec: Spec) -> Violation | None:
    pod = security(spec).get("runAsNonRoot")
    explicitly = [str(c.get("name")) for c in containers(spec) if security(c).get("runAsNonRoot") is False]
    silent = [str(c.get("name")) for c in containers(spec) if security(c).get("runAsNonRoot") is None]
    details: list[str] = []
    if pod is False:
        details.append("pod must not set securityContext.runAsNonRoot=false")
    if explicitly:
        details.append(f"{subject(explicitly)} must not set securityContext.runAsNonRoot=false")
    if not details and silent and pod is not True:
        details.append(f"pod or {subject(silent)} must set securityContext.runAsNonRoot=true")
    return Violation(rule="runAsNonRoot", reason="runAsNonRoot != true", detail=" and ".join(details)) if details else None


def _run_as_user(spec: Spec) -> Violation | None:
    setters = ["pod"] if security(spec).get("runAsUser") == 0 else []
    names = names_where(spec, "runAsUser", bad=(0,))
    if names:
        setters.append(subject(names))
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set runAsUser=0"
    return Violation(rule="runAsUser", reason="runAsUser=0", detail=detail)


def _seccomp(spec: Spec) -> Violation | None:
    allowed = ("RuntimeDefault", "Localhost")
    pod = objects.get(security(spec), "seccompProfile", "type")
    wrong: list[str] = []
    silent: list[str] = []
    for container in containers(spec):
        kind = objects.get(security(container), "seccompProfile", "type")
        if kind is None:
            silent.append(str(container.get("name")))
        elif kind not in allowed:
            wrong.append(str(container.get("name")))
    details: list[str] = []
    if pod is not None and pod not in allowed:
        details.append('pod must not set securityContext.seccompProfile.type to "' + str(pod) + '"')
    if wrong:
        details.append(f'{subject(wrong)} must not set securityContext.seccompProfile.type to "Unconfined"')
    if not details and silent and pod is None:
        details.append(f'pod or {subject(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"')
    return Violation(rule="seccomp", reason="seccompProfile", detail=" and ".join(details)) if details else None
