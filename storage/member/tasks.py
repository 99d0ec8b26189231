"""The tasks of a member: owned by one object, ended with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


class Tasks:
    """``failed`` is told what a task did not handle itself."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._running: dict[asyncio.Task[None], None] = {}

    def spawn(self, work: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._done)
        return task

    async def cancel_all(self) -> None:
        """Return when every task has ended. Idempotent."""
        tasks = [task for task in self._running if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
