"""Linearizable reads of every member: batched, never stale, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage import api, errors
from storage.member.member import Member
from tests.storage.member.cluster import Cluster, put, running_cluster, until, value_of


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        yield cluster


def give_up_after(member: Member, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "_timeout_seconds", seconds)


async def test_a_read_anywhere_sees_what_was_acknowledged_elsewhere_before(cluster: Cluster) -> None:
    members = list(cluster.members.values())
    for number in range(30):
        writer, reader = members[number % 3], members[(number + 1) % 3]
        revision = await put(writer, b"k", b"%d" % number)
        assert await value_of(reader, b"k") == b"%d" % number
        assert await reader.read_revision() >= revision


async def test_only_a_lone_voter_knows_its_revision_without_asking(cluster: Cluster) -> None:
    assert [member.local_revision() for member in cluster.members.values()] == [None, None, None]


async def test_readers_share_one_question_to_the_leader(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = cluster.followers()[0]
    asked: list[bytes] = []
    read_index = follower._raft.node.read_index
    monkeypatch.setattr(follower._raft.node, "read_index", lambda context: (asked.append(context), read_index(context)))
    await asyncio.gather(*(value_of(follower, b"k") for _ in range(100)))
    assert 1 <= len(asked) <= 3, "one for all that were there; again only if it took long"
    assert len({*asked}) == len(asked)


async def test_a_leader_that_was_cut_off_answers_no_read(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    old = cluster.leader()
    await put(old, b"k", b"old")
    give_up_after(old, 0.5, monkeypatch)
    cluster.network.isolate(old.member_id)
    read = asyncio.ensure_future(value_of(old, b"k"))
    new = await cluster.has_leader(but=old)
    await put(new, b"k", b"new")
    with pytest.raises(errors.RequestTimeoutError):
        await read
    with pytest.raises(errors.RequestTimeoutError):
        await value_of(old, b"k")
    with pytest.raises(errors.RequestTimeoutError):
        await old.txn(api.TxnRequest(success=(api.RangeRequest(key=b"k"),)))
    with pytest.raises(errors.RequestTimeoutError):
        await old.leases()
    assert old.collect_metrics().read_indexes_failed == 4
    assert await value_of(old, b"k", serializable=True) == b"old"  # asked for: it may lag
    cluster.network.heal()
    await until(lambda: not old.metrics.is_leader and old.metrics.has_leader)
    assert await value_of(old, b"k") == b"new"


async def test_a_read_that_waits_for_a_leader_goes_on_when_there_is_one(cluster: Cluster) -> None:
    leader = cluster.leader()
    follower, other = cluster.followers()
    await put(leader, b"k", b"1")
    cluster.network.isolate(leader.member_id)
    cluster.network.cut(follower.member_id, other.member_id)
    await until(lambda: not follower.metrics.has_leader)
    read = asyncio.ensure_future(value_of(follower, b"k"))
    write = asyncio.ensure_future(put(follower, b"k", b"2"))
    await asyncio.sleep(0)
    assert not read.done()
    cluster.network.heal()
    assert await read in (b"1", b"2")
    await write
    assert await value_of(other, b"k") == b"2"


async def test_without_a_quorum_reads_and_writes_fail_in_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(cluster.leader(), b"k", b"1")
    survivor = cluster.followers()[0]
    for name, member in list(cluster.members.items()):
        if member is not survivor:
            await cluster.stop(name)
    give_up_after(survivor, 0.4, monkeypatch)
    with pytest.raises(errors.RequestTimeoutError, match="etcdserver: request timed out"):
        await value_of(survivor, b"k")
    with pytest.raises(errors.RequestTimeoutError, match="etcdserver: request timed out"):
        await put(survivor, b"k", b"2")
    for name in cluster.initial:
        if name not in cluster.members:
            await cluster.start(name)
    monkeypatch.undo()
    assert await value_of(survivor, b"k") == b"1"
    assert await put(survivor, b"k", b"3") == 3
