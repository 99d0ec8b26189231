"""One queue: a Job comes when its time is over."""

from __future__ import annotations

import datetime

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.cache.indexer import key_of, split_key
from controllers.cache.shared_informer import EventHandler
from controllers.client import errors
from controllers.client.interface import DeleteOptions, Propagation
from controllers.client.resources import JOBS
from controllers.job.decision import finished_condition
from controllers.lib.clock import parse_time
from controllers.lib.context import ControllerContext
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue
from controllers.workqueue.worker import run_workers

WORKERS = 2


def seconds_left(job: Object, now: datetime.datetime) -> float | None:
    """Until the Job is to go; None for one that stays. Pure."""
    ttl = objects.get(job, "spec", "ttlSecondsAfterFinished")
    finished = finished_condition(job)
    if ttl is None or finished is None or objects.is_being_deleted(job):
        return None
    ended = parse_time(finished.get("lastTransitionTime"))
    return None if ended is None else max(0.0, float(ttl) - (now - ended).total_seconds())


class TTLAfterFinishedController:
    def __init__(self, context: ControllerContext) -> None:
        self._api, self._clock = context.api, context.clock
        self.queue = RateLimitingQueue(context.clock)
        context.informers.informer(JOBS).add_handler(EventHandler(on_add=self._on_job, on_update=lambda _, new: self._on_job(new)))

    async def run(self) -> None:
        await run_workers("ttl-after-finished-controller", self.queue, self.sync, workers=WORKERS)

    def _on_job(self, job: Object) -> None:
        left = seconds_left(job, self._clock.now())
        if left is not None:
            self.queue.add_after(key_of(job), left)

    async def sync(self, key: str) -> None:
        namespace, name = split_key(key)
        try:
            job = await self._api.get(JOBS, namespace, name)
            left = seconds_left(job, self._clock.now())
            if left is None:
                return
            if left > 0:
                self.queue.add_after(key, left)
                return
            options = DeleteOptions(propagation=Propagation.FOREGROUND, uid=objects.uid(job))
            await self._api.delete(JOBS, namespace, name, options)
        except errors.StatusError as error:
            if not errors.is_not_found(error):
                raise
