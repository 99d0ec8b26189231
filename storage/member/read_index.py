"""Linearizable reads without writing (ReadIndex, Raft thesis §6.4): many readers share one question to the leader.

A reader may share the answer to a question only if that was asked after it came: an index that was confirmed before covers nothing
that was acknowledged since. So those that come while a question is under way wait for the next one.

    wait() ─> next round ─ ask(context) ─> Raft ─ answered(index, context) ─> until applied_index ≥ index ─> the readers go on
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage import errors
from storage.member.metrics import MemberMetrics
from storage.raft.rawnode import ReadState

RETRY_SECONDS: Final = 0.5
"""A question without an answer is asked again, since messages get lost and leaders change (etcd's number)."""

WAITING_MAX: Final = 10_000
"""Readers at a time; beyond it they are refused, so that a cluster without a leader does not collect them without bound."""


@dataclass(frozen=True, slots=True)
class _Reader:
    future: asyncio.Future[None]
    since: float


@dataclass(slots=True)
class _Round:
    context: bytes
    asked_at: float
    readers: deque[_Reader]


class ReadIndex:
    """``ask(context)`` puts the question; False when it is known at once that no answer will come (no leader)."""

    def __init__(
        self, *, ask: Callable[[bytes], bool], new_context: Callable[[], bytes], applied_index: Callable[[], int], metrics: MemberMetrics
    ) -> None:
        self._ask = ask
        self._new_context = new_context
        self._applied_index = applied_index
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._next: deque[_Reader] = deque()
        self._round: _Round | None = None
        self._confirmed: deque[tuple[int, deque[_Reader]]] = deque()
        self._count = 0
        self._begin_is_due = False

    def __len__(self) -> int:
        return self._count

    async def wait(self) -> None:
        """Return once everything that was acknowledged before this call is applied here. Raises RequestTimeoutError,
        TooManyRequestsError, and what ``fail_all`` is told."""
        if self._count >= WAITING_MAX:
            raise errors.TooManyRequestsError()
        reader = _Reader(self._loop.create_future(), self._loop.time())
        self._next.append(reader)
        self._count += 1
        if self._round is None and not self._begin_is_due:
            self._begin_is_due = True
            self._loop.call_soon(self._begin)
        try:
            await reader.future
        finally:
            self._count -= 1

    def answered(self, states: tuple[ReadState, ...]) -> None:
        for state in states:
            asked = self._round
            if asked is None or state.context != asked.context:
                continue  # the answer to a question that was asked again since: the newer one will do
            self._round = None
            self._confirmed.append((state.index, asked.readers))
        self.applied()
        if self._round is None and self._next:
            self._begin()

    def applied(self) -> None:
        """The applied index has moved."""
        confirmed = self._confirmed
        index = self._applied_index()
        while confirmed and confirmed[0][0] <= index:
            for reader in confirmed.popleft()[1]:
                if not reader.future.done():
                    reader.future.set_result(None)

    def leader_changed(self) -> None:
        """The question that is under way may never be answered: ask the new leader."""
        self._restart()

    def tick(self, now: float, *, timeout_seconds: float) -> None:
        """Ask again what was not answered, and give up what waits for too long."""
        for readers in self._groups():
            while readers and (readers[0].since <= now - timeout_seconds or readers[0].future.done()):
                future = readers.popleft().future
                if not future.done():
                    self._metrics.read_indexes_failed += 1
                    future.set_exception(errors.RequestTimeoutError())
        if self._round is None:
            self._restart()
        elif now - self._round.asked_at >= RETRY_SECONDS:
            self._metrics.read_indexes_slow += 1
            self._restart()

    def fail_all(self, error: errors.StoreError) -> None:
        for readers in self._groups():
            while readers:
                future = readers.popleft().future
                if not future.done():
                    future.set_exception(error)
        self._round = None
        self._confirmed.clear()

    def _groups(self) -> list[deque[_Reader]]:
        groups = [readers for _, readers in self._confirmed]
        if self._round is not None:
            groups.append(self._round.readers)
        groups.append(self._next)
        return groups

    def _restart(self) -> None:
        """All who wait for an answer join a new question."""
        if self._round is not None:
            self._round.readers.extend(self._next)
            self._next = self._round.readers
            self._round = None
        if self._next:
            self._begin()

    def _begin(self) -> None:
        self._begin_is_due = False
        if self._round is not None or not self._next:
            return
        context = self._new_context()
        asked = _Round(context, self._loop.time(), self._next)
        self._round, self._next = asked, deque()
        if not self._ask(context):
            # No leader: the readers wait for one (``leader_changed``) until their time is over.
            self._round, self._next = None, asked.readers
