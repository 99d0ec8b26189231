"""The compiled checks against their slow twins: what they let pass, the walks find nothing wrong with."""

from __future__ import annotations

import copy
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from apiserver.apiextensions import fast_check
from apiserver.apiextensions.structural import StructuralSchema
from apiserver.apiextensions.values import ValueChecker
from apiserver.schemas.schema_set import SchemaSet

SCHEMAS = SchemaSet.load("1.36")
NAMES = ("a", "b", "c")
TEXTS = st.sampled_from(["", "a", "ab", "abc", "é", "2020-01-01", "1.5", "A", " "])
INTEGERS = st.sampled_from([-1, 0, 1, 2, 3, 10, 2**31, 2**53 + 1, 2**63])
FLOATS = st.sampled_from([-0.5, 0.0, 0.5, 1.0, 1.5, 3.0, 1e300])
SCALARS = st.one_of(st.none(), st.booleans(), TEXTS, INTEGERS, FLOATS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner)), max_leaves=12
)

BOUNDS = st.sampled_from([0, 1, 2, 1.5, -1])
RESTRICTIONS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": BOUNDS,
        "maximum": BOUNDS,
        "exclusiveMinimum": st.booleans(),
        "multipleOf": st.sampled_from([1, 2, 0.5, 0]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "b$", "^[a-c]*$", r"^\w+$", r"\s", "(?i)^A$", "."]),
        "format": st.sampled_from(["date", "int32", "int64", "float", "strange", "ipv4", "byte"]),
        "enum": st.lists(SCALARS, min_size=1, max_size=2),
        "minItems": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
        "required": st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
    },
)


def _nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    branches = st.lists(inner, min_size=1, max_size=2)
    more = st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
            "items": inner,
            "allOf": branches,
            "anyOf": branches,
            "oneOf": branches,
            "not": inner,
        },
    )
    return st.tuples(RESTRICTIONS, more).map(lambda both: {**both[0], **both[1]})


RESTRICTING = st.recursive(RESTRICTIONS, _nested, max_leaves=4)


def _typed(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3).map(lambda p: {"type": "object", "properties": p})
    maps = st.one_of(inner, st.booleans()).map(lambda a: {"type": "object", "additionalProperties": a})
    lists = inner.map(lambda i: {"type": "array", "items": i})
    flags = st.fixed_dictionaries({}, optional={"nullable": st.booleans(), "x-kubernetes-preserve-unknown-fields": st.just(True)})
    return st.tuples(st.one_of(objects, maps, lists), flags, RESTRICTING).map(lambda parts: {**parts[2], **parts[0], **parts[1]})


LEAVES = st.tuples(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        ]
    ),
    RESTRICTING,
    st.fixed_dictionaries({}, optional={"nullable": st.booleans()}),
).map(lambda parts: {**parts[1], **parts[0], **parts[2]})
STRUCTURAL = st.recursive(LEAVES, _typed, max_leaves=6)


@given(STRUCTURAL, VALUES)
def test_a_value_that_passes_the_compiled_check_has_no_faults(schema: dict[str, Any], value: Any) -> None:
    if fast_check.value_check(schema, 36)(value):
        assert ValueChecker(36).check(value, schema) == []


@given(st.dictionaries(st.sampled_from(NAMES), STRUCTURAL, max_size=3), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3))
def test_an_object_whose_form_is_good_is_left_alone_and_settling_reaches_a_good_form(
    properties: dict[str, Any], fields: dict[str, Any]
) -> None:
    schema = StructuralSchema({"type": "object", "properties": properties}, schemas=SCHEMAS)
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, **fields}
    settled = copy.deepcopy(obj)
    strict_errors = schema._settle(settled, drop_invalid=False)
    if schema._has_settled_form(obj):
        assert orjson.dumps(settled, option=orjson.OPT_SORT_KEYS) == orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
        assert not strict_errors
    again = copy.deepcopy(settled)
    assert not schema._settle(again, drop_invalid=False)
    assert again == settled
