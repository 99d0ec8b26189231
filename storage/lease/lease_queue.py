"""Leases by the time they may expire: a heap whose stale entries are dropped when they come up."""

from __future__ import annotations

import heapq

from storage.lease.lease import Lease


class LeaseQueue:
    """``add`` names a time at which to look at the lease again; only the earliest one given counts. A renewal leaves the entry where
    it is: when it comes up early, it goes back in with the lease's true expiry, so renewing costs nothing here."""

    __slots__ = ("_heap", "_queued")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []
        self._queued: dict[int, float] = {}

    def add(self, lease: Lease, at: float) -> None:
        queued = self._queued.get(lease.id)
        if queued is None or at < queued:
            self._queued[lease.id] = at
            heapq.heappush(self._heap, (at, lease.id))

    def clear(self) -> None:
        self._heap.clear()
        self._queued.clear()

    def pop_expired(self, leases: dict[int, Lease], now: float, limit: int) -> list[Lease]:
        """Take out up to ``limit`` leases whose expiry is at or before ``now``, earliest first."""
        heap, queued = self._heap, self._queued
        expired: list[Lease] = []
        while heap and heap[0][0] <= now and len(expired) < limit:
            at, lease_id = heapq.heappop(heap)
            if queued.get(lease_id) != at:
                continue
            del queued[lease_id]
            lease = leases.get(lease_id)
            if lease is None:
                continue
            if lease.expiry <= now:
                expired.append(lease)
            else:
                self.add(lease, lease.expiry)
        return expired

    def pop_due(self, leases: dict[int, Lease], now: float, limit: int) -> list[Lease]:
        """Take out up to ``limit`` leases that were added for a time at or before ``now``, earliest first."""
        heap, queued = self._heap, self._queued
        due: list[Lease] = []
        while heap and heap[0][0] <= now and len(due) < limit:
            at, lease_id = heapq.heappop(heap)
            if queued.get(lease_id) != at:
                continue
            del queued[lease_id]
            lease = leases.get(lease_id)
            if lease is not None:
                due.append(lease)
        return due

    def next_expiry(self) -> float | None:
        """No lease expires before this time."""
        return self._heap[0][0] if self._heap else None
