"""Metrics as values: families with their samples, and Prometheus' text of them. Names and help texts are etcd's where etcd has them."""

from __future__ import annotations

import enum
import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

DISK_SECONDS_BOUNDS: Final = tuple(0.001 * 2**power for power in range(14))
"""Upper bounds of etcd's histograms of disk times: 1 ms to 8.2 s."""

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Histogram:
    """``counts[i]`` observations were ≤ ``bounds[i]`` and above the bound before; the last count is of those above all."""

    __slots__ = ("bounds", "count", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...] = DISK_SECONDS_BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.count = 0
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.count += 1
        self.sum += value

    def cumulative(self) -> list[tuple[float, int]]:
        """(bound, observations ≤ bound), as Prometheus has them; the last bound is infinity."""
        total, found = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found


class Kind(enum.Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its samples: labels (name, value) …, and a number or a Histogram."""

    kind: Kind
    name: str
    help: str
    samples: tuple[tuple[Labels, int | float | Histogram], ...]


def single(kind: Kind, name: str, help_text: str, value: int | float | Histogram) -> Family:
    """A family without labels."""
    return Family(kind, name, help_text, (((), value),))


def text(families: Iterable[Family]) -> str:
    """What has no sample yet is named all the same, so that a scrape tells that it is there."""
    lines: list[str] = []
    for family in families:
        name = family.name
        lines.append(f"# HELP {name} {family.help}")
        lines.append(f"# TYPE {name} {family.kind.value}")
        for labels, value in family.samples:
            inner = ",".join(f'{label}="{_escaped(content)}"' for label, content in labels)
            braces = f"{{{inner}}}" if inner else ""
            if isinstance(value, Histogram):
                comma = "," if inner else ""
                lines += (f'{name}_bucket{{{inner}{comma}le="{_number(bound)}"}} {upto}' for bound, upto in value.cumulative())
                lines += (f"{name}_sum{braces} {_number(value.sum)}", f"{name}_count{braces} {value.count}")
            else:
                lines.append(f"{name}{braces} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
