"""gRPC over the door: limits, refusals, deadlines, cancellation, pages; with grpcio as the client, and curl-like requests by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from storage import api
from storage.etcdpb import etcdserverpb as pb
from storage.etcdpb import health, reflection_v1
from tests.storage.etcdserver.door_fixture import Client, RunningDoor, client_of, running_door


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[RunningDoor]:
    async with running_door(tmp_path) as running:
        yield running


@pytest.fixture
async def client(door: RunningDoor) -> AsyncIterator[Client]:
    async with client_of(door) as made:
        yield made


async def refusal(call: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call  # type: ignore[misc]
    return caught.value.code(), caught.value.details()


async def test_values_of_any_size_up_to_the_limit(client: Client) -> None:
    put, get = client.unary("/etcdserverpb.KV/Put"), client.unary("/etcdserverpb.KV/Range")
    for size in (0, 1, 16_384, 70_000, 1_500_000):
        await put(pb.PutRequest(key=b"k", value=b"v" * size))
        assert (await get(pb.RangeRequest(key=b"k"))).kvs[0].value == b"v" * size


async def test_too_large_requests_have_etcds_two_refusals(client: Client) -> None:
    put = client.unary("/etcdserverpb.KV/Put")
    # what passes gRPC's limit, which leaves room for overhead, is refused by the store
    assert await refusal(put(pb.PutRequest(key=b"k", value=bytes(1_600_000)))) == (
        grpc.StatusCode.INVALID_ARGUMENT, "etcdserver: request is too large",
    )  # fmt: skip
    code, text = await refusal(put(pb.PutRequest(key=b"k", value=bytes(3_000_000))))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert text == "grpc: received message larger than max (3000008 vs. 2097152)"


async def test_unknown_services_and_methods(client: Client) -> None:
    for path, text in (
        ("/etcdserverpb.KV/Steal", "unknown method Steal for service etcdserverpb.KV"),
        ("/nobody.Nothing/At", "unknown service nobody.Nothing"),
    ):
        assert await refusal(client.channel.unary_unary(path)(b"")) == (grpc.StatusCode.UNIMPLEMENTED, text)


async def test_what_is_no_message_is_refused(client: Client) -> None:
    code, _ = await refusal(client.channel.unary_unary("/etcdserverpb.KV/Put")(b"\xff\xff\xff"))
    assert code == grpc.StatusCode.INTERNAL


async def test_compressed_messages_are_refused(door: RunningDoor) -> None:
    async with grpc.aio.insecure_channel(door.target, compression=grpc.Compression.Gzip) as channel:
        put = Client(channel).unary("/etcdserverpb.KV/Put")
        code, text = await refusal(put(pb.PutRequest(key=b"k", value=b"v" * 1000)))
        assert code == grpc.StatusCode.UNIMPLEMENTED and "gzip" in text


async def test_a_deadline_ends_the_call_and_its_work(door: RunningDoor, client: Client) -> None:
    lock = client.unary("/v3lockpb.Lock/Lock")
    from storage.etcdpb import v3lockpb

    await lock(v3lockpb.LockRequest(name=b"l"))
    code, _ = await refusal(lock(v3lockpb.LockRequest(name=b"l"), timeout=0.05))
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    await door.calls_ended()
    # who gave up waits no more: its key goes, after the call
    watcher = door.member.watch(api.WatchRequest(key=b"l/", range_end=b"l0", start_revision=1, no_put=True))
    while (batch := watcher.take()) is None or not batch.events:
        await watcher.wait()
    held = await client.unary("/etcdserverpb.KV/Range")(pb.RangeRequest(key=b"l/", range_end=b"l0", count_only=True))
    assert held.count == 1


async def test_a_client_that_goes_takes_its_streams_along(door: RunningDoor) -> None:
    async with client_of(door) as client:
        watch = client.stream("/etcdserverpb.Watch/Watch")
        await watch.write(pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"k")))
        assert (await watch.read()).created
        assert door.member.collect_metrics().watcher_count == 1
    await door.calls_ended()
    assert door.member.collect_metrics().watcher_count == 0
    assert door.door.watches.stream_count == 0


async def test_many_calls_at_once_on_one_connection(client: Client) -> None:
    put = client.unary("/etcdserverpb.KV/Put")
    answers = await asyncio.gather(*(put(pb.PutRequest(key=b"%d" % number, value=b"v")) for number in range(300)))
    assert sorted(answer.header.revision for answer in answers) == list(range(2, 302))


async def test_leader_required_without_a_leader(door: RunningDoor, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = client.channel.stream_stream("/etcdserverpb.Watch/Watch")(metadata=(("hasleader", "true"),))
    await watch.write(b"")
    get = client.unary("/etcdserverpb.KV/Range")
    await get(pb.RangeRequest(key=b"k"))
    monkeypatch.setattr(door.member, "has_leader", lambda: False)
    no_leader = (grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader")
    assert await refusal(get(pb.RangeRequest(key=b"k"), metadata=(("hasleader", "true"),))) == no_leader
    assert (await get(pb.RangeRequest(key=b"k", serializable=True))).header.revision == 1
    monitor = asyncio.create_task(door.door.run())
    assert await refusal(watch.read()) == no_leader
    monitor.cancel()


async def test_the_end_of_the_server_ends_streams_with_unavailable(tmp_path: Path) -> None:
    async with running_door(tmp_path) as door, client_of(door) as client:
        watch = client.stream("/etcdserverpb.Watch/Watch")
        await watch.write(pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"k")))
        await watch.read()
        await door.door.port.stop()
        assert await refusal(watch.read()) == (grpc.StatusCode.UNAVAILABLE, "etcdserver: server stopped")


async def test_health(client: Client) -> None:
    check = client.unary("/grpc.health.v1.Health/Check")
    assert (await check(health.HealthCheckRequest())).status == health.HealthCheckResponse.SERVING
    code, _ = await refusal(check(health.HealthCheckRequest(service="unknown")))
    assert code == grpc.StatusCode.NOT_FOUND


async def test_reflection(client: Client) -> None:
    call = client.stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    await call.write(reflection_v1.ServerReflectionRequest(list_services=""))
    names = [service.name for service in (await call.read()).list_services_response.service]
    assert "etcdserverpb.KV" in names and "grpc.health.v1.Health" in names
    await call.write(reflection_v1.ServerReflectionRequest(file_containing_symbol="etcdserverpb.KV"))
    assert len((await call.read()).file_descriptor_response.file_descriptor_proto) >= 2
    await call.write(reflection_v1.ServerReflectionRequest(file_by_filename="no.proto"))
    assert (await call.read()).error_response.error_code == 5
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF


async def http1(door: RunningDoor, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        (b"GET /health HTTP/1.1", b"200 OK", b'{"health":"true","reason":""}'),
        (b"GET /version HTTP/1.1", b"200 OK", b'{"etcdserver":"3.6.0","etcdcluster":"3.6.0"}'),
        (b"GET /readyz HTTP/1.1", b"200 OK", b"ok\n"),
        (b"HEAD /health HTTP/1.1", b"200 OK", b""),
        (b"GET /nothing HTTP/1.0", b"404 Not Found", b"404 page not found\n"),
        (b"POST /health HTTP/1.1", b"405 Method Not Allowed", b"Method Not Allowed\n"),
        (b"nonsense", b"400 Bad Request", b"not an HTTP request\n"),
    ],
)
async def test_pages_over_http1(door: RunningDoor, request_line: bytes, status: bytes, body: bytes) -> None:
    answer = await http1(door, request_line + b"\r\nHost: x\r\n\r\n")
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status) and content == body


async def test_health_names_the_alarm(door: RunningDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door.member, "has_leader", lambda: False)
    answer = await http1(door, b"GET /health HTTP/1.1\r\n\r\n")
    assert b"503" in answer.split(b"\r\n")[0] and b'"reason":"RAFT NO LEADER"' in answer


async def test_a_head_without_an_end(door: RunningDoor) -> None:
    assert b"400" in (await http1(door, b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n")).split(b"\r\n")[0]
