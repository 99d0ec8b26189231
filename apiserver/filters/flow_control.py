"""How many requests are worked on at once (``--max-requests-inflight``, ``--max-mutating-requests-inflight``).

Past a limit a request is refused at once with 429 and ``Retry-After``, not queued: clients retry, and a queue in front of a server that
cannot keep up only adds latency. Long running requests do not count, ``system:masters`` are never refused.
"""

from __future__ import annotations

import enum

from apiserver.authentication.user import MASTERS
from apiserver.filters.deadline import is_long_running
from apiserver.machinery import status
from apiserver.request.request_context import RequestContext

_READ_VERBS = frozenset(("get", "list", "watch"))
RETRY_AFTER_SECONDS = 1


class Seat(enum.Enum):
    """What ``acquire`` took and ``release`` gives back."""

    NONE = "none"
    READ = "readOnly"
    MUTATING = "mutating"


class FlowControl:
    """Counts are of one event loop; ``in_flight`` is shown by metrics."""

    def __init__(self, read_max: int, mutating_max: int) -> None:
        """0 is no limit."""
        self._read_max = read_max
        self._mutating_max = mutating_max
        self.read_in_flight = 0
        self.mutating_in_flight = 0
        self.refused = 0

    def acquire(self, context: RequestContext) -> Seat:
        """Raises StatusError 429. Every seat must be released."""
        info = context.info
        if is_long_running(info):
            return Seat.NONE
        if info.verb in _READ_VERBS:
            if self._read_max and self.read_in_flight >= self._read_max and not _is_master(context):
                raise self._refuse()
            self.read_in_flight += 1
            return Seat.READ
        if self._mutating_max and self.mutating_in_flight >= self._mutating_max and not _is_master(context):
            raise self._refuse()
        self.mutating_in_flight += 1
        return Seat.MUTATING

    def release(self, seat: Seat) -> None:
        if seat is Seat.READ:
            self.read_in_flight -= 1
        elif seat is Seat.MUTATING:
            self.mutating_in_flight -= 1
        assert self.read_in_flight >= 0 and self.mutating_in_flight >= 0, (self.read_in_flight, self.mutating_in_flight)

    def _refuse(self) -> status.StatusError:
        self.refused += 1
        return status.too_many_requests("Too many requests, please try again later.", RETRY_AFTER_SECONDS)


def _is_master(context: RequestContext) -> bool:
    return context.user is not None and MASTERS in context.user.groups
