"""A process that writes to a member until it is killed, and says on stdout what was acknowledged.

    python -m tests.storage.member.writer_process DATA_DIR SEED [FAILPOINT HITS]

Each line is one acknowledged change: ``put KEY VALUE REVISION`` or ``delete KEY REVISION``. With a failpoint the process ends there, at
its n-th hit, without any cleaning up.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from storage import api, failpoints
from storage.config import MemberConfig
from storage.member.member import Member

CLIENTS = 8
KEYS_PER_CLIENT = 20


def config(data_dir: Path) -> MemberConfig:
    """Markers, rotation and release come often."""
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


async def main() -> None:
    data_dir, seed = Path(sys.argv[1]), int(sys.argv[2])
    member = Member(config(data_dir))
    await member.start()
    if len(sys.argv) > 3:
        left = int(sys.argv[4])

        def die() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                os._exit(9)

        failpoints.arm(sys.argv[3], die)
    say("ready")
    await asyncio.gather(*(client(member, number, random.Random(seed * 100 + number)) for number in range(CLIENTS)))


if __name__ == "__main__":
    asyncio.run(main())
