"""The database file with bits flipped, pages missing, its end cut off: the member answers as before, or refuses; never a wrong answer.

Each damaged file is opened by a process of its own, since LMDB ends its process where it finds a contradiction while it writes. That
counts as a refusal here: nobody gets a wrong answer.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import api, errors
from storage.config import MemberConfig
from storage.member.member import Member

PAGE_BYTES = 4096
SAME, WRONG, REFUSED, OTHER = 0, 1, 2, 3


def config(data_dir: Path) -> MemberConfig:
    """The log is soon released, so that most of the data is in the database alone."""
    return MemberConfig(data_dir=data_dir, snapshot_count=50, wal_segment_bytes=16 * 1024)


async def fill(data_dir: Path) -> None:
    rng = random.Random(1)
    member = Member(config(data_dir))
    await member.start()
    for number in range(8):
        lease = await member.lease_grant(600, lease_id=number + 1)
        await member.put(api.PutRequest(key=b"leased/%d" % number, value=b"x", lease=lease.id))
    for _ in range(6):
        for _ in range(40):
            await member.put(api.PutRequest(key=b"k%02d" % rng.randrange(50), value=rng.randbytes(rng.choice((10, 300, 3000, 9000)))))
        await asyncio.sleep(0.12)  # a batch of the backend, and then a marker
    await member.compact(100, physical=True)
    await member.delete_range(api.DeleteRangeRequest(key=b"k1", range_end=b"k2"))
    await member.stop()


async def everything(data_dir: Path) -> tuple[object, ...]:
    """All answers that a client can get."""
    member = Member(config(data_dir))
    await member.start()
    try:
        newest = await member.range(api.RangeRequest(key=b"\0", range_end=b"\0"))
        older = [
            (await member.range(api.RangeRequest(key=b"\0", range_end=b"\0", revision=revision))).kvs
            for revision in range(100, newest.header.revision, 10)
        ]
        return newest.header.revision, newest.kvs, older, sorted(await member.leases())
    finally:
        await member.stop()


def judge(data_dir: Path, truth: tuple[object, ...]) -> int:
    """In a child process: what a member makes of the directory."""
    pid = os.fork()
    if pid == 0:
        code = OTHER
        try:
            faulthandler.disable()  # LMDB's end is expected
            os.close(2)
            code = SAME if asyncio.run(everything(data_dir)) == truth else WRONG
        except (errors.StoreError, OSError):
            code = REFUSED
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return REFUSED if code < 0 else code


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[object, ...]]:
    data_dir = tmp_path_factory.mktemp("healthy") / "data"
    asyncio.run(fill(data_dir))
    return data_dir, asyncio.run(everything(data_dir))


def damaged(healthy: tuple[Path, tuple[object, ...]], tmp_path: Path, damage: Callable[[bytearray], None]) -> int:
    source, truth = healthy
    data_dir = tmp_path / "data"
    shutil.rmtree(data_dir, ignore_errors=True)
    shutil.copytree(source, data_dir)
    file = config(data_dir).backend_file()
    content = bytearray(file.read_bytes())
    damage(content)
    file.write_bytes(content)
    return judge(data_dir, truth)


def flip(at: int, bit: int) -> Callable[[bytearray], None]:
    def damage(content: bytearray) -> None:
        content[at] ^= 1 << bit

    return damage


def test_an_undamaged_copy_answers_the_same(healthy: tuple[Path, tuple[object, ...]], tmp_path: Path) -> None:
    assert damaged(healthy, tmp_path, lambda content: None) == SAME


@pytest.mark.slow
@pytest.mark.parametrize("where", ["headers of the file", "headers of pages", "anywhere"])
def test_a_flipped_bit_is_never_a_wrong_answer(healthy: tuple[Path, tuple[object, ...]], tmp_path: Path, where: str) -> None:
    rng = random.Random(where)
    size = config(healthy[0]).backend_file().stat().st_size
    outcomes: Counter[int] = Counter()
    for _ in range(24):
        if where == "headers of the file":
            at = rng.randrange(2) * PAGE_BYTES + rng.randrange(200)
        elif where == "headers of pages":
            at = rng.randrange(size // PAGE_BYTES) * PAGE_BYTES + rng.randrange(64)
        else:
            at = rng.randrange(size)
        bit = rng.randrange(8)
        outcome = damaged(healthy, tmp_path, flip(at, bit))
        assert outcome in (SAME, REFUSED), f"bit {bit} of byte {at} (page {at // PAGE_BYTES}): {outcome}"
        outcomes[outcome] += 1
    assert outcomes[REFUSED], outcomes


@pytest.mark.slow
def test_a_lost_page_or_end_is_never_a_wrong_answer(healthy: tuple[Path, tuple[object, ...]], tmp_path: Path) -> None:
    rng = random.Random(1)
    size = config(healthy[0]).backend_file().stat().st_size

    def zero(page: int) -> Callable[[bytearray], None]:
        def damage(content: bytearray) -> None:
            content[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = bytes(PAGE_BYTES)

        return damage

    def cut(length: int) -> Callable[[bytearray], None]:
        def damage(content: bytearray) -> None:
            del content[length:]

        return damage

    for page in [0, 1, *rng.sample(range(2, size // PAGE_BYTES), 10)]:
        outcome = damaged(healthy, tmp_path, zero(page))
        assert outcome in (SAME, REFUSED), f"page {page} lost: {outcome}"
    for length in [1, PAGE_BYTES, PAGE_BYTES + 1, size - 1, size - PAGE_BYTES, *rng.sample(range(2, size), 4)]:
        outcome = damaged(healthy, tmp_path, cut(length))
        assert outcome in (SAME, REFUSED), f"cut at {length} of {size}: {outcome}"


@pytest.mark.slow
def test_an_empty_file_is_refused(healthy: tuple[Path, tuple[object, ...]], tmp_path: Path) -> None:
    """LMDB would make a new database of it; the log knows better."""
    assert damaged(healthy, tmp_path, lambda content: content.clear()) == REFUSED
