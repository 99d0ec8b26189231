"""The hosts of one run and how members are started on them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from storage import errors
from storage.config import MemberConfig
from storage.maintenance import ClusterMember
from storage.raft.rawnode import Role
from tests.simulation.checkers import Observer, raft_of
from tests.simulation.clients import Port
from tests.simulation.disk import DiskFaults, HostDisk
from tests.simulation.hosts import Host
from tests.simulation.network import Network
from tests.simulation.options import Options
from tests.simulation.world import InvariantError, World

RESTART_PAUSE_SECONDS: Final = 0.5
"""Before a member that ended by itself is started again."""


class Cluster:
    """``hosts`` by name, in the order in which they came: those where a member is wanted. ``expected``: added, perhaps."""

    def __init__(self, world: World, network: Network, observer: Observer, options: Options, directory: Path) -> None:
        self.world = world
        self.network = network
        self.observer = observer
        self.options = options
        self.port: Port
        self.rng = world.fork()
        self.hosts: dict[str, Host] = {}
        self.expected: dict[str, Host] = {}
        self.removed: dict[str, Host] = {}
        self.lost_host: Host | None = None
        self.lost_id = 0
        self.count = 0
        self.is_calm = False
        self._directory = directory
        self._joining: dict[str, None] = {}
        """Hosts whose members were not among the first."""
        self._wanted: list[Host] | None = None
        self._restarting: dict[str, None] = {}
        self._ever: list[Host] = []
        self._members: tuple[ClusterMember, ...] = ()
        for _ in range(options.members):
            host = self.new_host()
            self.hosts[host.name] = host
        self._founders = {host.name: (host.url,) for host in self.hosts.values()}

    # -- hosts

    def new_host(self) -> Host:
        """A machine with an empty disk."""
        self.count += 1
        options, rng = self.options, self.rng
        name = f"m{self.count}"
        faults = DiskFaults(slow_chance=options.slow_disk_chance, error_chance=options.disk_error_chance)
        if self.is_calm:
            faults.calm()
        host = Host(
            self.world,
            self.network,
            HostDisk(self.world, faults, self._directory / name),
            name=name,
            clock_rate=1 + rng.uniform(-options.clock_drift, options.clock_drift),
            wall_skew=rng.uniform(-options.wall_skew_seconds, options.wall_skew_seconds),
        )
        self._ever.append(host)
        return host

    def calm(self) -> None:
        """From now on nothing fails, on no host."""
        self.is_calm = True
        for host in self._ever:
            host.disk.faults.calm()
            if host.process is not None and host.process.is_paused:
                host.process.resume()

    def all_hosts(self) -> list[Host]:
        return list(self.hosts.values())

    def ready_hosts(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.is_ready]

    def leaders(self) -> list[Host]:
        """Those that believe to lead."""
        found = []
        for host in self.ready_hosts():
            raft = raft_of(host)
            if raft is not None and raft.role is Role.LEADER:
                found.append(host)
        return found

    # -- membership, with full view

    def members(self) -> tuple[ClusterMember, ...]:
        """The list as of the newest entry that any living member has applied."""
        best = 0
        for host in self.ready_hosts():
            assert host.member is not None
            machine = host.member._machine
            if machine.applied_index > best and machine.membership.list():
                best = machine.applied_index
                self._members = machine.membership.list()
        return self._members

    def host_at(self, urls: tuple[str, ...]) -> Host | None:
        for host in (*self.hosts.values(), *self.expected.values(), *self.removed.values()):
            if host.url in urls:
                return host
        return None

    def expect(self, host: Host) -> None:
        self.expected[host.name] = host

    def join(self, host: Host) -> None:
        """Start a member that was added to the cluster."""
        self.expected.pop(host.name, None)
        self.removed.pop(host.name, None)
        if host is self.lost_host:
            self.lost_host = None
        self.hosts[host.name] = host
        self._joining[host.name] = None
        self.start(host)

    def retire(self, host: Host) -> None:
        """Its member was removed."""
        self.observer.trace(f"{host.name} retires")
        host.kill()
        self.hosts.pop(host.name, None)
        self.removed[host.name] = host

    @property
    def is_replacing(self) -> bool:
        return self.lost_host is not None

    def lose_disk(self, host: Host, member_id: int) -> None:
        """And try to start it as it was, which must be refused."""
        host.kill()
        host.wipe()
        self.lost_host, self.lost_id = host, member_id
        self._joining[host.name] = None
        self.restart_later(host, RESTART_PAUSE_SECONDS)

    # -- processes

    def config(self, host: Host) -> MemberConfig:
        options = self.options
        is_joining = host.name in self._joining
        cluster: dict[str, tuple[str, ...]] = dict(self._founders)
        if is_joining:
            known = {(found.name if (found := self.host_at(each.peer_urls)) else f"unknown{each.id}"): each for each in self.members()}
            cluster = {host.name: (host.url,), **{name: each.peer_urls for name, each in known.items()}}
            if len(cluster) < 2:
                cluster = {**self._founders, host.name: (host.url,)}
        return MemberConfig(
            name=host.name,
            data_dir=host.disk.directory,
            initial_cluster=cluster,
            initial_cluster_state="existing" if is_joining else "new",
            snapshot_count=options.snapshot_count,
            snapshot_catchup_entries=max(1, options.snapshot_count // 4),
            wal_segment_bytes=options.wal_segment_bytes,
            quota_backend_bytes=options.quota_backend_bytes,
            heartbeat_interval_ms=options.heartbeat_interval_ms,
            election_timeout_ms=options.election_timeout_ms,
            pre_vote=options.pre_vote,
        )

    def start(self, host: Host) -> None:
        """Start a member, and again whenever it ends by itself."""
        if host.process is not None or host.name not in self.hosts:
            return
        self.observer.trace(f"{host.name} starts")
        host.start(self.config(host))
        assert host.process is not None
        self.observer.watch(host)

    def restart_later(self, host: Host, seconds: float) -> None:
        self._restarting[host.name] = None
        self.world.call_at(self.world.now + seconds, self.world.nature, self._restart, host)

    def _restart(self, host: Host) -> None:
        self._restarting.pop(host.name, None)
        if self._wanted is None or host in self._wanted:
            self.start(host)

    def only(self, hosts: list[Host]) -> None:
        """From now on only these are started again; the others are killed."""
        self._wanted = hosts
        for host in self.hosts.values():
            if host in hosts:
                self.start(host)
            else:
                host.kill()

    async def stop_gracefully(self, host: Host) -> None:
        process = host.process
        if process is None or not host.is_ready:
            return
        process.create_task(host.stop(), name=f"{host.name} stop")

    def look_after(self, host: Host) -> None:
        """A supervisor's part: a member that failed is ended and started again. Raises InvariantError for a failure that no fault of
        this run explains."""
        member, process = host.member, host.process
        if host.start_error is not None:
            error, host.start_error = host.start_error, None
            self._judge(host, error)
            self.restart_later(host, RESTART_PAUSE_SECONDS)
        elif member is not None and member.failure is not None:
            error = member.failure
            host.kill()
            self._judge(host, error)
            self.restart_later(host, RESTART_PAUSE_SECONDS)
        elif host.is_ready and host is self.lost_host and member is not None and member.member_id == self.lost_id:
            raise InvariantError(f"{host.name} lost its disk and runs again as {self.lost_id:x}")
        elif process is None and host.name not in self._restarting and host is not self.lost_host:
            self.restart_later(host, RESTART_PAUSE_SECONDS)  # it stopped when asked to
        elif process is not None and process.failure is not None:
            raise InvariantError(f"{process.name}: {type(process.failure).__name__}: {process.failure}") from process.failure

    def _judge(self, host: Host, error: BaseException) -> None:
        self.observer.trace(f"{host.name} ended: {type(error).__name__}")
        if isinstance(error, OSError | errors.DataDirError) or isinstance(error.__cause__, OSError):
            return  # its disk failed
        if isinstance(error, errors.MemberRemovedError) and self._was_removed(host):
            self.retire(host)
            return
        if host is self.lost_host and isinstance(error, errors.MembershipError | errors.UnavailableError):
            self.hosts.pop(host.name, None)  # refused, as it must be
            return
        if isinstance(error, errors.UnavailableError) or (isinstance(error, errors.MembershipError) and host.name in self._joining):
            return  # it could not reach its cluster, or the list has changed meanwhile: the operator tries again
        raise InvariantError(f"{host.name} ended: {type(error).__name__}: {error}") from error

    def _was_removed(self, host: Host) -> bool:
        return all(host.url not in each.peer_urls or each.id != host.last_member_id for each in self.members())
