"""Snapshots out of a member and what is refused as one, with the real etcd's tools as the judge."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from storage import api, errors, maintenance
from storage.backend.backend import Bucket
from storage.backend.lmdb_backend import LmdbBackend
from storage.backend.memory_backend import MemoryBackend
from storage.config import MemberConfig
from storage.member.member import Member
from storage.snapshot.database import Snapshot
from storage.snapshot.snapshot_file import open_snapshot, status
from tests.storage.etcd_process import BINARIES, EtcdProcess

SAMPLE = Path(__file__).parents[1] / "data" / "etcd-3.5-snapshot.db.gz"
#: what etcdutl 3.5 and etcdctl said of it
SAMPLE_HASH, SAMPLE_REVISION, SAMPLE_LIVE_KEYS = 3789733202, 402, 303


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "snapshot.db"
    path.write_bytes(gzip.decompress(SAMPLE.read_bytes()))
    return path


def etcdutl(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARIES / "etcdutl", *arguments], capture_output=True, text=True, timeout=60)


def test_status_is_what_etcds_tool_said(sample: Path) -> None:
    found = status(sample)
    assert (found.hash, found.revision, found.version) == (SAMPLE_HASH, SAMPLE_REVISION, "")
    assert found.total_keys >= SAMPLE_LIVE_KEYS
    assert found.total_size == sample.stat().st_size - 32


@pytest.mark.parametrize("cut", [1, 32, 33, 512, 4096, 4096 + 32])
def test_a_truncated_snapshot_is_refused(sample: Path, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut.db"
    path.write_bytes(sample.read_bytes()[:-cut])
    with pytest.raises(errors.SnapshotFileError, match=r"cut short|no hash"), open_snapshot(path):
        pass


@pytest.mark.parametrize("position", [0, 5000, 100_000, -33, -1])
def test_an_altered_snapshot_is_refused(sample: Path, tmp_path: Path, position: int) -> None:
    data = bytearray(sample.read_bytes())
    data[position] ^= 1
    path = tmp_path / "altered.db"
    path.write_bytes(data)
    with pytest.raises(errors.SnapshotFileError, match="altered"), open_snapshot(path):
        pass
    with pytest.raises(errors.SnapshotFileError, match="altered"):
        status(path)


def test_a_database_without_a_hash_is_taken_only_on_demand(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(sample.read_bytes()[:-32])
    with pytest.raises(errors.SnapshotFileError, match="--skip-hash-check"), open_snapshot(path):
        pass
    with open_snapshot(path, skip_hash_check=True) as reader:
        assert b"key" in reader.buckets()
    assert status(path).hash == SAMPLE_HASH


@pytest.mark.parametrize("content", [b"", b"no snapshot at all", b"x" * 8192 + hashlib.sha256(b"x" * 8192).digest()])
def test_what_is_no_snapshot_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for skip in (False, True):
        with pytest.raises(errors.SnapshotFileError, match=str(path)), open_snapshot(path, skip_hash_check=skip):
            pass


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.SnapshotFileError, match=r"nowhere.*No such file"):
        status(tmp_path / "nowhere")


async def write_history(member: Member) -> None:
    """All that has a record of its own: versions, deletes, leases, a compaction, values of every size."""
    lease = await member.lease_grant(1000)
    for number in range(300):
        await member.put(api.PutRequest(key=b"k%d" % (number % 40), value=b"v" * (number * 37 % 9000), lease=lease.id if number % 5 else 0))
        if number % 30 == 29:
            await member.delete_range(api.DeleteRangeRequest(key=b"k1", range_end=b"k2"))
    await member.put(api.PutRequest(key=b"large", value=b"L" * 1_000_000))
    await member.compact(200, physical=True)
    await member.put(api.PutRequest(key=b"last", value=b""))


async def save(stream: maintenance.SnapshotStream, path: Path) -> None:
    data = b"".join([chunk async for chunk in stream.chunks])
    assert len(data) == stream.size
    path.write_bytes(data)  # noqa: ASYNC240  (a test)


@pytest.mark.slow
async def test_a_real_etcd_starts_on_a_members_snapshot_with_equal_hash(tmp_path: Path) -> None:
    member = Member(MemberConfig(data_dir=tmp_path / "member"))
    await member.start()
    try:
        await write_history(member)
        path = tmp_path / "snapshot.db"
        stream = await member.snapshot()
        expected = await member.hash_kv()
        listed = (await member.range(api.RangeRequest(key=b"\0", range_end=b"\0"))).kvs
        # What is written while it is read is not in it.
        await member.put(api.PutRequest(key=b"too late", value=b""))
        await save(stream, path)
        # Not at the compact revision itself: etcd before 3.5.16 refuses that.
        hashes = [await member.hash_kv(revision) for revision in range(201, expected.hash_revision, 25)]
    finally:
        await member.stop()

    ours, theirs = status(path), etcdutl("snapshot", "status", path, "-w", "json")
    assert theirs.returncode == 0, theirs.stderr
    assert json.loads(theirs.stdout)["hash"] == ours.hash
    assert json.loads(theirs.stdout)["revision"] == ours.revision == expected.hash_revision
    assert json.loads(theirs.stdout)["totalSize"] == ours.total_size

    restored = etcdutl("snapshot", "restore", path, "--data-dir", tmp_path / "etcd", *EtcdProcess.RESTORE_FLAGS)
    assert restored.returncode == 0, restored.stderr
    with EtcdProcess(tmp_path / "etcd") as etcd:
        assert etcd.hash_kv(expected.hash_revision) == (expected.hash, expected.compact_revision)
        for found in hashes:
            assert etcd.hash_kv(found.hash_revision) == (found.hash, found.compact_revision)
        assert etcd.range_all() == list(listed)


async def test_reading_a_snapshot_can_be_given_up(tmp_path: Path) -> None:
    """The view is given back: what it pinned can be reused."""
    member = Member(MemberConfig(data_dir=tmp_path / "member"))
    await member.start()
    try:
        await member.put(api.PutRequest(key=b"a", value=b"v" * 1_000_000))
        for reads in range(2):
            stream = await member.snapshot()
            for _ in range(reads):
                await anext(stream.chunks)
            await stream.chunks.aclose()  # type: ignore[attr-defined]
            with pytest.raises(errors.UnavailableError):
                while True:
                    await anext(stream.chunks)
        open_at_stop = await member.snapshot()
    finally:
        await member.stop()
    with pytest.raises(errors.UnavailableError):
        await anext(open_at_stop.chunks)


def test_the_same_view_gives_the_same_file(tmp_path: Path) -> None:
    """Two backends of different kinds, also with parts that are not on disk yet."""
    files = []
    for backend in (MemoryBackend(), LmdbBackend(tmp_path / "db")):
        for number in range(1000):
            backend.put(Bucket.KEY, b"%08d_%08d" % (number, 0), b"v" * (number * 7 % 3000))
            if number == 700:
                backend.commit()
        view = backend.view()
        snapshot = Snapshot(view)
        files.append(b"".join(snapshot.chunks()))
        assert len(files[-1]) == snapshot.file_bytes
        view.close()
        backend.close()
    assert files[0] == files[1]
    assert hashlib.sha256(files[0][:-32]).digest() == files[0][-32:]
