"""The faults as they happen: one after the other, drawn by the seed from those that are on."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator

from storage import failpoints
from storage.raft.messages import Message, MessageType
from tests.simulation.checkers import Observer, raft_of
from tests.simulation.cluster import Cluster
from tests.simulation.hosts import Host
from tests.simulation.membership import Operators
from tests.simulation.options import OPERATIONS, Options
from tests.simulation.world import ProcessKilledError, World


class Nemesis:
    """Runs as a task of nature. Every fault it begins ends by itself or with ``heal``."""

    def __init__(self, world: World, cluster: Cluster, observer: Observer, options: Options, rng: random.Random) -> None:
        self.world = world
        self.cluster = cluster
        self.observer = observer
        self.options = options
        self.rng = rng
        self.counts: dict[str, int] = {}
        self._traps: dict[str, MessageType] = {}
        self.operators = Operators(cluster, observer, rng)
        self._is_over = False
        cluster.network.on_send = self._on_send

    async def run(self, seconds: float) -> None:
        """Hurt the cluster for a while."""
        world, rng = self.world, self.rng
        end = world.now + seconds
        names = sorted(self.options.faults)
        weights = [self.options.faults[name] for name in names]
        while world.now < end:
            await asyncio.sleep(rng.random() * 2 * self.options.fault_pause_seconds)
            if not names:
                continue
            name = rng.choices(names, weights)[0]
            hosts = self.cluster.all_hosts()
            if not hosts:
                continue
            host = rng.choice(hosts)
            self.observer.trace(f"fault {name} {host.name}")
            self.counts[name] = self.counts.get(name, 0) + 1
            if name in OPERATIONS:
                self.call_operator(name, host)
                continue
            result = getattr(self, f"_{name}")(host)
            if asyncio.iscoroutine(result):
                self.world.nature.create_task(result, name=f"fault {name}")

    def call_operator(self, name: str, host: Host) -> None:
        """An operator is a client."""
        clients = self.cluster.port.process
        with clients.enter():
            clients.create_task(getattr(self.operators, name)(host), name=f"operator {name}")

    def heal(self) -> None:
        """All faults end."""
        self._is_over = True
        for name in sorted(failpoints.NAMES):
            failpoints.disarm(name)
        self.cluster.network.heal()
        self.cluster.network.faults.calm()
        self.cluster.calm()

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """End a fault by itself, unless all were ended before."""
        self.world.call_at(self.world.now + seconds, self.world.nature, lambda: None if self._is_over else action())

    # -- processes

    def _crash(self, host: Host) -> None:
        host.kill()
        self.cluster.restart_later(host, self.rng.random() * 3)

    def _crash_all(self, host: Host) -> None:
        for each in self.cluster.all_hosts():
            self._crash(each)

    def _crash_at_failpoint(self, host: Host) -> None:
        """The process dies at a durable step, soon."""
        name = self.rng.choice(sorted(failpoints.NAMES))
        left = self.rng.randint(1, 5)

        def action() -> None:
            nonlocal left
            current = self.world.current
            if host.process is None or current is not host.process or current.is_dead:
                return
            left -= 1
            if left <= 0:
                failpoints.disarm(name)
                self.observer.trace(f"{host.name} dies at {name}")
                self._crash(host)
                raise ProcessKilledError

        failpoints.arm(name, action)

    def _crash_after_promise(self, host: Host) -> None:
        """The process dies just after it gave a vote or acknowledged entries, and is soon back: whatever it forgot shows now."""
        self._traps[host.name] = self.rng.choice((MessageType.VOTE_RESPONSE, MessageType.APPEND_RESPONSE))

    def _on_send(self, message: Message, name: str) -> None:
        self.observer.on_message(message, name)
        if self._traps.get(name) is message.type and not message.reject and not self._is_over:
            del self._traps[name]
            host = self.cluster.hosts.get(name)
            if host is not None:
                self.world.call_at(self.world.now + self.rng.random() * 0.003, self.world.nature, self._crash_briefly, host)

    def _crash_briefly(self, host: Host) -> None:
        if not self._is_over:
            self.observer.trace(f"{host.name} dies after a promise")
            host.kill()
            self.cluster.restart_later(host, self.rng.random() * 0.05)

    async def _stop(self, host: Host) -> None:
        await self.cluster.stop_gracefully(host)
        self.cluster.restart_later(host, self.rng.random() * 2)

    def _pause(self, host: Host) -> None:
        process = host.process
        if process is not None and not process.is_paused:
            process.pause()
            self.later(self.rng.choice((0.1, 1.0, 4.0)) * self.rng.random(), process.resume)

    # -- network

    def _others(self, host: Host) -> Iterator[Host]:
        return (other for other in self.cluster.all_hosts() if other is not host)

    def _cut_both(self, one: Host, other: Host) -> None:
        self.cluster.network.cut(one.name, other.name)
        self.cluster.network.cut(other.name, one.name)

    def _cut_one(self, host: Host) -> None:
        """Off from all members; its clients still reach it."""
        for other in self._others(host):
            self._cut_both(host, other)
        self._mend_later()

    def _cut_one_way(self, host: Host) -> None:
        """It can send and not hear, or hear and not send."""
        sends = self.rng.random() < 0.5
        for other in self._others(host):
            self.cluster.network.cut(*((other.name, host.name) if sends else (host.name, other.name)))
        self._mend_later()

    def _cut_leader(self, host: Host) -> None:
        for leader in self.cluster.leaders():
            self._cut_one(leader)

    def _split(self, host: Host) -> None:
        """Two halves by chance."""
        side = {each.name: self.rng.random() < 0.5 for each in self.cluster.all_hosts()}
        for one in self.cluster.all_hosts():
            for other in self._others(one):
                if side[one.name] != side[other.name]:
                    self.cluster.network.cut(one.name, other.name)
        self._mend_later()

    def _clog(self, host: Host) -> None:
        for other in self._others(host):
            self.cluster.network.clog(host.name, other.name, self.rng.random() * 2)

    def _mend(self, host: Host) -> None:
        self.cluster.network.heal()

    def _mend_later(self) -> None:
        self.later(self.rng.random() * 4, self.cluster.network.heal)

    # -- disks and clocks

    def _disk_full(self, host: Host) -> None:
        host.disk.faults.is_full = True

        def end() -> None:
            host.disk.faults.is_full = False

        self.later(self.rng.random() * 3, end)

    def _slow_disk(self, host: Host) -> None:
        faults = host.disk.faults
        before = faults.write_max
        faults.write_max = max(before, self.rng.choice((0.05, 0.5)))

        def end() -> None:
            faults.write_max = before

        self.later(self.rng.random() * 3, end)

    def _wall_clock(self, host: Host) -> None:
        host.wall_skew += self.rng.choice((-3600.0, -5.0, 5.0, 3600.0))

    # -- operators

    def _check_hash(self, host: Host) -> None:
        if host.is_ready and raft_of(host) is not None:
            with contextlib.suppress(OSError):  # its disk has failed, and it is about to stop
                self.observer.check_hash(host)


@contextlib.contextmanager
def no_failpoints() -> Iterator[None]:
    """Nothing stays armed after a run, however it ended."""
    try:
        yield
    finally:
        for name in sorted(failpoints.NAMES):
            failpoints.disarm(name)
