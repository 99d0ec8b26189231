"""How many pods a budget expects, needs and has, and what follows. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts
from controllers.lib import selectors
from controllers.lib.clock import format_time, parse_time
from controllers.lib.int_or_percent import scaled

#: how long an evicted pod may take until its deletion is seen; then the eviction counts as not done
DELETION_SECONDS = 120.0
CONDITION = "DisruptionAllowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    expected: int
    desired_healthy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``not_deleted`` are names of pods whose eviction came to nothing; ``again_seconds`` when the next note is due."""

    status: Object
    not_deleted: tuple[str, ...]
    again_seconds: float | None


def selects(budget: Object, pod: Object) -> bool:
    """A missing selector selects nothing, an empty one all pods of the namespace (policy/v1)."""
    return selectors.matches(objects.get(budget, "spec", "selector"), objects.labels(pod))


def needs_scale(budget: Object) -> bool:
    """Whether the sizes of the pods' controllers count, and not the number of pods there are."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def needs_of(budget: Object, pods: Sequence[Object], scale: int) -> Needs:
    """``scale`` is the sum of the sizes of the pods' controllers; only asked for with ``needs_scale``."""
    spec = budget.get("spec") or {}
    if spec.get("maxUnavailable") is not None:
        return Needs(expected=scale, desired_healthy=max(0, scale - scaled(spec["maxUnavailable"], scale, round_up=True)))
    minimum = spec.get("minAvailable")
    if isinstance(minimum, str):
        return Needs(expected=scale, desired_healthy=scaled(minimum, scale, round_up=True))
    return Needs(expected=len(pods), desired_healthy=int(minimum or 0))


def judge(budget: Object, pods: Sequence[Object], needs: Needs, now: datetime.datetime) -> Verdict:
    disrupted, not_deleted, again = _disrupted(budget, pods, now)
    healthy = sum(1 for pod in pods if not objects.is_being_deleted(pod) and objects.name(pod) not in disrupted and pod_facts.is_ready(pod))
    allowed = max(0, healthy - needs.desired_healthy) if needs.expected > 0 else 0
    status: Object = {
        "currentHealthy": healthy,
        "desiredHealthy": needs.desired_healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": needs.expected,
        "observedGeneration": _generation(budget),
        "conditions": _with_condition(budget, allowed > 0, "SufficientPods" if allowed > 0 else "InsufficientPods", "", now),
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    return Verdict(status=status, not_deleted=not_deleted, again_seconds=again)


def fail_safe(budget: Object, message: str, now: datetime.datetime) -> Object:
    """The status of a budget that could not be counted: as it was, but nothing may go."""
    return {
        **{"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        **(budget.get("status") or {}),
        "disruptionsAllowed": 0,
        "observedGeneration": _generation(budget),
        "conditions": _with_condition(budget, False, "SyncFailed", message, now),
    }


def _disrupted(budget: Object, pods: Sequence[Object], now: datetime.datetime) -> tuple[dict[str, str], tuple[str, ...], float | None]:
    noted: Mapping[str, str] = objects.get(budget, "status", "disruptedPods", default={})
    kept: dict[str, str] = {}
    late: list[str] = []
    waits: list[float] = []
    for pod in pods:
        name = objects.name(pod)
        if name not in noted or objects.is_being_deleted(pod):
            continue
        since = parse_time(noted[name])
        left = DELETION_SECONDS - (now - since).total_seconds() if since is not None else 0.0
        if left <= 0:
            late.append(name)
        else:
            kept[name] = noted[name]
            waits.append(left)
    return kept, tuple(late), min(waits, default=None)


def _generation(budget: Object) -> int:
    return int(objects.metadata(budget).get("generation") or 0)


def _with_condition(budget: Object, value: bool, reason: str, message: str, now: datetime.datetime) -> list[Object]:
    new: Object = {
        "type": CONDITION,
        "status": "True" if value else "False",
        "observedGeneration": _generation(budget),
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message,
    }
    return pod_facts.with_condition(objects.get(budget, "status", "conditions", default=[]), new)
