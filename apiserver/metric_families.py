"""Families of metrics for those who count: plain numbers by the values of labels, turned into text only when somebody asks.

Example: ``attempts = Counters("authentication_attempts", "Counter of authenticated attempts.", "result")``, ``attempts.add("success")``,
and later ``attempts.expose(out)`` for an ``Exposition``. Values of labels must be few: whoever counts sees to it (names that an
administrator configures, results out of a list; never what a client sends).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apiserver.metrics import Exposition

#: upper bounds of Prometheus' client for seconds
DEFAULT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**power for power in range(count))


class Counters:
    """Without labels there is one number from the beginning on."""

    def __init__(self, name: str, help_text: str, *labels: str) -> None:
        self._name, self._help, self._labels = name, help_text, labels
        self._numbers: dict[tuple[str, ...], float] = {} if labels else {(): 0}

    def add(self, *values: str, by: float = 1) -> None:
        assert len(values) == len(self._labels), (self._name, values)
        self._numbers[values] = self._numbers.get(values, 0) + by

    def replace(self, numbers: dict[tuple[str, ...], float]) -> None:
        """All of them at once, where they are kept elsewhere."""
        self._numbers = numbers

    def expose(self, out: Exposition) -> None:
        if self._numbers:
            samples = ((tuple(zip(self._labels, values, strict=True)), number) for values, number in sorted(self._numbers.items()))
            out.counter(self._name, self._help, samples)


class Gauges:
    def __init__(self, name: str, help_text: str, *labels: str) -> None:
        self._name, self._help, self._labels = name, help_text, labels
        self._numbers: dict[tuple[str, ...], float] = {}

    def set(self, number: float, *values: str) -> None:
        assert len(values) == len(self._labels), (self._name, values)
        self._numbers[values] = number

    def replace(self, numbers: dict[tuple[str, ...], float]) -> None:
        """All of them at once."""
        self._numbers = numbers

    def expose(self, out: Exposition) -> None:
        if self._numbers:
            samples = ((tuple(zip(self._labels, values, strict=True)), number) for values, number in sorted(self._numbers.items()))
            out.gauge(self._name, self._help, samples)


class Series:
    """The observations of one combination of labels."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        # most of what is measured here is quick
        self.counts[0 if value <= self._bounds[0] else bisect_left(self._bounds, value)] += 1
        self.total += value


class Histograms:
    def __init__(self, name: str, help_text: str, *labels: str, bounds: tuple[float, ...] = DEFAULT_BOUNDS) -> None:
        self._name, self._help, self._labels, self._bounds = name, help_text, labels, bounds
        self._series: dict[tuple[str, ...], Series] = {} if labels else {(): Series(bounds)}

    def of(self, *values: str) -> Series:
        """To be kept by those who observe often."""
        found = self._series.get(values)
        if found is None:
            assert len(values) == len(self._labels), (self._name, values)
            found = self._series[values] = Series(self._bounds)
        return found

    def observe(self, value: float, *values: str) -> None:
        self.of(*values).observe(value)

    def numbers(self) -> dict[tuple[str, ...], float]:
        """How many observations of each combination; those that were never observed are left out."""
        return {values: count for values, series in self._series.items() if (count := sum(series.counts))}

    def expose(self, out: Exposition) -> None:
        if not self._series:
            return
        samples = (
            (
                tuple(zip(self._labels, values, strict=True)),
                list(zip((*self._bounds, math.inf), accumulate(series.counts), strict=True)),
                series.total,
                sum(series.counts),
            )
            for values, series in sorted(self._series.items())
            if not values or any(series.counts)
        )
        out.histogram(self._name, self._help, samples)
