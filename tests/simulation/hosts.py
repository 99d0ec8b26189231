"""Simulated machines: what outlives a process (its disk), and the processes that run on it one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from storage.backend.backend import Backend
from storage.config import MemberConfig
from storage.errors import StoreError
from storage.member.disk_worker import Log, OnFailed, OnSaved
from storage.member.environment import Environment
from storage.member.member import Member
from storage.raft.messages import SnapshotMetadata
from storage.wal.wal import Replay, Wal
from tests.simulation.backend import Buckets, SimulatedBackend, empty_buckets
from tests.simulation.disk import HostDisk, SimulatedLogWriter
from tests.simulation.network import Network, SimulatedTransport
from tests.simulation.world import InvariantError, ProcessLoop, World

T = TypeVar("T")

EPOCH_SECONDS: Final = 1_750_000_000.0
"""Wall time at the start of every run."""


class _Lock:
    """One process at a time holds a host's directory; it dies with the process."""

    def release(self) -> None:
        """Nothing to do: a second process is never started beside a living one."""


class Host:
    """``start``, ``kill``, ``pause`` … as an operator or bad luck would. ``member`` is None while none runs here."""

    def __init__(self, world: World, network: Network, disk: HostDisk, *, name: str, clock_rate: float, wall_skew: float) -> None:
        self.world = world
        self.network = network
        self.disk = disk
        self.name = name
        self.url = f"http://{name}:2380"
        self.clock_rate = clock_rate
        self.wall_skew = wall_skew
        self.databases: dict[str, Buckets] = {}
        self.process: ProcessLoop | None = None
        self.member: Member | None = None
        self.transport: SimulatedTransport | None = None
        self.is_ready = False
        self.start_error: BaseException | None = None
        self.starts = 0
        self.last_member_id = 0
        self.on_started: Callable[[Host], None] = lambda host: None
        self._writers: list[SimulatedLogWriter] = []
        self._logs: list[Wal] = []
        self._backends: dict[str, SimulatedBackend] = {}

    # -- life of its processes

    def start(self, config: MemberConfig) -> None:
        """Start a member process; ``is_ready`` tells when it serves, ``start_error`` why it ended."""
        assert self.process is None
        self.starts += 1
        world = self.world
        process = self.process = world.process(f"{self.name}.{self.starts}", rate=self.clock_rate, offset=1000.0 * self.starts)
        self.transport = SimulatedTransport(self.network, process, host=self.name, url=self.url)
        self.is_ready = False
        self.start_error = None
        environment = Environment(
            transport=self.transport,
            lock=lambda directory: self._lock(directory),
            logs=_Logs(self),
            log_writer=self._new_writer,
            backends=_Backends(self),
            run_blocking=self._run_blocking,
            wall_time=self._wall_time,
            stopwatch=lambda: 0.0,
        )
        with process.enter():
            member = self.member = Member(config, rng=world.fork(), environment=environment)
            process.create_task(self._start(member, process), name=f"{process.name} start")

    async def _start(self, member: Member, process: ProcessLoop) -> None:
        try:
            await member.start()
        except (StoreError, OSError, AssertionError) as error:
            if not process.is_dead:
                self.start_error = error
                self._end()
            return
        self.is_ready = True

    def kill(self) -> None:
        """The process is gone at once; what its disk holds is decided now."""
        process = self.process
        if process is not None:
            process.kill()
            self._end()

    async def stop(self) -> None:
        """Stop gracefully; runs in the process."""
        member, process = self.member, self.process
        assert member is not None
        await member.stop()
        if process is self.process and process is not None and not process.is_dead:
            self._end()

    def _end(self) -> None:
        """The process ended, by itself or not: its memory is lost."""
        process = self.process
        assert process is not None
        process.kill()
        self.last_member_id = self.member.member_id if self.member is not None and self.member.member_id else self.last_member_id
        for writer in self._writers:
            writer.crash()
        for log in self._logs:
            log.abandon()
        for path, backend in self._backends.items():
            self.databases[path] = backend.crash()
        self.world.bury((self.member, self.transport, self._writers, self._backends))
        self._writers, self._logs, self._backends = [], [], {}
        self.process = self.member = self.transport = None
        self.is_ready = False

    def wipe(self) -> None:
        """An empty disk."""
        assert self.process is None
        self.databases = {}
        shutil.rmtree(self.disk.directory, ignore_errors=True)

    def is_up(self) -> bool:
        return self.process is not None and not self.process.is_paused

    # -- what its processes see

    def _lock(self, directory: Path) -> _Lock:
        directory.mkdir(parents=True, exist_ok=True)
        return _Lock()

    def _new_writer(self, log: Log, *, on_saved: OnSaved, on_failed: OnFailed, name: str) -> SimulatedLogWriter:
        assert self.process is not None
        writer = SimulatedLogWriter(self.disk, self.process, log, on_saved=on_saved, on_failed=on_failed)
        self._writers.append(writer)
        return writer

    def _run_blocking(self, work: Callable[[], T]) -> Awaitable[T]:
        assert self.process is not None
        return self.process.run_in_executor(None, work)

    def _wall_time(self) -> float:
        return EPOCH_SECONDS + self.wall_skew + self.world.now

    def open_log(self, log: Wal) -> Wal:
        self._logs.append(log)
        return log

    def database_name(self, path: Path) -> str:
        return str(path.relative_to(self.disk.directory))

    def forget_database(self, path: Path) -> Buckets | None:
        """What is durable of a database that nobody has open."""
        name = self.database_name(path)
        backend = self._backends.pop(name, None)
        if backend is not None:
            assert backend.is_closed, name
            self.databases[name] = backend.crash()
        return self.databases.pop(name, None)

    def open_backend(self, path: Path) -> SimulatedBackend:
        name = self.database_name(path)
        if name in self._backends and not self._backends[name].is_closed:
            raise InvariantError(f"{self.name}: the database {name} is opened twice")
        if name in self._backends:
            self.databases[name] = self._backends.pop(name).crash()
        assert self.process is not None
        buckets = self.databases.setdefault(name, empty_buckets())
        backend = self._backends[name] = SimulatedBackend(buckets, self.process, commit_seconds=self.disk.commit_seconds)
        return backend


class _Logs:
    """``storage.member.environment.Logs`` of a host: the real thing, with its files known so that a crash can close them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def exists(self, directory: Path) -> bool:
        return Wal.exists(directory)

    def create(self, directory: Path, *, metadata: bytes, snapshot: SnapshotMetadata, segment_bytes: int, sync: bool) -> Wal:
        self._host.disk.maybe_fail()
        return self._host.open_log(Wal.create(directory, metadata=metadata, snapshot=snapshot, segment_bytes=segment_bytes, sync=sync))

    def open(self, directory: Path, *, segment_bytes: int, sync: bool) -> tuple[Wal, Replay]:
        log, replay = Wal.open(directory, segment_bytes=segment_bytes, sync=sync)
        return self._host.open_log(log), replay


class _Backends:
    """``storage.member.environment.Backends`` of a host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def open(self, path: Path, *, quota_bytes: int, sync: bool, on_commit: Callable[[float], None]) -> Backend:
        return self._host.open_backend(path)

    def exists(self, path: Path) -> bool:
        return self._host.database_name(path) in self._host.databases

    def remove(self, path: Path) -> None:
        self._host.forget_database(path)

    def replace(self, source: Path, target: Path) -> None:
        self._host.disk.maybe_fail()
        buckets = self._host.forget_database(source)
        assert buckets is not None, source
        self._host.forget_database(target)
        self._host.databases[self._host.database_name(target)] = buckets
