"""The operators' door of a member: its cluster, its upkeep. ``storage.etcdserver`` and the command line use it, the API server does not.

Shapes and meanings are those of etcd's ``Cluster`` and ``Maintenance`` services. ``storage.member.Member`` implements both protocols.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from storage.api import ResponseHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMember:
    """``name`` is empty for a member that was added and has not started yet; client URLs are published by the member itself."""

    id: int
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()
    is_learner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersResponse:
    """``changed``: the member that was added (or None); ``members``: all, in the order of their ids, after the change."""

    header: ResponseHeader
    members: tuple[ClusterMember, ...]
    changed: ClusterMember | None = None


class AlarmType(enum.IntEnum):
    NONE = 0
    """In requests: every type."""
    NOSPACE = 1
    CORRUPT = 2


@dataclass(frozen=True, slots=True)
class Alarm:
    member_id: int
    type: AlarmType


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmsResponse:
    header: ResponseHeader
    alarms: tuple[Alarm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HashResponse:
    """``hash``: CRC-32C over the whole database."""

    header: ResponseHeader
    hash: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HashKVResponse:
    """``hash``: of all keys and values at ``hash_revision``, without what ``compact_revision`` removed; equal on every member, and to
    real etcd's for the same history."""

    header: ResponseHeader
    hash: int
    compact_revision: int
    hash_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotStream:
    """A database file in etcd's format (bbolt), then the 32 bytes of its SHA-256. ``size`` is in bytes, with the hash. ``chunks`` must be
    read to its end or closed."""

    size: int
    version: str
    chunks: AsyncIterator[bytes]


class Cluster(Protocol):
    """Membership. Every change raises UnavailableError, RequestTimeoutError (outcome unknown) and what is named."""

    async def members(self, *, linearizable: bool = True) -> MembersResponse: ...

    async def member_add(self, peer_urls: tuple[str, ...], *, is_learner: bool = False) -> MembersResponse:
        """Raises PeerUrlExistsError, TooManyLearnersError, UnhealthyClusterError, InvalidUrlsError."""

    async def member_remove(self, member_id: int) -> MembersResponse:
        """Raises MemberNotFoundError, UnhealthyClusterError."""

    async def member_update(self, member_id: int, peer_urls: tuple[str, ...]) -> MembersResponse:
        """Raises MemberNotFoundError, PeerUrlExistsError, InvalidUrlsError."""

    async def member_promote(self, member_id: int) -> MembersResponse:
        """Raises MemberNotFoundError, NotLearnerError, LearnerNotReadyError."""

    async def move_leader(self, target_id: int) -> ResponseHeader:
        """Only the leader does it. Raises NotLeaderError, BadLeaderTransfereeError, LeaderTransferTimeoutError."""


class Maintenance(Protocol):
    """Upkeep of this one member (alarms: of the cluster)."""

    async def alarms(self) -> AlarmsResponse: ...

    async def alarm_activate(self, member_id: int, alarm: AlarmType) -> AlarmsResponse: ...

    async def alarm_deactivate(self, member_id: int, alarm: AlarmType) -> AlarmsResponse:
        """Member 0 means every member, ``NONE`` every type. Answers those that were taken off."""

    async def defragment(self) -> ResponseHeader: ...

    async def hash(self) -> HashResponse: ...

    async def hash_kv(self, revision: int = 0) -> HashKVResponse:
        """Revision 0 is the newest. Raises CompactedError, FutureRevisionError."""

    async def snapshot(self) -> SnapshotStream: ...
