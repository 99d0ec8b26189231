"""Virtual time: event loops of many processes in one thread, and the choice of which runs next.

Each simulated process has a loop of its own, so that it can be killed in the middle of anything (its callbacks are never run again),
paused (they wait) and given a clock that runs fast or slow. Within a process callbacks run in the order asyncio promises; between
processes the seed chooses.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from asyncio import BaseEventLoop as _Loop  # for the checker, which wants every method of a loop; files and sockets have none here
else:
    from asyncio import AbstractEventLoop as _Loop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEPS_PER_INSTANT_MAX: Final = 50_000
"""Callbacks run without time moving on: beyond it something spins."""

EXECUTOR_SECONDS_MAX: Final = 0.004
"""Work given to a thread takes up to so long."""


class InvariantError(AssertionError):
    """The cluster did what it must not do: a fault of the program under test. ``raised`` keeps those of the run, so that a member that
    catches one hides nothing."""

    raised: ClassVar[list[InvariantError]] = []

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.raised.append(self)


class ProcessKilledError(BaseException):
    """Raised inside a process that dies at this very point. Nothing that catches it can have any effect."""


class World:
    """``now`` is true time in seconds; no process can see it. ``rng`` is the only source of chance of the run."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = random.Random(seed)
        self.current: ProcessLoop | None = None
        self.steps = 0
        self._order = 0
        self._timers: list[tuple[float, int, ProcessLoop, asyncio.Handle]] = []
        self._runnable: list[ProcessLoop] = []
        self._processes: list[ProcessLoop] = []
        self._graveyard: list[object] = []
        self.after_step: Callable[[ProcessLoop], None] = lambda process: None
        self.nature = self.process("nature")
        """What is no process: the network, the faults. Never dies."""

    def process(self, name: str, *, rate: float = 1.0, offset: float = 0.0) -> ProcessLoop:
        """A new process. Its monotonic clock shows ``offset + rate * now``."""
        process = ProcessLoop(self, name, rate=rate, offset=offset)
        self._processes.append(process)
        return process

    def fork(self) -> random.Random:
        """A source of chance of its own for a part of the run, so that the parts disturb each other less."""
        return random.Random(self.rng.getrandbits(64))

    def call_at(self, when: float, process: ProcessLoop, callback: Callable[..., object], *arguments: object) -> asyncio.Handle:
        """Run a callback in a process at a true time."""
        handle = asyncio.Handle(callback, arguments, process)
        self.push(when, process, handle)
        return handle

    def push(self, when: float, process: ProcessLoop, handle: asyncio.Handle) -> None:
        self._order += 1
        heapq.heappush(self._timers, (max(when, self.now), self._order, process, handle))

    def mark_runnable(self, process: ProcessLoop) -> None:
        self._runnable.append(process)

    def bury(self, remains: object) -> None:
        """Keep what a dead process leaves: its coroutines must not be unwound by the garbage collector in the middle of the run."""
        self._graveyard.append(remains)

    def run_until(self, future: asyncio.Future[T], *, deadline: float) -> T:
        """Run until ``future`` is done. Raises TimeoutError at the true time ``deadline``, or when nothing is left that could happen."""
        try:
            while not future.done():
                if not self._step(deadline):
                    raise TimeoutError(f"nothing more happens at {self.now:.3f} s, and the run is not done (deadline {deadline:.3f} s)")
        finally:
            self.current = None
            asyncio._set_running_loop(None)
        return future.result()

    def _step(self, deadline: float) -> bool:
        runnable = self._runnable
        if not runnable:
            return self._advance(deadline)
        position = self.rng.randrange(len(runnable)) if len(runnable) > 1 else 0
        process = runnable[position]
        self.steps += process.run_ready()
        if not process.can_run():
            process.is_marked = False
            runnable[position] = runnable[-1]
            runnable.pop()
        if self.steps > STEPS_PER_INSTANT_MAX:
            raise InvariantError(f"{self.steps} callbacks ran at {self.now:.3f} s without time moving on; the last in {process.name}")
        self.after_step(process)
        if InvariantError.raised:
            raise InvariantError.raised[0]
        return True

    def _advance(self, deadline: float) -> bool:
        """Go to the time of the next timer and make all that are due ready."""
        timers = self._timers
        while timers and (timers[0][3].cancelled() or timers[0][2].is_dead):
            heapq.heappop(timers)
        if not timers or timers[0][0] > deadline:
            return False
        if timers[0][0] > self.now:
            self.steps = 0
        self.now = timers[0][0]
        while timers and timers[0][0] <= self.now:
            _, _, process, handle = heapq.heappop(timers)
            if not handle.cancelled():
                process.make_ready(handle)
        return True

    def close(self) -> None:
        """The run is over: nothing happens any more, and what is left is unwound now rather than in the middle of the next run."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.unwind()
        self._timers.clear()
        self._runnable.clear()
        self._graveyard.clear()


class ProcessLoop(_Loop):
    """The event loop of one process, for what asyncio's tasks, futures, timeouts and queues ask of one. No files, no sockets."""

    def __init__(self, world: World, name: str, *, rate: float, offset: float) -> None:
        self.world = world
        self.name = name
        self.rate = rate
        self.offset = offset
        self.is_dead = False
        self.is_paused = False
        self.is_marked = False
        self.failure: BaseException | None = None
        self.observed: Any = None
        """The observers' notes on this process."""
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: dict[asyncio.Task[Any], None] = {}

    # -- what the world does with it

    def can_run(self) -> bool:
        return bool(self._ready) and not self.is_paused and not self.is_dead

    def make_ready(self, handle: asyncio.Handle) -> None:
        if self.is_dead:
            return
        self._ready.append(handle)
        if not self.is_marked and not self.is_paused:
            self.is_marked = True
            self.world.mark_runnable(self)

    def run_ready(self) -> int:
        """Run what is ready now, as one pass of asyncio's loop does; answers how many callbacks. (What other processes do at the same
        instant cannot matter: nothing gets from one to the other without time passing.)"""
        ready = self._ready
        count = len(ready)
        self.world.current = self
        asyncio._set_running_loop(self)
        for done in range(count):
            if self.is_paused or self.is_dead:
                return done
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
        return count

    def pause(self) -> None:
        """As SIGSTOP does."""
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        if self._ready and not self.is_marked and not self.is_dead:
            self.is_marked = True
            self.world.mark_runnable(self)

    def kill(self) -> None:
        """As SIGKILL does: no callback of it runs any more. If it is the one that runs now, the caller raises ProcessKilledError next."""
        if self.is_dead:
            return
        self.is_dead = True
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.world.bury(self._ready)
        self._ready = deque()

    def unwind(self) -> None:
        """Close the coroutines of a dead process, whatever they make of it."""
        assert self.is_dead
        for task in self._tasks:
            with contextlib.suppress(RuntimeError, Exception):
                task.get_coro().close()
        self._tasks = {}

    def enter(self) -> _Running:
        """Run code as this process, outside of a callback."""
        return _Running(self)

    # -- what asyncio asks

    def time(self) -> float:
        return self.offset + self.rate * self.world.now

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.make_ready(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self.is_dead:
            self.world.push((when - self.offset) / self.rate, self, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """The world passes over cancelled handles."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=str(name or self.name), context=context)
        self._tasks[task] = None
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        if not self.is_dead:
            self._tasks.pop(task, None)

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """The work is done at one moment, some time from now."""
        future: asyncio.Future[T] = self.create_future()
        world = self.world
        world.call_at(world.now + world.rng.random() * EXECUTOR_SECONDS_MAX, self, self._execute, future, func, args)
        return future

    def _execute(self, future: asyncio.Future[Any], func: Callable[..., object], args: tuple[object, ...]) -> None:
        try:
            result = func(*args)
        except ProcessKilledError:
            raise
        except BaseException as error:
            # As an executor does: what the work raises is its caller's.
            if not future.done():
                future.set_exception(error)
            return
        if not future.done():
            future.set_result(result)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """There are no threads."""

    async def shutdown_asyncgens(self) -> None:
        """The world outlives every process."""

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self.world.current is self

    def is_closed(self) -> bool:
        return self.is_dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What no code of the process caught."""
        error = context.get("exception")
        if self.is_dead or isinstance(error, ProcessKilledError):
            return
        if error is None:
            error = InvariantError(f"{self.name}: {context.get('message')}")
        if self.failure is None:
            self.failure = error


class _Running:
    """Makes a loop the running one; restores what ran before."""

    __slots__ = ("_before", "_process")

    def __init__(self, process: ProcessLoop) -> None:
        self._process = process

    def __enter__(self) -> None:
        world = self._process.world
        self._before = world.current
        world.current = self._process
        asyncio._set_running_loop(self._process)

    def __exit__(self, *error: object) -> None:
        self._process.world.current = self._before
        asyncio._set_running_loop(self._before)
