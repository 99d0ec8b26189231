"""The conditions of a definition's status (apiextensions-apiserver ``apihelpers``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

NAMES_ACCEPTED = "NamesAccepted"
ESTABLISHED = "Established"
TERMINATING = "Terminating"
APPROVED = "KubernetesAPIApprovalPolicyConformant"
NON_STRUCTURAL = "NonStructuralSchema"


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    reason: str
    message: str

    def is_in(self, definition: Object) -> bool:
        """Whether the definition says this already, whenever it came to."""
        old = find(definition, self.type)
        return old is not None and all((old.get(f) or "") == getattr(self, f) for f in ("status", "reason", "message"))


def find(definition: Object, type: str) -> Object | None:
    for condition in objects.get(definition, "status", "conditions", default=()):
        if condition.get("type") == type:
            return condition  # type: ignore[no-any-return]
    return None


def is_true(definition: Object, type: str) -> bool:
    condition = find(definition, type)
    return condition is not None and condition.get("status") == "True"


def with_condition(status: Object, new: Condition, now: str) -> Object:
    """The status with a condition set; the time of its last transition changes with its ``status`` alone."""
    found: list[Any] = list(status.get("conditions") or ())
    entry = {"type": new.type, "status": new.status, "lastTransitionTime": now, "reason": new.reason, "message": new.message}
    for position, old in enumerate(found):
        if old.get("type") == new.type:
            if old.get("status") == new.status and old.get("lastTransitionTime"):
                entry["lastTransitionTime"] = old["lastTransitionTime"]
            found[position] = entry
            return {**status, "conditions": found}
    return {**status, "conditions": [*found, entry]}


def without_condition(status: Object, type: str) -> Object:
    kept = [condition for condition in status.get("conditions") or () if condition.get("type") != type]
    return {**status, "conditions": kept}
