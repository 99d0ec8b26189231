"""The transport between real members, over loopback sockets: plain where it does not matter, mutual TLS where it does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvloop

from storage import errors, tls
from storage.member import peer_channel, peer_codec, peer_connection, peer_listener
from storage.member.peer_codec import Channel, FrameReader, FrameType
from storage.raft import codec
from storage.raft.messages import MessageType
from tests.storage.member.peers import (
    CLUSTER_ID,
    Chunks,
    TestPeer,
    append,
    free_port,
    heartbeat,
    make_peer,
    snapshot_message,
    tls_files,
    until,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:Overriding the .event_loop_policy. fixture")


@pytest.fixture(params=[asyncio.DefaultEventLoopPolicy, uvloop.EventLoopPolicy], ids=["asyncio", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    """The server runs on uvloop; the standard loop is what its documentation promises."""
    policy: asyncio.AbstractEventLoopPolicy = request.param()
    return policy


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tls.TlsFiles:
    return tls_files(tmp_path_factory.mktemp("pki"))


@pytest.fixture
async def running() -> AsyncIterator[contextlib.AsyncExitStack]:
    """Stops what was started, and sees that no task is left."""
    before = asyncio.all_tasks()
    async with contextlib.AsyncExitStack() as stack:
        yield stack
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not [task for task in left if not task.done()]


async def start(running: contextlib.AsyncExitStack, *peers: TestPeer, cluster_id: int = CLUSTER_ID) -> None:
    for peer in peers:
        await peer.start(cluster_id)
        running.push_async_callback(peer.transport.stop)


async def pair(running: contextlib.AsyncExitStack, files: tls.TlsFiles | None = None, **kwargs: int) -> tuple[TestPeer, TestPeer]:
    """Two members that reach each other."""
    one, two = make_peer(1, files, **kwargs), make_peer(2, files, **kwargs)
    await start(running, one, two)
    one.knows(two)
    two.knows(one)
    await one.reaches(two)
    await two.reaches(one)
    return one, two


@pytest.fixture
def quick_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_connection, "PING_SECONDS", 0.02)


# -- messages


async def test_messages_go_both_ways_over_mutual_tls(running: contextlib.AsyncExitStack, files: tls.TlsFiles) -> None:
    one, two = await pair(running, files)
    sent = [heartbeat(1, 2, commit) for commit in range(5)]
    one.transport.send(sent)
    two.transport.send([append(2, 1, b"x" * 100_000)])
    await until(lambda: len(two.handler.messages) == 5 and one.handler.messages)
    assert two.handler.messages == sent
    assert one.handler.messages == [append(2, 1, b"x" * 100_000)]
    assert one.transport.metrics.sent_bytes[2] > 0 and two.transport.metrics.received_bytes[1] > 0


async def test_what_has_no_peer_or_no_connection_is_dropped_and_reported(running: contextlib.AsyncExitStack) -> None:
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one)
    one.knows(two)  # nobody listens there
    one.transport.send([heartbeat(1, 2), heartbeat(1, 2), heartbeat(1, 9)])
    assert one.handler.unreachable == [], "not from inside send: its caller is in the middle of its work"
    await until(lambda: one.handler.unreachable)
    assert one.handler.unreachable == [2, 9]
    assert one.transport.active_since(2) is None and one.transport.active_since(9) is None


async def test_a_peer_that_comes_later_is_found_and_one_that_goes_is_reported(running: contextlib.AsyncExitStack) -> None:
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one)
    one.knows(two)
    await start(running, two)
    await one.reaches(two)
    await two.transport.stop()
    await until(lambda: 2 in one.handler.unreachable and one.transport.active_since(2) is None)
    assert one.transport.collect_metrics().active_peers[2] == 0
    assert one.transport.metrics.disconnected_peers[2] >= 1


async def test_a_peer_that_is_heard_is_dialled_at_once(running: contextlib.AsyncExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_channel, "BACKOFF_SECONDS_MIN", 3600.0)
    monkeypatch.setattr(peer_channel, "BACKOFF_SECONDS_MAX", 3600.0)
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one)
    one.knows(two)
    await until(lambda: one.transport._peers[2].link.last_problem)
    await start(running, two)
    two.knows(one)
    await one.reaches(two)


async def test_heartbeats_pass_appends_that_are_stuck(running: contextlib.AsyncExitStack) -> None:
    """A peer that does not read its appends: what is queued for it stays within the bound, and heartbeats still arrive."""
    one = make_peer(1, None, message_bytes_max=1 << 20)
    await start(running, one)
    evil = await Stuck.listen(running)
    one.transport.set_peer(2, (evil.url,))
    await until(lambda: one.transport.active_since(2) is not None)
    channel = one.transport._peers[2].appends
    for _ in range(400):
        one.transport.send([append(1, 2, b"x" * 500_000)])
    await until(lambda: 2 in one.handler.unreachable)
    assert channel._queued_bytes <= peer_channel.QUEUE_BYTES_MAX[Channel.APPENDS]
    assert channel._queue
    one.transport.send([heartbeat(1, 2, 77)])
    await until(lambda: any(message.commit == 77 for message in evil.messages))
    assert one.transport.metrics.sent_failures[2] > 0


async def test_many_small_messages_to_a_stuck_peer_are_bounded_by_count(running: contextlib.AsyncExitStack) -> None:
    one = make_peer(1, None)
    await start(running, one)
    evil = await Stuck.listen(running)
    one.transport.set_peer(2, (evil.url,))
    await until(lambda: one.transport.active_since(2) is not None)
    channel = one.transport._peers[2].appends
    await until(lambda: one.transport.send([append(1, 2, b"x" * 500_000)]) or channel._queue)
    for _ in range(peer_channel.QUEUE_COUNT_MAX + 10):
        one.transport.send([append(1, 2)])
    assert len(channel._queue) <= peer_channel.QUEUE_COUNT_MAX


async def test_queued_messages_arrive_in_order_once_the_peer_reads_again(running: contextlib.AsyncExitStack) -> None:
    one = make_peer(1, None)
    await start(running, one)
    evil = await Stuck.listen(running)
    one.transport.set_peer(2, (evil.url,))
    await until(lambda: one.transport.active_since(2) is not None)
    channel = one.transport._peers[2].appends
    count = 0
    while not channel._queue or count < 40:
        one.transport.send([append(1, 2, b"x" * 500_000, index=count + 1)])
        count += 1
        await asyncio.sleep(0)
    evil.read_appends.set()
    await until(lambda: len(evil.appends) == count)
    assert [message.entries[0].index for message in evil.appends] == list(range(1, count + 1))


async def test_a_message_larger_than_the_limit_is_not_sent(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running, None, message_bytes_max=2_000_000)
    one.transport.send([append(1, 2, b"x" * 2_000_000)])
    await until(lambda: one.handler.unreachable)
    one.transport.send([append(1, 2, b"small")])
    await until(lambda: two.handler.messages)
    assert two.handler.messages == [append(1, 2, b"small")]


async def test_a_member_that_is_not_known_yet_is_heard_and_answered(running: contextlib.AsyncExitStack) -> None:
    """One lags: it has not applied the change that added the leader."""
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one, two)
    two.knows(one)
    await two.reaches(one)
    two.transport.send([heartbeat(2, 1)])
    await until(lambda: one.handler.messages)
    await until(lambda: one.transport.send([heartbeat(1, 2)]) or two.handler.messages)
    assert one.transport.active_since(2) is None, "it is no member yet, as far as this one knows"


# -- who may connect


@pytest.mark.parametrize("side", ["dials", "listens"])
async def test_a_stranger_is_refused(running: contextlib.AsyncExitStack, files: tls.TlsFiles, tmp_path: Path, side: str) -> None:
    ours, stranger = make_peer(1, files), make_peer(2, tls_files(tmp_path))
    await start(running, ours, stranger)
    dialler, listener = (stranger, ours) if side == "dials" else (ours, stranger)
    dialler.knows(listener)
    await until(lambda: dialler.transport._peers[listener.member_id].link.last_problem)
    assert "members must trust one authority" in dialler.transport._peers[listener.member_id].link.last_problem
    dialler.transport.send([heartbeat(dialler.member_id, listener.member_id)])
    await until(lambda: dialler.handler.unreachable)
    assert not listener.handler.messages


async def test_a_client_certificate_of_the_same_authority_makes_no_peer(
    running: contextlib.AsyncExitStack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import datetime

    from apiserver.cli.pki import Pki

    files = tls_files(tmp_path)
    client = Pki(tmp_path, datetime.datetime.now(datetime.UTC)).etcd_client()
    one = make_peer(1, files)
    two = make_peer(2, tls.TlsFiles(certificate=client.certificate, key=client.key, trusted_ca=files.trusted_ca))
    await start(running, one, two)
    two.knows(one)
    await until(lambda: "client's and not a member's" in two.transport._peers[1].link.last_problem)
    with pytest.raises(errors.UnavailableError, match="client's and not a member's"):
        await two.transport.call(1, "anything", b"", timeout_seconds=5)
    assert not one.handler.calls


async def test_no_certificate_is_refused(running: contextlib.AsyncExitStack, files: tls.TlsFiles) -> None:
    one = make_peer(1, files)
    await start(running, one)
    context = ssl.create_default_context(cafile=files.trusted_ca)
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(one.url.rpartition(":")[2]), ssl=context)
        writer.write(peer_codec.encode_hello(peer_codec.Hello(channel=Channel.CALLS, cluster_id=CLUSTER_ID, sender=2, target=1)))
        assert await reader.read() == b""
        writer.close()


async def test_another_cluster_is_refused_and_both_sides_log_it_once(
    running: contextlib.AsyncExitStack, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_channel, "BACKOFF_SECONDS_MAX", 0.01)
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one)
    await start(running, two, cluster_id=0xBAD)
    with caplog.at_level(logging.WARNING):
        one.knows(two)
        await until(lambda: one.transport._peers[2].link.last_problem)
        await asyncio.sleep(0.1)  # some more attempts, which must not be logged
    records = [record.getMessage() for record in caplog.records if "cluster ID mismatch" in record.getMessage()]
    assert len([text for text in records if "cannot be reached" in text]) == 1
    assert len([text for text in records if "refused" in text]) == 1
    assert not one.transport.was_removed()


async def test_a_member_at_anothers_address_is_refused(running: contextlib.AsyncExitStack) -> None:
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one, two)
    one.transport.set_peer(3, (two.url,))
    await until(lambda: "this is member" in one.transport._peers[3].link.last_problem)


async def test_messages_in_anothers_name_end_the_connection(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    since = one.transport.active_since(2)
    one.transport.send([heartbeat(3, 2)])
    await until(lambda: two.transport.metrics.received_failures[1] == 1)
    assert not two.handler.messages
    await until(lambda: one.transport.active_since(2) not in (None, since))


@pytest.mark.parametrize("kind", [MessageType.HUP, MessageType.UNREACHABLE, MessageType.CHECK_QUORUM])
async def test_messages_that_a_member_sends_only_to_itself_are_an_offence(running: contextlib.AsyncExitStack, kind: MessageType) -> None:
    import dataclasses

    one, two = await pair(running)
    one.transport.send([dataclasses.replace(heartbeat(1, 2), type=kind)])
    await until(lambda: two.transport.metrics.received_failures[1] == 1)
    assert not two.handler.messages


async def test_a_removed_member_learns_it(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    one.transport.remove_peer(2)
    await until(two.transport.was_removed)
    assert not one.transport.was_removed()
    before = len(one.handler.messages)
    two.transport.send([heartbeat(2, 1)])
    await until(lambda: 1 in two.handler.unreachable)
    assert len(one.handler.messages) == before


async def test_a_member_removed_while_it_was_away_learns_it_when_it_comes_back(running: contextlib.AsyncExitStack) -> None:
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one, two)
    one.transport.remove_peer(2)  # as after a restart: from what the store remembers
    two.knows(one)
    await until(two.transport.was_removed)


async def test_a_changed_url_is_dialled(running: contextlib.AsyncExitStack) -> None:
    one, two, moved = make_peer(1, None), make_peer(2, None), make_peer(2, None)
    await start(running, one, two, moved)
    one.knows(two)
    await one.reaches(two)
    one.knows(moved)
    await one.reaches(moved)
    one.transport.send([heartbeat(1, 2)])
    await until(lambda: moved.handler.messages)
    assert not two.handler.messages


@pytest.mark.parametrize("junk", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x01\x06", b"\xff" * 64, os.urandom(2000), b""])
async def test_junk_on_the_port_changes_nothing(running: contextlib.AsyncExitStack, junk: bytes) -> None:
    one, two = await pair(running)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(two.url.rpartition(":")[2]))
    writer.write(junk)
    writer.write_eof()
    with contextlib.suppress(OSError):
        assert await reader.read() == b""
    writer.close()
    one.transport.send([heartbeat(1, 2)])
    await until(lambda: two.handler.messages)


async def test_connections_without_a_handshake_are_bounded_and_end(
    running: contextlib.AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_listener, "DIAL_SECONDS", 0.2)
    monkeypatch.setattr(peer_listener, "UNPROVEN_MAX", 4)
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one, two)
    port = int(two.url.rpartition(":")[2])
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]
    assert two.transport._listener is not None
    await until(lambda: two.transport._listener and two.transport._listener.connections)
    assert len(two.transport._listener.connections) <= 4
    one.knows(two)
    await one.reaches(two)  # they were cut off in time, so the member behind them gets its turn
    for _, writer in silent:
        writer.close()


async def test_a_second_listener_on_the_port_is_named(running: contextlib.AsyncExitStack) -> None:
    port = free_port()
    await start(running, make_peer(1, None, port=port))
    with pytest.raises(errors.UnavailableError, match=f"127.0.0.1:{port}"):
        await make_peer(2, None, port=port).start()


# -- who lives


@pytest.mark.usefixtures("quick_pings")
async def test_a_peer_that_says_nothing_any_more_is_given_up(running: contextlib.AsyncExitStack) -> None:
    """As one that was stopped: the kernel goes on taking bytes for it."""
    one = make_peer(1, None)
    await start(running, one)
    evil = await Stuck.listen(running)
    evil.answer_pings = False
    one.transport.set_peer(2, (evil.url,))
    await until(lambda: one.transport.active_since(2) is not None)
    await until(lambda: 2 in one.handler.unreachable)


@pytest.mark.usefixtures("quick_pings")
async def test_a_quiet_peer_that_answers_is_kept_and_measured(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    since = one.transport.active_since(2)
    await until(lambda: 2 in one.transport.metrics.round_trip_seconds and one.transport.metrics.round_trip_seconds[2].count > 40)
    assert one.transport.active_since(2) == since
    assert not one.handler.unreachable and not two.handler.unreachable


# -- calls


async def test_calls_are_answered(running: contextlib.AsyncExitStack, files: tls.TlsFiles) -> None:
    one, two = await pair(running, files)
    answers = await asyncio.gather(*(one.transport.call(2, "reverse", b"%03d" % number, timeout_seconds=5) for number in range(200)))
    assert answers == [(b"%03d" % number)[::-1] for number in range(200)]
    assert two.handler.calls[0] == (1, "reverse", b"000")


async def test_the_error_of_a_call_is_the_peers(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    two.handler.fail = errors.LeaseNotFoundError()
    with pytest.raises(errors.LeaseNotFoundError, match="requested lease not found"):
        await one.transport.call(2, "renew", b"", timeout_seconds=5)
    two.handler.fail = ZeroDivisionError()
    with pytest.raises(errors.RequestTimeoutError, match="ZeroDivisionError"):
        await one.transport.call(2, "renew", b"", timeout_seconds=5)


async def test_a_call_that_certainly_did_not_arrive_says_so(running: contextlib.AsyncExitStack) -> None:
    one, two = make_peer(1, None), make_peer(2, None)
    await start(running, one)
    one.knows(two)
    for member_id in (2, 9):
        with pytest.raises(errors.UnavailableError) as caught:
            await one.transport.call(member_id, "x", b"", timeout_seconds=5)
        assert type(caught.value) is errors.UnavailableError


async def test_a_call_without_an_answer_in_time_is_of_unknown_outcome(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    await one.transport.call(2, "x", b"", timeout_seconds=5)  # the connection is there
    two.handler.hold = asyncio.Event()
    with pytest.raises(errors.RequestTimeoutError):
        await one.transport.call(2, "x", b"", timeout_seconds=0.05)
    call = asyncio.create_task(one.transport.call(2, "x", b"", timeout_seconds=5))
    await until(lambda: len(two.handler.calls) == 3)
    await two.transport.stop()
    with pytest.raises(errors.RequestTimeoutError):
        await call


async def test_a_member_without_an_id_may_call_and_nothing_else(running: contextlib.AsyncExitStack, files: tls.TlsFiles) -> None:
    one, joining = make_peer(1, files), make_peer(0, files)
    await start(running, one)
    running.push_async_callback(joining.transport.stop)
    assert await joining.transport.call_url(one.url, "members", b"abc", timeout_seconds=5) == b"cba"
    assert one.handler.calls == [(0, "members", b"abc")]
    with pytest.raises(errors.InvalidUrlsError):
        await joining.transport.call_url("https://nowhere", "members", b"", timeout_seconds=5)


async def test_more_calls_than_the_peer_works_on_at_once_all_come_to_an_end(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    two.handler.hold = asyncio.Event()
    calls = [asyncio.create_task(one.transport.call(2, "x", b"%d" % n, timeout_seconds=10)) for n in range(300)]
    await until(lambda: len(two.handler.calls) >= peer_listener.CALLS_AT_ONCE_MAX)
    two.handler.hold.set()
    assert len(await asyncio.gather(*calls)) == 300


async def test_too_many_calls_are_refused(running: contextlib.AsyncExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_channel, "CALLS_PENDING_MAX", 2)
    one, two = await pair(running)
    two.handler.hold = asyncio.Event()
    calls = [asyncio.create_task(one.transport.call(2, "x", b"", timeout_seconds=10)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(errors.TooManyRequestsError):
        await one.transport.call(2, "x", b"", timeout_seconds=5)
    two.handler.hold.set()
    await asyncio.gather(*calls)


async def test_a_call_or_an_answer_beyond_the_limit_is_refused(running: contextlib.AsyncExitStack) -> None:
    one, _ = await pair(running, None, message_bytes_max=2_000_000)
    with pytest.raises(errors.RequestTooLargeError):
        await one.transport.call(2, "x", b"x" * 2_000_000, timeout_seconds=5)


# -- snapshots


async def test_a_snapshot_arrives_whole(running: contextlib.AsyncExitStack, files: tls.TlsFiles) -> None:
    one, two = await pair(running, files)
    content = os.urandom(3_500_000)
    chunks = Chunks([content[:10], content[10:2_500_000], b"", content[2_500_000:]])
    one.transport.send_snapshot(snapshot_message(1, 2), chunks.source())
    await until(lambda: one.handler.sent)
    assert one.handler.sent == [(2, True)]
    assert two.handler.snapshots == [(snapshot_message(1, 2), content)]
    assert chunks.closed
    assert one.transport.metrics.snapshot_send_success[2] == 1 and two.transport.metrics.snapshot_receive_success[1] == 1


async def test_messages_go_on_while_a_snapshot_waits_for_a_slow_disk(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    two.handler.hold = asyncio.Event()
    chunks = Chunks([b"x" * (1 << 20) for _ in range(64)])
    one.transport.send_snapshot(snapshot_message(1, 2), chunks.source())
    await until(lambda: two.transport.metrics.snapshot_receive_inflights[1] == 1)
    one.transport.send([heartbeat(1, 2)])
    await until(lambda: two.handler.messages)
    await asyncio.sleep(0.05)
    assert len(chunks.pieces) > 20, "the sender does not run ahead of the receiver"
    two.handler.hold.set()
    await until(lambda: one.handler.sent)
    assert one.handler.sent == [(2, True)]
    assert len(two.handler.snapshots[0][1]) == 64 << 20


@pytest.mark.parametrize("error", [errors.CorruptError("no good"), ZeroDivisionError()])
async def test_a_snapshot_that_is_not_taken_is_reported(running: contextlib.AsyncExitStack, error: Exception) -> None:
    one, two = await pair(running)
    two.handler.fail = error
    chunks = Chunks([b"x" * 1000 for _ in range(1000)])
    one.transport.send_snapshot(snapshot_message(1, 2), chunks.source())
    await until(lambda: one.handler.sent)
    assert one.handler.sent == [(2, False)] and chunks.closed


async def test_a_snapshot_cut_off_is_not_taken_as_whole(running: contextlib.AsyncExitStack) -> None:
    one, two = await pair(running)
    chunks = Chunks([b"x" * 1000], size=2000)
    one.transport.send_snapshot(snapshot_message(1, 2), chunks.source())
    await until(lambda: one.handler.sent)
    assert one.handler.sent == [(2, False)] and chunks.closed
    await until(lambda: two.transport.metrics.snapshot_receive_failures[1] == 1)
    assert not two.handler.snapshots


async def test_each_snapshot_gets_exactly_one_report(running: contextlib.AsyncExitStack) -> None:
    """One at a time to a peer; to none, and at the end of the sender, they fail; all sources are closed."""
    one, two = await pair(running)
    two.handler.hold = asyncio.Event()
    first, second, nowhere, unstarted = (Chunks([b"x"] * 3) for _ in range(4))
    one.transport.send_snapshot(snapshot_message(1, 2), first.source())
    one.transport.send_snapshot(snapshot_message(1, 2), second.source())
    one.transport.send_snapshot(snapshot_message(1, 7), nowhere.source())
    await until(lambda: len(one.handler.sent) == 2 and two.transport.metrics.snapshot_receive_inflights[1])
    assert sorted(one.handler.sent) == [(2, False), (7, False)]
    one.knows(three := make_peer(3, None))
    assert three
    one.transport.send_snapshot(snapshot_message(1, 3), unstarted.source())
    await one.transport.stop()
    assert sorted(one.handler.sent) == [(2, False), (2, False), (3, False), (7, False)]
    assert first.closed and second.closed and nowhere.closed and unstarted.closed


# -- certificates


async def test_new_certificate_files_are_used_for_new_connections(running: contextlib.AsyncExitStack, tmp_path: Path) -> None:
    import shutil

    first, second = tls_files(tmp_path / "a", tmp_path / "ca"), tls_files(tmp_path / "b", tmp_path / "ca")
    one, two = await pair(running, first)

    async def shown() -> bytes:
        context = ssl.create_default_context(cafile=first.trusted_ca)
        context.load_cert_chain(first.certificate, first.key)
        _, writer = await asyncio.open_connection("127.0.0.1", int(two.url.rpartition(":")[2]), ssl=context)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return bytes(found)

    before = await shown()
    assert before == ssl.PEM_cert_to_DER_cert(first.certificate.read_text())
    shutil.copy(second.certificate, first.certificate)
    shutil.copy(second.key, first.key)
    assert await shown() == ssl.PEM_cert_to_DER_cert(second.certificate.read_text()) != before
    one.transport.send([heartbeat(1, 2)])  # what stands is not touched
    await until(lambda: two.handler.messages)
    assert not one.handler.unreachable


# -- a peer that behaves badly


class Stuck:
    """Shakes hands, reads heartbeats, and its appends only when told to."""

    def __init__(self) -> None:
        self.url = ""
        self.messages: list[object] = []
        self.appends: list[object] = []
        self.read_appends = asyncio.Event()
        self.answer_pings = True

    @classmethod
    async def listen(cls, running: contextlib.AsyncExitStack) -> Stuck:
        self = cls()
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async def stop() -> None:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

        running.push_async_callback(stop)
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader(1 << 21)
        hello: peer_codec.Hello | None = None
        with contextlib.closing(writer), contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                for kind, payload in frames.feed(data):
                    if kind is FrameType.HELLO:
                        hello = peer_codec.decode_hello(payload)
                        writer.write(peer_codec.encode_welcome(peer_codec.Welcome(cluster_id=CLUSTER_ID, member_id=2)))
                        if hello.channel is Channel.APPENDS:
                            await self.read_appends.wait()
                    elif kind is FrameType.PING and self.answer_pings:
                        writer.write(peer_codec.number_frame(FrameType.PONG, peer_codec.decode_number(payload)))
                    elif kind is FrameType.MESSAGE:
                        assert hello is not None
                        to = self.appends if hello.channel is Channel.APPENDS else self.messages
                        to.append(codec.decode_message(payload))
