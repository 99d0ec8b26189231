"""Whatever a client sends, it is answered or refused: no request is a fault of the server, and the store stays whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from storage.etcdpb import etcdserverpb as pb
from storage.etcdpb import services
from tests.storage.etcdserver.door_fixture import Client, client_of, running_door

REQUESTS_PER_METHOD = 20
NUMBERS = (0, 1, -1, 2, 5, 128, 1 << 31, (1 << 63) - 1, -(1 << 63))
CHUNKS = (b"", b"\0", b"a", b"a\0", b"k1", b"k2", b"\xff\xff", b"x" * 300)
TEXTS = ("", "http://127.0.0.1:1", "no url", "3.5.0", "v3", "ü", "x" * 300)
DEPTH_MAX = 4

#: would change who belongs to the cluster, or hand over the leadership: they have tests of their own
NOT_HERE = {"MemberAdd", "MemberRemove", "MemberUpdate", "MemberPromote", "MoveLeader"}
UNARY = [
    method.path
    for method in services.methods().values()
    if not method.client_streaming and not method.server_streaming and method.name not in NOT_HERE
]
REFUSALS = {code for code in grpc.StatusCode if code not in (grpc.StatusCode.OK, grpc.StatusCode.INTERNAL)}


def fill(message: Any, rng: random.Random, depth: int = 0) -> Any:
    """Set some of the fields to something."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.4:
            continue
        repeated = field.is_repeated
        if field.message_type is not None:
            if depth < DEPTH_MAX:
                for _ in range(rng.randrange(3) if repeated else 1):
                    part = getattr(message, field.name)
                    fill(part.add() if repeated else part, rng, depth + 1)
                    if not repeated:
                        part.SetInParent()
            continue
        values = [_value(field, rng) for _ in range(rng.randrange(3) if repeated else 1)]
        if repeated:
            getattr(message, field.name).extend(values)
        else:
            setattr(message, field.name, values[0])
    return message


def _value(field: Any, rng: random.Random) -> Any:
    if field.enum_type is not None:
        return rng.choice((*range(len(field.enum_type.values)), 99))
    if field.type == field.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type == field.TYPE_BYTES:
        return rng.choice(CHUNKS)
    if field.type == field.TYPE_STRING:
        return rng.choice(TEXTS)
    low, high = (0, 1 << 64) if field.type in (field.TYPE_UINT64, field.TYPE_UINT32) else (-(1 << 63), 1 << 63)
    return rng.choice([number for number in NUMBERS if low <= number < high])


@pytest.mark.parametrize("seed", range(2))
async def test_any_messages_of_every_unary_method(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    async with running_door(tmp_path) as door, client_of(door) as client:
        for path in UNARY:
            for _ in range(REQUESTS_PER_METHOD):
                request = fill(services.methods()[path].request_class(), rng)
                await answered(client, path, request)
        assert door.member.failure is None
        await client.unary("/etcdserverpb.Maintenance/Alarm")(pb.AlarmRequest(action=pb.AlarmRequest.DEACTIVATE))
        await client.unary("/etcdserverpb.KV/Put")(pb.PutRequest(key=b"still", value=b"alive"))


async def answered(client: Client, path: str, request: Any) -> None:
    """A refusal with a reason, or an answer; not a fault. What waits (for a lock) may be given up."""
    try:
        await client.unary(path)(request, timeout=0.05 if "Lock" in path or "Campaign" in path else 20)
    except grpc.aio.AioRpcError as error:
        assert error.code() in REFUSALS, f"{path} {request!r}: {error.details()}"
        assert error.details(), path


@pytest.mark.parametrize("seed", range(3))
async def test_any_messages_on_a_watch_and_a_keep_alive_stream(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    async with running_door(tmp_path) as door, client_of(door) as client:
        put = client.unary("/etcdserverpb.KV/Put")
        for path in ("/etcdserverpb.Watch/Watch", "/etcdserverpb.Lease/LeaseKeepAlive"):
            stream = client.stream(path)
            for number in range(60):
                await stream.write(fill(services.methods()[path].request_class(), rng))
                if number % 5 == 0:
                    await put(pb.PutRequest(key=rng.choice(CHUNKS[1:]), value=b"v"))
            await stream.done_writing()
            async for _ in stream:
                pass
            assert await stream.code() == grpc.StatusCode.OK, await stream.details()
        assert door.door.watches.stream_count == 0
        assert door.member.collect_metrics().watcher_count == 0


async def test_any_bytes_in_place_of_a_message(tmp_path: Path) -> None:
    rng = random.Random(1)
    async with running_door(tmp_path) as door, client_of(door) as client:
        for path in UNARY:
            for _ in range(3):
                try:
                    await client.channel.unary_unary(path)(rng.randbytes(rng.randrange(40)), timeout=0.05 if "v3" in path else 20)
                except grpc.aio.AioRpcError as error:
                    assert "Error:" not in error.details(), f"{path}: {error.details()}"
        assert door.member.failure is None
