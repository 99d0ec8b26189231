"""Costs, to the unit: what a rule may cost at most, and what it costs.

The estimates of `recorded_costs.json` are those of the real 1.36 server: each rule was taken where it may stand so often in an object that
it just fits the limit, and refused one time more. Of the costs below, those of 25 rules were found the same way, by lists on which the
server stops a rule at 1,000,000 (`tests/cel_differential` asks both).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apiserver import cel
from tests.cel_differential import compare

ESTIMATES: dict[str, int] = json.loads((Path(__file__).parent / "recorded_costs.json").read_text())
SELF = cel.ObjectType(
    "Spec",
    {
        "li": cel.list_of(cel.INT),
        "ls": cel.list_of(cel.STRING),
        "k": cel.STRING,
        "o": cel.ObjectType("Inner", {"n": cel.INT, "s": cel.STRING}),
        "b": cel.BOOL,
    },
)


@pytest.mark.parametrize("start", range(0, len(ESTIMATES), 200))
def test_estimates_are_those_of_the_real_server(start: int) -> None:
    asked = list(ESTIMATES.items())[start : start + 200]
    wrong = {rule: (cost, ours) for rule, cost in asked if (ours := compare.estimate(rule)) != cost}
    assert not wrong


# the cost on a list of one element, and of two
COSTS = [
    ("self.li.all(x, x >= 0)", 8, 13),
    ("self.li.exists(x, x < 0) == false", 10, 16),
    ("self.li.map(x, x * 2).size() >= 0", 19, 33),
    ("self.li.filter(x, x > 0).size() >= 0", 7, 9),
    ("self.li.exists_one(x, x < 0) == false", 7, 9),
    ("self.ls.all(s, s == 'abcdefghijklmnop')", 9, 15),
    ("self.ls.all(s, s.startsWith('a') && s.size() > 1)", 12, 21),
    ("self.ls.all(s, s.matches('^[a-z]+$'))", 11, 19),
    ("self.ls.all(s, s in ['a', 'abcdefghijklmnop'])", 7, 11),
    ("self.ls.all(s, s.contains(self.k) || s != 'x')", 11, 19),
    ("self.li.all(x, self.o.n == 3 ? x >= 0 : x > 5)", 12, 21),
    ("self.li.all(x, has(self.o.n) && has(self.o.s))", 10, 17),
    ("self.li.all(i, x, i >= 0 && x >= 0)", 10, 17),
    ("self.ls.all(s, s.replace('a','b').lowerAscii() != '')", 13, 23),
    ("self.li.all(x, [x, 1].size() == 2)", 19, 35),
    ("self.li.all(x, {'a': x}.a == x)", 41, 79),
    ("self.li.all(x, self.li[0] <= x)", 11, 19),
    ("self.li.all(x, self.li[x] >= 0)", 10, 17),
    ("self.li.all(x, string(x) != '')", 8, 13),
    ("self.li.all(x, duration('1s') < duration('2s'))", 7, 11),
    ("self.li.all(x, self.?o.?n.orValue(2) == 3)", 10, 17),
    ("self.li.all(x, optional.of(x).hasValue())", 9, 15),
    ("self.li.all(x, quantity('1').isGreaterThan(quantity('0')))", 9, 15),
    ("self.li.transformList(i, x, i + x).size() > 0", 20, 35),
    ("self.li.all(x, !(x < 0) && -x <= 0)", 12, 21),
    ("self.li.all(x, type(x) == int)", 9, 15),
    ("self.li.all(x, 'a%d'.format([x]).size() > 0)", 20, 37),
    ("self.ls.all(s, s.split('c').join('-').size() > 0)", 17, 31),
    ("self.li.all(x, (self.b ? self.o.n : x) >= 0)", 11, 19),
    ("self.ls.all(s, s.find('[a-c]+') != '')", 11, 19),
    ("self.li.all(x, dyn(x) == dyn(x))", 11, 19),
    ("self.li.all(x, ip('127.0.0.1').isLoopback())", 8, 13),
    ("self.li.all(x, sets.contains([x, 2], [x]))", 31, 59),
    ("self.li.all(x, [3, x].sort()[0] <= 3 )", 39, 75),
]


@pytest.mark.parametrize(("source", "one", "two"), COSTS)
def test_costs_of_lists(source: str, one: int, two: int) -> None:
    program = cel.Environment({"self": SELF}).compile(source)
    spent = []
    for count in (1, 2):
        values: dict[str, Any] = {"k": "mnop", "o": {"n": 3, "s": "text"}, "b": True, "li": [0] * count, "ls": ["abcdefghijklmnop"] * count}
        budget = cel.Budget()
        program.evaluate({"self": values}, budget)
        spent.append(budget.used)
    assert spent == [one, two]


@pytest.mark.parametrize(
    ("source", "cost"),
    [
        ("true || self.b", 0),  # what is not looked at costs nothing
        ("self.b || self.o.n == 3", 2),
        ("self.b && self.o.n == 3", 6),
        ("self.b ? self.o.n : self.li[0]", 4),  # a branch that is a variable costs its steps alone
        ("has(self.o)", 1),
        ("has(self.o.n)", 2),
        ("[1, 2, 3].size() == 3", 2),  # constants are made once
        ("[self.o.n, 2].size() == 2", 15),
        ("{'a': self.o.n}.a == 3", 36),
        ("duration('1h') == duration('60m')", 1),
        ("self.k.matches('[a-z]+')", 4),
        ("self.k + self.k == 'mnopmnop'", 6),
    ],
)
def test_costs_of_parts(source: str, cost: int) -> None:
    program = cel.Environment({"self": SELF}).compile(source)
    budget = cel.Budget()
    program.evaluate({"self": {"k": "mnop", "o": {"n": 3}, "b": True, "li": [1]}}, budget)
    assert budget.used == cost
