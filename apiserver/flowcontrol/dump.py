"""The tables of ``/debug/api_priority_and_fairness/``: comma and tab between columns, as kube-apiserver writes them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apiserver.flowcontrol.queue_set import Ticket

_LEVELS = ("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests", "DispatchedRequests")
_LEVELS_REFUSED = ("RejectedRequests", "TimedoutRequests", "CancelledRequests")
_QUEUES = ("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR", "InitialSeatsSum")
_QUEUES_SUMS = ("MaxSeatsSum", "TotalWorkSum")
_REQUESTS = ("PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime")
_REQUESTS_WORK = ("InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime")
_DETAILS = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")


def _table(rows: Iterable[Sequence[object]]) -> str:
    texts = [[str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in texts) + 2 for n in range(len(texts[0]))]
    return "".join("".join(f"{cell},".ljust(w) for cell, w in zip(row[:-1], widths, strict=False)) + row[-1] + "\n" for row in texts)


def priority_levels(dispatcher: Any) -> str:
    rows: list[Sequence[object]] = [_LEVELS + _LEVELS_REFUSED]
    for name, level in sorted(dispatcher.levels().items()):
        found, refused = level.queue_set, dispatcher.metrics.rejections(name)
        active = sum(1 for queue in found.queues if queue.waiting)
        at_once = refused.get("concurrency-limit", 0) + refused.get("queue-full", 0)
        ended = (at_once, refused.get("time-out", 0), refused.get("cancelled", 0))
        rows.append(
            (name, active, found.is_idle, False, found.waiting, found.running, dispatcher.metrics.dispatched(name) + found.running, *ended)
        )
    return _table(rows)


def queues(levels: Mapping[str, Any]) -> str:
    rows: list[Sequence[object]] = [_QUEUES + _QUEUES_SUMS]
    for name, level in sorted(levels.items()):
        for queue in level.queue_set.queues:
            seats = queue.waiting_seats
            row = (name, queue.index, len(queue.waiting), queue.running, queue.running_seats, f"{queue.start:.8f}ss")
            rows.append((*row, seats, seats, f"{seats * 0.003:.8f}ss"))
    return _table(rows)


def requests(levels: Mapping[str, Any], monotonic_now: float, wall_now: float, *, details: bool) -> str:
    """Times of tickets are of the monotonic clock."""
    rows: list[Sequence[object]] = [_REQUESTS + _REQUESTS_WORK + (_DETAILS if details else ())]

    def row(ticket: Ticket, index: int) -> Sequence[object]:
        def time_of(at: float) -> str:
            if not at:
                return "0001-01-01T00:00:00Z"
            return datetime.datetime.fromtimestamp(wall_now - monotonic_now + at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

        flow, queue, context = ticket.flow, ticket.queue, ticket.request
        start = (flow.level.config.name, flow.schema.name, -1 if queue is None else queue.index, index, flow.distinguisher)
        out: tuple[object, ...] = (*start, time_of(ticket.arrived_at), ticket.seats, 0, "0s", time_of(ticket.began_at))
        if details:
            info = context.info
            version = f"{info.group}/{info.version}" if info.group else info.version
            out += (context.user.name, info.verb, info.path, info.namespace, info.name, version, info.resource, info.subresource)
        return out

    for _, level in sorted(levels.items()):
        for queue in level.queue_set.queues:
            rows += [row(ticket, index) for index, ticket in enumerate(queue.waiting)]
        rows += [row(ticket, -1) for ticket in sorted(level.queue_set.running_tickets, key=lambda t: t.began_at)]
    return _table(rows)
