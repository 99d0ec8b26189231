"""``Member``: the store in this process, one member of a cluster. Implements ``storage.api.KV``."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
from collections.abc import AsyncIterator
from typing import Final

from storage import api, errors, maintenance
from storage.backend.backend import Backend
from storage.config import MemberConfig
from storage.member import consistent_index, opening, txn
from storage.member import request as log_request
from storage.member.environment import Environment, Lock
from storage.member.housekeeping import HASH_KV, Housekeeping
from storage.member.membership import new_cluster_id, new_member_id
from storage.member.metrics import MemberMetrics
from storage.member.opening import Identity, OpenedLog
from storage.member.peer_metrics import PeerMetrics
from storage.member.proposals import Proposals
from storage.member.quota import Quota
from storage.member.raft_loop import Callbacks, RaftLoop
from storage.member.snapshotter import Snapshotter
from storage.member.state_machine import Headers, StateMachine
from storage.member.upkeep import Upkeep
from storage.member.wait import RequestIds
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import Entry, Message
from storage.raft.rawnode import Config, RawNode, Role, SoftState

logger = logging.getLogger(__name__)

VERSION: Final = "3.6.0"
"""The etcd version whose behaviour and layout the store has."""

PENDING_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of writes that are not durable yet: what a stalled disk may hold in memory. Beyond it the writes of a pass are refused."""

REQUEST_TIMEOUT_SECONDS: Final = 5.0
"""After it a write's outcome is reported as unknown (etcd's, to which it adds twice the election timeout)."""

MAINTENANCE_SECONDS: Final = 0.1
"""How often leases, the backend's batch, timeouts and snapshot markers are looked at."""

CATCH_UP_ENTRIES_ALONE: Final = 0
"""Applied entries kept in memory: a single voter has no follower that could ask for them."""

CATCH_UP_ENTRIES: Final = 5000
"""The same with followers, so that one that lags a little need not be sent the whole database (etcd's)."""


class Member:
    """Life: construct, ``start``, use, ``stop``. All calls are for the event loop that ran ``start``.

    An acknowledged write is on disk of a quorum (unless ``unsafe_no_fsync``) and applied here, and its events are posted to the watchers
    here. When the disk or the state machine fails, the member stops for good: every call raises ``UnavailableError``, ``failure`` says why.
    """

    events_are_immediate = True
    progress_on_request = True

    def __init__(self, config: MemberConfig, *, rng: random.Random | None = None, environment: Environment | None = None) -> None:
        """``rng`` draws ids of leases and election timeouts. Raises ValueError for a bad configuration."""
        config.validate()
        self.config = config
        self.metrics = MemberMetrics(quota_backend_bytes=config.quota_backend_bytes)
        self.failure: BaseException | None = None
        self.member_id = 0
        self.cluster_id = 0
        self._environment = environment or Environment()
        if len(config.initial_cluster) > 1 and self._environment.transport is None:
            raise ValueError("a member of a cluster needs a transport to its peers")
        self._rng = rng or random.SystemRandom()
        self._quota = Quota(config.quota_backend_bytes)
        self._running = False
        self._lock: Lock | None = None
        self._maintenance_handle: asyncio.TimerHandle | None = None
        self._last_leader_id = 0

    # -- life

    async def start(self) -> None:
        """Open the data directory, replay the log, meet the peers. A member that is alone leads on return; one of several returns at
        once, since the others may be started after it (``wait_ready``). Raises DataDirError, DataDirLockedError, CorruptError."""
        assert not self._running, "already started"
        self._loop = asyncio.get_running_loop()
        config, environment = self.config, self._environment
        opened: OpenedLog | None = None
        backend: Backend | None = None
        self._lock = opening.lock_directory(config, environment)
        try:
            opened = opening.open_log(config, environment) if opening.has_log(config, environment) else self._create_log()
            backend = opening.open_backend(config, environment, self.metrics)
            self._assemble(opened, backend)
            transport = environment.transport
            if transport is not None:
                await transport.start(self, member_id=self.member_id, cluster_id=self.cluster_id)
        except BaseException:
            if backend is not None:
                backend.close()
            if opened is not None:
                opened.log.close()
            self._lock.release()
            raise
        self._running = True
        self._raft.start()
        self._maintenance_handle = self._loop.call_later(MAINTENANCE_SECONDS, self._maintain)
        if transport is not None:
            for member_id, urls in self._peers.items():
                transport.set_peer(member_id, urls)
        if self._raft.node.conf_state().voters == (self.member_id,):
            self._raft.campaign()
            try:
                await self._ready
            except BaseException:
                await self.stop()
                raise
        self._machine.maybe_go_on_compacting()

    @property
    def raft_term(self) -> int:
        return self._headers.term

    def header(self) -> api.ResponseHeader:
        """For answers that come with none: the newest revision that is applied here."""
        return self._headers.make(self._machine.store.current_revision)

    def has_leader(self) -> bool:
        return self._running and self._raft.node.has_leader()

    def is_learner(self) -> bool:
        """Whether this member only learns: it has no vote, and answers serializable reads alone."""
        return self.member_id in self._raft.node.conf_state().learners

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

    async def stop(self) -> None:
        """Finish the writes that were accepted, end the watches, close all. Idempotent."""
        if not self._running:
            return
        self._running = False
        if self._maintenance_handle is not None:
            self._maintenance_handle.cancel()
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

    def _create_log(self) -> OpenedLog:
        config = self.config
        cluster = config.initial_cluster or {config.name: config.peer_urls()}
        members = {new_member_id(urls, config.initial_cluster_token): urls for urls in cluster.values()}
        identity = Identity(member_id=new_member_id(config.peer_urls(), config.initial_cluster_token), cluster_id=new_cluster_id(members))
        return opening.create_log(config, self._environment, identity, tuple(sorted(members)))

    def _assemble(self, opened: OpenedLog, backend: Backend) -> None:
        config, environment, replay = self.config, self._environment, opened.replay
        self.member_id, self.cluster_id = opened.identity.member_id, opened.identity.cluster_id
        self._log = opened.log  # the disk's thread writes it; only its segment_count is read here
        self._headers = Headers(member_id=self.member_id, cluster_id=self.cluster_id, term=replay.hard_state.term)
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
            metrics=self.metrics,
            stopwatch=environment.stopwatch,
        )
        self._upkeep = Upkeep(self._machine.store, environment.run_blocking)
        index = self._machine.applied_index
        consistent_index.check(index, replay, backend_file=str(config.backend_file()), log_dir=str(config.log_dir()))
        log_storage = MemoryLogStorage(replay.snapshot, replay.hard_state)
        log_storage.append(replay.entries)
        node = RawNode(
            Config(
                id=self.member_id,
                election_ticks=config.election_timeout_ms // config.heartbeat_interval_ms,
                heartbeat_ticks=1,
                uncommitted_bytes_max=PENDING_BYTES_MAX,
                pre_vote=config.pre_vote,
                applied=index,
            ),
            log_storage,
            random.Random(self._rng.getrandbits(64)),
        )
        self._peers = {
            member_id: urls
            for member_id, urls in sorted(
                (new_member_id(urls, config.initial_cluster_token), urls) for urls in config.initial_cluster.values()
            )
            if member_id != self.member_id
        }
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._raft = RaftLoop(
            node,
            log_storage,
            opened.log,
            callbacks=Callbacks(
                apply=self._apply,
                dropped=self._on_dropped,
                is_awaited=self._proposals.is_awaited,
                soft_state=self._on_soft_state,
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
            catch_up_entries=CATCH_UP_ENTRIES if self._peers else CATCH_UP_ENTRIES_ALONE,
            marked_index=replay.snapshot.index,
            mark=self._raft.mark_snapshot,
        )
        self._housekeeping = Housekeeping(
            config,
            member_id=self.member_id,
            machine=self._machine,
            upkeep=self._upkeep,
            transport=environment.transport,
            write=self._write,
            propose=self._propose_as_leader,
            leads=lambda: self.metrics.is_leader,
            peer_ids=lambda: tuple(self._peers),
            wait_for_reads=self.read_revision,
            measure=self._observe_sizes,
            failed=self._on_failed,
            now=self._loop.time(),
        )
        self._observe_sizes()

    # -- api.KV

    def local_revision(self) -> int | None:
        """See ``api.KV``: known without I/O while this single voter leads and has applied an entry of its own term."""
        if self._running and self._machine.applied_term == self._headers.term and self._raft.node.leads_alone():
            return self._machine.store.store.current_revision
        return None

    async def read_revision(self) -> int:
        """See ``api.KV``. Raises UnavailableError."""
        return self._readable_revision()

    async def range(self, request: api.RangeRequest) -> api.RangeResponse:
        """See ``api.KV``."""
        txn.check(request)
        if request.serializable:
            self._check_running()
        else:
            self._readable_revision()
        return self._machine.applier.range(request)

    async def put(self, request: api.PutRequest) -> api.PutResponse:
        """See ``api.KV``."""
        txn.check(request)
        response = await self._write(request)
        assert isinstance(response, api.PutResponse)
        return response

    async def delete_range(self, request: api.DeleteRangeRequest) -> api.DeleteRangeResponse:
        """See ``api.KV``."""
        txn.check(request)
        response = await self._write(request)
        assert isinstance(response, api.DeleteRangeResponse)
        return response

    async def txn(self, request: api.TxnRequest) -> api.TxnResponse:
        """See ``api.KV``. One that can change nothing does not go through the log."""
        txn.check(request)
        if txn.is_read_only(request):
            self._readable_revision()
            return self._machine.applier.txn(request)
        response = await self._write(request)
        assert isinstance(response, api.TxnResponse)
        return response

    async def compact(self, revision: int, *, physical: bool = False) -> api.CompactionResponse:
        """See ``api.KV``. With ``physical`` it returns after the old versions are removed from the backend."""
        response = await self._write(log_request.CompactionRequest(revision=revision, physical=physical))
        assert isinstance(response, api.CompactionResponse)
        if physical:
            await self._machine.compaction_finished()
        return response

    async def lease_grant(self, ttl_seconds: int, *, lease_id: int = 0) -> api.LeaseGrantResponse:
        """See ``api.KV``. Id 0 lets the store choose one. Raises LeaseExistsError, LeaseTtlTooLargeError, InvalidRequestError."""
        if not -(1 << 63) <= lease_id < 1 << 63:
            raise errors.InvalidRequestError("etcdserver: lease id is not an int64")
        self._check_running()
        chosen = not lease_id
        while not lease_id or (chosen and self._machine.lessor.lookup(lease_id) is not None):
            lease_id = self._rng.getrandbits(63)
        response = await self._write(log_request.LeaseGrantRequest(id=lease_id, ttl_seconds=ttl_seconds))
        assert isinstance(response, api.LeaseGrantResponse)
        return response

    async def lease_revoke(self, lease_id: int) -> api.ResponseHeader:
        """See ``api.KV``. Raises LeaseNotFoundError."""
        response = await self._write(log_request.LeaseRevokeRequest(id=lease_id))
        assert isinstance(response, api.ResponseHeader)
        return response

    async def lease_keep_alive(self, lease_id: int) -> int:
        """See ``api.KV``."""
        self._readable_revision()
        return await self._housekeeping.renew_lease(lease_id, self._loop.time)

    async def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> api.LeaseTimeToLiveResponse:
        """See ``api.KV``."""
        self._readable_revision()
        return self._machine.applier.lease_time_to_live(lease_id, keys=keys)

    async def leases(self) -> tuple[int, ...]:
        self._readable_revision()
        return self._machine.lessor.ids()

    def watch(self, request: api.WatchRequest) -> api.Watcher:
        """See ``api.KV``."""
        self._check_running()
        return self._machine.store.watch(request)

    async def status(self) -> api.StoreStatus:
        """See ``api.KV``."""
        self._check_running()
        node = self._raft.node.status()
        return api.StoreStatus(
            header=self._headers.make(self._machine.store.current_revision),
            version=VERSION,
            db_size=self._machine.backend.size(),
            db_size_in_use=self._machine.backend.size_in_use(),
            leader_id=node.leader_id,
            raft_index=node.last_index,
            raft_applied_index=node.applied,
            is_learner=False,
            alarms=tuple(dict.fromkeys(alarm.type.name for alarm in self._machine.alarms.get())),
        )

    # -- maintenance.Maintenance

    async def alarms(self) -> maintenance.AlarmsResponse:
        """See ``maintenance.Maintenance``."""
        await self.read_revision()
        header = self._headers.make(self._machine.store.current_revision)
        return maintenance.AlarmsResponse(header=header, alarms=self._machine.alarms.get())

    async def alarm_activate(self, member_id: int, alarm: maintenance.AlarmType) -> maintenance.AlarmsResponse:
        """See ``maintenance.Maintenance``."""
        return await self._housekeeping.activate(member_id, alarm)

    async def alarm_deactivate(self, member_id: int, alarm: maintenance.AlarmType) -> maintenance.AlarmsResponse:
        """See ``maintenance.Maintenance``."""
        return await self._housekeeping.deactivate(member_id, alarm)

    async def defragment(self) -> api.ResponseHeader:
        """See ``maintenance.Maintenance``. Raises OSError when there is no space for a copy."""
        self._check_running()
        await self._upkeep.defragment()
        self._observe_sizes()
        return self._headers.make(self._machine.store.current_revision)

    async def hash(self) -> maintenance.HashResponse:
        """See ``maintenance.Maintenance``."""
        self._check_running()
        header = self._headers.make(self._machine.store.current_revision)
        return maintenance.HashResponse(header=header, hash=await self._upkeep.hash())

    async def hash_kv(self, revision: int = 0) -> maintenance.HashKVResponse:
        """See ``maintenance.Maintenance``."""
        self._check_running()
        header = self._headers.make(self._machine.store.current_revision)
        found = await self._upkeep.hash_kv(revision)
        return maintenance.HashKVResponse(
            header=header, hash=found.hash, compact_revision=found.compact_revision, hash_revision=found.revision
        )

    async def snapshot(self) -> maintenance.SnapshotStream:
        """See ``maintenance.Maintenance``."""
        self._check_running()
        size, chunks = await self._upkeep.snapshot()
        return maintenance.SnapshotStream(size=size, version=VERSION, chunks=chunks)

    # -- metrics

    def collect_metrics(self) -> MemberMetrics:
        """``metrics`` with the values that are read rather than counted brought up to date."""
        metrics = self.metrics
        if self._running:
            status = self._raft.node.status()
            metrics.proposals_committed = status.committed
            metrics.proposals_applied = status.applied
            metrics.current_revision = self._machine.store.current_revision
            metrics.compact_revision = max(self._machine.store.compact_revision, 0)
            metrics.watcher_count = self._machine.store.watcher_count()
            metrics.lagging_watcher_count = self._machine.store.lagging_count()
            metrics.lease_count = len(self._machine.lessor.ids())
            self._observe_sizes()
        metrics.proposals_pending = len(self._proposals) if self._running else 0
        return metrics

    def collect_peer_metrics(self) -> PeerMetrics | None:
        """Of the traffic with the peers, where there is a transport that counts."""
        collect = getattr(self._environment.transport, "collect_metrics", None)
        return None if collect is None else collect()

    # -- writing

    async def _write(self, request: log_request.InternalRequest) -> object:
        """See ``Proposals.write``."""
        if not self._running or self.failure is not None:
            self._check_running()
        try:
            return await self._proposals.write(request)
        except errors.NoSpaceError:
            await self._housekeeping.out_of_space()
            raise

    def _propose(self, data: bytes) -> None:
        self._raft.propose(data)

    def _propose_revoke(self, lease_id: int) -> None:
        """Revoke a lease that ran out; nobody waits for it. If it gets lost, the lessor names the lease again."""
        request = log_request.LeaseRevokeRequest(id=lease_id)
        self._propose_as_leader(request)

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
        raise errors.UnavailableError("this member takes no snapshots")

    def snapshot_sent(self, member_id: int, *, ok: bool) -> None:
        """See ``PeerHandler``."""
        assert not ok, member_id

    async def answer_call(self, sender_id: int, method: str, body: bytes) -> bytes:
        """See ``PeerHandler``. Raises InvalidRequestError for a method that there is not."""
        if method == HASH_KV:
            return json.dumps(await self._housekeeping.answer_hash_kv(json.loads(body))).encode()
        raise errors.InvalidRequestError(f"etcdserver: members have no method {method!r}")

    def _send(self, messages: list[Message]) -> None:
        transport = self._environment.transport
        assert transport is not None, messages
        transport.send(messages)

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
        self._proposals.expire(now - REQUEST_TIMEOUT_SECONDS - 2 * self.config.election_timeout_ms / 1000)
        for lease_id in machine.lessor.expired(now):
            self.metrics.leases_expired_total += 1
            self._propose_revoke(lease_id)
        self._housekeeping.tick(now, is_ready=self._ready.done())
        node = self._raft.node
        if self._snapshotter.maybe_mark(machine.applied_index, node.conf_state(), segment_count=self._log.segment_count):
            self.metrics.snapshot_markers_total += 1
        self._snapshotter.maybe_compact_memory(machine.applied_index)
        self._observe_sizes()

    def _observe_sizes(self) -> None:
        backend = self._machine.backend
        self.metrics.db_total_size_bytes = backend.size()
        self.metrics.db_in_use_bytes = in_use = backend.size_in_use()
        self._quota.observe(in_use)

    def _on_soft_state(self, state: SoftState, term: int) -> None:
        leads = state.role is Role.LEADER
        self._headers.term = term
        self.metrics.has_leader = bool(state.leader_id)
        if state.leader_id and state.leader_id != self._last_leader_id:
            self._last_leader_id = state.leader_id
            self.metrics.leader_changes_seen += 1
        if leads is not self.metrics.is_leader:
            self.metrics.is_leader = leads
            lessor = self._machine.lessor
            if leads:
                # With peers, another may have led a moment ago and answered renewals that nobody else knows of.
                extend_seconds = self.config.election_timeout_ms / 1000 if self._peers else 0.0
                lessor.promote(self._loop.time(), extend_seconds)
            else:
                lessor.demote()
        self._maybe_become_ready()

    def _on_dropped(self, proposals: list[bytes]) -> None:
        """Nothing of them was proposed: too much waits for the disk, or nobody leads."""
        leads = self._raft.node.status().role is Role.LEADER
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
            self._ready.set_exception(error if isinstance(error, errors.StoreError) else _unavailable(error))
        self._fail_waiters(_unavailable(error))
        self._machine.close()

    def _fail_waiters(self, error: errors.UnavailableError) -> None:
        self._proposals.fail_all(error)
        self._machine.fail_waiters(error)

    # -- checks

    def _check_running(self) -> None:
        if self.failure is not None:
            raise _unavailable(self.failure)
        if not self._running:
            raise errors.StoppedError()

    def _readable_revision(self) -> int:
        """The revision that covers every acknowledged write (all that are acknowledged here are applied here)."""
        revision = self.local_revision() if self.failure is None else None
        if revision is None:
            self._check_running()
            raise errors.UnavailableError()
        return revision


def _unavailable(error: BaseException) -> errors.UnavailableError:
    return errors.UnavailableError(f"etcdserver: stopped after a failure: {type(error).__name__}: {error}")
