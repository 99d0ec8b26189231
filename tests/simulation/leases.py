"""Clients that hold leases, and what they may rely on: never gone before its time, never there forever."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from storage import api, errors
from storage.member import request as log_request
from tests.robustness import kv_model
from tests.simulation.checkers import ClusterHistory
from tests.simulation.clients import Port, Workload
from tests.simulation.hosts import Host
from tests.simulation.world import InvariantError, World

TTL_SECONDS: Final = (1, 2)

REMOVAL_SECONDS_MAX: Final = 10.0
"""After the last TTL has run out in a healthy cluster: a retry of the revocation (3 s), a change of leader, the clocks' drift."""


@dataclass(slots=True)
class _Lease:
    """Times are true. ``renewals``: when renewals that succeeded were asked for."""

    id: int
    granted_at: float
    ttl_seconds: int
    renewals: list[float] = field(default_factory=list)
    asked_to_revoke: bool = False
    revoked_at: float | None = None


class LeaseBook:
    """All leases of a run, known to the observers."""

    def __init__(self, world: World, history: ClusterHistory, *, clock_drift: float) -> None:
        self.world = world
        self.leases: dict[int, _Lease] = {}
        self.expired = 0
        self._drift = clock_drift
        self._proposed_at: dict[int, float] = {}
        """When grants were asked for: the entry may be seen before the answer."""
        self._revoked: dict[int, float] = {}
        history.on_request = self._on_request

    def note_asked(self, lease_id: int) -> None:
        self._proposed_at[lease_id] = self.world.now

    def note_granted(self, lease_id: int, ttl_seconds: int) -> _Lease:
        lease = self.leases[lease_id] = _Lease(lease_id, self._proposed_at[lease_id], ttl_seconds)
        lease.revoked_at = self._revoked.get(lease_id)
        return lease

    def check(self) -> None:
        """No lease was revoked by the store before its time. Raises InvariantError."""
        for lease in self.leases.values():
            revoked = lease.revoked_at
            if revoked is None or lease.asked_to_revoke:
                continue
            for asked in (lease.granted_at, *lease.renewals):
                # The leader's clock may run fast, and its answer came after the question: so this is the least that was promised.
                if revoked < asked + lease.ttl_seconds * (1 - self._drift):
                    raise InvariantError(
                        f"lease {lease.id:x} of {lease.ttl_seconds} s was granted or renewed at {asked:.3f} and revoked at {revoked:.3f}"
                    )
            self.expired += 1

    def _on_request(self, index: int, request: kv_model.Request | kv_model.OtherRequest) -> None:
        if isinstance(request, log_request.LeaseRevokeRequest):
            self._revoked.setdefault(request.id, self.world.now)
            lease = self.leases.get(request.id)
            if lease is not None and lease.revoked_at is None:
                lease.revoked_at = self.world.now


class LeaseClient:
    """Takes leases, hangs keys on them, renews them for a while, then lets them run out or revokes them."""

    def __init__(
        self, port: Port, workload: Workload, book: LeaseBook, hosts: Callable[[], list[Host]], rng: random.Random, *, number: int
    ) -> None:
        self.number = number
        self._port = port
        self._workload = workload
        self._book = book
        self._hosts = hosts
        self._rng = rng
        self._count = 0

    async def run(self) -> None:
        while not self._workload.is_stopped:
            await asyncio.sleep(self._rng.random())
            hosts = self._hosts()
            if hosts:
                await self._hold_one(hosts)

    async def _hold_one(self, hosts: list[Host]) -> None:
        rng, workload = self._rng, self._workload
        self._count += 1
        lease_id = self.number << 16 | self._count
        ttl = rng.choice(TTL_SECONDS)
        self._book.note_asked(lease_id)
        try:
            granted = await workload.recorder.call(
                self.number,
                log_request.LeaseGrantRequest(id=lease_id, ttl_seconds=ttl),
                self._port.call(rng.choice(hosts), lambda member: member.lease_grant(ttl, lease_id=lease_id)),
            )
        except errors.StoreError:
            return
        lease = self._book.note_granted(lease_id, granted.ttl_seconds)
        for _ in range(rng.randint(0, 3)):
            key = rng.choice([*workload.keys, b"lease/%d/%d" % (self.number, self._count)])
            await workload.one(self.number, rng.choice(hosts), api.PutRequest(key=key, value=workload.new_value(), lease=lease_id))
        for _ in range(rng.randint(0, 5)):
            await asyncio.sleep(rng.random() * lease.ttl_seconds * 0.8)
            if workload.is_stopped or not await self._renew(lease, rng.choice(hosts)):
                break
        if rng.random() < 0.3:
            lease.asked_to_revoke = True
            await workload.one(self.number, rng.choice(hosts), log_request.LeaseRevokeRequest(id=lease_id))

    async def _renew(self, lease: _Lease, host: Host) -> bool:
        asked = self._port.world.now
        try:
            await self._port.call(host, lambda member: member.lease_keep_alive(lease.id), timeout_seconds=1.0)
        except errors.LeaseNotFoundError:
            return False
        except errors.StoreError:
            return True
        lease.renewals.append(asked)
        return True
