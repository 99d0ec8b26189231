"""Several members: a restored cluster, members that differ, leases over a change of leader."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from storage import api, errors
from storage.backend.backend import Bucket
from storage.backend.lmdb_backend import LmdbBackend
from storage.config import MemberConfig
from storage.maintenance import Alarm, AlarmType
from storage.member.member import Member
from storage.mvcc import kv_codec
from storage.mvcc.revision import revision_key
from storage.snapshot import save
from storage.snapshot.restore import RestoreOptions, restore
from tests.storage.member.cluster import Cluster, put, running_cluster, until, value_of

SAMPLE = Path(__file__).parents[1] / "data" / "etcd-3.5-snapshot.db.gz"
SAMPLE_HASH_KV = (3506018307, -1, 402)


@pytest.mark.slow
async def test_three_members_start_on_the_snapshot_of_a_real_etcd(tmp_path: Path) -> None:
    """Each restores its own copy; together they are a new cluster with the old keys."""
    snapshot = tmp_path / "snapshot.db"
    snapshot.write_bytes(gzip.decompress(SAMPLE.read_bytes()))
    cluster = Cluster(tmp_path)
    restored = [restore(snapshot, RestoreOptions(config=cluster.config(name))) for name in cluster.initial]
    try:
        await cluster.start_all()
        assert {member.cluster_id for member in cluster.members.values()} == {restored[0].cluster_id}
        for member in cluster.members.values():
            found = await member.hash_kv(402)
            assert (found.hash, found.compact_revision, found.hash_revision) == SAMPLE_HASH_KV
        assert await put(cluster.followers()[0], b"new") == 403
        await cluster.converged()
        hashes = [await member.hash_kv(403) for member in cluster.members.values()]
        assert len({found.hash for found in hashes}) == 1
        listed = (await cluster.leader().members()).members
        assert sorted((member.id, member.name) for member in listed) == sorted(
            (each.member_id, name) for each, name in zip(restored, cluster.initial, strict=True)
        )
    finally:
        await cluster.stop_all()


@pytest.mark.slow
async def test_the_directory_of_one_of_three_is_saved_and_restored_alone(tmp_path: Path) -> None:
    """When the others are lost: their last member's directory becomes a cluster of one."""
    async with running_cluster(tmp_path) as cluster:
        for number in range(30):
            await put(cluster.leader(), b"k%d" % number)
        await cluster.converged()
        config = cluster.config("m2")
        await cluster.stop_all()
        found = await save.save_from_data_dir(MemberConfig(data_dir=config.data_dir, name="m2"), tmp_path / "file")
        assert (found.revision, found.total_keys) == (31, 30)
    alone = MemberConfig(data_dir=tmp_path / "alone", unsafe_no_fsync=True)
    restore(tmp_path / "file", RestoreOptions(config=alone))
    member = Member(alone)
    await member.start()
    try:
        assert await put(member, b"new") == 32
        assert [each.name for each in (await member.members()).members] == ["default"]
    finally:
        await member.stop()


def damage(cluster: Cluster, name: str) -> None:
    """Another value in one member's database, under a checksum that is right: what a fault of the program would leave."""
    backend = LmdbBackend(cluster.config(name).backend_file())
    (record,) = (record for record, value in backend.range(Bucket.KEY, revision_key(1), None) if kv_codec.decode_key(value) == b"k")
    kv = kv_codec.decode(backend.get(Bucket.KEY, record) or b"")
    backend.put(Bucket.KEY, record, kv_codec.encode_fields(b"k", kv.create_revision, kv.mod_revision, 1, b"something else", 0))
    backend.close()


async def settled(cluster: Cluster) -> None:
    """Write, and let every backend have it on disk."""
    await put(cluster.leader(), b"k", b"v")
    await put(cluster.leader(), b"other", b"v")
    await cluster.converged()


@pytest.mark.slow
async def test_the_leader_finds_a_member_that_differs_and_all_refuse_writes(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, initial_corrupt_check=False, corrupt_check_seconds=0.2) as cluster:
        await settled(cluster)
        name = next(name for name, member in cluster.members.items() if member in cluster.followers())
        member_id = cluster.id_of(name)
        await cluster.stop(name)
        damage(cluster, name)
        await cluster.start(name)
        await cluster.ready()
        leader = cluster.leader()
        await until(lambda: not leader._machine.alarms.is_quiet)
        assert (await leader.alarms()).alarms == (Alarm(member_id, AlarmType.CORRUPT),)
        await cluster.converged()
        for member in cluster.members.values():
            with pytest.raises(errors.CorruptAlarmError):
                await put(member, b"k")
        assert await value_of(leader, b"k") == b"v"


@pytest.mark.slow
async def test_a_member_that_differs_stops_when_it_starts(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, corrupt_check_seconds=0.0) as cluster:
        await settled(cluster)
        houses = [member._housekeeping for member in cluster.members.values()]
        await until(lambda: all(house._next_check_at_start == math.inf and not house._tasks for house in houses), "their own checks")
        name = next(name for name, member in cluster.members.items() if member in cluster.followers())
        await cluster.stop(name)
        damage(cluster, name)
        member = await cluster.start(name)
        assert isinstance(await member.wait_failed(), errors.CorruptError)
        with pytest.raises(errors.UnavailableError):
            await member.range(api.RangeRequest(key=b"k", serializable=True))
        assert await put(cluster.leader(), b"still") > 0


@pytest.mark.slow
async def test_equal_members_are_left_alone(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, corrupt_check_seconds=0.05) as cluster:
        leader = cluster.leader()
        checks = 0

        async def counted(*_: object) -> list[object]:
            nonlocal checks
            checks += 1
            return await ask(*_)  # type: ignore[arg-type,return-value]

        ask = leader._housekeeping._checker._ask_peers
        leader._housekeeping._checker._ask_peers = counted  # type: ignore[assignment]
        number = 0
        while checks < 5:
            number += 1
            await put(cluster.followers()[number % 2], b"k%d" % (number % 7), b"%d" % number)
            if number % 50 == 49:
                await leader.compact(number - 20)
        assert (await leader.alarms()).alarms == ()


@pytest.mark.slow
async def test_st_l1_a_new_leader_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, lease_checkpoint_interval_seconds=0.3) as cluster:
        old = cluster.leader()
        lease = await old.lease_grant(1000)
        await put(old, b"k", lease=lease.id)

        def noted() -> bool:
            found = [member._machine.lessor.lookup(lease.id) for member in cluster.members.values()]
            return all(each is not None and each.remaining_ttl_seconds > 0 for each in found)

        await until(noted, "the checkpoint")
        new = cluster.followers()[0]
        await old.move_leader(new.member_id)
        await cluster.has_leader(but=old)
        left = await new.lease_time_to_live(lease.id)
        assert left.ttl_seconds < 1000
        # A renewal, asked of whichever member, takes it back before it is answered.
        assert await old.lease_keep_alive(lease.id) == 1000
        await cluster.converged()
        kept = await old.lease_time_to_live(lease.id)
        assert kept.ttl_seconds >= 998
