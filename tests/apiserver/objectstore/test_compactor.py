"""Compaction keeps the history of one interval, goes on after trouble, and is the work of one of several servers."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.objectstore.compactor import COMPACT_REV_KEY, Compactor
from storage import api, errors
from tests.fakes.memory_kv import MemoryKV


class Clock:
    """Lets ``turns`` intervals pass, with a write in each."""

    def __init__(self, kv: MemoryKV, turns: int) -> None:
        self.kv = kv
        self.left = turns
        self.revisions: list[int] = []

    async def sleep(self, seconds: float) -> None:
        assert seconds == 300
        self.revisions.append(await self.kv.read_revision())
        if self.left == 0:
            raise asyncio.CancelledError
        self.left -= 1
        await self.kv.put(api.PutRequest(key=b"k", value=b"v"))


async def compacted(kv: MemoryKV, revision: int) -> bool:
    try:
        await kv.range(api.RangeRequest(key=b"k", revision=revision))
    except errors.CompactedError:
        return True
    return False


async def test_the_revision_of_an_interval_before_is_the_oldest_kept() -> None:
    kv = MemoryKV()
    for _ in range(5):
        await kv.put(api.PutRequest(key=b"k", value=b"v"))
    clock = Clock(kv, turns=3)
    with pytest.raises(asyncio.CancelledError):
        await Compactor(kv, 300, clock.sleep).run()
    oldest = clock.revisions[-2]
    assert await compacted(kv, oldest - 1)
    assert not await compacted(kv, oldest)


async def test_trouble_is_gone_over() -> None:
    kv = MemoryKV()
    clock = Clock(kv, turns=6)
    asked: list[int] = []
    troubles = [errors.CompactedError(1), errors.UnavailableError(), None, None]

    async def compact(revision: int, *, physical: bool = False) -> None:
        asked.append(revision)
        if troubles and (trouble := troubles.pop(0)) is not None:
            raise trouble

    kv.compact = compact  # type: ignore[assignment, method-assign]
    with pytest.raises(asyncio.CancelledError):
        await Compactor(kv, 300, clock.sleep).run()
    assert asked == clock.revisions[:-1]


async def test_of_several_servers_one_compacts_at_each_interval() -> None:
    kv = MemoryKV()
    asked: list[int] = []
    compact = kv.compact

    async def counted(revision: int, *, physical: bool = False) -> api.CompactionResponse:
        asked.append(revision)
        return await compact(revision, physical=physical)

    kv.compact = counted  # type: ignore[method-assign]

    async def never(_: float) -> None:
        raise AssertionError

    servers = [Compactor(kv, 300, never) for _ in range(3)]
    kept: list[int] = []
    for turn in range(6):
        for server in servers[turn % 3 :] + servers[: turn % 3]:
            await server._maybe_compact()
        kept.append(await kv.read_revision())
        await kv.put(api.PutRequest(key=b"k", value=b"v"))
    assert len(asked) == 5
    assert all(revision <= before for revision, before in zip(asked, kept))
    [key] = (await kv.range(api.RangeRequest(key=COMPACT_REV_KEY))).kvs
    assert (key.version, key.value) == (6, str(asked[-1]).encode())


@pytest.mark.parametrize("refusal", [errors.NoSpaceError, errors.CorruptAlarmError])
async def test_a_store_that_takes_no_writes_is_compacted_where_that_may_help(refusal: type[errors.StoreError]) -> None:
    kv = MemoryKV()
    clock = Clock(kv, turns=3)

    async def txn(request: api.TxnRequest) -> api.TxnResponse:
        raise refusal()

    kv.txn = txn  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await Compactor(kv, 300, clock.sleep).run()
    oldest = clock.revisions[-2]
    assert await compacted(kv, oldest - 1) == (refusal is errors.NoSpaceError)
    assert not await compacted(kv, oldest)
