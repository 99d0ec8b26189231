"""Alarms, auto-compaction and the comparison of members, each alone and with a clock that is passed in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from storage import api, errors
from storage.backend.backend import Bucket
from storage.backend.memory_backend import MemoryBackend
from storage.config import parse_retention
from storage.etcdpb import etcdserverpb
from storage.maintenance import Alarm, AlarmType
from storage.member.alarms import Alarms
from storage.member.compactor import Compactor, PeriodicCompactor, RevisionCompactor, new_compactor
from storage.member.corruption import CorruptionChecker, PeerHash, differing_at_start, differing_members
from storage.member.request import (
    CompactionRequest,
    InternalRequest,
    LeaseCheckpointRequest,
    LeaseGrantRequest,
    LeaseRevokeRequest,
)
from storage.mvcc.kv_hash import KvHash

PUT = api.PutRequest(key=b"k", value=b"v")
DELETE = api.DeleteRangeRequest(key=b"k")
TXN_OF_DELETES = api.TxnRequest(success=(DELETE,), failure=(DELETE,))
WRITES: tuple[InternalRequest, ...] = (
    PUT,
    DELETE,
    api.TxnRequest(failure=(PUT,)),
    TXN_OF_DELETES,
    CompactionRequest(revision=1),
    LeaseGrantRequest(id=1, ttl_seconds=5),
    LeaseRevokeRequest(id=1),
    LeaseCheckpointRequest(remaining_ttl_seconds=((1, 5),)),
)


def refused(alarms: Alarms) -> list[InternalRequest]:
    found = []
    for request in WRITES:
        try:
            alarms.check(request)
        except errors.NoSpaceError:
            assert not alarms.is_active(AlarmType.CORRUPT)
            found.append(request)
        except errors.CorruptAlarmError:
            found.append(request)
    return found


def test_nospace_refuses_what_adds_data_and_nothing_else() -> None:
    alarms = Alarms(MemoryBackend())
    assert alarms.is_quiet
    assert refused(alarms) == []
    alarms.activate(0xA, AlarmType.NOSPACE)
    assert not alarms.is_quiet
    assert refused(alarms) == [WRITES[0], WRITES[2], WRITES[5]]
    alarms.deactivate(0xA, AlarmType.NOSPACE)
    assert refused(alarms) == []


def test_corrupt_refuses_every_write() -> None:
    alarms = Alarms(MemoryBackend())
    alarms.activate(0xA, AlarmType.CORRUPT)
    alarms.activate(0xA, AlarmType.NOSPACE)
    assert refused(alarms) == list(WRITES[:-1])


def test_alarms_are_kept_as_etcd_keeps_them() -> None:
    backend = MemoryBackend()
    alarms = Alarms(backend)
    large = 0xF234567890ABCDEF
    assert alarms.activate(large, AlarmType.NOSPACE) == Alarm(large, AlarmType.NOSPACE)
    assert alarms.activate(large, AlarmType.NOSPACE) == Alarm(large, AlarmType.NOSPACE)
    assert alarms.activate(1, AlarmType.NONE) is None
    alarms.activate(2, AlarmType.CORRUPT)
    messages = [etcdserverpb.AlarmMember(memberID=2, alarm=2), etcdserverpb.AlarmMember(memberID=large, alarm=1)]
    assert backend.range(Bucket.ALARM, b"", None) == [(message.SerializeToString(), b"") for message in messages]
    assert Alarms(backend).get() == (Alarm(large, AlarmType.NOSPACE), Alarm(2, AlarmType.CORRUPT))
    assert Alarms(backend).get(AlarmType.CORRUPT) == (Alarm(2, AlarmType.CORRUPT),)
    backend.put(Bucket.ALARM, b"\x08", b"")
    with pytest.raises(errors.CorruptError, match="alarm"):
        Alarms(backend)


@pytest.mark.parametrize(
    ("member_id", "alarm", "left"),
    [(1, AlarmType.NOSPACE, 3), (0, AlarmType.NOSPACE, 2), (1, AlarmType.NONE, 2), (0, AlarmType.NONE, 0), (9, AlarmType.NONE, 4)],
)
def test_alarms_are_taken_off_by_member_and_type(member_id: int, alarm: AlarmType, left: int) -> None:
    alarms = Alarms(MemoryBackend())
    for each in (1, 2):
        for kind in (AlarmType.NOSPACE, AlarmType.CORRUPT):
            alarms.activate(each, kind)
    taken_off = alarms.deactivate(member_id, alarm)
    assert len(taken_off) == 4 - left
    assert len(alarms.get()) == left
    assert not set(taken_off) & set(alarms.get())


# -- auto-compaction


def simulate(
    compactor: Compactor, seconds: float, revision_at: Callable[[float], int], leads: Callable[[float], bool] = lambda now: True
) -> list[tuple[float, int]]:
    """When it compacted, and where."""
    done = []
    now = 0.0
    while now <= seconds:
        at = compactor.look(revision_at(now), now, leads=leads(now))
        if at is not None:
            done.append((now, at))
            compactor.compacted(at, now)
        now += compactor.interval_seconds
    return done


def test_periodic_keeps_the_history_of_a_span() -> None:
    """A revision a second; 10 minutes: first after 10 minutes at the revision of the start, then every 10 minutes."""
    done = simulate(PeriodicCompactor(600, 0.0), 3600, lambda now: 1 + int(now))
    assert [now for now, _ in done] == [600, 1200, 1800, 2400, 3000, 3600]
    for now, at in done:
        assert 1 + int(now) - at == 600


def test_periodic_spans_above_an_hour_are_compacted_every_hour() -> None:
    done = simulate(PeriodicCompactor(5 * 3600, 0.0), 9 * 3600, lambda now: 1 + int(now))
    assert [now / 3600 for now, _ in done] == [5, 6, 7, 8, 9]
    for now, at in done:
        assert 1 + int(now) - at == 5 * 3600


def test_periodic_does_nothing_where_nothing_is_written() -> None:
    assert simulate(PeriodicCompactor(600, 0.0), 7200, lambda now: 50) == [(600.0, 50)]


def test_a_member_that_begins_to_lead_knows_the_span() -> None:
    done = simulate(PeriodicCompactor(600, 0.0), 1900, lambda now: 1 + int(now), leads=lambda now: now >= 1000)
    assert done[0] == (1020.0, 421)
    assert [now for now, _ in done] == [1020.0, 1620.0]


def test_periodic_tries_again_when_a_compaction_failed() -> None:
    compactor = PeriodicCompactor(600, 0.0)
    asked = [compactor.look(100 + step, step * 60.0, leads=True) for step in range(13)]
    assert asked[:10] == [None] * 10
    assert asked[10:] == [100, 101, 102]


def test_revision_mode_keeps_so_many_revisions() -> None:
    done = simulate(RevisionCompactor(1000), 1500, lambda now: int(now) * 5)
    assert done == [(300.0, 500), (600.0, 2000), (900.0, 3500), (1200.0, 5000), (1500.0, 6500)]
    assert simulate(RevisionCompactor(1000), 1500, lambda now: 900) == []
    assert simulate(RevisionCompactor(1000), 1500, lambda now: 2000) == [(0.0, 1000)]
    assert simulate(RevisionCompactor(1000), 1500, lambda now: 2000, leads=lambda now: False) == []


@pytest.mark.parametrize(
    ("mode", "retention", "amount"),
    [
        ("periodic", "0", 0),
        ("periodic", "1", 3600),
        ("periodic", "30m", 1800),
        ("periodic", "1h30m", 5400),
        ("periodic", "1.5h", 5400),
        ("revision", "1000", 1000),
        ("revision", "0", 0),
    ],
)
def test_retentions(mode: str, retention: str, amount: float) -> None:
    assert parse_retention(mode, retention) == amount
    assert (new_compactor(mode, retention, 0.0) is None) is (amount == 0)


@pytest.mark.parametrize(("mode", "retention"), [("periodic", "x"), ("periodic", "-1"), ("periodic", ""), ("revision", "1h"), ("odd", "1")])
def test_retentions_that_are_none(mode: str, retention: str) -> None:
    with pytest.raises(ValueError, match="--auto-compaction"):
        parse_retention(mode, retention)


# -- comparison of members


def kv_hash(number: int, *, revision: int = 100, compact_revision: int = -1) -> KvHash:
    return KvHash(hash=number, compact_revision=compact_revision, revision=revision)


def peer(member_id: int, found: KvHash, *, revision: int = 100) -> PeerHash:
    return PeerHash(member_id=member_id, revision=revision, hash=found)


def test_equal_members_and_those_that_cannot_be_compared_are_fine() -> None:
    own = kv_hash(7)
    peers = [peer(2, own), peer(3, kv_hash(9, compact_revision=50)), peer(4, kv_hash(9, revision=99))]
    assert differing_at_start(own, peers) == ()
    assert differing_members(1, own, own, 100, [peers[0]]) == ()
    behind = peer(3, kv_hash(9, compact_revision=20))
    after = kv_hash(7, compact_revision=30)
    assert differing_members(1, kv_hash(7, compact_revision=30), after, 120, [behind]) == ()


def test_whoever_differs_is_named() -> None:
    own, other = kv_hash(7), kv_hash(8)
    assert differing_at_start(own, [peer(3, other), peer(2, other), peer(4, own)]) == (2, 3)
    assert differing_at_start(own, [peer(3, other)]) == (3,)
    assert differing_at_start(own, [peer(3, other), peer(4, own)]) == (), "the other one is the odd one"
    assert differing_members(1, own, own, 100, [peer(3, other), peer(2, own)]) == (3,)
    assert differing_members(1, own, other, 100, [peer(2, own)]) == (1,), "this one's own history changed under it"


def test_a_follower_ahead_of_its_leader_differs() -> None:
    own = kv_hash(7)
    assert differing_members(1, own, own, 100, [peer(2, own, revision=101)]) == (2,)
    assert differing_members(1, own, own, 100, [peer(2, kv_hash(7, compact_revision=60))]) == (2,)


def test_hashes_come_back_from_the_wire() -> None:
    sent = peer(5, kv_hash(0xFFFF_FFFF, compact_revision=-1))
    assert PeerHash.from_json(sent.to_json()) == sent
    with pytest.raises(errors.InvalidRequestError):
        PeerHash.from_json({"id": "x"})


class Members:
    """A leader with peers that answer what they are told to."""

    def __init__(self, own: Sequence[KvHash | errors.StoreError], peers: Sequence[PeerHash]) -> None:
        self._own = list(own)
        self.raised: list[int] = []
        self.steps: list[str] = []
        self.checker = CorruptionChecker(
            1,
            hash_kv=self._hash_kv,
            ask_peers=self._answer("ask", peers),
            current_revision=lambda: 100,
            wait_for_reads=self._wait_for_reads,
            raise_alarm=self._raise_alarm,
        )

    async def _hash_kv(self, revision: int) -> KvHash:
        self.steps.append(f"hash {revision}")
        found = self._own.pop(0)
        if isinstance(found, errors.StoreError):
            raise found
        return found

    def _answer(self, step: str, peers: Sequence[PeerHash]) -> Callable[[int], Awaitable[Sequence[PeerHash]]]:
        async def answer(revision: int) -> Sequence[PeerHash]:
            self.steps.append(f"{step} {revision}")
            return peers

        return answer

    async def _wait_for_reads(self) -> None:
        self.steps.append("wait")

    async def _raise_alarm(self, member_id: int) -> None:
        self.raised.append(member_id)


async def test_the_leader_raises_the_alarm_for_each_that_differs() -> None:
    members = Members([kv_hash(7), kv_hash(7)], [peer(2, kv_hash(8)), peer(3, kv_hash(7)), peer(4, kv_hash(9))])
    assert await members.checker.check() == (2, 4)
    assert members.raised == [2, 4]
    assert members.steps == ["hash 0", "ask 100", "wait", "hash 100"], "the leader catches up before it judges who is ahead"


async def test_a_compaction_meanwhile_is_no_difference() -> None:
    members = Members([kv_hash(7), errors.CompactedError(200)], [peer(2, kv_hash(8))])
    assert await members.checker.check() == ()


async def test_a_member_that_differs_does_not_start() -> None:
    await Members([kv_hash(7)], [peer(2, kv_hash(7))]).checker.check_at_start()
    await Members([kv_hash(7)], []).checker.check_at_start()
    with pytest.raises(errors.CorruptError, match="0000000000000002"):
        await Members([kv_hash(7)], [peer(2, kv_hash(8))]).checker.check_at_start()
