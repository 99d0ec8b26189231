"""A DaemonSet's status. Pure."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.daemonset.decision import Situation, min_ready_seconds, oldest_first
from controllers.lib import pods as pod_facts


def status_of(situation: Situation, collision_count: int | None) -> Object:
    """Of each node the oldest pod counts. Some counters of zero are left out, as Kubernetes' encoding does."""
    desired = current = ready = available = updated = misscheduled = 0
    for node_name, fit in situation.fits.items():
        pods = situation.by_node.get(node_name, ())
        if not fit.should_run:
            misscheduled += bool(pods)
            continue
        desired += 1
        if not pods:
            continue
        current += 1
        oldest = oldest_first(pods)[0]
        if pod_facts.is_ready(oldest):
            ready += 1
            available += situation.is_available(oldest)
        updated += situation.is_new(oldest)
    status: Object = {
        "currentNumberScheduled": current,
        "numberMisscheduled": misscheduled,
        "desiredNumberScheduled": desired,
        "numberReady": ready,
    }
    rest = {
        "observedGeneration": int(objects.metadata(situation.daemon_set).get("generation") or 0),
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": desired - available,
    }
    status.update({k: v for k, v in rest.items() if v})
    if collision_count is not None:
        status["collisionCount"] = collision_count
    conditions = objects.get(situation.daemon_set, "status", "conditions", default=[])
    if conditions:
        status["conditions"] = conditions
    return status


def seconds_until_more_available(situation: Situation) -> float | None:
    minimum = min_ready_seconds(situation.daemon_set)
    pods = (pod for pods in situation.by_node.values() for pod in pods)
    waits = [w for w in (pod_facts.seconds_until_available(p, minimum, situation.now) for p in pods) if w]
    return min(waits, default=None)
