"""How many seats each priority level has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.flowcontrol import bootstrap
from apiserver.flowcontrol.allocation import Claim, Demand, Limits, Shares, allocate, current_limits, limits
from apiserver.flowcontrol.configuration import level


def test_limits_of_the_default_levels_are_those_of_a_real_server() -> None:
    """``apiserver_flowcontrol_{nominal,lower}_limit_seats`` of a kube-apiserver with 600 seats."""
    levels = [level(obj) for obj in bootstrap.mandatory_levels() + bootstrap.suggested_levels()]
    found = limits({each.name: each.shares for each in levels}, 600)
    assert {name: (each.nominal, each.lower) for name, each in found.items()} == {
        "exempt": (0, 0),
        "catch-all": (13, 13),
        "system": (74, 50),
        "node-high": (98, 73),
        "leader-election": (25, 25),
        "workload-high": (98, 49),
        "workload-low": (245, 24),
        "global-default": (49, 24),
    }
    assert {each.upper for each in found.values()} == {602}


def test_borrowing_is_limited_where_it_is_said() -> None:
    found = limits({"a": Shares(shares=1, borrowing_percent=50), "b": Shares(shares=1, lendable_percent=100)}, 20)
    assert found == {"a": Limits(nominal=10, lower=10, upper=15), "b": Limits(nominal=10, lower=0, upper=20)}


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.floats(0, 200)).map(
            lambda t: Claim(lower=t[0], upper=t[0] + t[1], target=t[2])
        ),
        min_size=1,
        max_size=8,
    ),
    st.floats(0, 1),
)
def test_an_allocation_is_within_bounds_and_adds_up(claims: list[Claim], where: float) -> None:
    low, high = sum(c.lower for c in claims), sum(c.upper for c in claims)
    total = low + (high - low) * where
    found = allocate(total, claims)
    assert all(claim.lower <= seats <= claim.upper for claim, seats in zip(claims, found, strict=True))
    assert sum(found) == pytest.approx(total, abs=1e-6)


def test_a_quiet_level_lends_to_a_busy_one_and_gets_its_seats_back() -> None:
    found = limits({"busy": Shares(shares=50), "quiet": Shares(shares=50, lendable_percent=60)}, 100)
    lent = current_limits(found, {"busy": (200, 200.0), "quiet": (1, 1.0)}, exempt_seats=0)
    assert lent == {"busy": 80, "quiet": 20}
    back = current_limits(found, {"busy": (200, 200.0), "quiet": (200, 200.0)}, exempt_seats=0)
    assert back == {"busy": 50, "quiet": 50}


def test_demand_rises_at_once_and_falls_slowly() -> None:
    demand = Demand()
    demand.set(0, 0.0)
    demand.set(10, 0.0)
    assert demand.adjust(10.0) == 10 and demand.smoothed == 10.0
    demand.set(0, 10.0)
    assert demand.adjust(20.0) == 10, "the most of a period includes what it began with"
    assert 9.5 < demand.smoothed < 10
    for n in range(30):
        demand.adjust(30.0 + 10 * n)
    assert 4.5 < demand.smoothed < 5.5, "half is forgotten in five minutes"
