"""``Member``: the store in this process, one member of a cluster. Implements ``api.KV``, ``maintenance.Cluster`` and ``Maintenance``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from storage import api, errors, maintenance
from storage.member import request as log_request
from storage.member import txn
from storage.member.metrics import MemberMetrics
from storage.member.peer_metrics import PeerMetrics
from storage.member.replica import Replica
from storage.metric_families import Family, Histogram

VERSION: Final = "3.6.0"
"""The etcd version whose behaviour and layout the store has."""


class Member(Replica):
    """Life: construct, ``start``, use, ``stop``. All calls are for the event loop that ran ``start``.

    An acknowledged write is on disk of a quorum (unless ``unsafe_no_fsync``) and applied here, and its events are posted to the watchers
    here. When the disk or the state machine fails, or the member is removed from its cluster, it stops for good: every call raises
    ``UnavailableError`` or ``MemberRemovedError``, ``failure`` says why, ``wait_failed`` returns.
    """

    events_are_immediate = True
    progress_on_request = True

    # -- api.KV

    def local_revision(self) -> int | None:
        """See ``api.KV``: known without I/O while this single voter leads and has applied an entry of its own term."""
        return self._machine.store.store.current_revision if self._running and self._leads_alone() else None

    async def read_revision(self) -> int:
        """See ``api.KV``. Raises UnavailableError, RequestTimeoutError."""
        if not self._leads_alone():
            self._check_serving()
            await self._read_index.wait()
        return self._machine.store.store.current_revision

    async def range(self, request: api.RangeRequest) -> api.RangeResponse:
        """See ``api.KV``."""
        txn.check(request)
        if request.serializable:
            self._check_running()
        elif not self._leads_alone():
            self._check_serving()
            await self._read_index.wait()
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
            await self.read_revision()
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
        """See ``api.KV``. The leader renews; elsewhere it is asked to."""
        self._check_serving()
        return await self._leases.keep_alive(lease_id)

    async def lease_time_to_live(self, lease_id: int, *, keys: bool = False) -> api.LeaseTimeToLiveResponse:
        """See ``api.KV``. The leader knows; elsewhere it is asked."""
        self._check_serving()
        return await self._leases.time_to_live(lease_id, keys=keys)

    async def leases(self) -> tuple[int, ...]:
        """See ``api.KV``."""
        await self.read_revision()
        return self._machine.lessor.ids()

    def watch(self, request: api.WatchRequest) -> api.Watcher:
        """See ``api.KV``."""
        self._check_serving()
        return self._machine.store.watch(request)

    async def status(self) -> api.StoreStatus:
        """See ``api.KV``."""
        self._check_running()
        node = self._raft.node.status()
        return api.StoreStatus(
            header=self._machine.header(),
            version=VERSION,
            db_size=self._machine.backend.size(),
            db_size_in_use=self._machine.backend.size_in_use(),
            leader_id=node.leader_id,
            raft_index=node.last_index,
            raft_applied_index=node.applied,
            is_learner=self._is_learner,
            alarms=tuple(dict.fromkeys(alarm.type.name for alarm in self._machine.alarms.get())),
        )

    # -- maintenance.Cluster

    async def members(self, *, linearizable: bool = True) -> maintenance.MembersResponse:
        """See ``maintenance.Cluster``."""
        self._check_running()
        return await self._cluster.members(linearizable=linearizable)

    async def member_add(self, peer_urls: tuple[str, ...], *, is_learner: bool = False) -> maintenance.MembersResponse:
        """See ``maintenance.Cluster``."""
        self._check_serving()
        return await self._cluster.add(peer_urls, is_learner=is_learner)

    async def member_remove(self, member_id: int) -> maintenance.MembersResponse:
        """See ``maintenance.Cluster``."""
        self._check_serving()
        return await self._cluster.remove(member_id)

    async def member_update(self, member_id: int, peer_urls: tuple[str, ...]) -> maintenance.MembersResponse:
        """See ``maintenance.Cluster``."""
        self._check_serving()
        return await self._cluster.update(member_id, peer_urls)

    async def member_promote(self, member_id: int) -> maintenance.MembersResponse:
        """See ``maintenance.Cluster``."""
        self._check_serving()
        return await self._cluster.promote(member_id)

    async def move_leader(self, target_id: int) -> api.ResponseHeader:
        """See ``maintenance.Cluster``."""
        self._check_serving()
        return await self._cluster.move_leader(target_id)

    # -- maintenance.Maintenance

    async def alarms(self) -> maintenance.AlarmsResponse:
        """See ``maintenance.Maintenance``."""
        await self.read_revision()
        return maintenance.AlarmsResponse(header=self._machine.header(), alarms=self._machine.alarms.get())

    async def alarm_activate(self, member_id: int, alarm: maintenance.AlarmType) -> maintenance.AlarmsResponse:
        """See ``maintenance.Maintenance``."""
        self._check_serving()
        return await self._housekeeping.activate(member_id, alarm)

    async def alarm_deactivate(self, member_id: int, alarm: maintenance.AlarmType) -> maintenance.AlarmsResponse:
        """See ``maintenance.Maintenance``."""
        self._check_serving()
        return await self._housekeeping.deactivate(member_id, alarm)

    async def defragment(self) -> api.ResponseHeader:
        """See ``maintenance.Maintenance``. Raises OSError when there is no space for a copy."""
        self._check_running()
        self.metrics.defrag_inflight += 1
        try:
            with self._timed(self.metrics.defrag_seconds):
                await self._upkeep.defragment()
        finally:
            self.metrics.defrag_inflight -= 1
        self._observe_sizes()
        return self._machine.header()

    async def hash(self) -> maintenance.HashResponse:
        """See ``maintenance.Maintenance``."""
        self._check_running()
        header = self._machine.header()
        with self._timed(self.metrics.hash_seconds):
            return maintenance.HashResponse(header=header, hash=await self._upkeep.hash())

    async def hash_kv(self, revision: int = 0) -> maintenance.HashKVResponse:
        """See ``maintenance.Maintenance``."""
        self._check_running()
        header = self._machine.header()
        with self._timed(self.metrics.hash_kv_seconds):
            found = await self._upkeep.hash_kv(revision)
        return maintenance.HashKVResponse(
            header=header, hash=found.hash, compact_revision=found.compact_revision, hash_revision=found.revision
        )

    async def snapshot(self) -> maintenance.SnapshotStream:
        """See ``maintenance.Maintenance``."""
        self._check_running()
        with self._timed(self.metrics.snapshot_seconds):
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
            lessor, counts = self._machine.lessor, self._machine.store.store.counts
            metrics.snapshot_apply_in_progress = self._receiver.is_busy
            metrics.lease_count = len(lessor.ids())
            metrics.leases_granted_total = lessor.granted_total
            metrics.leases_revoked_total = lessor.revoked_total
            metrics.leases_renewed_total = lessor.renewed_total
            metrics.puts_total = counts.puts
            metrics.deletes_total = counts.deletes
            metrics.ranges_total = counts.ranges
            metrics.txns_total = counts.txns
            metrics.events_total = counts.events
            metrics.compacted_keys_total = counts.records_compacted
            metrics.pending_events = self._machine.store.pending_events()
            metrics.keys = len(self._machine.store.store.index)
            metrics.wal_write_bytes_total = getattr(self._log, "written_bytes", 0)
            metrics.is_learner = self.is_learner()
            metrics.server_id = self.member_id
            metrics.server_version = VERSION
            self._observe_sizes()
        metrics.proposals_pending = len(self._proposals) if self._running else 0
        return metrics

    def metric_families(self) -> list[Family]:
        """Everything that this member counts, under etcd's names; with what ``further_metrics`` tell."""
        found = self.collect_metrics().families()
        peers = self.collect_peer_metrics()
        if peers is not None:
            found += peers.families(self.member_id)
        for tell in self.further_metrics:
            found += tell()
        return found

    @contextlib.contextmanager
    def _timed(self, histogram: Histogram) -> Iterator[None]:
        stopwatch = self._environment.stopwatch
        started = stopwatch()
        yield
        histogram.observe(stopwatch() - started)

    def collect_peer_metrics(self) -> PeerMetrics | None:
        """Of the traffic with the peers, where there is a transport that counts."""
        collect = getattr(self._environment.transport, "collect_metrics", None)
        return None if collect is None else collect()
