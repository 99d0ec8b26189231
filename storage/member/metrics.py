"""Counters of a member, plain numbers: whoever exports them reads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.metric_families import Family, Histogram, Kind, single


@dataclass(slots=True, kw_only=True)
class MemberMetrics:
    """In the comments: the name under which etcd exports it."""

    wal_fsync_seconds: Histogram = field(default_factory=Histogram)  # etcd_disk_wal_fsync_duration_seconds
    backend_commit_seconds: Histogram = field(default_factory=Histogram)  # etcd_disk_backend_commit_duration_seconds
    apply_slow_total: int = 0  # batches of entries that took long; etcd_server_slow_apply_total
    proposals_committed: int = 0  # etcd_server_proposals_committed_total (an index)
    proposals_applied: int = 0  # etcd_server_proposals_applied_total (an index)
    proposals_pending: int = 0  # etcd_server_proposals_pending
    proposals_failed: int = 0  # etcd_server_proposals_failed_total
    has_leader: bool = False  # etcd_server_has_leader
    is_leader: bool = False  # etcd_server_is_leader
    snapshot_apply_in_progress: bool = False  # etcd_server_snapshot_apply_in_progress_total
    read_indexes_failed: int = 0  # linearizable reads that timed out; etcd_server_read_indexes_failed_total
    read_indexes_slow: int = 0  # questions to the leader that were asked again; etcd_server_slow_read_indexes_total
    leader_changes_seen: int = 0  # etcd_server_leader_changes_seen_total
    db_total_size_bytes: int = 0  # etcd_mvcc_db_total_size_in_bytes
    db_in_use_bytes: int = 0  # etcd_mvcc_db_total_size_in_use_in_bytes
    quota_backend_bytes: int = 0  # etcd_server_quota_backend_bytes
    current_revision: int = 1  # etcd_debugging_mvcc_current_revision
    compact_revision: int = 0  # etcd_debugging_mvcc_compact_revision
    watcher_count: int = 0  # etcd_debugging_mvcc_watcher_total
    lagging_watcher_count: int = 0  # etcd_debugging_mvcc_slow_watcher_total
    lease_count: int = 0
    leases_expired_total: int = 0  # etcd_debugging_server_lease_expired_total
    snapshot_markers_total: int = 0
    is_learner: bool = False  # etcd_server_is_learner
    server_id: int = 0  # etcd_server_id
    server_version: str = ""  # etcd_server_version
    puts_total: int = 0  # etcd_mvcc_put_total
    deletes_total: int = 0  # etcd_mvcc_delete_total
    ranges_total: int = 0  # etcd_mvcc_range_total
    txns_total: int = 0  # etcd_mvcc_txn_total
    keys: int = 0  # etcd_debugging_mvcc_keys_total
    events_total: int = 0  # etcd_debugging_mvcc_events_total
    pending_events: int = 0  # etcd_debugging_mvcc_pending_events_total
    compacted_keys_total: int = 0  # etcd_debugging_mvcc_db_compaction_keys_total
    leases_granted_total: int = 0  # etcd_debugging_lease_granted_total
    leases_revoked_total: int = 0  # etcd_debugging_lease_revoked_total
    leases_renewed_total: int = 0  # etcd_debugging_lease_renewed_total
    wal_write_bytes_total: int = 0  # etcd_disk_wal_write_bytes_total
    apply_seconds: Histogram = field(default_factory=Histogram)  # etcd_server_apply_duration_seconds, of batches
    defrag_seconds: Histogram = field(default_factory=Histogram)  # etcd_disk_backend_defrag_duration_seconds
    snapshot_seconds: Histogram = field(default_factory=Histogram)  # etcd_disk_backend_snapshot_duration_seconds
    hash_seconds: Histogram = field(default_factory=Histogram)  # etcd_mvcc_hash_duration_seconds
    hash_kv_seconds: Histogram = field(default_factory=Histogram)  # etcd_mvcc_hash_rev_duration_seconds
    defrag_inflight: int = 0  # etcd_disk_defrag_inflight

    def families(self) -> list[Family]:
        """Under etcd's names."""
        gauge, counter, histogram = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM
        cluster_version = ".".join(self.server_version.split(".")[:2])
        found = [
            single(histogram, "etcd_disk_wal_fsync_duration_seconds", "The latency distributions of fsync called by WAL.",
                   self.wal_fsync_seconds),
            single(histogram, "etcd_disk_backend_commit_duration_seconds", "The latency distributions of commit called by backend.",
                   self.backend_commit_seconds),
            single(histogram, "etcd_disk_backend_defrag_duration_seconds", "The latency distribution of backend defragmentation.",
                   self.defrag_seconds),
            single(histogram, "etcd_disk_backend_snapshot_duration_seconds", "The latency distribution of backend snapshots.",
                   self.snapshot_seconds),
            single(gauge, "etcd_disk_defrag_inflight", "Whether or not defrag is active on the member. 1 means active, 0 means not.",
                   self.defrag_inflight),
            single(gauge, "etcd_disk_wal_write_bytes_total", "Total number of bytes written in WAL.", self.wal_write_bytes_total),
            single(gauge, "etcd_server_has_leader", "Whether or not a leader exists. 1 is existence, 0 is not.", self.has_leader),
            single(gauge, "etcd_server_is_leader", "Whether or not this member is a leader. 1 if is, 0 otherwise.", self.is_leader),
            single(gauge, "etcd_server_is_learner", "Whether or not this member is a learner. 1 if is, 0 otherwise.", self.is_learner),
            single(gauge, "etcd_server_snapshot_apply_in_progress_total",
                   "1 if the server is applying the incoming snapshot. 0 if none.", self.snapshot_apply_in_progress),
            single(counter, "etcd_server_read_indexes_failed_total", "The total number of failed read indexes seen.",
                   self.read_indexes_failed),
            single(counter, "etcd_server_slow_read_indexes_total",
                   "The total number of pending read indexes not in sync with leader's or timed out read index requests.",
                   self.read_indexes_slow),
            single(counter, "etcd_server_leader_changes_seen_total", "The number of leader changes seen.", self.leader_changes_seen),
            single(gauge, "etcd_server_proposals_committed_total", "The total number of consensus proposals committed.",
                   self.proposals_committed),
            single(gauge, "etcd_server_proposals_applied_total", "The total number of consensus proposals applied.",
                   self.proposals_applied),
            single(gauge, "etcd_server_proposals_pending", "The current number of pending proposals to commit.", self.proposals_pending),
            single(counter, "etcd_server_proposals_failed_total", "The total number of failed proposals seen.", self.proposals_failed),
            single(histogram, "etcd_server_apply_duration_seconds", "The latency distributions of v2 apply called by backend.",
                   self.apply_seconds),
            single(counter, "etcd_server_slow_apply_total",
                   "The total number of slow apply requests (likely overloaded from slow disk).", self.apply_slow_total),
            single(gauge, "etcd_server_quota_backend_bytes", "Current backend storage quota size in bytes.", self.quota_backend_bytes),
            Family(gauge, "etcd_server_id", "Server or member ID in hexadecimal format. 1 for 'server_id' label with current ID.",
                   (((("server_id", f"{self.server_id:x}"),), 1),)),
            Family(gauge, "etcd_server_version", "Which version is running. 1 for 'server_version' label with current version.",
                   (((("server_version", self.server_version),), 1),)),
            Family(gauge, "etcd_cluster_version", "Which version is running. 1 for 'cluster_version' label with current cluster version",
                   (((("cluster_version", cluster_version),), 1),)),
            single(gauge, "etcd_mvcc_db_total_size_in_bytes", _PHYSICAL_SIZE, self.db_total_size_bytes),
            # the name it had before etcd 3.4, which dashboards still ask for
            single(gauge, "etcd_debugging_mvcc_db_total_size_in_bytes", _PHYSICAL_SIZE, self.db_total_size_bytes),
            single(gauge, "etcd_mvcc_db_total_size_in_use_in_bytes",
                   "Total size of the underlying database logically in use in bytes.", self.db_in_use_bytes),
            single(counter, "etcd_mvcc_put_total", "Total number of puts seen by this member.", self.puts_total),
            single(counter, "etcd_mvcc_delete_total", "Total number of deletes seen by this member.", self.deletes_total),
            single(counter, "etcd_mvcc_range_total", "Total number of ranges seen by this member.", self.ranges_total),
            single(counter, "etcd_mvcc_txn_total", "Total number of txns seen by this member.", self.txns_total),
            single(histogram, "etcd_mvcc_hash_duration_seconds", "The latency distribution of storage hash operation.",
                   self.hash_seconds),
            single(histogram, "etcd_mvcc_hash_rev_duration_seconds",
                   "The latency distribution of storage hash by revision operation.", self.hash_kv_seconds),
            single(gauge, "etcd_debugging_mvcc_keys_total", "Total number of keys.", self.keys),
            single(counter, "etcd_debugging_mvcc_events_total", "Total number of events sent by this member.", self.events_total),
            single(gauge, "etcd_debugging_mvcc_pending_events_total", "Total number of pending events to be sent.",
                   self.pending_events),
            single(gauge, "etcd_debugging_mvcc_current_revision", "The current revision of store.", self.current_revision),
            single(gauge, "etcd_debugging_mvcc_compact_revision", "The revision of the last compaction in store.",
                   self.compact_revision),
            single(counter, "etcd_debugging_mvcc_db_compaction_keys_total", "Total number of db keys compacted.",
                   self.compacted_keys_total),
            single(gauge, "etcd_debugging_mvcc_watcher_total", "Total number of watchers.", self.watcher_count),
            single(gauge, "etcd_debugging_mvcc_slow_watcher_total", "Total number of unsynced slow watchers.",
                   self.lagging_watcher_count),
            single(counter, "etcd_debugging_lease_granted_total", "The total number of granted leases.", self.leases_granted_total),
            single(counter, "etcd_debugging_lease_revoked_total", "The total number of revoked leases.", self.leases_revoked_total),
            single(counter, "etcd_debugging_lease_renewed_total", "The number of renewed leases seen by the leader.",
                   self.leases_renewed_total),
            single(counter, "etcd_debugging_server_lease_expired_total", "The total number of expired leases.",
                   self.leases_expired_total),
        ]  # fmt: skip
        return found


_PHYSICAL_SIZE = "Total size of the underlying database physically allocated in bytes."
