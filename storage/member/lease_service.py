"""Leases as clients ask for them. Only the leader knows when one runs out, so renewals and times to live are asked of it."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from storage import api, errors
from storage.member import peer_calls
from storage.member.environment import Environment
from storage.member.peer_calls import PeerCalls
from storage.member.raft_loop import RaftLoop
from storage.member.state_machine import StateMachine


class LeaseService:
    """``wait_for_reads`` returns, on the leader, once it is sure that it leads and has applied all that was acknowledged; ``renew``
    renews a lease there."""

    def __init__(
        self,
        environment: Environment,
        *,
        machine: StateMachine,
        raft: RaftLoop,
        calls: PeerCalls,
        wait_for_reads: Callable[[], Awaitable[None]],
        renew: Callable[[int], Awaitable[int]],
        timeout_seconds: float,
    ) -> None:
        self._environment = environment
        self._machine = machine
        self._raft = raft
        self._wait_for_reads = wait_for_reads
        self._renew_here = renew
        self._timeout_seconds = timeout_seconds
        calls.register(peer_calls.LEASE_RENEW, self._answer_renew)
        calls.register(peer_calls.LEASE_TIME_TO_LIVE, self._answer_time_to_live)

    async def keep_alive(self, lease_id: int) -> int:
        """The TTL in seconds from now on. Raises LeaseNotFoundError, UnavailableError, RequestTimeoutError."""
        if self._machine.lessor.is_primary:
            return await self._renew(lease_id)
        answer = await self._ask_leader(peer_calls.LEASE_RENEW, {"id": lease_id})
        return peer_calls.integer(answer, "ttl")

    async def time_to_live(self, lease_id: int, *, keys: bool) -> api.LeaseTimeToLiveResponse:
        """Raises UnavailableError, RequestTimeoutError."""
        if self._machine.lessor.is_primary:
            return await self._time_to_live(lease_id, keys=keys)
        answer = await self._ask_leader(peer_calls.LEASE_TIME_TO_LIVE, {"id": lease_id, "keys": keys})
        return api.LeaseTimeToLiveResponse(
            header=self._machine.header(),
            id=lease_id,
            ttl_seconds=peer_calls.integer(answer, "ttl"),
            granted_ttl_seconds=peer_calls.integer(answer, "grantedTtl"),
            keys=tuple(base64.b64decode(key) for key in answer.get("keys", ())),
        )

    async def _renew(self, lease_id: int) -> int:
        # One that was deposed and does not know it yet would promise what the new leader has never heard of.
        await self._wait_for_reads()
        if not self._machine.lessor.is_primary:
            raise errors.NotLeaderError()
        return await self._renew_here(lease_id)

    async def _time_to_live(self, lease_id: int, *, keys: bool) -> api.LeaseTimeToLiveResponse:
        await self._wait_for_reads()
        return self._machine.applier.lease_time_to_live(lease_id, keys=keys)

    async def _ask_leader(self, method: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        leader_id = self._raft.node.leader_id()
        transport = self._environment.transport
        if not leader_id or transport is None:
            raise errors.UnavailableError()
        try:
            body = peer_calls.encode(arguments)
            return peer_calls.decode(await transport.call(leader_id, method, body, timeout_seconds=self._timeout_seconds))
        except errors.NotLeaderError as error:
            raise errors.UnavailableError() from error

    async def _answer_renew(self, arguments: Mapping[str, Any]) -> Mapping[str, object]:
        if not self._machine.lessor.is_primary:
            raise errors.NotLeaderError()
        return {"ttl": await self._renew(peer_calls.integer(arguments, "id"))}

    async def _answer_time_to_live(self, arguments: Mapping[str, Any]) -> Mapping[str, object]:
        if not self._machine.lessor.is_primary:
            raise errors.NotLeaderError()
        found = await self._time_to_live(peer_calls.integer(arguments, "id"), keys=bool(arguments.get("keys", False)))
        return {
            "ttl": found.ttl_seconds,
            "grantedTtl": found.granted_ttl_seconds,
            "keys": [base64.b64encode(key).decode() for key in found.keys],
        }
