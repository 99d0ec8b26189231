"""Is there one order of all calls that fits real time and in which every answer is what the model says? Pure.

Two ways to find out:

``check_search`` (Wing & Gong 1993, with Lowe's memo) looks for such an order and needs nothing but the history. Its cost grows with the
number of calls at a time and with calls whose outcome is unknown: for histories of some hundred calls.

``check_against_log`` is given the order: what the store committed to its log. It replays that through the model and checks that every
answer is one the log explains and that the log's order fits real time. Linear, for long histories.

Both take a call whose outcome is unknown as done at any time after it began, or never; and a serializable read as one that may look at
any state up to its end (it promises a prefix, not the newest).
"""

from __future__ import annotations

import bisect
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from storage import api
from storage.member import request as log_request
from storage.raft.messages import Entry, EntryType
from tests.robustness import kv_model
from tests.robustness.history import Answered, Operation, Refused, Unknown, agrees, revision_of

STEPS_MAX: Final = 2_000_000
"""Of a search. A history that needs more has too many calls at a time to be judged this way."""


class UndecidedError(Exception):
    """The search took too long: nothing is known of the history."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``problems`` is empty for a linearizable history. ``order``: one that fits (or the longest found), of positions in the history."""

    problems: tuple[str, ...] = ()
    order: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def check_search(history: Sequence[Operation], start: kv_model.State | None = None, *, steps_max: int = STEPS_MAX) -> Verdict:
    """Search an order. ``start`` is the state before the first call. Raises UndecidedError."""
    return _Search(history, start or kv_model.State(), steps_max).run()


def _called(operation: Operation) -> float:
    return float("-inf") if operation.is_serializable_read else operation.called


def _returned(operation: Operation) -> float:
    return float("inf") if isinstance(operation.outcome, Unknown) else operation.returned


def _seen_revision(operation: Operation) -> int:
    """The revision that its answer tells, 0 if it tells none."""
    return revision_of(operation.outcome.response) if isinstance(operation.outcome, Answered) else 0


class _Search:
    """Depth first, without recursion. A node is the set of calls done so far (bits) and the state they led to; one that was left
    without success is never entered again."""

    def __init__(self, history: Sequence[Operation], start: kv_model.State, steps_max: int) -> None:
        by_call = sorted(range(len(history)), key=lambda position: _called(history[position]))
        self._positions = by_call
        self._operations = [history[position] for position in by_call]
        self._called = [_called(each) for each in self._operations]
        self._returned = [_returned(each) for each in self._operations]
        self._revisions = [_seen_revision(each) for each in self._operations]
        self._must = sum(1 << index for index, each in enumerate(self._operations) if not isinstance(each.outcome, Unknown))
        self._start = start
        self._steps_left = steps_max

    def run(self) -> Verdict:
        visited: set[tuple[int, bytes]] = set()
        best: tuple[int, ...] = ()
        order: list[int] = []
        stack = [(0, self._start, iter(self._candidates(0, self._start)))]
        while stack:
            done, state, candidates = stack[-1]
            if not self._must & ~done:
                return Verdict(order=tuple(self._positions[index] for index in order))
            if len(order) > len(best):
                best = tuple(order)
            for index in candidates:
                self._steps_left -= 1
                if self._steps_left < 0:
                    raise UndecidedError(f"no order was found in time; the longest had {len(best)} of {len(self._operations)} calls")
                after = self._do(index, state)
                if after is None:
                    continue
                node = (done | 1 << index, after.digest)
                if node not in visited:
                    visited.add(node)
                    order.append(index)
                    stack.append((node[0], after, iter(self._candidates(node[0], after))))
                    break
            else:
                stack.pop()
                if order:
                    order.pop()
        return Verdict(problems=(self._explain(best),), order=tuple(self._positions[index] for index in best))

    def _candidates(self, done: int, state: kv_model.State) -> list[int]:
        """The calls that may come next: those that began before any other open one ended. Certain ones first."""
        certain: list[int] = []
        unknown: list[int] = []
        first_end = float("inf")
        first_open = (~done & (done + 1)).bit_length() - 1
        for index in range(first_open, len(self._operations)):
            if done >> index & 1:
                continue
            if self._called[index] > first_end:
                break
            first_end = min(first_end, self._returned[index])
            (certain if self._must >> index & 1 else unknown).append(index)
        if any(0 < self._revisions[index] < state.revision for index in certain):
            return []  # its answer tells of a revision that has passed
        return certain + unknown

    def _do(self, index: int, state: kv_model.State) -> kv_model.State | None:
        """The state after the call, None if it cannot come here."""
        operation = self._operations[index]
        applied = kv_model.apply(state, operation.request)
        if isinstance(operation.outcome, Unknown):
            return applied.state if applied.state is not state else None  # without an effect it may as well not have been
        return applied.state if agrees(operation.outcome, applied.answer) else None

    def _explain(self, best: tuple[int, ...]) -> str:
        state = self._start
        done = 0
        for index in best:
            state = kv_model.apply(state, self._operations[index].request).state
            done |= 1 << index
        stuck = [
            f"  {self._operations[index]}\n    the model answers {kv_model.apply(state, self._operations[index].request).answer}"
            for index in self._open(done)
        ]
        return (
            f"no order explains the answers. After {len(best)} of {len(self._operations)} calls, at revision {state.revision}, "
            "none of these can come next:\n" + "\n".join(stuck)
        )

    def _open(self, done: int) -> list[int]:
        return [index for index in self._candidates(done, kv_model.State(revision=0)) if self._must >> index & 1]


# -- with the log as witness


def requests_of(entries: Iterable[Entry], *, value_of: Callable[[bytes], bytes] = lambda value: value) -> list[kv_model.Request]:
    """What committed entries of the log do, in their order. ``value_of`` maps stored values to those that clients recorded."""
    requests: list[kv_model.Request] = []
    for entry in entries:
        if entry.type is EntryType.NORMAL and entry.data:
            _, request = log_request.decode(entry.data)
            requests.append(with_values(request, value_of))
    return requests


def with_values(request: kv_model.Request, value_of: Callable[[bytes], bytes]) -> kv_model.Request:
    """The request with every put value replaced."""
    match request:
        case api.PutRequest():
            return api.PutRequest(
                key=request.key,
                value=value_of(request.value),
                lease=request.lease,
                prev_kv=request.prev_kv,
                ignore_value=request.ignore_value,
                ignore_lease=request.ignore_lease,
            )
        case api.TxnRequest():
            success, failure = (tuple(with_values(each, value_of) for each in branch) for branch in (request.success, request.failure))
            return api.TxnRequest(compare=request.compare, success=success, failure=failure)  # type: ignore[arg-type]
        case _:
            return request


def check_against_log(
    history: Sequence[Operation],
    log: Sequence[kv_model.Request | kv_model.OtherRequest],
    *,
    is_ours: Callable[[bytes], bool] = lambda key: True,
    start: kv_model.State | None = None,
) -> Verdict:
    """Check that ``log`` explains ``history``.

    Args:
        log: what was committed, in its order.
        is_ours: the keys that only the recorded clients write: every change of one must be the effect of a call, once.
    """
    return _Witness(history, log, is_ours, start or kv_model.State()).run()


Effect = tuple[tuple[api.EventType, bytes, bytes], ...]


def _effect(events: Sequence[api.Event]) -> Effect:
    """What a request changed, without the revisions: two requests with one effect are alike to everybody."""
    return tuple((event.type, event.kv.key, event.kv.value) for event in events)


class _Witness:
    """Position p is the moment after p entries of the log. A write's moment is its entry; a read's is the earliest position that
    explains its answer and is not before what returned before it was called. (Earliest is best: positions only push later calls on.)"""

    def __init__(
        self,
        history: Sequence[Operation],
        log: Sequence[kv_model.Request | kv_model.OtherRequest],
        is_ours: Callable[[bytes], bool],
        start: kv_model.State,
    ) -> None:
        self._history = sorted(history, key=lambda operation: operation.called)
        self._is_ours = is_ours
        self._requests = [kv_model.OtherRequest(), *log]
        self._states = [start]
        self._events: list[tuple[api.Event, ...]] = [()]
        self._first_of: dict[int, int] = {start.revision: 0}
        """revision → the first position that has it"""
        self._changes: dict[bytes, list[int]] = defaultdict(list)
        """key → the positions at which it changed"""
        for position, request in enumerate(log, 1):
            applied = kv_model.apply(self._states[-1], request)
            self._states.append(applied.state)
            self._events.append(applied.events)
            self._first_of.setdefault(applied.state.revision, position)
            for event in applied.events:
                self._changes[event.kv.key].append(position)
        self._claimed: dict[int, Operation] = {}
        self._problems: list[str] = []
        self._bounds_of_unknown: list[tuple[Operation, int]] = []

    def run(self) -> Verdict:
        ended: list[tuple[float, int]] = []
        bound = 0
        for operation in self._history:
            while ended and ended[0][0] < operation.called:
                bound = max(bound, heapq.heappop(ended)[1])
            if isinstance(operation.outcome, Unknown):
                self._bounds_of_unknown.append((operation, bound))
                continue
            position = self._place(operation, 0 if operation.is_serializable_read else bound)
            if position is not None:
                heapq.heappush(ended, (operation.returned, position))
        self._match_the_rest()
        return Verdict(problems=tuple(self._problems))

    def _place(self, operation: Operation, bound: int) -> int | None:
        if operation.is_serializable_read or not self._changed_something(operation):
            return self._place_reading(operation, bound)
        return self._place_write(operation, bound)

    def _changed_something(self, operation: Operation) -> bool:
        """Whether an answered call must have an entry of its own. Told by its kind, and for a transaction and a deletion by its answer."""
        if isinstance(operation.outcome, Refused):
            return False
        assert isinstance(operation.outcome, Answered)
        response = operation.outcome.response
        match operation.request:
            case api.RangeRequest():
                return False
            case api.DeleteRangeRequest():
                return isinstance(response, api.DeleteRangeResponse) and response.deleted > 0
            case api.TxnRequest():
                return isinstance(response, api.TxnResponse) and _writes(response)
            case log_request.LeaseRevokeRequest():
                return False  # with keys or without: only the state tells
        return True

    def _place_write(self, operation: Operation, bound: int) -> int | None:
        revision = _seen_revision(operation)
        if not revision or not isinstance(operation.request, api.PutRequest | api.DeleteRangeRequest | api.TxnRequest):
            return self._place_unnumbered_write(operation, bound)
        position = self._first_of.get(revision, 0)
        if not position or not self._events[position]:
            return self._problem(operation, f"is acknowledged at revision {revision}, which the log does not have")
        if position in self._claimed:
            return self._problem(operation, f"and {self._claimed[position]} are acknowledged at one revision")
        if not self._is_explained(operation, position):
            return self._problem(operation, f"is not what the log has at revision {revision}: {self._requests[position]}")
        if position <= bound:
            return self._problem(operation, f"stands in the log before what returned before it was called (position {position} ≤ {bound})")
        self._claimed[position] = operation
        return position

    def _place_unnumbered_write(self, operation: Operation, bound: int) -> int | None:
        for position in range(bound + 1, len(self._states)):
            if position not in self._claimed and self._is_explained(operation, position):
                self._claimed[position] = operation
                return position
        return self._problem(operation, f"is acknowledged, but no entry after position {bound} is its")

    def _is_explained(self, operation: Operation, position: int) -> bool:
        """Whether the entry at ``position`` can be this call: done on the state before, it has the same effect and this answer."""
        before, after = self._states[position - 1], self._states[position]
        applied = kv_model.apply(before, operation.request)
        if not agrees(operation.outcome, applied.answer):
            return False
        if applied.events or self._events[position]:
            return _effect(applied.events) == _effect(self._events[position])
        return applied.state.digest == after.digest and applied.state is not before

    def _place_reading(self, operation: Operation, bound: int) -> int | None:
        revision = _seen_revision(operation)
        if revision:
            return self._place_at_revision(operation, revision, bound)
        for position in self._positions_to_try(operation, bound):
            if agrees(operation.outcome, kv_model.apply(self._states[position], operation.request).answer):
                return position
        return self._problem(operation, f"no state from position {bound} on explains the answer")

    def _place_at_revision(self, operation: Operation, revision: int, bound: int) -> int | None:
        first = self._first_of.get(revision)
        if first is None:
            return self._problem(operation, f"tells of revision {revision}, which the log does not have")
        last = self._first_of.get(revision + 1, len(self._states)) - 1
        if last < bound:
            return self._problem(
                operation, f"is stale: it tells of revision {revision}, and {self._states[bound].revision} was seen before it was called"
            )
        predicted = None
        for position in range(max(first, bound), last + 1):
            if position > max(first, bound) and self._states[position] is self._states[position - 1]:
                continue
            applied = kv_model.apply(self._states[position], operation.request)
            predicted = applied.answer
            if agrees(operation.outcome, predicted):
                return position
        # A revocation of a lease, whose entry made this very revision.
        if first > bound and isinstance(operation.request, log_request.LeaseRevokeRequest) and self._is_explained(operation, first):
            self._claimed[first] = operation
            return first
        return self._problem(operation, f"at revision {revision} the log says {predicted}")

    def _positions_to_try(self, operation: Operation, bound: int) -> Iterable[int]:
        """From ``bound`` on, those where the answer may differ from that at the one before."""
        request = operation.request
        is_answered = isinstance(operation.outcome, Answered)
        if is_answered and isinstance(request, api.RangeRequest) and not request.range_end and not request.revision:
            changes = self._changes.get(request.key, [])
            return [bound, *changes[bisect.bisect_right(changes, bound) :]]
        return range(bound, len(self._states))

    def _match_the_rest(self) -> None:
        """Every change of our keys that no answer claimed must be the effect of a call without one, and of each at most once: a
        matching in a bipartite graph (Kuhn's algorithm; the groups are small, since puts have values of their own)."""
        candidates: dict[int, list[int]] = {}
        for position in range(1, len(self._states)):
            events = self._events[position]
            if position in self._claimed or not any(self._is_ours(event.kv.key) for event in events):
                continue
            if isinstance(self._requests[position], log_request.LeaseRevokeRequest):
                continue  # the store's own, of a lease that ran out
            candidates[position] = [
                index
                for index, (operation, bound) in enumerate(self._bounds_of_unknown)
                if position > bound and self._could_touch(operation, events) and self._is_explained(operation, position)
            ]
        taken: dict[int, int] = {}
        for position in candidates:
            if not _augment(position, candidates, taken, set()):
                self._problems.append(
                    f"the log changes {[(event.kv.key, event.kv.value) for event in self._events[position]]} at revision "
                    f"{self._states[position].revision}: nobody asked for it, or once less often than it was done"
                )

    def _could_touch(self, operation: Operation, events: Sequence[api.Event]) -> bool:
        """A cheap test before the model is asked."""
        request = operation.request
        if isinstance(request, api.PutRequest):
            return len(events) == 1 and events[0].kv.key == request.key
        if isinstance(request, api.DeleteRangeRequest):
            return kv_model.in_range(events[0].kv.key, request.key, request.range_end)
        return True

    def _problem(self, operation: Operation, text: str) -> int | None:
        """Note what is wrong; the call has no position then."""
        self._problems.append(f"{operation}: {text}")
        return None


def _writes(response: api.TxnResponse) -> bool:
    for each in response.responses:
        match each:
            case api.PutResponse():
                return True
            case api.DeleteRangeResponse():
                if each.deleted:
                    return True
            case api.TxnResponse():
                if _writes(each):
                    return True
    return False


def _augment(position: int, candidates: dict[int, list[int]], taken: dict[int, int], tried: set[int]) -> bool:
    for index in candidates[position]:
        if index in tried:
            continue
        tried.add(index)
        holder = taken.get(index)
        if holder is None or _augment(holder, candidates, taken, tried):
            taken[index] = position
            return True
    return False
