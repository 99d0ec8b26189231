"""``Member``: the store in this process, one member of a cluster of one. Implements ``storage.api.KV``."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import sys
import time
from dataclasses import dataclass
from typing import Final

from storage import api, errors, failpoints
from storage.backend.backend import Backend
from storage.backend.lmdb_backend import LmdbBackend
from storage.config import MemberConfig
from storage.lease.lessor import Lessor
from storage.member import consistent_index, txn
from storage.member import request as log_request
from storage.member.applier import Applier
from storage.member.data_dir import DirectoryLock, data_dir_error
from storage.member.metrics import MemberMetrics
from storage.member.quota import Quota
from storage.member.raft_loop import Callbacks, RaftLoop
from storage.member.snapshotter import Snapshotter
from storage.member.wait import RequestIds, Wait
from storage.raft import codec
from storage.raft.log_storage import MemoryLogStorage
from storage.raft.messages import ConfState, Entry, EntryType, HardState, SnapshotMetadata
from storage.raft.rawnode import Config, RawNode, Role, SoftState
from storage.wal.wal import Replay, Wal
from storage.watch.watchable_store import WatchableStore

logger = logging.getLogger(__name__)

VERSION: Final = "3.6.0"
"""The etcd version whose behaviour and layout the store has."""

PENDING_WRITES_MAX: Final = 5000
"""Writes that wait for their answer (etcd's gap between committed and applied). Beyond it new ones are refused at once, so that an
overload shows at the caller instead of growing a queue."""

MAP_BYTES_WITHOUT_QUOTA: Final = 8 * 1024**3
"""The quota that the backend reckons with where none is set: etcd's advised maximum. It grows beyond if it must."""

PENDING_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of writes that are not durable yet: what a stalled disk may hold in memory. Beyond it the writes of a pass are refused."""

REQUEST_TIMEOUT_SECONDS: Final = 5.0
"""After it a write's outcome is reported as unknown (etcd's, to which it adds twice the election timeout)."""

MAINTENANCE_SECONDS: Final = 0.1
"""How often leases, the backend's batch, timeouts and snapshot markers are looked at."""

COMPACTION_PAUSE_SECONDS: Final = 0.01
"""Between two slices of a compaction, so that it never starves reads and writes (etcd's)."""

SLOW_APPLY_SECONDS: Final = 0.1
"""Nothing else runs on the loop while entries are applied; longer is worth a warning (etcd's)."""

SWITCH_INTERVAL_SECONDS: Final = 0.0002
"""Python lets a thread that came back from the disk wait for the interpreter for a switch interval while the event loop computes. At
the default of 5 ms a busy server's writes take ten times as long as the disk; at this one reads lose nothing that can be measured."""

CATCH_UP_ENTRIES: Final = 0
"""Applied entries kept in memory: a single voter has no follower that could ask for them."""


@dataclass(slots=True)
class _Waiter:
    """Who waits for a request; the request is kept so that applying it need not decode it."""

    request: log_request.InternalRequest
    future: asyncio.Future[object]


class Member:
    """Life: construct, ``start``, use, ``stop``. All calls are for the event loop that ran ``start``.

    An acknowledged write is on disk (unless ``unsafe_no_fsync``) and applied, and its events are posted to the watchers. When the disk
    or the state machine fails, the member stops for good: every call raises ``UnavailableError``, ``failure`` says why.
    """

    events_are_immediate = True

    def __init__(self, config: MemberConfig, *, rng: random.Random | None = None) -> None:
        """``rng`` draws ids and election timeouts. Raises ValueError for a bad configuration."""
        config.validate()
        self.config = config
        self.metrics = MemberMetrics(quota_backend_bytes=config.quota_backend_bytes)
        self.failure: BaseException | None = None
        self.member_id = 0
        self.cluster_id = 0
        self._rng = rng or random.SystemRandom()
        self._wait: Wait[_Waiter] = Wait()
        self._quota = Quota(config.quota_backend_bytes)
        self._running = False
        self._applied_index = 0
        self._applied_term = 0
        self._term = 0
        self._lock: DirectoryLock | None = None
        self._maintenance_handle: asyncio.TimerHandle | None = None
        self._compaction_handle: asyncio.TimerHandle | None = None
        self._compaction_waiters: list[asyncio.Future[None]] = []
        self._last_leader_id = 0
        self._last_header: api.ResponseHeader | None = None

    # -- life

    async def start(self) -> None:
        """Open the data directory, replay the log, lead. Raises DataDirError, DataDirLockedError, CorruptError."""
        assert not self._running, "already started"
        self._loop = asyncio.get_running_loop()
        wal: Wal | None = None
        backend: Backend | None = None
        self._lock = DirectoryLock(self.config.member_dir())
        try:
            wal, replay = self._open_log()
            backend = self._open_backend()
            self._assemble(wal, replay, backend)
        except BaseException:
            if backend is not None:
                backend.close()
            if wal is not None:
                wal.close()
            self._lock.release()
            raise
        self._running = True
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._switch_interval, SWITCH_INTERVAL_SECONDS))
        self._raft.start()
        self._raft.campaign()
        self._maintenance_handle = self._loop.call_later(MAINTENANCE_SECONDS, self._maintain)
        try:
            await self._leading
        except BaseException:
            await self.stop()
            raise
        if self._store.store.is_compacting:
            self._compaction_handle = self._loop.call_later(COMPACTION_PAUSE_SECONDS, self._compact_slice)

    async def stop(self) -> None:
        """Finish the writes that were accepted, end the watches, close all. Idempotent."""
        if not self._running:
            return
        self._running = False
        for handle in (self._maintenance_handle, self._compaction_handle):
            if handle is not None:
                handle.cancel()
        await self._raft.stop()
        sys.setswitchinterval(self._switch_interval)
        self._fail_waiters(errors.StoppedError())
        self._store.close()
        assert self._lock is not None
        try:
            self._backend.close()
        except (OSError, errors.StoreError) as error:
            if self.failure is None:
                raise
            logger.error("closing the backend after a failure: %s", error)
        finally:
            self._lock.release()

    def _open_log(self) -> tuple[Wal, Replay]:
        directory = self.config.log_dir()
        sync, segment_bytes = not self.config.unsafe_no_fsync, self.config.wal_segment_bytes
        if not sync:
            logger.info("fsync is off: what is acknowledged is lost if the machine stops")
        if Wal.exists(directory):
            wal, replay = Wal.open(directory, segment_bytes=segment_bytes, sync=sync)
            if replay.repair is not None:
                logger.log(logging.WARNING if replay.repair.torn else logging.INFO, "log repaired: %s", replay.repair)
            try:
                self.member_id, self.cluster_id = _decode_metadata(replay.metadata)
            except errors.CorruptError:
                wal.close()
                raise
            return wal, replay
        self.member_id = self._rng.getrandbits(63) | 1
        self.cluster_id = self._rng.getrandbits(63) | 1
        metadata = _encode_metadata(self.member_id, self.cluster_id)
        snapshot = SnapshotMetadata(ConfState((self.member_id,)))
        wal = Wal.create(directory, metadata=metadata, snapshot=snapshot, segment_bytes=segment_bytes, sync=sync)
        logger.info("new member %016x in %s", self.member_id, self.config.data_dir)
        return wal, Replay(metadata=metadata, hard_state=HardState(), snapshot=snapshot, entries=[], repair=None)

    def _open_backend(self) -> Backend:
        path = self.config.backend_file()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return LmdbBackend(
                path,
                quota_bytes=self.config.quota_backend_bytes or MAP_BYTES_WITHOUT_QUOTA,
                sync=not self.config.unsafe_no_fsync,
                on_commit=self.metrics.backend_commit_seconds.observe,
            )
        except OSError as error:
            raise data_dir_error(path, error) from error

    def _assemble(self, wal: Wal, replay: Replay, backend: Backend) -> None:
        config = self.config
        election_seconds = config.election_timeout_ms / 1000
        self._wal = wal  # the disk's thread writes it; only its segment_count is read here
        self._backend = backend
        self._lessor = Lessor(backend, ttl_seconds_min=math.ceil(1.5 * election_seconds))
        self._store = WatchableStore(backend, self._lessor)
        index = self._store.store.consistent_index
        consistent_index.check(index, replay, backend_file=str(config.backend_file()), log_dir=str(config.log_dir()))
        self._applier = Applier(self._store, self._lessor, make_header=self._header, monotonic=self._loop.time)
        log_storage = MemoryLogStorage(replay.snapshot, replay.hard_state)
        log_storage.append(replay.entries)
        node = RawNode(
            Config(
                id=self.member_id,
                election_ticks=config.election_timeout_ms // config.heartbeat_interval_ms,
                heartbeat_ticks=1,
                uncommitted_bytes_max=PENDING_BYTES_MAX,
                applied=index,
            ),
            log_storage,
            random.Random(self._rng.getrandbits(64)),
        )
        self._applied_index = index
        self._term = replay.hard_state.term
        self._leading: asyncio.Future[None] = self._loop.create_future()
        self._raft = RaftLoop(
            node,
            log_storage,
            wal,
            callbacks=Callbacks(
                apply=self._apply,
                dropped=self._on_dropped,
                soft_state=self._on_soft_state,
                saved=self.metrics.wal_fsync_seconds.observe,
                failed=self._on_failed,
            ),
            tick_seconds=config.heartbeat_interval_ms / 1000,
            name=config.name,
        )
        self._snapshotter = Snapshotter(
            backend,
            log_storage,
            snapshot_count=config.snapshot_count,
            catch_up_entries=CATCH_UP_ENTRIES,
            marked_index=replay.snapshot.index,
            mark=self._raft.mark_snapshot,
        )
        # Wall time is used only here: ids of an earlier run must not come again.
        self._request_ids = RequestIds(self.member_id, int(time.time() * 1000))
        self._handlers = {
            api.PutRequest: self._applier.put,
            api.DeleteRangeRequest: self._applier.delete_range,
            api.TxnRequest: self._applier.txn,
            log_request.CompactionRequest: self._apply_compaction,
            log_request.LeaseGrantRequest: self._apply_lease_grant,
            log_request.LeaseRevokeRequest: self._apply_lease_revoke,
        }
        self._observe_sizes()

    # -- api.KV

    def local_revision(self) -> int | None:
        """See ``api.KV``: known without I/O while this single voter leads and has applied an entry of its own term."""
        if self._running and self._applied_term == self._term and self._raft.node.leads_alone():
            return self._store.store.current_revision
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
        return self._applier.range(request)

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
            return self._applier.txn(request)
        response = await self._write(request)
        assert isinstance(response, api.TxnResponse)
        return response

    async def compact(self, revision: int, *, physical: bool = False) -> api.CompactionResponse:
        """See ``api.KV``. With ``physical`` it returns after the old versions are removed from the backend."""
        response = await self._write(log_request.CompactionRequest(revision=revision, physical=physical))
        assert isinstance(response, api.CompactionResponse)
        if physical and self._store.store.is_compacting:
            done: asyncio.Future[None] = self._loop.create_future()
            self._compaction_waiters.append(done)
            await done
        return response

    async def lease_grant(self, ttl_seconds: int, *, lease_id: int = 0) -> api.LeaseGrantResponse:
        """See ``api.KV``. Id 0 lets the store choose one. Raises LeaseExistsError, LeaseTtlTooLargeError, InvalidRequestError."""
        if not -(1 << 63) <= lease_id < 1 << 63:
            raise errors.InvalidRequestError("etcdserver: lease id is not an int64")
        self._check_running()
        chosen = not lease_id
        while not lease_id or (chosen and self._lessor.lookup(lease_id) is not None):
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
        return self._lessor.renew(lease_id, self._loop.time())

    async def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> api.LeaseTimeToLiveResponse:
        """See ``api.KV``."""
        self._readable_revision()
        return self._applier.lease_time_to_live(lease_id, keys=keys)

    async def leases(self) -> tuple[int, ...]:
        self._readable_revision()
        return self._lessor.ids()

    def watch(self, request: api.WatchRequest) -> api.Watcher:
        """See ``api.KV``."""
        self._check_running()
        return self._store.watch(request)

    async def status(self) -> api.StoreStatus:
        """See ``api.KV``."""
        self._check_running()
        node = self._raft.node.status()
        return api.StoreStatus(
            header=self._header(self._store.current_revision),
            version=VERSION,
            db_size=self._backend.size(),
            db_size_in_use=self._backend.size_in_use(),
            leader_id=node.leader_id,
            raft_index=node.last_index,
            raft_applied_index=node.applied,
            is_learner=False,
            alarms=("NOSPACE",) if self._quota.is_exceeded() else (),
        )

    def collect_metrics(self) -> MemberMetrics:
        """``metrics`` with the values that are read rather than counted brought up to date."""
        metrics = self.metrics
        if self._running:
            status = self._raft.node.status()
            metrics.proposals_committed = status.committed
            metrics.proposals_applied = status.applied
            metrics.current_revision = self._store.current_revision
            metrics.compact_revision = max(self._store.compact_revision, 0)
            metrics.watcher_count = self._store.watcher_count()
            metrics.lagging_watcher_count = self._store.lagging_count()
            metrics.lease_count = len(self._lessor.ids())
            self._observe_sizes()
        metrics.proposals_pending = len(self._wait)
        return metrics

    # -- writing

    async def _write(self, request: log_request.InternalRequest) -> object:
        """Put a request through the log; its answer when it is applied. Raises what applying it raises, and RequestTooLargeError,
        NoSpaceError, TooManyRequestsError (nothing was proposed), UnavailableError, RequestTimeoutError (outcome unknown)."""
        if not self._running or self.failure is not None:
            self._check_running()
        if len(self._wait) >= PENDING_WRITES_MAX:
            self.metrics.proposals_failed += 1
            raise errors.TooManyRequestsError()
        request_id = self._request_ids.next()
        data = log_request.encode(request_id, request)
        if len(data) > self.config.max_request_bytes:
            raise errors.RequestTooLargeError()
        if not self._quota.maybe_charge(request, len(data)):
            raise errors.NoSpaceError()
        self._raft.propose(data)
        loop = self._loop
        future: asyncio.Future[object] = loop.create_future()
        self._wait.register(request_id, _Waiter(request, future), loop.time())
        return await future

    def _propose_revoke(self, lease_id: int) -> None:
        """Revoke a lease that ran out; nobody waits for it. If it gets lost, the lessor names the lease again."""
        self._raft.propose(log_request.encode(self._request_ids.next(), log_request.LeaseRevokeRequest(id=lease_id)))

    # -- applying

    def _apply(self, entries: list[Entry]) -> None:
        """Carry out committed entries, then move the consistent index in the same batch of the backend."""
        failpoints.hit("member.before_apply")
        started = time.perf_counter()  # the loop's clock may stand still within a pass
        for entry in entries:
            if entry.type is not EntryType.NORMAL:
                raise errors.CorruptError(f"entry {entry.index} changes the membership, which this version cannot apply")
            if entry.data:
                self._apply_request(entry)
        last = entries[-1]
        self._applied_index = last.index
        self._store.set_consistent_index(last.index, last.term)
        failpoints.hit("member.after_apply")
        seconds = time.perf_counter() - started
        if seconds > SLOW_APPLY_SECONDS:
            self.metrics.apply_slow_total += 1
            logger.warning("applying %d entries took %.0f ms", len(entries), seconds * 1000)
        self._backend.maybe_commit(self._loop.time())
        if last.term != self._applied_term:
            self._applied_term = last.term
            if not self._leading.done() and last.term == self._term and self._raft.node.leads_alone():
                self._leading.set_result(None)

    def _apply_request(self, entry: Entry) -> None:
        data = entry.data
        waiter = self._wait.take(log_request.request_id_of(data))
        if waiter is None:
            try:
                _, request = log_request.decode(data)
            except codec.CodecError as error:
                raise errors.CorruptError(f"entry {entry.index} of the log cannot be applied: {error}") from error
        else:
            request = waiter.request
        try:
            response = self._handlers[type(request)](request)  # type: ignore[operator]
        except errors.CorruptError:
            raise
        except errors.StoreError as error:
            # The entry changed nothing, on any member; only who asked is told.
            if waiter is not None and not waiter.future.done():
                waiter.future.set_exception(error)
            return
        if waiter is not None and not waiter.future.done():
            waiter.future.set_result(response)

    def _apply_compaction(self, request: log_request.CompactionRequest) -> api.CompactionResponse:
        response = self._applier.compact(request.revision)
        if self._compaction_handle is None and self._running:
            self._compaction_handle = self._loop.call_later(COMPACTION_PAUSE_SECONDS, self._compact_slice)
        return response

    def _apply_lease_grant(self, request: log_request.LeaseGrantRequest) -> api.LeaseGrantResponse:
        return self._applier.lease_grant(request.id, request.ttl_seconds)

    def _apply_lease_revoke(self, request: log_request.LeaseRevokeRequest) -> api.ResponseHeader:
        return self._applier.lease_revoke(request.id)

    def _header(self, revision: int) -> api.ResponseHeader:
        """One write's answers and the reads after it share theirs."""
        header = self._last_header
        if header is None or header.revision != revision or header.raft_term != self._term:
            header = api.ResponseHeader(cluster_id=self.cluster_id, member_id=self.member_id, revision=revision, raft_term=self._term)
            self._last_header = header
        return header

    # -- what happens by itself

    def _maintain(self) -> None:
        """Every ``MAINTENANCE_SECONDS``."""
        now = self._loop.time()
        self._maintenance_handle = self._loop.call_later(MAINTENANCE_SECONDS, self._maintain)
        try:
            self._backend.maybe_commit(now)
        except (OSError, errors.StoreError) as error:
            self._on_failed(error)
            return
        for waiter in self._wait.overdue(now - REQUEST_TIMEOUT_SECONDS - 2 * self.config.election_timeout_ms / 1000):
            self.metrics.proposals_failed += 1
            if not waiter.future.done():
                waiter.future.set_exception(errors.RequestTimeoutError())
        for lease_id in self._lessor.expired(now):
            self.metrics.leases_expired_total += 1
            self._propose_revoke(lease_id)
        node = self._raft.node
        if self._snapshotter.maybe_mark(self._applied_index, node.conf_state(), segment_count=self._wal.segment_count):
            self.metrics.snapshot_markers_total += 1
        self._snapshotter.maybe_compact_memory(self._applied_index)
        self._observe_sizes()

    def _observe_sizes(self) -> None:
        self.metrics.db_total_size_bytes = self._backend.size()
        self.metrics.db_in_use_bytes = in_use = self._backend.size_in_use()
        self._quota.observe(in_use)

    def _compact_slice(self) -> None:
        self._compaction_handle = None
        if self._store.compaction_step():
            self._compaction_handle = self._loop.call_later(COMPACTION_PAUSE_SECONDS, self._compact_slice)
            return
        waiters, self._compaction_waiters = self._compaction_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _on_soft_state(self, state: SoftState) -> None:
        leads = state.role is Role.LEADER
        self._term = self._raft.node.raft.term
        self.metrics.has_leader = bool(state.leader_id)
        if state.leader_id and state.leader_id != self._last_leader_id:
            self._last_leader_id = state.leader_id
            self.metrics.leader_changes_seen += 1
        if leads is not self.metrics.is_leader:
            self.metrics.is_leader = leads
            if leads:
                self._lessor.promote(self._loop.time())
            else:
                self._lessor.demote()

    def _on_dropped(self, proposals: list[bytes]) -> None:
        """Nothing of them was proposed: too much waits for the disk, or nobody leads."""
        leads = self._raft.node.status().role is Role.LEADER
        for data in proposals:
            self.metrics.proposals_failed += 1
            waiter = self._wait.take(log_request.request_id_of(data))
            if waiter is not None and not waiter.future.done():
                waiter.future.set_exception(errors.TooManyRequestsError() if leads else errors.UnavailableError())

    def _on_failed(self, error: BaseException) -> None:
        """The disk or the state machine failed: nothing that is acknowledged from here on could be relied on."""
        if self.failure is not None:
            return
        self.failure = error
        logger.critical("the store stops: %s: %s", type(error).__name__, error)
        if self._maintenance_handle is not None:
            self._maintenance_handle.cancel()
        if not self._leading.done():
            self._leading.set_exception(error if isinstance(error, errors.StoreError) else _unavailable(error))
        self._fail_waiters(_unavailable(error))
        self._store.close()

    def _fail_waiters(self, error: errors.UnavailableError) -> None:
        for waiter in self._wait.take_all():
            if not waiter.future.done():
                waiter.future.set_exception(error)
        waiters, self._compaction_waiters = self._compaction_waiters, []
        for done in waiters:
            if not done.done():
                done.set_exception(error)

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


# The log's metadata, as etcd's ``Metadata``: NodeID 1, ClusterID 2


def _encode_metadata(member_id: int, cluster_id: int) -> bytes:
    return b"\x08" + codec.varint(member_id) + b"\x10" + codec.varint(cluster_id)


def _decode_metadata(data: bytes) -> tuple[int, int]:
    """Raises CorruptError."""
    try:
        numbers = {number: value for number, value in codec.fields(data) if isinstance(value, int)}
        return numbers[1], numbers[2]
    except (codec.CodecError, KeyError) as error:
        raise errors.CorruptError(f"the log's metadata cannot be read: {error}") from error
