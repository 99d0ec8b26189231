"""The filter of priority and fairness: classifies each request, seats it or has it wait, and takes turns (see the package)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.authentication.user import UserInfo
from apiserver.filters.deadline import is_long_running
from apiserver.filters.flow_control import READ_VERBS, Seat, overloaded
from apiserver.flowcontrol import allocation, width
from apiserver.flowcontrol.configuration import Configuration, Level
from apiserver.flowcontrol.flow_metrics import Durations, FlowMetrics
from apiserver.flowcontrol.queue_set import Outcome, QueueSet, Refusal, State, Ticket
from apiserver.flowcontrol.rules import FlowSchema
from apiserver.machinery.status import StatusError
from apiserver.request.request_context import RequestContext, RequestInfo

#: How long a turn may last before levels are held to their share of it.
TURN_SECONDS = 0.02
#: Seats of all levels together in a turn that has lasted too long; between these, by how long the turns last.
TURN_SEATS_MIN = 16
TURN_SEATS_MAX = 1024
#: Of a request's time, what it may spend in a queue (kube-apiserver's quarter).
WAIT_FRACTION = 0.25
#: Classifications remembered; beyond it the memory starts anew.
KNOWN_MAX = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What requests of one user about one thing have in common."""

    schema: FlowSchema
    level: _SeatedLevel
    distinguisher: str
    #: of the level's queues
    hand: tuple[int, ...]
    headers: tuple[tuple[bytes, bytes], ...]
    #: how long its requests took, with those of the other flows of the schema
    executions: Durations
    watches: Durations


class _SeatedLevel:
    """A priority level with its queues, as long as it is configured and beyond, until its last request has ended."""

    __slots__ = ("allowance", "config", "demand", "limits", "queue_set", "ran_seats", "widest")

    def __init__(self, config: Level) -> None:
        self.config = config
        self.queue_set = QueueSet(config.name, exempt=config.exempt, queuing=config.queuing)
        self.limits = allocation.Limits(nominal=0, lower=0, upper=0)
        self.demand = allocation.Demand()
        self.widest = width.SEATS_MAX
        #: seats of a long turn that are this level's, and how many it has had of this one
        self.allowance = 1
        self.ran_seats = 0


class Dispatcher:
    """``read_configuration`` is called when ``changed`` was, at the next request. ``now`` is the chain's monotonic clock."""

    def __init__(
        self,
        read_configuration: Callable[[], Configuration],
        count_objects: width.CountObjects,
        *,
        seats: int,
        request_timeout_seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._read_configuration = read_configuration
        self._count_objects = count_objects
        self._seats = seats
        self._wait_seconds = request_timeout_seconds * WAIT_FRACTION
        self._now = now
        self._stale = True
        self._schemas: tuple[FlowSchema, ...] = ()
        self._levels: dict[str, _SeatedLevel] = {}
        self._known: dict[tuple[int, int], tuple[UserInfo, RequestInfo, Flow]] = {}
        self._turn_began: float | None = None
        self._turn_seats = TURN_SEATS_MIN
        self._adjust_at = now() + allocation.ADJUSTMENT_SECONDS
        self.metrics = FlowMetrics()
        self.read_in_flight = 0
        self.mutating_in_flight = 0
        self.refused = 0

    # -- configuration -------------------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """A FlowSchema or a priority level has."""
        self._stale = True

    def _configure(self) -> None:
        self._stale = False
        self._known.clear()
        found = self._read_configuration()
        levels = {}
        for name, config in sorted(found.levels.items()):
            seated = self._levels.get(name)
            if seated is None:
                seated = _SeatedLevel(config)
            elif seated.config != config:
                seated.config = config
                seated.queue_set.configure(config.queuing, exempt=config.exempt)
            levels[name] = seated
        limits = allocation.limits({name: level.config.shares for name, level in levels.items()}, self._seats)
        shares = sum(level.config.shares.shares for level in levels.values())
        for name, level in levels.items():
            if level.limits != limits[name]:
                level.limits = limits[name]
                level.queue_set.seats_max = limits[name].nominal
            level.widest = width.SEATS_MAX
            if not level.config.exempt:
                level.widest = width.widest(limits[name].nominal, level.queue_set.hand_size)
        # levels that are gone end with their last request: those that wait in them are let in now
        for name, level in self._levels.items():
            if name not in levels:
                while level.queue_set.dispatch(self._now()) is not None:
                    pass
                level.queue_set.seats_max = 1 << 30
        self._levels, self._schemas = levels, found.schemas
        self._shares = shares
        self._share_out()

    def _share_out(self) -> None:
        """Each level's part of a long turn."""
        for level in self._levels.values():
            part = level.config.shares.shares / self._shares if self._shares else 1.0
            level.allowance = max(1, round(self._turn_seats * part))

    def levels(self) -> Mapping[str, _SeatedLevel]:
        """For metrics and dumps."""
        if self._stale:
            self._configure()
        return self._levels

    # -- requests ------------------------------------------------------------------------------------------------------------

    def classify(self, context: RequestContext) -> Flow:
        user, info = context.user, context.info
        assert user is not None, "flow control before authentication"
        if self._stale:
            self._configure()
        key = (id(user), id(info))
        known = self._known.get(key)
        # the entry holds both objects, so their identities cannot have passed to others
        if known is not None:
            return known[2]
        # the last one, catch-all, is for everybody: but an administrator may have narrowed it
        schema = next((each for each in self._schemas if each.matches(user, info)), self._schemas[-1])
        level = self._levels[schema.level]
        distinguisher = schema.distinguish(user, info)
        digest = hashlib.blake2b(f"{schema.name}\0{distinguisher}".encode(), digest_size=8).digest()
        flow = Flow(
            schema=schema,
            level=level,
            distinguisher=distinguisher,
            hand=level.queue_set.hand_of(int.from_bytes(digest)),
            headers=(
                (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
                (b"x-kubernetes-pf-prioritylevel-uid", level.config.uid.encode()),
            ),
            executions=self.metrics.executions(schema.level, schema.name, watch=False),
            watches=self.metrics.executions(schema.level, schema.name, watch=True),
        )
        if context.original_user is None:  # who is impersonated is another object each time
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[key] = (user, info, flow)
        return flow

    def acquire(self, context: RequestContext, is_gone: Callable[[], bool] | None = None) -> Ticket | None:
        """The request's ticket: it may run, or has to ``wait`` where the ticket has a ``waiter``; None for what is not limited. Every
        ticket must be released. ``is_gone``: whether the client has. Raises StatusError 429."""
        info = context.info
        verb = info.verb
        if verb != "watch" and (info.subresource or verb == "proxy") and is_long_running(info):
            return None
        flow = self.classify(context)
        context.response_headers = flow.headers
        now = self._now()
        if now >= self._adjust_at:
            self._adjust(now)
        level = flow.level
        queue_set = level.queue_set
        seats = 1
        if verb == "list" or verb == "watch":
            seats = width.seats_of(context, level.widest, self._count_objects)
        ticket = Ticket(queue_set, flow, seats, now)
        ticket.request = context
        ticket.is_gone = is_gone
        in_turn = True
        if not queue_set.exempt:
            if self._turn_began is None:
                self._begin_turn(now)
            elif now - self._turn_began > TURN_SECONDS and level.ran_seats >= level.allowance:
                in_turn = False
        outcome = queue_set.begin(ticket, flow.hand, now, in_turn=in_turn)
        if outcome is Outcome.RUN:
            level.ran_seats += seats
            self._count_in(ticket)
            return ticket
        if outcome is Outcome.WAIT:
            self._let_wait(ticket)
            return ticket
        assert isinstance(outcome, Refusal)
        raise self._refuse(flow, outcome)

    def _count_in(self, ticket: Ticket) -> None:
        level: _SeatedLevel = ticket.flow.level
        ticket.counted = True
        if ticket.request.info.verb in READ_VERBS:
            self.read_in_flight += 1
        else:
            ticket.mutating = True
            self.mutating_in_flight += 1
        # one alone is not noted: most are over before the next one comes
        if level.queue_set.running > 1:
            level.demand.set(level.queue_set.demand, ticket.began_at)

    def _let_wait(self, ticket: Ticket) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        ticket.waiter = waiter

        def tell(runs: bool) -> None:
            if not waiter.done():
                waiter.set_result(runs)

        ticket.tell = tell
        level: _SeatedLevel = ticket.flow.level
        level.demand.set(level.queue_set.demand, ticket.arrived_at)
        if self._turn_began is None:
            self._begin_turn(ticket.arrived_at)

    async def wait(self, ticket: Seat) -> None:
        """Until it may run. Raises StatusError 429."""
        assert isinstance(ticket, Ticket)
        flow: Flow = ticket.flow
        seconds = self._wait_seconds
        deadline = ticket.request.deadline
        if deadline is not None:
            seconds = min(seconds, (deadline - ticket.arrived_at) * WAIT_FRACTION)
        timer = asyncio.get_running_loop().call_later(seconds, self._expire, ticket)
        runs = False
        try:
            runs = await ticket.waiter
        finally:
            timer.cancel()
            waited = self._now() - ticket.arrived_at
            self.metrics.waited(flow.level.config.name, flow.schema.name, waited, executed=runs)
        if not runs:
            gone = ticket.is_gone is not None and ticket.is_gone()
            raise self._refuse(flow, Refusal.CANCELLED if gone else Refusal.TIME_OUT)
        self._count_in(ticket)

    def _expire(self, ticket: Ticket) -> None:
        if ticket.state is State.WAITING:
            ticket.level.remove(ticket)
            assert ticket.tell is not None
            ticket.tell(False)

    def release(self, ticket: Seat | None) -> None:
        """Give back what ``acquire`` gave, once; a second time does nothing."""
        if not isinstance(ticket, Ticket) or ticket.state is State.DONE:
            return
        queue_set = ticket.level
        if ticket.state is State.WAITING:  # its task was cancelled
            queue_set.remove(ticket)
            return
        now = self._now()
        queue_set.finish(ticket, now)
        if ticket.counted:
            if ticket.mutating:
                self.mutating_in_flight -= 1
            else:
                self.read_in_flight -= 1
        flow: Flow = ticket.flow
        demand = flow.level.demand
        if demand.seats:
            demand.set(queue_set.demand, now)
        (flow.watches if ticket.request.info.verb == "watch" else flow.executions).add(now - ticket.began_at)
        if queue_set.waiting:
            # where the turn is over its next one lets them in
            if self._turn_began is None:
                self._begin_turn(now)
            if now - self._turn_began <= TURN_SECONDS:  # type: ignore[operator]
                self._let_in(flow.level, now)

    def _refuse(self, flow: Flow, why: Refusal) -> StatusError:
        self.refused += 1
        self.metrics.rejected(flow.level.config.name, flow.schema.name, why.value)
        return overloaded()

    # -- turns ---------------------------------------------------------------------------------------------------------------

    def _begin_turn(self, now: float) -> None:
        self._turn_began = now
        # behind all that is ready to run: those are the turn
        asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        began, self._turn_began = self._turn_began, None
        assert began is not None
        now = self._now()
        waiting = [level for level in self._levels.values() if level.queue_set.waiting]
        for level in self._levels.values():
            level.ran_seats = 0
        if not waiting:
            return
        factor = 0.5 if now - began > TURN_SECONDS else 2.0
        seats = min(TURN_SEATS_MAX, max(TURN_SEATS_MIN, int(self._turn_seats * factor)))
        if seats != self._turn_seats:
            self._turn_seats = seats
            self._share_out()
        self._begin_turn(now)
        for level in waiting:
            self._let_in(level, now)

    def _let_in(self, level: _SeatedLevel, now: float) -> None:
        """Those that wait, as far as seats and the level's share of the turn go."""
        while level.ran_seats < level.allowance:
            ticket = level.queue_set.dispatch(now)
            if ticket is None:
                return
            level.ran_seats += ticket.seats

    # -- borrowing -----------------------------------------------------------------------------------------------------------

    def _adjust(self, now: float) -> None:
        """Levels that were busy borrow from those that were not. At a request: while there is none nobody needs a seat."""
        self._adjust_at = now + allocation.ADJUSTMENT_SECONDS
        exempt_seats = 0
        demands: dict[str, tuple[int, float]] = {}
        for name, level in self._levels.items():
            level.demand.set(level.queue_set.demand, now)
            most = level.demand.adjust(now)
            if level.config.exempt:
                exempt_seats += max(most, level.limits.lower)
            else:
                demands[name] = (most, level.demand.smoothed)
        limits = {name: self._levels[name].limits for name in demands}
        for name, seats in allocation.current_limits(limits, demands, exempt_seats).items():
            level = self._levels[name]
            level.queue_set.seats_max = seats
            if level.queue_set.waiting:
                self._let_in(level, now)

    def expose(self, out: Any) -> None:
        self.metrics.expose(self.levels(), out)
