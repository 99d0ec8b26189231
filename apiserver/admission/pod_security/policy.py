"""Which level a namespace asks for, and what in a pod breaks it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any

from apiserver.admission.pod_security import baseline, restricted
from apiserver.admission.pod_security.spec import Violation
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError

PREFIX = "pod-security.kubernetes.io/"
MODES = ("enforce", "audit", "warn")
_VERSION = re.compile(r"\A(?:latest|v1\.(?:0|[1-9][0-9]{0,3}))\Z")


class Level(enum.Enum):
    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


_LEVELS = [level.value for level in Level]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What one mode of a namespace asks for. ``version`` is ``latest`` or ``v1.N``: that of the rules."""

    level: Level = Level.PRIVILEGED
    version: str = "latest"

    def text(self) -> str:
        return f"{self.level.value}:{self.version}"


def wanted_by(labels: dict[str, str], mode: str, default: Wanted | None = None) -> Wanted:
    """Unreadable labels ask for the strictest level: what they meant to forbid must not slip through. ``default``: where none says."""
    level = labels.get(PREFIX + mode)
    if level is None:
        return default or Wanted()
    version = labels.get(f"{PREFIX}{mode}-version", "latest")
    known = Level(level) if level in _LEVELS else Level.RESTRICTED
    return Wanted(level=known, version=version if _VERSION.match(version) else "latest")


def is_version(text: str) -> bool:
    return _VERSION.match(text) is not None


def label_errors(labels: dict[str, str]) -> list[FieldError]:
    """What is wrong with a namespace's labels."""
    errors: list[FieldError] = []
    for mode in MODES:
        level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
        if level is not None and level not in _LEVELS:
            at = field_errors.key("metadata.labels", PREFIX + mode)
            errors.append(field_errors.invalid(at, level, f"must be one of {', '.join(_LEVELS)}"))
        if version is not None and not _VERSION.match(version):
            at = field_errors.key("metadata.labels", f"{PREFIX}{mode}-version")
            errors.append(field_errors.invalid(at, version, 'must be "latest" or "v1.x"'))
    return errors


def violations(wanted: Wanted, metadata: dict[str, Any], spec: dict[str, Any]) -> list[Violation]:
    """What in a pod breaks the level, in the order in which the standards name the rules."""
    if wanted.level is Level.PRIVILEGED:
        return []
    minor = 10_000 if wanted.version == "latest" else int(wanted.version[3:])
    found = baseline.check(metadata, spec, minor)
    if wanted.level is Level.RESTRICTED:
        # where a rule of the stricter level says more of the same field, the weaker one is not repeated
        stricter = restricted.check(metadata, spec, minor)
        replaced = {v.rule for v in stricter}
        found = [v for v in found if v.rule not in replaced] + stricter
    return sorted(found, key=lambda v: v.order)


def told(found: list[Violation]) -> str:
    return ", ".join(f"{v.reason} ({v.detail})" if v.detail else v.reason for v in found)
