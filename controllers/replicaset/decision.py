"""How many pods to create, which to delete, and the status. Pure."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts
from controllers.lib.clock import parse_time

#: Creations or deletions of one sync; the rest waits for what the watch brings (``BurstReplicas``).
BURST_REPLICAS = 500

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
_LONG_AGO = datetime.datetime.min.replace(tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class ScalePlan:
    create: int = 0
    delete: tuple[Object, ...] = ()


def replicas_wanted(controller: Object) -> int:
    found = objects.get(controller, "spec", "replicas", default=1)
    return int(found)


def plan_scale(controller: Object, active: Sequence[Object], related: Iterable[Object]) -> ScalePlan:
    """``active`` are its own active pods; ``related`` those of all sets of the same owner, among which pods that share a node with
    many others are the first to go."""
    difference = len(active) - replicas_wanted(controller)
    if difference < 0:
        return ScalePlan(create=min(-difference, BURST_REPLICAS))
    if difference > 0:
        return ScalePlan(delete=tuple(rank_for_deletion(active, related)[: min(difference, BURST_REPLICAS)]))
    return ScalePlan()


def rank_for_deletion(active: Sequence[Object], related: Iterable[Object]) -> list[Object]:
    """First those that lose least: without node, pending, not ready, of low cost, crowded, ready for the shortest time, restarted
    most, youngest."""
    crowd = Counter(pod_facts.node_name(p) for p in related if pod_facts.is_active(p))

    def key(pod: Object) -> tuple[object, ...]:
        node = pod_facts.node_name(pod)
        ready = pod_facts.is_ready(pod)
        ready_since = pod_facts.ready_since(pod) or _LONG_AGO
        created = parse_time(objects.metadata(pod).get("creationTimestamp")) or _LONG_AGO
        return (
            node != "",
            _PHASE_ORDER.get(pod_facts.phase(pod), 3),
            ready,
            pod_facts.deletion_cost(pod),
            -crowd[node] if node else 0,
            _descending(ready_since),
            -pod_facts.restarts(pod),
            _descending(created),
            objects.name(pod),
        )

    return sorted(active, key=key)


def _descending(moment: datetime.datetime) -> float:
    return -(moment - _LONG_AGO).total_seconds()


def status_of(controller: Object, active: Sequence[Object], failure: tuple[str, str] | None, now: datetime.datetime) -> Object:
    """``failure`` is the reason (FailedCreate, FailedDelete) and the message of what went wrong in this sync; counters of zero are left out
    as Kubernetes' encoding does, but for ``replicas``."""
    spec = controller.get("spec") or {}
    minimum = int(spec.get("minReadySeconds") or 0)
    template_labels = objects.labels(spec.get("template") or {}).items()
    status: Object = {"replicas": len(active)}
    counts = {
        "fullyLabeledReplicas": sum(1 for p in active if template_labels <= objects.labels(p).items()),
        "readyReplicas": sum(1 for p in active if pod_facts.is_ready(p)),
        "availableReplicas": sum(1 for p in active if pod_facts.is_available(p, minimum, now)),
        "observedGeneration": int(objects.metadata(controller).get("generation") or 0),
    }
    status.update({k: v for k, v in counts.items() if v})
    conditions = list(objects.get(controller, "status", "conditions", default=[]))
    present = any(c.get("type") == "ReplicaFailure" for c in conditions)
    if failure is not None and not present:
        conditions.append(pod_facts.new_condition("ReplicaFailure", True, now, *failure))
    elif failure is None and present:
        conditions = [c for c in conditions if c.get("type") != "ReplicaFailure"]
    if conditions:
        status["conditions"] = conditions
    return status


def seconds_until_more_available(controller: Object, active: Sequence[Object], now: datetime.datetime) -> float | None:
    """When the next ready pod becomes available; None where none is on its way. Nothing else would tell the controller."""
    minimum = int(objects.get(controller, "spec", "minReadySeconds", default=0))
    waits = [w for w in (pod_facts.seconds_until_available(p, minimum, now) for p in active) if w]
    return min(waits, default=None)
