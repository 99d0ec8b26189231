"""A member dies at every failpoint there is, before and after each durable step; then all its promises are checked (ST-F2, ST-F4).

What is checked after each death: every answer is explained by the log, in real time (nothing acknowledged is lost, nothing applied
twice); watches have no gap and no repeat over the restart; keys, leases, revision and HashKV are those of the log replayed from its first
entry on a store in memory.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import random
import select
import time
from pathlib import Path

import pytest

from storage import api, failpoints
from storage.member import request as log_request
from storage.member.member import Member
from storage.mvcc.kv_hash import hash_kv
from tests.robustness import crash_process, kv_model
from tests.robustness.crash_process import EXIT_CODE, Job
from tests.robustness.journal import Journal
from tests.robustness.linearizability import check_against_log, requests_of
from tests.robustness.offline import hash_of_file, replay
from tests.robustness.watch_promises import Truth, check_watch

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 30.0

WATCHES = {
    "all": api.WatchRequest(key=b"\0", range_end=b"\0", prev_kv=True),
    "one": api.WatchRequest(key=b"k1"),
    "deletions": api.WatchRequest(key=b"k", range_end=b"l", no_put=True),
}

AT_THE_START = {"wal.before_create", "wal.after_create"}
"""Hit once in the life of a directory."""
AFTER_A_CRASH = {"wal.before_cut", "wal.after_cut"}
"""Hit when a log is opened that was not closed."""
HITS = {"wal.before_write": 40, "wal.after_write": 40, "member.before_apply": 40, "member.after_apply": 40}
"""Where the first hit would come before there is anything to lose."""
ELSEWHERE: dict[str, str] = {
    f"{where}.{when}_{step}": "tests/storage/member/test_cluster_snapshots.py"
    for where, step in (("member", "received"), ("member", "installed"), ("wal", "restart"))
    for when in ("before", "after")
}
"""Points that this load never passes, and the test that dies there."""
if not hasattr(Member, "defragment"):
    ELSEWHERE |= {f"backend.{when}_defragmented": "tests/storage/backend" for when in ("before", "after")}


#: Forks from one process that has imported everything: a start takes a tenth of the time.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.robustness.crash_process"])


def run(job: Job, *, told_bytes: int | None = None) -> bytes:
    """What the process told until it died at its point, or was killed once it had told so many bytes."""
    reader, writer = processes.Pipe(duplex=False)
    process = processes.Process(target=crash_process.run, args=(job, writer))
    process.start()
    writer.close()
    deadline = time.monotonic() + SECONDS_MAX
    output = bytearray()
    with reader:
        while True:
            ready = select.select([reader], [], [], max(deadline - time.monotonic(), 0))[0]
            if not ready:
                process.kill()
                raise AssertionError(f"{job.point or told_bytes} was not reached")
            data = os.read(reader.fileno(), 1 << 16)
            if not data:
                break
            output += data
            if told_bytes is not None and len(output) >= told_bytes:
                process.kill()
    process.join()
    assert process.exitcode in (EXIT_CODE, -9), process.exitcode
    return bytes(output)


class Crashes:
    """One data directory over its deaths."""

    def __init__(self, directory: Path) -> None:
        self.data_dir = directory / "data"
        self.journal = Journal()
        self._seed = 0

    def die(self, point: str, hits: int, *, told_bytes: int | None = None) -> None:
        self._seed += 1
        watches = {name: self.journal.resume(name, request) for name, request in WATCHES.items()}
        job = Job(self.data_dir, self._seed, watches, point, hits)
        self.journal.take(run(job, told_bytes=told_bytes))

    async def check(self) -> None:
        archive = Job(self.data_dir, 0, {}).archive
        with failpoints.armed("wal.before_release", archive.keep):
            member = Member(crash_process.config(self.data_dir))
            await member.start()
            found = await member.range(api.RangeRequest(key=b"\0", range_end=b"\0"))
            leases = set(await member.leases())
            await member.stop()
        found_hash = hash_of_file(crash_process.config(self.data_dir).backend_file())
        entries = archive.entries()
        log = requests_of(entries)
        verdict = check_against_log(self.journal.operations, log)
        assert verdict.ok, "\n".join(verdict.problems[:5])
        truth = Truth.of(log)
        for name, streams in self.journal.streams.items():
            assert check_watch(streams, truth, name=name) == []
        state = kv_model.State()
        for request in log:
            state = kv_model.apply(state, request).state
        assert found.header.revision == state.revision
        assert {kv.key: kv for kv in found.kvs} == dict(state.keys)
        assert leases >= set(state.leases), "a lease is lost"
        assert leases <= {request.id for request in log if isinstance(request, log_request.LeaseGrantRequest)}
        replayed = replay(entries)
        assert found_hash == hash_kv(replayed)


def points_in_code() -> set[str]:
    """The names that the code hits."""
    found = set()
    for path in sorted((ROOT / "storage").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "failpoints.hit":
                (name,) = node.args
                assert isinstance(name, ast.Constant), f"{path}:{node.lineno}: the name of a failpoint must be readable here"
                found.add(str(name.value))
    return found


def test_every_point_is_hit_in_the_code_and_named() -> None:
    assert points_in_code() == set(failpoints.NAMES)


def test_points_come_in_pairs_around_their_step() -> None:
    lonely = {name for name in failpoints.NAMES if name.replace(".before_", ".after_") not in failpoints.NAMES}
    lonely |= {name for name in failpoints.NAMES if name.replace(".after_", ".before_") not in failpoints.NAMES}
    assert not lonely


@pytest.mark.slow
@pytest.mark.parametrize("point", sorted(failpoints.NAMES - set(ELSEWHERE)))
async def test_death_at_each_failpoint(tmp_path: Path, point: str) -> None:
    crashes = Crashes(tmp_path)
    hits = HITS.get(point, 1)
    if point in AFTER_A_CRASH:
        crashes.die("member.after_apply", 30)
        crashes.die(point, 1)
    else:
        crashes.die(point, hits)
    await crashes.check()
    if point not in AT_THE_START | AFTER_A_CRASH:
        crashes.die(point, hits + 2)
        await crashes.check()
        assert len(crashes.journal.operations) > 50, "the load did nothing"


@pytest.mark.slow
async def test_sigkill_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(1)
    crashes = Crashes(tmp_path)
    for _ in range(4):
        crashes.die("", 0, told_bytes=rng.randrange(150_000, 500_000))
        await crashes.check()
    assert len(crashes.journal.operations) > 300
