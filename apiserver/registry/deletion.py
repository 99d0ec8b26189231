"""What a delete does to an object before it goes: grace, finalizers, deletionTimestamp (apiserver ``registry/rest/delete.go`` and
``registry/generic/registry/store.go``). Pure: every function answers or changes the object that it is given."""

from __future__ import annotations

import calendar
import time
from dataclasses import dataclass, field
from typing import Any

from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

IGNORE_READ_ERROR = "ignoreStoreReadErrorWithClusterBreakingPotential"

_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(slots=True, kw_only=True)
class DeleteOptions:
    """meta/v1 DeleteOptions. ``grace_period_seconds`` is changed to what was decided, as upstream does."""

    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: list[str] = field(default_factory=list)
    #: delete an object whose stored value cannot be read, and no other
    ignore_store_read_error: bool = False

    def copy(self) -> DeleteOptions:
        return DeleteOptions(
            grace_period_seconds=self.grace_period_seconds,
            orphan_dependents=self.orphan_dependents,
            propagation_policy=self.propagation_policy,
            uid=self.uid,
            resource_version=self.resource_version,
            dry_run=list(self.dry_run),
            ignore_store_read_error=self.ignore_store_read_error,
        )

    def as_object(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace_period_seconds is not None:
            found["gracePeriodSeconds"] = self.grace_period_seconds
        if self.propagation_policy is not None:
            found["propagationPolicy"] = self.propagation_policy
        if self.dry_run:
            found["dryRun"] = self.dry_run
        return found


def validate_options(options: DeleteOptions) -> list[FieldError]:
    errors = []
    if options.orphan_dependents is not None and options.propagation_policy is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(field_errors.invalid("propagationPolicy", options.propagation_policy, why))
    if options.propagation_policy is not None and options.propagation_policy not in _POLICIES:
        errors.append(field_errors.not_supported("propagationPolicy", options.propagation_policy, [*_POLICIES, "nil"]))
    if options.dry_run and any(value != "All" for value in options.dry_run):
        errors.append(field_errors.not_supported("dryRun", options.dry_run, ["All"]))
    if options.ignore_store_read_error:
        others = {
            "propagationPolicy": options.propagation_policy,
            "orphanDependents": options.orphan_dependents,
            "gracePeriodSeconds": options.grace_period_seconds,
            "preconditions": options.uid if options.uid is not None else options.resource_version,
        }
        errors += [
            field_errors.invalid(IGNORE_READ_ERROR, True, f"cannot be set together with .{name}")
            for name, value in others.items()
            if value is not None
        ]
    return errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Grace:
    """``graceful``: the object was marked and lives on for its grace period; ``pending``: that was done before, nothing to do."""

    graceful: bool
    pending: bool


_AT_ONCE = Grace(graceful=False, pending=False)
_PENDING = Grace(graceful=False, pending=True)
_MARKED = Grace(graceful=True, pending=False)


def begin(obj: Object, options: DeleteOptions, *, supports_grace: bool, now: str) -> Grace:
    """Mark ``obj`` (in place) for graceful deletion, for the kinds that have it (pods)."""
    if not supports_grace:
        return _AT_ONCE
    metadata = obj["metadata"]
    if options.grace_period_seconds is not None and options.grace_period_seconds < 0:
        options.grace_period_seconds = 1
    asked = options.grace_period_seconds
    if metadata.get("deletionTimestamp"):
        given = metadata.get("deletionGracePeriodSeconds")
        if not given:
            # nothing is left to wait for: a deletion that stopped half way goes on
            return _AT_ONCE
        given = max(given, 1)
        if asked is None:
            options.grace_period_seconds = given
            return _PENDING
        if asked >= given:
            return _PENDING
        ends = _shifted(metadata["deletionTimestamp"], asked - given)
        if ends < now:  # canonical times of one form sort as text
            ends, asked = now, min(asked, 1)
        metadata["deletionTimestamp"] = ends
        metadata["deletionGracePeriodSeconds"] = asked
        return _MARKED
    period = pod_grace_period_seconds(obj, asked)
    options.grace_period_seconds = period
    metadata["deletionTimestamp"] = _shifted(now, period)
    metadata["deletionGracePeriodSeconds"] = period
    raise_generation(metadata)
    return _MARKED


def pod_grace_period_seconds(pod: Object, asked: int | None) -> int:
    """Nothing runs yet, or no more: at once. A negative period means one second."""
    spec = pod.get("spec") or {}
    period = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else int(period)


def mark(obj: Object, now: str) -> None:
    """Finalizers hold an object whose kind has no grace period."""
    metadata = obj["metadata"]
    current = metadata.get("deletionTimestamp")
    if not current:
        raise_generation(metadata)
    if not current or current > now:  # canonical times of one form sort as text
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0


def raise_generation(metadata: dict[str, Any]) -> None:
    if metadata.get("generation"):
        metadata["generation"] += 1


def garbage_collection_finalizers(current: list[str], options: DeleteOptions, default_policy: str) -> list[str] | None:
    """The finalizers that the propagation policy asks for, or None where they are that already. ``default_policy``: "background",
    "orphan", or "unsupported" for kinds that the garbage collector leaves alone (events)."""
    if default_policy == "unsupported":
        return None
    wanted = [name for name in current if name not in (ORPHAN, FOREGROUND)]
    if _orphans(current, options, default_policy):
        wanted.append(ORPHAN)
    if _foreground(current, options):
        wanted.append(FOREGROUND)
    return None if set(wanted) == set(current) else wanted


def _orphans(current: list[str], options: DeleteOptions, default_policy: str) -> bool:
    if options.orphan_dependents is not None:
        return options.orphan_dependents
    if options.propagation_policy is not None:
        return options.propagation_policy == "Orphan"
    for name in current:
        if name in (ORPHAN, FOREGROUND):
            return name == ORPHAN
    return default_policy == "orphan"


def _foreground(current: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return False
    if options.propagation_policy is not None:
        return options.propagation_policy == "Foreground"
    for name in current:
        if name in (ORPHAN, FOREGROUND):
            return name == FOREGROUND
    return False


def goes_with_update(new: Object, old: Object) -> bool:
    """Whether an update takes the last thing away that held an object in deletion."""
    metadata = old["metadata"]
    if (new["metadata"].get("finalizers")) or not metadata.get("deletionTimestamp"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _shifted(time_text: str, seconds: int) -> str:
    moment = calendar.timegm(time.strptime(time_text, "%Y-%m-%dT%H:%M:%SZ"))
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment + seconds))
