"""The thread that writes the log: one sync for all that has come together while the one before ran."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from storage.raft.messages import Entry, HardState, SnapshotMetadata
from storage.raft.rawnode import Ready

BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
"""Entry data written with one sync. What is beyond it waits for the next, so one write never takes arbitrarily long."""


class Log(Protocol):
    """What the thread does with ``Wal``."""

    def save(self, hard_state: HardState | None, entries: list[Entry]) -> None: ...

    def save_snapshot(self, snapshot: SnapshotMetadata) -> None: ...

    def release(self) -> int: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SaveJob:
    """Make what a Ready holds durable."""

    ready: Ready
    hard_state: HardState | None


@dataclass(frozen=True, slots=True)
class MarkerJob:
    """Write a snapshot marker and release the segments before it."""

    snapshot: SnapshotMetadata


Job: TypeAlias = SaveJob | MarkerJob


class DiskWorker:
    """Jobs are done in order. ``on_saved(readys, seconds)`` and ``on_failed(error)`` are called from the thread: they must hand over to
    the owner's loop. After a failure nothing more is written (what reached the disk is not known), and every later job is dropped."""

    def __init__(
        self, log: Log, *, on_saved: Callable[[list[Ready], float], None], on_failed: Callable[[BaseException], None], name: str
    ) -> None:
        self._log = log
        self._on_saved = on_saved
        self._on_failed = on_failed
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._final_state: HardState | None = None

    def start(self) -> None:
        self._thread.start()

    def submit(self, job: Job) -> None:
        self._jobs.put(job)

    def stop(self, final_state: HardState | None) -> None:
        """Do what has been submitted, write ``final_state``, close the log. ``join`` waits for it."""
        self._final_state = final_state
        self._jobs.put(None)

    def join(self) -> None:
        self._thread.join()

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
        readys: list[Ready] = []
        entries: list[Entry] = []
        hard_state: HardState | None = None
        for job in jobs:
            if isinstance(job, SaveJob):
                readys.append(job.ready)
                entries += job.ready.entries
                hard_state = job.hard_state or hard_state
        if readys:
            started = time.perf_counter()
            self._log.save(hard_state, entries)
            self._on_saved(readys, time.perf_counter() - started)
        for job in jobs:
            if isinstance(job, MarkerJob):
                self._log.save_snapshot(job.snapshot)
                self._log.release()
