"""A member in a directory of its own, with its door on a free port of the loopback, and grpcio's client to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio

from storage.config import MemberConfig
from storage.etcdpb import services
from storage.etcdserver.door import Door, DoorConfig
from storage.member.member import Member


@dataclass(frozen=True, slots=True)
class RunningDoor:
    member: Member
    door: Door
    port: int

    async def calls_ended(self) -> None:
        """Return when no call is under way: what a client does reaches the server a little later."""
        for _ in range(10_000):
            if not self.door.server.calls:
                return
            await asyncio.sleep(0.001)
        raise AssertionError(f"calls go on: {[call.bound.method.path for call in self.door.server.calls]}")

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"


def listener() -> socket.socket:
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(100)
    made.setblocking(False)
    return made


@contextlib.asynccontextmanager
async def running_door(
    directory: Path, *, context: ssl.SSLContext | None = None, quota_backend_bytes: int = 2 * 1024**3, **config: Any
) -> AsyncIterator[RunningDoor]:
    """``config``: fields of ``DoorConfig`` that differ."""
    bound = listener()
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    member = Member(
        MemberConfig(data_dir=directory, unsafe_no_fsync=True, advertise_client_urls=(url,), quota_backend_bytes=quota_backend_bytes)
    )
    await member.start()
    settings: dict[str, Any] = {
        "max_request_bytes": member.config.max_request_bytes,
        "quota_backend_bytes": member.config.quota_backend_bytes,
        "election_timeout_seconds": 0.15,
    }
    door = Door(member, DoorConfig(**(settings | config)))
    try:
        await door.port.start(bound, context)
        yield RunningDoor(member, door, bound.getsockname()[1])
    finally:
        await door.port.stop()
        await member.stop()


class Client:
    """Calls by path, with etcd's messages, over grpcio."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    def unary(self, path: str) -> Any:
        method = services.methods()[path]
        return self.channel.unary_unary(path, method.request_class.SerializeToString, method.response_class.FromString)

    def stream(self, path: str) -> Any:
        """A call with both sides streaming, begun."""
        method = services.methods()[path]
        return self.channel.stream_stream(path, method.request_class.SerializeToString, method.response_class.FromString)()

    def answers(self, path: str, request: Any, **options: Any) -> Any:
        """A call whose answers stream, begun."""
        method = services.methods()[path]
        return self.channel.unary_stream(path, method.request_class.SerializeToString, method.response_class.FromString)(request, **options)


@contextlib.asynccontextmanager
async def client_of(door: RunningDoor) -> AsyncIterator[Client]:
    async with grpc.aio.insecure_channel(door.target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield Client(channel)
