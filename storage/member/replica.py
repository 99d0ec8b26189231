"""One replica of the cluster's state: its life, its peers, its log, and what it does by itself. ``Member`` adds the doors."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from storage import api, errors, maintenance
from storage.backend.backend import Backend
from storage.config import MemberConfig
from storage.member import bootstrap, consistent_index, opening, peer_calls, snapshot_transfer
from storage.member import request as log_request
from storage.member.bootstrap import Beginning
from storage.member.cluster_service import ClusterService, warn_of_even_count
from storage.member.environment import Environment, Lock
from storage.member.housekeeping import HASH_KV, Housekeeping
from storage.member.lease_service import LeaseService
from storage.member.metrics import MemberMetrics
from storage.member.peer_calls import PeerCalls, RemoteCluster
from storage.member.proposals import Proposals
from storage.member.quota import Quota
from storage.member.raft_loop import Callbacks, RaftLoop
from storage.member.read_index import ReadIndex
from storage.member.snapshot_transfer import SnapshotReceiver
from storage.member.snapshotter import Snapshotter
from storage.member.state_machine import ConfChangeHooks, Headers, StateMachine
from storage.member.tasks import Tasks
from storage.member.transport import Transport
from storage.member.upkeep import Upkeep
from storage.member.wait import RequestIds
from storage.metric_families import Family
from storage.raft.messages import ConfChange, ConfChangeType, ConfChangeV2, ConfState, Entry, Message, MessageType, SnapshotMetadata
from storage.raft.rawnode import ReadState, Role, SoftState

logger = logging.getLogger(__name__)

PENDING_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of writes that are not durable yet: what a stalled disk may hold in memory. Beyond it the writes of a pass are refused."""

REQUEST_TIMEOUT_SECONDS: Final = 5.0
"""After it a write's outcome is reported as unknown (etcd's, to which it adds twice the election timeout)."""

MAINTENANCE_SECONDS: Final = 0.1
"""How often leases, the backend's batch, timeouts and snapshot markers are looked at."""

CATCH_UP_ENTRIES_ALONE: Final = 0
"""Applied entries kept in memory: a member without a transport has no follower that could ask for them."""

REMOVED_LINGER_SECONDS: Final = 1.0
"""A member that learns from the log that it was removed goes on for so long, so that the others, if it led them, learn it too (etcd's)."""

CONFIRM_SECONDS: Final = 1.0
"""A leader that is asked for the members waits so long for a quorum to confirm it; less than the one who asks waits for the answer."""

HANDOVER_SECONDS_MAX: Final = 2.0
"""A leader that stops waits so long for another to take over; after it the others elect one by themselves."""

PREVIOUS_LEADER_FAILED: Final = "etcdserver: request timed out, possibly due to previous leader failure"
"""etcd's text for a write whose leader was lost."""

PUBLISH_RETRY_SECONDS: Final = 0.5
"""Until a member's name is in the list it tries again."""


class Replica:
    """See ``member.Member``, the class to use."""

    def __init__(self, config: MemberConfig, *, rng: random.Random | None = None, environment: Environment | None = None) -> None:
        """``rng`` draws ids of leases and election timeouts. Raises ValueError for a bad configuration."""
        config.validate()
        self.config = config
        self.metrics = MemberMetrics(quota_backend_bytes=config.quota_backend_bytes)
        self.further_metrics: list[Callable[[], list[Family]]] = []
        """What others that serve this member count, to be told with its own."""
        self.failure: BaseException | None = None
        self.member_id = 0
        self.cluster_id = 0
        self._environment = environment or Environment()
        if len(config.initial_cluster) > 1 and self._environment.transport is None:
            raise ValueError("a member of a cluster needs a transport to its peers")
        self._rng = rng or random.SystemRandom()
        self._quota = Quota(config.quota_backend_bytes)
        self._timeout_seconds = REQUEST_TIMEOUT_SECONDS + 2 * config.election_timeout_ms / 1000
        self._running = False
        self._is_learner = False
        self._lock: Lock | None = None
        self._maintenance_handle: asyncio.TimerHandle | None = None
        self._removal_handle: asyncio.TimerHandle | None = None
        self._last_leader_id = 0
        self._led_since: tuple[int, float] = (0, 0.0)

    # -- life

    async def start(self) -> None:
        """Open the data directory, replay the log, meet the peers. A member that is alone leads on return; one of several returns at
        once, since the others may be started after it (``wait_ready``). Raises DataDirError, DataDirLockedError, CorruptError,
        MemberRemovedError, and MembershipError or UnavailableError for a cluster that cannot be joined."""
        assert not self._running, "already started"
        self._loop = asyncio.get_running_loop()
        config, environment = self.config, self._environment
        beginning: Beginning | None = None
        backend: Backend | None = None
        self._lock = opening.lock_directory(config, environment)
        transport = environment.transport
        try:
            beginning = await self._begin()
            begin = beginning.opened.replay.snapshot
            backend = snapshot_transfer.open_backend(config, environment, self.metrics, begin=begin)
            self._assemble(beginning, backend)
            if transport is not None:
                await transport.start(self, member_id=self.member_id, cluster_id=self.cluster_id)
        except BaseException:
            if transport is not None:
                await transport.stop()
            if backend is not None:
                backend.close()
            if beginning is not None:
                beginning.opened.log.close()
            self._lock.release()
            raise
        self._running = True
        self._meet_peers(beginning)
        self._raft.start()
        self._maintenance_handle = self._loop.call_later(MAINTENANCE_SECONDS, self._maintain)
        try:
            await self._apply_known()
            if self._raft.node.conf_state().voters == (self.member_id,):
                self._raft.campaign()
                await self._ready
                await self._publish()
                self._check_running()
            else:
                self._tasks.spawn(self._publish(), name="publish")
        except BaseException:
            await self.stop()
            raise
        self._machine.maybe_go_on_compacting()

    @property
    def raft_term(self) -> int:
        return self._headers.term

    def header(self) -> api.ResponseHeader:
        """For answers that come with none: the newest revision that is applied here."""
        return self._machine.header()

    def has_leader(self) -> bool:
        return self._running and self._raft.node.has_leader()

    def is_learner(self) -> bool:
        """Whether this member only learns: it has no vote, and answers serializable reads alone."""
        return self._is_learner

    @property
    def applied_index(self) -> int:
        """The last entry of the log that is carried out here."""
        return self._machine.applied_index

    @property
    def problem(self) -> str:
        """Why it serves neither writes nor linearizable reads now; "" while it does."""
        if self.failure is not None:
            return f"stopped after a failure: {self.failure}"
        return "" if self.metrics.has_leader else errors.UnavailableError.text

    async def wait_ready(self) -> None:
        """Return when a leader is known and an entry of its term is applied here. Raises UnavailableError when the member fails."""
        await asyncio.shield(self._ready)

    async def wait_failed(self) -> BaseException:
        """Return when the member has failed or was removed, with ``failure``."""
        await asyncio.shield(self._failed)
        assert self.failure is not None
        return self.failure

    async def stop(self) -> None:
        """Hand leadership over, finish the writes that were accepted, end the watches, close all. Idempotent."""
        if not self._running:
            return
        if self.failure is None and self._raft.node.raft.role is Role.LEADER:
            await self._cluster.hand_over(timeout_seconds=HANDOVER_SECONDS_MAX)
            if not self._running:
                return
        self._running = False
        for handle in (self._maintenance_handle, self._removal_handle):
            if handle is not None:
                handle.cancel()
        await self._tasks.cancel_all()
        await self._housekeeping.close()
        await self._raft.stop()
        if self._environment.transport is not None:
            await self._environment.transport.stop()
        self._fail_waiters(errors.StoppedError())
        self._machine.close()
        assert self._lock is not None
        try:
            self._machine.backend.close()
        except (OSError, errors.StoreError) as error:
            if self.failure is None:
                raise
            logger.error("closing the backend after a failure: %s", error)
        finally:
            self._lock.release()

    async def _begin(self) -> Beginning:
        config, environment = self.config, self._environment
        if not opening.has_log(config, environment):
            return await bootstrap.begin(config, environment)
        opened = opening.open_log(config, environment)
        try:
            if bootstrap.is_unfinished(opened):
                opened = bootstrap.write_initial_entries(opened, config)
        except BaseException:
            opened.log.close()
            raise
        return Beginning(opened=opened, peers=bootstrap.configured_members(config))

    def _assemble(self, beginning: Beginning, backend: Backend) -> None:
        config, environment, replay = self.config, self._environment, beginning.opened.replay
        identity = beginning.opened.identity
        self.member_id, self.cluster_id = identity.member_id, identity.cluster_id
        self._log = beginning.opened.log  # the disk's thread writes it; only its segment_count is read here
        self._headers = Headers(member_id=self.member_id, cluster_id=self.cluster_id, term=replay.hard_state.term)
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        self._tasks = Tasks(self._on_failed)
        # Wall time is used only here: ids of an earlier run must not come again.
        request_ids = RequestIds(self.member_id, int(environment.wall_time() * 1000))
        self._proposals = Proposals(
            request_ids=request_ids,
            quota=self._quota,
            metrics=self.metrics,
            propose=self._propose,
            max_request_bytes=config.max_request_bytes,
        )
        self._machine = StateMachine(
            backend,
            headers=self._headers,
            lease_ttl_seconds_min=math.ceil(1.5 * config.election_timeout_ms / 1000),
            lease_checkpoint_interval_seconds=config.lease_checkpoint_interval_seconds,
            take_waiter=self._proposals.take,
            conf_changes=ConfChangeHooks(
                apply=self._apply_conf_change, changed=self._on_member_changed, take_waiter=self._proposals.take_change
            ),
            metrics=self.metrics,
            stopwatch=environment.stopwatch,
        )
        membership = self._machine.membership
        if self.member_id in membership.removed:
            raise errors.MemberRemovedError()
        consistent_index.check(self._machine.applied_index, replay, backend_file=str(config.backend_file()), log_dir=str(config.log_dir()))
        node, log_storage = opening.make_node(
            config,
            beginning.opened,
            conf_state=membership.conf_state() or replay.snapshot.conf_state,
            applied=self._machine.applied_index,
            uncommitted_bytes_max=PENDING_BYTES_MAX,
            rng=random.Random(self._rng.getrandbits(64)),
        )
        self._log_storage = log_storage
        log_storage.use_snapshots_of(lambda: SnapshotMetadata(node.conf_state(), self._machine.applied_index, self._machine.applied_term))
        self._raft = RaftLoop(
            node,
            log_storage,
            beginning.opened.log,
            callbacks=Callbacks(
                apply=self._apply,
                install=self._install,
                dropped=self._on_dropped,
                is_awaited=self._proposals.is_awaited,
                soft_state=self._on_soft_state,
                read_states=self._on_read_states,
                send=self._send,
                saved=self.metrics.wal_fsync_seconds.observe,
                failed=self._on_failed,
            ),
            log_writer=environment.log_writer,
            tick_seconds=config.heartbeat_interval_ms / 1000,
            name=config.name,
        )
        self._snapshotter = Snapshotter(
            backend,
            log_storage,
            snapshot_count=config.snapshot_count,
            catch_up_entries=config.snapshot_catchup_entries if environment.transport is not None else CATCH_UP_ENTRIES_ALONE,
            marked_index=replay.snapshot.index,
            mark=self._raft.mark_snapshot,
        )
        self._assemble_services()
        self._observe_sizes()

    def _assemble_services(self) -> None:
        """What answers calls; all of it uses the machine and the log."""
        machine, environment = self._machine, self._environment
        context_of_member = self.member_id.to_bytes(8, "big")
        request_ids = self._proposals.request_ids
        self._read_index = ReadIndex(
            ask=self._raft.maybe_read_index,
            new_context=lambda: context_of_member + request_ids.next().to_bytes(8, "big"),
            applied_index=lambda: machine.applied_index,
            metrics=self.metrics,
        )
        self._receiver = SnapshotReceiver(self.config, environment, self.metrics, self._raft)
        self._calls = PeerCalls()
        self._calls.register(peer_calls.CLUSTER_MEMBERS, self._answer_members)
        self._upkeep = Upkeep(machine.store, environment.run_blocking)
        self._cluster = ClusterService(
            self.config,
            environment,
            machine=machine,
            raft=self._raft,
            proposals=self._proposals,
            headers=self._headers,
            calls=self._calls,
            wait_for_reads=self._wait_for_reads,
            timeout_seconds=self._timeout_seconds,
        )
        self._housekeeping = Housekeeping(
            self.config,
            member_id=self.member_id,
            machine=machine,
            upkeep=self._upkeep,
            transport=environment.transport,
            write=self._write,
            propose=self._propose_as_leader,
            leads=lambda: self.metrics.is_leader,
            peer_ids=self._peer_ids,
            wait_for_reads=self._wait_for_reads,
            measure=self._observe_sizes,
            failed=self._on_failed,
            now=self._loop.time(),
        )
        self._calls.register(HASH_KV, self._housekeeping.answer_hash_kv)
        self._leases = LeaseService(
            environment,
            machine=machine,
            raft=self._raft,
            calls=self._calls,
            wait_for_reads=self._wait_for_reads,
            renew=lambda lease_id: self._housekeeping.renew_lease(lease_id, self._loop.time),
            timeout_seconds=self._timeout_seconds,
        )

    def _peer_ids(self) -> tuple[int, ...]:
        return tuple(member_id for member_id in self._machine.membership.members if member_id != self.member_id)

    def _meet_peers(self, beginning: Beginning) -> None:
        """Who they are stands in the backend; before the log has told it, in the configuration or the running cluster's answer."""
        membership = self._machine.membership
        mine = membership.members.get(self.member_id)
        self._is_learner = mine is not None and mine.is_learner
        voters = self._raft.node.conf_state().voters
        if voters:
            warn_of_even_count(len(voters))
        transport = self._environment.transport
        if transport is None:
            return
        for member in membership.list() or beginning.peers:
            if member.id != self.member_id:
                transport.set_peer(member.id, member.peer_urls)
        for member_id in sorted(membership.removed):
            transport.remove_peer(member_id)

    async def _apply_known(self) -> None:
        """Return when all that this member's log says to be committed is applied: only then it knows who votes, and whether it is alone.
        Raises what made the member stop."""
        committed = self._raft.node.status().committed
        while self._machine.applied_index < committed:
            if self.failure is not None:
                raise self.failure if isinstance(self.failure, errors.StoreError) else _stopped(self.failure)
            await asyncio.sleep(0)  # each pass of the loop applies a part

    async def _publish(self) -> None:
        """Tell the cluster this member's name and where clients reach it, until the list says so."""
        while self.failure is None:
            try:
                await self.wait_ready()
                await self._cluster.publish()
                return
            except errors.MemberRemovedError:
                return
            except errors.StoreError as error:
                logger.info("publishing this member again: %s", error)
            await asyncio.sleep(PUBLISH_RETRY_SECONDS)

    # -- writing

    async def _write(self, request: log_request.InternalRequest) -> object:
        """See ``Proposals.write``. Raises NotSupportedForLearnerError too."""
        if self._is_learner or not self._running or self.failure is not None:
            self._check_serving()
        try:
            return await self._proposals.write(request)
        except errors.NoSpaceError:
            await self._housekeeping.out_of_space()
            raise

    def _propose(self, data: bytes) -> None:
        self._raft.propose(data)

    def _propose_revoke(self, lease_id: int) -> None:
        """Revoke a lease that ran out; nobody waits for it. If it gets lost, the lessor names the lease again."""
        self._propose_as_leader(log_request.LeaseRevokeRequest(id=lease_id))

    def _propose_as_leader(self, request: log_request.InternalRequest) -> None:
        """Nobody waits for it; where this member does not lead it is dropped."""
        self._raft.propose_as_leader(log_request.encode(self._proposals.request_ids.next(), request))

    # -- applying

    def _apply(self, entries: list[Entry]) -> None:
        machine = self._machine
        term = machine.applied_term
        machine.apply(entries)
        if machine.applied_term != term:
            self._maybe_become_ready()
        self._read_index.applied()

    def _install(self, metadata: SnapshotMetadata) -> None:
        """Go on from the database that was received with a snapshot."""
        logger.info("going on from the leader's database at entry %d", metadata.index)
        machine, known = self._machine, self._machine.membership.members
        backend = self._receiver.install(metadata, machine.backend)
        machine.restore(backend)
        assert machine.applied_index == metadata.index, (machine.applied_index, metadata)
        self._snapshotter.restored(backend, metadata.index)
        for member_id in sorted(known.keys() - machine.membership.members.keys()):
            self._on_member_changed(ConfChangeType.REMOVE_NODE, known[member_id])
        for member in machine.membership.list():
            self._on_member_changed(ConfChangeType.UPDATE_NODE, member)
        self._observe_sizes()
        self._maybe_become_ready()
        self._read_index.applied()

    def _apply_conf_change(self, change: ConfChange | ConfChangeV2) -> ConfState:
        return self._raft.node.apply_conf_change(change)

    def _on_member_changed(self, kind: ConfChangeType, member: maintenance.ClusterMember) -> None:
        """The list was changed by the log."""
        transport = self._environment.transport
        removed = kind is ConfChangeType.REMOVE_NODE
        if member.id == self.member_id:
            self._is_learner = member.is_learner
            if removed:
                logger.warning("this member was removed from the cluster")
                self._removal_handle = self._loop.call_later(REMOVED_LINGER_SECONDS, self._on_failed, errors.MemberRemovedError())
        elif transport is not None and removed:
            transport.remove_peer(member.id)
        elif transport is not None:
            transport.set_peer(member.id, member.peer_urls)

    def _on_read_states(self, states: tuple[ReadState, ...]) -> None:
        self._read_index.answered(states)

    def _maybe_become_ready(self) -> bool:
        """Once an entry of the current leader's term is applied here, all that was acknowledged before this start is."""
        if self._ready.done() or self._machine.applied_term != self._headers.term or not self._raft.node.has_leader():
            return False
        self._ready.set_result(None)
        return True

    # -- peers (transport.PeerHandler)

    def receive(self, message: Message) -> None:
        """See ``PeerHandler``."""
        self._raft.receive(message)

    def peer_unreachable(self, member_id: int) -> None:
        """See ``PeerHandler``."""
        self._raft.report_unreachable(member_id)

    async def receive_snapshot(self, message: Message, chunks: AsyncIterator[bytes]) -> None:
        """See ``PeerHandler``."""
        self._check_running()
        await self._receiver.receive(message, chunks)

    def snapshot_sent(self, member_id: int, *, ok: bool) -> None:
        """See ``PeerHandler``."""
        self._raft.report_snapshot(member_id, ok=ok)

    async def answer_call(self, sender_id: int, method: str, body: bytes) -> bytes:
        """See ``PeerHandler``. Raises InvalidRequestError for a method that there is not, and what the method raises."""
        self._check_running()
        return await self._calls.answer(sender_id, method, body)

    async def _answer_members(self, arguments: Mapping[str, Any]) -> Mapping[str, object]:
        """To one that is about to begin. Without a leader too: the one that asks may be what is missing for a quorum, as after a second
        voter was added to a first. Raises UnavailableError while this member knows of none."""
        leads = self._raft.node.status().role is Role.LEADER and await self._confirm_leadership()
        members = self._machine.membership.list()
        if not members:
            raise errors.UnavailableError()
        return RemoteCluster(
            cluster_id=self.cluster_id,
            members=members,
            acknowledged={progress.member: progress.match for progress in self._raft.node.status().progress} if leads else {},
            has_leader=self._ready.done() and self._raft.node.has_leader(),
            applied_index=self._machine.applied_index,
        ).to_json()

    async def _confirm_leadership(self) -> bool:
        """Ask a quorum, for a while: one that was deposed must not speak for the cluster."""
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                await self._wait_for_reads()
        except (TimeoutError, errors.StoreError):
            return False
        return self._raft.node.status().role is Role.LEADER

    def _send(self, messages: list[Message]) -> None:
        transport = self._environment.transport
        assert transport is not None, messages
        if any(message.type is MessageType.SNAPSHOT for message in messages):
            for message in messages:
                if message.type is MessageType.SNAPSHOT:
                    self._send_snapshot(transport, message)
            messages = [message for message in messages if message.type is not MessageType.SNAPSHOT]
        transport.send(messages)

    def _send_snapshot(self, transport: Transport, message: Message) -> None:
        logger.info("member %016x lacks what the log holds no more: it is sent the database", message.to)
        backend, conf_state = self._machine.backend, self._raft.node.conf_state()
        transport.send_snapshot(*snapshot_transfer.outgoing(message, backend, conf_state, self._environment))

    # -- what happens by itself

    def _maintain(self) -> None:
        """Every ``MAINTENANCE_SECONDS``."""
        now = self._loop.time()
        machine = self._machine
        self._maintenance_handle = self._loop.call_later(MAINTENANCE_SECONDS, self._maintain)
        try:
            machine.backend.maybe_commit(now)
        except (OSError, errors.StoreError) as error:
            self._on_failed(error)
            return
        if self._environment.transport is not None and self._environment.transport.was_removed():
            self._on_failed(errors.MemberRemovedError())
            return
        self._proposals.expire(now - self._timeout_seconds)
        self._expire_of_earlier_leaders(now)
        self._read_index.tick(now, timeout_seconds=self._timeout_seconds)
        for lease_id in machine.lessor.expired(now) if self.config.expire_leases else ():
            self.metrics.leases_expired_total += 1
            self._propose_revoke(lease_id)
        self._housekeeping.tick(now, is_ready=self._ready.done())
        node = self._raft.node
        mark = self._snapshotter.maybe_mark
        if not self._receiver.is_installing and mark(machine.applied_index, node.conf_state(), segment_count=self._log.segment_count):
            self.metrics.snapshot_markers_total += 1
        self._snapshotter.maybe_compact_memory(machine.applied_index)
        self._observe_sizes()

    def _expire_of_earlier_leaders(self, now: float) -> None:
        """What was handed to a leader that is no more, and is not in the log before the first entry of the new one's term, is lost, but
        for a message still on its way that finds the new leader; it gets two election timeouts. To let its caller wait for longer would
        only hold up who wants to try again."""
        term, since = self._led_since
        if term == self._headers.term == self._machine.applied_term and now > since + 2 * self.config.election_timeout_ms / 1000:
            self._proposals.expire(since, PREVIOUS_LEADER_FAILED)

    def _observe_sizes(self) -> None:
        backend = self._machine.backend
        self.metrics.db_total_size_bytes = backend.size()
        self.metrics.db_in_use_bytes = in_use = backend.size_in_use()
        self._quota.observe(in_use)

    def _on_soft_state(self, state: SoftState, term: int) -> None:
        leads = state.role is Role.LEADER
        self._headers.term = term
        self.metrics.has_leader = bool(state.leader_id)
        if state.leader_id:
            if self._led_since[0] != term:
                self._led_since = (term, self._loop.time())
            if state.leader_id != self._last_leader_id:
                self._last_leader_id = state.leader_id
                self.metrics.leader_changes_seen += 1
            self._read_index.leader_changed()
        if leads is not self.metrics.is_leader:
            self.metrics.is_leader = leads
            lessor = self._machine.lessor
            if leads:
                # With peers, another may have led a moment ago and answered renewals that nobody else knows of.
                extend_seconds = 0.0 if self._raft.node.leads_alone() else self.config.election_timeout_ms / 1000
                lessor.promote(self._loop.time(), extend_seconds)
            else:
                lessor.demote()
        self._maybe_become_ready()

    def _on_dropped(self, proposals: list[bytes]) -> None:
        """Nothing of them was proposed: too much waits for the disk, or nobody leads."""
        leads = self._raft.node.raft.role is Role.LEADER
        self._proposals.drop(proposals, errors.TooManyRequestsError() if leads else errors.UnavailableError())

    def _on_failed(self, error: BaseException) -> None:
        """The disk or the state machine failed: nothing that is acknowledged from here on could be relied on."""
        if self.failure is not None:
            return
        self.failure = error
        logger.critical("the store stops: %s: %s", type(error).__name__, error)
        if self._maintenance_handle is not None:
            self._maintenance_handle.cancel()
        if not self._ready.done():
            self._ready.set_exception(error if isinstance(error, errors.StoreError) else _stopped(error))
            self._ready.exception()  # nobody need wait for it
        if not self._failed.done():
            self._failed.set_result(None)
        # What waits may have been done, also where the member was removed.
        self._fail_waiters(errors.StoppedError() if isinstance(error, errors.MemberRemovedError) else _stopped(error))
        self._machine.close()
        self._raft.halt()

    def _fail_waiters(self, error: errors.StoreError) -> None:
        self._proposals.fail_all(error)
        self._read_index.fail_all(error)
        self._machine.fail_waiters(error)

    # -- checks

    def _check_running(self) -> None:
        """Raises UnavailableError, MemberRemovedError."""
        if self.failure is not None:
            raise _stopped(self.failure)
        if not self._running:
            raise errors.StoppedError()

    def _check_serving(self) -> None:
        """Raises NotSupportedForLearnerError too."""
        if not self._running or self.failure is not None:
            self._check_running()
        if self._is_learner:
            raise errors.NotSupportedForLearnerError()

    def _leads_alone(self) -> bool:
        """Whether what is applied here is all that was ever acknowledged: a single voter that has applied an entry of its term."""
        return self._machine.applied_term == self._headers.term and self._raft.node.leads_alone() and self._running and self.failure is None

    async def _wait_for_reads(self) -> None:
        """Return once everything that was acknowledged before this call is applied here."""
        if self._leads_alone():
            return
        self._check_running()
        await self._read_index.wait()


def _stopped(error: BaseException) -> errors.StoreError:
    if isinstance(error, errors.MemberRemovedError):
        return errors.MemberRemovedError()
    return errors.UnavailableError(f"etcdserver: stopped after a failure: {type(error).__name__}: {error}")
