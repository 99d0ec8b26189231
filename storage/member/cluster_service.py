"""The cluster's membership as operators see and change it: ``maintenance.Cluster``.

Which changes are let through is etcd's ``--strict-reconfig-check``: none that would leave a quorum impossible or at risk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from storage import api, errors
from storage.config import MemberConfig, check_url
from storage.maintenance import ClusterMember, MembersResponse
from storage.member import peer_calls
from storage.member import request as log_request
from storage.member.environment import Environment
from storage.member.membership import encode_context, new_member_id
from storage.member.peer_calls import PeerCalls
from storage.member.proposals import Proposals
from storage.member.raft_loop import RaftLoop
from storage.member.state_machine import ConfChangeResult, Headers, StateMachine
from storage.raft.messages import ConfChange, ConfChangeType
from storage.raft.rawnode import ProposalDroppedError, Role

logger = logging.getLogger(__name__)

HEALTH_SECONDS: Final = 5.0
"""For so long a peer must have been connected to count as healthy (etcd's)."""

LEARNER_READY_RATIO: Final = 0.9
"""Of the leader's log a learner must hold so much to be promoted (etcd's)."""

TRANSFER_POLL_SECONDS: Final = 0.01


class ClusterService:
    def __init__(
        self,
        config: MemberConfig,
        environment: Environment,
        *,
        machine: StateMachine,
        raft: RaftLoop,
        proposals: Proposals,
        headers: Headers,
        calls: PeerCalls,
        wait_for_reads: Callable[[], Awaitable[None]],
        timeout_seconds: float,
    ) -> None:
        """``wait_for_reads`` returns once everything acknowledged is applied here."""
        self._config = config
        self._environment = environment
        self._machine = machine
        self._membership = machine.membership
        self._raft = raft
        self._proposals = proposals
        self._headers = headers
        self._wait_for_reads = wait_for_reads
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._changing = asyncio.Lock()  # Raft takes one change at a time
        calls.register(peer_calls.CLUSTER_PROMOTE, self._answer_promote)

    async def members(self, *, linearizable: bool) -> MembersResponse:
        if linearizable:
            await self._wait_for_reads()
        return self._response()

    async def add(self, peer_urls: tuple[str, ...], *, is_learner: bool) -> MembersResponse:
        if self._environment.transport is None:
            raise errors.MembershipError("etcdserver: this member listens for no peers: start it with --listen-peer-urls")
        _check_urls(peer_urls)
        if self._config.strict_reconfig_check:
            if not is_learner:
                self._check_may_add_voter()
            if not self._is_connected_to_all_voters():
                raise errors.UnhealthyClusterError()
        member_id = new_member_id(peer_urls, "", added_at=int(self._environment.wall_time()))
        member = ClusterMember(id=member_id, peer_urls=peer_urls, is_learner=is_learner)
        kind = ConfChangeType.ADD_LEARNER_NODE if is_learner else ConfChangeType.ADD_NODE
        response = await self._configure(kind, member_id, encode_context(member))
        self._warn_of_even_count()
        return response

    async def remove(self, member_id: int) -> MembersResponse:
        if self._config.strict_reconfig_check:
            self._check_may_remove(member_id)
        response = await self._configure(ConfChangeType.REMOVE_NODE, member_id, b"")
        self._warn_of_even_count()
        return MembersResponse(header=response.header, members=response.members)

    async def update(self, member_id: int, peer_urls: tuple[str, ...]) -> MembersResponse:
        _check_urls(peer_urls)
        context = encode_context(ClusterMember(id=member_id, peer_urls=peer_urls))
        response = await self._configure(ConfChangeType.UPDATE_NODE, member_id, context)
        return MembersResponse(header=response.header, members=response.members)

    async def promote(self, member_id: int) -> MembersResponse:
        """Only the leader knows how far a learner is; it is asked where this member is not the leader."""
        if self._raft.node.raft.role is Role.LEADER:
            return await self._promote(member_id)
        leader_id = self._raft.node.leader_id()
        transport = self._environment.transport
        if not leader_id or transport is None:
            raise errors.UnavailableError()
        body = peer_calls.encode({"id": member_id})
        await transport.call(leader_id, peer_calls.CLUSTER_PROMOTE, body, timeout_seconds=self._timeout_seconds)
        await self._wait_for_reads()
        return self._response()

    async def move_leader(self, target_id: int) -> api.ResponseHeader:
        status = self._raft.node.status()
        if status.role is not Role.LEADER:
            raise errors.NotLeaderError()
        target = self._membership.members.get(target_id)
        if target is None or target.is_learner:
            raise errors.BadLeaderTransfereeError()
        logger.info("leadership is handed over to %016x", target_id)
        deadline = self._loop.time() + self._timeout_seconds
        self._raft.transfer_leader(target_id)
        while self._raft.node.leader_id() != target_id:
            if self._loop.time() >= deadline:
                raise errors.LeaderTransferTimeoutError()
            await asyncio.sleep(TRANSFER_POLL_SECONDS)
        return self._machine.header()

    async def hand_over(self, *, timeout_seconds: float) -> None:
        """Let another voter lead before this one goes (thesis §3.10), so that nobody need wait for an election. Best effort."""
        target_id = self._longest_connected_voter()
        transport = self._environment.transport
        if target_id is None or transport is None:
            return
        logger.info("leadership is handed over to %016x before the stop", target_id)
        deadline = self._loop.time() + timeout_seconds
        self._raft.transfer_leader(target_id)
        while self._raft.node.raft.role is Role.LEADER and transport.active_since(target_id) is not None:
            if self._loop.time() >= deadline:
                logger.warning("stopping without having handed leadership over")
                return
            await asyncio.sleep(TRANSFER_POLL_SECONDS)

    def _longest_connected_voter(self) -> int | None:
        transport = self._environment.transport
        if transport is None:
            return None
        since = [
            (active, member.id)
            for member in self._membership.voters()
            if member.id != self._headers.member_id and (active := transport.active_since(member.id)) is not None
        ]
        return min(since)[1] if since else None

    async def publish(self) -> None:
        """Have the list say this member's name and where clients reach it. Returns at once if it does. Raises as a write."""
        config, member_id = self._config, self._headers.member_id
        client_urls = tuple(config.advertise_client_urls)
        mine = self._membership.members.get(member_id)
        if mine is None and self._raft.node.conf_state().voters == (member_id,):
            # A directory from before there were lists: the log must name this member before it names others.
            mine = ClusterMember(id=member_id, peer_urls=config.peer_urls())
            await self._configure(ConfChangeType.ADD_NODE, member_id, encode_context(mine))
        if mine is None:
            raise errors.MemberNotFoundError()  # the log that names it is yet to come
        if (mine.name, mine.client_urls) != (config.name, client_urls):
            request = log_request.MemberAttributesRequest(member_id=member_id, name=config.name, client_urls=client_urls)
            await self._proposals.write(request)

    # -- inside

    def _response(self, changed: ClusterMember | None = None) -> MembersResponse:
        return MembersResponse(header=self._machine.header(), members=self._membership.list(), changed=changed)

    async def _configure(self, kind: ConfChangeType, member_id: int, context: bytes) -> MembersResponse:
        """Put a change through the log. Raises what applying it raises, UnavailableError, RequestTimeoutError."""
        async with self._changing:
            request_id = self._proposals.request_ids.next()
            change = ConfChange(kind, member_id, context, request_id)
            future = self._proposals.expect(request_id, change)
            try:
                self._raft.propose_conf_change(change)
            except ProposalDroppedError:
                self._proposals.forget(request_id)
                raise errors.UnavailableError() from None
            result = await future
            assert isinstance(result, ConfChangeResult), result
            return MembersResponse(header=result.header, members=result.members, changed=result.member)

    async def _promote(self, member_id: int) -> MembersResponse:
        member = self._membership.member(member_id)
        if member.is_learner:
            self._check_learner_is_ready(member_id)
            if self._config.strict_reconfig_check:
                started = 1 + sum(bool(one.name) for one in self._membership.voters())
                _check_quorum_can_start(started, 1 + len(self._membership.voters()))
        response = await self._configure(ConfChangeType.ADD_NODE, member_id, encode_context(member, is_promote=True))
        self._warn_of_even_count()
        return MembersResponse(header=response.header, members=response.members)

    async def _answer_promote(self, arguments: Mapping[str, Any]) -> Mapping[str, object]:
        if self._raft.node.raft.role is not Role.LEADER:
            raise errors.NotLeaderError()
        await self._promote(peer_calls.integer(arguments, "id"))
        return {}

    def _check_learner_is_ready(self, member_id: int) -> None:
        status = self._raft.node.status()
        matches = {progress.member: progress.match for progress in status.progress}
        if matches.get(member_id, 0) < LEARNER_READY_RATIO * matches.get(self._headers.member_id, 0):
            raise errors.LearnerNotReadyError()

    def _check_may_add_voter(self) -> None:
        voters = self._membership.voters()
        started = sum(bool(member.name) for member in voters)
        if started == 1 and len(voters) == 1:
            return  # how a cluster of one grows, as after a restore
        _check_quorum_can_start(started, len(voters) + 1)

    def _check_may_remove(self, member_id: int) -> None:
        member = self._membership.members.get(member_id)
        if member is not None and member.is_learner:
            return
        rest = [one for one in self._membership.voters() if one.id != member_id]
        _check_quorum_can_start(sum(bool(one.name) for one in rest), len(rest))
        transport = self._environment.transport
        if member_id != self._headers.member_id and (transport is None or transport.active_since(member_id) is None):
            return  # one that is down is no part of the quorum that works
        voters = self._membership.voters()
        if self._healthy_count() - 1 < 1 + (len(voters) - 1) // 2:
            raise errors.UnhealthyClusterError()

    def _healthy_count(self) -> int:
        """Voters that have been connected for ``HEALTH_SECONDS``, this member among them."""
        before = self._loop.time() - HEALTH_SECONDS
        return sum(self._is_connected_since(member.id, before) for member in self._membership.voters())

    def _is_connected_since(self, member_id: int, before: float) -> bool:
        if member_id == self._headers.member_id:
            return True
        transport = self._environment.transport
        since = None if transport is None else transport.active_since(member_id)
        return since is not None and since <= before

    def _is_connected_to_all_voters(self) -> bool:
        return self._healthy_count() == len(self._membership.voters())

    def _warn_of_even_count(self) -> None:
        warn_of_even_count(len(self._membership.voters()))


def warn_of_even_count(voters: int) -> None:
    if voters % 2 == 0:
        logger.warning("%d members vote: one more member to lose than with %d, and no more failures survived", voters, max(voters - 1, 1))


def _check_quorum_can_start(started: int, voters: int) -> None:
    if started < voters // 2 + 1:
        raise errors.NotEnoughStartedMembersError()


def _check_urls(urls: tuple[str, ...]) -> None:
    if not urls:
        raise errors.InvalidUrlsError()
    for url in urls:
        try:
            check_url(url, flag="peer URL")
        except ValueError as error:
            raise errors.InvalidUrlsError() from error
