"""A Deployment's status and conditions (``deployment_util.go``, ``progress.go``). Pure."""

from __future__ import annotations

import datetime

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.deployment import facts
from controllers.deployment.revisions import Sets
from controllers.lib.clock import format_time, parse_time

AVAILABLE = "Available"
PROGRESSING = "Progressing"
REPLICA_FAILURE = "ReplicaFailure"

NEW_SET_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
CREATE_FAILED = "ReplicaSetCreateError"


def condition(status: Object, type_: str) -> Object | None:
    return next((c for c in status.get("conditions") or [] if c.get("type") == type_), None)


def new_condition(type_: str, status: str, reason: str, message: str, now: datetime.datetime) -> Object:
    stamp = format_time(now)
    return {"type": type_, "status": status, "lastUpdateTime": stamp, "lastTransitionTime": stamp, "reason": reason, "message": message}


def with_condition(status: Object, new: Object) -> Object:
    """Same status and reason: nothing changes, not even the time of update. Same status: the time of transition stays."""
    current = condition(status, new["type"])
    if current is not None:
        if current.get("status") == new["status"] and current.get("reason") == new["reason"]:
            return status
        if current.get("status") == new["status"]:
            new = {**new, "lastTransitionTime": current.get("lastTransitionTime")}
    return {**without_condition(status, new["type"]), "conditions": [*_others(status, new["type"]), new]}


def without_condition(status: Object, type_: str) -> Object:
    others = _others(status, type_)
    out = {k: v for k, v in status.items() if k != "conditions"}
    return {**out, "conditions": others} if others else out


def _others(status: Object, type_: str) -> list[Object]:
    return [c for c in status.get("conditions") or [] if c.get("type") != type_]


def counted(deployment: Object, sets: Sets, now: datetime.datetime) -> Object:
    """The numbers, and Available; other conditions stay as they are. Zeros are left out as Kubernetes' encoding does."""
    every = sets.all
    available = sum(facts.available(s) for s in every)
    numbers = {
        "observedGeneration": int(objects.metadata(deployment).get("generation") or 0),
        "replicas": sum(facts.status_count(s, "replicas") for s in every),
        "updatedReplicas": facts.status_count(sets.new, "replicas") if sets.new is not None else 0,
        "readyReplicas": sum(facts.status_count(s, "readyReplicas") for s in every),
        "availableReplicas": available,
        "unavailableReplicas": max(0, facts.total_replicas(every) - available),
        "collisionCount": facts.status_count(deployment, "collisionCount"),
    }
    status: Object = {k: v for k, v in numbers.items() if v}
    conditions = objects.get(deployment, "status", "conditions", default=[])
    if conditions:
        status["conditions"] = conditions
    if available >= facts.replicas(deployment) - facts.max_unavailable(deployment):
        found = new_condition(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    else:
        found = new_condition(AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now)
    return with_condition(status, found)


def rollout(deployment: Object, sets: Sets, now: datetime.datetime) -> Object:
    """``counted``, with what is to be said of the rollout's progress and of failures to create pods."""
    status = counted(deployment, sets, now)
    deadline = facts.progress_deadline(deployment)
    if deadline is None:
        status = without_condition(status, PROGRESSING)
    else:
        status = _progress(deployment, sets, status, deadline, now)
    failure = _replica_failure(sets)
    return with_condition(status, failure) if failure is not None else without_condition(status, REPLICA_FAILURE)


def _progress(deployment: Object, sets: Sets, status: Object, deadline: int, now: datetime.datetime) -> Object:
    current = condition(status, PROGRESSING)
    finished = status.get("replicas", 0) == status.get("updatedReplicas", 0) and (
        current is not None and current.get("reason") == NEW_SET_AVAILABLE
    )
    if finished:
        return status
    subject = f'ReplicaSet "{objects.name(sets.new)}"' if sets.new is not None else f'Deployment "{objects.name(deployment)}"'
    if facts.is_complete(deployment, status):
        message = f"{subject} has successfully progressed."
        return with_condition(status, new_condition(PROGRESSING, "True", NEW_SET_AVAILABLE, message, now))
    if has_progressed(deployment.get("status") or {}, status):
        new = new_condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if current is not None and current.get("status") == "True":
            new["lastTransitionTime"] = current.get("lastTransitionTime")
        # also where only its time of update changes: the deadline counts from the last progress
        return {**status, "conditions": [*_others(status, PROGRESSING), new]}
    if has_timed_out(current, deadline, now):
        message = f"{subject} has timed out progressing."
        return with_condition(status, new_condition(PROGRESSING, "False", TIMED_OUT, message, now))
    return status


def has_progressed(old: Object, new: Object) -> bool:
    """More updated, ready or available pods, or fewer of the old template."""

    def count(status: Object, field: str) -> int:
        return int(status.get(field) or 0)

    def outdated(status: Object) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    grown = any(count(new, field) > count(old, field) for field in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return grown or outdated(new) < outdated(old)


def has_timed_out(current: Object | None, deadline: int, now: datetime.datetime) -> bool:
    if current is None or current.get("reason") == NEW_SET_AVAILABLE:
        return False
    if current.get("reason") == TIMED_OUT:
        return True
    if current.get("reason") == PAUSED:
        return False
    updated = parse_time(current.get("lastUpdateTime"))
    return updated is not None and (now - updated).total_seconds() > deadline


def seconds_until_timeout(deployment: Object, status: Object, now: datetime.datetime) -> float | None:
    """When to look again for a rollout that makes no progress; None where there is nothing to wait for."""
    deadline = facts.progress_deadline(deployment)
    current = condition(status, PROGRESSING)
    if deadline is None or current is None or facts.is_complete(deployment, status):
        return None
    if current.get("reason") in (TIMED_OUT, NEW_SET_AVAILABLE, PAUSED):
        return None
    updated = parse_time(current.get("lastUpdateTime"))
    if updated is None:
        return None
    # a second more, as stamps are cut to whole seconds
    return max(1.0, deadline - (now - updated).total_seconds() + 1)


def pause_condition(deployment: Object, now: datetime.datetime) -> Object | None:
    """The Progressing condition that tells of a pause or its end, where it is not there yet."""
    if facts.progress_deadline(deployment) is None:
        return None
    current = condition(deployment.get("status") or {}, PROGRESSING)
    reason = current.get("reason") if current is not None else None
    if reason == TIMED_OUT:
        return None
    if facts.is_paused(deployment) and reason != PAUSED:
        return new_condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    if not facts.is_paused(deployment) and reason == PAUSED:
        return new_condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
    return None


def _replica_failure(sets: Sets) -> Object | None:
    candidates = [] if sets.new is None else [sets.new]
    for replica_set in [*candidates, *sets.old]:
        found = next((c for c in objects.get(replica_set, "status", "conditions", default=[]) if c.get("type") == REPLICA_FAILURE), None)
        if found is not None:
            return {
                "type": REPLICA_FAILURE,
                "status": found.get("status"),
                "lastUpdateTime": found.get("lastTransitionTime"),
                "lastTransitionTime": found.get("lastTransitionTime"),
                "reason": found.get("reason"),
                "message": found.get("message"),
            }
    return None
