"""How many requests are worked on at once (``--max-requests-inflight``, ``--max-mutating-requests-inflight``), where priority and fairness
(``apiserver.flowcontrol``) is switched off.

Past a limit a request is refused at once with 429 and ``Retry-After``, not queued. Long running requests do not count, ``system:masters``
are never refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from apiserver.authentication.user import MASTERS
from apiserver.filters.deadline import is_long_running
from apiserver.machinery import status
from apiserver.request.request_context import RequestContext

if TYPE_CHECKING:
    from apiserver.metrics import Exposition

READ_VERBS = frozenset(("get", "list", "watch"))
RETRY_AFTER_SECONDS = 1
OVERLOADED = "Too many requests, please try again later."


class PlainRefusalError(status.StatusError):
    """A refusal that is no Status on the wire but its message alone, as plain text: so kube-apiserver's filters say it."""


def overloaded() -> PlainRefusalError:
    refusal = status.too_many_requests(OVERLOADED, RETRY_AFTER_SECONDS)
    return PlainRefusalError(refusal.status, refusal.headers)


class Seat(Protocol):
    """What ``acquire`` took and ``release`` gives back."""

    @property
    def waiter(self) -> asyncio.Future[bool] | None:
        """Where the request has to ``wait`` first."""


class Limiter(Protocol):
    """Whoever lets requests in."""

    read_in_flight: int
    mutating_in_flight: int
    refused: int

    def acquire(self, context: RequestContext, is_gone: Callable[[], bool] | None = None) -> Seat | None:
        """Every seat must be released. ``is_gone``: whether the client has. Raises StatusError 429."""

    async def wait(self, seat: Seat) -> None:
        """Until a request whose seat has a ``waiter`` may run. Raises StatusError 429."""

    def release(self, seat: Seat | None) -> None: ...

    def expose(self, out: Exposition) -> None:
        """What else is counted."""


class _Place:
    """One of the two kinds of seat."""

    __slots__ = ()
    waiter: asyncio.Future[bool] | None = None


_READ = _Place()
_MUTATING = _Place()


class FlowControl:
    """Counts are of one event loop; ``in_flight`` is shown by metrics."""

    def __init__(self, read_max: int, mutating_max: int) -> None:
        """0 is no limit."""
        self._read_max = read_max
        self._mutating_max = mutating_max
        self.read_in_flight = 0
        self.mutating_in_flight = 0
        self.refused = 0

    def acquire(self, context: RequestContext, is_gone: Callable[[], bool] | None = None) -> Seat | None:
        """Raises StatusError 429. Every seat must be released."""
        info = context.info
        if is_long_running(info):
            return None
        if info.verb in READ_VERBS:
            if self._read_max and self.read_in_flight >= self._read_max and not _is_master(context):
                raise self._refuse()
            self.read_in_flight += 1
            return _READ
        if self._mutating_max and self.mutating_in_flight >= self._mutating_max and not _is_master(context):
            raise self._refuse()
        self.mutating_in_flight += 1
        return _MUTATING

    async def wait(self, seat: Seat) -> None:
        raise AssertionError("nobody waits here")

    def release(self, seat: Seat | None) -> None:
        if seat is _READ:
            self.read_in_flight -= 1
        elif seat is _MUTATING:
            self.mutating_in_flight -= 1
        assert self.read_in_flight >= 0 and self.mutating_in_flight >= 0, (self.read_in_flight, self.mutating_in_flight)

    def expose(self, out: Exposition) -> None:
        pass

    def _refuse(self) -> status.StatusError:
        self.refused += 1
        return overloaded()


def _is_master(context: RequestContext) -> bool:
    return context.user is not None and MASTERS in context.user.groups
