"""Counters of a member, plain numbers: whoever exports them reads them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

DISK_SECONDS_BOUNDS: Final = tuple(0.001 * 2**power for power in range(14))
"""Upper bounds of etcd's histograms of disk times: 1 ms to 8.2 s."""


class Histogram:
    """``counts[i]`` observations were ≤ ``bounds[i]`` and above the bound before; the last count is of those above all."""

    __slots__ = ("bounds", "count", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = DISK_SECONDS_BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.count = 0
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.count += 1
        self.sum += value

    def cumulative(self) -> list[tuple[float, int]]:
        """(bound, observations ≤ bound), as Prometheus has them; the last bound is infinity."""
        total, found = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found


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
