"""Which levels a namespace asks for, and what in a pod breaks one."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.admission.pod_security import baseline, restricted
from apiserver.admission.pod_security.spec import Violation
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError

PREFIX = "pod-security.kubernetes.io/"
MODES = ("enforce", "audit", "warn")
_VERSION = re.compile(r"\A(?:latest|v1\.(?:[0-9]|[1-9][0-9]{1,8}))\Z")
_WRONG_VERSION = 'must be "latest" or "v1.x"'


class Level(enum.Enum):
    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


_LEVELS = [level.value for level in Level]
WRONG_LEVEL = f"must be one of {', '.join(_LEVELS)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What one mode of a namespace asks for. ``version`` is ``latest`` or ``v1.N``: that of the rules."""

    level: Level = Level.PRIVILEGED
    version: str = "latest"

    def text(self) -> str:
        return f"{self.level.value}:{self.version}"

    def is_stricter_than(self, other: Wanted) -> bool:
        """By its level."""
        return _LEVELS.index(self.level.value) > _LEVELS.index(other.level.value)

    def is_like(self, other: Wanted) -> bool:
        """Equal, or both ask for nothing."""
        return self == other or self.level is other.level is Level.PRIVILEGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a namespace asks for in each mode."""

    enforce: Wanted = Wanted()
    audit: Wanted = Wanted()
    warn: Wanted = Wanted()

    def asks_nothing(self) -> bool:
        return all(wanted.level is Level.PRIVILEGED for wanted in (self.enforce, self.audit, self.warn))

    def is_like(self, other: Policy) -> bool:
        return self.enforce.is_like(other.enforce) and self.audit.is_like(other.audit) and self.warn.is_like(other.warn)


def policy_of(labels: Mapping[str, str], defaults: Policy) -> tuple[Policy, list[FieldError]]:
    """What labels ask for, and what is wrong with them. A wrong level of ``enforce`` asks for the strictest, since what it meant to
    forbid must not slip through; one of the other modes asks for nothing. Who enforces is warned of as much, unless ``warn`` says."""
    errors: list[FieldError] = []
    found = {
        "enforce": _wanted(labels, "enforce", defaults.enforce, Level.RESTRICTED, errors),
        "audit": _wanted(labels, "audit", defaults.audit, Level.PRIVILEGED, errors),
        "warn": _wanted(labels, "warn", defaults.warn, Level.PRIVILEGED, errors),
    }
    enforce, warn = found["enforce"], found["warn"]
    if labels.get(f"{PREFIX}enforce") in _LEVELS and f"{PREFIX}warn" not in labels and enforce.is_stricter_than(warn):
        version = warn.version if f"{PREFIX}warn-version" in labels else enforce.version
        found["warn"] = Wanted(level=enforce.level, version=version)
    return Policy(**found), errors


def _wanted(labels: Mapping[str, str], mode: str, default: Wanted, fallback: Level, errors: list[FieldError]) -> Wanted:
    level, version = default.level, default.version
    key = f"{PREFIX}{mode}"
    if (said := labels.get(key)) is not None:
        level = Level(said) if said in _LEVELS else fallback
        if said not in _LEVELS:
            errors.append(field_errors.invalid(field_errors.key("metadata.labels", key), said, WRONG_LEVEL))
    key = f"{PREFIX}{mode}-version"
    if (said := labels.get(key)) is not None:
        version = said if is_version(said) else "latest"
        if not is_version(said):
            errors.append(field_errors.invalid(field_errors.key("metadata.labels", key), said, _WRONG_VERSION))
    return Wanted(level=level, version=version)


def is_version(text: str) -> bool:
    return _VERSION.match(text) is not None


def violations(wanted: Wanted, metadata: dict[str, Any], spec: dict[str, Any], newest_minor: int) -> list[Violation]:
    """What in a pod breaks the level: first by the rules of the baseline, then by those that the restricted level adds. Versions beyond
    ``newest_minor``, and ``latest``, have its rules."""
    if wanted.level is Level.PRIVILEGED:
        return []
    minor = newest_minor if wanted.version == "latest" else min(int(wanted.version[3:]), newest_minor)
    if wanted.level is Level.BASELINE:
        return baseline.check(metadata, spec, minor)
    return baseline.check(metadata, spec, minor, restricted.replaced(minor)) + restricted.check(metadata, spec, minor)


def told(found: list[Violation]) -> str:
    return ", ".join(f"{v.reason} ({v.detail})" if v.detail else v.reason for v in found)
