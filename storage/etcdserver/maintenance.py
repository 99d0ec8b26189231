"""``etcdserverpb.Maintenance``."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, cast

from storage import api, errors
from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import convert
from storage.etcdserver.grpc_server import Call, Handler
from storage.etcdserver.rpctypes import Code, RpcError
from storage.maintenance import AlarmType, Maintenance

SNAPSHOT_MESSAGE_BYTES: Final = 32 * 1024
"""Of the database in one message (etcd's)."""
SHA256_BYTES: Final = 32


class MaintenanceService:
    def __init__(self, member: Any, *, quota_bytes: int) -> None:
        """``member`` is an ``api.KV`` and, as far as it has the methods, a ``Maintenance``."""
        self._kv: api.KV = member
        self._maintenance: Maintenance = member
        self._quota_bytes = quota_bytes

    def handlers(self) -> Mapping[str, Handler]:
        served = {
            "status": ("Status", self.status),
            "alarms": ("Alarm", self.alarm),
            "defragment": ("Defragment", self.defragment),
            "hash": ("Hash", self.hash),
            "hash_kv": ("HashKV", self.hash_kv),
            "snapshot": ("Snapshot", self.snapshot),
        }
        handlers: dict[str, Handler] = {
            f"/etcdserverpb.Maintenance/{name}": handler for method, (name, handler) in served.items() if hasattr(self._maintenance, method)
        }
        return handlers | {"/etcdserverpb.Maintenance/Downgrade": self.downgrade}

    async def status(self, request: Any, call: Call) -> Any:
        status = await self._kv.status()
        problems = [] if status.leader_id else [errors.UnavailableError.text]
        problems += [f"memberID:{status.header.member_id} alarm:{alarm} " for alarm in status.alarms]
        return pb.StatusResponse(
            header=convert.header(status.header),
            version=status.version,
            dbSize=status.db_size,
            leader=status.leader_id,
            raftIndex=status.raft_index,
            raftTerm=status.header.raft_term,
            raftAppliedIndex=status.raft_applied_index,
            errors=problems,
            dbSizeInUse=status.db_size_in_use,
            isLearner=status.is_learner,
            storageVersion=".".join(status.version.split(".")[:2]) + ".0",
            dbSizeQuota=self._quota_bytes,
            downgradeInfo=pb.DowngradeInfo(enabled=False),
        )

    async def alarm(self, request: Any, call: Call) -> Any:
        try:
            kind = AlarmType(request.alarm)
        except ValueError:
            raise RpcError(Code.INVALID_ARGUMENT, f"etcdserver: no such alarm: {request.alarm}") from None
        if request.action == pb.AlarmRequest.ACTIVATE:
            response = await self._maintenance.alarm_activate(request.memberID, kind)
        elif request.action == pb.AlarmRequest.DEACTIVATE:
            response = await self._maintenance.alarm_deactivate(request.memberID, kind)
        else:
            response = await self._maintenance.alarms()
        alarms = [pb.AlarmMember(memberID=alarm.member_id, alarm=int(alarm.type)) for alarm in response.alarms]
        return pb.AlarmResponse(header=convert.header(response.header), alarms=alarms)

    async def defragment(self, request: Any, call: Call) -> Any:
        """etcd's answer has no header."""
        await self._maintenance.defragment()
        return pb.DefragmentResponse()

    async def hash(self, request: Any, call: Call) -> Any:
        response = await self._maintenance.hash()
        return pb.HashResponse(header=convert.header(response.header), hash=response.hash)

    async def hash_kv(self, request: Any, call: Call) -> Any:
        response = await self._maintenance.hash_kv(request.revision)
        return pb.HashKVResponse(
            header=convert.header(response.header),
            hash=response.hash,
            compact_revision=response.compact_revision,
            hash_revision=response.hash_revision,
        )

    async def snapshot(self, request: Any, call: Call) -> None:
        """The database in messages of ``SNAPSHOT_MESSAGE_BYTES``, then its SHA-256 in one of its own. ``remaining_bytes`` is of the
        database that is still to come."""
        stream = await self._maintenance.snapshot()
        remaining = stream.size - SHA256_BYTES
        pending = b""

        async def send(data: bytes) -> None:
            nonlocal remaining
            remaining = max(remaining - len(data), 0)
            await call.send(pb.SnapshotResponse(remaining_bytes=remaining, blob=data, version=stream.version))

        async with contextlib.aclosing(cast(AsyncGenerator[bytes, None], stream.chunks)) as chunks:
            async for chunk in chunks:
                pending += chunk
                while len(pending) >= SNAPSHOT_MESSAGE_BYTES + SHA256_BYTES:
                    await send(pending[:SNAPSHOT_MESSAGE_BYTES])
                    pending = pending[SNAPSHOT_MESSAGE_BYTES:]
        if len(pending) > SHA256_BYTES:
            await send(pending[:-SHA256_BYTES])
        await send(pending[-SHA256_BYTES:])

    async def downgrade(self, request: Any, call: Call) -> Any:
        """There is no older version of this store to go to."""
        if request.action == pb.DowngradeRequest.CANCEL:
            raise RpcError(Code.FAILED_PRECONDITION, "etcdserver: no inflight downgrade job")
        parts = request.version.removeprefix("v").split(".")
        if len(parts) not in (2, 3) or not all(part.isdigit() for part in parts):
            raise RpcError(Code.INVALID_ARGUMENT, "etcdserver: wrong downgrade target version format")
        raise RpcError(Code.INVALID_ARGUMENT, "etcdserver: invalid downgrade target version")
