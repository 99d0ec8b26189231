"""A member that lacks what the log holds no more is sent the database; a crash at any point of it leaves a directory that starts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import api, errors, failpoints
from storage.backend.backend import Bucket
from storage.backend.memory_backend import MemoryBackend
from storage.member import cluster_service
from storage.member.database_stream import Reader, chunks_of
from storage.member.member import Member
from storage.mvcc.kv_hash import hash_kv
from storage.raft.messages import ConfState, Entry, HardState, SnapshotMetadata
from storage.verify import check_store
from storage.wal.wal import Wal
from tests.storage.member.cluster import Cluster, put, running_cluster, until, value_of


@pytest.fixture(autouse=True)
def healthy_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_service, "HEALTH_SECONDS", 0.0)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Its leader forgets applied entries at once."""
    async with running_cluster(tmp_path, snapshot_count=20, snapshot_catchup_entries=1) as cluster:
        await cluster.published()
        yield cluster


async def write(kv: api.KV, count: int, start: int = 0) -> None:
    await asyncio.gather(*(put(kv, b"k%03d" % number, b"%d" % number) for number in range(start, start + count)))


async def forgotten(member: Member) -> None:
    """Wait until the member could not bring another up to date from its log."""
    await until(lambda: member._log_storage.entry_count() <= 1, "a compacted log")


async def same_everywhere(cluster: Cluster) -> None:
    await cluster.converged()
    hashes = {hash_kv(member._machine.store.store).hash for member in cluster.members.values()}
    assert len(hashes) == 1
    for member in cluster.members.values():
        check_store(member._machine.store.store, member._machine.lessor)


async def lag_of(cluster: Cluster, follower: Member) -> None:
    cluster.network.isolate(follower.member_id)
    leader = next(one for one in cluster.members.values() if one is not follower)
    await write(leader, 50)
    await forgotten(cluster.leader())


async def lag(cluster: Cluster) -> Member:
    """A follower that was cut off while the log moved on without it."""
    follower = cluster.followers()[0]
    await lag_of(cluster, follower)
    return follower


# -- catching up


async def test_a_member_that_was_away_too_long_is_sent_the_database(cluster: Cluster) -> None:
    lease = await cluster.leader().lease_grant(600)
    follower = await lag(cluster)
    await put(cluster.leader(), b"leased", lease=lease.id)
    await cluster.leader().compact(40)
    await forgotten(cluster.leader())
    cluster.network.heal()
    await same_everywhere(cluster)
    assert await value_of(follower, b"k049") == b"49"
    assert (await follower.lease_time_to_live(lease.id, keys=True)).keys == (b"leased",)
    with pytest.raises(errors.CompactedError):
        await follower.range(api.RangeRequest(key=b"k000", revision=10))
    await write(follower, 10, start=100)
    await same_everywhere(cluster)
    name = follower.config.name
    await cluster.stop(name)
    await cluster.start(name)
    await cluster.ready()
    await same_everywhere(cluster)


async def test_a_member_that_is_added_late_is_sent_the_database(cluster: Cluster) -> None:
    await write(cluster.leader(), 50)
    await forgotten(cluster.leader())
    await cluster.leader().member_add((cluster.url(4),))
    await cluster.start("m4", initial_cluster={**cluster.initial, "m4": (cluster.url(4),)}, initial_cluster_state="existing")
    await cluster.ready()
    await same_everywhere(cluster)
    await cluster.published()
    assert {one.name for one in (await cluster.members["m4"].members()).members} == {"m1", "m2", "m3", "m4"}


async def test_watches_go_on_over_an_installed_database_without_gap_or_repeat(cluster: Cluster) -> None:
    follower = cluster.followers()[0]
    seen: list[int] = []

    async def follow(watcher: api.Watcher) -> None:
        while True:
            batch = watcher.take()
            if batch is None:
                await watcher.wait()
            else:
                seen.extend(event.kv.mod_revision for event in batch.events)

    await put(follower, b"k", b"before")
    watching = asyncio.ensure_future(follow(follower.watch(api.WatchRequest(key=b"k", range_end=b"l"))))
    await lag_of(cluster, follower)
    cluster.network.heal()
    await cluster.converged()
    await write(follower, 5, start=200)
    await until(lambda: len(seen) >= 55, "all events")
    watching.cancel()
    first = seen[0]
    assert seen == list(range(first, first + 55))


async def test_a_watch_that_the_new_database_has_compacted_is_told_so(cluster: Cluster) -> None:
    follower = cluster.followers()[0]
    watcher = follower.watch(api.WatchRequest(key=b"k", range_end=b"l"))
    await lag_of(cluster, follower)
    await cluster.leader().compact(40)
    await forgotten(cluster.leader())
    cluster.network.heal()
    await cluster.converged()
    with pytest.raises(errors.CompactedError) as caught:
        while watcher.take() is not None:
            pass
    assert caught.value.compact_revision == 40
    watcher.cancel()


async def test_changes_of_the_membership_come_with_the_database(cluster: Cluster) -> None:
    follower, other = cluster.followers()
    cluster.network.isolate(follower.member_id)
    urls = (*other.config.peer_urls(), cluster.url(9))
    await other.member_update(other.member_id, urls)
    await write(cluster.leader(), 50)
    await forgotten(cluster.leader())
    cluster.network.heal()
    await cluster.converged()
    listed = {one.id: one.peer_urls for one in (await follower.members()).members}
    assert listed[other.member_id] == urls
    assert follower._raft.node.conf_state() == cluster.leader()._raft.node.conf_state()


async def test_a_broken_stream_is_tried_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    follower = await lag(cluster)
    feed = Reader.feed
    broken: list[int] = []

    def damaged(self: Reader, data: bytes) -> object:
        if not broken:
            broken.append(len(data))
            return feed(self, data[:-20] + bytes(20))
        return feed(self, data)

    monkeypatch.setattr(Reader, "feed", damaged)
    cluster.network.heal()
    await same_everywhere(cluster)
    assert broken
    assert follower.failure is None


# -- crashes on the way


@pytest.mark.parametrize("point", sorted(name for name in failpoints.NAMES if name.endswith(("_received", "_installed", "_restart"))))
async def test_a_crash_while_a_database_is_taken_leaves_a_directory_that_starts(cluster: Cluster, point: str) -> None:
    """The member dies there: it does nothing more, and a new process finds the files as they are."""
    follower = await lag(cluster)
    name = follower.config.name
    died = asyncio.Event()
    loop = asyncio.get_running_loop()

    class DiedError(Exception):
        pass

    def die() -> None:
        loop.call_soon_threadsafe(died.set)
        raise DiedError(point)

    with failpoints.armed(point, die):
        cluster.network.heal()
        async with asyncio.timeout(20):
            await died.wait()
        cluster.network.isolate(follower.member_id)
        loop.set_exception_handler(lambda loop, context: None)  # it died in a callback
        follower._raft.halt()
        await cluster.crash(name)
    cluster.network.heal()
    await cluster.start(name)
    await cluster.ready()
    await same_everywhere(cluster)
    snap = cluster.directory / name / "member" / "snap"
    assert sorted(path.name for path in snap.iterdir()) == ["db", "db-lock"]


# -- the log


def test_a_log_that_begins_anew_holds_nothing_from_before(tmp_path: Path) -> None:
    """Entries after the snapshot's index that a deposed leader had sent must not come back with a restart: they would make this log look
    newer than it is, in a vote."""
    conf = ConfState((1, 2, 3))
    wal = Wal.create(tmp_path, metadata=b"m", snapshot=SnapshotMetadata(conf))
    wal.save(HardState(3, 0, 2), [Entry(3, index) for index in range(1, 121)])
    wal.restart_at(SnapshotMetadata(conf, 100, 5))
    wal.save(HardState(5, 0, 100), [])
    wal.close()
    wal, replay = Wal.open(tmp_path)
    assert (replay.snapshot.index, replay.snapshot.term, replay.entries) == (100, 5, [])
    wal.save(HardState(5, 0, 101), [Entry(5, 101)])
    wal.save_snapshot(SnapshotMetadata(conf, 101, 5))
    wal.save(None, [Entry(5, 102)])
    wal.restart_at(SnapshotMetadata(conf, 500, 6))  # beyond all that is known
    wal.save(HardState(6, 0, 500), [Entry(6, 501)])
    wal.close()
    wal, replay = Wal.open(tmp_path)
    assert (replay.snapshot.index, [entry.index for entry in replay.entries]) == (500, [501])
    wal.close()


# -- the stream


def filled() -> MemoryBackend:
    backend = MemoryBackend()
    for number in range(40):
        backend.put(Bucket.KEY, b"%05d" % number, bytes(number * 37))
    backend.put(Bucket.META, b"m", b"")
    backend.put(Bucket.MEMBERS, b"1", b"x")
    return backend


@given(st.lists(st.integers(1, 40_000), max_size=20))
def test_a_database_is_read_back_however_its_stream_is_cut(cuts: list[int]) -> None:
    backend = filled()
    stream = b"".join(chunks_of(backend.view()))
    reader, found = Reader(), []
    at = 0
    for cut in sorted(cuts):
        found += reader.feed(stream[at:cut])
        at = max(at, min(cut, len(stream)))
    found += reader.feed(stream[at:])
    reader.finish()
    assert [(record.bucket, record.key, record.value) for record in found] == [
        (bucket, key, value) for bucket in Bucket for key, value in backend.range(bucket, b"", None)
    ]


@given(st.data())
def test_a_damaged_or_shortened_stream_is_never_taken(data: st.DataObject) -> None:
    stream = bytearray(b"".join(chunks_of(filled().view())))
    at = data.draw(st.integers(0, len(stream) - 1))
    if data.draw(st.booleans()):
        del stream[at:]
    else:
        stream[at] ^= 1 << data.draw(st.integers(0, 7))
    reader = Reader()
    with pytest.raises(errors.SnapshotFileError):
        reader.feed(bytes(stream))
        reader.finish()
