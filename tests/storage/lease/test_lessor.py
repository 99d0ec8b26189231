"""Leases: against a list of leases over random operations, and the stories that users told."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage import api, errors
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import EXPIRED_RETRY_SECONDS, TTL_SECONDS_MAX, Lessor
from storage.verify import check_store
from storage.watch.watchable_store import WatchableStore


class World:
    """A store with leases, led by this member since ``now`` 0."""

    def __init__(self, backend: MemoryBackend | None = None, *, now: float = 0.0) -> None:
        self.backend = backend or MemoryBackend()
        self.lessor = Lessor(self.backend)
        self.store = WatchableStore(self.backend, self.lessor)
        self.lessor.promote(now)

    def put(self, key: bytes, lease: int = 0) -> None:
        txn = self.store.write_txn()
        txn.put(key, b"", lease)
        txn.end()

    def delete(self, key: bytes) -> None:
        txn = self.store.write_txn()
        txn.delete_range(key)
        txn.end()

    def keys(self) -> list[bytes]:
        return [kv.key for kv in self.store.range(api.RangeRequest(key=b"\0", range_end=b"\0")).kvs]

    def expire(self, now: float) -> list[int]:
        expired = self.lessor.expired(now)
        for lease_id in expired:
            self.lessor.revoke(lease_id, self.store)
        return expired

    def restart(self, *, now: float) -> World:
        self.backend.commit()
        return World(self.backend.crash(), now=now)


def test_a_granted_lease_expires_after_its_ttl_and_not_before() -> None:
    world = World()
    world.lessor.grant(7, 10, now=100.0)
    assert world.lessor.remaining_seconds(7, 104.0) == 6.0
    assert world.expire(109.999) == []
    assert world.expire(110.0) == [7]
    assert world.lessor.ids() == ()
    assert world.lessor.lookup(7) is None


def test_renewing_starts_the_ttl_again() -> None:
    world = World()
    world.lessor.grant(7, 10, now=0.0)
    assert world.lessor.renew(7, now=9.0) == 10
    assert world.expire(18.9) == []
    assert world.expire(19.0) == [7]


def test_a_lease_that_has_run_out_cannot_be_renewed() -> None:
    """Its revocation may be on the way already: a client that were told "renewed" would lose its keys all the same."""
    world = World()
    world.lessor.grant(7, 10, now=0.0)
    with pytest.raises(errors.LeaseNotFoundError):
        world.lessor.renew(7, now=10.0)


def test_refusals() -> None:
    lessor = World().lessor
    lessor.grant(7, 10, now=0.0)
    with pytest.raises(errors.LeaseExistsError):
        lessor.grant(7, 20, now=0.0)
    with pytest.raises(errors.LeaseTtlTooLargeError):
        lessor.grant(8, TTL_SECONDS_MAX + 1, now=0.0)
    with pytest.raises(errors.LeaseNotFoundError):
        lessor.grant(0, 10, now=0.0)
    with pytest.raises(errors.LeaseNotFoundError):
        lessor.renew(8, now=0.0)
    assert lessor.ids() == (7,)


def test_a_ttl_below_the_minimum_is_raised_to_it() -> None:
    backend = MemoryBackend()
    lessor = Lessor(backend, ttl_seconds_min=2)
    assert lessor.grant(1, -5, now=0.0).ttl_seconds == 2
    assert lessor.grant(2, 1, now=0.0).ttl_seconds == 2
    assert lessor.grant(3, 3, now=0.0).ttl_seconds == 3


def test_an_expired_lease_is_named_again_if_its_revocation_got_lost() -> None:
    lessor = World().lessor
    lessor.grant(7, 1, now=0.0)
    assert lessor.expired(1.0) == [7]
    assert lessor.expired(1.5) == []
    assert lessor.expired(1.0 + EXPIRED_RETRY_SECONDS) == [7]


def test_a_mass_expiry_comes_in_rounds() -> None:
    lessor = World().lessor
    for lease_id in range(1, 30):
        lessor.grant(lease_id, 1, now=0.0)
    first, second = lessor.expired(1.0, limit=20), lessor.expired(1.0, limit=20)
    assert sorted(first + second) == list(range(1, 30))
    assert len(first) == 20


def test_a_lease_granted_again_under_an_old_id_keeps_its_own_time() -> None:
    world = World()
    world.lessor.grant(7, 1000, now=0.0)
    world.lessor.revoke(7, world.store)
    world.lessor.grant(7, 5, now=10.0)
    assert world.expire(14.9) == []
    assert world.expire(15.0) == [7]


def test_a_member_that_does_not_lead_expires_nothing() -> None:
    world = World()
    world.lessor.grant(7, 1, now=0.0)
    world.lessor.demote()
    assert world.lessor.expired(1000.0) == []
    assert world.lessor.next_expiry() is None


def test_a_new_leader_gives_every_lease_its_whole_ttl_again() -> None:
    """etcd-io/etcd#9395, #13294: a change of leader extends leases, never shortens them."""
    world = World()
    world.lessor.grant(7, 60, now=0.0)
    world.put(b"k", 7)
    world.lessor.demote()
    world.lessor.promote(now=50.0, extend_seconds=1.0)
    assert world.expire(110.9) == []
    assert world.keys() == [b"k"]
    assert world.expire(111.0) == [7]
    assert world.keys() == []


def test_expiry_is_one_ordered_event_also_after_a_restart() -> None:
    """etcd-io/etcd#17132, #20273: all keys of a lease go at one revision; after a restart late is allowed, early is not; keys that were
    detached or put again with another lease survive."""
    world = World()
    world.lessor.grant(7, 10, now=0.0)
    world.lessor.grant(8, 1000, now=0.0)
    for key in (b"/k/3", b"/k/1", b"/k/2", b"/k/detached", b"/k/other"):
        world.put(key, 7)
    world.put(b"/k/detached")
    world.put(b"/k/other", 8)
    world = world.restart(now=9.5)
    watcher = world.store.watch(api.WatchRequest(key=b"/k/", range_end=b"/k0"))
    before = world.store.current_revision
    assert world.expire(10.5) == []
    assert world.expire(19.5) == [7]
    batch = watcher.take()
    assert batch is not None
    assert batch.revision == before + 1 == world.store.current_revision
    assert [(event.type, event.kv.key, event.kv.mod_revision) for event in batch.events] == [
        (api.EventType.DELETE, key, before + 1) for key in (b"/k/1", b"/k/2", b"/k/3")
    ]
    assert watcher.take() is None
    assert world.keys() == [b"/k/detached", b"/k/other"]
    assert world.restart(now=0.0).lessor.ids() == (8,)


def test_revoking_a_lease_without_keys_makes_no_revision() -> None:
    world = World()
    world.lessor.grant(7, 10, now=0.0)
    before = world.store.current_revision
    world.lessor.revoke(7, world.store)
    assert world.store.current_revision == before


lease_ids = st.integers(1, 5)
keys = st.sampled_from([b"a", b"b", b"c", b"d"])


class LessorMachine(RuleBasedStateMachine):
    """The twin: a list of (id, ttl, expiry) and, for each key, its lease."""

    @initialize()
    def start(self) -> None:
        self.world = World()
        self.now = 0.0
        self.leases: dict[int, tuple[int, float]] = {}
        self.key_leases: dict[bytes, int] = {}

    @rule(lease_id=lease_ids, ttl=st.integers(1, 20))
    def grant(self, lease_id: int, ttl: int) -> None:
        if lease_id in self.leases:
            with pytest.raises(errors.LeaseExistsError):
                self.world.lessor.grant(lease_id, ttl, self.now)
        else:
            self.world.lessor.grant(lease_id, ttl, self.now)
            self.leases[lease_id] = (ttl, self.now + ttl)

    @rule(lease_id=lease_ids)
    def renew(self, lease_id: int) -> None:
        ttl, expiry = self.leases.get(lease_id, (0, 0.0))
        if expiry <= self.now:
            with pytest.raises(errors.LeaseNotFoundError):
                self.world.lessor.renew(lease_id, self.now)
        else:
            assert self.world.lessor.renew(lease_id, self.now) == ttl
            self.leases[lease_id] = (ttl, self.now + ttl)

    @rule(lease_id=lease_ids)
    def revoke(self, lease_id: int) -> None:
        if lease_id not in self.leases:
            with pytest.raises(errors.LeaseNotFoundError):
                self.world.lessor.revoke(lease_id, self.world.store)
        else:
            self.world.lessor.revoke(lease_id, self.world.store)
            self._forget(lease_id)

    @rule(key=keys, lease_id=st.integers(0, 5))
    def put(self, key: bytes, lease_id: int) -> None:
        if lease_id == 0 or lease_id in self.leases:
            self.world.put(key, lease_id)
            self.key_leases[key] = lease_id

    @rule(key=keys)
    def delete(self, key: bytes) -> None:
        self.world.delete(key)
        self.key_leases.pop(key, None)

    @rule(seconds=st.integers(0, 12))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        due = sorted(lease_id for lease_id, (_, expiry) in self.leases.items() if expiry <= self.now)
        assert sorted(self.world.expire(self.now)) == due
        for lease_id in due:
            self._forget(lease_id)

    @rule()
    def restart(self) -> None:
        self.world = self.world.restart(now=self.now)
        self.leases = {lease_id: (ttl, self.now + ttl) for lease_id, (ttl, _) in self.leases.items()}

    @invariant()
    def same_leases_and_keys(self) -> None:
        lessor = self.world.lessor
        check_store(self.world.store.store, lessor)
        assert set(lessor.ids()) == set(self.leases)
        assert self.world.keys() == sorted(self.key_leases)
        assert {key: lessor.lease_of(key) for key in self.key_leases} == self.key_leases
        for lease_id in self.leases:
            lease = lessor.lookup(lease_id)
            assert lease is not None
            assert lease.keys == {key for key, attached in self.key_leases.items() if attached == lease_id}

    def _forget(self, lease_id: int) -> None:
        del self.leases[lease_id]
        self.key_leases = {key: attached for key, attached in self.key_leases.items() if attached != lease_id}


TestLessor = LessorMachine.TestCase
TestLessor.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
