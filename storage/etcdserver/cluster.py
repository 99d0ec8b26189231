"""``etcdserverpb.Cluster``, and moving the leader (which etcd has among the maintenance calls)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage.etcdpb import etcdserverpb as pb
from storage.etcdserver import convert
from storage.etcdserver.grpc_server import Call, Handler
from storage.maintenance import Cluster


class ClusterService:
    def __init__(self, member: Any) -> None:
        """``member`` is, as far as it has the methods, a ``Cluster``."""
        self._cluster: Cluster = member

    def handlers(self) -> Mapping[str, Handler]:
        served = {
            "members": ("Cluster/MemberList", self.members),
            "member_add": ("Cluster/MemberAdd", self.add),
            "member_remove": ("Cluster/MemberRemove", self.remove),
            "member_update": ("Cluster/MemberUpdate", self.update),
            "member_promote": ("Cluster/MemberPromote", self.promote),
            "move_leader": ("Maintenance/MoveLeader", self.move_leader),
        }
        return {f"/etcdserverpb.{path}": handler for method, (path, handler) in served.items() if hasattr(self._cluster, method)}

    async def members(self, request: Any, call: Call) -> Any:
        response = await self._cluster.members(linearizable=request.linearizable)
        return pb.MemberListResponse(header=_header(response.header), members=convert.members(response.members))

    async def add(self, request: Any, call: Call) -> Any:
        response = await self._cluster.member_add(tuple(request.peerURLs), is_learner=request.isLearner)
        assert response.changed is not None
        return pb.MemberAddResponse(
            header=_header(response.header), member=convert.member(response.changed), members=convert.members(response.members)
        )

    async def remove(self, request: Any, call: Call) -> Any:
        response = await self._cluster.member_remove(request.ID)
        return pb.MemberRemoveResponse(header=_header(response.header), members=convert.members(response.members))

    async def update(self, request: Any, call: Call) -> Any:
        response = await self._cluster.member_update(request.ID, tuple(request.peerURLs))
        return pb.MemberUpdateResponse(header=_header(response.header), members=convert.members(response.members))

    async def promote(self, request: Any, call: Call) -> Any:
        response = await self._cluster.member_promote(request.ID)
        return pb.MemberPromoteResponse(header=_header(response.header), members=convert.members(response.members))

    async def move_leader(self, request: Any, call: Call) -> Any:
        """etcd's answer has no header."""
        await self._cluster.move_leader(request.targetID)
        return pb.MoveLeaderResponse()


def _header(value: Any) -> Any:
    """etcd's answers about members are of no revision."""
    header = convert.header(value)
    header.revision = 0
    return header
