"""The rules that the level ``restricted`` adds to ``baseline`` (Pod Security Standards)."""

from __future__ import annotations

from typing import Any

from apiserver.admission.pod_security.baseline import proc_mount, seccomp_setters
from apiserver.admission.pod_security.spec import (
    Spec,
    Violation,
    containers,
    in_own_users,
    is_windows,
    names_where,
    quoted,
    security,
    setters,
    subject,
    uses,
)
from apiserver.machinery import objects

_VOLUMES = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret")
_OTHER_VOLUMES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd", "flexVolume", "cinder",
    "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume",
    "scaleIO", "storageos",
)  # fmt: skip


def replaced(minor: int) -> frozenset[str]:
    """The rules of the baseline that this level says more of, and which are not told twice."""
    since = (("hostPath", 0), ("seccomp", 19), ("capabilities", 22), ("procMount", 35))
    return frozenset(rule for rule, first in since if minor >= first)


def check(metadata: dict[str, Any], spec: Spec, minor: int) -> list[Violation]:
    """``minor``: the Kubernetes version whose rules are asked for."""
    # since 1.25 what only Linux knows is not asked of Windows pods
    windows = minor >= 25 and is_windows(spec)
    own_users = minor >= 35 and in_own_users(spec)
    found = [
        None if windows or minor < 8 else _privilege_escalation(spec),
        None if windows or minor < 22 else _capabilities(spec),
        proc_mount(spec) if minor >= 35 else None,
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
    return Violation(reason="allowPrivilegeEscalation != false", detail=detail)


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
    return Violation(reason="unrestricted capabilities", detail="; ".join(details)) if details else None


def _volumes(spec: Spec) -> Violation | None:
    names: list[str] = []
    kinds: set[str] = set()
    for volume in spec.get("volumes") or ():
        if any(volume.get(kind) is not None for kind in _VOLUMES):
            continue
        names.append(str(volume.get("name")))
        kinds.add(next((kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown"))
    if not names:
        return None
    shown = [f'"{kind}"' for kind in sorted(kinds)]
    return Violation(reason="restricted volume types", detail=uses(names, "volume", "restricted volume type", shown))


def _run_as_non_root(spec: Spec) -> Violation | None:
    reason = "runAsNonRoot != true"
    if who := setters(spec, "runAsNonRoot", bad=(False,)):
        return Violation(reason=reason, detail=f"{who} must not set securityContext.runAsNonRoot=false")
    silent = [] if security(spec).get("runAsNonRoot") else names_where(spec, "runAsNonRoot", bad=(None,))
    if not silent:
        return None
    return Violation(reason=reason, detail=f"pod or {subject(silent)} must set securityContext.runAsNonRoot=true")


def _run_as_user(spec: Spec) -> Violation | None:
    who = setters(spec, "runAsUser", bad=(0,))
    return Violation(reason="runAsUser=0", detail=f"{who} must not set runAsUser=0") if who else None


def _seccomp(spec: Spec) -> Violation | None:
    if found := seccomp_setters(spec):
        return found
    if objects.get(security(spec), "seccompProfile") is not None:
        return None
    silent = names_where(spec, "seccompProfile", bad=(None,))
    if not silent:
        return None
    detail = f'pod or {subject(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation(reason="seccompProfile", detail=detail)
