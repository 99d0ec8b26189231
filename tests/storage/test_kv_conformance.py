"""What every ``api.KV`` promises, asked of the embedded member and of the fake that other rooms test with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage import api, errors
from storage.config import MemberConfig
from storage.member.member import Member
from tests.fakes.memory_kv import MemoryKV

WAIT_SECONDS_MAX = 10.0


@pytest.fixture(params=["member", "memory"])
async def kv(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[api.KV]:
    if request.param == "memory":
        fake = MemoryKV()
        yield fake
        fake.close()
        return
    member = Member(MemberConfig(data_dir=tmp_path, unsafe_no_fsync=True))
    await member.start()
    yield member
    await member.stop()


async def put(kv: api.KV, key: bytes, value: bytes = b"v", lease: int = 0) -> int:
    return (await kv.put(api.PutRequest(key=key, value=value, lease=lease))).header.revision


async def get(kv: api.KV, key: bytes) -> api.KeyValue | None:
    kvs = (await kv.range(api.RangeRequest(key=key))).kvs
    return kvs[0] if kvs else None


async def next_events(watcher: api.Watcher, count: int) -> list[api.Event]:
    events: list[api.Event] = []
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while len(events) < count:
            batch = watcher.take()
            if batch is None:
                await watcher.wait()
            else:
                events += batch.events
    return events


async def test_an_empty_store_is_at_revision_one(kv: api.KV) -> None:
    assert await kv.read_revision() == 1
    assert await kv.range(api.RangeRequest(key=b"\0", range_end=b"\0")) is not None
    assert await kv.leases() == ()


async def test_a_put_is_read_back_with_its_revisions(kv: api.KV) -> None:
    assert [await put(kv, b"a", value) for value in (b"1", b"2")] == [2, 3]
    assert await get(kv, b"a") == api.KeyValue(b"a", 2, 3, 2, b"2", 0)
    old = await kv.range(api.RangeRequest(key=b"a", revision=2))
    assert (old.kvs[0].value, old.header.revision) == (b"1", 3)


async def test_previous_values_are_answered_if_asked_for(kv: api.KV) -> None:
    await put(kv, b"a", b"1")
    written = await kv.put(api.PutRequest(key=b"a", value=b"2", prev_kv=True))
    assert written.prev_kv == api.KeyValue(b"a", 2, 2, 1, b"1", 0)
    deleted = await kv.delete_range(api.DeleteRangeRequest(key=b"a", prev_kv=True))
    assert (deleted.deleted, [each.value for each in deleted.prev_kvs]) == (1, [b"2"])


async def test_pages_of_a_range(kv: api.KV) -> None:
    for number in range(5):
        await put(kv, b"/k/%d" % number)
    first = await kv.range(api.RangeRequest(key=b"/k/", range_end=b"/k0", limit=2))
    assert ([each.key for each in first.kvs], first.more, first.count) == ([b"/k/0", b"/k/1"], True, 5)
    await put(kv, b"/k/9")
    request = api.RangeRequest(key=first.kvs[-1].key + b"\0", range_end=b"/k0", revision=first.header.revision)
    rest = await kv.range(request)
    assert ([each.key for each in rest.kvs], rest.more) == ([b"/k/2", b"/k/3", b"/k/4"], False)


async def test_compare_and_swap_has_one_winner(kv: api.KV) -> None:
    await put(kv, b"a", b"0")

    async def swap(name: bytes) -> bool:
        compare = api.Compare(key=b"a", target=api.CompareTarget.MOD, operand=2)
        request = api.TxnRequest(compare=(compare,), success=(api.PutRequest(key=b"a", value=name),), failure=(api.RangeRequest(key=b"a"),))
        response = await kv.txn(request)
        if not response.succeeded:
            (current,) = response.responses
            assert isinstance(current, api.RangeResponse)
            assert current.kvs[0].mod_revision == 3
        return response.succeeded

    outcomes = await asyncio.gather(*(swap(b"%d" % number) for number in range(8)))
    assert sum(outcomes) == 1
    winner = await get(kv, b"a")
    assert winner is not None
    assert winner.value == b"%d" % outcomes.index(True)
    assert await kv.read_revision() == 3


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (api.TxnRequest(success=(api.PutRequest(key=b"a", value=b""), api.PutRequest(key=b"a", value=b""))), errors.DuplicateKeyError),
        (api.TxnRequest(success=(api.RangeRequest(key=b"a"),) * 129), errors.TooManyOpsError),
        (api.TxnRequest(success=(api.PutRequest(key=b"b", value=b"", lease=7),)), errors.LeaseNotFoundError),
        (api.TxnRequest(success=(api.PutRequest(key=b"b", value=b"", ignore_value=True),)), errors.KeyNotFoundError),
        (api.TxnRequest(success=(api.PutRequest(key=b"", value=b""),)), errors.EmptyKeyError),
    ],
)
async def test_a_refused_transaction_changes_nothing(kv: api.KV, request_: api.TxnRequest, error: type[errors.StoreError]) -> None:
    await put(kv, b"a")
    with pytest.raises(error):
        await kv.txn(request_)
    assert await kv.read_revision() == 2
    assert await put(kv, b"a") == 3


async def test_revisions_that_cannot_be_read(kv: api.KV) -> None:
    for _ in range(4):
        await put(kv, b"a")
    await kv.compact(4, physical=True)
    with pytest.raises(errors.CompactedError) as compacted:
        await kv.range(api.RangeRequest(key=b"a", revision=3))
    assert compacted.value.compact_revision == 4
    with pytest.raises(errors.FutureRevisionError):
        await kv.range(api.RangeRequest(key=b"a", revision=6))
    with pytest.raises(errors.CompactedError):
        await kv.compact(4)
    with pytest.raises(errors.FutureRevisionError):
        await kv.compact(6)
    assert (await kv.range(api.RangeRequest(key=b"a", revision=4))).count == 1


async def test_a_watch_sees_every_write_after_it_began(kv: api.KV) -> None:
    watcher = kv.watch(api.WatchRequest(key=b"/k/", range_end=b"/k0", prev_kv=True))
    await put(kv, b"/k/a", b"1")
    await put(kv, b"/other")
    await put(kv, b"/k/a", b"2")
    await kv.delete_range(api.DeleteRangeRequest(key=b"/k/a"))
    events = await next_events(watcher, 3)
    assert [(event.type, event.kv.mod_revision) for event in events] == [
        (api.EventType.PUT, 2),
        (api.EventType.PUT, 4),
        (api.EventType.DELETE, 5),
    ]
    assert [None if event.prev_kv is None else event.prev_kv.value for event in events] == [None, b"1", b"2"]
    watcher.cancel()


async def test_events_are_there_when_the_write_is_answered(kv: api.KV) -> None:
    if not kv.events_are_immediate:
        pytest.skip("not promised by this store")
    watcher = kv.watch(api.WatchRequest(key=b"a"))
    await put(kv, b"a")
    batch = watcher.take()
    assert batch is not None
    assert batch.revision == 2 == kv.local_revision()
    assert watcher.take() is None


async def test_a_watch_from_the_past_joins_the_present(kv: api.KV) -> None:
    for _ in range(3):
        await put(kv, b"a")
    watcher = kv.watch(api.WatchRequest(key=b"a", start_revision=3))
    await put(kv, b"a")
    assert [event.kv.mod_revision for event in await next_events(watcher, 3)] == [3, 4, 5]


async def test_a_watch_from_a_compacted_revision_is_told_so(kv: api.KV) -> None:
    for _ in range(4):
        await put(kv, b"a")
    await kv.compact(4)
    watcher = kv.watch(api.WatchRequest(key=b"a", start_revision=2))
    with pytest.raises(errors.CompactedError) as told:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while watcher.take() is None:
                await watcher.wait()
    assert told.value.compact_revision == 4


async def test_a_cancelled_watch_wakes_its_reader(kv: api.KV) -> None:
    watcher = kv.watch(api.WatchRequest(key=b"a"))
    waiting = asyncio.ensure_future(watcher.wait())
    await asyncio.sleep(0)
    watcher.cancel()
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        await waiting


async def test_a_lease_holds_keys_and_takes_them_along(kv: api.KV) -> None:
    granted = await kv.lease_grant(600)
    assert granted.id != 0
    assert granted.ttl_seconds == 600
    for key in (b"a", b"b"):
        await put(kv, key, lease=granted.id)
    told = await kv.lease_time_to_live(granted.id, keys=True)
    assert (told.granted_ttl_seconds, told.keys) == (600, (b"a", b"b"))
    assert 590 <= told.ttl_seconds <= 600
    assert await kv.lease_keep_alive(granted.id) == 600
    assert await kv.leases() == (granted.id,)
    before = await kv.read_revision()
    await kv.lease_revoke(granted.id)
    assert await kv.read_revision() == before + 1
    assert await get(kv, b"a") is None and await get(kv, b"b") is None
    assert await kv.leases() == ()


async def test_leases_that_are_not_there(kv: api.KV) -> None:
    for refused in (kv.lease_revoke(7), kv.lease_keep_alive(7), put(kv, b"a", lease=7)):
        with pytest.raises(errors.LeaseNotFoundError):
            await refused
    assert (await kv.lease_time_to_live(7)).ttl_seconds == -1
    await kv.lease_grant(10, lease_id=7)
    with pytest.raises(errors.LeaseExistsError):
        await kv.lease_grant(10, lease_id=7)
    with pytest.raises(errors.LeaseTtlTooLargeError):
        await kv.lease_grant(9_000_000_001)


async def test_status_names_the_leader_and_the_sizes(kv: api.KV) -> None:
    await put(kv, b"a")
    status = await kv.status()
    assert status.leader_id == status.header.member_id
    assert status.header.revision == 2
    assert status.raft_applied_index > 0
    assert not status.is_learner
    assert status.db_size >= status.db_size_in_use >= 0
