"""``apiserver_flowcontrol_…``: what is counted of each FlowSchema at its level, under kube-apiserver's names."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any

#: upper bounds, seconds
_BOUNDS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
_PREFIX = "apiserver_flowcontrol_"


class Durations:
    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds

    def sample(self) -> tuple[Sequence[tuple[float, int]], float, int]:
        return list(zip((*_BOUNDS, inf), accumulate(self.counts), strict=True)), self.total, sum(self.counts)


class FlowMetrics:
    """Names of levels and schemas are an administrator's: there are as many series as configured objects, and those that were."""

    def __init__(self) -> None:
        self._rejected: Counter[tuple[str, str, str]] = Counter()
        self._waits: dict[tuple[str, str, bool], Durations] = {}
        self._executions: dict[tuple[str, str, bool], Durations] = {}

    def rejected(self, level: str, schema: str, reason: str) -> None:
        self._rejected[(level, schema, reason)] += 1

    def waited(self, level: str, schema: str, seconds: float, *, executed: bool) -> None:
        self._waits.setdefault((level, schema, executed), Durations()).add(seconds)

    def executions(self, level: str, schema: str, *, watch: bool) -> Durations:
        """To be added to by whoever ends a request."""
        return self._executions.setdefault((level, schema, watch), Durations())

    def dispatched(self, level: str) -> int:
        return sum(sum(found.counts) for (name, _, _), found in self._executions.items() if name == level)

    def rejections(self, level: str) -> Mapping[str, int]:
        """Of a level, by reason."""
        out: Counter[str] = Counter()
        for (name, _, reason), count in self._rejected.items():
            if name == level:
                out[reason] += count
        return out

    def expose(self, levels: Mapping[str, Any], out: Any) -> None:
        """``levels``: the dispatcher's; ``out``: a ``metrics.Exposition``."""
        out.counter(
            f"{_PREFIX}rejected_requests_total",
            "Number of requests rejected by API Priority and Fairness subsystem",
            (
                ((("flow_schema", schema), ("priority_level", level), ("reason", reason)), count)
                for (level, schema, reason), count in sorted(self._rejected.items())
            ),
        )
        dispatched: Counter[tuple[str, str]] = Counter()
        for (level, schema, _), found in self._executions.items():
            if sum(found.counts):
                dispatched[(level, schema)] += sum(found.counts)
        out.counter(
            f"{_PREFIX}dispatched_requests_total",
            "Number of requests executed by API Priority and Fairness subsystem",
            (((("flow_schema", schema), ("priority_level", level)), count) for (level, schema), count in sorted(dispatched.items())),
        )
        self._expose_current(levels, out)
        self._expose_limits(levels, out)
        out.histogram(
            f"{_PREFIX}request_wait_duration_seconds",
            "Length of time a request spent waiting in its queue",
            (
                ((("execute", str(executed).lower()), ("flow_schema", schema), ("priority_level", level)), *found.sample())
                for (level, schema, executed), found in sorted(self._waits.items())
            ),
        )
        out.histogram(
            f"{_PREFIX}request_execution_seconds",
            "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and "
            "Fairness subsystem",
            (
                ((("flow_schema", schema), ("priority_level", level), ("type", "watch" if watch else "regular")), *found.sample())
                for (level, schema, watch), found in sorted(self._executions.items())
                if sum(found.counts)
            ),
        )

    def _expose_current(self, levels: Mapping[str, Any], out: Any) -> None:
        inqueue: Counter[tuple[str, str]] = Counter()
        inqueue_seats: Counter[tuple[str, str]] = Counter()
        running: Counter[tuple[str, str]] = Counter()
        running_seats: Counter[tuple[str, str]] = Counter()
        for name, level in levels.items():
            for ticket in level.queue_set.waiting_tickets():
                inqueue[(name, ticket.flow.schema.name)] += 1
                inqueue_seats[(name, ticket.flow.schema.name)] += ticket.seats
            for ticket in level.queue_set.running_tickets:
                running[(name, ticket.flow.schema.name)] += 1
                running_seats[(name, ticket.flow.schema.name)] += ticket.seats
        everything = sorted({(level, schema) for level, schema, _ in self._executions} | set(inqueue) | set(running))
        for name, text, counts in (
            ("current_inqueue_requests", "Number of requests currently pending in queues", inqueue),
            ("current_inqueue_seats", "Number of seats currently pending in queues", inqueue_seats),
            ("current_executing_requests", "Number of requests in initial (for a WATCH) or any execution stage", running),
            ("current_executing_seats", "Number of seats occupied by the currently executing requests", running_seats),
        ):
            out.gauge(
                _PREFIX + name,
                f"{text} of the API Priority and Fairness subsystem",
                (((("flow_schema", schema), ("priority_level", level)), counts[(level, schema)]) for level, schema in everything),
            )

    def _expose_limits(self, levels: Mapping[str, Any], out: Any) -> None:
        families: tuple[tuple[str, str, Callable[[Any], float]], ...] = (
            ("nominal_limit_seats", "Nominal number of execution seats configured for each priority level", lambda x: x.limits.nominal),
            ("lower_limit_seats", "Configured lower bound on number of execution seats", lambda x: x.limits.lower),
            ("upper_limit_seats", "Configured upper bound on number of execution seats", lambda x: x.limits.upper),
            ("current_limit_seats", "Current derived number of execution seats", lambda x: x.queue_set.seats_max),
            (
                "demand_seats_high_watermark",
                "High watermark, over this adjustment period, of the seats that could be used",
                lambda x: x.demand.high_watermark,
            ),
            ("demand_seats_smoothed", "Smoothed seat demands", lambda x: x.demand.smoothed),
        )
        for name, text, value in families:
            out.gauge(_PREFIX + name, text, (((("priority_level", level),), value(found)) for level, found in sorted(levels.items())))
