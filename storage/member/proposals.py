"""Writes on their way through the log: who waits for which, how long, and what is refused at the door."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from storage import errors
from storage.member import request as log_request
from storage.member.metrics import MemberMetrics
from storage.member.quota import Quota
from storage.member.wait import RequestIds, Wait
from storage.raft.messages import ConfChange

PENDING_WRITES_MAX: Final = 5000
"""Writes that wait for their answer (etcd's gap between committed and applied). Beyond it new ones are refused at once, so that an
overload shows at the caller instead of growing a queue."""


@dataclass(slots=True)
class Waiter:
    """Who waits for a request. ``data`` is its entry: only that very one answers it. The request is kept so that applying need not
    decode it."""

    data: bytes
    request: log_request.InternalRequest | ConfChange
    future: asyncio.Future[object]


class Proposals:
    """``propose`` hands an entry to Raft; ``settle`` is called when it is applied."""

    def __init__(
        self,
        *,
        request_ids: RequestIds,
        quota: Quota,
        metrics: MemberMetrics,
        propose: Callable[[bytes], None],
        max_request_bytes: int,
    ) -> None:
        self.request_ids = request_ids
        self._quota = quota
        self._metrics = metrics
        self._propose = propose
        self._max_request_bytes = max_request_bytes
        self._loop = asyncio.get_running_loop()
        self._wait: Wait[Waiter] = Wait()

    def __len__(self) -> int:
        return len(self._wait)

    async def write(self, request: log_request.InternalRequest) -> object:
        """Put a request through the log; its answer when it is applied. Raises what applying it raises, and RequestTooLargeError,
        NoSpaceError, TooManyRequestsError (nothing was proposed), UnavailableError, RequestTimeoutError (outcome unknown)."""
        if len(self._wait) >= PENDING_WRITES_MAX:
            self._metrics.proposals_failed += 1
            raise errors.TooManyRequestsError()
        request_id = self.request_ids.next()
        data = log_request.encode(request_id, request)
        if len(data) > self._max_request_bytes:
            raise errors.RequestTooLargeError()
        if not self._quota.maybe_charge(request, len(data)):
            raise errors.NoSpaceError()
        self._propose(data)
        loop = self._loop
        future: asyncio.Future[object] = loop.create_future()
        self._wait.register(request_id, Waiter(data, request, future), loop.time())
        return await future

    def take(self, data: bytes) -> Waiter | None:
        """Who waits for this entry, who waits no longer. Ids are unique within a member; two members' may meet, hence the look at the
        whole entry."""
        request_id = log_request.request_id_of(data)
        waiter = self._wait.get(request_id)
        if waiter is None or waiter.data != data:
            return None
        self._wait.take(request_id)
        return waiter

    def expect(self, request_id: int, change: ConfChange) -> asyncio.Future[object]:
        """Wait for a change of the membership, which the caller proposes itself."""
        future: asyncio.Future[object] = self._loop.create_future()
        self._wait.register(request_id, Waiter(b"", change, future), self._loop.time())
        return future

    def take_change(self, change: ConfChange) -> Waiter | None:
        """Who waits for this change, who waits no longer."""
        waiter = self._wait.get(change.id)
        if waiter is None or waiter.request != change:
            return None
        self._wait.take(change.id)
        return waiter

    def forget(self, request_id: int) -> None:
        self._wait.take(request_id)

    def is_awaited(self, data: bytes) -> bool:
        waiter = self._wait.get(log_request.request_id_of(data))
        return waiter is not None and waiter.data == data and not waiter.future.done()

    def drop(self, proposals: list[bytes], error: errors.StoreError) -> None:
        """Nothing of them was proposed."""
        for data in proposals:
            self._metrics.proposals_failed += 1
            waiter = self.take(data)
            if waiter is not None and not waiter.future.done():
                waiter.future.set_exception(error)

    def expire(self, before: float, text: str | None = None) -> None:
        """Those that came before that time are told that the outcome is unknown, with ``text`` for the reason."""
        for waiter in self._wait.overdue(before):
            self._metrics.proposals_failed += 1
            if not waiter.future.done():
                waiter.future.set_exception(errors.RequestTimeoutError(text))

    def fail_all(self, error: errors.StoreError) -> None:
        for waiter in self._wait.take_all():
            if not waiter.future.done():
                waiter.future.set_exception(error)
