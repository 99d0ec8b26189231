"""The disk of a simulated host: it outlives the processes, and decides what a crash leaves of their writes.

The log is the real ``storage.wal.Wal`` in a directory in memory; what is simulated is its thread. A write is under way for a while;
if the process dies meanwhile, it is on disk as a whole, not at all, or torn: cut at a byte, or with sectors missing.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage.member.disk_worker import BATCH_BYTES_MAX, Job, Log, OnFailed, OnSaved, SaveJob, carry_out
from storage.raft.messages import HardState
from storage.raft.rawnode import Ready
from storage.wal.record import SECTOR_BYTES
from storage.wal.wal import Wal
from tests.simulation.world import ProcessKilledError, ProcessLoop, World


@dataclass(slots=True)
class DiskFaults:
    """Times in seconds, chances per write."""

    write_min: float = 0.0002
    write_max: float = 0.002
    slow_chance: float = 0.0
    slow_seconds_max: float = 0.3
    error_chance: float = 0.0
    is_full: bool = False

    def calm(self) -> None:
        self.slow_chance = self.error_chance = 0.0
        self.is_full = False


class HostDisk:
    """``seconds`` draws how long a write takes."""

    def __init__(self, world: World, faults: DiskFaults, directory: Path) -> None:
        self.world = world
        self.faults = faults
        self.directory = directory
        self.writes = 0
        self.torn_writes = 0

    def seconds(self) -> float:
        rng, faults = self.world.rng, self.faults
        seconds = faults.write_min + rng.random() * (faults.write_max - faults.write_min)
        if faults.slow_chance and rng.random() < faults.slow_chance:
            seconds += rng.random() * faults.slow_seconds_max
        return seconds

    def commit_seconds(self) -> float:
        """Of a commit of the database. Raises OSError when the disk is full or fails."""
        self.maybe_fail()
        return self.seconds()

    def maybe_fail(self) -> None:
        """Raises OSError."""
        faults = self.faults
        if faults.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        if faults.error_chance and self.world.rng.random() < faults.error_chance:
            raise OSError(errno.EIO, "Input/output error")


class SimulatedLogWriter:
    """``storage.member.environment.LogWriter``: the log's thread, as callbacks at the times when its writes end."""

    def __init__(self, disk: HostDisk, process: ProcessLoop, log: Log, *, on_saved: OnSaved, on_failed: OnFailed) -> None:
        self._disk = disk
        self._process = process
        self._log = log
        self._on_saved = on_saved
        self._on_failed = on_failed
        self._jobs: deque[Job] = deque()
        self._at_disk: list[Job] = []
        self._is_writing = False
        self._is_stopping = False
        self._is_failed = False
        self._is_closed = False
        self._final_state: HardState | None = None
        self._joining: list[Callable[[], None]] = []

    # -- LogWriter

    def start(self) -> None:
        """Nothing to start: there is no thread."""

    def submit(self, job: Job) -> None:
        self._jobs.append(job)
        self._maybe_begin()

    def stop(self, final_state: HardState | None) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        self._final_state = final_state
        self._maybe_begin()

    async def join(self) -> None:
        if self._is_closed:
            return
        done = self._process.create_future()
        self._joining.append(lambda: None if done.done() else done.set_result(None))
        await done

    # -- inside

    def _maybe_begin(self) -> None:
        """Take what is there and write it, some time from now."""
        if self._at_disk or self._is_closed or self._process.is_dead:
            return
        if self._is_failed:
            self._jobs.clear()
        size = 0
        while self._jobs and size < BATCH_BYTES_MAX:
            job = self._jobs.popleft()
            self._at_disk.append(job)
            if isinstance(job, SaveJob):
                size += sum(len(entry.data) for entry in job.ready.entries)
        if self._at_disk:
            world = self._process.world
            world.call_at(world.now + self._disk.seconds(), self._process, self._end)
        elif self._is_stopping:
            self._close()

    def _end(self) -> None:
        """The write is done: only now does it touch the files."""
        if self._is_closed:
            return
        try:
            self._disk.maybe_fail()
            self._do(self._at_disk)
        except ProcessKilledError:
            raise
        except BaseException as error:
            # As the real thread does: the owner is told and stops the member.
            self._leave_part()
            self._fail(error)
            return
        self._at_disk = []
        self._maybe_begin()

    def _do(self, jobs: list[Job]) -> None:
        self._is_writing = True
        self._disk.writes += 1
        carry_out(self._log, jobs, self._saved)
        self._is_writing = False

    def _saved(self, readys: list[Ready]) -> None:
        self._process.call_soon(self._on_saved, readys, 0.001)

    def _close(self) -> None:
        try:
            self._log.save(self._final_state, [])
            self._log.close()
        except ProcessKilledError:
            raise
        except OSError as error:
            self._fail(error)
            return
        self._finish()

    def _fail(self, error: BaseException) -> None:
        self._is_failed = True
        self._at_disk = []
        self._log.abandon()
        self._process.call_soon(self._on_failed, error)
        self._finish()

    def _finish(self) -> None:
        self._is_closed = True
        for wake in self._joining:
            wake()

    # -- what a crash leaves

    def crash(self) -> None:
        """The process is dead. Decide what is on disk of the write that was under way; closes the files."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._is_writing:
            self._leave_part()
        self._log.abandon()

    def _leave_part(self) -> None:
        jobs = [job for job in self._at_disk if isinstance(job, SaveJob)]
        chance = self._disk.world.rng.random()
        if not jobs or chance < _NOTHING_CHANCE or self._disk.faults.is_full:
            return
        if any(job.ready.snapshot is not None for job in jobs):
            if chance < _NOTHING_CHANCE + _WHOLE_CHANCE:
                carry_out(self._log, self._at_disk, lambda readys: None)
            return
        entries = [entry for job in jobs for entry in job.ready.entries]
        states = [job.hard_state for job in jobs if job.hard_state is not None]
        log = self._log
        assert isinstance(log, Wal)
        writer = log._writer
        if writer is None:
            return
        start = writer.end
        log.save(states[-1] if states else None, entries)
        if chance < _NOTHING_CHANCE + _WHOLE_CHANCE or log._writer is not writer:
            return
        self._tear(writer.path, start, writer.end)

    def _tear(self, path: Path, start: int, end: int) -> None:
        """Of [start, end) only a part reached the disk: cut off at a byte, or some sectors are as they were before."""
        rng = self._disk.world.rng
        self._disk.torn_writes += 1
        with path.open("r+b") as file:
            if rng.random() < 0.5:
                file.truncate(rng.randrange(start, end))
                return
            at = start
            while at < end:
                sector_end = min(at - at % SECTOR_BYTES + SECTOR_BYTES, end)
                if rng.random() < 0.5:
                    file.seek(at)
                    file.write(bytes(sector_end - at))
                at = sector_end


_NOTHING_CHANCE: Final = 0.35
_WHOLE_CHANCE: Final = 0.25
