"""``grpc.health.v1.Health``: load balancers and clients ask it whether to come here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from storage.etcdpb import health as pb
from storage.etcdserver.grpc_server import Call, Handler
from storage.etcdserver.rpctypes import Code, RpcError

WHOLE_SERVER: Final = ""
"""The one service name that is known, as in etcd."""


class HealthService:
    def handlers(self) -> Mapping[str, Handler]:
        return {"/grpc.health.v1.Health/Check": self.check, "/grpc.health.v1.Health/Watch": self.watch}

    async def check(self, request: Any, call: Call) -> Any:
        if request.service != WHOLE_SERVER:
            raise RpcError(Code.NOT_FOUND, "unknown service")
        return pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVING)

    async def watch(self, request: Any, call: Call) -> None:
        """It serves for as long as it answers: one message, then nothing until the stream ends."""
        known = request.service == WHOLE_SERVER
        status = pb.HealthCheckResponse.SERVING if known else pb.HealthCheckResponse.SERVICE_UNKNOWN
        await call.send(pb.HealthCheckResponse(status=status))
        await asyncio.get_running_loop().create_future()
