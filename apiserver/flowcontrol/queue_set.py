"""The seats and the queues of one priority level: shuffle sharding and fair queuing.

A flow (a user of a schema, say) is dealt a hand of the level's queues by its hash, and each of its requests goes to the least busy of the
hand. So a flow that floods fills the queues of its hand, and another flow, whose hand most likely has another queue in it, does not wait
behind it. Between queues the next seat goes to the one whose work so far, in seat-seconds, is the least (start-time fair queuing): a
queue's ``start`` is moved on by each of its requests, first by a guess and after its end by what it really took; a queue that was empty
begins at the level's virtual time, so that nobody saves up.

    two flows, one seat, guess g:   a1 a2 a3 | b1 come;  a1 runs: start(A) = g, virtual time 0
    a1 ends having taken 4g: start(A) = 4g; then b1 (start(B) = 0), and a2, a3 after it
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: what a request is taken to last until it is known, seconds
GUESS_SECONDS = 0.003


class Outcome(enum.Enum):
    RUN = "run"
    WAIT = "wait"
    REFUSED = "refused"


class Refusal(enum.Enum):
    """Why a request did not run; the label of the metric."""

    CONCURRENCY_LIMIT = "concurrency-limit"
    QUEUE_FULL = "queue-full"
    TIME_OUT = "time-out"
    CANCELLED = "cancelled"


class State(enum.Enum):
    NEW = "new"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queuing:
    queues: int
    hand_size: int
    length_limit: int


class Ticket:
    """One request at its level, from its arrival to the end of its answer. ``tell(runs)`` is called once where it waited, when that ends;
    ``is_gone`` says whether nobody waits for its answer any more."""

    __slots__ = (
        *("arrived_at", "began_at", "counted", "flow", "is_gone", "level", "mutating", "queue", "request", "seats", "state", "tell"),
        "waiter",
    )

    def __init__(self, level: QueueSet, flow: Any, seats: int, arrived_at: float) -> None:
        self.level = level
        #: whatever the dispatcher wants to know of it
        self.flow = flow
        self.seats = seats
        self.arrived_at = arrived_at
        self.began_at = 0.0
        self.state = State.NEW
        self.queue: _Queue | None = None
        self.tell: Callable[[bool], object] | None = None
        self.is_gone: Callable[[], bool] | None = None
        #: whether, and as what, the dispatcher counts it
        self.counted = False
        self.mutating = False
        #: what ``dump_requests`` shows
        self.request: Any = None
        #: of the dispatcher, where it waits
        self.waiter: Any = None


class _Queue:
    __slots__ = ("index", "running", "running_seats", "start", "waiting", "waiting_seats")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Ticket] = deque()
        self.waiting_seats = 0
        self.running = 0
        self.running_seats = 0
        #: the virtual time, in seat-seconds, at which its next request is due
        self.start = 0.0


def _load(queue: _Queue) -> int:
    return queue.waiting_seats + queue.running_seats


def deal(hash_value: int, deck_size: int, hand_size: int) -> list[int]:
    """A hand of distinct cards of the deck: each digit of the hash, in a base one smaller each time, picks one of those left."""
    digits = []
    for size in range(deck_size, deck_size - hand_size, -1):
        hash_value, digit = divmod(hash_value, size)
        digits.append(digit)
    hand: list[int] = []
    for digit in digits:
        card = digit
        # the digit counts cards that are left: step over those that were dealt
        for dealt in sorted(hand):
            if card >= dealt:
                card += 1
        hand.append(card)
    return hand


class QueueSet:
    """``queuing`` None: what finds no seat is refused. ``exempt``: everything runs at once."""

    def __init__(self, name: str, *, exempt: bool = False, queuing: Queuing | None = None, seats_max: int = 0) -> None:
        self.name = name
        self.exempt = exempt
        self.seats_max = seats_max
        self.seats_in_use = 0
        self.running = 0
        self.waiting = 0
        self.waiting_seats = 0
        self.running_tickets: set[Ticket] = set()
        self._virtual_time = 0.0
        self._queuing: Queuing | None = None
        self._queues: list[_Queue] = []
        #: those with a request in them
        self._busy: list[_Queue] = []
        self.configure(queuing, exempt=exempt)

    def configure(self, queuing: Queuing | None, *, exempt: bool) -> None:
        """Take on a changed configuration. Requests that wait keep their queue, also one that is there no more for others."""
        self.exempt = exempt
        self._queuing = queuing
        wanted = queuing.queues if queuing is not None else 0
        self._queues = self._queues[:wanted] + [_Queue(index) for index in range(len(self._queues), wanted)]

    @property
    def queues(self) -> Sequence[_Queue]:
        return self._queues

    @property
    def hand_size(self) -> int:
        return self._queuing.hand_size if self._queuing is not None else 1

    @property
    def demand(self) -> int:
        """Seats in use and wanted."""
        return self.seats_in_use + self.waiting_seats

    @property
    def is_idle(self) -> bool:
        return not self.running and not self.waiting

    def begin(self, ticket: Ticket, hand: Sequence[int], now: float, *, in_turn: bool = True) -> Outcome | Refusal:
        """Take seats, or wait for them. ``hand``: the queues of the request's flow (``hand_of``). ``in_turn`` False: wait in any case, if
        there are queues to wait in."""
        if self.exempt:
            self._run(ticket, now)
            return Outcome.RUN
        if self._queuing is None:
            if not self._fits(ticket):
                return Refusal.CONCURRENCY_LIMIT
            self._run(ticket, now)
            return Outcome.RUN
        if in_turn and not self.waiting and self._fits(ticket):
            ticket.queue = self._pick(hand)
            self._start_queue(ticket.queue)
            self._leave(ticket, now)
            return Outcome.RUN
        queue = self._pick(hand)
        if len(queue.waiting) >= self._queuing.length_limit and not self._drop_gone(queue):
            return Refusal.QUEUE_FULL
        ticket.queue = queue
        ticket.state = State.WAITING
        self._start_queue(queue)
        if not queue.waiting:
            self._busy.append(queue)
        queue.waiting.append(ticket)
        queue.waiting_seats += ticket.seats
        self.waiting += 1
        self.waiting_seats += ticket.seats
        return Outcome.WAIT

    def _fits(self, ticket: Ticket) -> bool:
        # one that is wider than the level runs alone
        return self.seats_in_use + ticket.seats <= self.seats_max or not self.running

    def hand_of(self, flow_hash: int) -> tuple[int, ...]:
        """Until the level is configured anew."""
        queuing = self._queuing
        return tuple(deal(flow_hash, queuing.queues, queuing.hand_size)) if queuing is not None else ()

    def _pick(self, hand: Sequence[int]) -> _Queue:
        queues = self._queues
        if not self.running and not self.waiting:
            return queues[hand[0]]  # all are as good
        return min((queues[card] for card in hand), key=_load)

    def _start_queue(self, queue: _Queue) -> None:
        if not queue.waiting and not queue.running and queue.start < self._virtual_time:
            queue.start = self._virtual_time

    def _run(self, ticket: Ticket, now: float) -> None:
        ticket.state = State.RUNNING
        ticket.began_at = now
        self.running += 1
        self.seats_in_use += ticket.seats
        self.running_tickets.add(ticket)

    def _leave(self, ticket: Ticket, now: float) -> None:
        """The queue's next request takes its seats."""
        queue = ticket.queue
        assert queue is not None
        self._virtual_time = max(self._virtual_time, queue.start)
        queue.start += GUESS_SECONDS * ticket.seats
        queue.running += 1
        queue.running_seats += ticket.seats
        self._run(ticket, now)

    def dispatch(self, now: float) -> Ticket | None:
        """Let the next request that waits run, if it fits; it is told. Those whose client is gone are passed over."""
        while self._busy:
            queue = min(self._busy, key=lambda q: (q.start + GUESS_SECONDS * q.waiting[0].seats, q.index))
            ticket = queue.waiting[0]
            if ticket.is_gone is not None and ticket.is_gone():
                self.remove(ticket)
                self._tell(ticket, runs=False)
                continue
            if not self._fits(ticket):
                return None
            self._take_out(ticket)
            self._leave(ticket, now)
            self._tell(ticket, runs=True)
            return ticket
        return None

    def _tell(self, ticket: Ticket, *, runs: bool) -> None:
        if ticket.tell is not None:
            ticket.tell(runs)

    def _take_out(self, ticket: Ticket) -> None:
        queue = ticket.queue
        assert queue is not None and ticket.state is State.WAITING
        queue.waiting.remove(ticket)
        queue.waiting_seats -= ticket.seats
        self.waiting -= 1
        self.waiting_seats -= ticket.seats
        if not queue.waiting:
            self._busy.remove(queue)

    def remove(self, ticket: Ticket) -> None:
        """One that waits will not run."""
        self._take_out(ticket)
        ticket.state = State.DONE

    def _drop_gone(self, queue: _Queue) -> bool:
        """Whether a place was made by those whose clients have gone."""
        gone = [ticket for ticket in queue.waiting if ticket.is_gone is not None and ticket.is_gone()]
        for ticket in gone:
            self.remove(ticket)
            self._tell(ticket, runs=False)
        return bool(gone)

    def finish(self, ticket: Ticket, now: float) -> None:
        """Give the seats back."""
        assert ticket.state is State.RUNNING, ticket.state
        ticket.state = State.DONE
        self.running -= 1
        self.seats_in_use -= ticket.seats
        self.running_tickets.discard(ticket)
        queue = ticket.queue
        if queue is not None:
            queue.running -= 1
            queue.running_seats -= ticket.seats
            queue.start += (now - ticket.began_at - GUESS_SECONDS) * ticket.seats
        assert self.running >= 0 and self.seats_in_use >= 0, self.name

    def waiting_tickets(self) -> Iterable[Ticket]:
        for queue in self._busy:
            yield from queue.waiting
