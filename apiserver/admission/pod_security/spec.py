"""Readers of pod specs that the rules share, and how they word what they find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from apiserver.machinery import objects

Spec = dict[str, Any]

#: the order in which violations are told
_RULES = (
    "allowPrivilegeEscalation",
    "apparmor",
    "capabilities",
    "hostNamespaces",
    "hostPath",
    "hostPorts",
    "hostProbes",
    "privileged",
    "procMount",
    "restrictedVolumes",
    "runAsNonRoot",
    "runAsUser",
    "seLinux",
    "seccomp",
    "sysctls",
    "windowsHostProcess",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """``rule`` is one of ``_RULES``; shown is ``reason (detail)``."""

    rule: str
    reason: str
    detail: str = ""

    @property
    def order(self) -> int:
        return _RULES.index(self.rule)


def containers(spec: Spec) -> Iterator[dict[str, Any]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def security(holder: dict[str, Any]) -> dict[str, Any]:
    return holder.get("securityContext") or {}


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def subject(names: list[str], noun: str = "container") -> str:
    """``container "a"``, ``containers "a", "b"``."""
    return f"{noun}{'s' if len(names) > 1 else ''} {quoted(names)}"


def names_where(spec: Spec, *path: str, bad: Iterable[Any] = ()) -> list[str]:
    """The containers whose security context has one of the ``bad`` values at a path."""
    wrong = tuple(bad)
    return [str(c.get("name")) for c in containers(spec) if objects.get(security(c), *path) in wrong]


def is_windows(spec: Spec) -> bool:
    return bool(objects.get(spec, "os", "name") == "windows")
