"""A member under load in a process of its own, which ends at a failpoint, at its n-th hit, without any cleaning up.

It tells on a pipe what its clients see (``journal``). Everything that a single member makes durable happens soon and often: writes,
leases that run out, compactions, rotation, markers and release of the log, defragmentation.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from storage import api, errors, failpoints
from storage.config import MemberConfig
from storage.member import request as log_request
from storage.member.member import Member
from tests.robustness import kv_model
from tests.robustness.history import send
from tests.robustness.journal import Client, Note, Received, Tell, Watching, tell_to
from tests.robustness.log_archive import LogArchive
from tests.robustness.watch_promises import Compacted

CLIENTS = 4
KEYS = 12
EXIT_CODE = 9


@dataclass(frozen=True)
class Job:
    """``watches``: name → request. Without a ``point`` it runs until it is killed."""

    data_dir: Path
    seed: int
    watches: dict[str, api.WatchRequest]
    point: str = ""
    hits: int = 1

    @property
    def archive(self) -> LogArchive:
        return LogArchive(config(self.data_dir).log_dir(), self.data_dir.parent / "archive")


def config(data_dir: Path) -> MemberConfig:
    """Markers, rotation and release come often."""
    return MemberConfig(data_dir=data_dir, snapshot_count=40, wal_segment_bytes=16 * 1024)


def arm(job: Job) -> None:
    left = job.hits

    def at_the_point() -> None:
        nonlocal left
        if job.point == "wal.before_release":
            job.archive.keep()
        left -= 1
        if left <= 0:
            os._exit(EXIT_CODE)

    failpoints.arm("wal.before_release", job.archive.keep)
    if job.point:
        failpoints.arm(job.point, at_the_point)


def random_write(rng: random.Random, value: bytes) -> kv_model.Request:
    """Puts of values that come once, so that a second application would show; swaps and deletions among them."""
    key = b"k%d" % rng.randrange(KEYS)
    put = api.PutRequest(key=key, value=value + b" " * rng.randrange(400), prev_kv=rng.random() < 0.3)
    match rng.randrange(6):
        case 0:
            return api.DeleteRangeRequest(key=key, prev_kv=True)
        case 1:
            other = api.PutRequest(key=b"other", value=value)
            compare = api.Compare(key=key, target=api.CompareTarget.CREATE, result=api.CompareResult.GREATER, operand=0)
            return api.TxnRequest(compare=(compare,), success=(put, other), failure=(api.RangeRequest(key=key),))
        case _:
            return put


async def write(member: Member, client: Client, rng: random.Random, name: bytes) -> None:
    count = 0
    while True:
        count += 1
        request = random_write(rng, b"%s-%d" % (name, count)) if rng.random() < 0.8 else api.RangeRequest(key=b"k", range_end=b"l")
        await client.call(request, lambda request=request: send(member, request))  # type: ignore[misc]


async def keep_house(member: Member, client: Client, rng: random.Random) -> None:
    """Leases, compactions, defragmentation."""
    while True:
        lease_id = rng.getrandbits(40) | 1
        grant = log_request.LeaseGrantRequest(id=lease_id, ttl_seconds=rng.choice((1, 600)))
        await client.call(grant, lambda: send(member, grant))  # noqa: B023
        put = api.PutRequest(key=b"leased/%d" % rng.randrange(5), value=b"%d" % lease_id, lease=lease_id)
        with contextlib.suppress(errors.LeaseNotFoundError):
            await client.call(put, lambda: send(member, put))  # noqa: B023
        if rng.random() < 0.4:
            revoke = log_request.LeaseRevokeRequest(id=lease_id)
            with contextlib.suppress(errors.LeaseNotFoundError):
                await client.call(revoke, lambda: send(member, revoke))  # noqa: B023
        if rng.random() < 0.5:
            at = max(1, await member.read_revision() - rng.randrange(60))
            compact = log_request.CompactionRequest(revision=at, physical=rng.random() < 0.5)
            with contextlib.suppress(errors.CompactedError):
                await client.call(compact, lambda: send(member, compact))  # noqa: B023
        defragment = getattr(member, "defragment", None)
        if defragment is not None and rng.random() < 0.2:
            await defragment()
        await asyncio.sleep(0)


async def watch(member: Member, name: str, request: api.WatchRequest, tell: Tell) -> None:
    while True:
        tell(Watching(name, request, member.local_revision() or 0))
        watcher = member.watch(request)
        try:
            while True:
                await watcher.wait()
                while (batch := watcher.take()) is not None:
                    tell(Received(name, batch))
        except errors.CompactedError as error:
            tell(Received(name, Compacted(error.compact_revision)))
            request = api.WatchRequest(key=request.key, range_end=request.range_end, prev_kv=request.prev_kv)


def run(job: Job, pipe: Connection) -> None:
    """The process."""
    arm(job)
    asyncio.run(_run(job, tell_to(pipe.fileno())))


async def _run(job: Job, tell: Tell) -> None:
    member = Member(config(job.data_dir))
    await member.start()
    tell(Note("ready"))
    async with asyncio.TaskGroup() as tasks:
        for name, request in job.watches.items():
            tasks.create_task(watch(member, name, request, tell))
        for number in range(CLIENTS):
            rng = random.Random(job.seed * 100 + number)
            tasks.create_task(write(member, Client(number, tell), rng, b"%d-%d" % (job.seed, number)))
        tasks.create_task(keep_house(member, Client(CLIENTS, tell), random.Random(job.seed)))
