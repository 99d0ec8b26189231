"""Whatever is thrown at CEL: programs end in a value or one of two errors, within a bounded time; sources compile or are refused."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver import cel
from tests.cel_differential import expressions, world

_WORDS = [
    "self", "x", "a", "1", "0", "-1", "1u", "1.5", "'a'", "b'a'", "true", "false", "null", "[", "]", "{", "}", "(", ")", ".", ",",
    "?", ":", "!", "-", "+", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in", "has", "all", "exists", "map",
    "filter", "optMap", "size", "matches", '"""', "'", "`", "#", '\\', '\n', "//", "int", "string", "duration", "timestamp",
    "optional", "of", "none", ".?", "[?", "format", "%s", "é", "9999999999999999999", "0x", "1e999", "=",
]  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["i", "s", "n", "k", "v", "li", "lo", "m"]), inner, max_size=4)
    ),
    max_leaves=8,
)
ENVIRONMENT = cel.Environment({"self": cel.DYN, "x": cel.DYN})


@given(st.lists(st.sampled_from(_WORDS), max_size=25), st.sampled_from(["", " "]))
@settings(max_examples=150, deadline=None)
def test_words_in_any_order_compile_or_are_refused(words: list[str], between: str) -> None:
    try:
        ENVIRONMENT.compile(between.join(words))
    except cel.CompileError as error:
        assert str(error)


@given(st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        ENVIRONMENT.compile(text)
    except cel.CompileError as error:
        assert str(error)


@given(st.integers(0, 10**9), st.dictionaries(st.sampled_from(sorted(world.OBJECT)), _JSON))
@settings(max_examples=100, deadline=None)
def test_programs_end_in_a_value_or_an_error_whatever_they_are_given(seed: int, changes: dict[str, Any]) -> None:
    """The values are not of the declared types, which a caller's mistake or an old object may bring about."""
    try:
        program = world.ENVIRONMENT.compile(expressions.generate(random.Random(seed)))
    except cel.CompileError:
        return
    budget = cel.Budget()
    with contextlib.suppress(cel.EvaluationError, cel.CostExceededError):
        program.evaluate({"self": {**world.OBJECT, **changes}}, budget)
    assert budget.used >= 0


@given(st.integers(0, 10**9))
@settings(max_examples=80, deadline=None)
def test_an_evaluation_costs_no_more_than_its_estimate(seed: int) -> None:
    try:
        program = world.ENVIRONMENT.compile(expressions.generate(random.Random(seed)))
    except cel.CompileError:
        return
    budget = cel.Budget()
    try:
        program.evaluate({"self": world.OBJECT}, budget)
    except (cel.EvaluationError, cel.CostExceededError):
        return
    # texts that functions make are bounded by no schema; `startsWith` is estimated by the prefix, but costs by the text
    assert budget.used <= program.estimate(cel.sizes_by_type(world.SELF)).max * 4


BOMBS = [
    "x.all(a, x.all(b, x.all(c, x.all(d, a + b + c + d >= 0))))",
    "x.map(a, x.map(b, x)).size() > 0",
    "optional.of(x)" + ".optMap(l, l + l)" * 7 + ".value().size() > 0",
    "x.all(a, dyn(x) + dyn(x) != [])",
    "x.all(a, x + x != [])",
    "'aaaaaaaaaa'" + ".replace('', 'aaaaaaaaaa')" * 9 + " != ''",
    "x.all(a, " + "'aaaaaaaaaa'" + ".replace('', 'aaaaaaaaaa')" * 5 + " != '')",
    "x.map(a, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaa').join('bbbbbbbbbbbbbbbbbbbbbbb').replace('a', 'cccccccccccccccccccccccccccccc').size() > 0",
    "lists.range(1000000000).size() > 0",
    "x.all(a, lists.range(100000).size() > 0)",
    "x.all(a, x.all(b, x == x && dyn(x) == dyn([x])))",
    "x.all(a, ('a{' + string(a) + '}b{900}').matches('x') || 'a'.matches('a{' + string(a) + '}b{900}') || true)",
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'.matches('^(a+)+$')",
    "x.all(a, '%.1000f%.1000f%.1000f'.format([1.0, 1.0, 1.0]).size() > 0)",
    "x.all(a, x.distinct().sort().reverse().size() > 0)",
    "x.all(a, sets.equivalent(x, x))",
    "x.transformMap(i, v, x).all(k, v, v.all(w, v.exists(u, u == w)))",
]


@pytest.mark.parametrize("source", BOMBS)
def test_bombs_are_put_out(source: str) -> None:
    program = ENVIRONMENT.compile(source)
    started = time.thread_time()
    with contextlib.suppress(cel.EvaluationError, cel.CostExceededError):
        program.evaluate({"self": {}, "x": list(range(2000))}, cel.Budget())
    assert time.thread_time() - started < 20  # a second at most on a quiet machine; without limits these take hours


@pytest.mark.parametrize(
    "source",
    [
        "(" * 300 + "1" + ")" * 300,
        "[" * 300 + "]" * 300,
        "!" * 1000 + "true",
        "-" * 1001 + "1",
        "1" + "+1" * 300,
        "a" + ".b" * 300,
        "x" + "[0]" * 300,
        "{'a':" * 300 + "1" + "}" * 300,
        "[1].map(x, " * 260 + "1" + ")" * 260,
        "optional.of(1)" + ".optMap(x, x)" * 60,
        "1 ? " * 300,
        "'" + "a" * 100_001 + "'",
        "true" + " && true" * 12_000,
    ],
)
def test_deep_and_long_sources_are_refused_or_run(source: str) -> None:
    try:
        program = ENVIRONMENT.compile(source)
    except cel.CompileError:
        return
    with contextlib.suppress(cel.EvaluationError, cel.CostExceededError):
        program.evaluate({"self": {}, "x": []}, cel.Budget())


def test_an_expression_just_below_the_nesting_limit_runs() -> None:
    assert ENVIRONMENT.compile("(" * 200 + "1" + ")" * 200).evaluate({}, cel.Budget()) == 1
    deep = ENVIRONMENT.compile("[1].map(x, " * 100 + "1" + ")" * 100)
    assert deep.evaluate({}, cel.Budget())


def test_deeply_nested_values_end_in_a_value_or_an_error() -> None:
    value: Any = []
    for _ in range(20_000):
        value = [value]
    program = ENVIRONMENT.compile("self == x || sets.contains(self, x)")
    with contextlib.suppress(cel.EvaluationError):
        program.evaluate({"self": value, "x": [value]}, cel.Budget())
    while value:  # taken apart by hand: freeing it at once would recurse as deep
        value = value.pop()
