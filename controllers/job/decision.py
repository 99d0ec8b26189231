"""What a Job needs next: pods to make, pods to delete, its status, and when to look again. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.job import indexes
from controllers.lib import pods as pod_facts
from controllers.lib.clock import format_time, parse_time

#: kube-controller-manager's pauses after failures: the first, doubling up to the maximum
BACKOFF_SECONDS = 10.0
BACKOFF_SECONDS_MAX = 360.0
#: creations of one sync
CREATIONS_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """``create`` holds completion indexes of Indexed jobs, else Nones; ``events`` are (type, reason, message)."""

    status: Object
    create: tuple[int | None, ...] = ()
    delete: tuple[Object, ...] = ()
    events: tuple[tuple[str, str, str], ...] = ()
    again_seconds: float | None = None


@dataclass(slots=True)
class _Facts:
    active: list[Object] = field(default_factory=list)
    succeeded: list[Object] = field(default_factory=list)
    failed: list[Object] = field(default_factory=list)
    terminating: int = 0


def is_finished(job: Object) -> bool:
    return finished_condition(job) is not None


def finished_condition(job: Object) -> Object | None:
    return next(
        (
            c
            for c in objects.get(job, "status", "conditions", default=[])
            if c.get("type") in ("Complete", "Failed") and c.get("status") == "True"
        ),
        None,
    )


def is_indexed(job: Object) -> bool:
    return bool(objects.get(job, "spec", "completionMode", default="NonIndexed") == "Indexed")


def plan(job: Object, pods: Sequence[Object], now: datetime.datetime, *, may_manage: bool) -> JobPlan:
    """``may_manage`` is false while creations or deletions of before have not been seen; counts are right all the same."""
    facts = _facts(pods)
    status = _counted(job, facts)
    suspended = bool(objects.get(job, "spec", "suspend", default=False))
    if is_finished(job):
        return JobPlan(status=_without_active(status), delete=tuple(facts.active))
    failure = _failure(job, facts, status, now)
    if failure is not None:
        return _finish(job, status, facts, now, "Failed", "FailureTarget", *failure)
    if suspended:
        return _suspend(job, status, facts, now)
    events: list[tuple[str, str, str]] = []
    if not status.get("startTime"):
        status["startTime"] = format_time(now)
    if _has_true(status, "Suspended"):
        status["conditions"] = pod_facts.with_condition(
            status["conditions"], _condition("Suspended", False, "JobResumed", "Job resumed", now)
        )
        status["startTime"] = format_time(now)
        events.append(("Normal", "Resumed", "Job resumed"))
    if _is_complete(job, status, facts):
        return _finish(
            job, status, facts, now, "Complete", "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"
        )
    create: tuple[int | None, ...] = ()
    delete: tuple[Object, ...] = ()
    pause = _pause(job, facts, now)
    if may_manage:
        create, delete = _manage(job, status, facts)
        if create and pause > 0:
            create = ()
    deadline = _seconds_to_deadline(job, status, now)
    waits = [w for w in (pause if pause > 0 else None, deadline) if w is not None]
    return JobPlan(status=status, create=create, delete=delete, events=tuple(events), again_seconds=min(waits, default=None))


def _facts(pods: Sequence[Object]) -> _Facts:
    out = _Facts()
    for pod in pods:
        phase = pod_facts.phase(pod)
        if phase == "Succeeded":
            out.succeeded.append(pod)
        elif phase == "Failed":
            out.failed.append(pod)
        elif objects.is_being_deleted(pod):
            out.terminating += 1
        else:
            out.active.append(pod)
    return out


def _counted(job: Object, facts: _Facts) -> Object:
    """Numbers never sink when finished pods are cleaned away."""
    old = job.get("status") or {}
    out = {k: v for k, v in old.items() if k in ("conditions", "startTime", "completionTime", "completedIndexes")}
    if is_indexed(job):
        completed = indexes.parse(str(old.get("completedIndexes") or ""))
        limit = int(job["spec"].get("completions") or 0)
        completed |= {i for i in (indexes.of_pod(p) for p in facts.succeeded) if i is not None and i < limit}
        if completed:
            out["completedIndexes"] = indexes.text(completed)
        succeeded = len(completed)
    else:
        succeeded = max(len(facts.succeeded), int(old.get("succeeded") or 0))
    counts = {"active": len(facts.active), "succeeded": succeeded, "failed": max(len(facts.failed), int(old.get("failed") or 0))}
    out.update({k: v for k, v in counts.items() if v})
    out["ready"] = sum(1 for p in facts.active if pod_facts.is_ready(p))
    out["terminating"] = facts.terminating
    out["uncountedTerminatedPods"] = {}
    return out


def _without_active(status: Object) -> Object:
    out = {k: v for k, v in status.items() if k != "active"}
    out["ready"] = out["terminating"] = 0
    return out


def _failure(job: Object, facts: _Facts, status: Object, now: datetime.datetime) -> tuple[str, str] | None:
    spec = job["spec"]
    limit = int(spec["backoffLimit"]) if spec.get("backoffLimit") is not None else 6
    failed = int(status.get("failed") or 0)
    restarts = 0
    if objects.get(spec, "template", "spec", "restartPolicy") == "OnFailure":
        restarts = sum(
            int(s.get("restartCount") or 0)
            for p in facts.active
            for group in ("initContainerStatuses", "containerStatuses")
            for s in objects.get(p, "status", group, default=[])
        )
    if failed > limit or (restarts > 0 and restarts >= limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = _seconds_to_deadline(job, status, now)
    if left is not None and left <= 0 and not spec.get("suspend"):
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _seconds_to_deadline(job: Object, status: Object, now: datetime.datetime) -> float | None:
    deadline = job["spec"].get("activeDeadlineSeconds")
    started = parse_time(status.get("startTime"))
    if deadline is None or started is None:
        return None
    return float(deadline) - (now - started).total_seconds()


def _is_complete(job: Object, status: Object, facts: _Facts) -> bool:
    completions = job["spec"].get("completions")
    succeeded = int(status.get("succeeded") or 0)
    if completions is None:  # a work queue: one success says that the queue is empty
        return succeeded > 0 and not facts.active
    return succeeded >= int(completions)


def _finish(
    job: Object, status: Object, facts: _Facts, now: datetime.datetime, type_: str, intent: str, reason: str, message: str
) -> JobPlan:
    """First what is to become of it, which is final; and when nothing runs any more, that it has."""
    conditions = pod_facts.with_condition(status.get("conditions") or [], _condition(intent, True, reason, message, now))
    if facts.active or facts.terminating:
        return JobPlan(status={**status, "conditions": conditions}, delete=tuple(facts.active), again_seconds=None)
    conditions = pod_facts.with_condition(conditions, _condition(type_, True, reason, message, now))
    finished = {**_without_active(status), "conditions": conditions}
    finished.setdefault("startTime", format_time(now))
    if type_ == "Complete":
        finished["completionTime"] = format_time(now)
        return JobPlan(status=finished, events=(("Normal", "Completed", "Job completed"),))
    return JobPlan(status=finished, events=(("Warning", reason, message),))


def _suspend(job: Object, status: Object, facts: _Facts, now: datetime.datetime) -> JobPlan:
    status.pop("startTime", None)
    events: tuple[tuple[str, str, str], ...] = ()
    if not _has_true(status, "Suspended"):
        new = _condition("Suspended", True, "JobSuspended", "Job suspended", now)
        status["conditions"] = pod_facts.with_condition(status.get("conditions") or [], new)
        events = (("Normal", "Suspended", "Job suspended"),)
    return JobPlan(status=status, delete=tuple(facts.active), events=events)


def _manage(job: Object, status: Object, facts: _Facts) -> tuple[tuple[int | None, ...], tuple[Object, ...]]:
    parallelism = int(job["spec"]["parallelism"]) if job["spec"].get("parallelism") is not None else 1
    completions = job["spec"].get("completions")
    succeeded = int(status.get("succeeded") or 0)
    active = facts.active
    if completions is None:
        wanted = parallelism if succeeded == 0 else min(len(active), parallelism)
    else:
        wanted = min(int(completions) - succeeded, parallelism)
    if is_indexed(job):
        return _manage_indexed(job, status, active, wanted)
    if len(active) > wanted:
        return (), tuple(sorted(active, key=_loses_least)[: len(active) - wanted])
    return (None,) * min(wanted - len(active), CREATIONS_MAX), ()


def _manage_indexed(job: Object, status: Object, active: list[Object], wanted: int) -> tuple[tuple[int | None, ...], tuple[Object, ...]]:
    """One active pod an index; the lowest indexes first."""
    completed = indexes.parse(str(status.get("completedIndexes") or ""))
    by_index: dict[int, Object] = {}
    surplus: list[Object] = []
    for pod in sorted(active, key=_loses_least, reverse=True):
        index = indexes.of_pod(pod)
        if index is None or index in by_index or index in completed or index >= int(job["spec"]["completions"]):
            surplus.append(pod)
        else:
            by_index[index] = pod
    keep = sorted(by_index)[:wanted]
    surplus += [by_index[i] for i in sorted(by_index)[wanted:]]
    if surplus:
        return (), tuple(surplus)
    free = [i for i in range(int(job["spec"]["completions"])) if i not in completed and i not in by_index]
    return tuple(free[: min(wanted - len(keep), CREATIONS_MAX)]), ()


def _loses_least(pod: Object) -> tuple[object, ...]:
    return (
        pod_facts.node_name(pod) != "",
        pod_facts.phase(pod) == "Running",
        pod_facts.is_ready(pod),
        str(objects.metadata(pod).get("creationTimestamp") or ""),
        objects.name(pod),
    )


def _pause(job: Object, facts: _Facts, now: datetime.datetime) -> float:
    """Seconds until the next pod may be made: failures since the last success double the pause, which counts from the last failure."""
    last_success = max((t for t in map(_ended_at, facts.succeeded) if t is not None), default=None)
    ends = sorted(t for t in map(_ended_at, facts.failed) if t is not None and (last_success is None or t > last_success))
    if not ends:
        return 0.0
    wait = min(BACKOFF_SECONDS * 2.0 ** min(len(ends) - 1, 16), BACKOFF_SECONDS_MAX)
    return max(0.0, wait - (now - ends[-1]).total_seconds())


def _ended_at(pod: Object) -> datetime.datetime | None:
    """When its last container ended; else when it stopped being ready, or was made."""
    statuses = objects.get(pod, "status", "containerStatuses", default=[])
    ends = [parse_time(objects.get(s, "state", "terminated", "finishedAt")) for s in statuses]
    known = [e for e in ends if e is not None]
    if known:
        return max(known)
    ready = pod_facts.condition(pod, "Ready")
    return parse_time((ready or {}).get("lastTransitionTime")) or parse_time(objects.metadata(pod).get("creationTimestamp"))


def _has_true(status: Object, type_: str) -> bool:
    return any(c.get("type") == type_ and c.get("status") == "True" for c in status.get("conditions") or [])


def _condition(type_: str, truth: bool, reason: str, message: str, now: datetime.datetime) -> Object:
    return {**pod_facts.new_condition(type_, truth, now, reason, message), "lastProbeTime": format_time(now)}
