"""Do the members hold the same? Their hashes of keys and values are compared, by etcd's rules.

At the start a member compares itself with the others, before it serves: if it differs, it must not. Later the leader compares all now
and then, and raises the CORRUPT alarm for each member that differs, so that no more is written until an operator has looked.

Hashes can be compared only at the same revision and the same compact revision. A follower may be behind; it must never be ahead of a
leader that has applied everything that was acknowledged. Source: etcd ``server/etcdserver/corrupt.go``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage import errors
from storage.mvcc.kv_hash import KvHash

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerHash:
    """What a peer answered: ``revision`` is its store's when it did."""

    member_id: int
    revision: int
    hash: KvHash

    def to_json(self) -> dict[str, object]:
        """Of an answer to the call ``hash.kv``."""
        found = self.hash
        return {
            "id": self.member_id,
            "revision": self.revision,
            "hash": found.hash,
            "compactRevision": found.compact_revision,
            "hashRevision": found.revision,
        }

    @classmethod
    def from_json(cls, answer: Mapping[str, Any]) -> PeerHash:
        """Raises InvalidRequestError."""
        names = ("id", "revision", "hash", "compactRevision", "hashRevision")
        numbers = [answer.get(name) for name in names]
        if not all(isinstance(number, int) for number in numbers):
            raise errors.InvalidRequestError(f"etcdserver: not a hash: {answer!r}")
        member_id, revision, found, compact_revision, hash_revision = numbers
        assert member_id is not None
        assert revision is not None
        return cls(
            member_id=member_id,
            revision=revision,
            hash=KvHash(hash=found, compact_revision=compact_revision, revision=hash_revision),  # type: ignore[arg-type]
        )


def differing_at_start(own: KvHash, peers: Sequence[PeerHash]) -> tuple[int, ...]:
    """The peers that hold something else than this member, if they are more than those that hold the same: else it is rather one of
    them that is wrong, and the leader's comparison will tell. (etcd stops a member that differs from any; two could stop each other.)"""
    differing = tuple(sorted(peer.member_id for peer in peers if _differ(own, peer.hash)))
    equal = sum(peer.hash == own for peer in peers)
    return differing if len(differing) > equal else ()


def differing_members(member_id: int, before: KvHash, after: KvHash, current_revision: int, peers: Sequence[PeerHash]) -> tuple[int, ...]:
    """Whom the leader ``member_id`` finds to differ, itself perhaps among them. ``before`` is its hash when the peers were asked for theirs
    at that revision; ``after`` and ``current_revision`` are from when it had applied everything that was acknowledged by then."""
    found: set[int] = set()
    if _differ(before, after):
        found.add(member_id)
    for peer in peers:
        is_ahead = peer.revision > current_revision or peer.hash.compact_revision > after.compact_revision
        if is_ahead or _differ(before, peer.hash):
            found.add(peer.member_id)
    return tuple(sorted(found))


def _differ(one: KvHash, other: KvHash) -> bool:
    comparable = (one.revision, one.compact_revision) == (other.revision, other.compact_revision)
    return comparable and one.hash != other.hash


class CorruptionChecker:
    """``hash_kv(revision)`` is this member's, ``ask_peers(revision)`` gives the answers of those that could tell, ``wait_for_reads``
    returns when everything acknowledged is applied here, ``raise_alarm(member_id)`` puts the alarm through the log."""

    def __init__(
        self,
        member_id: int,
        *,
        hash_kv: Callable[[int], Awaitable[KvHash]],
        ask_peers: Callable[[int], Awaitable[Sequence[PeerHash]]],
        current_revision: Callable[[], int],
        wait_for_reads: Callable[[], Awaitable[object]],
        raise_alarm: Callable[[int], Awaitable[object]],
    ) -> None:
        self._member_id = member_id
        self._hash_kv = hash_kv
        self._ask_peers = ask_peers
        self._current_revision = current_revision
        self._wait_for_reads = wait_for_reads
        self._raise_alarm = raise_alarm

    async def check_at_start(self) -> None:
        """Raises CorruptError if a peer holds something else at the same revision."""
        own = await self._hash_kv(0)
        differing = differing_at_start(own, await self._ask_peers(own.revision))
        if differing:
            raise errors.CorruptError(
                f"at revision {own.revision} this member holds something else than "
                + ", ".join(f"{member_id:016x}" for member_id in differing)
            )

    async def check(self) -> tuple[int, ...]:
        """On the leader; answers for whom the alarm was raised. Raises UnavailableError, RequestTimeoutError."""
        before = await self._hash_kv(0)
        peers = await self._ask_peers(before.revision)
        await self._wait_for_reads()
        try:
            after = await self._hash_kv(before.revision)
        except errors.CompactedError:
            return ()  # compacted meanwhile: the next check will do
        differing = differing_members(self._member_id, before, after, self._current_revision(), peers)
        for member_id in differing:
            logger.error("member %016x differs from the leader at revision %d", member_id, before.revision)
            await self._raise_alarm(member_id)
        return differing
