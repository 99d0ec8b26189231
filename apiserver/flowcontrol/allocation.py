"""How many seats each priority level has (KEP-1040, "Dispatching").

nominal   the level's share of all seats
lower     what it keeps in any case: nominal without what it lends
upper     nominal and what it may borrow
current   between the two, set every ``ADJUSTMENT_SECONDS`` by how many seats each level has lately had use for
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: between two adjustments
ADJUSTMENT_SECONDS = 10.0
#: how much of the smoothed demand stays at an adjustment: half is forgotten in five minutes
SMOOTHING = 0.977
#: steps of the search for a fair allocation; each halves the error
_SEARCH_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """A level's configuration. ``borrowing_percent`` None: no limit but all that others lend."""

    shares: int
    lendable_percent: int = 0
    borrowing_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    nominal: int
    lower: int
    upper: int


def limits(levels: Mapping[str, Shares], seats: int) -> dict[str, Limits]:
    """Of ``seats`` of the whole server. Nominal limits are rounded up, so that each level with a share has a seat."""
    total = sum(level.shares for level in levels.values())
    nominal = {name: math.ceil(seats * level.shares / total) if total else 0 for name, level in levels.items()}
    everything = sum(nominal.values())
    out = {}
    for name, level in levels.items():
        lends = _rounded(nominal[name] * level.lendable_percent / 100)
        upper = everything
        if level.borrowing_percent is not None:
            upper = min(everything, nominal[name] + _rounded(nominal[name] * level.borrowing_percent / 100))
        out[name] = Limits(nominal=nominal[name], lower=nominal[name] - lends, upper=upper)
    return out


def _rounded(value: float) -> int:
    """Halves go up, as Go's math.Round has them."""
    return math.floor(value + 0.5)


class Demand:
    """How many seats a level has had use for: the most since the last adjustment, and a smoothed figure."""

    def __init__(self) -> None:
        self.high_watermark = 0
        self.smoothed = 0.0
        self._sum = 0.0
        self._squares = 0.0
        #: since the last note
        self.seats = 0
        self._since: float | None = None
        self._began: float | None = None

    def set(self, seats: int, now: float) -> None:
        if seats > self.high_watermark:
            self.high_watermark = seats
        self._advance(now)
        self.seats = seats

    def _advance(self, now: float) -> None:
        if self._since is None:
            self._since = self._began = now
            return
        elapsed = now - self._since
        self._sum += self.seats * elapsed
        self._squares += self.seats * self.seats * elapsed
        self._since = now

    def adjust(self, now: float) -> int:
        """End a period; the most seats that were asked for in it. The envelope (mean and one deviation) is taken up at once where it is
        more than the smoothed figure, which then comes down slowly."""
        self._advance(now)
        assert self._began is not None
        elapsed = now - self._began
        mean = self._sum / elapsed if elapsed > 0 else float(self.seats)
        variance = max(0.0, self._squares / elapsed - mean * mean) if elapsed > 0 else 0.0
        envelope = mean + math.sqrt(variance)
        self.smoothed = max(envelope, SMOOTHING * self.smoothed + (1 - SMOOTHING) * envelope)
        most, self.high_watermark = self.high_watermark, self.seats
        self._sum = self._squares = 0.0
        self._began = now
        return most


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a level takes part in the allocation with: at least ``lower``, at most ``upper``, ``target`` where all is well."""

    lower: float
    upper: float
    target: float


def allocate(total: float, claims: Sequence[Claim]) -> list[float]:
    """Shares of ``total`` in proportion to the targets, within each one's bounds: the one factor is searched at which they add up."""
    targets = [max(claim.target, 1e-3) for claim in claims]

    def at(factor: float) -> list[float]:
        return [min(claim.upper, max(claim.lower, factor * target)) for claim, target in zip(claims, targets, strict=True)]

    low, high = 0.0, max((claim.upper / target for claim, target in zip(claims, targets, strict=True)), default=0.0)
    for _ in range(_SEARCH_STEPS):
        middle = (low + high) / 2
        if sum(at(middle)) < total:
            low = middle
        else:
            high = middle
    return at(high)


def current_limits(found: Mapping[str, Limits], demands: Mapping[str, tuple[int, float]], exempt_seats: int) -> dict[str, int]:
    """New current limits from (most, smoothed) demands; ``exempt_seats``: what requests that have no limit took. Levels that were quiet
    lend, down to their lower limit; where all are busy each has its nominal one."""
    everything = sum(level.nominal for level in found.values())
    left = everything - exempt_seats
    names = sorted(found)
    wanted = {name: max(found[name].lower, min(found[name].nominal, demands[name][0])) for name in names}
    lower = sum(found[name].lower for name in names)
    if left <= lower:
        return {name: found[name].lower for name in names}
    wanted_sum = sum(wanted.values())
    if left <= wanted_sum:
        part = (left - lower) / (wanted_sum - lower)
        return {name: found[name].lower + _rounded((wanted[name] - found[name].lower) * part) for name in names}
    claims = [Claim(lower=wanted[n], upper=found[n].upper, target=max(wanted[n], demands[n][1])) for n in names]
    return {name: _rounded(seats) for name, seats in zip(names, allocate(left, claims), strict=True)}
