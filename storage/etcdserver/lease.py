"""``etcdserverpb.Lease``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage import api, errors
from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import convert
from storage.etcdserver.grpc_server import Call, Handler


class LeaseService:
    def __init__(self, kv: api.KV, header: convert.Header) -> None:
        self._kv = kv
        self._header = header

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "/etcdserverpb.Lease/LeaseGrant": self.grant,
            "/etcdserverpb.Lease/LeaseRevoke": self.revoke,
            "/etcdserverpb.Lease/LeaseKeepAlive": self.keep_alive,
            "/etcdserverpb.Lease/LeaseTimeToLive": self.time_to_live,
            "/etcdserverpb.Lease/LeaseLeases": self.leases,
        }

    async def grant(self, request: Any, call: Call) -> Any:
        response = await self._kv.lease_grant(request.TTL, lease_id=request.ID)
        return pb.LeaseGrantResponse(header=convert.header(response.header), ID=response.id, TTL=response.ttl_seconds)

    async def revoke(self, request: Any, call: Call) -> Any:
        return pb.LeaseRevokeResponse(header=convert.header(await self._kv.lease_revoke(request.ID)))

    async def keep_alive(self, call: Call) -> None:
        """One answer a message, in order; TTL 0 for a lease that is not there."""
        while (request := await call.receive()) is not None:
            # The header is made before the lease is renewed: a client must not see a renewal at a revision at which it was revoked.
            header = self._header()
            try:
                ttl = await self._kv.lease_keep_alive(request.ID)
            except errors.LeaseNotFoundError:
                ttl = 0
            await call.send(pb.LeaseKeepAliveResponse(header=convert.header(header), ID=request.ID, TTL=ttl))

    async def time_to_live(self, request: Any, call: Call) -> Any:
        response = await self._kv.lease_time_to_live(request.ID, keys=request.keys)
        return pb.LeaseTimeToLiveResponse(
            header=convert.header(response.header),
            ID=response.id,
            TTL=response.ttl_seconds,
            grantedTTL=response.granted_ttl_seconds,
            keys=response.keys,
        )

    async def leases(self, request: Any, call: Call) -> Any:
        found = await self._kv.leases()
        return pb.LeaseLeasesResponse(header=convert.header(self._header()), leases=[pb.LeaseStatus(ID=each) for each in found])
