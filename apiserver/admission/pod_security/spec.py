"""Readers of pod specs that the rules share, and how they word what they find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from apiserver.machinery import objects

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Shown as ``reason (detail)``."""

    reason: str
    detail: str = ""


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


def in_own_users(spec: Spec) -> bool:
    """Whether the pod runs in a user namespace: root in it is nobody outside."""
    return spec.get("hostUsers") is False


def setters(spec: Spec, *path: str, bad: Iterable[Any]) -> str:
    """Who sets one of the ``bad`` values at a path of a security context: ``pod and containers "a", "b"``; "" where nobody does."""
    wrong = tuple(bad)
    found = ["pod"] if objects.get(security(spec), *path) in wrong else []
    names = names_where(spec, *path, bad=wrong)
    return " and ".join([*found, subject(names)] if names else found)


def bad_values(spec: Spec, *path: str, allowed: Iterable[Any]) -> set[str]:
    """What the pod or its containers set at a path of their security contexts and may not."""
    fine = (None, *allowed)
    values = [objects.get(security(holder), *path) for holder in (spec, *containers(spec))]
    return {str(value) for value in values if value not in fine}


def uses(names: list[str], noun: str, what: str, wrong: list[str]) -> str:
    """``containers "a", "b" use WHATs WRONG``."""
    verb, plural = ("use" if len(names) > 1 else "uses"), ("s" if len(wrong) > 1 else "")
    return f"{subject(names, noun)} {verb} {what}{plural} {', '.join(wrong)}"
