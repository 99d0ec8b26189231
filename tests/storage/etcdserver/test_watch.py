"""Watches on a stream: ids, filters, previous values, fragments, progress, compaction, slow readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from storage import api
from storage.etcdpb import etcdserverpb as pb
from tests.storage.etcdserver.door_fixture import Client, RunningDoor, client_of, running_door

PATH = "/etcdserverpb.Watch/Watch"


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[RunningDoor]:
    async with running_door(tmp_path, watch_progress_notify_seconds=0.1) as running:
        yield running


@pytest.fixture
async def client(door: RunningDoor) -> AsyncIterator[Client]:
    async with client_of(door) as made:
        yield made


def create(key: bytes, **fields: Any) -> Any:
    return pb.WatchRequest(create_request=pb.WatchCreateRequest(key=key, **fields))


async def put(door: RunningDoor, key: bytes, value: bytes = b"v") -> int:
    return (await door.member.put(api.PutRequest(key=key, value=value))).header.revision


async def test_ids_are_given_out_and_taken(client: Client) -> None:
    stream = client.stream(PATH)
    answers = []
    for request in (create(b"a"), create(b"b", watch_id=7), create(b"c"), create(b"d", watch_id=7), create(b"z", range_end=b"a")):
        await stream.write(request)
        answers.append(await stream.read())
    assert [(answer.watch_id, answer.created, answer.canceled) for answer in answers] == [
        (0, True, False), (7, True, False), (1, True, False), (-1, True, True), (-1, True, True),
    ]  # fmt: skip
    assert answers[3].cancel_reason == "mvcc: duplicate watch ID provided on the WatchStream"
    assert answers[4].cancel_reason == "mvcc: watcher range is empty"
    await stream.write(pb.WatchRequest(cancel_request=pb.WatchCancelRequest(watch_id=7)))
    answer = await stream.read()
    assert (answer.watch_id, answer.canceled, answer.created) == (7, True, False)
    # the id is free again; cancelling what is not there is not answered
    await stream.write(pb.WatchRequest(cancel_request=pb.WatchCancelRequest(watch_id=99)))
    await stream.write(create(b"e", watch_id=7))
    assert (await stream.read()).watch_id == 7


async def test_filters_and_previous_values(door: RunningDoor, client: Client) -> None:
    stream = client.stream(PATH)
    for filters in ([], [pb.WatchCreateRequest.NOPUT], [pb.WatchCreateRequest.NODELETE]):
        await stream.write(create(b"k", filters=filters, prev_kv=True))
        assert (await stream.read()).created
    await put(door, b"k", b"1")
    await put(door, b"k", b"2")
    await door.member.delete_range(api.DeleteRangeRequest(key=b"k"))
    seen: dict[int, list[tuple[int, bytes, bytes]]] = {0: [], 1: [], 2: []}
    while sum(map(len, seen.values())) < 6:
        answer = await stream.read()
        seen[answer.watch_id] += [(event.type, event.kv.value, event.prev_kv.value) for event in answer.events]
    puts, deletion = [(0, b"1", b""), (0, b"2", b"1")], [(1, b"", b"2")]
    assert seen == {0: puts + deletion, 1: deletion, 2: puts}


async def test_a_compacted_start_is_created_then_cancelled(door: RunningDoor, client: Client) -> None:
    """Two messages: a client that takes one for both hangs; field case PY-E1."""
    for _ in range(5):
        await put(door, b"k")
    await door.member.compact(4)
    stream = client.stream(PATH)
    await stream.write(create(b"k", start_revision=2))
    first, second = await stream.read(), await stream.read()
    assert (first.created, first.canceled, first.watch_id) == (True, False, 0)
    assert (second.created, second.canceled, second.compact_revision, second.watch_id) == (False, True, 4, 0)
    await stream.write(create(b"k", start_revision=-1))
    refused = await stream.read()
    assert (refused.created, refused.canceled, refused.watch_id) == (True, True, -1)
    # the stream goes on, and the compact revision itself can be watched
    await stream.write(create(b"k", start_revision=4, watch_id=5))
    assert (await stream.read()).created
    assert [event.kv.mod_revision for event in (await stream.read()).events] == [4, 5, 6]


async def test_progress_on_request_is_true_for_all_watches_of_the_stream(door: RunningDoor, client: Client) -> None:
    stream = client.stream(PATH)
    for number in range(5):
        await stream.write(create(b"%d" % number))
        await stream.read()
    revision = 0
    for number in range(5):
        revision = await put(door, b"%d" % number)
    await stream.write(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
    seen = set()
    while (answer := await stream.read()).events:
        seen |= {event.kv.mod_revision for event in answer.events}
    assert (answer.watch_id, answer.header.revision) == (-1, revision)
    assert seen == set(range(2, revision + 1)), "every event up to the notice came before it"


async def test_no_progress_is_claimed_for_a_watch_that_has_not_begun(door: RunningDoor, client: Client) -> None:
    stream = client.stream(PATH)
    await stream.write(create(b"k", start_revision=100))
    await stream.read()
    await stream.write(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
    await stream.write(create(b"other"))
    assert (await stream.read()).created, "the progress request was passed over"


async def test_progress_by_itself_for_quiet_watches_that_want_it(door: RunningDoor, client: Client) -> None:
    stream = client.stream(PATH)
    await stream.write(create(b"k", progress_notify=True))
    await stream.write(create(b"k"))
    await stream.read()
    await stream.read()
    revision = await put(door, b"unseen")
    answer = await stream.read()
    assert (answer.watch_id, answer.header.revision, len(answer.events), answer.created) == (0, revision, 0, False)


async def test_fragments_hold_all_events_of_a_revision(door: RunningDoor, tmp_path: Path) -> None:
    puts = tuple(api.PutRequest(key=b"k%03d" % number, value=bytes(10_000)) for number in range(100))
    door.door.watches.fragment_bytes_max = 300_000
    async with client_of(door) as client:
        stream = client.stream(PATH)
        await stream.write(create(b"k", range_end=b"l", fragment=True))
        await stream.read()
        await door.member.txn(api.TxnRequest(success=puts))
        keys: list[bytes] = []
        sizes = []
        while True:
            answer = await stream.read()
            sizes.append(answer.ByteSize())
            keys += [event.kv.key for event in answer.events]
            if not answer.fragment:
                break
        assert keys == [each.key for each in puts]
        assert len(sizes) == 4 and max(sizes) < 310_000


async def test_a_client_that_does_not_read_holds_nobody_up_and_loses_nothing(door: RunningDoor, client: Client) -> None:
    """The slow one's events wait in the store's history, not in memory; when it reads, all of them come, in order."""
    slow = client.stream(PATH)
    await slow.write(create(b"k"))
    await slow.read()
    async with client_of(door) as other:
        fast = other.stream(PATH)
        await fast.write(create(b"k"))
        await fast.read()
        revisions: list[int] = []
        for _ in range(120):
            await put(door, b"k", bytes(300_000))
            while not revisions or revisions[-1] < door.member.header().revision:
                revisions += [event.kv.mod_revision for event in (await fast.read()).events]
    assert revisions == list(range(2, 122))
    assert door.member.collect_metrics().lagging_watcher_count == 1
    seen: list[int] = []
    while len(seen) < 120:
        seen += [event.kv.mod_revision for event in (await slow.read()).events]
    assert seen == revisions


async def test_a_slow_watch_overtaken_by_compaction_is_told_after_what_it_had(door: RunningDoor, client: Client) -> None:
    stream = client.stream(PATH)
    await stream.write(create(b"k"))
    await stream.read()
    for _ in range(120):
        await put(door, b"k", bytes(300_000))
    await door.member.compact(door.member.header().revision)
    seen: list[int] = []
    while not (answer := await stream.read()).canceled:
        seen += [event.kv.mod_revision for event in answer.events]
    assert seen == list(range(2, 2 + len(seen))) and 0 < len(seen) < 120
    assert answer.compact_revision == 121


async def test_many_watches_on_one_stream(door: RunningDoor, client: Client) -> None:
    stream = client.stream(PATH)
    for number in range(500):
        await stream.write(create(b"%03d" % number))
    created = [await stream.read() for _ in range(500)]
    assert [answer.watch_id for answer in created] == list(range(500))
    await door.member.txn(api.TxnRequest(success=tuple(api.PutRequest(key=b"%03d" % number, value=b"") for number in range(100))))
    seen: dict[int, list[bytes]] = {}
    while len(seen) < 100:
        answer = await stream.read()
        seen[answer.watch_id] = [event.kv.key for event in answer.events]
    assert seen == {number: [b"%03d" % number] for number in range(100)}
    await stream.done_writing()
    assert await asyncio.wait_for(stream.read(), 10) is grpc.aio.EOF
