"""Leases: against a list of leases over random operations, and the stories that users told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage import api, errors
from storage.backend.memory_backend import MemoryBackend
from storage.lease import lessor as lessor_module
from storage.lease.lessor import (
    CHECKPOINT_INTERVAL_SECONDS,
    CHECKPOINTS_PER_ENTRY_MAX,
    EXPIRED_RETRY_SECONDS,
    EXPIRIES_AFTER_PROMOTION_PER_SECOND,
    ROUND_SECONDS,
    TTL_SECONDS_MAX,
    Lessor,
)
from storage.verify import check_store
from storage.watch.watchable_store import WatchableStore


class World:
    """A store with leases, led by this member since ``now`` 0."""

    def __init__(
        self, backend: MemoryBackend | None = None, *, now: float = 0.0, checkpoint_interval: float = CHECKPOINT_INTERVAL_SECONDS
    ) -> None:
        self.backend = backend or MemoryBackend()
        self._checkpoint_interval = checkpoint_interval
        self.lessor = Lessor(self.backend, checkpoint_interval_seconds=checkpoint_interval)
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
        return World(self.backend.crash(), now=now, checkpoint_interval=self._checkpoint_interval)


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
    first = lessor.expired(1.0, limit=20)
    assert len(first) == 20
    assert lessor.expired(1.0 + 0.9 * ROUND_SECONDS, limit=20) == [], "however often it is asked"
    second = lessor.expired(1.0 + ROUND_SECONDS, limit=20)
    assert sorted(first + second) == list(range(1, 30))


def test_after_a_change_of_leader_leases_run_out_one_after_the_other() -> None:
    """They were granted over an hour; started anew together, they would all run out in one instant."""
    lessor = World().lessor
    for lease_id in range(1, 3001):
        lessor.grant(lease_id, 60, now=0.0)
    lessor.demote()
    lessor.promote(now=100.0)
    in_second = [0] * 10
    at_least = 160.0
    for lease_id in lessor.ids():
        remaining_at = 100.0 + lessor.remaining_seconds(lease_id, 100.0)
        assert remaining_at >= at_least, "none is early"
        in_second[int(remaining_at - at_least)] += 1
    assert sum(in_second) == 3000
    assert max(in_second) <= EXPIRIES_AFTER_PROMOTION_PER_SECOND + 1


def put_checkpoints_through(world: World, now: float) -> list[tuple[int, int]]:
    due = world.lessor.due_checkpoints(now)
    for lease_id, remaining in due:
        world.lessor.checkpoint(lease_id, remaining, now)
    return due


def test_st_l1_a_checkpointed_lease_is_not_extended_by_a_new_leader() -> None:
    """ST-L1, etcd-io/etcd#13491: TTL 60, a new leader at 50. With checkpoints about 10 seconds remain; without, the whole TTL."""
    world = World(checkpoint_interval=10.0)
    world.lessor.grant(7, 60, now=0.0)
    noted = [put_checkpoints_through(world, float(now)) for now in range(51)]
    assert [each for each in noted if each] == [[(7, 50)], [(7, 40)], [(7, 30)], [(7, 20)], [(7, 10)]]
    world = world.restart(now=50.0)
    assert world.lessor.remaining_seconds(7, 50.0) == 10.0
    assert world.expire(59.9) == []
    assert world.expire(60.0) == [7]


def test_st_l1_changes_of_leader_more_frequent_than_the_ttl_do_not_make_a_lease_immortal() -> None:
    world = World(checkpoint_interval=10.0)
    world.lessor.grant(7, 60, now=0.0)
    now = 0.0
    while not world.expire(now):
        now += 1.0
        put_checkpoints_through(world, now)
        if now % 15 == 0:
            world.lessor.demote()
            world.lessor.promote(now, extend_seconds=1.0)
        assert now < 200, "immortal"
    assert now >= 60, "early"


def test_renewing_takes_the_checkpoint_back_before_it_is_answered() -> None:
    """Else the next leader would end the lease before the time that the renewal promised."""
    world = World(checkpoint_interval=10.0)
    world.lessor.grant(7, 60, now=0.0)
    assert not world.lessor.must_clear_checkpoint(7, 5.0)
    assert world.lessor.due_checkpoints(40.0) == [(7, 20)]
    assert world.lessor.must_clear_checkpoint(7, 41.0), "it is on its way through the log"
    world.lessor.checkpoint(7, 20, 41.0)
    assert world.lessor.must_clear_checkpoint(7, 41.0)
    world.lessor.checkpoint(7, 0, 42.0)
    assert not world.lessor.must_clear_checkpoint(7, 42.0)
    assert world.lessor.renew(7, 42.0) == 60
    assert world.restart(now=43.0).lessor.remaining_seconds(7, 43.0) == 60.0


def test_short_leases_and_members_that_do_not_lead_are_not_checkpointed() -> None:
    world = World(checkpoint_interval=10.0)
    world.lessor.grant(1, 10, now=0.0)
    world.lessor.grant(2, 11, now=0.0)
    world.lessor.grant(3, 100, now=0.0)
    assert world.lessor.due_checkpoints(9.9) == []
    assert world.lessor.due_checkpoints(10.0) == [(2, 1), (3, 90)]
    world.lessor.demote()
    assert world.lessor.due_checkpoints(1000.0) == []
    world.lessor.checkpoint(3, 50, 1000.0)
    assert world.lessor.due_checkpoints(2000.0) == []
    world.lessor.checkpoint(99, 50, 1000.0)
    without = World(checkpoint_interval=0.0)
    without.lessor.grant(3, 100, now=0.0)
    assert without.lessor.due_checkpoints(1000.0) == []


def test_checkpoints_come_in_bounded_batches() -> None:
    world = World(checkpoint_interval=10.0)
    for lease_id in range(1, CHECKPOINTS_PER_ENTRY_MAX + 11):
        world.lessor.grant(lease_id, 100, now=0.0)
    first, second = world.lessor.due_checkpoints(10.0), world.lessor.due_checkpoints(10.0)
    assert len(first) == CHECKPOINTS_PER_ENTRY_MAX
    assert len({lease_id for lease_id, _ in first + second}) == CHECKPOINTS_PER_ENTRY_MAX + 10


def test_a_checkpoint_that_got_lost_is_made_again() -> None:
    world = World(checkpoint_interval=10.0)
    world.lessor.grant(7, 100, now=0.0)
    assert world.lessor.due_checkpoints(10.0) == [(7, 90)]
    assert world.lessor.due_checkpoints(15.0) == []
    assert world.lessor.due_checkpoints(20.0) == [(7, 80)]


def test_st_c1_a_step_of_the_wall_clock_is_not_seen() -> None:
    """ST-C1, etcd-io/etcd#9768: time comes in as an argument, of a clock that only goes forward; nothing here asks another one."""
    source = "".join(path.read_text() for path in sorted(Path(lessor_module.__file__).parent.glob("*.py")))
    for clock in ("import time", "datetime", "monotonic(", "loop.time"):
        assert clock not in source


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
    """ST-L1 without checkpoints, etcd-io/etcd#9395, #13294: a change of leader extends leases, never shortens them."""
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
    """ST-L4, etcd-io/etcd#17132, #20273: all keys of a lease go at one revision; after a restart late is allowed, early is not; keys
    that were detached or put again with another lease survive."""
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
    """The twin: a list of (id, ttl, expiry), what the log holds of each lease, and for each key its lease."""

    @initialize()
    def start(self) -> None:
        self.world = World(checkpoint_interval=4.0)
        self.now = 0.0
        self.leases: dict[int, tuple[int, float]] = {}
        self.checkpoints: dict[int, int] = {}
        self.on_their_way: list[tuple[int, int]] = []
        self.renewed: dict[int, float] = {}
        self.key_leases: dict[bytes, int] = {}

    @rule(lease_id=lease_ids, ttl=st.integers(1, 20))
    def grant(self, lease_id: int, ttl: int) -> None:
        if lease_id in self.leases:
            with pytest.raises(errors.LeaseExistsError):
                self.world.lessor.grant(lease_id, ttl, self.now)
        else:
            self.world.lessor.grant(lease_id, ttl, self.now)
            self.leases[lease_id] = (ttl, self.now + ttl)
            self.renewed[lease_id] = self.now

    @rule(lease_id=lease_ids)
    def renew(self, lease_id: int) -> None:
        ttl, expiry = self.leases.get(lease_id, (0, 0.0))
        if expiry <= self.now:
            with pytest.raises(errors.LeaseNotFoundError):
                self.world.lessor.must_clear_checkpoint(lease_id, self.now)
        else:
            if self.world.lessor.must_clear_checkpoint(lease_id, self.now):
                self.checkpoints_arrive()
                self.world.lessor.checkpoint(lease_id, 0, self.now)
                self.checkpoints.pop(lease_id, None)
            assert self.world.lessor.renew(lease_id, self.now) == ttl
            self.leases[lease_id] = (ttl, self.now + ttl)
            self.renewed[lease_id] = self.now

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
            ttl, _ = self.leases[lease_id]
            assert self.now >= self.renewed[lease_id] + ttl, "earlier than was promised"
            self._forget(lease_id)

    @rule()
    def checkpoints_are_proposed(self) -> None:
        self.on_their_way += self.world.lessor.due_checkpoints(self.now)

    @rule()
    def checkpoints_arrive(self) -> None:
        """All of them, in the order of the log, before anything that is proposed after."""
        for lease_id, remaining in self.on_their_way:
            self.world.lessor.checkpoint(lease_id, remaining, self.now)
            if lease_id in self.leases:
                self.checkpoints[lease_id] = remaining
        self.on_their_way.clear()

    @rule(arrive=st.booleans())
    def another_leads(self, arrive: bool) -> None:
        if arrive:
            self.checkpoints_arrive()
        self.on_their_way.clear()
        self.world = self.world.restart(now=self.now)
        self.leases = {lease_id: (ttl, self.now + self.checkpoints.get(lease_id, ttl)) for lease_id, (ttl, _) in self.leases.items()}

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
        self.checkpoints.pop(lease_id, None)
        self.on_their_way = [each for each in self.on_their_way if each[0] != lease_id]
        self.key_leases = {key: attached for key, attached in self.key_leases.items() if attached != lease_id}


TestLessor = LessorMachine.TestCase
TestLessor.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
