"""The cases: schemas with rules, and objects for them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "maxLength": 50}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """``objects``: specs to create; ``updates``: specs before and after. ``root``: rules of the root and further fields of it."""

    name: str
    spec: Schema
    objects: list[Any] = field(default_factory=list)
    updates: list[tuple[Any, Any]] = field(default_factory=list)
    root: Schema = field(default_factory=dict)

    def schema(self) -> Schema:
        return {"type": "object", **self.root, "properties": {"spec": self.spec, **self.root.get("properties", {})}}


def obj(properties: dict[str, Schema], *rules: Any, **more: Any) -> Schema:
    made: Schema = {"type": "object", "properties": properties, **more}
    if rules:
        made["x-kubernetes-validations"] = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return made


def ruled(schema: Schema, *rules: Any) -> Schema:
    return {**schema, "x-kubernetes-validations": [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def texts(count: int = 5, **more: Any) -> Schema:
    return {"type": "array", "maxItems": count, "items": TEXT, **more}


def keyed(properties: dict[str, Schema], *keys: str, count: int = 5, **more: Any) -> Schema:
    return {
        "type": "array",
        "maxItems": count,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "items": {"type": "object", "required": list(keys), "properties": properties, **more},
    }


def entries(value: Schema, count: int = 5, **more: Any) -> Schema:
    return {"type": "object", "maxProperties": count, "additionalProperties": value, **more}


def cases() -> list[Case]:
    found = [*_definitions(), *_objects(), *_costs(), *_random()]
    assert len({case.name for case in found}) == len(found)
    return found


# --- what is wrong with rules ------------------------------------------------------------------------------------------------------


def _definitions() -> Iterator[Case]:
    a = {"a": WHOLE, "s": TEXT, "l": texts(), "m": entries(TEXT), "n": {**WHOLE, "nullable": True}}
    wrong = [
        "self.b == 1",
        "self.a",
        "self.a > ",
        "self.a == 's'",
        "has(self.b)",
        "has(self)",
        "self.s.startsWith(1)",
        "self.l.all(x, x > 1)",
        "self.m.all(k, self.m[k] == 1)",
        "self.m.x == 'y'",
        "self.l[0] == 'y'",
        "self.l.exists(x)",
        "self['a'] == 1",
        "oldSelf.a == self.a",
        "self.a == oldSelf",
        "self == oldSelf && oldSelf.b == 1",
        "duration(self.a) > duration('1s')",
        "self.s.matches('[')",
        "self.s.find('(') == ''",
        "quantity(self.s).isGreaterThan(1)",
        "[1, 'a'] == [self.a]",
        "{'a': 1}[self.s] == 1",
        "type(self.a) == int",
        "self.a in self.l",
        "self.s in self.m",
        "self.n == null",
        "self.n == 1",
        "true",
        "'x'",
        "1 + 1 == 2 ? 1 : 2",
        "self.a + 1.0 > 2.0",
        "dyn(self.a) + 1.0 > 2.0",
        "self.?a.orValue(1) == 1",
        "self.?a.value()",
        "optional.of(1).hasValue()",
        "self.l.map(x, x.size()).sum() > 1",
        "self.l.isSorted() && self.l.max() == 'a'",
        "self.s.split(',').size() == self.l.size() && self.a == self.l",
        "url(self.s).getHost() == 'x' && isURL(self.a)",
        "ip(self.s).family() == 4 && cidr(self.s).containsIP(self.s)",
        "format.dns1123Label().validate(self.s).hasValue()",
        "self.l.sortBy(x, x).first() == optional.of('a')",
        "math.greatest(self.a, 1) == 1",
        "sets.contains(self.l, [1])",
        "base64.encode(b'a') == self.s",
        "semver(self.s).major() == 1",
        "authorizer.path('/x').check('get').allowed()",
        "self.metadata.name == 'x'",
        "  ",
        'self.s == "\\z"',
        "self.a = 1",
        "self.a === 1",
        "self.s == 'a' 'b'",
        "self.l.map(1, 2) == []",
        "self.l.transformList(i, v, v + 1) == []",
        "cel.bind(x, self.a, x == y)",
        "9223372036854775808 == self.a",
        "-9223372036854775808 == self.a",
        "1u == self.a",
        "self.s.format([1]) == 1",
        "'%d'.format([self.s]) == self.s",
        "self.a / 0 == 1",
        "int('x') == self.a",
        "timestamp('nope') == timestamp(self.s)",
    ]
    for position, rule in enumerate(wrong):
        yield Case(name=f"wrong-{position}", spec=obj(a, rule))
    messages: list[dict[str, Any]] = [
        {"rule": "self.a > 1", "messageExpression": "self.b"},
        {"rule": "self.a > 1", "messageExpression": "self.a"},
        {"rule": "self.a > 1", "messageExpression": "'a' + "},
        {"rule": "self.a > 1", "messageExpression": "oldSelf.s"},
        {"rule": "self.a > oldSelf.a", "messageExpression": "oldSelf.s"},
        {"rule": "self.a", "messageExpression": "self.b"},
        {"rule": "self.a > 1", "messageExpression": "  "},
        {"rule": "self.a > 1", "message": " "},
        {"rule": "self.a > 1", "message": "a\nb"},
        {"rule": "self.a >\n 1"},
        {"rule": "self.a >\n 1", "message": "m"},
        {"rule": "self.a > 1", "reason": "Nope"},
        {"rule": "self.a > 1", "fieldPath": ".b"},
        {"rule": "self.a > 1", "fieldPath": ".m['x']"},
        {"rule": "self.a > 1", "fieldPath": ".l[0]"},
        {"rule": "self.a > 1", "fieldPath": " "},
        {"rule": "self.a > 1", "optionalOldSelf": True},
        {"rule": "self.a > 1", "optionalOldSelf": False},
        {"rule": "oldSelf.hasValue()", "optionalOldSelf": True},
        {"rule": "oldSelf.a == 1", "optionalOldSelf": True},
        {"rule": "oldSelf.hasValue()", "optionalOldSelf": False},
    ]
    for position, said in enumerate(messages):
        yield Case(name=f"form-{position}", spec=obj(a, said))
    several = obj(a, "self.b == 1", {"rule": "self.a", "reason": "Nope"}, "self.s == 1")
    yield Case(name="faults-of-the-form-come-first", spec=several)
    yield Case(name="faults-below-hide-those-above", spec=obj({"x": ruled({"type": "string", "default": 1}, "self.y")}, "self.z"))
    yield Case(name="rules-below-are-told-first", spec=obj({"x": ruled(TEXT, "self > 1")}, "self.x > 1"))
    yield Case(name="items-of-an-atomic-list", spec=obj({"l": {"type": "array", "items": ruled(WHOLE, "self >= oldSelf")}}))
    nested = keyed({"k": TEXT, "l": {"type": "array", "maxItems": 3, "items": ruled(WHOLE, "self >= oldSelf")}}, "k")
    yield Case(name="a-list-in-a-keyed-list", spec=obj({"l": nested}))
    inner = {"type": "array", "maxItems": 2, "items": keyed({"k": ruled(TEXT, "self >= oldSelf")}, "k")}
    yield Case(name="a-keyed-list-in-a-list", spec=obj({"l": inner}))
    yield Case(name="untyped", spec=obj({"x": {"x-kubernetes-preserve-unknown-fields": True}}, "self.x == 1"))
    yield Case(
        name="untyped-list", spec=obj({"x": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}}, "has(self.x)")
    )
    yield Case(name="untyped-rule", spec=obj({"x": ruled({"x-kubernetes-preserve-unknown-fields": True}, "self == 1")}))
    yield Case(
        name="names",
        spec=obj(
            {"in": WHOLE, "a-b": WHOLE, "a.b": WHOLE, "a/b": WHOLE, "a__b": WHOLE, "1a": WHOLE, "$x": WHOLE},
            "self.__in__ + self.a__dash__b + self.a__dot__b + self.a__slash__b + self.a__underscores__b > 0",
        ),
        objects=[{"in": 1, "a-b": 1, "a.b": 1, "a/b": 1, "a__b": 1}, {"in": -4, "a-b": 1, "a.b": 1, "a/b": 1, "a__b": 1}, {"in": 1}],
    )
    yield Case(name="names-that-cannot-be", spec=obj({"1a": WHOLE, "$x": WHOLE}, "self.$x == 1", "self.x1a == 1"))
    yield Case(
        name="root",
        spec=obj({"a": WHOLE}),
        root={
            "x-kubernetes-validations": [
                {"rule": "self.metadata.name == 'one' && self.kind != 'X' && self.apiVersion != ''"},
                {"rule": "self.metadata.generateName == 'x'"},
                {"rule": "self.metadata.namespace == 'x'"},
                {"rule": "self.status == 1"},
            ]
        },
    )


# --- what rules say of objects -----------------------------------------------------------------------------------------------------


def _objects() -> Iterator[Case]:
    say = {"messageExpression": "'%s' + string(self)"}
    yield Case(
        name="words",
        spec=obj(
            {"a": WHOLE, "s": TEXT},
            {"rule": "self.a > 10", "message": " spaces "},
            {"rule": "self.a > 10", "messageExpression": "'a is ' + string(self.a)"},
            {"rule": "self.a > 10", "message": "kept", "messageExpression": "'line\\nbreak'"},
            {"rule": "self.a > 10", "message": "kept", "messageExpression": "'  '"},
            {"rule": "self.a > 10", "message": "kept", "messageExpression": "string(1 / (self.a - 5))"},
            {"rule": "self.a > 10", "messageExpression": "self.s"},
            {"rule": "self.a > 10", "reason": "FieldValueForbidden", "fieldPath": ".s"},
            {"rule": "self.a > 10", "reason": "FieldValueRequired", "fieldPath": ".a"},
            {"rule": "self.a > 10", "reason": "FieldValueDuplicate"},
            {"rule": "self.a > 10", "reason": "FieldValueInvalid", "fieldPath": "['s']"},
        ),
        objects=[{"a": 11, "s": "x"}, {"a": 5, "s": "x"}, {"a": 5}, {"s": "x"}, {}],
    )
    scalars: list[tuple[str, Schema, str, list[Any]]] = [
        ("string", TEXT, "self.size() > 2", ["ab", "abc", "äö", "\U0001f600\U0001f600\U0001f600"]),
        ("integer", WHOLE, "self % 2 == 0", [1, 2, -3, 9007199254740993]),
        ("number", NUMBER, "self * 2.0 > 3.0", [1, 1.5, 2, 1e30]),
        ("boolean", FLAG, "self", [True, False]),
        ("either", {"x-kubernetes-int-or-string": True}, "type(self) == int ? self > 5 : self == '50%'", [1, 6, "50%", "x"]),
        ("enum", {"type": "string", "enum": ["a", "b"]}, "self == 'a'", ["a", "b", "c"]),
        ("date", {"type": "string", "format": "date"}, "self.getFullYear() == 2020", ["2020-01-01", "2021-12-31", "x"]),
        (
            "time",
            {"type": "string", "format": "date-time"},
            "self > timestamp('2020-01-01T00:00:00Z')",
            ["2019-01-01T00:00:00Z", "2020-01-01T00:00:00.000000001Z", "2020-01-01T01:00:00+02:00", "2020-01-01 00:00:00"],
        ),
        ("length", {"type": "string", "format": "duration"}, "self > duration('1m')", ["30s", "61s", "1h30m", "2 days", "x"]),
        (
            "bytes",
            {"type": "string", "format": "byte", "maxLength": 100},
            "self.size() > 2 && string(self) != 'x'",
            ["YWJj", "YQ==", "/w==", "!"],
        ),
        (
            "uuid",
            {"type": "string", "format": "uuid", "maxLength": 36},
            "self.startsWith('a')",
            ["a1b2c3d4-0000-4000-8000-000000000000", "b1b2c3d4-0000-4000-8000-000000000000"],
        ),
        ("nullable", {**WHOLE, "nullable": True}, "self > 1", [1, 2, None]),
        ("defaulted", {**WHOLE, "default": 1}, "self > 1", [1, 2, None]),
    ]
    for name, schema, rule, values in scalars:
        yield Case(name=f"scalar-{name}", spec=obj({"x": ruled(schema, rule)}), objects=[{"x": value} for value in values] + [{}])
        whole = obj({"x": schema}, f"!has(self.x) || {rule.replace('self', 'self.x')}")
        yield Case(name=f"scalar-above-{name}", spec=whole, objects=[{"x": value} for value in values] + [{}])
        told = obj({"x": schema}, {"rule": "false", "messageExpression": "has(self.x) ? string(dyn(self.x)) : 'none'"})
        yield Case(name=f"scalar-told-{name}", spec=told, objects=[{"x": value} for value in values] + [{}])
    lists = obj(
        {"l": texts(), "s": texts(**{"x-kubernetes-list-type": "set"}), "m": entries(TEXT), "k": keyed({"k": TEXT, "v": WHOLE}, "k")},
        "self.l.all(x, x in self.s)",
        "self.s.exists_one(x, x == 'a')",
        "self.l == self.s",
        "self.s == self.l",
        "self.l + self.s == self.s",
        "(self.s + self.l).size() == 2",
        "self.m.all(k, self.m[k] != '')",
        "'a' in self.m && self.m['a'] == 'b'",
        "self.m.size() == 1 && self.m.exists(k, k.startsWith('a'))",
        "self.k.filter(x, x.v > 1).map(x, x.k) == ['b']",
        "self.k == self.k.map(x, x)",
        "self.k.all(x, has(x.v))",
        "self.l[0] == 'a'",
        "self.l[1] == 'b' || true",
        "self.?l[?1].orValue('') == 'b'",
        "self.k.exists(x, x.v == 1) ? self.k[0].k == 'a' : false",
    )
    some = [
        {"l": ["a", "b"], "s": ["b", "a"], "m": {"a": "b"}, "k": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]},
        {"l": [], "s": [], "m": {}, "k": []},
        {"l": ["c"], "s": ["a"], "m": {"x": ""}, "k": [{"k": "b", "v": 2}, {"k": "a"}]},
        {"l": ["a"]},
    ]
    yield Case(name="lists", spec=lists, objects=some)
    same = obj(
        {"l": texts(), "s": texts(**{"x-kubernetes-list-type": "set"}), "k": keyed({"k": TEXT, "v": WHOLE}, "k"), "m": entries(WHOLE)},
        "self.l == oldSelf.l",
        "self.s == oldSelf.s",
        "self.k == oldSelf.k",
        "self.m == oldSelf.m",
        "self == oldSelf",
    )
    before = {"l": ["a", "b"], "s": ["a", "b"], "k": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "m": {"a": 1}}
    after = [
        before,
        {**before, "l": ["b", "a"]},
        {**before, "s": ["b", "a"]},
        {**before, "k": list(reversed(before["k"]))},
        {**before, "m": {"a": 2}},
        {**before, "k": [{"k": "a", "v": 1}]},
    ]
    yield Case(name="equality", spec=same, updates=[(before, new) for new in after])
    keyed_rules = obj({"k": keyed({"k": TEXT, "v": ruled(WHOLE, "self >= oldSelf")}, "k", **ruled({}, "self.v <= oldSelf.v + 2"))})
    yield Case(
        name="items-are-known-by-their-keys",
        spec=keyed_rules,
        updates=[
            ({"k": [{"k": "a", "v": 5}, {"k": "b", "v": 1}]}, {"k": [{"k": "b", "v": 2}, {"k": "a", "v": 4}]}),
            ({"k": [{"k": "a", "v": 5}]}, {"k": [{"k": "b", "v": 1}]}),
            ({"k": [{"k": "a", "v": 5}]}, {"k": [{"k": "a", "v": 9}, {"k": "c", "v": 1}]}),
        ],
    )
    yield Case(
        name="map-values-are-known-by-their-keys",
        spec=obj(
            {
                "m": entries(ruled(WHOLE, "self >= oldSelf")),
                "g": {**entries(ruled(WHOLE, "self >= oldSelf")), "x-kubernetes-map-type": "atomic"},
            }
        ),
        updates=[({"m": {"a": 5, "b": 5}, "g": {"a": 5}}, {"m": {"a": 4, "c": 1}, "g": {"a": 4, "z": 0}})],
    )
    yield Case(
        name="coming-and-going",
        spec=obj(
            {"a": ruled(WHOLE, {"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": True}), "b": WHOLE},
            {"rule": "has(self.a) == has(oldSelf.a)", "message": "a comes or goes"},
            {
                "rule": "oldSelf.optMap(o, o.?b.orValue(0) <= self.?b.orValue(0)).orValue(self.?b.orValue(0) == 0)",
                "optionalOldSelf": True,
                "messageExpression": "'b was ' + string(oldSelf.b)",
            },
        ),
        objects=[{"a": 1}, {"b": 1}, {}],
        updates=[({"a": 1}, {"a": 0}), ({"a": 1}, {}), ({}, {"a": 1}), ({"a": 1}, {"a": 1, "b": 2}), ({}, {"b": -1})],
    )
    broken = [{"a": "bad", "b": "x", "l": ["bad", "ok"], "m": {"k": "bad"}, "o": {"x": "bad"}}]
    yield Case(
        name="an-unchanged-value-may-stay",
        spec=obj({"a": {"type": "string", "maxLength": 5, "enum": ["good", "bad"]}, "n": WHOLE}, "!has(self.n) || self.n > 1"),
        updates=[({"a": "bad", "n": 2}, {"a": "bad", "n": 1}), ({"a": "bad", "n": 2}, {"a": "worse", "n": 1})],
        objects=broken,
    )
    blocked = obj(
        {"a": {**WHOLE, "maximum": 5}, "b": {"type": "string", "maxLength": 2}, "c": {"type": "string", "enum": ["x"]}, "d": TEXT},
        "self.a > 1",
        required=["a"],
    )
    yield Case(
        name="blocked",
        spec=blocked,
        objects=[{"a": 6}, {"a": "x"}, {}, {"a": 0, "b": "abc"}, {"a": 0, "c": "y"}, {"a": 0}, {"a": 0, "d": 1}],
    )
    inside = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
        **ruled({}, "self.kind == 'Pod' && self.apiVersion == 'v1' && self.metadata.name.startsWith('p')"),
    }
    yield Case(
        name="embedded",
        spec=obj({"t": inside}),
        objects=[
            {"t": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "x": 1}},
            {"t": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}}},
            {"t": {"apiVersion": "v1", "kind": "Pod"}},
            {"t": {"apiVersion": "v2", "kind": "Pod", "metadata": {"generateName": "q"}}},
        ],
    )
    free = obj(
        {"f": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": WHOLE}}},
        "self.f == oldSelf.f",
        "self.f.a == oldSelf.f.a",
    )
    yield Case(
        name="preserved",
        spec=free,
        updates=[
            ({"f": {"a": 1, "x": [1]}}, {"f": {"a": 1, "x": [2]}}),
            ({"f": {"a": 1, "x": 1}}, {"f": {"a": 1, "x": 1}}),
            ({"f": {"x": 1}}, {"f": {"x": 1, "y": 1}}),
        ],
    )
    nulls = obj(
        {
            "n": {**TEXT, "nullable": True},
            "l": {"type": "array", "maxItems": 3, "items": {**TEXT, "nullable": True}},
            "m": entries({**TEXT, "nullable": True}),
        },
        "has(self.n)",
        "self.l.all(x, x != null)",
        "self.m.all(k, self.m[k] != null)",
    )
    yield Case(name="nulls", spec=nulls, objects=[{"n": None, "l": [None, "a"], "m": {"a": None}}, {"n": "x", "l": [], "m": {}}])
    runtime = [
        "self.a / self.b > 0",
        "self.l[self.a] == 'x'",
        "self.m[self.s] == 'x'",
        "int(self.s) > 1",
        "self.a + 9223372036854775807 > 0",
        "dyn(self.s) > 1",
        "self.s.matches(self.s + '[')",
        "duration(self.s) > duration('1s')",
        "timestamp(self.s) > timestamp('2020-01-01T00:00:00Z')",
        "quantity(self.s) == quantity('1')",
        "self.s.substring(self.a) == ''",
        "self.s.charAt(self.a) == ''",
        "bytes(self.s) == b'x' && false",
        "-self.a == 1",
        "self.a % self.b == 0",
        "uint(self.a) == 1u",
        "double(self.s) > 1.0",
        "dyn(self.a) == 'x' || dyn(self.l) == 1",
        "[1, 2, 3].exists(x, x / self.b == 1)",
        "[1, 2, 3].all(x, x / self.b < 0)",
        "{1: 'a'}[self.a] == 'a'",
        "url(self.s).getHost() == 'x'",
        "ip(self.s).family() == 4",
        "cidr(self.s).ip().family() == 4",
        "self.s.format([self.a]) == ''",
        "b'\\xff' == b'' || string(b'\\xff') == ''",
    ]
    fields = {"a": WHOLE, "b": WHOLE, "s": TEXT, "l": texts(), "m": entries(TEXT)}
    for position, rule in enumerate(runtime):
        yield Case(
            name=f"runtime-{position}",
            spec=obj(fields, rule),
            objects=[
                {"a": 1, "b": 0, "s": "x", "l": ["x"], "m": {"x": "x"}},
                {"a": 0, "b": 2, "s": "12", "l": ["x"], "m": {}},
                {"a": -1, "b": 1, "s": ""},
            ],
        )
    del say


# --- costs -------------------------------------------------------------------------------------------------------------------------


def _costs() -> Iterator[Case]:
    rules = [
        "self.all(x, x.size() < 5)",
        "self.all(x, self.all(y, x != y))",
        "self.exists(x, x.matches('^[a-z]+$'))",
        "self.map(x, x + x).size() > 1",
        "self.filter(x, x.contains('abc')).size() == 0",
        "self.size() < 5",
        "self == self",
        "self.all(x, x in self)",
        "self.isSorted()",
        "self.all(x, x.lowerAscii().upperAscii() == x)",
        "self.all(x, x.split(',').size() < 3)",
        "self.join(',').size() > 1",
        "self.all(x, quantity(x).isGreaterThan(quantity('1')))",
        "self.indexOf('a') > 1",
        "self.all(x, isURL(x))",
        "self.all(x, x.replace('a', 'bb') == x)",
    ]
    bounds: list[tuple[int | None, int | None]] = [(None, None), (100, None), (None, 100), (1000, 20), (10, 10)]
    for (items, length), (position, rule) in itertools.product(bounds, enumerate(rules)):
        text: Schema = {"type": "string", **({} if length is None else {"maxLength": length})}
        listed: Schema = {"type": "array", "items": text, **({} if items is None else {"maxItems": items})}
        yield Case(name=f"cost-{position}-{items}-{length}", spec=obj({"l": ruled(listed, rule)}))
    inner: list[tuple[str, Schema]] = [
        ("text", ruled({"type": "string"}, "self.matches('a+') && self.size() > 3")),
        ("short", ruled({"type": "string", "maxLength": 30}, "self.matches('a+b*') || self.startsWith('x')")),
        ("enum", ruled({"type": "string", "enum": ["a", "bbb"]}, "self.matches('^[ab]+$')")),
        ("date", ruled({"type": "string", "format": "date-time"}, "self > timestamp('2020-01-01T00:00:00Z')")),
        ("either", ruled({"x-kubernetes-int-or-string": True}, "string(self).size() > 1")),
        ("object", obj({"a": TEXT, "b": {"type": "string"}}, "self.a == self.b", required=["a"])),
        ("bytes", ruled({"type": "string", "format": "byte"}, "self == b'abc'")),
        ("whole", ruled(WHOLE, "self > 1 && self < 100 && self % 2 == 0")),
    ]
    for name, schema in inner:
        yield Case(name=f"cost-of-{name}", spec=obj({"x": schema}))
        yield Case(name=f"cost-of-{name}-in-a-list", spec=obj({"x": {"type": "array", "items": schema}}))
        yield Case(name=f"cost-of-{name}-in-a-short-list", spec=obj({"x": {"type": "array", "maxItems": 50, "items": schema}}))
        yield Case(name=f"cost-of-{name}-in-a-map", spec=obj({"x": {"type": "object", "additionalProperties": schema}}))
        yield Case(
            name=f"cost-of-{name}-in-lists",
            spec=obj({"x": {"type": "array", "maxItems": 100, "items": {"type": "array", "maxItems": 100, "items": schema}}}),
        )
    rule = "self.all(x, self.all(y, x != y || x.contains(y)))"
    many = obj({f"l{i}": ruled({"type": "array", "maxItems": 200 + i, "items": TEXT}, rule) for i in range(8)})
    yield Case(name="cost-together", spec=many)
    said = {"rule": "self.size() > 100", "messageExpression": "self.map(x, self.map(y, x + y).join(',')).join(',')"}
    yield Case(name="cost-of-a-message", spec=obj({"l": ruled({"type": "array", "items": TEXT, "maxItems": 500}, said)}))
    yield Case(
        name="cost-at-the-root",
        spec=obj({"a": WHOLE}),
        root={
            "x-kubernetes-validations": [{"rule": "self.metadata.name.matches('^(a|b)+$') && self.metadata.generateName.contains('abc')"}]
        },
    )


# --- by chance ---------------------------------------------------------------------------------------------------------------------


def _random() -> Iterator[Case]:
    for seed in range(120):
        source = random.Random(seed)
        fields = {
            name: source.choice([TEXT, WHOLE, NUMBER, FLAG, texts(), entries(TEXT), entries(WHOLE), keyed({"k": TEXT, "v": WHOLE}, "k")])
            for name in "abcd"
        }
        rules = [_rule(source, fields) for _ in range(6)]
        yield Case(
            name=f"random-{seed}",
            spec=obj(fields, *rules),
            objects=[_value(source, obj(fields)) for _ in range(4)],
            updates=[(_value(source, obj(fields)), _value(source, obj(fields))) for _ in range(2)],
        )


def _value(source: random.Random, schema: Schema) -> Any:
    kind = schema["type"]
    if kind == "object" and "properties" in schema:
        return {name: _value(source, sub) for name, sub in schema["properties"].items() if name == "k" or source.random() < 0.8}
    if kind == "object":
        return {source.choice("xyz"): _value(source, schema["additionalProperties"]) for _ in range(source.randrange(3))}
    if kind == "array":
        found = [_value(source, schema["items"]) for _ in range(source.randrange(4))]
        return list({item["k"]: item for item in found}.values()) if schema.get("x-kubernetes-list-type") == "map" else found
    return {
        "string": lambda: source.choice(["", "a", "b", "abc", "x,y", "12"]),
        "integer": lambda: source.randrange(-3, 4),
        "number": lambda: source.choice([0, 1, -1.5, 2.25]),
        "boolean": lambda: source.random() < 0.5,
    }[kind]()


def _rule(source: random.Random, fields: dict[str, Schema]) -> str:
    name = source.choice(sorted(fields))
    schema, self_ = fields[name], f"self.{name}"
    kind = schema["type"]
    if kind == "string":
        rule = source.choice(
            [
                "{s}.size() > 1",
                "{s}.matches('^[a-z]*$')",
                "{s} != oldSelf.{n}",
                "{s}.split(',').size() == 1",
                "{s} in ['a', 'b']",
                "int({s}) > 3",
            ]
        )
    elif kind == "integer":
        rule = source.choice(["{s} > 0", "{s} % 2 == 0", "{s} >= oldSelf.{n}", "6 / {s} > 1", "{s} in [1, 2]", "string({s}).size() == 1"])
    elif kind == "number":
        rule = source.choice(["{s} > 0.5", "int({s}) == 1", "{s} == oldSelf.{n}", "math.abs({s}) < 2.0"])
    elif kind == "boolean":
        rule = source.choice(["{s}", "!{s}", "{s} == oldSelf.{n}"])
    elif kind == "array" and schema.get("x-kubernetes-list-type") == "map":
        rule = source.choice(
            [
                "{s}.all(x, x.v > 0)",
                "{s} == oldSelf.{n}",
                "{s}.exists_one(x, x.k == 'a')",
                "{s}.map(x, x.v).sum() > 0",
                "{s}.filter(x, has(x.v)).size() > 1",
            ]
        )
    elif kind == "array":
        rule = source.choice(
            [
                "{s}.all(x, x != '')",
                "{s}.size() > 1",
                "{s}[0] == 'a'",
                "{s} == oldSelf.{n}",
                "{s}.isSorted()",
                "{s}.map(x, x + 'y').join('-') != ''",
                "{s}.exists(x, x.contains('a'))",
            ]
        )
    elif schema["additionalProperties"]["type"] == "integer":
        rule = source.choice(["{s}.all(k, {s}[k] > 0)", "{s}['x'] == 1", "{s}.?x.orValue(0) > 0", "{s} == oldSelf.{n}"])
    else:
        rule = source.choice(
            ["{s}.all(k, {s}[k] != '')", "{s}['x'] == 'a'", "{s}.size() == 1", "'x' in {s}", "{s}.transformMap(k, v, v + '!').size() > 0"]
        )
    text = rule.format(s=self_, n=name)
    return text if source.random() < 0.3 else f"has({self_}) ? {text} : {source.choice(['true', 'false'])}"
