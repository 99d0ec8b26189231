"""The arithmetic of rolling, recreating and scaling: which ReplicaSet gets how many replicas next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.deployment import facts

if TYPE_CHECKING:
    from controllers.deployment.revisions import Sets


@dataclass(frozen=True, slots=True)
class ScaleTo:
    """One ReplicaSet's next size."""

    replica_set: Object
    replicas: int


def new_set_replicas(deployment: Object, sets: Sequence[Object], new: Object) -> int:
    """How large the new set may be now: all sets together at most replicas + maxSurge, itself at most replicas."""
    wanted = facts.replicas(deployment)
    if not facts.is_rolling(deployment):
        return wanted
    room = wanted + facts.fenceposts(deployment)[0] - facts.total_replicas(sets)
    current = facts.replicas(new)
    if room <= 0:
        return current
    return current + min(room, wanted - current)


def plan_growth(deployment: Object, sets: Sets) -> list[ScaleTo]:
    """The new set's next size, where it changes."""
    assert sets.new is not None
    current, wanted = facts.replicas(sets.new), facts.replicas(deployment)
    target = wanted if current > wanted else new_set_replicas(deployment, sets.all, sets.new)
    return [] if target == current else [ScaleTo(sets.new, target)]


def plan_shrinkage(deployment: Object, sets: Sets) -> list[ScaleTo]:
    """The old sets' next sizes: first replicas that are not available (they lose nothing), then available ones, while
    replicas − maxUnavailable stay available.

    Replicas of the new set that are not available yet count against what may go: they may never become so.
    """
    assert sets.new is not None
    sizes = {objects.uid(s): facts.replicas(s) for s in sets.old}
    minimum = facts.replicas(deployment) - facts.max_unavailable(deployment)
    new_unavailable = facts.replicas(sets.new) - facts.available(sets.new)
    budget = facts.total_replicas(sets.all) - minimum - new_unavailable
    if sum(sizes.values()) == 0 or budget <= 0:
        return []
    for old in sets.old:
        unhealthy = max(0, sizes[objects.uid(old)] - facts.available(old))
        cut = min(budget, unhealthy)
        sizes[objects.uid(old)] -= cut
        budget -= cut
    spare = sum(facts.available(s) for s in sets.all) - minimum
    for old in sets.old:
        cut = min(max(0, spare), sizes[objects.uid(old)])
        sizes[objects.uid(old)] -= cut
        spare -= cut
    return [ScaleTo(s, sizes[objects.uid(s)]) for s in sets.old if sizes[objects.uid(s)] != facts.replicas(s)]


def plan_scaling(deployment: Object, sets: Sets) -> list[ScaleTo]:
    """Follows a change of ``replicas`` outside a rollout step: one active set takes it all; several, in the middle of a rollout, share it
    in proportion to their sizes, so that a half-done rollout stays half done. Sets whose size stays still get their annotations."""
    wanted = facts.replicas(deployment)
    active = facts.active([sets.new, *sets.old])
    if len(active) <= 1:
        latest = active[0] if active else (sets.new or (facts.by_creation(sets.old)[-1] if sets.old else None))
        return [] if latest is None or facts.replicas(latest) == wanted else [ScaleTo(latest, wanted)]
    if _is_saturated(deployment, sets.new):
        return [ScaleTo(s, 0) for s in facts.active(sets.old)]
    if not facts.is_rolling(deployment):
        return []
    return _share(deployment, active)


def _is_saturated(deployment: Object, new: Object | None) -> bool:
    wanted = facts.replicas(deployment)
    return (
        new is not None
        and facts.replicas(new) == wanted
        and facts.available(new) == wanted
        and facts.annotation_int(new, facts.DESIRED_REPLICAS) == wanted
    )


def _share(deployment: Object, active: list[Object]) -> list[ScaleTo]:
    wanted = facts.replicas(deployment)
    allowed = wanted + facts.max_surge(deployment) if wanted > 0 else 0
    to_add = allowed - facts.total_replicas(active)
    created = {objects.uid(s): n for n, s in enumerate(facts.by_creation(active))}
    # the largest first; of equals the newest where some are to be added, the oldest where some are to go
    newest_first = 1 if to_add <= 0 else -1
    ordered = sorted(active, key=lambda s: (-facts.replicas(s), newest_first * created[objects.uid(s)]))
    sizes: list[int] = []
    added = 0
    for one in ordered:
        part = _proportion(deployment, one, to_add, added)
        sizes.append(facts.replicas(one) + part)
        added += part
    if to_add != 0:
        sizes[0] = max(0, sizes[0] + to_add - added)  # what rounding left over
    return [ScaleTo(one, size) for one, size in zip(ordered, sizes, strict=True)]


def _proportion(deployment: Object, replica_set: Object, to_add: int, added: int) -> int:
    size = facts.replicas(replica_set)
    left = to_add - added
    if size == 0 or to_add == 0 or left == 0:
        return 0
    wanted = facts.replicas(deployment)
    if wanted == 0:
        fraction = -size
    else:
        scaled_for = facts.annotation_int(replica_set, facts.MAX_REPLICAS) or facts.status_count(deployment, "replicas") or size
        fraction = _rounded(size * (wanted + facts.max_surge(deployment)), scaled_for) - size
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _rounded(numerator: int, denominator: int) -> int:
    """Half away from zero, of values that are not negative."""
    return (2 * numerator + denominator) // (2 * denominator)


def is_scaling_event(deployment: Object, sets: Sets) -> bool:
    """``replicas`` was changed since an active set was last scaled."""
    wanted = facts.replicas(deployment)
    found = (facts.annotation_int(s, facts.DESIRED_REPLICAS) for s in facts.active(sets.all))
    return any(desired is not None and desired != wanted for desired in found)
