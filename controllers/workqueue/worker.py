"""Workers: take keys, call ``sync(key)``, and queue again what failed (the loop every controller has)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from controllers.client import errors
from controllers.workqueue.rate_limiting_queue import RateLimitingQueue

Sync = Callable[[str], Awaitable[None]]

log = logging.getLogger(__name__)


async def run_workers(name: str, queue: RateLimitingQueue, sync: Sync, *, workers: int, retries_max: int | None = None) -> None:
    """Runs until cancelled. ``retries_max`` gives a key up after so many failures in a row, until something new adds it; None never does.

    An error that the API server can cause is logged in a line. Any other is a fault of this program: logged with its traceback, and
    the key is tried again like others, so that one odd object does not stop the controller for all.
    """
    async with asyncio.TaskGroup() as group:
        group.create_task(queue.run(), name=f"{name} delays")
        for number in range(workers):
            group.create_task(_work(name, queue, sync, retries_max), name=f"{name} worker {number}")


def _level_of(error: Exception) -> int:
    """A lost race is nothing to tell; a refusal is told where it belongs, in events and conditions; a server that fails is a warning."""
    if errors.is_conflict(error) or errors.is_not_found(error):
        return logging.DEBUG
    return logging.INFO if isinstance(error, errors.StatusError) and error.code < 500 else logging.WARNING


async def _work(name: str, queue: RateLimitingQueue, sync: Sync, retries_max: int | None) -> None:
    while True:
        key = await queue.get()
        try:
            await sync(key)
        except Exception as error:  # the task's outermost edge
            if isinstance(error, errors.TRANSIENT):
                log.log(_level_of(error), "%s: %s failed, will try again: %s", name, key, error)
            else:
                log.exception("%s: %s failed by a fault in the controller", name, key)
            if retries_max is None or queue.failures(key) < retries_max:
                queue.add_rate_limited(key)
            else:
                log.warning("%s: %s given up after %d tries", name, key, retries_max + 1)
                queue.forget(key)
        else:
            queue.forget(key)
        finally:
            queue.done(key)
