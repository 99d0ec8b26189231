"""The state machine: backend, leases, versions and watches, driven by the committed entries of the log.

The same entries lead to the same state on every member; who waits for an entry's answer is the only thing that differs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage import api, errors, failpoints, maintenance
from storage.backend import schema
from storage.backend.backend import Backend, Bucket
from storage.lease.lessor import Lessor
from storage.maintenance import ClusterMember
from storage.member import request as log_request
from storage.member.alarms import Alarms
from storage.member.applier import Applier
from storage.member.membership import Membership, conf_change_of
from storage.member.metrics import MemberMetrics
from storage.member.proposals import Waiter
from storage.raft import codec
from storage.raft.confchange import ConfChangeError
from storage.raft.messages import NO_MEMBER, ConfChange, ConfChangeType, ConfChangeV2, ConfState, Entry, EntryType
from storage.watch.watchable_store import WatchableStore

logger = logging.getLogger(__name__)

COMPACTION_PAUSE_SECONDS: Final = 0.01
"""Between two slices of a compaction, so that it never starves reads and writes (etcd's)."""

SLOW_APPLY_SECONDS: Final = 0.1
"""Nothing else runs on the loop while entries are applied; longer is worth a warning (etcd's)."""

TakeWaiter = Callable[[bytes], Waiter | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfChangeResult:
    """``member``: the one that was changed; ``members``: all, after it."""

    header: api.ResponseHeader
    member: ClusterMember
    members: tuple[ClusterMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfChangeHooks:
    """``apply`` makes a change to Raft's configuration and answers what is in force then; it raises ConfChangeError. ``changed`` is
    told of each change of the list."""

    apply: Callable[[ConfChange | ConfChangeV2], ConfState]
    changed: Callable[[ConfChangeType, ClusterMember], None]
    take_waiter: Callable[[ConfChange], Waiter | None]


class Headers:
    """Response headers. One write's answers and the reads after it share theirs."""

    __slots__ = ("_last", "cluster_id", "member_id", "term")

    def __init__(self, *, member_id: int, cluster_id: int, term: int) -> None:
        self.member_id = member_id
        self.cluster_id = cluster_id
        self.term = term
        self._last: api.ResponseHeader | None = None

    def make(self, revision: int) -> api.ResponseHeader:
        header = self._last
        if header is None or header.revision != revision or header.raft_term != self.term:
            header = api.ResponseHeader(cluster_id=self.cluster_id, member_id=self.member_id, revision=revision, raft_term=self.term)
            self._last = header
        return header


class StateMachine:
    """``applied_index`` and ``applied_term`` are of the last entry that was carried out."""

    def __init__(
        self,
        backend: Backend,
        *,
        headers: Headers,
        lease_ttl_seconds_min: int,
        lease_checkpoint_interval_seconds: float,
        take_waiter: TakeWaiter,
        conf_changes: ConfChangeHooks,
        metrics: MemberMetrics,
        stopwatch: Callable[[], float],
    ) -> None:
        """Load what ``backend`` holds. Raises CorruptError."""
        self._loop = asyncio.get_running_loop()
        self._headers = headers
        self._take_waiter = take_waiter
        self._conf_changes = conf_changes
        self._metrics = metrics
        self._stopwatch = stopwatch
        self.backend = backend
        self.lessor = Lessor(backend, ttl_seconds_min=lease_ttl_seconds_min, checkpoint_interval_seconds=lease_checkpoint_interval_seconds)
        self.membership = Membership(backend)
        self.store = WatchableStore(backend, self.lessor)
        self.alarms = Alarms(backend)
        self.applier = Applier(self.store, self.lessor, make_header=headers.make, monotonic=self._loop.time)
        self.applied_index = self.store.store.consistent_index
        self.applied_term = schema.read_uint64(backend, Bucket.META, schema.TERM)
        self._compaction_handle: asyncio.TimerHandle | None = None
        self._compaction_waiters: list[asyncio.Future[None]] = []
        self._is_closed = False
        self._handlers = {
            api.PutRequest: self.applier.put,
            api.DeleteRangeRequest: self.applier.delete_range,
            api.TxnRequest: self.applier.txn,
            log_request.CompactionRequest: self._apply_compaction,
            log_request.LeaseGrantRequest: self._apply_lease_grant,
            log_request.LeaseRevokeRequest: self._apply_lease_revoke,
            log_request.AlarmRequest: self._apply_alarm,
            log_request.LeaseCheckpointRequest: self._apply_lease_checkpoint,
            log_request.MemberAttributesRequest: self._apply_member_attributes,
        }

    def close(self) -> None:
        """End the watches and compactions. The backend is its opener's to close. Idempotent."""
        self._is_closed = True
        if self._compaction_handle is not None:
            self._compaction_handle.cancel()
            self._compaction_handle = None
        self.store.close()

    def restore(self, backend: Backend) -> None:
        """Go on from the database of a snapshot. Watches catch up from its history, or are told that it begins after them. Raises
        CorruptError."""
        self.backend = backend
        self.lessor.restore(backend)  # before the store, which attaches keys to leases
        self.store.restore(backend)
        self.membership.restore(backend)
        self.alarms.restore(backend)
        self.applied_index = self.store.store.consistent_index
        self.applied_term = schema.read_uint64(backend, Bucket.META, schema.TERM)
        self._settle_compaction_waiters()
        self.maybe_go_on_compacting()

    # -- applying

    def apply(self, entries: list[Entry]) -> None:
        """Carry out committed entries, then move the consistent index in the same batch of the backend."""
        failpoints.hit("member.before_apply")
        stopwatch = self._stopwatch
        started = stopwatch()  # the loop's clock may stand still within a pass
        for entry in entries:
            if entry.type is not EntryType.NORMAL:
                self._apply_conf_change(entry)
            elif entry.data:
                self._apply_request(entry)
        last = entries[-1]
        self.applied_index = last.index
        self.applied_term = last.term
        self.store.set_consistent_index(last.index, last.term)
        failpoints.hit("member.after_apply")
        seconds = stopwatch() - started
        self._metrics.apply_seconds.observe(seconds)
        if seconds > SLOW_APPLY_SECONDS:
            self._metrics.apply_slow_total += 1
            logger.warning("applying %d entries took %.0f ms", len(entries), seconds * 1000)
        self.backend.maybe_commit(self._loop.time())

    def _apply_request(self, entry: Entry) -> None:
        data = entry.data
        waiter = self._take_waiter(data)
        if waiter is None:
            try:
                _, request = log_request.decode(data)
            except codec.CodecError as error:
                raise errors.CorruptError(f"entry {entry.index} of the log cannot be applied: {error}") from error
        else:
            request = waiter.request  # type: ignore[assignment]  # a change of the membership is no NORMAL entry
        try:
            if not self.alarms.is_quiet:
                self.alarms.check(request)
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
        response = self.applier.compact(request.revision)
        self.maybe_go_on_compacting()
        return response

    def _apply_lease_grant(self, request: log_request.LeaseGrantRequest) -> api.LeaseGrantResponse:
        return self.applier.lease_grant(request.id, request.ttl_seconds)

    def _apply_lease_revoke(self, request: log_request.LeaseRevokeRequest) -> api.ResponseHeader:
        return self.applier.lease_revoke(request.id)

    def _apply_lease_checkpoint(self, request: log_request.LeaseCheckpointRequest) -> api.ResponseHeader:
        now = self._loop.time()
        for lease_id, remaining in request.remaining_ttl_seconds:
            self.lessor.checkpoint(lease_id, remaining, now)
        return self._headers.make(self.store.current_revision)

    def _apply_alarm(self, request: log_request.AlarmRequest) -> maintenance.AlarmsResponse:
        """Answers the alarms that were raised or taken off."""
        if request.action is log_request.AlarmAction.ACTIVATE:
            raised = self.alarms.activate(request.member_id, request.alarm)
            changed: tuple[maintenance.Alarm, ...] = () if raised is None else (raised,)
            logger.warning("alarm %s raised for member %016x", request.alarm.name, request.member_id)
        else:
            changed = self.alarms.deactivate(request.member_id, request.alarm)
        return maintenance.AlarmsResponse(header=self._headers.make(self.store.current_revision), alarms=changed)

    def _apply_member_attributes(self, request: log_request.MemberAttributesRequest) -> api.ResponseHeader:
        self.membership.set_attributes(request.member_id, request.name, request.client_urls)
        return self.header()

    def _apply_conf_change(self, entry: Entry) -> None:
        """Change list and configuration alike. A change that cannot be made changes neither, on any member."""
        change = conf_change_of(entry)
        hooks = self._conf_changes
        if isinstance(change, ConfChangeV2):
            if change.changes:
                raise errors.CorruptError(f"entry {entry.index} changes several members at once, which this version cannot apply")
            self.membership.set_conf_state(hooks.apply(change))  # the end of a joint configuration
            return
        waiter = hooks.take_waiter(change)
        try:
            self.membership.check(change)
            state = hooks.apply(change)
        except (errors.MembershipError, ConfChangeError) as error:
            logger.info("entry %d changes nothing: %s", entry.index, error)
            hooks.apply(ConfChange(change.type, NO_MEMBER))
            if waiter is not None and not waiter.future.done():
                refused = error if isinstance(error, errors.MembershipError) else errors.MembershipError(f"etcdserver: {error}")
                waiter.future.set_exception(refused)
            return
        member = self.membership.apply(change)
        self.membership.set_conf_state(state)
        hooks.changed(change.type, member)
        if waiter is not None and not waiter.future.done():
            waiter.future.set_result(ConfChangeResult(header=self.header(), member=member, members=self.membership.list()))

    def header(self) -> api.ResponseHeader:
        """Of the store as it is now."""
        return self._headers.make(self.store.current_revision)

    # -- physical compaction

    def maybe_go_on_compacting(self) -> bool:
        """Begin, or resume after a restart, with what is to be removed, slice by slice."""
        if self._is_closed or self._compaction_handle is not None or not self.store.store.is_compacting:
            return False
        self._compaction_handle = self._loop.call_later(COMPACTION_PAUSE_SECONDS, self._compact_slice)
        return True

    async def compaction_finished(self) -> None:
        """Return when nothing is left to remove. Raises UnavailableError when the member stops before."""
        if self.store.store.is_compacting:
            done: asyncio.Future[None] = self._loop.create_future()
            self._compaction_waiters.append(done)
            await done

    def fail_waiters(self, error: errors.StoreError) -> None:
        waiters, self._compaction_waiters = self._compaction_waiters, []
        for done in waiters:
            if not done.done():
                done.set_exception(error)

    def _compact_slice(self) -> None:
        self._compaction_handle = None
        if self.store.compaction_step():
            self.maybe_go_on_compacting()
        else:
            self._settle_compaction_waiters()

    def _settle_compaction_waiters(self) -> None:
        waiters, self._compaction_waiters = self._compaction_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
