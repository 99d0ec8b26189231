"""Every command of etcdctl that is about a single member: the same script against a real etcd and against the door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.storage.etcd_process import BINARIES
from tests.storage.etcdserver.etcdctl import Pair, both

pytestmark = pytest.mark.slow


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with both(tmp_path) as made:
        yield made


async def test_get(pair: Pair) -> None:
    await pair.same_all(
        """
put a 1
put b 3
put c 2
put b 1
put d/x here
put d/y there
get a
get none
get a -w json
get a -w fields
get a -w protobuf
get a --hex
get a --print-value-only
get d/ --prefix
get d/ --prefix --keys-only
get d/ --prefix --count-only
get d/ --prefix --count-only -w json
get d/ --prefix --count-only -w fields
get b --from-key
get a c
get a c --order DESCEND
get '' --prefix --limit 2
get '' --prefix --limit 2 -w json
get '' --prefix --sort-by VALUE --order ASCEND
get '' --prefix --sort-by VERSION --order DESCEND
get '' --prefix --sort-by CREATE --order DESCEND --limit 3 -w json
get '' --prefix --sort-by MODIFY --order ASCEND -w json
get '' --from-key --keys-only
get b --rev 3
get b --rev 3 -w json
get b --consistency s
get b --rev 100
get b --order SIDEWAYS
get a --prefix --from-key
"""
    )


async def test_put_and_del(pair: Pair) -> None:
    await pair.same_all(
        """
put k one
put k two --prev-kv
put k three --prev-kv -w json
put k three -w fields
put k three -w protobuf
lease grant 600
put k four --lease <lease1>
put k five --ignore-lease
put k --ignore-value
get k -w json
put none --ignore-value
put none x --ignore-lease
put '' empty
put k x --lease 1234
get k
del k
del k
put p/1 1
put p/2 2
del p/ --prefix --prev-kv
put q/1 1
put q/2 2
del q/1 --from-key -w json
put r/1 1
put r/2 2
del r/1 r/3 --prev-kv -w json
del ''
"""
    )
    assert (await pair.same(("put", "big"), stdin="x" * 1_600_000)).status != 0
    assert (await pair.same(("put", "bigger"), stdin="x" * 2_200_000)).status != 0
    assert (await pair.same(("put", "large"), stdin="x" * 1_500_000)).status == 0


async def test_txn(pair: Pair) -> None:
    await pair.same("put a 1")
    for text in (
        'value("a") = "1"\n\nput b yes\nget a\n\nput b no\n\n',
        'value("a") = "2"\n\nput b yes\n\nput b no\nget a\ndel a\n\n',
        'mod("b") > "2"\nversion("b") = "2"\ncreate("none") = "0"\n\nget b\n\n\n',
        "\nput c 1\nput d 2\nget c --prefix\n\n\n",
        "\nput c 1\nput c 2\n\n\n",
        "\nput c 1\ndel c\n\n\n",
        "\ndel c\ndel c\n\n\n",
        "\n" + "".join(f"put k{number} v\n" for number in range(129)) + "\n\n",
        'value("") = "1"\n\nget a\n\n\n',
        "\nput x 1 --lease=4d2\n\n\n",
    ):
        await pair.same("txn", stdin=text)
        await pair.same("txn -w json", stdin=text)
    await pair.same("txn -i", stdin='value("a") = "1"\n\nget a\n\n\n')
    await pair.same("get '' --prefix -w json")


async def test_compaction(pair: Pair) -> None:
    await pair.same_all(
        """
put a 1
put a 2
del a
put b 1
put b 2
put b 3
put b 4
put b 5
put b 6
compact 100
compact 5
compact 5
compact 3
get a --rev 4
get a --rev 5
get b --rev 5
get b --rev 11
compact 8 --physical
get b --rev 8
get b --rev 7
watch a --rev 2
endpoint hashkv
endpoint hashkv -w json
endpoint hashkv -w table
endpoint hashkv --rev 9 -w json
endpoint hashkv --rev 2
endpoint hashkv --rev 200
defrag
get b -w json
"""
    )


async def test_leases(pair: Pair) -> None:
    await pair.same_all(
        """
lease grant 60
lease grant 60 -w json
lease list
lease timetolive <lease1>
lease timetolive <lease1> --keys
put one 1 --lease <lease1>
put two 2 --lease <lease1>
lease timetolive <lease1> --keys
lease timetolive <lease1> --keys -w json
lease keep-alive <lease1> --once
lease revoke <lease1>
lease revoke <lease1>
lease timetolive <lease1>
lease keep-alive <lease1> --once
get '' --prefix -w json
lease grant 0
lease grant -5
lease grant 9000000001
lease grant 9000000000
lease timetolive 77
lease revoke 77
"""
    )


async def test_endpoint_and_members(pair: Pair) -> None:
    await pair.same_all(
        """
endpoint health
endpoint health -w json
endpoint status
endpoint status -w json
endpoint status -w fields
member list
member list -w json
member list -w fields
member list -w table
member remove 1234
member update 1234 --peer-urls=http://127.0.0.1:9999
member promote 1234
member promote <member_id>
member add m2 --peer-urls=nonsense
endpoint status -w table
move-leader 1234
move-leader <member_id>
alarm list
alarm list -w json
alarm disarm
auth status
auth enable
auth disable
user list
role list
user get nobody
role get nobody
user delete nobody
role delete nobody
"""
    )


async def test_watch(pair: Pair) -> None:
    await pair.same_all(
        """
put a 1
put a 2
put b/1 x
del a
put b/2 y
"""
    )
    # each ends when it has seen what was put last
    for arguments in (
        "watch a --rev 1",
        "watch a --rev 1 -w json",
        "watch a --rev 1 --prev-kv",
        "watch a --rev 1 --prev-kv -w json",
        "watch a --rev 1 -w fields",
        "watch b/ --prefix --rev 2",
        "watch a c --rev 3",
        "watch '' --prefix --rev 4 -w json",
        "watch a --rev 3 --hex",
    ):
        await pair.same_until_quiet(arguments)
    await pair.same("watch b a --rev 1")
    await pair.same_until_quiet("watch -i", stdin="watch a --rev 1 --prev-kv\n")


async def test_locks_and_elections(pair: Pair) -> None:
    await pair.same_all(
        """
lock mine echo held
lock mine echo held -w json
lock mine false
get mine/ --prefix
"""
    )
    await pair.same_until_quiet("lock other", interrupt=True)
    await pair.same_until_quiet("elect chief me", interrupt=True)
    await pair.same("get '' --prefix --count-only")


async def test_out_of_space_and_recovery(tmp_path: Path) -> None:
    """Writes are refused, deletes and reads are not; after room was made and the alarm taken off writes go on."""
    async with both(tmp_path, quota_backend_bytes=8 * 1024 * 1024) as pair:
        await pair.same("put small v")
        for side in (pair.etcd, pair.ours):
            for number in range(20):
                if (await side.run(("put", f"big{number}"), "v" * 1_000_000)).status:
                    break
            else:
                raise AssertionError("the quota was never reached")
        await pair.same(("put", "more"), "v" * 1_000_000)
        await pair.same_all(
            """
alarm list
put small w
get small
lease grant 60
endpoint health
"""
        )
        for side in (pair.etcd, pair.ours):
            deleted = await side.run(("del", "big", "--prefix"))
            assert deleted.status == 0 and int(deleted.output) >= 3, deleted
            revision = (await side.run(("get", "small", "-w", "fields"))).output.split('"Revision" : ')[1].split()[0]
            assert (await side.run(("compact", revision, "--physical"))).status == 0
        await pair.same_all(
            """
defrag
alarm disarm
alarm list
put small x
get small --print-value-only
endpoint health
"""
        )


async def test_a_snapshot_is_one_for_etcds_tools(pair: Pair, tmp_path: Path) -> None:
    """Both files are of the same keys, so etcdutl must find the same in them but for their size and their hash, which covers ids."""
    for number in range(20):
        await pair.same(("put", f"k{number}", "v" * 3000))
    found = []
    for name, side in (("etcd", pair.etcd), ("ours", pair.ours)):
        file = tmp_path / f"{name}.db"
        saved = await side.run(("snapshot", "save", str(file)))
        assert saved.status == 0 and "Snapshot saved at" in saved.output, saved
        found.append(await snapshot_status(file))
    assert found[0]["revision"] == found[1]["revision"] == 21


async def snapshot_status(file: Path) -> dict[str, int]:
    process = await asyncio.create_subprocess_exec(
        str(BINARIES / "etcdutl"), "snapshot", "status", str(file), "-w", "json", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    answer: dict[str, int] = json.loads(output)
    return answer
