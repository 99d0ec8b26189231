"""What members ask each other outside of Raft: named methods with JSON bodies.

| method | who answers | body | answer |
|---|---|---|---|
| ``cluster.members`` | any member, also to one that is about to join | – | its list, and what it knows to have been acknowledged |
| ``cluster.promote`` | the leader | ``{"id"}`` | – |
| ``lease.renew`` | the leader | ``{"id"}`` | ``{"ttl"}`` |
| ``lease.time_to_live`` | the leader | ``{"id", "keys"}`` | ``{"ttl", "grantedTtl", "keys"}`` |
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from storage import errors
from storage.maintenance import ClusterMember
from storage.member.membership import decode_member, encode_member

CLUSTER_MEMBERS: Final = "cluster.members"
CLUSTER_PROMOTE: Final = "cluster.promote"
LEASE_RENEW: Final = "lease.renew"
LEASE_TIME_TO_LIVE: Final = "lease.time_to_live"

OPEN_METHODS: Final = frozenset({CLUSTER_MEMBERS})
"""Those that are answered to one that is no member (sender 0): it must learn the members to become one."""

Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, object]]]


class PeerCalls:
    """The methods that this member answers."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def register(self, method: str, handler: Handler) -> None:
        assert method not in self._handlers, method
        self._handlers[method] = handler

    async def answer(self, sender_id: int, method: str, body: bytes) -> bytes:
        """Raises InvalidRequestError for a method that there is not or a body that is none, and what the method raises."""
        handler = self._handlers.get(method)
        if handler is None:
            raise errors.InvalidRequestError(f"etcdserver: members have no method {method!r}")
        if sender_id == 0 and method not in OPEN_METHODS:
            raise errors.InvalidRequestError(f"etcdserver: {method!r} is for members")
        try:
            arguments = decode(body)
        except ValueError as error:
            raise errors.InvalidRequestError(f"etcdserver: {method}: {error}") from None
        try:
            return encode(await handler(arguments))
        except OSError as error:  # a disk that has failed; this member is about to stop
            raise errors.UnavailableError(f"etcdserver: {method}: {error}") from error


def encode(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def decode(body: bytes) -> dict[str, Any]:
    """Raises ValueError."""
    if not body:
        return {}
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("an object was expected")
    return found


def integer(arguments: Mapping[str, Any], name: str) -> int:
    """Raises InvalidRequestError."""
    value = arguments.get(name)
    if not isinstance(value, int):
        raise errors.InvalidRequestError(f"etcdserver: {name} must be an integer")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCluster:
    """A member's answer to ``cluster.members``. ``acknowledged``: the last entry that the leader knows each member's log to hold; empty
    if a follower answers. ``has_leader``: the answer is of one that hears a leader and has caught up with what was acknowledged before
    it started; else it is as of ``applied_index``, and what came after is not known there."""

    cluster_id: int
    members: tuple[ClusterMember, ...]
    acknowledged: Mapping[int, int]
    has_leader: bool
    applied_index: int

    def to_json(self) -> dict[str, object]:
        return {
            "clusterId": self.cluster_id,
            "members": [encode_member(member) for member in self.members],
            "acknowledged": {str(member_id): index for member_id, index in self.acknowledged.items()},
            "hasLeader": self.has_leader,
            "appliedIndex": self.applied_index,
        }

    @classmethod
    def from_json(cls, body: bytes) -> RemoteCluster:
        """Raises ValueError."""
        found = decode(body)
        try:
            return cls(
                cluster_id=int(found["clusterId"]),
                members=tuple(decode_member(member) for member in found["members"]),
                acknowledged={int(member_id): int(index) for member_id, index in found["acknowledged"].items()},
                has_leader=bool(found["hasLeader"]),
                applied_index=int(found["appliedIndex"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a cluster: {found!r}") from error
