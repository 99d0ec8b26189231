"""A member is killed again and again: what was acknowledged is there, at its revision; nothing is half there."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from pathlib import Path

import pytest

from storage import api, errors, failpoints
from storage.backend.memory_backend import MemoryBackend
from storage.lease.lessor import Lessor
from storage.member import request
from storage.member.applier import Applier
from storage.member.member import Member
from storage.wal.segment import list_segments
from storage.wal.wal import Wal
from storage.watch.watchable_store import WatchableStore
from tests.storage.member import writer_process

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS_MAX = 20.0


class Acknowledged:
    """What the processes said: key → (value, revision), value None for deleted. Each key has one writer at a time."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str | None, int]] = {}
        self.revisions: list[int] = []
        self.count = 0

    def take(self, output: bytes) -> None:
        for line in output.decode().splitlines(keepends=True):
            words = line.split()
            if not line.endswith("\n") or words[0] == "ready":
                continue
            revision = int(words[-1])
            self.keys[words[1]] = (words[2] if words[0] == "put" else None, revision)
            self.revisions.append(revision)
            self.count += 1

    async def check(self, member: Member) -> None:
        """The store holds each acknowledged change, or a later one of the same key (sent, and not answered before the end)."""
        response = await member.range(api.RangeRequest(key=b"\0", range_end=b"\0"))
        assert response.header.revision >= max(self.revisions, default=1)
        assert len(set(self.revisions)) == len(self.revisions), "two writes were acknowledged at one revision"
        found = {kv.key.decode(): kv for kv in response.kvs}
        for key, (value, revision) in self.keys.items():
            kv = found.get(key)
            if value is not None:
                at = await member.range(api.RangeRequest(key=key.encode(), revision=revision))
                assert at.kvs, f"{key} at {revision} is lost"
                assert (at.kvs[0].value.decode(), at.kvs[0].mod_revision) == (value, revision)
                assert kv is None or kv.mod_revision >= revision
            elif kv is not None:
                assert kv.create_revision > revision, f"the deletion of {key} at {revision} is lost"


def write_and_die(
    data_dir: Path, seed: int, *, seconds: float | None, failpoint: tuple[str, int] | None = None, keep_log: bool = False
) -> bytes:
    """Run the writer until it is killed after ``seconds`` or dies at its failpoint; what it said."""
    command = [sys.executable, "-m", "tests.storage.member.writer_process", str(data_dir), str(seed), "keep" if keep_log else "release"]
    if failpoint:
        command += [failpoint[0], str(failpoint[1])]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    first = process.stdout.readline()
    try:
        output, _ = process.communicate(timeout=START_SECONDS_MAX if seconds is None else seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        assert seconds is not None, f"{failpoint} was not reached"
    assert process.stderr is not None
    assert first == b"ready\n", output
    assert process.returncode in (-9, 9), (process.returncode, output[-2000:])
    return output


def replay_on_a_model(log_dir: Path) -> tuple[int, list[api.KeyValue], list[int]]:
    """Revision, keys and leases of a store in memory that applies the whole log from its first entry."""
    wal, replay = Wal.open(log_dir)
    wal.close()
    backend = MemoryBackend()
    lessor = Lessor(backend)
    store = WatchableStore(backend, lessor)

    def header(revision: int) -> api.ResponseHeader:
        return api.ResponseHeader(cluster_id=1, member_id=1, revision=revision, raft_term=1)

    applier = Applier(store, lessor, make_header=header, monotonic=lambda: 0.0)
    for entry in replay.entries:
        if not entry.data:
            continue
        _, one = request.decode(entry.data)
        with contextlib.suppress(errors.StoreError):
            match one:
                case api.PutRequest():
                    applier.put(one)
                case api.DeleteRangeRequest():
                    applier.delete_range(one)
                case api.TxnRequest():
                    applier.txn(one)
                case request.CompactionRequest():
                    applier.compact(one.revision)
                case request.LeaseGrantRequest():
                    applier.lease_grant(one.id, one.ttl_seconds)
                case request.LeaseRevokeRequest():
                    applier.lease_revoke(one.id)
    kvs = store.range(api.RangeRequest(key=b"\0", range_end=b"\0")).kvs
    return store.current_revision, list(kvs), sorted(lessor.ids())


async def reopen(data_dir: Path, acknowledged: Acknowledged) -> None:
    member = Member(writer_process.config(data_dir))
    await member.start()
    await acknowledged.check(member)
    await member.stop()


@pytest.mark.slow
async def test_sigkill_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(1)
    acknowledged = Acknowledged()
    for round_number in range(12):
        acknowledged.take(write_and_die(tmp_path / "data", round_number, seconds=rng.uniform(0.02, 0.3)))
        await reopen(tmp_path / "data", acknowledged)
    assert acknowledged.count > 500
    segments = list_segments(tmp_path / "data" / "member" / "wal")
    assert segments[0].sequence > 0, "no segment was released"


@pytest.mark.slow
@pytest.mark.parametrize("point", sorted(failpoints.NAMES))
async def test_death_at_each_failpoint(tmp_path: Path, point: str) -> None:
    acknowledged = Acknowledged()
    hits = 20 if point.startswith("member") or "write" in point else 1
    acknowledged.take(write_and_die(tmp_path / "data", 1, seconds=None, failpoint=(point, hits)))
    await reopen(tmp_path / "data", acknowledged)
    acknowledged.take(write_and_die(tmp_path / "data", 2, seconds=None, failpoint=(point, 1 + hits // 10)))
    await reopen(tmp_path / "data", acknowledged)
    assert acknowledged.count > 10


@pytest.mark.slow
async def test_st_f4_after_any_death_the_store_is_what_its_log_says(tmp_path: Path) -> None:
    """Nothing is applied twice and nothing skipped: backend and consistent index are always of one moment."""
    data_dir = tmp_path / "data"
    points = [None, "member.before_apply", "member.after_apply", "backend.before_commit", "backend.after_commit"]
    for round_number, point in enumerate(points):
        write_and_die(
            data_dir, round_number, seconds=None if point else 0.4, failpoint=(point, 3) if point else None, keep_log=True
        )
        revision, kvs, leases = replay_on_a_model(data_dir / "member" / "wal")
        member = Member(writer_process.config(data_dir, keep_log=True))
        await member.start()
        found = await member.range(api.RangeRequest(key=b"\0", range_end=b"\0"))
        found_leases = sorted(await member.leases())
        await member.stop()
        assert found.header.revision == revision
        assert list(found.kvs) == kvs
        assert found_leases == leases
