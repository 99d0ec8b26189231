"""A cluster of member processes on loopback, and everything that can be done to it."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import random
import resource
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from storage import api, errors
from storage.etcdclient import ClientConfig, EtcdKV
from tests.robustness import member_process
from tests.robustness.log_archive import LogArchive
from tests.robustness.member_process import Spec
from tests.robustness.proxy import Link

#: Forks from one process that has imported everything: a start takes a tenth of the time.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.robustness.member_process"])

PORTS: Final = range(21700, 21800)
START_SECONDS_MAX: Final = 30.0
"""Of a process, on a machine that has other things to do."""
RECOVERY_SECONDS_MAX: Final = 20.0
CALL_SECONDS: Final = 4.0


def free_port(taken: set[int]) -> int:
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if port in taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        taken.add(port)
        return port
    raise RuntimeError(f"no port of {PORTS} is free")


@dataclass
class Process:
    """``child`` None: not running."""

    name: str
    directory: Path
    peer_port: int
    client_port: int
    child: BaseProcess | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    @property
    def archive(self) -> LogArchive:
        return LogArchive(self.data_dir / "member" / "wal", self.directory / "archive")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.client_port}"

    @property
    def peer_url(self) -> str:
        return f"http://127.0.0.1:{self.peer_port}"

    def is_running(self) -> bool:
        return self.child is not None and self.child.is_alive()

    def signal(self, number: int) -> None:
        assert self.child is not None
        assert self.child.pid is not None
        os.kill(self.child.pid, number)

    def errors(self) -> str:
        path = self.directory / "stderr"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""


class RealCluster:
    """``members`` by name. ``start`` before the rest; ``stop`` leaves nothing behind."""

    def __init__(self, directory: Path, size: int = 3, **settings: Any) -> None:
        self.directory = directory
        self.settings = settings
        taken: set[int] = set()
        self.members = {
            name: Process(name, directory / name, free_port(taken), free_port(taken))
            for name in (f"m{number}" for number in range(1, size + 1))
        }
        self._taken = taken
        self.links: dict[tuple[str, str], Link] = {}
        self._clients: dict[str, EtcdKV] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[RealCluster]:
        try:
            await self.start()
            yield self
        finally:
            await self.stop()

    # -- life

    async def start(self) -> None:
        for member in self.members.values():
            member.directory.mkdir(parents=True, exist_ok=True)
            for other in self.members.values():
                if other is not member:
                    await self._link(member.name, other)
        await asyncio.gather(*(self.start_member(name) for name in self.members))
        await self.wait_served()

    async def _link(self, source: str, target: Process) -> None:
        link = self.links[source, target.name] = Link(target.peer_port)
        await link.start()

    def spec(self, name: str, **changes: Any) -> Spec:
        member = self.members[name]
        values: dict[str, Any] = {
            "name": name,
            "data_dir": member.data_dir,
            "archive_dir": member.directory / "archive",
            "client_port": member.client_port,
            "initial_cluster": {each.name: (each.peer_url,) for each in self.members.values()},
            "routes": {
                other.peer_url: f"http://127.0.0.1:{self.links[name, other.name].port}"
                for other in self.members.values()
                if other is not member
            },
            "settings": {**self.settings, **member.settings},
        }
        return Spec(**{**values, **changes})

    def launch(self, name: str, **changes: Any) -> Connection:
        """What is returned says ``ready`` once it listens, and ends when the process does."""
        member = self.members[name]
        assert not member.is_running(), name
        ready, pipe = _processes.Pipe(duplex=False)
        member.child = _processes.Process(target=member_process.main, args=(self.spec(name, **changes), pipe))
        member.child.start()
        pipe.close()
        return ready

    async def start_member(self, name: str, **changes: Any) -> None:
        """Until it listens."""
        with self.launch(name, **changes) as ready:
            try:
                assert await asyncio.to_thread(ready.poll, START_SECONDS_MAX), f"{name} does not start: {self.members[name].errors()}"
                ready.recv()
            except EOFError:
                raise AssertionError(f"{name} ended at its start: {self.members[name].errors()}") from None

    def kill(self, name: str) -> None:
        self.members[name].signal(signal.SIGKILL)
        self._reap(name)

    def _reap(self, name: str) -> None:
        child = self.members[name].child
        assert child is not None
        child.join(START_SECONDS_MAX)
        self.members[name].child = None
        self.members[name].archive.keep()

    async def ended(self, name: str) -> int:
        """Wait until the process is gone by itself; its exit status."""
        child = self.members[name].child
        assert child is not None
        await asyncio.to_thread(child.join, START_SECONDS_MAX)
        status = child.exitcode
        assert status is not None, f"{name} does not end"
        self._reap(name)
        return status

    async def terminate(self, name: str) -> None:
        """Orderly."""
        self.members[name].signal(signal.SIGTERM)
        assert await self.ended(name) == 0, self.members[name].errors()

    async def stop(self) -> None:
        for kv in self._clients.values():
            await kv.close()
        self._clients.clear()
        for name, member in self.members.items():
            if member.child is not None:
                if member.is_running():
                    member.signal(signal.SIGKILL)
                self._reap(name)
        for link in self.links.values():
            await link.stop()

    # -- faults

    def pause(self, name: str) -> None:
        self.members[name].signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        self.members[name].signal(signal.SIGCONT)

    def cut(self, source: str, target: str) -> None:
        """What ``source`` sends does not reach ``target``."""
        self.links[source, target].cut()

    def isolate(self, name: str) -> None:
        for source, target in self.links:
            if name in (source, target):
                self.cut(source, target)

    def mend(self) -> None:
        for link in self.links.values():
            link.mend()

    def limit_files(self, name: str, more_bytes: int) -> None:
        """As a full disk: nothing is written beyond where the log ends now and ``more_bytes``."""
        child = self.members[name].child
        assert child is not None
        assert child.pid is not None
        log = max((self.members[name].data_dir / "member" / "wal").glob("*.wal"))
        end = len(log.read_bytes().rstrip(b"\0"))
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (end + more_bytes, resource.RLIM_INFINITY))

    # -- looking

    async def client(self, name: str) -> EtcdKV:
        """A connection to this member alone."""
        kv = self._clients.get(name)
        if kv is None:
            kv = self._clients[name] = await connect(self.members[name].endpoint)
        return kv

    async def status(self, name: str) -> api.StoreStatus | None:
        if not self.members[name].is_running():
            return None
        try:
            return await asyncio.wait_for((await self.client(name)).status(), CALL_SECONDS)
        except (errors.StoreError, TimeoutError):
            return None

    async def leader(self) -> str:
        """Wait until the running members agree on one that runs."""
        deadline = asyncio.get_running_loop().time() + RECOVERY_SECONDS_MAX
        while True:
            seen = {name: await self.status(name) for name in self.members if self.members[name].is_running()}
            by_id = {status.header.member_id: name for name, status in seen.items() if status is not None}
            leaders = {status.leader_id for status in seen.values() if status is not None}
            if len(leaders) == 1 and (leader := by_id.get(leaders.pop())):
                return leader
            assert asyncio.get_running_loop().time() < deadline, f"no leader: {seen}"
            await asyncio.sleep(0.05)

    async def wait_served(self, *names: str) -> float:
        """Until a write and a linearizable read go through each of the members (default: all); the seconds it took."""
        started = asyncio.get_running_loop().time()
        for name in names or tuple(self.members):
            while True:
                try:
                    kv = await self.client(name)
                    await kv.put(api.PutRequest(key=b"probe/" + name.encode(), value=os.urandom(4).hex().encode()))
                    await kv.range(api.RangeRequest(key=b"probe/" + name.encode()))
                    break
                except errors.StoreError as error:
                    spent = asyncio.get_running_loop().time() - started
                    assert spent < RECOVERY_SECONDS_MAX, f"{name} does not serve: {error}\n{self.members[name].errors()}"
                    await asyncio.sleep(0.05)
        return asyncio.get_running_loop().time() - started


async def connect(endpoint: str) -> EtcdKV:
    """Raises UnavailableError."""
    kv = EtcdKV(ClientConfig(endpoints=(endpoint,), call_timeout_seconds=CALL_SECONDS, connect_timeout_seconds=1.0))
    deadline = asyncio.get_running_loop().time() + RECOVERY_SECONDS_MAX
    while True:
        try:
            await kv.start()
            return kv
        except errors.StoreError:
            if asyncio.get_running_loop().time() > deadline:
                await kv.close()
                raise
            await asyncio.sleep(0.05)
