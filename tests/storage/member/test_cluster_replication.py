"""Three members: they elect one leader, and what is written anywhere is everywhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from storage import errors
from storage.member.raft_loop import FORWARDED_BYTES_MAX
from storage.raft.messages import Message, MessageType
from tests.storage.member.cluster import put, running_cluster, value_of


async def test_three_members_elect_one_leader_and_replicate(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        leader = cluster.leader()
        assert {member.raft_term for member in cluster.members.values()} == {leader.raft_term}
        revisions = await asyncio.gather(*(put(leader, b"k%d" % number, b"%d" % number) for number in range(50)))
        assert sorted(revisions) == list(range(2, 52))
        await cluster.converged()
        for member in cluster.members.values():
            assert await value_of(member, b"k49", serializable=True) == b"49"
        assert len({member.cluster_id for member in cluster.members.values()}) == 1
        assert len({member.member_id for member in cluster.members.values()}) == 3


async def test_a_write_on_a_follower_goes_to_the_leader(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        for number, member in enumerate(cluster.members.values()):
            assert await put(member, b"k%d" % number) == number + 2
            assert await value_of(member, b"k%d" % number, serializable=True) == b"v"  # answered once it is applied there


async def test_a_new_leader_takes_over_and_the_old_one_follows_when_it_is_back(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        old = cluster.leader()
        await put(old, b"a")
        cluster.network.isolate(old.member_id)
        new = await cluster.has_leader(but=old)
        await put(new, b"b")
        cluster.network.heal()
        await cluster.converged()
        assert not old.metrics.is_leader
        assert await value_of(old, b"b", serializable=True) == b"v"
        assert cluster.leader() is new


async def test_all_restart_at_once(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        await put(cluster.leader(), b"a", b"1")
        await cluster.stop_all()
        await cluster.start_all()
        await put(cluster.followers()[0], b"b", b"2")
        await cluster.converged()
        for member in cluster.members.values():
            assert await value_of(member, b"a", serializable=True) == b"1"
            assert await value_of(member, b"b", serializable=True) == b"2"


async def test_writes_that_went_to_a_lost_leader_are_given_up_once_another_leads(tmp_path: Path) -> None:
    """Their outcome is unknown, and stays so: to hold their callers up until the time is out would help nobody."""
    async with running_cluster(tmp_path) as cluster:
        old = cluster.leader()
        follower = cluster.followers()[0]
        await put(follower, b"k", b"before")
        cluster.network.isolate(old.member_id)
        with pytest.raises(errors.RequestTimeoutError, match="previous leader failure"):
            await put(follower, b"k", b"lost")
        assert await value_of(follower, b"k") == b"before"
        await put(follower, b"k", b"after")


async def test_a_stalled_process_starts_no_elections_when_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All timers are late at once, as after a SIGSTOP: ticks that were missed are dropped, and what came meanwhile is looked at first."""
    async with running_cluster(tmp_path) as cluster:
        loop = asyncio.get_running_loop()
        now, late = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: now() + late)
        leader, term = cluster.leader(), cluster.leader().raft_term
        for number in range(5):
            late += 60.0
            await put(cluster.followers()[0], b"k%d" % number)
        assert (cluster.leader(), cluster.leader().raft_term) == (leader, term)


async def test_a_follower_forwards_in_messages_that_a_transport_carries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_cluster(tmp_path) as cluster:
        follower = cluster.followers()[0]
        sizes: list[int] = []
        send = follower._raft._callbacks.send

        def measure(messages: list[Message]) -> None:
            sizes.extend(sum(len(entry.data) for entry in one.entries) for one in messages if one.type is MessageType.PROPOSE)
            send(messages)

        monkeypatch.setattr(follower._raft, "_callbacks", replace(follower._raft._callbacks, send=measure))
        await asyncio.gather(*(put(follower, b"k%d" % number, bytes(300_000)) for number in range(20)))
        assert sum(sizes) > 20 * 300_000
        assert max(sizes) <= FORWARDED_BYTES_MAX
