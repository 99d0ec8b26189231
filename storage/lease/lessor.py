"""The lessor owns the leases: which exist, which keys hang on them, when they run out.

Only the leader's clock runs. A new leader starts every lease anew, since it does not know when it was renewed last; with changes of the
leader more frequent than a TTL it would never run out. So a leader notes now and then, through the log, how much of a long lease is left
(a checkpoint), and a new leader goes on from there. Renewing a lease takes its checkpoint back, before the renewal is answered.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

from storage import errors
from storage.backend import schema
from storage.backend.backend import Backend, Bucket
from storage.lease import lease as lease_module
from storage.lease.lease import NO_LEASE, Lease
from storage.lease.lease_queue import LeaseQueue

#: etcd's bound; beyond it a grant is refused. About 285 years.
TTL_SECONDS_MAX = 9_000_000_000

#: etcd revokes at most 1000 leases a second, in rounds of 500 ms, so that a mass expiry leaves room for other writes.
EXPIRED_PER_ROUND_MAX = 500
ROUND_SECONDS: Final = 0.5

#: When a new leader starts all leases at once, those with equal TTLs would all run out at once: it spreads them so that no more than
#: this run out in a second, which leaves a quarter of the rate above for others (etcd's number).
EXPIRIES_AFTER_PROMOTION_PER_SECOND: Final = 750

#: How often the rest of a lease is noted. Shorter leases are not noted: starting one anew costs little more (etcd's number).
CHECKPOINT_INTERVAL_SECONDS: Final = 300.0

#: In one entry of the log (etcd's number).
CHECKPOINTS_PER_ENTRY_MAX: Final = 1000

#: How long an expired lease waits before it is reported again, in case its revocation got lost (etcd's number).
EXPIRED_RETRY_SECONDS = 3.0


class DeleteTxn(Protocol):
    """What revoking needs of a write transaction."""

    def delete_range(self, key: bytes, range_end: bytes = b"") -> int: ...

    def end(self) -> None: ...


class Deleter(Protocol):
    def write_txn(self) -> DeleteTxn: ...


class Lessor:
    """Not leading: leases never expire here. Leading (``promote``): ``expired`` names those that ran out."""

    def __init__(
        self, backend: Backend, *, ttl_seconds_min: int = 1, checkpoint_interval_seconds: float = CHECKPOINT_INTERVAL_SECONDS
    ) -> None:
        """Load the leases of ``backend``; the store attaches their keys when it loads. Shorter TTLs are raised to the minimum,
        which must exceed an election, or every change of leader would outlive them. Without an interval (0) no checkpoints are asked
        for. Raises CorruptError."""
        self._ttl_seconds_min = ttl_seconds_min
        # since the start, for metrics
        self.granted_total = 0
        self.revoked_total = 0
        self.renewed_total = 0
        self._checkpoint_interval_seconds = checkpoint_interval_seconds
        self._is_primary = False
        self._queue = LeaseQueue()
        self._checkpoints = LeaseQueue()
        self._round_ends = -math.inf
        self._named_in_round = 0
        self.restore(backend)

    def restore(self, backend: Backend) -> None:
        """Forget everything and load the leases of ``backend``. Call it before the store's. Raises CorruptError."""
        self._backend = backend
        self._leases: dict[int, Lease] = {}
        self._key_lease: dict[bytes, int] = {}
        self._queue.clear()
        self._checkpoints.clear()
        for _, value in backend.range(Bucket.LEASE, b"", None):
            lease = lease_module.decode(value)
            lease.ttl_seconds = max(lease.ttl_seconds, self._ttl_seconds_min)
            self._leases[lease.id] = lease

    @property
    def is_primary(self) -> bool:
        return self._is_primary

    def promote(self, now: float, extend_seconds: float = 0.0) -> None:
        """This member leads from ``now`` on: every lease runs again, for its TTL or what a checkpoint left of it, and
        ``extend_seconds`` (an election timeout, for renewals that the former leader answered and nobody else knows of)."""
        self._is_primary = True
        self._queue.clear()
        self._checkpoints.clear()
        for lease in self._leases.values():
            lease.refresh(now, extend_seconds)
        if len(self._leases) > EXPIRIES_AFTER_PROMOTION_PER_SECOND:
            self._spread_expiries()
        for lease in self._leases.values():
            self._queue.add(lease, lease.expiry)
            self._schedule_checkpoint(lease, now)

    def _spread_expiries(self) -> None:
        """Let leases that would run out together do so one after the other, none earlier than it would."""
        earliest = -math.inf
        for lease in sorted(self._leases.values(), key=lambda lease: (lease.expiry, lease.id)):
            lease.expiry = max(lease.expiry, earliest)
            earliest = lease.expiry + 1 / EXPIRIES_AFTER_PROMOTION_PER_SECOND

    def demote(self) -> None:
        self._is_primary = False
        self._queue.clear()
        self._checkpoints.clear()
        for lease in self._leases.values():
            lease.expiry = float("inf")

    def grant(self, lease_id: int, ttl_seconds: int, now: float) -> Lease:
        """Raises LeaseExistsError, LeaseTtlTooLargeError, LeaseNotFoundError (id 0, etcd's answer)."""
        self.check_grant(lease_id, ttl_seconds)
        lease = Lease(lease_id, max(ttl_seconds, self._ttl_seconds_min))
        self._leases[lease_id] = lease
        self.granted_total += 1
        self._backend.put(Bucket.LEASE, schema.lease_key(lease_id), lease.encode())
        if self._is_primary:
            lease.refresh(now)
            self._queue.add(lease, lease.expiry)
            self._schedule_checkpoint(lease, now)
        return lease

    def check_grant(self, lease_id: int, ttl_seconds: int) -> None:
        if lease_id == NO_LEASE:
            raise errors.LeaseNotFoundError()
        if ttl_seconds > TTL_SECONDS_MAX:
            raise errors.LeaseTtlTooLargeError()
        if lease_id in self._leases:
            raise errors.LeaseExistsError()

    def revoke(self, lease_id: int, store: Deleter) -> None:
        """Delete the lease and its keys, all at one revision. Raises LeaseNotFoundError."""
        lease = self._lease(lease_id)
        txn = store.write_txn()
        # Every member must delete in the same order: it decides the sub revisions.
        for key in sorted(lease.keys):
            txn.delete_range(key)
        assert not lease.keys, (lease_id, lease.keys)
        self.revoked_total += 1
        del self._leases[lease_id]
        self._backend.delete(Bucket.LEASE, schema.lease_key(lease_id))
        txn.end()

    def renew(self, lease_id: int, now: float) -> int:
        """The lease runs again for its whole TTL, which is answered in seconds. Only on the leader. Raises LeaseNotFoundError, also
        for one that has run out: its revocation is on the way, and a client must not trust it any more. The caller has seen that
        ``must_clear_checkpoint`` is false, in the same moment."""
        lease = self._running_lease(lease_id, now)
        assert not lease.has_checkpoint, lease_id
        self.renewed_total += 1
        lease.refresh(now)
        return lease.ttl_seconds

    def must_clear_checkpoint(self, lease_id: int, now: float) -> bool:
        """Whether a checkpoint of 0 must go through the log before ``renew``, since one is noted or on its way: the next leader would
        go on from it and end the lease before the time that this renewal promises. So a renewal costs an entry at most once in each
        interval. Raises LeaseNotFoundError as ``renew``."""
        return self._running_lease(lease_id, now).has_checkpoint

    def due_checkpoints(self, now: float) -> list[tuple[int, int]]:
        """Up to ``CHECKPOINTS_PER_ENTRY_MAX`` leases, each with the seconds that are left of it, to be put through the log and given to
        ``checkpoint``. Empty while this member does not lead."""
        if not self._is_primary or not self._checkpoint_interval_seconds:
            return []
        due = []
        for lease in self._checkpoints.pop_due(self._leases, now, CHECKPOINTS_PER_ENTRY_MAX):
            remaining = math.ceil(lease.expiry - now)
            if 0 < remaining < lease.ttl_seconds:
                lease.has_checkpoint = True
                due.append((lease.id, remaining))
            self._schedule_checkpoint(lease, now)
        return due

    def checkpoint(self, lease_id: int, remaining_ttl_seconds: int, now: float) -> None:
        """Note what is left of a lease, for a later leader; the clock here goes on as it is. A lease that is gone is none."""
        lease = self._leases.get(lease_id)
        if lease is None:
            return
        lease.remaining_ttl_seconds = remaining_ttl_seconds
        lease.has_checkpoint = remaining_ttl_seconds > 0
        self._backend.put(Bucket.LEASE, schema.lease_key(lease_id), lease.encode())
        if self._is_primary:
            self._schedule_checkpoint(lease, now)

    def _schedule_checkpoint(self, lease: Lease, now: float) -> None:
        interval = self._checkpoint_interval_seconds
        if interval and lease.run_seconds > interval:
            self._checkpoints.add(lease, now + interval)

    def attach(self, key: bytes, lease_id: int) -> None:
        """``key`` belongs to ``lease_id`` from now on, and to no other; 0 is to none. The lease exists."""
        before = self._key_lease.get(key, NO_LEASE) if self._key_lease else NO_LEASE
        if before == lease_id:
            return
        if before != NO_LEASE:
            self._leases[before].keys.discard(key)
            del self._key_lease[key]
        if lease_id != NO_LEASE:
            self._lease(lease_id).keys.add(key)
            self._key_lease[key] = lease_id

    def lease_of(self, key: bytes) -> int:
        """The id of the lease that ``key`` hangs on, or 0."""
        return self._key_lease.get(key, NO_LEASE)

    def lookup(self, lease_id: int) -> Lease | None:
        return self._leases.get(lease_id)

    def ids(self) -> tuple[int, ...]:
        """All leases, in the order of their expiry where that is known, then of their ids."""
        return tuple(sorted(self._leases, key=lambda lease_id: (self._leases[lease_id].expiry, lease_id)))

    def remaining_seconds(self, lease_id: int, now: float) -> float:
        """Until expiry; at or below 0 once it has run out. Raises LeaseNotFoundError."""
        return self._lease(lease_id).expiry - now

    def expired(self, now: float, limit: int = EXPIRED_PER_ROUND_MAX) -> list[int]:
        """Leases that have run out and should be revoked through the log, ``limit`` in ``ROUND_SECONDS``; each is named again after
        ``EXPIRED_RETRY_SECONDS`` for as long as it exists. Empty while this member does not lead."""
        if not self._is_primary:
            return []
        if now >= self._round_ends:
            self._round_ends = now + ROUND_SECONDS
            self._named_in_round = 0
        expired = self._queue.pop_expired(self._leases, now, limit - self._named_in_round)
        self._named_in_round += len(expired)
        for lease in expired:
            self._queue.add(lease, now + EXPIRED_RETRY_SECONDS)
        return [lease.id for lease in expired]

    def next_expiry(self) -> float | None:
        """No lease has to be revoked before this time."""
        return self._queue.next_expiry()

    def _running_lease(self, lease_id: int, now: float) -> Lease:
        lease = self._lease(lease_id)
        if lease.expiry <= now:
            raise errors.LeaseNotFoundError()
        return lease

    def _lease(self, lease_id: int) -> Lease:
        lease = self._leases.get(lease_id)
        if lease is None:
            raise errors.LeaseNotFoundError()
        return lease
