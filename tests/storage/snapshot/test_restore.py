"""A member starts on a snapshot of a real etcd or of another member, as the first of a new cluster."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import lmdb
import pytest

from storage import api, errors
from storage.backend.backend import Bucket
from storage.backend.lmdb_backend import LmdbBackend
from storage.backend.memory_backend import MemoryBackend
from storage.config import MemberConfig
from storage.etcdclient.config import ClientConfig
from storage.lease.lessor import Lessor
from storage.member.member import Member
from storage.mvcc import kv_codec
from storage.mvcc.revision import revision_key
from storage.snapshot import save
from storage.snapshot.database import Snapshot
from storage.snapshot.restore import RestoreOptions, restore
from storage.snapshot.snapshot_file import open_snapshot, status
from storage.verify import check_store
from tests.storage.etcd_process import EtcdProcess

SAMPLE = Path(__file__).parents[1] / "data" / "etcd-3.5-snapshot.db.gz"
#: what etcdctl said of the cluster when the snapshot was taken
SAMPLE_REVISION, SAMPLE_HASH_KV, SAMPLE_KEYS = 402, 3506018307, 303
THREE = {f"m{number}": (f"http://127.0.0.1:2150{number}",) for number in range(1, 4)}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "snapshot.db"
    path.write_bytes(gzip.decompress(SAMPLE.read_bytes()))
    return path


def options(data_dir: Path, **changes: object) -> RestoreOptions:
    return RestoreOptions(config=MemberConfig(data_dir=data_dir), **changes)  # type: ignore[arg-type]


def snapshot_of(backend: MemoryBackend, path: Path) -> Path:
    view = backend.view()
    path.write_bytes(b"".join(Snapshot(view).chunks()))
    return path


def history(path: Path, revision: int) -> Path:
    """A snapshot of a store with a put of k at each revision up to this one."""
    backend = MemoryBackend()
    for main in range(2, revision + 1):
        backend.put(Bucket.KEY, revision_key(main), kv_codec.encode_fields(b"k", 2, main, main - 1, b"%d" % main, 0))
    return snapshot_of(backend, path)


async def test_a_member_starts_on_the_snapshot_of_a_real_etcd(sample: Path, tmp_path: Path) -> None:
    restored = restore(sample, options(tmp_path / "data"))
    assert restored.revision == SAMPLE_REVISION
    assert not restored.auth_enabled
    for _ in range(2):
        member = Member(MemberConfig(data_dir=tmp_path / "data"))
        await member.start()
        try:
            assert (member.member_id, member.cluster_id) == (restored.member_id, restored.cluster_id)
            assert await member.read_revision() >= SAMPLE_REVISION
            found = await member.hash_kv(SAMPLE_REVISION)
            assert (found.hash, found.compact_revision) == (SAMPLE_HASH_KV, -1)
            registry = await member.range(
                api.RangeRequest(key=b"/registry/", range_end=b"/registry0", revision=SAMPLE_REVISION, count_only=True)
            )
            assert registry.count == SAMPLE_KEYS
            assert len(await member.leases()) > 0
            await member.put(api.PutRequest(key=b"new", value=b"after"))
        finally:
            await member.stop()


def test_nothing_of_the_old_cluster_is_left(tmp_path: Path) -> None:
    old = MemoryBackend()
    old.put(Bucket.KEY, revision_key(2), kv_codec.encode_fields(b"k", 2, 2, 1, b"v", 0))
    old.put(Bucket.META, b"consistent_index", (7000).to_bytes(8, "big"))
    old.put(Bucket.META, b"term", (70).to_bytes(8, "big"))
    old.put(Bucket.META, b"confState", b"{}")
    old.put(Bucket.META, b"storageVersion", b"3.6.0")
    old.put(Bucket.MEMBERS, b"abc", b'{"id":2748}')
    old.put(Bucket.MEMBERS_REMOVED, b"def", b"removed")
    old.put(Bucket.ALARM, b"\x08\x01\x10\x01", b"")
    old.put(Bucket.CLUSTER, b"clusterVersion", b"3.6.0")
    old.put(Bucket.AUTH, b"authEnabled", b"\1")
    restored = restore(snapshot_of(old, tmp_path / "file"), options(tmp_path / "data"))
    assert restored.auth_enabled
    backend = LmdbBackend(tmp_path / "data" / "member" / "snap" / "db")
    contents = {bucket.name: dict(backend.range(bucket, b"", None)) for bucket in Bucket}
    backend.close()
    assert contents["META"] == {
        b"consistent_index": (1).to_bytes(8, "big"),
        b"term": (1).to_bytes(8, "big"),
        b"storageVersion": b"3.6.0",
    }
    url = b"http://localhost:2380"
    assert contents["MEMBERS"] == {b"%x" % restored.member_id: b'{"id":%d,"peerURLs":["%b"],"name":"default"}' % (restored.member_id, url)}
    assert contents["MEMBERS_REMOVED"] == contents["ALARM"] == {}
    assert contents["CLUSTER"] == {b"clusterVersion": b"3.6.0"}


def test_the_members_of_a_new_cluster_agree(sample: Path, tmp_path: Path) -> None:
    """Each is restored on its own machine, from a copy of the file, without a word between them."""
    restored = [
        restore(sample, RestoreOptions(config=MemberConfig(data_dir=tmp_path / name, name=name, initial_cluster=THREE))) for name in THREE
    ]
    assert len({each.cluster_id for each in restored}) == 1
    assert len({each.member_id for each in restored}) == 3
    backends = [LmdbBackend(tmp_path / name / "member" / "snap" / "db") for name in THREE]
    contents = [[backend.range(bucket, b"", None) for bucket in Bucket] for backend in backends]
    for backend in backends:
        backend.close()
    assert contents[0] == contents[1] == contents[2]
    assert len(contents[0][Bucket.MEMBERS]) == 3


def test_ids_are_new_unless_the_old_token_is_given(sample: Path, tmp_path: Path) -> None:
    """Two clusters of one id would take each other's members for their own."""
    ids = {token: restore(sample, options(tmp_path / f"data-{token}", token=token)) for token in (None, "etcd-cluster", "other")}
    assert len({each.cluster_id for each in ids.values()}) == 3
    assert len({each.member_id for each in ids.values()}) == 3


@pytest.mark.parametrize("damage", ["truncated", "altered", "no hash", "empty", "missing"])
def test_a_refused_file_leaves_no_directory(sample: Path, tmp_path: Path, damage: str) -> None:
    data = sample.read_bytes()
    path = tmp_path / "file.db"
    match damage:
        case "truncated":
            path.write_bytes(data[: len(data) // 2])
        case "altered":
            path.write_bytes(data[:300_000] + bytes([data[300_000] ^ 1]) + data[300_001:])
        case "no hash":
            path.write_bytes(data[:-32])
        case "empty":
            path.write_bytes(b"")
    with pytest.raises(errors.SnapshotFileError, match=str(path)):
        restore(path, options(tmp_path / "data"))
    assert not (tmp_path / "data").exists()


def test_an_altered_database_is_refused_also_without_its_hash(sample: Path, tmp_path: Path) -> None:
    """What the structure shows is refused, and half a copy is removed."""
    data = bytearray(sample.read_bytes()[:-32])
    with open_snapshot(sample) as reader:
        pages = len(data) // reader.meta.page_bytes
        page_bytes = reader.meta.page_bytes
    refused = 0
    for page in range(2, pages, 9):
        damaged = bytearray(data)
        damaged[page * page_bytes : page * page_bytes + 64] = b"\xff" * 64
        path = tmp_path / "db"
        path.write_bytes(damaged)
        target = tmp_path / f"data-{page}"
        try:
            restore(path, options(target, skip_hash_check=True))
        except errors.SnapshotFileError:
            refused += 1
            assert list(target.iterdir()) == [] if target.exists() else True
    assert refused > 3


def test_a_copy_of_a_database_is_taken_on_demand(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(sample.read_bytes()[:-32])
    assert restore(path, options(tmp_path / "data", skip_hash_check=True)).revision == SAMPLE_REVISION


def test_a_database_that_is_not_etcds_is_refused(tmp_path: Path) -> None:
    backend = MemoryBackend()
    backend.put(Bucket.KEY, b"no revision", b"")
    with pytest.raises(errors.SnapshotFileError, match="no revision"):
        restore(snapshot_of(backend, tmp_path / "file"), options(tmp_path / "data"))
    backend = MemoryBackend()
    backend.put(Bucket.KEY, revision_key(2), b"no key-value")
    with pytest.raises(errors.SnapshotFileError):
        restore(snapshot_of(backend, tmp_path / "file"), options(tmp_path / "data"))


def test_a_member_that_is_there_is_not_overwritten(sample: Path, tmp_path: Path) -> None:
    restore(sample, options(tmp_path / "data"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")}
    with pytest.raises(errors.DataDirError, match="exists"):
        restore(sample, options(tmp_path / "data"))
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").rglob("*")} == before


@pytest.mark.parametrize("bad", [{"bump_revision": 5}, {"mark_compacted": True}, {"bump_revision": -1, "mark_compacted": True}])
def test_a_bump_alone_is_refused(tmp_path: Path, bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="--bump-revision"):
        options(tmp_path / "data", **bad).validate()


async def test_st_b1_restored_revisions_move_forward(tmp_path: Path) -> None:
    """ST-B1: a snapshot at 100, an informer that has seen 150, a restore with a bump of 1000: the informer is told that its history is
    gone, and no revision means two things."""
    path = history(tmp_path / "file", 100)
    restored = restore(path, options(tmp_path / "data", bump_revision=1000, mark_compacted=True))
    assert restored.revision == 1100
    config = MemberConfig(data_dir=tmp_path / "data")
    member = Member(config)
    await member.start()
    try:
        assert await member.read_revision() == 1100
        watcher = member.watch(api.WatchRequest(key=b"k", start_revision=151))
        with pytest.raises(errors.CompactedError) as compacted:
            await watcher.wait()
            watcher.take()
        assert compacted.value.compact_revision == 1100
        with pytest.raises(errors.CompactedError):
            await member.range(api.RangeRequest(key=b"k", revision=100))
        newest = await member.range(api.RangeRequest(key=b"k"))
        assert (newest.kvs[0].value, newest.kvs[0].mod_revision, newest.header.revision) == (b"100", 100, 1100)
        put = await member.put(api.PutRequest(key=b"k", value=b"new"))
        assert put.header.revision == 1101
        resumed = member.watch(api.WatchRequest(key=b"k", start_revision=1101))
        batch = resumed.take()
        assert batch is not None
        assert [event.kv.mod_revision for event in batch.events] == [1101]
        await member._machine.compaction_finished()
        check_store(member._machine.store.store, member._machine.lessor)
    finally:
        await member.stop()
    again = Member(config)
    await again.start()
    assert await again.read_revision() == 1101
    await again.stop()


async def test_what_etcdutl_bumped_is_taken(tmp_path: Path) -> None:
    """Newer ``etcdutl snapshot restore --bump-revision`` leaves a record without any content at the bumped revision."""
    backend = MemoryBackend()
    backend.put(Bucket.KEY, revision_key(2), kv_codec.encode_fields(b"k", 2, 2, 1, b"v", 0))
    backend.put(Bucket.KEY, revision_key(5002), b"")
    backend.put(Bucket.META, b"scheduledCompactRev", revision_key(5002))
    path = snapshot_of(backend, tmp_path / "file")
    assert status(path).revision == 5002
    assert restore(path, options(tmp_path / "data")).revision == 5002
    member = Member(MemberConfig(data_dir=tmp_path / "data"))
    await member.start()
    try:
        found = await member.range(api.RangeRequest(key=b"\0", range_end=b"\0"))
        assert ([kv.key for kv in found.kvs], found.count, found.header.revision) == ([b"k"], 1, 5002)
        assert (await member.put(api.PutRequest(key=b"k", value=b"w"))).header.revision == 5003
    finally:
        await member.stop()


@pytest.mark.slow
async def test_there_and_back_over_a_real_etcd(tmp_path: Path) -> None:
    """etcd → file → member → file → … every HashKV equal; saved by etcd's own API from the one, from a stopped directory of the other."""
    with EtcdProcess(tmp_path / "etcd") as etcd:
        etcd.call("/v3/lease/grant", {"ID": 7, "TTL": 5000})
        for number in range(200):
            body = {"key": "a2V5", "value": "dmFsdWVz" * (number % 50 + 1) if number % 4 == 0 else "dg=="}
            etcd.call("/v3/kv/put", body if number % 3 else body | {"lease": 7})
            if number % 40 == 39:
                etcd.call("/v3/kv/deleterange", {"key": "a2V5"})
        etcd.call("/v3/kv/compaction", {"revision": 120, "physical": True})
        found = await save.save_from_endpoint(ClientConfig(endpoints=(f"http://{etcd.target}",)), tmp_path / "one.db")
        expected = etcd.hash_kv(found.revision)
        listed = etcd.range_all()
    restore(tmp_path / "one.db", options(tmp_path / "data"))
    again = await save.save_from_data_dir(MemberConfig(data_dir=tmp_path / "data"), tmp_path / "two.db")
    assert again.revision == found.revision
    assert again.total_keys == found.total_keys
    restore(tmp_path / "two.db", options(tmp_path / "second"))
    member = Member(MemberConfig(data_dir=tmp_path / "second"))
    await member.start()
    try:
        response = await member.hash_kv(found.revision)
        assert (response.hash, response.compact_revision) == expected
        kvs = (await member.range(api.RangeRequest(key=b"\0", range_end=b"\0"))).kvs
        assert list(kvs) == listed
        assert await member.leases() == (7,)
    finally:
        await member.stop()


async def test_saving_needs_a_stopped_member(tmp_path: Path) -> None:
    config = MemberConfig(data_dir=tmp_path / "data")
    with pytest.raises(errors.DataDirError, match="no member"):
        await save.save_from_data_dir(config, tmp_path / "file")
    member = Member(config)
    await member.start()
    try:
        await member.put(api.PutRequest(key=b"a", value=b"1"))
        with pytest.raises(errors.DataDirLockedError):
            await save.save_from_data_dir(config, tmp_path / "file")
    finally:
        await member.stop()
    found = await save.save_from_data_dir(config, tmp_path / "file")
    assert (found.revision, found.total_keys) == (2, 1)
    assert sorted(os.listdir(tmp_path)) == ["data", "file"]


def test_a_full_disk_leaves_nothing_behind(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise lmdb.DiskError("no space left on device")

    (tmp_path / "data" / "member.restoring-1" / "snap").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr("storage.backend.lmdb_file.LmdbFile.commit", fail)
        with pytest.raises(errors.DataDirError, match="no space left"):
            restore(sample, options(tmp_path / "data"))
    assert list((tmp_path / "data").iterdir()) == [], "nor what an earlier crash had left"
    restore(sample, options(tmp_path / "data"))


async def test_a_save_that_cannot_be_finished_leaves_the_file_of_before(sample: Path, tmp_path: Path) -> None:
    """Whether the source fails, the disk is full, or what came is not whole."""
    path = tmp_path / "file"
    data = sample.read_bytes()  # noqa: ASYNC240

    async def chunks(data: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
        yield data
        if error is not None:
            raise error

    before = await save._write(path, chunks(data))
    for failing, expected in (
        (chunks(data, OSError(28, "No space left on device")), "No space left"),
        (chunks(data, errors.UnavailableError("gone")), "gone"),
        (chunks(data[:-4096]), "does not fit"),
        (chunks(data[:-32]), "no hash"),
    ):
        with pytest.raises(errors.StoreError, match=expected):
            await save._write(path, failing)
        assert status(path) == before
        assert os.listdir(tmp_path) == ["file"]


def test_a_large_snapshot_is_restored_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.snapshot.restore.BATCH_BYTES", 50_000)
    path = history(tmp_path / "file", 3000)
    restore(path, options(tmp_path / "data"))
    backend = LmdbBackend(tmp_path / "data" / "member" / "snap" / "db")
    store = Lessor(backend)
    assert store.ids() == ()
    records = backend.keys(Bucket.KEY, b"", None)
    backend.close()
    assert records == [revision_key(main) for main in range(2, 3001)]
    assert hashlib.sha256(path.read_bytes()[:-32]).digest() == path.read_bytes()[-32:]
