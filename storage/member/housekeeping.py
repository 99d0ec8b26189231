"""What a member does by itself now and then, and what operators ask of the cluster through the log.

Every tick: checkpoints of leases and auto-compaction where this member leads. Now and then: the comparison with its peers. Alarms: raised
when a write finds no space, or when members differ; taken off by operators.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from storage import errors
from storage.config import MemberConfig
from storage.maintenance import AlarmsResponse, AlarmType
from storage.member.compactor import Compactor, new_compactor
from storage.member.corruption import CorruptionChecker, PeerHash
from storage.member.request import (
    AlarmAction,
    AlarmRequest,
    CompactionRequest,
    InternalRequest,
    LeaseCheckpointRequest,
)
from storage.member.state_machine import StateMachine
from storage.member.transport import Transport
from storage.member.upkeep import Upkeep

logger = logging.getLogger(__name__)

T = TypeVar("T")

HASH_KV: Final = "hash.kv"
"""What members ask each other: body ``{"revision"}``, answered by ``PeerHash.to_json``."""

HASH_SECONDS_MAX: Final = 30.0
"""A peer that has not told its hash by then is left out of this comparison."""

MEASURE_SECONDS_MAX: Final = 1.0
"""How long the answer to taking off an alarm may wait for the disk."""


class Housekeeping:
    """``close`` ends what is under way."""

    def __init__(
        self,
        config: MemberConfig,
        *,
        member_id: int,
        machine: StateMachine,
        upkeep: Upkeep,
        transport: Transport | None,
        write: Callable[[InternalRequest], Awaitable[object]],
        propose: Callable[[InternalRequest], None],
        leads: Callable[[], bool],
        peer_ids: Callable[[], Sequence[int]],
        wait_for_reads: Callable[[], Awaitable[object]],
        measure: Callable[[], None],
        failed: Callable[[BaseException], None],
        now: float,
    ) -> None:
        """``write`` puts a request through the log and waits; ``propose`` does not wait, and drops it where this member does not lead;
        ``measure`` looks anew how much space is used; ``failed`` is told that this member must stop."""
        self._config = config
        self._member_id = member_id
        self._machine = machine
        self._upkeep = upkeep
        self._transport = transport
        self._write = write
        self._propose = propose
        self._leads = leads
        self._peer_ids = peer_ids
        self._measure = measure
        self._failed = failed
        self._compactor: Compactor | None = new_compactor(config.auto_compaction_mode, config.auto_compaction_retention, now)
        self._next_look = now
        self._next_comparison = now + config.corrupt_check_seconds if config.corrupt_check_seconds else float("inf")
        self._next_check_at_start = now if config.initial_corrupt_check else float("inf")
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._checker = CorruptionChecker(
            member_id,
            hash_kv=upkeep.hash_kv,
            ask_peers=self._ask_peers,
            current_revision=lambda: machine.store.current_revision,
            wait_for_reads=wait_for_reads,
            raise_alarm=lambda each: self.activate(each, AlarmType.CORRUPT),
        )

    def tick(self, now: float, *, is_ready: bool) -> None:
        """Often. ``is_ready``: this member has caught up with what was acknowledged before its start."""
        due = self._machine.lessor.due_checkpoints(now)
        if due:
            self._propose(LeaseCheckpointRequest(remaining_ttl_seconds=tuple(due)))
        if self._compactor is not None and now >= self._next_look:
            self._next_look = now + self._compactor.interval_seconds
            revision = self._compactor.look(self._machine.store.current_revision, now, leads=self._leads())
            if revision is not None:
                self._spawn("compaction", self._compact(self._compactor, revision, now))
        if now >= self._next_check_at_start and is_ready and self._peer_ids():
            self._next_check_at_start = float("inf")
            self._spawn("check at start", self._check_at_start())
        if now >= self._next_comparison:
            self._next_comparison = now + self._config.corrupt_check_seconds
            if self._leads() and self._peer_ids():
                self._spawn("comparison", self._compare())

    async def close(self) -> None:
        """Idempotent."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- leases

    async def renew_lease(self, lease_id: int, now: Callable[[], float]) -> int:
        """On the leader: the TTL in seconds, from now on. Raises LeaseNotFoundError, and as a write where a checkpoint must be taken
        back before; NotLeaderError if another one leads by then."""
        lessor = self._machine.lessor
        while lessor.must_clear_checkpoint(lease_id, now()):
            await self._write(LeaseCheckpointRequest(remaining_ttl_seconds=((lease_id, 0),)))
            if not lessor.is_primary:
                raise errors.NotLeaderError()
        return lessor.renew(lease_id, now())

    # -- alarms

    async def activate(self, member_id: int, alarm: AlarmType) -> AlarmsResponse:
        """Raises as a write."""
        return await self._alarm(AlarmRequest(action=AlarmAction.ACTIVATE, member_id=member_id, alarm=alarm))

    async def deactivate(self, member_id: int, alarm: AlarmType) -> AlarmsResponse:
        """Raises as a write. A member that still has no space raises its alarm again at the next write; so that one that has made room
        does not, the answer waits until what it removed counts."""
        response = await self._alarm(AlarmRequest(action=AlarmAction.DEACTIVATE, member_id=member_id, alarm=alarm))
        loop = asyncio.get_running_loop()
        store, removed_at, deadline = self._machine.store.store, self._machine.applied_index, loop.time() + MEASURE_SECONDS_MAX
        while store.durable_consistent_index < removed_at and loop.time() < deadline:  # noqa: ASYNC110  (the disk tells nobody)
            await asyncio.sleep(MEASURE_SECONDS_MAX / 20)
        self._measure()
        return response

    async def out_of_space(self) -> None:
        """A write found no space here: tell the cluster, once. That it cannot be told changes nothing for the one who wrote."""
        alarms = self._machine.alarms
        if alarms.is_active(AlarmType.NOSPACE) or "alarm" in self._tasks.values():
            return
        await asyncio.shield(self._spawn("alarm", self._raise_nospace()))

    async def _raise_nospace(self) -> None:
        await self.activate(self._member_id, AlarmType.NOSPACE)

    async def _alarm(self, request: AlarmRequest) -> AlarmsResponse:
        response = await self._write(request)
        assert isinstance(response, AlarmsResponse)
        return response

    # -- by itself

    async def _compact(self, compactor: Compactor, revision: int, now: float) -> None:
        with contextlib.suppress(errors.CompactedError):  # somebody did it already
            await self._write(CompactionRequest(revision=revision))
        compactor.compacted(revision, now)

    async def _compare(self) -> None:
        await self._checker.check()

    async def _check_at_start(self) -> None:
        try:
            await self._checker.check_at_start()
        except errors.CorruptError as error:
            self._failed(error)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._logged(name, work), name=name)
        self._tasks[task] = name
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        task.add_done_callback(lambda done: work.close())  # one that was cancelled before it began has never awaited it
        return task

    async def _logged(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """The outermost edge of a task: what the store refuses will be tried again in its time, anything else stops the member."""
        try:
            await work
        except errors.StoreError as error:
            logger.warning("%s: %s", name, error)
        except Exception as error:
            self._failed(error)

    # -- peers

    async def answer_hash_kv(self, arguments: Mapping[str, Any]) -> Mapping[str, object]:
        """To a peer. Raises CompactedError, FutureRevisionError, InvalidRequestError."""
        revision = arguments.get("revision")
        if not isinstance(revision, int):
            raise errors.InvalidRequestError("etcdserver: revision must be an integer")
        current = self._machine.store.current_revision
        found = await self._upkeep.hash_kv(revision)
        return PeerHash(member_id=self._member_id, revision=current, hash=found).to_json()

    async def _ask_peers(self, revision: int) -> list[PeerHash]:
        answers = await asyncio.gather(*(self._ask_peer(member_id, revision) for member_id in self._peer_ids()))
        return [answer for answer in answers if answer is not None]

    async def _ask_peer(self, member_id: int, revision: int) -> PeerHash | None:
        """None for one that cannot tell: it is away, behind, or has compacted further."""
        assert self._transport is not None
        body = json.dumps({"revision": revision}).encode()
        try:
            answer = json.loads(await self._transport.call(member_id, HASH_KV, body, timeout_seconds=HASH_SECONDS_MAX))
            return PeerHash.from_json(answer)
        except (errors.StoreError, ValueError) as error:
            logger.info("no hash of member %016x at revision %d: %s", member_id, revision, error)
            return None
