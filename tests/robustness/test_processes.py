"""Members as real processes: a bounded share of the faults (``python -m tests.robustness`` draws from all), and what a cluster promises."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from storage import api, errors
from tests.robustness.processes import CALL_SECONDS, RealCluster
from tests.robustness.run import run_once

pytestmark = pytest.mark.slow

IN_EVERY_BUILD = ("kill_leader", "deaf_leader", "fill_disk", "lag_behind_a_snapshot")
SERVED_AGAIN_SECONDS = 2.0
"""After the leader's death. A machine that is busy with other things gets more (``SLACK``)."""
SLACK = float(os.environ.get("TEST_TIME_SLACK", "4"))
KEY = b"key"


def put(value: bytes) -> api.PutRequest:
    return api.PutRequest(key=KEY, value=value)


def get() -> api.RangeRequest:
    return api.RangeRequest(key=KEY)


@pytest.mark.parametrize("fault", IN_EVERY_BUILD)
async def test_all_promises_hold_over_a_fault(tmp_path: Path, fault: str) -> None:
    report = await run_once(fault, 1, tmp_path)
    assert not report.problems, str(report)
    assert report.operations > 20


async def test_when_the_leader_dies_another_serves_soon(tmp_path: Path) -> None:
    async with RealCluster(tmp_path).running() as cluster:
        leader = await cluster.leader()
        others = [name for name in cluster.members if name != leader]
        kv = await cluster.client(others[0])
        written = (await kv.put(put(b"before"))).header.revision
        cluster.kill(leader)
        seconds = await cluster.wait_served(others[0])
        found = await kv.range(get())
        assert found.kvs[0].value == b"before"
        assert found.header.revision > written
        assert seconds < SERVED_AGAIN_SECONDS * SLACK, seconds
        await cluster.wait_served(others[1])


async def test_without_a_quorum_calls_fail_in_time_and_nothing_diverges(tmp_path: Path) -> None:
    async with RealCluster(tmp_path).running() as cluster:
        survivor, *dead = sorted(cluster.members)
        kv = await cluster.client(survivor)
        await kv.put(put(b"before"))
        for name in dead:
            cluster.kill(name)
        for call in (lambda: kv.put(put(b"lost")), lambda: kv.range(get())):
            started = time.monotonic()
            with pytest.raises(errors.UnavailableError):
                await call()
            assert time.monotonic() - started < CALL_SECONDS + SLACK
        for name in dead:
            await cluster.start_member(name)
        await cluster.wait_served()
        values = {name: (await (await cluster.client(name)).range(get())).kvs[0].value for name in cluster.members}
        assert len(set(values.values())) == 1, values
        assert set(values.values()) <= {b"before", b"lost"}


async def test_an_old_leader_alone_steps_down_and_never_answers_from_the_past(tmp_path: Path) -> None:
    async with RealCluster(tmp_path).running() as cluster:
        leader = await cluster.leader()
        alone = await cluster.client(leader)
        await alone.put(put(b"old"))
        other = next(name for name in cluster.members if name != leader)
        cluster.isolate(leader)
        reads: list[bytes | None] = []
        written = False

        async def read_on() -> None:
            while not written or len(reads) < 2:
                try:
                    found = await alone.range(get())
                    if written:
                        reads.append(found.kvs[0].value)
                except errors.StoreError:
                    reads.append(None)

        reader = asyncio.create_task(read_on())
        await cluster.wait_served(other)
        await (await cluster.client(other)).put(put(b"new"))
        written = True
        await reader
        assert set(reads) == {None}, f"the old leader answered {reads} after others had written"
        with pytest.raises(errors.UnavailableError, match="no leader"):
            await alone.status()
        cluster.mend()
        await cluster.wait_served()
        assert (await alone.range(get())).kvs[0].value == b"new"


async def test_all_at_once_restarted_go_on(tmp_path: Path) -> None:
    async with RealCluster(tmp_path).running() as cluster:
        kv = await cluster.client("m1")
        revisions = [(await kv.put(put(b"%d" % number))).header.revision for number in range(20)]
        for name in cluster.members:
            cluster.kill(name)
        await asyncio.gather(*(cluster.start_member(name) for name in cluster.members))
        await cluster.wait_served()
        found = await kv.range(get())
        assert (found.kvs[0].value, found.kvs[0].mod_revision) == (b"19", revisions[-1])


@pytest.mark.parametrize("disk", ["empty", "older"])
async def test_a_member_whose_disk_went_back_is_refused(tmp_path: Path, disk: str) -> None:
    """It has promised what it no longer has: were it let in, a quorum could forget an acknowledged write."""
    async with RealCluster(tmp_path).running() as cluster:
        leader = await cluster.leader()
        name = next(each for each in cluster.members if each != leader)
        member = cluster.members[name]
        await cluster.terminate(name)
        older = tmp_path / "older"
        shutil.copytree(member.data_dir, older)
        await cluster.start_member(name)
        await cluster.wait_served()
        kv = await cluster.client(leader)
        for number in range(30):
            await kv.put(put(b"%d" % number))
        await cluster.wait_served(name)
        await cluster.terminate(name)
        shutil.rmtree(member.data_dir)
        if disk == "older":
            shutil.copytree(older, member.data_dir)
        with cluster.launch(name):
            assert await cluster.ended(name) == 3, member.errors()
        reason = member.errors()
        assert "add it again" in reason, reason
        assert (await kv.range(get())).kvs[0].value == b"29"
