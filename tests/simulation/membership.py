"""Operators of the simulated cluster: membership, leadership, upkeep, while everything else happens."""

from __future__ import annotations

import contextlib
import random
from typing import Final

from storage import errors
from storage.maintenance import AlarmType, ClusterMember
from storage.member.member import Member
from tests.simulation.checkers import Observer
from tests.simulation.cluster import Cluster
from tests.simulation.hosts import Host

OPERATOR_TIMEOUT_SECONDS: Final = 4.0

VOTERS_MAX: Final = 5

HOSTS_MAX: Final = 8


class Operators:
    """Each method is one thing an operator does, as a coroutine of the clients' process; what the cluster refuses is refused, and what
    has no answer is looked up later."""

    def __init__(self, cluster: Cluster, observer: Observer, rng: random.Random) -> None:
        self.cluster = cluster
        self.observer = observer
        self.rng = rng
        self.refused = 0
        self.done = 0
        self._removals = 0
        """Under way, or of unknown outcome. Two members are never lost at a time, one to an operator and one to a disk."""

    async def members(self, host: Host) -> tuple[ClusterMember, ...]:
        """As ``host`` knows them; empty if it does not answer."""
        try:
            response = await self.cluster.port.call(host, lambda member: member.members(linearizable=False))
        except errors.StoreError:
            return ()
        return response.members

    async def add_member(self, host: Host) -> None:
        await self._add(host, is_learner=False)

    async def add_learner(self, host: Host) -> None:
        await self._add(host, is_learner=True)

    async def _add(self, host: Host, *, is_learner: bool) -> None:
        cluster = self.cluster
        voters = [each for each in await self.members(host) if not each.is_learner]
        if not voters or len(voters) >= VOTERS_MAX or cluster.count >= HOSTS_MAX:
            return
        new = cluster.new_host()
        await self._add_host(host, new, is_learner=is_learner)

    async def _add_host(self, host: Host, new: Host, *, is_learner: bool) -> None:
        """Ask ``host`` to add ``new`` and start it there."""
        cluster = self.cluster
        try:
            await cluster.port.call(
                host, lambda member: member.member_add((new.url,), is_learner=is_learner), timeout_seconds=OPERATOR_TIMEOUT_SECONDS
            )
        except errors.UnavailableError:
            cluster.expect(new)  # perhaps it was added
            return
        except errors.StoreError as error:
            self._refused(error)
            return
        self.done += 1
        self.observer.trace(f"{new.name} was added as {'learner' if is_learner else 'voter'}")
        cluster.join(new)

    async def promote(self, host: Host) -> None:
        learners = [each for each in await self.members(host) if each.is_learner]
        if not learners:
            return
        learner = self.rng.choice(learners)
        try:
            await self.cluster.port.call(host, lambda member: member.member_promote(learner.id), timeout_seconds=OPERATOR_TIMEOUT_SECONDS)
        except errors.StoreError as error:
            self._refused(error)
            return
        self.done += 1
        self.observer.trace(f"{learner.name} was promoted")

    async def remove_member(self, host: Host) -> None:
        if self.cluster.is_replacing:
            return
        self._removals += 1
        members = await self.members(host)
        if len([each for each in members if not each.is_learner]) < 2 or await self._remove(host, self.rng.choice(members)):
            self._removals -= 1

    async def _remove(self, host: Host, target: ClusterMember) -> bool:
        """Whether it is known what came of it."""
        try:
            await self.cluster.port.call(host, lambda member: member.member_remove(target.id), timeout_seconds=OPERATOR_TIMEOUT_SECONDS)
        except errors.StoreError as error:
            self._refused(error)
            return not isinstance(error, errors.UnavailableError)
        self.done += 1
        self.observer.trace(f"{target.name} was removed")
        return True

    async def replace(self, host: Host) -> None:
        """A disk is lost. The member must not start anew under its old id; it is removed and added again."""
        cluster = self.cluster
        lost = self.rng.choice(cluster.all_hosts())
        members = await self.members(host)
        mine = next((each for each in members if lost.url in each.peer_urls), None)
        if (
            mine is None
            or not mine.name
            or lost is host
            or len([each for each in members if not each.is_learner]) < 3
            or cluster.is_replacing
            or self._removals
        ):
            return
        self.observer.trace(f"{lost.name} loses its disk")
        cluster.lose_disk(lost, mine.id)

    async def finish_replacement(self, host: Host) -> None:
        """Go on with what ``replace`` began; called until it is done."""
        cluster = self.cluster
        lost, lost_id = cluster.lost_host, cluster.lost_id
        if lost is None or lost is host:
            return
        members = await self.members(host)
        if any(each.id == lost_id for each in members):
            await self._remove(host, next(each for each in members if each.id == lost_id))
        elif any(lost.url in each.peer_urls for each in members):
            cluster.join(lost)
        elif members:
            await self._add_host(host, lost, is_learner=False)

    async def move_leader(self, host: Host) -> None:
        targets = await self.members(host)
        if not targets:
            return
        target = self.rng.choice(targets)
        try:
            await self.cluster.port.call(host, lambda member: member.move_leader(target.id), timeout_seconds=OPERATOR_TIMEOUT_SECONDS)
        except errors.StoreError as error:
            self._refused(error)
            return
        self.done += 1

    async def defragment(self, host: Host) -> None:
        try:
            await self.cluster.port.call(host, lambda member: member.defragment())
        except errors.StoreError as error:
            self._refused(error)

    async def free_space(self, host: Host) -> None:
        """What an operator does about the NOSPACE alarm: compact, defragment, disarm (on one member, while others may be full)."""

        async def work(member: Member) -> None:
            revision = (await member.status()).header.revision
            with contextlib.suppress(errors.CompactedError):
                await member.compact(revision, physical=True)
            await member.defragment()
            await member.alarm_deactivate(0, AlarmType.NOSPACE)

        try:
            await self.cluster.port.call(host, work, timeout_seconds=OPERATOR_TIMEOUT_SECONDS)
        except errors.StoreError as error:
            self._refused(error)
            return
        self.done += 1

    def _refused(self, error: errors.StoreError) -> None:
        self.refused += 1
        self.observer.trace(f"refused: {error}")
