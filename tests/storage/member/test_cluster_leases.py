"""Leases in a cluster: any member answers, only the leader lets one run out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from storage import errors
from tests.storage.member.cluster import put, running_cluster, until, value_of


async def test_every_member_renews_and_tells_the_time_to_live(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        lease = await cluster.followers()[0].lease_grant(600)
        await put(cluster.leader(), b"k", lease=lease.id)
        for member in cluster.members.values():
            assert await member.lease_keep_alive(lease.id) == 600
            found = await member.lease_time_to_live(lease.id, keys=True)
            assert (found.granted_ttl_seconds, found.keys, found.header.member_id) == (600, (b"k",), member.member_id)
            assert 590 <= found.ttl_seconds <= 600
            assert await member.leases() == (lease.id,)
            with pytest.raises(errors.LeaseNotFoundError):
                await member.lease_keep_alive(lease.id + 1)
            assert (await member.lease_time_to_live(lease.id + 1)).ttl_seconds == -1


@pytest.mark.slow
async def test_a_lease_expires_once_and_everywhere_also_after_a_change_of_leader(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        old = cluster.leader()
        lease = await old.lease_grant(1)
        await put(old, b"k", lease=lease.id)
        await cluster.converged()
        await old.move_leader(cluster.followers()[0].member_id)
        granted_again = asyncio.get_running_loop().time()
        new = await cluster.has_leader(but=old)
        assert [member._machine.lessor.is_primary for member in (old, new)] == [False, True]
        await until(lambda: not any(member._machine.lessor.ids() for member in cluster.members.values()), "the expiry")
        assert asyncio.get_running_loop().time() - granted_again >= 1.0, "expired early"
        for member in cluster.members.values():
            assert await value_of(member, b"k") is None


async def test_a_deposed_leader_revokes_nothing_with_what_it_knew(tmp_path: Path) -> None:
    """etcd-io/etcd#15247: a leader that was paused found its leases run out, and had the new leader revoke them."""
    async with running_cluster(tmp_path) as cluster:
        old = cluster.leader()
        lease = await old.lease_grant(600)
        cluster.network.isolate(old.member_id)
        new = await cluster.has_leader(but=old)
        old._propose_revoke(lease.id)  # what it does when it thinks that the lease ran out
        cluster.network.heal()
        await cluster.converged()
        await put(new, b"later")
        await cluster.converged()
        old._propose_revoke(lease.id)
        await put(old, b"later still")
        assert await new.leases() == (lease.id,)
