"""The thread that writes the log: one sync for all that has come together while the one before ran."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from storage.raft.messages import Entry, HardState, SnapshotMetadata
from storage.raft.rawnode import Ready

BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
"""Entry data written with one sync. What is beyond it waits for the next, so one write never takes arbitrarily long."""


class Log(Protocol):
    """What the thread does with ``Wal``. ``segment_count`` is read on the loop."""

    def save(self, hard_state: HardState | None, entries: list[Entry]) -> None: ...

    def save_snapshot(self, snapshot: SnapshotMetadata) -> None: ...

    def restart_at(self, snapshot: SnapshotMetadata) -> None: ...

    def release(self) -> int: ...

    @property
    def segment_count(self) -> int: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SaveJob:
    """Make what a Ready holds durable; a snapshot's mark before its entries."""

    ready: Ready
    hard_state: HardState | None


@dataclass(frozen=True, slots=True)
class MarkerJob:
    """Write a snapshot marker and release the segments before it."""

    snapshot: SnapshotMetadata


Job: TypeAlias = SaveJob | MarkerJob
OnSaved: TypeAlias = Callable[[list[Ready], float], None]
OnFailed: TypeAlias = Callable[[BaseException], None]

SWITCH_INTERVAL_SECONDS: Final = 0.0002
"""Python lets a thread that came back from the disk wait for the interpreter for a switch interval while the event loop computes. At
the default of 5 ms a busy server's writes take ten times as long as the disk; at this one reads lose nothing that can be measured."""


class _SwitchInterval:
    """Short while any disk thread of this process runs; before the first and after the last it is what it was."""

    def __init__(self) -> None:
        self._users = 0
        self._before = 0.0

    def enter(self) -> None:
        if not self._users:
            self._before = sys.getswitchinterval()
            sys.setswitchinterval(min(self._before, SWITCH_INTERVAL_SECONDS))
        self._users += 1

    def leave(self) -> None:
        assert self._users > 0
        self._users -= 1
        if not self._users:
            sys.setswitchinterval(self._before)


_switch_interval = _SwitchInterval()


class DiskWorker:
    """Jobs are done in order. ``on_saved(readys, seconds)`` and ``on_failed(error)`` are called from the thread: they must hand over to
    the owner's loop. After a failure nothing more is written (what reached the disk is not known), and every later job is dropped."""

    def __init__(self, log: Log, *, on_saved: OnSaved, on_failed: OnFailed, name: str) -> None:
        self._log = log
        self._on_saved = on_saved
        self._on_failed = on_failed
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._final_state: HardState | None = None

    def start(self) -> None:
        """``start`` and ``join`` are for the loop's thread."""
        _switch_interval.enter()
        self._is_joined = False
        self._thread.start()

    def submit(self, job: Job) -> None:
        self._jobs.put(job)

    def stop(self, final_state: HardState | None) -> None:
        """Do what has been submitted, write ``final_state``, close the log. ``join`` waits for it."""
        self._final_state = final_state
        self._jobs.put(None)

    async def join(self) -> None:
        """Idempotent."""
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        if not self._is_joined:
            self._is_joined = True
            _switch_interval.leave()

    def _run(self) -> None:
        try:
            running = True
            while running:
                jobs, running = self._take()
                self._do(jobs)
            self._log.save(self._final_state, [])
            self._log.close()
        except BaseException as error:
            # The outermost edge of the thread: the owner is told and stops the member.
            self._log.abandon()
            self._on_failed(error)

    def _take(self) -> tuple[list[Job], bool]:
        """Wait for a job and take all others that are there; False with the last ones."""
        jobs: list[Job] = []
        size = 0
        job = self._jobs.get()
        while True:
            if job is None:
                return jobs, False
            jobs.append(job)
            if isinstance(job, SaveJob):
                size += sum([len(entry.data) for entry in job.ready.entries])
            if size >= BATCH_BYTES_MAX:
                return jobs, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, True

    def _do(self, jobs: list[Job]) -> None:
        started = time.perf_counter()
        carry_out(self._log, jobs, lambda readys: self._on_saved(readys, time.perf_counter() - started))


def carry_out(log: Log, jobs: Sequence[Job], saved: Callable[[list[Ready]], None]) -> None:
    """Do all of them, in order; with one sync for what needs no other in between. ``saved`` is told of each sync."""
    first = 0
    for position, job in enumerate(jobs):
        if isinstance(job, SaveJob) and job.ready.snapshot is not None:
            _carry_out_together(log, jobs[first:position], saved)
            log.restart_at(job.ready.snapshot.metadata)
            first = position
    _carry_out_together(log, jobs[first:], saved)


def _carry_out_together(log: Log, jobs: Sequence[Job], saved: Callable[[list[Ready]], None]) -> None:
    readys: list[Ready] = []
    entries: list[Entry] = []
    hard_state: HardState | None = None
    for job in jobs:
        if isinstance(job, SaveJob):
            readys.append(job.ready)
            entries += job.ready.entries
            hard_state = job.hard_state or hard_state
    if readys:
        log.save(hard_state, entries)
        saved(readys)
    for job in jobs:
        if isinstance(job, MarkerJob):
            log.save_snapshot(job.snapshot)
            log.release()
