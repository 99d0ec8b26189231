"""What ``storage.api.KV`` promises, for every implementation of it.

A test module subclasses ``KVConformance`` and gives it a fixture ``kv``: an empty store, started, stopped after the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from storage import api, errors
from storage.api import (
    Compare,
    CompareResult,
    CompareTarget,
    DeleteRangeRequest,
    EventType,
    PutRequest,
    RangeRequest,
    SortOrder,
    SortTarget,
    TxnRequest,
    WatchRequest,
)

WAIT_SECONDS = 5.0
T = TypeVar("T")


async def within(awaitable: Awaitable[T]) -> T:
    return await asyncio.wait_for(awaitable, WAIT_SECONDS)


async def put(kv: api.KV, key: bytes, value: bytes = b"v", lease: int = 0) -> int:
    return (await kv.put(PutRequest(key=key, value=value, lease=lease))).header.revision


async def get(kv: api.KV, key: bytes, revision: int = 0) -> api.KeyValue | None:
    kvs = (await kv.range(RangeRequest(key=key, revision=revision))).kvs
    return kvs[0] if kvs else None


async def keys(kv: api.KV, key: bytes = b"\0", range_end: bytes = b"\0") -> list[bytes]:
    return [one.key for one in (await kv.range(RangeRequest(key=key, range_end=range_end))).kvs]


async def collect(watcher: api.Watcher, events: int) -> list[api.Event]:
    """The next events of a watch, at least as many."""
    found: list[api.Event] = []
    while len(found) < events:
        batch = watcher.take()
        if batch is None:
            await within(watcher.wait())
        else:
            found += batch.events
    return found


class KVConformance:
    #: whether a request may be too large
    limits_requests = True
    #: etcd before 3.5.16 loses a deletion at the compacted revision (etcd-io/etcd#18089, #19179)
    keeps_compacted_deletions = True

    # -- revisions and ranges

    async def test_an_empty_store_is_at_revision_one(self, kv: api.KV) -> None:
        response = await kv.range(RangeRequest(key=b"a"))
        assert (response.header.revision, response.count, response.kvs, response.more) == (1, 0, (), False)
        assert await kv.read_revision() == 1

    async def test_each_write_is_one_revision_and_versions_count(self, kv: api.KV) -> None:
        assert [await put(kv, b"a", value) for value in (b"1", b"2", b"3")] == [2, 3, 4]
        assert await get(kv, b"a") == api.KeyValue(b"a", 2, 4, 3, b"3", 0)

    async def test_a_deleted_key_starts_over(self, kv: api.KV) -> None:
        await put(kv, b"a")
        await kv.delete_range(DeleteRangeRequest(key=b"a"))
        assert await get(kv, b"a") is None
        await put(kv, b"a", b"new")
        assert await get(kv, b"a") == api.KeyValue(b"a", 4, 4, 1, b"new", 0)

    async def test_old_revisions_can_be_read(self, kv: api.KV) -> None:
        for value in (b"1", b"2"):
            await put(kv, b"a", value)
        await kv.delete_range(DeleteRangeRequest(key=b"a"))
        found = [await get(kv, b"a", revision) for revision in (1, 2, 3, 4)]
        assert [one and one.value for one in found] == [None, b"1", b"2", None]

    async def test_a_future_revision_is_refused(self, kv: api.KV) -> None:
        with pytest.raises(errors.FutureRevisionError):
            await kv.range(RangeRequest(key=b"a", revision=2))

    async def test_ranges_are_half_open_and_in_key_order(self, kv: api.KV) -> None:
        for key in (b"b", b"a", b"c", b"a/1", b"\xff\xff"):
            await put(kv, key)
        assert await keys(kv, b"a", b"c") == [b"a", b"a/1", b"b"]
        assert await keys(kv, b"a/", b"a0") == [b"a/1"]
        assert await keys(kv, b"b", b"\0") == [b"b", b"c", b"\xff\xff"]
        assert await keys(kv, b"c", b"a") == []

    async def test_limit_cuts_and_count_does_not(self, kv: api.KV) -> None:
        for key in (b"a", b"b", b"c"):
            await put(kv, key)
        response = await kv.range(RangeRequest(key=b"a", range_end=b"z", limit=2))
        assert ([one.key for one in response.kvs], response.more, response.count) == ([b"a", b"b"], True, 3)
        response = await kv.range(RangeRequest(key=b"a", range_end=b"z", limit=3))
        assert (len(response.kvs), response.more, response.count) == (3, False, 3)

    async def test_count_only_and_keys_only(self, kv: api.KV) -> None:
        await put(kv, b"a", b"value")
        response = await kv.range(RangeRequest(key=b"a", count_only=True))
        assert (response.count, response.kvs) == (1, ())
        response = await kv.range(RangeRequest(key=b"a", keys_only=True))
        assert [(one.key, one.value, one.mod_revision) for one in response.kvs] == [(b"a", b"", 2)]

    async def test_sorting(self, kv: api.KV) -> None:
        for key, value in ((b"a", b"3"), (b"b", b"1"), (b"c", b"2"), (b"a", b"9")):
            await put(kv, key, value)

        async def order(target: SortTarget, direction: SortOrder) -> list[bytes]:
            request = RangeRequest(key=b"a", range_end=b"z", sort_target=target, sort_order=direction)
            return [one.key for one in (await kv.range(request)).kvs]

        assert await order(SortTarget.KEY, SortOrder.DESCEND) == [b"c", b"b", b"a"]
        assert await order(SortTarget.VALUE, SortOrder.ASCEND) == [b"b", b"c", b"a"]
        assert await order(SortTarget.MOD, SortOrder.ASCEND) == [b"b", b"c", b"a"]
        assert await order(SortTarget.CREATE, SortOrder.DESCEND) == [b"c", b"b", b"a"]
        assert await order(SortTarget.VERSION, SortOrder.DESCEND) == [b"a", b"b", b"c"]

    async def test_revision_filters(self, kv: api.KV) -> None:
        for key in (b"a", b"b", b"c"):
            await put(kv, key)
        response = await kv.range(RangeRequest(key=b"a", range_end=b"z", min_mod_revision=3, max_create_revision=3))
        assert [one.key for one in response.kvs] == [b"b"]

    async def test_an_empty_key_is_refused(self, kv: api.KV) -> None:
        with pytest.raises(errors.EmptyKeyError):
            await kv.range(RangeRequest(key=b""))
        with pytest.raises(errors.EmptyKeyError):
            await kv.put(PutRequest(key=b"", value=b""))
        with pytest.raises(errors.EmptyKeyError):
            await kv.delete_range(DeleteRangeRequest(key=b""))
        assert await kv.read_revision() == 1

    async def test_any_bytes_are_keys_and_values(self, kv: api.KV) -> None:
        everything = bytes(range(256)) * 3
        await put(kv, everything, everything)
        await put(kv, b"empty", b"")
        found = await get(kv, everything)
        assert found is not None
        assert found.value == everything
        empty = await get(kv, b"empty")
        assert empty is not None
        assert empty.value == b""

    # -- puts and deletes

    async def test_put_tells_the_previous_version(self, kv: api.KV) -> None:
        first = await kv.put(PutRequest(key=b"a", value=b"1", prev_kv=True))
        second = await kv.put(PutRequest(key=b"a", value=b"2", prev_kv=True))
        assert first.prev_kv is None
        assert second.prev_kv == api.KeyValue(b"a", 2, 2, 1, b"1", 0)

    async def test_ignore_value_keeps_it_and_needs_the_key(self, kv: api.KV) -> None:
        with pytest.raises(errors.KeyNotFoundError):
            await kv.put(PutRequest(key=b"a", value=b"", ignore_value=True))
        assert await kv.read_revision() == 1
        await put(kv, b"a", b"kept")
        await kv.put(PutRequest(key=b"a", value=b"", ignore_value=True))
        assert await get(kv, b"a") == api.KeyValue(b"a", 2, 3, 2, b"kept", 0)

    async def test_delete_range_deletes_all_at_one_revision(self, kv: api.KV) -> None:
        for key in (b"a", b"b", b"c"):
            await put(kv, key)
        response = await kv.delete_range(DeleteRangeRequest(key=b"a", range_end=b"c", prev_kv=True))
        assert (response.deleted, response.header.revision, [one.key for one in response.prev_kvs]) == (2, 5, [b"a", b"b"])
        assert await keys(kv) == [b"c"]

    async def test_deleting_nothing_moves_no_revision(self, kv: api.KV) -> None:
        response = await kv.delete_range(DeleteRangeRequest(key=b"a"))
        assert (response.deleted, response.header.revision) == (0, 1)

    # -- transactions

    async def test_compare_and_swap(self, kv: api.KV) -> None:
        revision = await put(kv, b"a", b"1")
        swap = TxnRequest(
            compare=(Compare(key=b"a", target=CompareTarget.MOD, operand=revision),),
            success=(PutRequest(key=b"a", value=b"2"),),
            failure=(RangeRequest(key=b"a"),),
        )
        won = await kv.txn(swap)
        assert (won.succeeded, won.header.revision) == (True, 3)
        lost = await kv.txn(swap)
        assert (lost.succeeded, lost.header.revision) == (False, 3)
        read = lost.responses[0]
        assert isinstance(read, api.RangeResponse)
        assert read.kvs[0].value == b"2"

    @pytest.mark.parametrize(
        ("compare", "holds"),
        [
            (Compare(key=b"a", target=CompareTarget.VERSION, operand=2), True),
            (Compare(key=b"a", target=CompareTarget.CREATE, operand=2), True),
            (Compare(key=b"a", target=CompareTarget.VALUE, operand=b"2"), True),
            (Compare(key=b"a", target=CompareTarget.VALUE, operand=b"3", result=CompareResult.LESS), True),
            (Compare(key=b"a", target=CompareTarget.MOD, operand=3, result=CompareResult.GREATER), False),
            (Compare(key=b"a", target=CompareTarget.LEASE, operand=0), True),
            (Compare(key=b"a", target=CompareTarget.MOD, operand=3, result=CompareResult.NOT_EQUAL), False),
            (Compare(key=b"absent", target=CompareTarget.MOD, operand=0), True),
            (Compare(key=b"absent", target=CompareTarget.VERSION, operand=0, result=CompareResult.GREATER), False),
            (Compare(key=b"absent", target=CompareTarget.VALUE, operand=b""), False),
            (Compare(key=b"a", range_end=b"z", target=CompareTarget.VERSION, operand=0, result=CompareResult.GREATER), True),
            (Compare(key=b"a", range_end=b"z", target=CompareTarget.VERSION, operand=2), False),
        ],
    )
    async def test_comparisons(self, kv: api.KV, compare: Compare, holds: bool) -> None:
        for key, value in ((b"a", b"1"), (b"a", b"2"), (b"b", b"1")):
            await put(kv, key, value)
        assert (await kv.txn(TxnRequest(compare=(compare,)))).succeeded is holds

    async def test_all_of_a_txn_is_one_revision_and_reads_see_its_own_writes(self, kv: api.KV) -> None:
        await put(kv, b"old")
        response = await kv.txn(
            TxnRequest(
                success=(
                    PutRequest(key=b"a", value=b"1"),
                    PutRequest(key=b"b", value=b"2"),
                    DeleteRangeRequest(key=b"old"),
                    RangeRequest(key=b"\0", range_end=b"\0"),
                )
            )
        )
        assert response.header.revision == 3
        read = response.responses[3]
        assert isinstance(read, api.RangeResponse)
        assert [(one.key, one.mod_revision) for one in read.kvs] == [(b"a", 3), (b"b", 3)]

    async def test_nested_txns(self, kv: api.KV) -> None:
        inner = TxnRequest(
            compare=(Compare(key=b"a", target=CompareTarget.VERSION, operand=0),),
            success=(PutRequest(key=b"a", value=b"made"),),
        )
        response = await kv.txn(TxnRequest(success=(inner, PutRequest(key=b"b", value=b"x"))))
        assert response.header.revision == 2
        assert await keys(kv) == [b"a", b"b"]

    async def test_a_refused_txn_changes_nothing(self, kv: api.KV) -> None:
        bad = TxnRequest(success=(PutRequest(key=b"a", value=b"1"), PutRequest(key=b"b", value=b"1", lease=77)))
        with pytest.raises(errors.LeaseNotFoundError):
            await kv.txn(bad)
        with pytest.raises(errors.DuplicateKeyError):
            await kv.txn(TxnRequest(success=(PutRequest(key=b"a", value=b"1"), PutRequest(key=b"a", value=b"2"))))
        with pytest.raises(errors.TooManyOpsError):
            await kv.txn(TxnRequest(success=tuple(RangeRequest(key=b"%d" % number) for number in range(129))))
        assert await kv.read_revision() == 1
        assert await keys(kv) == []

    async def test_a_read_only_txn_moves_no_revision(self, kv: api.KV) -> None:
        await put(kv, b"a")
        response = await kv.txn(TxnRequest(success=(RangeRequest(key=b"a"),)))
        assert (response.header.revision, response.succeeded) == (2, True)

    async def test_of_many_that_compare_only_one_wins(self, kv: api.KV) -> None:
        create = [
            TxnRequest(
                compare=(Compare(key=b"a", target=CompareTarget.MOD, operand=0),),
                success=(PutRequest(key=b"a", value=b"%d" % number),),
            )
            for number in range(20)
        ]
        responses = await asyncio.gather(*(kv.txn(request) for request in create))
        assert sum(response.succeeded for response in responses) == 1
        assert await kv.read_revision() == 2

    # -- compaction

    async def test_compaction_keeps_the_newest_version_up_to_it(self, kv: api.KV) -> None:
        for value in (b"1", b"2", b"3"):
            await put(kv, b"a", value)
        await kv.compact(3, physical=True)
        with pytest.raises(errors.CompactedError) as caught:
            await get(kv, b"a", 2)
        assert caught.value.compact_revision in (0, 3)
        at_3 = await get(kv, b"a", 3)
        assert at_3 is not None
        assert at_3.value == b"2"
        with pytest.raises(errors.CompactedError):
            await kv.compact(3)
        with pytest.raises(errors.FutureRevisionError):
            await kv.compact(99)

    # -- watches

    async def test_a_watch_sees_what_comes_after_it(self, kv: api.KV) -> None:
        await put(kv, b"before")
        watcher = kv.watch(WatchRequest(key=b"a", range_end=b"z"))
        if not kv.events_are_immediate:
            await kv.read_revision()
        await put(kv, b"a", b"1")
        await put(kv, b"zz")
        await kv.delete_range(DeleteRangeRequest(key=b"a"))
        events = await collect(watcher, 2)
        watcher.cancel()
        assert [(event.type, event.kv.key, event.kv.mod_revision) for event in events] == [
            (EventType.PUT, b"a", 3),
            (EventType.DELETE, b"a", 5),
        ]

    async def test_a_watch_from_a_revision_sees_history_and_then_news_without_a_gap(self, kv: api.KV) -> None:
        for number in range(20):
            await put(kv, b"k%02d" % number)
        watcher = kv.watch(WatchRequest(key=b"k", range_end=b"l", start_revision=5))
        for number in range(20, 40):
            await put(kv, b"k%02d" % number)
        events = await collect(watcher, 37)
        watcher.cancel()
        assert [event.kv.mod_revision for event in events] == list(range(5, 42))

    async def test_a_watch_gives_previous_versions_and_filters(self, kv: api.KV) -> None:
        watcher = kv.watch(WatchRequest(key=b"a", start_revision=2, prev_kv=True, no_delete=True))
        await put(kv, b"a", b"1")
        await kv.delete_range(DeleteRangeRequest(key=b"a"))
        await put(kv, b"a", b"2")
        await put(kv, b"a", b"3")
        events = await collect(watcher, 3)
        watcher.cancel()
        assert [(event.kv.value, event.prev_kv and event.prev_kv.value) for event in events] == [(b"1", None), (b"2", None), (b"3", b"2")]

    async def test_events_of_one_revision_come_in_one_batch(self, kv: api.KV) -> None:
        watcher = kv.watch(WatchRequest(key=b"\0", range_end=b"\0", start_revision=2))
        await kv.txn(TxnRequest(success=tuple(PutRequest(key=b"k%d" % number, value=b"") for number in range(5))))
        while (batch := watcher.take()) is None or not batch.events:
            await within(watcher.wait())
        watcher.cancel()
        assert (batch.revision, len(batch.events)) == (2, 5)

    async def test_a_watch_of_compacted_history_says_so(self, kv: api.KV) -> None:
        for _ in range(5):
            await put(kv, b"a")
        await kv.compact(4, physical=True)
        watcher = kv.watch(WatchRequest(key=b"a", start_revision=2))
        with pytest.raises(errors.CompactedError):
            await collect(watcher, 1)
        watcher.cancel()

    async def test_events_are_there_with_the_acknowledgement(self, kv: api.KV) -> None:
        if not kv.events_are_immediate:
            pytest.skip("events of this store travel")
        watcher = kv.watch(WatchRequest(key=b"\0", range_end=b"\0"))
        revision = await put(kv, b"a")
        batch = watcher.take()
        assert batch is not None
        assert batch.revision == revision
        assert kv.local_revision() in (revision, None)  # None: one of several members

    async def test_a_quiet_watch_comes_to_what_was_read(self, kv: api.KV) -> None:
        """Progress: nothing happens in its range, and still it says how far it is, never further than its events."""
        if not kv.progress_on_request or kv.events_are_immediate:
            pytest.skip("with this store nobody waits for a watch, or nobody can")
        quiet = kv.watch(WatchRequest(key=b"quiet", start_revision=1))
        loud = kv.watch(WatchRequest(key=b"loud", start_revision=1))
        for _ in range(10):
            written = await put(kv, b"loud")
            revision = await kv.read_revision()
            assert revision >= written
            reached = 0
            while reached < revision:
                batch = quiet.take()
                if batch is None:
                    await within(quiet.wait())
                else:
                    assert batch.events == ()
                    reached = batch.revision
            await put(kv, b"loud")
        seen: list[int] = []
        while len(seen) < 20:
            batch = loud.take()
            if batch is None:
                await within(loud.wait())
            else:
                assert not seen or batch.revision >= seen[-1]
                seen += [event.kv.mod_revision for event in batch.events]
        assert seen == list(range(2, 22))
        quiet.cancel()
        loud.cancel()

    async def test_the_same_watch_many_times_over(self, kv: api.KV) -> None:
        """Fifty watches of one store, each complete and in order; those cancelled get nothing more."""
        watchers = [kv.watch(WatchRequest(key=b"\0", range_end=b"\0", start_revision=2, prev_kv=bool(n % 2))) for n in range(50)]
        for number in range(10):
            await put(kv, b"k%d" % (number % 3))
        for watcher in watchers[40:]:
            watcher.cancel()
        for watcher in watchers[:40]:
            assert [event.kv.mod_revision for event in await collect(watcher, 10)] == list(range(2, 12))
            watcher.cancel()

    async def test_a_watch_of_the_future_gets_nothing_before(self, kv: api.KV) -> None:
        """ST-W2."""
        watcher = kv.watch(WatchRequest(key=b"a", start_revision=6))
        for _ in range(7):
            await put(kv, b"a")
        assert [event.kv.mod_revision for event in await collect(watcher, 3)] == [6, 7, 8]
        watcher.cancel()

    async def test_a_deletion_at_the_compacted_revision_is_kept_for_watches(self, kv: api.KV) -> None:
        """ST-R1."""
        if not self.keeps_compacted_deletions:
            pytest.skip("this etcd has the fault that the case is about")
        await put(kv, b"a")
        await put(kv, b"a")
        await kv.delete_range(DeleteRangeRequest(key=b"a"))
        await put(kv, b"b")
        await kv.compact(4)
        with pytest.raises(errors.CompactedError):
            await get(kv, b"a", 3)
        assert await get(kv, b"a", 4) is None
        watcher = kv.watch(WatchRequest(key=b"a", start_revision=4))
        [event] = await collect(watcher, 1)
        assert (event.type, event.kv.mod_revision) == (EventType.DELETE, 4)
        watcher.cancel()

    async def test_large_values_and_many_events_at_once(self, kv: api.KV) -> None:
        value = bytes(1_000_000)
        watcher = kv.watch(WatchRequest(key=b"a", range_end=b"z", start_revision=2))
        for number in range(4):
            await put(kv, b"big%d" % number, value)
        await kv.txn(TxnRequest(success=tuple(PutRequest(key=b"k%03d" % number, value=b"x" * 10_000) for number in range(120))))
        events = await collect(watcher, 124)
        assert [len(event.kv.value) for event in events] == [1_000_000] * 4 + [10_000] * 120
        watcher.cancel()
        if self.limits_requests:
            with pytest.raises(errors.RequestTooLargeError):
                await put(kv, b"too", bytes(1_600_000))

    async def test_a_cancelled_watch_ends_its_wait(self, kv: api.KV) -> None:
        watcher = kv.watch(WatchRequest(key=b"a"))
        waiting = asyncio.ensure_future(watcher.wait())
        await asyncio.sleep(0)
        watcher.cancel()
        watcher.cancel()
        await within(waiting)

    # -- leases

    async def test_revoking_a_lease_deletes_its_keys_at_one_revision(self, kv: api.KV) -> None:
        lease = await kv.lease_grant(600)
        for key in (b"a", b"b"):
            await put(kv, key, lease=lease.id)
        await put(kv, b"free")
        found = await kv.lease_time_to_live(lease.id, keys=True)
        assert (found.granted_ttl_seconds, found.keys) == (600, (b"a", b"b"))
        assert 590 <= found.ttl_seconds <= 600
        assert lease.id in await kv.leases()
        revision = await kv.read_revision()
        assert (await kv.lease_revoke(lease.id)).revision == revision + 1
        assert await keys(kv) == [b"free"]
        assert (await kv.lease_time_to_live(lease.id)).ttl_seconds == -1

    async def test_a_key_put_without_the_lease_leaves_it(self, kv: api.KV) -> None:
        lease = await kv.lease_grant(600)
        await put(kv, b"a", lease=lease.id)
        await put(kv, b"a")
        await kv.lease_revoke(lease.id)
        assert await keys(kv) == [b"a"]

    async def test_leases_are_found_or_refused(self, kv: api.KV) -> None:
        granted = await kv.lease_grant(600, lease_id=7)
        assert (granted.id, granted.ttl_seconds) == (7, 600)
        assert await kv.lease_keep_alive(7) == 600
        with pytest.raises(errors.LeaseExistsError):
            await kv.lease_grant(600, lease_id=7)
        with pytest.raises(errors.LeaseTtlTooLargeError):
            await kv.lease_grant(9_000_000_001)
        with pytest.raises(errors.LeaseNotFoundError):
            await kv.lease_revoke(8)
        with pytest.raises(errors.LeaseNotFoundError):
            await kv.lease_keep_alive(8)
        with pytest.raises(errors.LeaseNotFoundError):
            await put(kv, b"a", lease=8)
        assert await kv.read_revision() == 1

    # -- status

    async def test_status_tells_the_revision(self, kv: api.KV) -> None:
        await put(kv, b"a")
        status = await kv.status()
        assert status.header.revision == 2
        assert status.db_size >= status.db_size_in_use >= 0
