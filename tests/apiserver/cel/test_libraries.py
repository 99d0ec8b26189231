"""Kubernetes' libraries: which version has what, the authorizer, and values whose schema says more than JSON."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver import cel


def run(source: str, values: dict[str, Any], types: dict[str, cel.Type]) -> Any:
    return cel.Environment(types).compile(source).evaluate(values, cel.Budget())


@pytest.mark.parametrize(
    ("source", "since"),
    [
        ("quantity('1').isInteger()", 28),
        ("optional.of(1).hasValue()", 28),
        ("[1][?0].hasValue()", 28),
        ("{'a': 1}.?a.hasValue()", 28),
        ("1 < 2.0", 28),
        ("'%s'.format(['a']) == 'a'", 29),
        ("sets.contains([1], [1])", 29),
        ("ip('::1').isLoopback()", 30),
        ("cidr('::/0').prefixLength() == 0", 30),
        ("format.dns1123Label().validate('a').hasValue()", 31),
        ("[1].all(i, v, v > i)", 32),
        ("semver('1.2.3').major() == 1", 33),
        ("[2, 1].sort() == [1, 2]", 34),
        ("[1].includes(1)", 37),
    ],
)
def test_a_function_is_there_from_its_version_on(source: str, since: int) -> None:
    cel.Environment({}, minor=since).compile(source)
    with pytest.raises(cel.CompileError):
        cel.Environment({}, minor=since - 1).compile(source)


@pytest.mark.parametrize("source", ["'a'.lowerAscii()", "[1].sum()", "url('/a').getHost()", "'a'.find('a')", "[1].all(x, x > 0)"])
def test_these_are_always_there(source: str) -> None:
    cel.Environment({}, minor=25).compile(source)


def test_the_authorizer_is_asked_what_the_expression_says() -> None:
    asked: list[cel.Question] = []

    def answer(question: cel.Question) -> cel.Decision:
        asked.append(question)
        return cel.Decision(allowed=question.verb == "get", reason="because", error="broken" if question.path else "")

    types = {"authorizer": cel.AUTHORIZER}
    values = {"authorizer": cel.Authorizer(answer)}
    source = (
        "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').subresource('scale').namespace('ns').name('n')"
        ".fieldSelector('a=b').labelSelector('c=d').check('get').allowed()"
    )
    assert run(source, values, types) is True
    assert run("authorizer.path('/x').check('post').error()", values, types) == "broken"
    assert run("authorizer.path('/x').check('post').errored()", values, types) is True
    assert run("authorizer.group('').resource('pods').check('list').reason()", values, types) == "because"
    first = asked[0]
    assert (first.verb, first.group, first.resource, first.subresource) == ("get", "apps", "deployments", "scale")
    assert (first.namespace, first.name, first.service_account) == ("ns", "n", ("ns", "sa"))
    assert (first.field_selector, first.label_selector) == ("a=b", "c=d")
    assert asked[1].path == "/x" and asked[1].verb == "post"


def test_two_questions_fit_into_one_call_and_a_third_does_not() -> None:
    environment = cel.Environment({"authorizer": cel.AUTHORIZER})
    values = {"authorizer": cel.Authorizer(lambda _: cel.Decision(True))}
    one = "authorizer.path('/x').check('get').allowed()"
    assert environment.compile(f"{one} && {one}").evaluate(values, cel.Budget()) is True
    with pytest.raises(cel.CostExceededError):
        environment.compile(f"{one} && {one} && {one}").evaluate(values, cel.Budget())


def test_an_exception_of_the_authorizer_goes_through() -> None:
    class Later(Exception):
        pass

    def answer(question: cel.Question) -> cel.Decision:
        raise Later

    with pytest.raises(Later):
        run("authorizer.path('/x').check('get').allowed() || true", {"authorizer": cel.Authorizer(answer)}, {"authorizer": cel.AUTHORIZER})


INNER = cel.ObjectType("Inner", {"at": cel.TIMESTAMP, "tags": cel.list_of(cel.STRING, list_type="set")})
OUTER = cel.ObjectType("Outer", {"inner": INNER, "inners": cel.list_of(INNER), "by": cel.map_of(cel.STRING, cel.DURATION)})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("self.inner == other.inner", True),  # one moment in two writings, one set in two orders
        ("self.inners == other.inners", True),
        ("self.inner in other.inners", True),
        ("dyn(self.inner) == dyn(other.inner)", True),
        ("self.by.a == duration('60m') && self.by.all(k, self.by[k] > duration('1s'))", True),
        ("self.inners.all(i, i.at < timestamp('2025-01-01T00:00:00Z'))", True),
        ("type(self.inner.at) == google.protobuf.Timestamp", True),
    ],
)
def test_fields_have_the_values_of_their_types_wherever_they_go(source: str, value: bool) -> None:
    inner = {"at": "2024-01-01T00:00:00Z", "tags": ["a", "b"]}
    same = {"at": "2024-01-01T01:00:00+01:00", "tags": ["b", "a"]}
    values = {"self": {"inner": inner, "inners": [inner], "by": {"a": "1h"}}, "other": {"inner": same, "inners": [same], "by": {}}}
    assert run(source, values, {"self": OUTER, "other": OUTER}) is value


def test_a_type_may_hold_itself() -> None:
    tree = cel.ObjectType("Tree", lambda: {"value": cel.INT, "children": cel.list_of(tree)})
    value = {"value": 1, "children": [{"value": 2, "children": []}]}
    assert run("self.children.all(c, c.value == 2 && c.children == []) && self == self", {"self": value}, {"self": tree}) is True


def test_a_lazy_mapping_is_asked_for_what_is_selected_only() -> None:
    class Variables(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            if name == "broken":
                raise cel.EvaluationError("composited variable failed")
            return 7

    types = {"variables": cel.ObjectType("Variables", {"seven": cel.INT, "broken": cel.INT})}
    assert run("variables.seven == 7 || variables.broken == 1", {"variables": Variables()}, types) is True
    with pytest.raises(cel.EvaluationError, match="composited variable failed"):
        run("variables.broken == 1", {"variables": Variables()}, types)
