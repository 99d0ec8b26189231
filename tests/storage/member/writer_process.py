"""A process that writes to a member until it is killed, and says on stdout what was acknowledged.

    python -m tests.storage.member.writer_process DATA_DIR SEED KEEP_LOG [FAILPOINT HITS]

KEEP_LOG ``keep`` makes no snapshot markers, so the whole log stays to be compared with; it also grants leases, revokes some and compacts.

Each line is one acknowledged change: ``put KEY VALUE REVISION`` or ``delete KEY REVISION``. With a failpoint the process ends there, at
its n-th hit, without any cleaning up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
from pathlib import Path

from storage import api, errors, failpoints
from storage.config import MemberConfig
from storage.member.member import Member

CLIENTS = 8
KEYS_PER_CLIENT = 20


def config(data_dir: Path, *, keep_log: bool = False) -> MemberConfig:
    """Markers, rotation and release come often."""
    if keep_log:
        return MemberConfig(data_dir=data_dir, snapshot_count=1_000_000)
    return MemberConfig(data_dir=data_dir, snapshot_count=50, wal_segment_bytes=64 * 1024)


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


async def client(member: Member, number: int, rng: random.Random) -> None:
    """Change keys that no other client changes, one at a time."""
    while True:
        key = f"c{number}/k{rng.randrange(KEYS_PER_CLIENT)}"
        action = rng.random()
        if action < 0.8:
            value = f"{rng.getrandbits(64):x}" * rng.randrange(1, 60)
            put = api.PutRequest(key=key.encode(), value=value.encode())
            if action < 0.4:
                revision = (await member.put(put)).header.revision
            else:
                revision = (await member.txn(api.TxnRequest(success=(put,)))).header.revision
            say(f"put {key} {value} {revision}")
        else:
            deleted = await member.delete_range(api.DeleteRangeRequest(key=key.encode()))
            if deleted.deleted:
                say(f"delete {key} {deleted.header.revision}")


async def leases_and_compactions(member: Member, rng: random.Random) -> None:
    while True:
        lease = await member.lease_grant(rng.choice((1, 600)))
        put = api.PutRequest(key=b"leased/%d" % rng.randrange(10), value=b"", lease=lease.id)
        await member.put(put)
        if rng.random() < 0.5:
            await member.lease_revoke(lease.id)
        if rng.random() < 0.2:
            revision = await member.read_revision()
            with contextlib.suppress(errors.CompactedError):
                await member.compact(max(1, revision - rng.randrange(50)))


async def main() -> None:
    data_dir, seed, keep_log = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "keep"
    member = Member(config(data_dir, keep_log=keep_log))
    await member.start()
    if len(sys.argv) > 4:
        left = int(sys.argv[5])

        def die() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                os._exit(9)

        failpoints.arm(sys.argv[4], die)
    say("ready")
    work = [client(member, number, random.Random(seed * 100 + number)) for number in range(CLIENTS)]
    if keep_log:
        work.append(leases_and_compactions(member, random.Random(seed)))
    await asyncio.gather(*work)


if __name__ == "__main__":
    asyncio.run(main())
