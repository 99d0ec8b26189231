"""A member by itself: restart, leases, limits, faults of disk and directory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from storage import api, errors, failpoints
from storage.api import DeleteRangeRequest, PutRequest, RangeRequest, TxnRequest, WatchRequest
from storage.config import MemberConfig
from storage.maintenance import Alarm, AlarmType
from storage.member import proposals as proposals_module
from storage.member import replica as replica_module
from storage.member.member import Member
from storage.wal.segment import list_segments


@contextlib.asynccontextmanager
async def running(data_dir: Path, **settings: Any) -> AsyncIterator[Member]:
    settings.setdefault("unsafe_no_fsync", True)
    member = Member(MemberConfig(data_dir=data_dir, **settings))
    await member.start()
    try:
        yield member
    finally:
        await member.stop()


async def put(member: Member, key: bytes, value: bytes = b"v", lease: int = 0) -> int:
    return (await member.put(PutRequest(key=key, value=value, lease=lease))).header.revision


async def value_of(member: Member, key: bytes) -> bytes | None:
    kvs = (await member.range(RangeRequest(key=key))).kvs
    return kvs[0].value if kvs else None


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what the member does by itself."""
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


def log_file(data_dir: Path) -> Path:
    wal = data_dir / "member" / "wal"
    return wal / list_segments(wal)[-1].file_name()


# -- restart


async def test_a_restart_finds_everything_at_its_revision(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        for number in range(10):
            await put(member, b"k%d" % number, b"%d" % number)
        await member.delete_range(DeleteRangeRequest(key=b"k3"))
        ids = (member.member_id, member.cluster_id)
    async with running(tmp_path) as member:
        assert (member.member_id, member.cluster_id) == ids
        assert member.local_revision() == 12
        assert await value_of(member, b"k9") == b"9"
        assert await value_of(member, b"k3") is None
        assert await put(member, b"new") == 13
        old = await member.range(RangeRequest(key=b"k3", revision=11))
        assert old.kvs[0].value == b"3"


async def test_the_log_is_replayed_where_the_backend_lags(tmp_path: Path) -> None:
    """The backend is as it was when the process died before its first batch was committed."""
    async with running(tmp_path) as member:
        await put(member, b"a", b"1")
        lease = await member.lease_grant(600)
        await put(member, b"b", b"2", lease=lease.id)
        await member.compact(2)
    for file in (tmp_path / "member" / "snap").iterdir():
        file.unlink()
    async with running(tmp_path) as member:
        assert member.local_revision() == 3
        assert await value_of(member, b"b") == b"2"
        assert (await member.lease_time_to_live(lease.id, keys=True)).keys == (b"b",)
        with pytest.raises(errors.CompactedError):
            await member.range(RangeRequest(key=b"a", revision=1))


async def test_snapshot_markers_release_old_segments_and_replay_begins_there(tmp_path: Path) -> None:
    settings = {"snapshot_count": 20, "wal_segment_bytes": 4096}
    async with running(tmp_path, **settings) as member:
        for number in range(200):
            await put(member, b"k%d" % number, bytes(100))
        await until(lambda: list_segments(tmp_path / "member" / "wal")[0].sequence > 0)
        assert member.metrics.snapshot_markers_total > 0
        await put(member, b"last")
    async with running(tmp_path, **settings) as member:
        assert member.local_revision() == 202
        assert (await member.range(RangeRequest(key=b"k", range_end=b"l", count_only=True))).count == 200


async def test_writes_under_way_at_stop_are_finished_and_later_ones_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        writes = [asyncio.ensure_future(put(member, b"k%d" % number)) for number in range(50)]
        await asyncio.sleep(0)
        await member.stop()
        revisions = await asyncio.gather(*writes)
        with pytest.raises(errors.StoppedError):
            await put(member, b"late")
        assert member.local_revision() is None
    async with running(tmp_path) as member:
        assert member.local_revision() == max(revisions) == 51


async def test_a_watch_resumes_over_a_restart_without_a_gap(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        for number in range(5):
            await put(member, b"k", b"%d" % number)
        watcher = member.watch(WatchRequest(key=b"k", start_revision=2))
        seen = []
        while batch := watcher.take():
            seen += [event.kv.mod_revision for event in batch.events]
    with pytest.raises(errors.StoppedError):
        watcher.take()
    async with running(tmp_path) as member:
        await put(member, b"k", b"5")
        watcher = member.watch(WatchRequest(key=b"k", start_revision=seen[-1] + 1))
        while batch := watcher.take():
            seen += [event.kv.mod_revision for event in batch.events]
    assert seen == [2, 3, 4, 5, 6, 7]


async def test_st_w4_a_watch_resumed_over_many_restarts_with_compactions_sees_every_revision_once(tmp_path: Path) -> None:
    seen: list[int] = []
    for _ in range(12):
        async with running(tmp_path, snapshot_count=10) as member:
            watcher = member.watch(WatchRequest(key=b"k", start_revision=max(seen, default=1) + 1))
            await asyncio.gather(*(put(member, b"k", b"%d" % number) for number in range(10)))
            while batch := watcher.take():
                seen += [event.kv.mod_revision for event in batch.events]
            await member.delete_range(DeleteRangeRequest(key=b"k"))  # seen after the next restart
            await member.compact(seen[-1] - 3)
    assert seen == list(range(2, seen[-1] + 1))
    assert len(seen) == 12 * 11 - 1


# -- durability


async def test_a_write_is_acknowledged_after_its_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is put back to what was synced, byte for byte, as after a power failure: all that was acknowledged is there."""
    synced: dict[str, bytes] = {}
    acknowledged: dict[bytes, int] = {}
    at_crash: dict[str, bytes] = {}
    expected: dict[bytes, int] = {}

    def record(fd: int, buffers: Sequence[bytes], offset: int, flags: int) -> int:
        written = pwritev(fd, buffers, offset, flags)
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if flags & os.RWF_DSYNC and path.suffix == ".wal":
            synced[path.name] = path.read_bytes()
        return written

    pwritev = os.pwritev
    monkeypatch.setattr(os, "pwritev", record)
    async with running(tmp_path, unsafe_no_fsync=False) as member:

        async def client(number: int) -> None:
            nonlocal at_crash, expected
            for count in range(30):
                key = b"c%d/%d" % (number, count)
                acknowledged[key] = await put(member, key, os.urandom(100))
                if len(acknowledged) == 150:
                    at_crash, expected = dict(synced), dict(acknowledged)

        await asyncio.gather(*(client(number) for number in range(8)))
    assert at_crash
    wal = tmp_path / "member" / "wal"
    for name, data in at_crash.items():
        (wal / name).write_bytes(data)
    for file in (tmp_path / "member" / "snap").iterdir():
        file.unlink()
    async with running(tmp_path) as member:
        for key, revision in expected.items():
            kvs = (await member.range(RangeRequest(key=key))).kvs
            assert kvs, f"{key!r} was acknowledged before it was synced"
            assert kvs[0].mod_revision == revision


async def test_a_torn_tail_is_cut_and_the_rest_is_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path) as member:
        await put(member, b"a", b"1")
        await put(member, b"b", b"2")
        await member.stop()
    path = log_file(tmp_path)
    data = path.read_bytes()
    frames = [at for at in range(0, len(data), 32) if data[at : at + 4] == b"SWAL"]
    path.write_bytes(data[: frames[-1] + 40])  # of the last frame: the final commit index
    async with running(tmp_path) as member:
        assert member.local_revision() == 3
        assert await value_of(member, b"b") == b"2"
        assert any("cut" in record.message and path.name in record.message for record in caplog.records)


async def test_a_damaged_log_is_refused_by_file_and_offset(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        for number in range(20):
            await put(member, b"k%d" % number, bytes(200))
    path = log_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    member = Member(MemberConfig(data_dir=tmp_path))
    with pytest.raises(errors.CorruptError, match=r"\.wal: damaged at offset \d+"):
        await member.start()
    data[1000] ^= 1
    path.write_bytes(data)
    async with running(tmp_path) as member:  # the refusal left everything as it was, and no lock
        assert member.local_revision() == 21


async def test_a_lost_log_or_backend_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, snapshot_count=10) as member:
        for number in range(30):
            await put(member, b"k%d" % number)
        await until(lambda: member.metrics.snapshot_markers_total > 0)
    wal, snap = tmp_path / "member" / "wal", tmp_path / "member" / "snap"
    wal.rename(tmp_path / "wal.aside")
    with pytest.raises(errors.CorruptError, match="a part of the log is missing"):
        await Member(MemberConfig(data_dir=tmp_path)).start()
    for file in wal.iterdir():
        file.unlink()
    wal.rmdir()
    (tmp_path / "wal.aside").rename(wal)
    snap.rename(tmp_path / "snap.aside")
    with pytest.raises(errors.CorruptError, match="the backend is missing"):
        await Member(MemberConfig(data_dir=tmp_path)).start()


async def test_a_disk_that_fails_stops_the_member_and_acknowledges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, unsafe_no_fsync=False) as member:
        await put(member, b"a")
        watcher = member.watch(WatchRequest(key=b"a"))

        def fail(fd: int, buffers: Sequence[bytes], offset: int, flags: int) -> int:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "pwritev", fail)
        with pytest.raises(errors.UnavailableError, match="Input/output error"):
            await put(member, b"b")
        assert isinstance(member.failure, OSError)
        with pytest.raises(errors.UnavailableError):
            await member.range(RangeRequest(key=b"a"))
        with pytest.raises(errors.UnavailableError):
            await put(member, b"c")
        with pytest.raises(errors.StoppedError):
            watcher.take()
        monkeypatch.undo()


# -- the directory


async def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path):
        with pytest.raises(errors.DataDirLockedError, match=str(tmp_path)):
            await Member(MemberConfig(data_dir=tmp_path)).start()


async def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(errors.DataDirError, match="data"):
        await Member(MemberConfig(data_dir=tmp_path / "data")).start()


async def test_a_backend_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "member" / "snap").mkdir(parents=True)
    (tmp_path / "member" / "snap" / "db").write_bytes(os.urandom(20_000))
    with pytest.raises(errors.CorruptError, match="db"):
        await Member(MemberConfig(data_dir=tmp_path)).start()


async def test_the_log_can_live_elsewhere(tmp_path: Path) -> None:
    async with running(tmp_path / "data", wal_dir=tmp_path / "log") as member:
        await put(member, b"a")
    assert list_segments(tmp_path / "log")
    assert not (tmp_path / "data" / "member" / "wal").exists()


# -- limits


def _wait(event: threading.Event) -> None:
    event.wait(10)


async def test_a_request_over_the_limit_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, max_request_bytes=1000) as member:
        with pytest.raises(errors.RequestTooLargeError):
            await put(member, b"a", bytes(1000))
        assert await put(member, b"a", bytes(900)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("defragment", [True, False])
async def test_st_r3_out_of_space_and_recovery(tmp_path: Path, defragment: bool) -> None:
    """ST-R3, etcd-io/etcd#16779, #9992: with the alarm raised nothing adds data, also after room was made and after a restart, and
    everything that makes room works; after it is taken off writes work at once."""
    async with running(tmp_path, quota_backend_bytes=200_000) as member:
        with pytest.raises(errors.NoSpaceError):
            for number in range(1000):
                await put(member, b"k%d" % number, os.urandom(5000))
        alarm = Alarm(member.member_id, AlarmType.NOSPACE)
        assert (await member.alarms()).alarms == (alarm,)
        assert (await member.status()).alarms == ("NOSPACE",)
        with pytest.raises(errors.NoSpaceError):
            await member.txn(TxnRequest(success=(PutRequest(key=b"x", value=b""),)))
        with pytest.raises(errors.NoSpaceError):
            await member.lease_grant(100)
    async with running(tmp_path, quota_backend_bytes=200_000) as member:
        with pytest.raises(errors.NoSpaceError):
            await put(member, b"x")
        assert (await member.range(RangeRequest(key=b"k", range_end=b"l", count_only=True))).count > 5
        deleted = await member.delete_range(DeleteRangeRequest(key=b"k", range_end=b"l"))
        assert deleted.deleted > 5
        await member.compact(deleted.header.revision, physical=True)
        if defragment:
            await member.defragment()
        with pytest.raises(errors.NoSpaceError):
            await put(member, b"x")
        assert (await member.alarm_deactivate(0, AlarmType.NONE)).alarms == (alarm,)
        assert (await member.alarms()).alarms == ()
        await put(member, b"x")
        await member.lease_grant(100)
        with pytest.raises(errors.NoSpaceError):
            for number in range(1000):
                await put(member, b"k%d" % number, os.urandom(5000))
        assert (await member.alarms()).alarms == (alarm,), "the quota goes on to count"


async def test_a_corrupt_cluster_refuses_every_write_until_an_operator_has_looked(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        await put(member, b"k", b"v")
        await member.alarm_activate(0xABC, AlarmType.CORRUPT)
        for write in (
            put(member, b"k", b"w"),
            member.delete_range(DeleteRangeRequest(key=b"k")),
            member.compact(2),
            member.lease_grant(10),
        ):
            with pytest.raises(errors.CorruptAlarmError):
                await write
        assert (await member.range(RangeRequest(key=b"k"))).kvs[0].value == b"v"
        await member.alarm_deactivate(0xABC, AlarmType.CORRUPT)
        await put(member, b"k", b"w")


async def test_auto_compaction_keeps_so_many_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.member.compactor.REVISION_INTERVAL_SECONDS", 0.05)
    async with running(tmp_path, auto_compaction_mode="revision", auto_compaction_retention="10") as member:
        for number in range(40):
            await put(member, b"k", b"%d" % number)
        newest = await member.read_revision()
        await until(lambda: member.collect_metrics().compact_revision == newest - 10)
        with pytest.raises(errors.CompactedError):
            await member.range(RangeRequest(key=b"k", revision=newest - 11))
        assert (await member.range(RangeRequest(key=b"k", revision=newest - 10))).kvs


async def test_long_leases_are_checkpointed_and_renewals_take_that_back(tmp_path: Path) -> None:
    async with running(tmp_path, lease_checkpoint_interval_seconds=0.05) as member:
        lease = await member.lease_grant(100)
        noted = member._machine.lessor.lookup(lease.id)
        assert noted is not None
        await until(lambda: noted.remaining_ttl_seconds > 0)
    async with running(tmp_path, lease_checkpoint_interval_seconds=1000.0) as member:
        found = await member.lease_time_to_live(lease.id)
        assert 90 < found.ttl_seconds < 100
        assert found.granted_ttl_seconds == 100
        assert await member.lease_keep_alive(lease.id) == 100
        noted = member._machine.lessor.lookup(lease.id)
        assert noted is not None
        assert noted.remaining_ttl_seconds == 0
        await member.lease_keep_alive(lease.id)


async def test_too_many_writes_at_a_time_are_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals_module, "PENDING_WRITES_MAX", 10)
    async with running(tmp_path) as member:
        results = await asyncio.gather(*(put(member, b"k%d" % number) for number in range(15)), return_exceptions=True)
        assert [type(result) for result in results] == [int] * 10 + [errors.TooManyRequestsError] * 5
        assert await put(member, b"again") == 12


async def test_what_a_stalled_disk_may_hold_in_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "PENDING_BYTES_MAX", 100_000)
    stalled = threading.Event()
    async with running(tmp_path) as member:
        with failpoints.armed("wal.before_write", lambda: _wait(stalled)):
            writes = []
            for number in range(20):
                writes.append(asyncio.ensure_future(put(member, b"k%d" % number, bytes(10_000))))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            stalled.set()
            results = await asyncio.gather(*writes, return_exceptions=True)
        refused = [result for result in results if isinstance(result, errors.TooManyRequestsError)]
        assert 5 <= len(refused) < 20
        assert len([result for result in results if isinstance(result, int)]) == 20 - len(refused)
        assert await put(member, b"again") == 22 - len(refused)


async def test_a_write_without_an_answer_in_time_is_reported_as_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as member:
        monkeypatch.setattr(member, "_timeout_seconds", -1.0)
        monkeypatch.setattr(member._raft, "propose", lambda data: None)
        with pytest.raises(errors.RequestTimeoutError):
            await put(member, b"lost")


async def test_a_cancelled_write_is_still_done_and_disturbs_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        write = asyncio.ensure_future(put(member, b"a", b"1"))
        await asyncio.sleep(0)
        write.cancel()
        assert await put(member, b"b") == 3
        assert await value_of(member, b"a") == b"1"


# -- leases


@pytest.mark.slow
async def test_an_expired_lease_takes_its_keys_at_one_revision_also_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        lease = await member.lease_grant(1)
        kept = await member.lease_grant(600)
        for key in (b"a", b"b"):
            await put(member, key, lease=lease.id)
        await put(member, b"c", lease=kept.id)
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with running(tmp_path) as member:
        watcher = member.watch(WatchRequest(key=b"\0", range_end=b"\0"))
        await asyncio.wait_for(watcher.wait(), 5)
        assert loop.time() - started >= 1.0, "expired early"
        batch = watcher.take()
        assert batch is not None
        assert [(event.type, event.kv.key) for event in batch.events] == [(api.EventType.DELETE, b"a"), (api.EventType.DELETE, b"b")]
        assert await member.leases() == (kept.id,)
        assert await value_of(member, b"c") == b"v"


@pytest.mark.parametrize("expire_leases", [True, False])
async def test_leases_of_what_is_only_looked_at_do_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expire_leases: bool) -> None:
    async with running(tmp_path, expire_leases=expire_leases) as member:
        lease = await member.lease_grant(600)
        await put(member, b"a", lease=lease.id)
        monkeypatch.setattr(type(member._machine.lessor), "expired", lambda _, now: [lease.id])
        member._maintain()
        await put(member, b"b")  # behind whatever was proposed
        assert await member.leases() == (() if expire_leases else (lease.id,))


# -- views


async def test_metrics_and_status(tmp_path: Path) -> None:
    async with running(tmp_path) as member:
        await put(member, b"a")
        member.watch(WatchRequest(key=b"a"))
        metrics = member.collect_metrics()
        assert metrics.wal_fsync_seconds.count >= 2
        assert metrics.has_leader
        assert metrics.is_leader
        assert metrics.leader_changes_seen == 1
        assert metrics.proposals_applied == metrics.proposals_committed == 4  # the member, the term, its name, the put
        assert metrics.proposals_pending == 0
        assert metrics.current_revision == 2
        assert metrics.watcher_count == 1
        assert metrics.db_total_size_bytes >= metrics.db_in_use_bytes > 0
        status = await member.status()
        assert status.leader_id == member.member_id == status.header.member_id
        assert status.raft_index == status.raft_applied_index == 4
        assert status.header.raft_term == 2
        assert status.alarms == ()
