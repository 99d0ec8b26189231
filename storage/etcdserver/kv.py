"""``etcdserverpb.KV``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage import api
from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import convert
from storage.etcdserver.grpc_server import Call, Handler


class KvService:
    """Each method converts, asks the store, converts back; what is checked is checked there."""

    def __init__(self, kv: api.KV) -> None:
        self._kv = kv

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "/etcdserverpb.KV/Range": self.range,
            "/etcdserverpb.KV/Put": self.put,
            "/etcdserverpb.KV/DeleteRange": self.delete_range,
            "/etcdserverpb.KV/Txn": self.txn,
            "/etcdserverpb.KV/Compact": self.compact,
        }

    async def range(self, request: Any, call: Call) -> Any:
        return convert.range_response(await self._kv.range(convert.range_request(request)))

    async def put(self, request: Any, call: Call) -> Any:
        return convert.put_response(await self._kv.put(convert.put_request(request)))

    async def delete_range(self, request: Any, call: Call) -> Any:
        return convert.delete_range_response(await self._kv.delete_range(convert.delete_range_request(request)))

    async def txn(self, request: Any, call: Call) -> Any:
        return convert.txn_response(await self._kv.txn(convert.txn_request(request)))

    async def compact(self, request: Any, call: Call) -> Any:
        response = await self._kv.compact(request.revision, physical=request.physical)
        return pb.CompactionResponse(header=convert.header(response.header))
