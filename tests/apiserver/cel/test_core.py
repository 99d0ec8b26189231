"""The language itself: values, operators, names, macros, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver import cel

ITEM = cel.ObjectType("Item", {"n": cel.INT, "s": cel.STRING})
SPEC = cel.ObjectType(
    "Spec",
    {
        "min": cel.INT,
        "max": cel.INT,
        "name": cel.STRING,
        "items": cel.list_of(ITEM),
        "labels": cel.map_of(cel.STRING, cel.STRING),
        "when": cel.TIMESTAMP,
        "ratio": cel.DOUBLE,
        "set": cel.list_of(cel.STRING, list_type="set"),
        "foo__dash__bar": cel.STRING,
    },
)
ENVIRONMENT = cel.Environment({"self": SPEC, "x": cel.DYN})
VALUES = {
    "self": {
        "min": 1,
        "max": 2,
        "name": "abc",
        "items": [{"n": 1, "s": "a"}, {"n": 2}],
        "labels": {"a": "b"},
        "when": "2020-01-01T00:00:00Z",
        "ratio": 1,
        "set": ["a", "b"],
        "foo-bar": "dashed",
    },
    "x": [1, 2.0, "3"],
}


def run(source: str) -> Any:
    return ENVIRONMENT.compile(source).evaluate(VALUES, cel.Budget())


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 2 * 3 - 4 / 2 % 5", 5),
        ("self.min <= self.max && self.name.startsWith('a')", True),
        ("self.items.exists(i, i.s == 'a')", True),
        ("self.items.map(i, i.n * 2)", [2, 4]),
        ("self.items.map(i, i.n > 1, i.n)", [2]),
        ("self.items.filter(i, has(i.s)).size()", 1),
        ("self.items.exists_one(i, i.n == 2)", True),
        ("[1, 2].all(i, v, i < v)", True),
        ("self.ratio + 1.5", 2.5),
        ("self.when.getFullYear()", 2020),
        ("x[0] == 1u && x[1] == 2 && x[2] == '3'", True),
        ("dyn(true) == 1", False),
        ("self.?labels.z.orValue('none')", "none"),
        ("self.labels[?'a'].optMap(v, v + '!').value()", "b!"),
        ("{'a': 1}.transformMap(k, v, v + 1)", {"a": 2}),
        ("self.set == ['b', 'a']", True),
        ("self.set + ['b', 'c']", ["a", "b", "c"]),
        ("self.foo__dash__bar", "dashed"),
        ("1 / 0 == 1 || true", True),
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 && false", False),
        ("self.items.all(i, i.s == 'b')", False),
        ("-7 / 2 == -3 && -7 % 2 == -1", True),
        ("type(1) == int && type('') == string && type([]) == list", True),
        (r"b'\xff\101é' == b'\xffA' + b'é'", True),
        ('"""a\n"b\'""" + r\'\\n\'', "a\n\"b'\\n"),
        ("'é' < 'z' ? 1 : 2 // a comment", 2),
    ],
)
def test_values(source: str, value: object) -> None:
    found = run(source)
    assert found == value
    assert type(found) is type(value) or isinstance(found, list)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("self.labels.z", "no such key: z"),
        ("self.items[1].s", "no such key: s"),
        ("self.items[5].n", "index out of bounds: 5"),
        ("1 / (self.min - 1)", "division by zero"),
        ("9223372036854775807 + self.min", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("dyn(1) + 'a'", "no such overload"),
        ("self.items.all(i, i.s == 'a')", "no such key: s"),
        ("[1, 2].map(i, i / 0)", "division by zero"),
        ("optional.none().value()", "optional.none() dereference"),
    ],
)
def test_evaluation_errors(source: str, message: str) -> None:
    program = ENVIRONMENT.compile(source)
    with pytest.raises(cel.EvaluationError) as caught:
        program.evaluate(VALUES, cel.Budget())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("foo == 1", "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^"),
        ("self.nope", "ERROR: <input>:1:5: undefined field 'nope'\n | self.nope\n | ....^"),
        (
            "self.name + 1",
            "ERROR: <input>:1:11: found no matching overload for '_+_' applied to '(string, int)'\n | self.name + 1\n | ..........^",
        ),
        ("[1,\n 'a']", "ERROR: <input>:2:2: expected type 'int' but found 'string'\n |  'a']\n | .^"),
        ("'é' +\t'１' + y", "ERROR: <input>:1:13: undeclared reference to 'y' (in container '')\n | 'é' + '１' + y\n | .．.....．....^"),
        ("(1", "ERROR: <input>:1:3: Syntax error: missing ')' at '<EOF>'\n | (1\n | ..^"),
        ("has(self)", "ERROR: <input>:1:5: invalid argument to has() macro\n | has(self)\n | ....^"),
        ("'a'.matches('[')", "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('[')\n | ............^"),
    ],
)
def test_compile_errors(source: str, text: str) -> None:
    with pytest.raises(cel.CompileError) as caught:
        ENVIRONMENT.compile(source)
    assert str(caught.value) == text


def test_a_constant_that_cannot_be_computed_is_told_when_compiling() -> None:
    with pytest.raises(cel.ProgramError, match="type conversion error from 'string' to 'int'"):
        ENVIRONMENT.compile("int('abc') == 1")


def test_the_result_must_be_of_the_expected_type() -> None:
    with pytest.raises(cel.CompileError, match="must evaluate to bool"):
        ENVIRONMENT.compile("1 + 1", expected=cel.BOOL)


def test_a_budget_counts_over_programs_and_stops_the_one_that_passes_it() -> None:
    program = ENVIRONMENT.compile("self.items.all(i, i.n > 0)")
    budget = cel.Budget(30)
    program.evaluate(VALUES, budget)
    assert budget.used == 15
    program.evaluate(VALUES, budget)
    with pytest.raises(cel.CostExceededError):
        program.evaluate(VALUES, budget)


def test_nested_loops_over_a_large_list_are_stopped() -> None:
    program = ENVIRONMENT.compile("x.all(a, x.all(b, x.all(c, a + b + c >= 0)))")
    with pytest.raises(cel.CostExceededError):
        program.evaluate({"self": {}, "x": list(range(1000))}, cel.Budget())


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("__x", "__underscores__x"),
        ("namespace", "__namespace__"),
        ("plain", "plain"),
    ],
)
def test_names_are_escaped_and_back(name: str, identifier: str) -> None:
    assert cel.escape(name) == identifier
    assert cel.unescape(identifier) == name


def test_a_name_with_other_characters_has_no_identifier() -> None:
    assert cel.escape("a b") is None
    assert cel.escape("1a") is None
    assert cel.unescape("a__in__b") is None
