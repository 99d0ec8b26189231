"""One run on real processes: traffic, one fault, healing, and then everything is checked."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from storage import api, errors
from storage.etcdclient import EtcdKV
from storage.mvcc.kv_hash import hash_kv
from storage.raft.messages import Entry
from tests.robustness import traffic
from tests.robustness.history import Recorder
from tests.robustness.linearizability import check_against_log, requests_of
from tests.robustness.offline import hash_of_file, replay, revision_of_file
from tests.robustness.processes import RECOVERY_SECONDS_MAX, RealCluster, connect
from tests.robustness.traffic import Client, Informer
from tests.robustness.watch_promises import Truth, check_watch

CLIENTS_PER_MEMBER: Final = 2
HURT_SECONDS: Final = 2.0
QUIET_SECONDS: Final = 1.0
ATTEMPTS_MAX: Final = 5

Fault: TypeAlias = Callable[[RealCluster, random.Random], Awaitable[None]]


@dataclass
class Report:
    fault: str
    problems: list[str] = field(default_factory=list)
    operations: int = 0
    unknown: int = 0
    events: int = 0
    entries: int = 0
    recovery_seconds: float = 0.0

    def __str__(self) -> str:
        verdict = "ok" if not self.problems else "FAILED: " + "; ".join(self.problems[:3])
        return (
            f"{self.fault}: {self.operations} operations ({self.unknown} without an answer), {self.events} events, "
            f"{self.entries} entries, served again {self.recovery_seconds:.1f} s after the fault's end: {verdict}"
        )


# -- faults: each leaves the cluster to heal


async def kill_leader(cluster: RealCluster, rng: random.Random) -> None:
    await _kill(cluster, await cluster.leader())


async def kill_follower(cluster: RealCluster, rng: random.Random) -> None:
    await _kill(cluster, rng.choice(await followers(cluster)))


async def _kill(cluster: RealCluster, name: str) -> None:
    cluster.kill(name)
    await asyncio.sleep(HURT_SECONDS)
    await cluster.start_member(name)


async def pause_leader(cluster: RealCluster, rng: random.Random) -> None:
    await _pause(cluster, await cluster.leader())


async def pause_follower(cluster: RealCluster, rng: random.Random) -> None:
    await _pause(cluster, rng.choice(await followers(cluster)))


async def _pause(cluster: RealCluster, name: str) -> None:
    cluster.pause(name)
    try:
        await asyncio.sleep(HURT_SECONDS)
    finally:
        cluster.resume(name)


async def isolate_leader(cluster: RealCluster, rng: random.Random) -> None:
    cluster.isolate(await cluster.leader())
    await asyncio.sleep(HURT_SECONDS)
    cluster.mend()


async def isolate_follower(cluster: RealCluster, rng: random.Random) -> None:
    cluster.isolate(rng.choice(await followers(cluster)))
    await asyncio.sleep(HURT_SECONDS)
    cluster.mend()


async def deaf_leader(cluster: RealCluster, rng: random.Random) -> None:
    """It can send, and hears nothing (ST-F3)."""
    leader = await cluster.leader()
    for name in cluster.members:
        if name != leader:
            cluster.cut(name, leader)
    await asyncio.sleep(HURT_SECONDS)
    cluster.mend()


async def mute_leader(cluster: RealCluster, rng: random.Random) -> None:
    """It hears, and what it sends is lost."""
    leader = await cluster.leader()
    for name in cluster.members:
        if name != leader:
            cluster.cut(leader, name)
    await asyncio.sleep(HURT_SECONDS)
    cluster.mend()


async def cut_one_link(cluster: RealCluster, rng: random.Random) -> None:
    """Two members do not hear each other, the third hears both."""
    one, other = rng.sample(sorted(cluster.members), 2)
    cluster.cut(one, other)
    cluster.cut(other, one)
    await asyncio.sleep(HURT_SECONDS)
    cluster.mend()


async def restart_all(cluster: RealCluster, rng: random.Random) -> None:
    """The power fails."""
    for name in cluster.members:
        cluster.kill(name)
    await asyncio.gather(*(cluster.start_member(name) for name in cluster.members))


async def lose_quorum(cluster: RealCluster, rng: random.Random) -> None:
    leader = await cluster.leader()
    for name in cluster.members:
        if name != leader:
            cluster.kill(name)
    await asyncio.sleep(HURT_SECONDS)
    await asyncio.gather(*(cluster.start_member(name) for name in cluster.members if name != leader))


async def fill_disk(cluster: RealCluster, rng: random.Random) -> None:
    """The disk of one member is full: it stops by itself, the others go on; with room again it comes back."""
    name = rng.choice(sorted(cluster.members))
    cluster.limit_files(name, rng.randrange(2000))
    status = await cluster.ended(name)
    assert status != 0, "a member whose disk is full ended as if all were well"
    await asyncio.sleep(HURT_SECONDS / 2)
    await cluster.start_member(name)


async def kill_two_and_cut(cluster: RealCluster, rng: random.Random) -> None:
    """One dies while another is cut off: no quorum; both come back at different times."""
    one, other = rng.sample(sorted(cluster.members), 2)
    cluster.isolate(one)
    await asyncio.sleep(HURT_SECONDS / 2)
    cluster.kill(other)
    await asyncio.sleep(HURT_SECONDS / 2)
    cluster.mend()
    await cluster.start_member(other)


async def lag_behind_a_snapshot(cluster: RealCluster, rng: random.Random) -> None:
    """A follower is away for so long that it needs the whole database; it dies once more while it comes back."""
    name = rng.choice(await followers(cluster))
    cluster.kill(name)
    await asyncio.sleep(2 * HURT_SECONDS)
    await cluster.start_member(name)
    await asyncio.sleep(rng.random() * 0.3)
    cluster.kill(name)
    await cluster.start_member(name)


FAULTS: Final[dict[str, Fault]] = {
    function.__name__: function
    for function in (
        kill_leader,
        kill_follower,
        pause_leader,
        pause_follower,
        isolate_leader,
        isolate_follower,
        deaf_leader,
        mute_leader,
        cut_one_link,
        restart_all,
        lose_quorum,
        fill_disk,
        kill_two_and_cut,
        lag_behind_a_snapshot,
    )
}
SETTINGS: Final[dict[str, dict[str, int]]] = {
    "lag_behind_a_snapshot": {"snapshot_count": 30, "snapshot_catchup_entries": 10, "wal_segment_bytes": 16 * 1024}
}
"""Of members, where the fault needs its own; else everything stays in the log."""


async def followers(cluster: RealCluster) -> list[str]:
    leader = await cluster.leader()
    return [name for name in cluster.members if name != leader]


# -- the run


async def run_once(fault: str, seed: int, directory: Path) -> Report:
    """Never raises for what the cluster does; the report says it."""
    report = Report(fault)
    rng = random.Random(seed)
    settings = SETTINGS.get(fault, {"snapshot_count": 1_000_000})
    cluster = RealCluster(directory, **settings)
    recorder = Recorder(time.monotonic)
    async with cluster.running():
        kvs = [await connect(member.endpoint) for member in cluster.members.values() for _ in range(CLIENTS_PER_MEMBER)]
        informers = [Informer(name, await connect(member.endpoint)) for name, member in cluster.members.items()]
        try:
            try:
                await _traffic(cluster, kvs, informers, recorder, rng, FAULTS[fault], report)
                await _settle(cluster, report)
                await _stop_all(cluster)
            except* (AssertionError, errors.StoreError, TimeoutError) as group:
                report.problems += [f"{type(error).__name__}: {error}" for error in _leaves(group)]
        finally:
            for kv in (*kvs, *(informer._kv for informer in informers)):
                await kv.close()  # type: ignore[attr-defined]
    if not report.problems:
        check(cluster, recorder, informers, report)
    return report


async def _traffic(
    cluster: RealCluster,
    kvs: list[EtcdKV],
    informers: list[Informer],
    recorder: Recorder,
    rng: random.Random,
    fault: Fault,
    report: Report,
) -> None:
    is_over = False
    last_revision = 0

    def clients_stop() -> bool:
        return is_over

    def informers_stop() -> bool:
        return bool(last_revision) and all(informer.seen_revision >= last_revision for informer in informers)

    clients = [Client(number, kv, recorder, random.Random(rng.random())) for number, kv in enumerate(kvs)]
    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(client.run(clients_stop)) for client in clients]
        watching = [tasks.create_task(informer.run(informers_stop)) for informer in informers]
        try:
            await asyncio.sleep(QUIET_SECONDS)
            await fault(cluster, rng)
            report.recovery_seconds = await cluster.wait_served()
            await asyncio.sleep(QUIET_SECONDS)
            is_over = True
            await asyncio.wait(working)
            # The last event, which every informer must come to see: then it has seen all.
            last_revision = await _put_end(cluster, recorder)
            _, late = await asyncio.wait(watching, timeout=RECOVERY_SECONDS_MAX)
            seen = {informer.name: informer.seen_revision for informer in informers}
            assert not late, f"watches did not come up to revision {last_revision}: {seen}"
        finally:
            for task in (*working, *watching):
                task.cancel()


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]


async def _put_end(cluster: RealCluster, recorder: Recorder) -> int:
    """The last event's revision."""
    kv = await cluster.client(sorted(cluster.members)[0])
    for attempt in range(ATTEMPTS_MAX):
        end = api.PutRequest(key=traffic.PREFIX + b"end", value=b"end %d" % attempt)
        with contextlib.suppress(errors.StoreError):
            return (await recorder.call(-1, end, kv.put(end))).header.revision
    raise AssertionError("the healed cluster takes no write")


async def _settle(cluster: RealCluster, report: Report) -> None:
    """Wait until every member has applied the same, and no lease is about to end."""
    deadline = asyncio.get_running_loop().time() + RECOVERY_SECONDS_MAX
    while True:
        found = {name: await cluster.status(name) for name in cluster.members}
        applied = {status and status.raft_applied_index for status in found.values()}
        revisions = {status and status.header.revision for status in found.values()}
        if len(applied) == len(revisions) == 1 and None not in applied:
            return
        assert asyncio.get_running_loop().time() < deadline, f"members did not come together: {found}"
        await asyncio.sleep(0.1)


async def _stop_all(cluster: RealCluster) -> None:
    """Followers first, so that nothing more is proposed that only some have."""
    leader = await cluster.leader()
    for name in [*(each for each in cluster.members if each != leader), leader]:
        await cluster.terminate(name)


def committed_entries(cluster: RealCluster, report: Report) -> list[Entry]:
    """The longest log; that every other one agrees with it where both have an entry is checked on the way. Entries beyond what all have
    are the lone last leader's and are left out."""
    logs = {name: {entry.index: entry for entry in member.archive.entries()} for name, member in cluster.members.items()}
    end = min(max(log) for log in logs.values())
    merged: list[Entry] = []
    for index in range(1, end + 1):
        found = {name: log[index] for name, log in logs.items() if index in log}
        if not found:
            report.problems.append(f"no member has entry {index} any more")
            return merged
        if len(set(found.values())) > 1:
            report.problems.append(f"members differ in entry {index}: {found}")
            return merged
        merged.append(next(iter(found.values())))
    return merged


def check(cluster: RealCluster, recorder: Recorder, informers: list[Informer], report: Report) -> None:
    """History, watches, hashes; the cluster is down."""
    entries = committed_entries(cluster, report)
    log = requests_of(entries)
    report.entries = len(entries)
    report.operations = len(recorder.operations)
    report.unknown = sum(1 for operation in recorder.operations if type(operation.outcome).__name__ == "Unknown")
    report.problems += check_against_log(recorder.operations, log, is_ours=traffic.is_ours).problems
    truth = Truth.of(log)
    for informer in informers:
        report.events += sum(len(item.events) for stream in informer.streams for item in stream.items if isinstance(item, api.WatchBatch))
        for number, stream in enumerate(informer.streams):
            report.problems += check_watch([stream], truth, name=f"informer at {informer.name}, stream {number}")
    # At the newest revision that all have: a lease may have run out while the members stopped one after the other.
    files = {name: member.data_dir / "member" / "snap" / "db" for name, member in cluster.members.items()}
    revision = min(revision_of_file(file) for file in files.values())
    hashes = {name: hash_of_file(file, revision) for name, file in files.items()}
    expected = hash_kv(replay(entries), revision)
    if set(hashes.values()) != {expected}:
        report.problems.append(f"HashKV differs: {hashes}, the log says {expected}")
