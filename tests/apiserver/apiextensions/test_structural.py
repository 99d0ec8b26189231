"""Decoding, pruning, defaulting and validation of custom objects by one version's schema."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.apiextensions.structural import DecodeError, StructuralSchema
from apiserver.machinery.types import ListType, Shape
from apiserver.schemas.schema_set import SchemaSet

SCHEMAS = SchemaSet.load("1.36")
STRING = {"type": "string"}


def of_spec(**properties: Any) -> StructuralSchema:
    return of(spec={"type": "object", "properties": properties})


def of(**properties: Any) -> StructuralSchema:
    return StructuralSchema({"type": "object", "properties": properties}, schemas=SCHEMAS)


def widget(spec: Any = None, **more: Any) -> dict[str, Any]:
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, **more}
    return obj if spec is None else {**obj, "spec": spec}


def errors(schema: StructuralSchema, spec: Any, old: Any = None) -> list[str]:
    return [e.text() for e in schema.validate(widget(spec), None if old is None else widget(old))]


# --- decoding and pruning ---------------------------------------------------------------------------------------------------------


def test_what_the_schema_does_not_name_goes_and_is_told_in_order() -> None:
    schema = of_spec(
        a=STRING,
        list={"type": "array", "items": {"type": "object", "properties": {"k": STRING}}},
        map={"type": "object", "additionalProperties": {"type": "object", "properties": {"v": STRING}}},
        t={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"data": STRING}},
    )
    embedded = {"apiVersion": "v1", "kind": "T", "metadata": {"name": "t", "odd": 1}, "more": 2}
    spec = {"z": 1, "a": "x", "list": [{}, {"k": "y", "z": 1}], "map": {"m": {"v": "1", "w": 2}}, "t": embedded}
    decoded = schema.decode(orjson.dumps({**widget(spec), "metadata": {"name": "one", "strange": 1}, "top": 1}))
    assert decoded.obj == widget(
        {
            "a": "x",
            "list": [{}, {"k": "y"}],
            "map": {"m": {"v": "1"}},
            "t": {"apiVersion": "v1", "kind": "T", "metadata": {"name": "t"}},
        }
    )
    assert decoded.strict_errors == tuple(
        f'unknown field "{path}"'
        for path in ("metadata.strange", "spec.list[1].z", "spec.map.m.w", "spec.t.more", "spec.z", "top", "spec.t.metadata.odd")
    )


def test_repeated_keys_come_first_and_the_last_value_counts() -> None:
    body = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one"},"spec":{"b":1,"a":"x","a":"y"}}'
    decoded = of_spec(a=STRING).decode(body)
    assert decoded.obj["spec"] == {"a": "y"}
    assert decoded.strict_errors == ('duplicate field "spec.a"', 'unknown field "spec.b"')


def test_unknown_fields_stay_where_the_schema_preserves_them_and_what_is_named_there_is_pruned() -> None:
    known = {"type": "object", "properties": {"a": STRING}}
    schema = of(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": known}})
    spec = {"x": None, "deep": {"y": [2, {"z": None}]}, "known": {"a": "b", "c": "d"}}
    decoded = schema.decode(orjson.dumps(widget(spec)))
    assert decoded.obj["spec"] == {"x": None, "deep": {"y": [2, {"z": None}]}, "known": {"a": "b"}}
    assert decoded.strict_errors == ('unknown field "spec.known.c"',)


def test_below_a_map_of_anything_objects_lose_all_fields() -> None:
    decoded = of_spec(m={"type": "object", "additionalProperties": True}).decode(orjson.dumps(widget({"m": {"a": {"x": 1}, "b": 2}})))
    assert decoded.obj["spec"] == {"m": {"a": {}, "b": 2}}


def test_nulls_go_unless_nullable_or_waiting_for_a_default() -> None:
    schema = of_spec(
        a=STRING, n={"type": "string", "nullable": True}, d={"type": "string", "default": "x"}, l={"type": "array", "items": STRING}
    )
    decoded = schema.decode(orjson.dumps(widget({"a": None, "n": None, "d": None, "l": [None]})))
    assert decoded.obj["spec"] == {"n": None, "d": None, "l": [None]}
    schema.default(decoded.obj)
    assert decoded.obj["spec"] == {"n": None, "d": "x", "l": [None]}


def test_numbers_are_kept_as_go_writes_them() -> None:
    schema = of_spec(i={"type": "integer"}, n={"type": "number"}, free={"x-kubernetes-preserve-unknown-fields": True})
    decoded = schema.decode(b'{"metadata":{"name":"one"},"spec":{"i":1.0,"n":2e3,"free":[3.0,0.5,18446744073709551615]}}')
    assert repr(decoded.obj["spec"]) == "{'i': 1, 'n': 2000, 'free': [3, 0.5, 1.8446744073709552e+19]}"


def test_metadata_of_a_wrong_type_is_no_object() -> None:
    with pytest.raises(DecodeError, match=r"json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"):
        of_spec().decode(b'{"metadata":{"name":"one","labels":{"a":1}}}')
    schema = of_spec(t={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True})
    with pytest.raises(DecodeError) as caught:
        schema.decode(orjson.dumps(widget({"t": {"apiVersion": "v1", "kind": "T", "metadata": {"labels": {"a": 1}}}})))
    assert str(caught.value).startswith('spec.t.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number')
    with pytest.raises(DecodeError, match=r"spec.t.kind: Invalid value: 5: must be a string"):
        schema.decode(orjson.dumps(widget({"t": {"apiVersion": "v1", "kind": 5}})))


def test_a_body_that_is_no_object_is_refused() -> None:
    with pytest.raises(DecodeError, match="cannot unmarshal array"):
        of_spec().decode(b"[]")


def test_an_object_given_to_be_decoded_is_not_changed() -> None:
    given = widget({"b": 1})
    assert of_spec(a=STRING).decode(given).obj == widget({})
    assert given == widget({"b": 1})


def test_a_stored_object_takes_the_schema_of_now() -> None:
    schema = of_spec(a=STRING, d={"type": "integer", "default": 3})
    stored = widget({"a": "x", "gone": 1})
    stored["metadata"]["labels"] = {"a": 1}
    assert schema.settle_stored(stored)["spec"] == {"a": "x", "d": 3}
    assert "labels" not in schema.settle_stored(stored)["metadata"]
    good = widget({"a": "x"})
    assert of_spec(a=STRING).settle_stored(good) is good


# --- defaults ---------------------------------------------------------------------------------------------------------------------


def test_defaults_reach_lists_maps_and_what_defaults_have_made() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string", "default": "in"}, "y": STRING}}
    schema = of(
        spec={
            "type": "object",
            "default": {},
            "properties": {
                "size": {"type": "integer", "default": 3},
                "nested": inner,
                "filled": {**inner, "default": {"y": "given"}},
                "list": {"type": "array", "items": inner},
                "map": {"type": "object", "additionalProperties": inner},
            },
        }
    )
    obj = widget()
    schema.default(obj)
    assert obj["spec"] == {"size": 3, "filled": {"y": "given", "x": "in"}}
    obj = widget({"size": 0, "nested": {}, "filled": {}, "list": [{}, {"x": "a"}], "map": {"m": {}}})
    schema.default(obj)
    assert obj["spec"] == {
        "size": 0,
        "nested": {"x": "in"},
        "filled": {"x": "in"},
        "list": [{"x": "in"}, {"x": "a"}],
        "map": {"m": {"x": "in"}},
    }


def test_defaults_are_pruned() -> None:
    schema = of_spec(a={"type": "object", "properties": {"x": STRING}, "default": {"x": "1", "gone": "2"}})
    obj = widget({})
    schema.default(obj)
    assert obj["spec"] == {"a": {"x": "1"}}


def test_defaults_are_copies() -> None:
    schema = of_spec(a={"type": "array", "default": ["x"], "items": STRING})
    first, second = widget({}), widget({})
    schema.default(first)
    schema.default(second)
    first["spec"]["a"].append("y")
    assert second["spec"]["a"] == ["x"]


# --- validation -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (STRING, 1, ['spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer"']),
        ({"type": "integer"}, "x", ['spec.x: Invalid value: "string": spec.x in body must be of type integer: "string"']),
        (
            {"type": "integer"},
            1.5,
            [
                'spec.x: Invalid value: "number": spec.x in body must be of type integer: "number"',
                '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x',
            ],
        ),
        ({"type": "object"}, [], ['spec.x: Invalid value: "array": spec.x in body must be of type object: "array"']),
        (
            {"type": "array", "items": STRING},
            ["a", None],
            ['spec.x[1]: Invalid value: "null": spec.x[1] in body must be of type string: "null"'],
        ),
        ({"type": "integer", "minimum": 5}, 1, ["spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 5"]),
        (
            {"type": "number", "maximum": 5, "exclusiveMaximum": True},
            5,
            ["spec.x: Invalid value: 5: spec.x in body should be less than 5"],
        ),
        (
            {"type": "number", "maximum": 1000000},
            1000000.5,
            ["spec.x: Invalid value: 1.0000005e+06: spec.x in body should be less than or equal to 1e+06"],
        ),
        ({"type": "number", "multipleOf": 1}, 1e21, ["spec.x: Invalid value: 1e+21: spec.x in body should be a multiple of 1"]),
        ({"type": "integer", "multipleOf": 3}, 4, ["spec.x: Invalid value: 4: spec.x in body should be a multiple of 3"]),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x'],
        ),
        ({"type": "string", "maxLength": 1}, "ab", ["spec.x: Too long: may not be more than 1 byte"]),
        ({"type": "string", "minLength": 3}, "ab", ['spec.x: Invalid value: "ab": spec.x in body should be at least 3 chars long']),
        ({"type": "string", "pattern": "^a$"}, "ab", ["spec.x: Invalid value: \"ab\": spec.x in body should match '^a$'"]),
        ({"type": "string", "pattern": "(?i)^a$"}, "A", []),
        ({"type": "string", "enum": ["p", "q"]}, "r", ['spec.x: Unsupported value: "r": supported values: "p", "q"']),
        ({"type": "string", "enum": ["é"]}, "r", ['spec.x: Unsupported value: "r": supported values: "é"']),
        ({"type": "integer", "enum": [1, 2]}, 3, ['spec.x: Unsupported value: 3: supported values: "1", "2"']),
        ({"type": "string", "format": "date"}, "2020", ['spec.x: Invalid value: "2020": spec.x in body must be of type date: "2020"']),
        ({"type": "string", "format": "strange"}, "x", []),
        ({"type": "array", "maxItems": 1, "items": STRING}, ["a", "b"], ["spec.x: Too many: 2: must have at most 1 item"]),
        (
            {"type": "array", "minItems": 2, "items": STRING},
            ["a"],
            ["spec.x: Invalid value: 1: spec.x in body should have at least 2 items"],
        ),
        (
            {"type": "object", "maxProperties": 1, "additionalProperties": STRING},
            {"a": "b", "c": "d"},
            ["spec.x: Too many: 2: must have at most 1 item"],
        ),
        ({"type": "object", "required": ["a", "b"]}, {}, ["spec.x.a: Required value", "spec.x.b: Required value"]),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"k": "v"},
            ['spec.x.k: Invalid value: "string": spec.x.k in body must be of type integer: "string"'],
        ),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            ['spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'],
        ),
        ({"type": "string", "nullable": True}, None, []),
        (
            {"type": "string", "anyOf": [{"minLength": 3}, {"pattern": "^x"}]},
            "a",
            [
                '<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)',
                'spec.x: Invalid value: "a": spec.x in body should be at least 3 chars long',
            ],
        ),
        (
            {"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]},
            3,
            ['<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
        ),
        (
            {"type": "integer", "allOf": [{"minimum": 5}]},
            3,
            [
                "spec.x: Invalid value: 3: spec.x in body should be greater than or equal to 5",
                '<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf). None validated',
            ],
        ),
        ({"type": "integer", "not": {"minimum": 5}}, 7, ['<nil>: Invalid value: "": "spec.x" must not validate the schema (not)']),
        ({"type": "array", "x-kubernetes-list-type": "set", "items": STRING}, ["a", "b", "a", "a"], ['spec.x[2]: Duplicate value: "a"']),
    ],
)
def test_values_are_refused_in_kubernetes_words(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert errors(of_spec(x=schema), {"x": value}) == expected


def test_a_whole_number_that_was_written_as_a_float_is_told_as_one() -> None:
    schema = of_spec(x=STRING)
    decoded = schema.decode(b'{"metadata":{"name":"one"},"spec":{"x":1.0}}')
    assert [e.text() for e in schema.validate(decoded.obj)] == [
        'spec.x: Invalid value: "number": spec.x in body must be of type string: "number"'
    ]


def test_keyed_lists_have_each_key_once() -> None:
    items = {"type": "object", "required": ["k"], "properties": {"k": STRING, "p": {"type": "string", "default": "TCP"}}}
    schema = of_spec(x={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"], "items": items})
    assert errors(schema, {"x": [{"k": "a", "p": "TCP"}, {"k": "b"}, {"p": "TCP", "k": "a"}]}) == [
        'spec.x[2]: Duplicate value: {"k":"a","p":"TCP"}'
    ]


def test_embedded_objects_are_checked() -> None:
    schema = of_spec(t={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True})
    assert errors(schema, {"t": {}}) == ["spec.t.apiVersion: Required value", "spec.t.kind: Required value"]
    found = errors(schema, {"t": {"apiVersion": "a/b/c", "kind": "", "metadata": {"labels": {"-x": "y"}}}})
    assert [text.partition(": ")[0] for text in found] == ["spec.t.apiVersion", "spec.t.kind", "spec.t.metadata.labels"]
    assert found[0] == 'spec.t.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'


def test_what_did_not_change_is_forgiven() -> None:
    item = {"type": "object", "properties": {"k": STRING, "v": {"type": "string", "maxLength": 1}}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    schema = of_spec(
        a={"type": "string", "maxLength": 3}, b=STRING, keyed=keyed, plain={"type": "array", "items": {"type": "integer", "minimum": 5}}
    )
    old = {"a": "longvalue", "b": "x", "keyed": [{"k": "1", "v": "long"}, {"k": "2", "v": "x"}], "plain": [1]}
    assert errors(schema, {**old, "b": "y", "keyed": old["keyed"][::-1]}, old) == []
    assert errors(schema, {**old, "a": "otherlong"}, old) == ["spec.a: Too long: may not be more than 3 bytes"]
    assert errors(schema, {**old, "plain": [1, 6]}, old) == [
        "spec.plain[0]: Invalid value: 1: spec.plain[0] in body should be greater than or equal to 5"
    ]
    assert len(errors(schema, old)) == 3


def test_an_object_that_had_items_twice_may_keep_them() -> None:
    schema = of_spec(x={"type": "array", "x-kubernetes-list-type": "set", "items": STRING})
    assert errors(schema, {"x": ["a", "a", "b", "b"]}, {"x": ["a", "a"]}) == []
    assert errors(schema, {"x": ["a", "a"]}, {"x": ["a"]}) == ['spec.x[1]: Duplicate value: "a"']


def test_a_status_update_looks_at_the_status_alone() -> None:
    schema = of(
        spec={"type": "object", "required": ["a"]}, status={"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    )
    old = widget({}, status={"n": 1})
    assert [e.text() for e in schema.validate_status(widget({}, status={"n": 0}), old)] == [
        "status.n: Invalid value: 0: n in body should be greater than or equal to 1"
    ]
    assert schema.validate_status(widget({}, status={"n": 2}), old) == []


# --- types ------------------------------------------------------------------------------------------------------------------------


def test_the_type_tells_apply_how_to_merge() -> None:
    items = {"type": "object", "properties": {"k": {"type": "string", "default": "a"}}}
    type_ = of_spec(
        keyed={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items},
        map={"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
        either={"x-kubernetes-int-or-string": True},
    ).type
    assert type_.shape is Shape.STRUCT
    assert set(type_.fields) == {"apiVersion", "kind", "metadata", "spec"}
    spec = type_.fields["spec"].fields
    assert (spec["keyed"].list_type, spec["keyed"].list_map_keys) == (ListType.MAP, ("k",))
    assert (spec["map"].shape, spec["map"].map_is_atomic) == (Shape.MAP, True)
    assert (spec["either"].shape, spec["either"].preserve_unknown) == (Shape.ANY, True)
