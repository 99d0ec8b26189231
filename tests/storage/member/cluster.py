"""Several members in one process, over the transport in memory."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from storage import api, errors
from storage.config import MemberConfig
from storage.member.environment import Environment
from storage.member.member import Member
from tests.fakes.memory_transport import MemoryTransport, Network

WAIT_SECONDS_MAX = 20.0


async def until(condition: Callable[[], bool], what: str = "it") -> None:
    """Wait for what members do by themselves."""
    deadline = asyncio.get_running_loop().time() + WAIT_SECONDS_MAX
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"{what} did not come about"
        await asyncio.sleep(0.01)


class Cluster:
    """``members`` that run, by name."""

    def __init__(self, directory: Path, size: int = 3, **settings: Any) -> None:
        self.directory = directory
        self.network = Network()
        self.settings = {"unsafe_no_fsync": True, **settings}
        self.initial = {f"m{number}": (self.url(number),) for number in range(1, size + 1)}
        self.members: dict[str, Member] = {}

    @staticmethod
    def url(number: int) -> str:
        return f"https://127.0.0.1:{21000 + number}"

    def config(self, name: str, **settings: Any) -> MemberConfig:
        values = {
            "data_dir": self.directory / name,
            "name": name,
            "initial_cluster": self.initial,
            "advertise_client_urls": (f"https://127.0.0.1:{22000 + int(name[1:])}",),
        }
        return MemberConfig(**{**values, **self.settings, **settings})

    def make(self, name: str, **settings: Any) -> Member:
        config = self.config(name, **settings)
        transport = MemoryTransport(self.network, config.peer_urls())
        return Member(config, rng=random.Random(int(name[1:])), environment=Environment(transport=transport))

    async def start(self, name: str, **settings: Any) -> Member:
        member = self.make(name, **settings)
        await member.start()
        self.members[name] = member
        return member

    async def start_all(self) -> None:
        """All at once, and the first stands for election at once, so that no test waits for a timeout that it is not about."""
        for name in self.initial:
            await self.start(name)
        self.members[next(iter(self.initial))]._raft.campaign()
        await self.ready()

    async def ready(self) -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await asyncio.gather(*(member.wait_ready() for member in self.members.values()))

    async def stop(self, name: str) -> None:
        await self.members.pop(name).stop()

    async def crash(self, name: str) -> None:
        """As far as that goes within one process: the member says and writes nothing more; what was not synced is lost by others'
        means. Its locks are freed, so that it can be started again."""
        member = self.members.pop(name)
        member._running = False
        for handle in (member._maintenance_handle, member._removal_handle):
            if handle is not None:
                handle.cancel()
        await member._tasks.cancel_all()
        await member._housekeeping.close()
        transport = member._environment.transport
        assert transport is not None
        await transport.stop()
        await member._raft.stop()
        member._fail_waiters(errors.StoppedError())
        member._machine.close()
        member._machine.backend.close()
        assert member._lock is not None
        member._lock.release()

    async def stop_all(self) -> None:
        await asyncio.gather(*(member.stop() for member in self.members.values()))
        self.members.clear()

    def leader(self) -> Member:
        """The member that leads in the newest term."""
        found = [member for member in self.members.values() if member.metrics.is_leader]
        assert found, "nobody leads"
        return max(found, key=lambda member: member.raft_term)

    def followers(self) -> list[Member]:
        leader = self.leader()
        return [member for member in self.members.values() if member is not leader]

    async def has_leader(self, *, but: Member | None = None) -> Member:
        """Wait for a leader, another one than ``but``."""
        await until(lambda: any(one.metrics.is_leader and one is not but for one in self.members.values()), "a leader")
        return next(one for one in self.members.values() if one.metrics.is_leader and one is not but)

    def id_of(self, name: str) -> int:
        """By what the leader's list says."""
        return next(one.id for one in self.leader()._machine.membership.list() if one.name == name)

    async def published(self) -> None:
        """Wait until all members' names are known to all."""
        names = set(self.members)
        await until(lambda: all(names <= {one.name for one in member._machine.membership.list()} for member in self.members.values()))

    async def converged(self) -> None:
        """Wait until all have applied the same."""
        await until(lambda: len({one.applied_index for one in self.members.values()}) == 1, "equal applied indexes")


@contextlib.asynccontextmanager
async def running_cluster(directory: Path, size: int = 3, **settings: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(directory, size, **settings)
    try:
        await cluster.start_all()
        yield cluster
    finally:
        await cluster.stop_all()


async def put(kv: api.KV, key: bytes, value: bytes = b"v", lease: int = 0) -> int:
    return (await kv.put(api.PutRequest(key=key, value=value, lease=lease))).header.revision


async def value_of(kv: api.KV, key: bytes, *, serializable: bool = False) -> bytes | None:
    kvs = (await kv.range(api.RangeRequest(key=key, serializable=serializable))).kvs
    return kvs[0].value if kvs else None
