"""The shell: events of CronJobs and their Jobs, and the clock → keys; a key → start, replace, tidy, write the status."""

from __future__ import annotations

import datetime

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import DeleteOptions, Propagation
from controllers.client.resources import CRON_JOBS, JOBS
from controllers.cronjob import decision
from controllers.cronjob import schedule as schedules
from controllers.cronjob.schedule import ScheduleInvalid
from controllers.lib.clock import format_time
from controllers.lib.context import ControllerContext
from controllers.lib.pod_index import BY_CONTROLLER, index_by_controller
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 5
#: after the moment, so that a clock cut to parts of a second does not come a little too early
SLACK_SECONDS = 0.1


class CronJobController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock, self._recorder = context.api, context.clock, context.recorder
        self.queue = RateLimitingQueue(context.clock)
        self._cron_jobs = context.informers.informer(CRON_JOBS)
        self._jobs = context.informers.informer(JOBS)
        self._jobs.add_index(BY_CONTROLLER, index_by_controller)
        self._cron_jobs.add_handler(EventHandler(on_add=self._enqueue, on_update=lambda _, new: self._enqueue(new)))
        self._jobs.add_handler(EventHandler.for_each(self._on_job))

    async def run(self) -> None:
        await run_workers("cronjob-controller", self.queue, self.sync, workers=WORKERS)

    # events → keys

    def _enqueue(self, cron_job: Object) -> None:
        self.queue.add(key_of(cron_job))

    def _on_job(self, job: Object) -> None:
        owner = objects.controller_of(job)
        if owner is not None and owner.get("kind") == CRON_JOBS.kind:
            self.queue.add(f"{objects.namespace(job)}/{owner.get('name')}")

    # a key → what it needs

    async def sync(self, key: str) -> None:
        cron_job = self._cron_jobs.indexer.get(key)
        if cron_job is None:
            return
        jobs = self._jobs.indexer.by_index(BY_CONTROLLER, objects.uid(cron_job))
        status, told = decision.observe(cron_job, jobs)
        self._tell(cron_job, told)
        status = await self._without_missing(cron_job, status, jobs)
        again: float | None = None
        try:
            if not objects.is_being_deleted(cron_job) and not cron_job["spec"].get("suspend"):
                again = await self._start_what_is_due(cron_job, status, jobs)
        finally:
            # what was started or removed before a failure stands in the status nonetheless
            await self._write_status(cron_job, status)
        for job in decision.superfluous(cron_job, jobs):
            await self._delete(cron_job, job)
        if again is not None:
            self.queue.add_after(key, again + SLACK_SECONDS)

    def _tell(self, cron_job: Object, told: list[decision.Told] | tuple[decision.Told, ...]) -> None:
        for one in told:
            self._recorder.event(cron_job, one.type, one.reason, one.message)

    async def _without_missing(self, cron_job: Object, status: Object, jobs: list[Object]) -> Object:
        """Drops active Jobs that neither the cache nor the server have; a Job just made may not be in the cache."""
        known = {objects.uid(job) for job in jobs}
        kept = []
        for reference in status.get("active") or []:
            if reference.get("uid") not in known:
                live = await self._read(objects.namespace(cron_job), str(reference.get("name")))
                if live is None or objects.uid(live) != reference.get("uid"):
                    self._recorder.event(cron_job, "Normal", "MissingJob", f"Active job went missing: {reference.get('name')}")
                    continue
            kept.append(reference)
        return decision.with_status(status, active=kept)

    async def _read(self, namespace: str, name: str) -> Object | None:
        try:
            return await self._api.get(JOBS, namespace, name)
        except errors.StatusError as error:
            if errors.is_not_found(error):
                return None
            raise

    async def _start_what_is_due(self, cron_job: Object, status: Object, jobs: list[Object]) -> float | None:
        """Changes ``status`` by what it starts and replaces; the seconds until the next moment."""
        spec = cron_job["spec"]
        try:
            schedule = schedules.parse(str(spec.get("schedule")), spec.get("timeZone"))
        except ScheduleInvalid as error:
            self._recorder.event(cron_job, "Warning", "UnparseableSchedule", f"unparseable schedule {spec.get('schedule')!r}: {error}")
            return None
        due = decision.due({**cron_job, "status": status}, schedule, self._clock.now())
        self._tell(cron_job, due.told)
        running = status.get("active") or []
        if due.moment is None:
            return due.again_seconds
        if any(r.get("name") == decision.job_name(cron_job, due.moment) for r in running):
            status["lastScheduleTime"] = format_time(due.moment)
            return due.again_seconds
        policy = spec.get("concurrencyPolicy")
        if policy == "Forbid" and running:
            self._recorder.event(
                cron_job,
                "Normal",
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is Forbid",
            )
            return due.again_seconds
        if policy == "Replace":
            for reference in list(running):
                await self._delete(cron_job, {"metadata": {"namespace": objects.namespace(cron_job), **_named(reference)}})
                status["active"] = [r for r in status["active"] if r is not reference]
        await self._start(cron_job, status, due.moment)
        return due.again_seconds

    async def _start(self, cron_job: Object, status: Object, moment: datetime.datetime) -> None:
        zone = schedules.zone_of(str(cron_job["spec"].get("schedule")), cron_job["spec"].get("timeZone"))
        wanted = decision.job_for(cron_job, moment, zone)
        try:
            made = await self._api.create(JOBS, objects.namespace(cron_job), wanted)
            self._recorder.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {objects.name(made)}")
        except errors.TRANSIENT as error:
            if errors.is_namespace_terminating(error):
                return
            existing = await self._read(objects.namespace(cron_job), objects.name(wanted)) if errors.is_already_exists(error) else None
            if existing is None or (objects.controller_of(existing) or {}).get("uid") != objects.uid(cron_job):
                self._recorder.event(cron_job, "Warning", "FailedCreate", f"Error creating job: {error}")
                raise
            made = existing  # started before, by a sync whose status was not written
        if not decision.finished_as(made):
            status["active"] = [*(status.get("active") or []), decision.reference(made)]
        status["lastScheduleTime"] = format_time(moment)

    async def _delete(self, cron_job: Object, job: Object) -> None:
        name = objects.name(job)
        try:
            await self._api.delete(
                JOBS, objects.namespace(job), name, DeleteOptions(propagation=Propagation.BACKGROUND, uid=objects.uid(job))
            )
        except errors.TRANSIENT as error:
            if errors.is_not_found(error) or errors.is_conflict(error):
                return
            self._recorder.event(cron_job, "Warning", "FailedDelete", f"Deleted job: {error}")
            raise
        self._recorder.event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name}")

    async def _write_status(self, cron_job: Object, wanted: Object) -> None:
        """On a conflict the key is tried again: what was started is found by its name."""
        status = decision.with_status(wanted)
        if status == decision.with_status(cron_job.get("status") or {}):
            return
        try:
            await self._api.update(CRON_JOBS, {**cron_job, "status": status}, subresource="status")
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise


def _named(reference: Object) -> Object:
    return {"name": reference.get("name"), "uid": reference.get("uid")}
