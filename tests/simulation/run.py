"""``run_seed``: one seed, one run, one report."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from storage import api, verify
from storage.maintenance import ClusterMember
from storage.wal import segment
from storage.watch import history as watch_history
from storage.watch import watcher
from storage.watch.watchable_store import WatchableStore
from tests.robustness import kv_model
from tests.robustness.linearizability import check_against_log
from tests.simulation.checkers import ClusterHistory, Observer, raft_of
from tests.simulation.clients import Port, Workload
from tests.simulation.cluster import Cluster
from tests.simulation.hosts import Host
from tests.simulation.leases import REMOVAL_SECONDS_MAX, TTL_SECONDS, LeaseBook, LeaseClient
from tests.simulation.nemesis import Nemesis, no_failpoints
from tests.simulation.network import Network, NetworkFaults
from tests.simulation.options import HEAL_SECONDS_MAX, OPERATIONS, Options, draw
from tests.simulation.watches import WatchClient
from tests.simulation.world import InvariantError, ProcessLoop, World

SEED_OF_CHOICES: Final = 0x5EED

SETTLE_POLL_SECONDS: Final = 0.1

SUPERVISION_SECONDS: Final = 0.1

RESOLVED_SECONDS: Final = 4.5
"""Changes of the membership that were asked for and not answered have happened by then, or never will."""


@dataclass(slots=True, kw_only=True)
class Report:
    """``failure``: None for a clean run, else what was violated. ``trace_hash`` is equal for equal runs."""

    seed: int
    options: Options
    failure: str | None
    trace_hash: str
    virtual_seconds: float
    counts: dict[str, int]
    trace: list[str] = field(default_factory=list)
    stack: str = ""

    @property
    def ok(self) -> bool:
        return self.failure is None


def run_seed(seed: int, *, options: Options | None = None, keep_trace: bool = False) -> Report:
    """Run one seed. Never raises for what the cluster does; the report says it."""
    return _Run(options or draw(seed), keep_trace=keep_trace).run()


class _Run:
    def __init__(self, options: Options, *, keep_trace: bool) -> None:
        self.options = options
        self.world = world = World(options.seed ^ SEED_OF_CHOICES)
        self.history = ClusterHistory(world)
        self.observer = Observer(world, self.history, keep_trace=keep_trace)
        self.network = Network(
            world,
            NetworkFaults(
                slow_chance=options.slow_message_chance,
                loss_chance=options.loss_chance,
                double_chance=options.double_chance,
                snapshot_break_chance=options.snapshot_break_chance,
            ),
        )
        self.clients = world.process("clients")
        self.port = Port(world, self.network, self.clients)
        self.book = LeaseBook(world, self.history, clock_drift=options.clock_drift)
        self.watchers: list[WatchClient] = []
        self._tasks: list[asyncio.Task[None]] = []

    def run(self) -> Report:
        directory = Path(tempfile.mkdtemp(prefix="simulation-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        failure, stack = None, ""
        InvariantError.raised.clear()
        try:
            with self._tuned(), no_failpoints(), _quiet():
                self._run(directory)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            failure = f"{type(error).__name__}: {error}"
            stack = "".join(traceback.format_exception(error))
        finally:
            self.world.close()
            shutil.rmtree(directory, ignore_errors=True)
        self.observer.trace(f"end: {failure}" if failure is None else "end: failed")
        return Report(
            seed=self.options.seed,
            options=self.options,
            failure=failure,
            trace_hash=f"{self.observer.checksum:08x}",
            virtual_seconds=self.world.now,
            counts=self._counts(),
            trace=self.observer.lines,
            stack=stack,
        )

    def _run(self, directory: Path) -> None:
        world, options = self.world, self.options
        self.cluster = cluster = Cluster(world, self.network, self.observer, options, directory)
        cluster.port = self.port
        self.nemesis = Nemesis(world, cluster, self.observer, options, world.fork())
        self.workload = Workload(
            self.port,
            cluster.all_hosts,
            world.fork(),
            keys=options.keys,
            value_bytes_max=options.value_bytes_max,
            compactions=options.compactions,
        )
        world.after_step = self._after_step
        deadline = options.hurt_seconds + 2 * HEAL_SECONDS_MAX + REMOVAL_SECONDS_MAX + 60
        with world.nature.enter():
            script = world.nature.create_task(self._script(), name="script")
            world.nature.create_task(self._supervise(), name="supervisor")
        world.run_until(script, deadline=deadline)

    def _after_step(self, process: ProcessLoop) -> None:
        if process.failure is not None and process in (self.world.nature, self.clients):
            raise process.failure
        self.observer.after_step(process)

    # -- the course of a run

    async def _script(self) -> None:
        cluster, options = self.cluster, self.options
        for host in cluster.all_hosts():
            cluster.start(host)
        self._start_clients()
        await self.nemesis.run(options.hurt_seconds)
        self.observer.trace("heal")
        hosts = self._heal()
        if self._membership_changed():
            await self._resolve_membership()
            hosts = cluster.all_hosts()
        await self._progress(hosts)
        self.workload.is_stopped = True
        await self._clients_end()
        await self._settle(hosts)
        await self._leases_end(hosts)
        await self._settle(hosts)
        if options.crash_at_end:
            for host in hosts:
                host.kill()
                cluster.start(host)
            await self._progress(hosts)
            await self._settle(hosts)
        self._check_all(hosts)

    async def _supervise(self) -> None:
        while True:
            for host in self.cluster.all_hosts():
                self.cluster.look_after(host)
            await asyncio.sleep(SUPERVISION_SECONDS)

    def _start_clients(self) -> None:
        options, world = self.options, self.world
        hosts = self.cluster.all_hosts
        works: list[Callable[[], Any]] = [
            lambda number=number: self.workload.run_client(number, options.client_pause_seconds)  # type: ignore[misc]
            for number in range(1, options.clients + 1)
        ]
        watching: list[Callable[[], Any]] = []
        for number in range(options.watchers):
            client = WatchClient(self.port, self.history, hosts, world.fork(), name=f"watch{number}", request=self._watch_request(number))
            self.watchers.append(client)
            watching.append(client.run)
        for number in range(options.lease_clients):
            works.append(LeaseClient(self.port, self.workload, self.book, hosts, world.fork(), number=100 + number).run)
        with self.clients.enter():
            for work in watching:
                self.clients.create_task(work(), name="watch")
            for work in works:
                self._tasks.append(self.clients.create_task(work(), name="client"))

    def _watch_request(self, number: int) -> api.WatchRequest:
        rng = random.Random(self.options.seed * 31 + number)
        key, range_end = rng.choice(((b"k", b"l"), (b"\0", b"\0"), (b"k1", b""), (b"lease/", b"lease0")))
        filtered = rng.random() < 0.2
        return api.WatchRequest(
            key=key, range_end=range_end, prev_kv=rng.random() < 0.5, no_put=filtered, no_delete=not filtered and rng.random() < 0.2
        )

    def _heal(self) -> list[Host]:
        """End the faults; answers the members that must make progress now."""
        cluster = self.cluster
        self.nemesis.heal()
        hosts = cluster.all_hosts()
        if self.options.minority_stays_down and not self._membership_changed():
            hosts = hosts[: len(hosts) // 2 + 1]
            cluster.only(hosts)
        for host in hosts:
            cluster.start(host)
        return hosts

    def _membership_changed(self) -> bool:
        return any(name in OPERATIONS for name in self.nemesis.counts)

    async def _resolve_membership(self) -> None:
        """Finish what operators began: every member of the list runs, nobody else does. Raises InvariantError."""
        cluster = self.cluster
        deadline = self.world.now + HEAL_SECONDS_MAX
        quiet_since = self.world.now
        while True:
            ready = cluster.ready_hosts()
            members = cluster.members()
            listed = [cluster.host_at(member.peer_urls) for member in members]
            if ready and cluster.lost_host is not None:
                self.nemesis.call_operator("finish_replacement", self.nemesis.rng.choice(ready))
                quiet_since = self.world.now
            for host in listed:
                if (
                    host is not None
                    and host.name not in cluster.hosts
                    and host is not cluster.lost_host
                    and self._is_listed_anew(host, members)
                ):
                    cluster.join(host)
                    quiet_since = self.world.now
            for host in cluster.all_hosts():
                if ready and host not in listed and self.world.now - quiet_since > 2:
                    cluster.retire(host)
            if ready and self.world.now - quiet_since > RESOLVED_SECONDS:
                return
            if self.world.now > deadline:
                raise InvariantError(
                    f"membership not settled {HEAL_SECONDS_MAX:g} s after all faults ended: {self._describe(cluster.all_hosts())}"
                )
            await asyncio.sleep(0.5)

    def _is_listed_anew(self, host: Host, members: Sequence[ClusterMember]) -> bool:
        """The list names a member at this host other than the one that was removed there."""
        return any(host.url in member.peer_urls and member.id != host.last_member_id for member in members)

    async def _progress(self, hosts: Sequence[Host]) -> None:
        """Every member takes a write within the bound. Raises InvariantError."""
        deadline = self.world.now + HEAL_SECONDS_MAX
        for host in hosts:
            while not self._is_learner(host) and not await self._write_through(host):
                if self.world.now > deadline:
                    raise InvariantError(
                        f"no write through {host.name} in {HEAL_SECONDS_MAX:g} s after all faults ended: {self._describe(hosts)}"
                    )

    def _is_learner(self, host: Host) -> bool:
        return any(host.url in member.peer_urls and member.is_learner for member in self.cluster.members())

    async def _write_through(self, host: Host) -> bool:
        """In the clients' process; its outcome here."""
        done: asyncio.Future[bool] = self.world.nature.create_future()

        async def write() -> None:
            key = b"progress/" + host.name.encode()
            request: kv_model.Request = api.PutRequest(key=key, value=self.workload.new_value())
            if self.options.quota_backend_bytes:
                request = api.DeleteRangeRequest(key=key)  # allowed also without space
            ok = await self.workload.one(0, host, request)
            self.world.call_at(self.world.now, self.world.nature, done.set_result, ok)

        self.world.call_at(self.world.now, self.clients, lambda: self.clients.create_task(write()))
        return await done

    async def _settle(self, hosts: Sequence[Host]) -> None:
        """Every member applies all that is committed and every watcher hears of it, within the bound. Raises InvariantError."""
        deadline = self.world.now + HEAL_SECONDS_MAX
        while not self._is_settled(hosts):
            if self.world.now > deadline:
                raise InvariantError(f"not settled {HEAL_SECONDS_MAX:g} s after all faults ended: {self._describe(hosts)}")
            await asyncio.sleep(SETTLE_POLL_SECONDS)

    def _is_settled(self, hosts: Sequence[Host]) -> bool:
        last = self.history.last_index
        revision = self.history.state.revision
        for host in hosts:
            if host.member is None or not host.is_ready or host.member._machine.applied_index != last:
                return False
        return all(not watch.expected(max(watch.seen, 0), revision, 0) for watch in self.watchers if watch.seen >= 0)

    async def _clients_end(self) -> None:
        """Every call has its answer or is given up."""
        while not all(task.done() for task in self._tasks):  # noqa: ASYNC110  (the tasks are another loop's)
            await asyncio.sleep(SETTLE_POLL_SECONDS)

    async def _leases_end(self, hosts: Sequence[Host]) -> None:
        """Nobody renews any more: every lease runs out. Raises InvariantError."""
        deadline = self.world.now + max(TTL_SECONDS) + 2 * self.options.election_timeout_ms / 1000 + REMOVAL_SECONDS_MAX
        while self.history.state.leases:
            if self.world.now > deadline:
                raise InvariantError(f"leases live on: {sorted(self.history.state.leases)}")
            await asyncio.sleep(SETTLE_POLL_SECONDS)

    def _check_all(self, hosts: Sequence[Host]) -> None:
        """The judgements that need the whole run. Raises InvariantError."""
        for host in hosts:
            assert host.member is not None
            machine = host.member._machine
            try:
                verify.check_store(machine.store.store, machine.lessor)
            except verify.InconsistentError as error:
                raise InvariantError(f"{host.name}: {error}") from error
            if machine.store.current_revision != self.history.state.revision:
                raise InvariantError(f"{host.name} is at revision {machine.store.current_revision}, not {self.history.state.revision}")
            self.observer.check_hash(host)
            if machine.membership.list() != self.cluster.members():
                raise InvariantError(f"{host.name} has the members {machine.membership.list()}, others {self.cluster.members()}")
        self.book.check()
        verdict = check_against_log(self.workload.recorder.operations, self.history.requests)
        if not verdict.ok:
            raise InvariantError("not linearizable: " + "\n".join(verdict.problems[:5]))

    # -- looking

    def _describe(self, hosts: Sequence[Host]) -> str:
        lines = [f"{self.history.last_index} entries committed"]
        for host in hosts:
            raft = raft_of(host)
            if raft is None or host.member is None:
                lines.append(f"{host.name}: {'up' if host.process else 'down'}, no member")
            else:
                lines.append(
                    f"{host.name}: {raft.role.value} of term {raft.term}, leader {raft.leader_id:x}, committed {raft.log.committed}, "
                    f"applied {host.member._machine.applied_index}, last {raft.log.last_index()}, ready {host.is_ready}"
                )
        lines += [f"{watch.name}: seen {watch.seen}" for watch in self.watchers]
        return "; ".join(lines)

    def _counts(self) -> dict[str, int]:
        counts = {f"fault {name}": count for name, count in sorted(self.nemesis.counts.items())} if hasattr(self, "nemesis") else {}
        workload = getattr(self, "workload", None)
        return {
            "entries": self.history.last_index,
            "revisions": self.history.state.revision,
            "leaders": self.observer.leader_changes,
            "answered": workload.answered if workload else 0,
            "failed": workload.failed if workload else 0,
            "events": sum(watch.events for watch in self.watchers),
            "streams": sum(watch.resumed for watch in self.watchers),
            "leases": len(self.book.leases),
            "expired": self.book.expired,
            "messages": self.network.messages_sent,
            "lost": self.network.messages_lost,
            "snapshots": self.network.snapshots_sent,
            "starts": sum(host.starts for host in self.cluster.all_hosts()) if hasattr(self, "cluster") else 0,
            "torn writes": sum(host.disk.torn_writes for host in self.cluster.all_hosts()) if hasattr(self, "cluster") else 0,
            **counts,
        }

    # -- the sizes that the code has as constants

    @contextlib.contextmanager
    def _tuned(self) -> Iterator[None]:
        options, observer, world = self.options, self.observer, self.world
        notify = WatchableStore._notify

        def observed_notify(store: WatchableStore, revision: int, events: Sequence[api.Event]) -> None:
            assert world.current is not None
            observer.on_events(world.current, revision, events)
            notify(store, revision, events)

        with contextlib.ExitStack() as stack:
            for module, name, value in (
                (segment, "PREALLOCATE_BYTES", 8192),
                (watcher, "BUFFERED_BATCHES_MAX", options.watch_buffer_batches),
                (watch_history, "SLICE_RECORDS_MAX", options.history_slice_records),
                (watch_history, "NARROW_AFTER_REVISIONS", options.history_slice_records),
                (WatchableStore, "_notify", observed_notify),
            ):
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
            yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Members log what happens to them; a run keeps a trace of its own."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
