"""What of a CronJob runs, is due and is superfluous, and the Job of a moment (``cronjob_controllerv2.go``). Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import CRON_JOBS, JOBS
from controllers.cronjob.schedule import Schedule
from controllers.lib import pods as pod_facts
from controllers.lib.clock import format_time, parse_time
from controllers.lib.controller_ref import owner_reference

SCHEDULED_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: more missed moments than this are worth a warning: a wrong clock, or a controller that was away for long
MISSED_MAX = 100


@dataclass(frozen=True, slots=True)
class Told:
    """An event about the CronJob."""

    type: str
    reason: str
    message: str


def finished_as(job: Object) -> str:
    """Complete or Failed; "" of one that goes on."""
    for type_ in ("Complete", "Failed"):
        found = pod_facts.condition(job, type_)
        if found is not None and found.get("status") == "True":
            return type_
    return ""


def active(cron_job: Object) -> list[Object]:
    found: list[Object] = objects.get(cron_job, "status", "active", default=[])
    return found


def reference(job: Object) -> Object:
    """As it stands in ``status.active``."""
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": objects.name(job),
        "namespace": objects.namespace(job),
        "uid": objects.uid(job),
        "resourceVersion": objects.resource_version(job),
    }


def observe(cron_job: Object, jobs: Sequence[Object]) -> tuple[Object, list[Told]]:
    """The status after a look at the CronJob's Jobs: what ended is no longer active, what was started before a crash is, and the last
    success is noted."""
    told: list[Told] = []
    listed = {str(r.get("uid")): r for r in active(cron_job)}
    last = objects.get(cron_job, "status", "lastSuccessfulTime")
    for job in jobs:
        uid, end = objects.uid(job), finished_as(job)
        if end and uid in listed:
            del listed[uid]
            told.append(Told("Normal", "SawCompletedJob", f"Saw completed job: {objects.name(job)}, condition: {end}"))
        elif not end and uid not in listed and not objects.is_being_deleted(job):
            if SCHEDULED_ANNOTATION in objects.annotations(job):
                listed[uid] = reference(job)
            else:
                told.append(
                    Told("Warning", "UnexpectedJob", f"Saw a job that the controller did not create or forgot: {objects.name(job)}")
                )
        completed = objects.get(job, "status", "completionTime")
        if end == "Complete" and completed and (last is None or completed > last):
            last = completed
    return with_status(cron_job.get("status") or {}, active=list(listed.values()), lastSuccessfulTime=last), told


def with_status(status: Object, **fields: object) -> Object:
    """The status with those fields; what is empty is left out."""
    return {k: v for k, v in {**status, **fields}.items() if v}


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """``moment`` is the latest that has not been started and still may be; ``again_seconds`` when the next one comes."""

    moment: datetime.datetime | None
    again_seconds: float | None
    told: tuple[Told, ...] = ()


def due(cron_job: Object, schedule: Schedule, now: datetime.datetime) -> Due:
    spec = cron_job["spec"]
    created = parse_time(objects.metadata(cron_job).get("creationTimestamp"))
    last = parse_time(objects.get(cron_job, "status", "lastScheduleTime"))
    earliest = last or created or now
    deadline = spec.get("startingDeadlineSeconds")
    if deadline is not None:
        earliest = max(earliest, now - datetime.timedelta(seconds=int(deadline)))
    following = schedule.next(now)
    again = max(0.0, (following - now).total_seconds()) if following is not None else None
    moment = schedule.latest(earliest, now)
    if moment is None:
        return Due(moment=None, again_seconds=again, told=_missed_the_deadline(schedule, last or created or now, earliest, now))
    told: tuple[Told, ...] = ()
    if _count(schedule, earliest, now) > MISSED_MAX:
        told = (
            Told(
                "Warning",
                "TooManyMissedTimes",
                f"too many missed start times (> {MISSED_MAX}). Set or decrease .spec.startingDeadlineSeconds or check clock skew",
            ),
        )
    return Due(moment=moment, again_seconds=again, told=told)


def _missed_the_deadline(
    schedule: Schedule, since: datetime.datetime, earliest: datetime.datetime, now: datetime.datetime
) -> tuple[Told, ...]:
    missed = schedule.latest(since, now) if earliest > since else None
    if missed is None:
        return ()
    return (Told("Warning", "MissSchedule", f"Missed scheduled time to start a job: {format_time(missed)}"),)


def _count(schedule: Schedule, after: datetime.datetime, until: datetime.datetime) -> int:
    """How many moments there are, counted no further than one beyond the limit."""
    count = 0
    moment = schedule.next(after)
    while moment is not None and moment <= until and count <= MISSED_MAX:
        count += 1
        moment = schedule.next(moment)
    return count


def job_name(cron_job: Object, moment: datetime.datetime) -> str:
    """By the minute, so that a moment has one Job."""
    return f"{objects.name(cron_job)}-{int(moment.timestamp()) // 60}"


def job_for(cron_job: Object, moment: datetime.datetime, zone: datetime.tzinfo) -> Object:
    template = cron_job["spec"]["jobTemplate"]
    meta = objects.metadata(template)
    annotations = {**(meta.get("annotations") or {}), SCHEDULED_ANNOTATION: _rfc3339(moment.astimezone(zone))}
    metadata: Object = {
        "name": job_name(cron_job, moment),
        "namespace": objects.namespace(cron_job),
        "annotations": annotations,
        "creationTimestamp": None,
        "ownerReferences": [owner_reference(cron_job, CRON_JOBS)],
    }
    if meta.get("labels"):
        metadata["labels"] = dict(meta["labels"])
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": objects.deep_copy(template.get("spec") or {})}


def _rfc3339(moment: datetime.datetime) -> str:
    text = moment.replace(microsecond=0).isoformat()
    return text.replace("+00:00", "Z")


def superfluous(cron_job: Object, jobs: Sequence[Object]) -> list[Object]:
    """The oldest finished Jobs beyond the history limits; a limit that is not set keeps all."""
    out: list[Object] = []
    for end, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        limit = cron_job["spec"].get(field)
        if limit is None:
            continue
        ended = [job for job in jobs if finished_as(job) == end]
        ended.sort(key=lambda job: (str(objects.get(job, "status", "startTime", default="")), objects.name(job)))
        out += ended[: max(0, len(ended) - int(limit))]
    return out
