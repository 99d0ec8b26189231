"""Schemas: every keyword with every value of ``words`` beside a good schema of each type, and bad ones at every place of a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.crd_definitions.bodies import TEXT, definition, of_field, of_root, version
from tests.crd_definitions.exchange import Case, create
from tests.crd_definitions.words import BASES, WORDS

Schema = dict[str, Any]


def keyword_cases() -> Iterator[Case]:
    """One request for each, of a field; of the root of a kind too for what reads otherwise there."""
    for keyword, values in WORDS.items():
        for number, value in enumerate(values):
            for base, schema in BASES.items():
                yield Case(name=f"{keyword}-{number}-{base}", steps=(create(of_field({**schema, keyword: value})),))
            yield Case(name=f"{keyword}-{number}-root", steps=(create(of_root({**BASES["object"], keyword: value})),))
            with_status = version(schema={**BASES["object"], keyword: value}, subresources={"status": {}})
            yield Case(name=f"{keyword}-{number}-root-with-status", steps=(create(definition(with_status)),))


#: where a schema can stand
PLACES: dict[str, Callable[[Schema], Schema]] = {
    "root": lambda schema: schema,
    "property": lambda schema: _holding(schema),
    "deep": lambda schema: _holding({"type": "object", "properties": {"y.z": {"type": "array", "items": schema}}}),
    "items": lambda schema: _holding({"type": "array", "items": schema}),
    "set": lambda schema: _holding({"type": "array", "x-kubernetes-list-type": "set", "items": schema}),
    "values": lambda schema: _holding({"type": "object", "additionalProperties": schema}),
    "values-of-items": lambda schema: _holding({"type": "array", "items": {"type": "object", "additionalProperties": schema}}),
    "not": lambda schema: _holding({**TEXT, "not": schema}),
    "allOf": lambda schema: _holding({**TEXT, "allOf": [{"minLength": 1}, schema]}),
    "anyOf-items": lambda schema: _holding({"type": "array", "items": TEXT, "anyOf": [{"items": schema}]}),
    "oneOf-property": lambda schema: _holding({"type": "object", "properties": {"a": TEXT}, "oneOf": [{"properties": {"a": schema}}]}),
    "not-of-anyOf": lambda schema: _holding({**TEXT, "anyOf": [{"not": schema}]}),
    "metadata": lambda schema: {"type": "object", "properties": {"metadata": schema}},
    "in-metadata": lambda schema: {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": schema}}}},
    "labels": lambda schema: {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": schema}}}},
    "kind": lambda schema: {"type": "object", "properties": {"kind": schema}},
    "apiVersion": lambda schema: {"type": "object", "properties": {"apiVersion": schema}},
    "status": lambda schema: {"type": "object", "properties": {"status": schema}},
    "embedded": lambda schema: _holding(_embedded({"spec": schema})),
    "embedded-metadata": lambda schema: _holding(_embedded({"metadata": schema})),
    "embedded-name": lambda schema: _holding(_embedded({"metadata": {"type": "object", "properties": {"name": schema}}})),
    "embedded-finalizers": lambda schema: _holding(_embedded({"metadata": {"type": "object", "properties": {"finalizers": schema}}})),
    "embedded-labels": lambda schema: _holding(_embedded({"metadata": {"type": "object", "properties": {"labels": schema}}})),
    "embedded-kind": lambda schema: _holding(_embedded({"kind": schema})),
    "embedded-apiVersion": lambda schema: _holding(_embedded({"apiVersion": schema})),
    "key": lambda schema: _holding(_keyed({"a": schema})),
    "beside-key": lambda schema: _holding(_keyed({"a": TEXT, "b": schema})),
    "definitions": lambda schema: _holding({**TEXT, "definitions": {"a": schema}}),
    "dependencies": lambda schema: _holding({**TEXT, "dependencies": {"a": schema}}),
    "patternProperties": lambda schema: _holding({"type": "object", "patternProperties": {"a": schema}}),
    "items-of-many": lambda schema: _holding({"type": "array", "items": [TEXT, schema]}),
}


def _holding(schema: Schema) -> Schema:
    return {"type": "object", "properties": {"x": schema}}


def _embedded(properties: Schema) -> Schema:
    return {"type": "object", "x-kubernetes-embedded-resource": True, "properties": properties}


def _keyed(properties: Schema) -> Schema:
    items = {"type": "object", "required": ["a"], "properties": properties}
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": items}


#: what is put at every place
THINGS: dict[str, Schema] = {
    "empty": {},
    "text": TEXT,
    "text-default": {"type": "string", "default": "a"},
    "text-bad-default": {"type": "string", "default": 1},
    "text-empty-default": {"type": "string", "default": ""},
    "text-upper-default": {"type": "string", "default": "A b"},
    "text-default-of-format": {"type": "string", "format": "date", "default": "x"},
    "text-default-of-pattern": {"type": "string", "pattern": "^b$", "default": "a"},
    "text-default-of-enum": {"type": "string", "enum": ["b"], "default": "a"},
    "text-default-of-rule": {"type": "string", "default": "a", "x-kubernetes-validations": [{"rule": "self == 'b'", "message": "no"}]},
    "null-default": {"type": "string", "default": None},
    "null-default-nullable": {"type": "string", "default": None, "nullable": True},
    "nullable": {"type": "string", "nullable": True},
    "whole": {"type": "integer", "minimum": 1, "maximum": 0, "default": 5},
    "number-default-whole": {"type": "number", "default": 1},
    "whole-default-number": {"type": "integer", "default": 1.5},
    "whole-default-int32": {"type": "integer", "format": "int32", "default": 4294967296},
    "flag": {"type": "boolean", "default": "true"},
    "unknown-type": {"type": "strnig"},
    "null-type": {"type": "null"},
    "object": {"type": "object"},
    "object-default": {"type": "object", "properties": {"a": TEXT}, "default": {"a": "x"}},
    "object-default-unknown": {"type": "object", "properties": {"a": TEXT}, "default": {"a": "x", "b": {"c": 1}}},
    "object-default-unknown-kept": {
        "type": "object",
        "properties": {"a": TEXT},
        "x-kubernetes-preserve-unknown-fields": True,
        "default": {"b": 1},
    },
    "object-default-required": {"type": "object", "properties": {"a": TEXT}, "required": ["a"], "default": {}},
    "object-default-of-defaults": {"type": "object", "properties": {"a": {**TEXT, "default": 1}}, "default": {}},
    "object-preserving": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "object-not-preserving": {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
    "map": {"type": "object", "additionalProperties": TEXT, "default": {"a": "b"}},
    "map-bad-default": {"type": "object", "additionalProperties": TEXT, "default": {"a b": "b", "c": 1}},
    "map-inner-default": {"type": "object", "additionalProperties": {**TEXT, "default": "x"}},
    "map-and-properties": {"type": "object", "additionalProperties": TEXT, "properties": {"a": TEXT}},
    "map-atomic": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
    "map-closed": {"type": "object", "additionalProperties": False},
    "map-open": {"type": "object", "additionalProperties": True},
    "list": {"type": "array", "items": TEXT, "default": ["a"]},
    "list-bad-default": {"type": "array", "items": TEXT, "default": ["A b", 1]},
    "list-without-items": {"type": "array"},
    "list-of-nullable-set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "nullable": True}},
    "list-set-default": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT, "default": ["a", "a"]},
    "list-set-of-objects": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
    "list-set-of-lists": {
        "type": "array",
        "x-kubernetes-list-type": "set",
        "items": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
    },
    "list-map-without-keys": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
    "list-map-of-text": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": TEXT},
    "list-map-optional-key": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object", "properties": {"a": TEXT, "b": {**TEXT, "nullable": True, "default": "x"}}},
    },
    "list-map-key-object": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "object"}}},
    },
    "list-map-default": {**_keyed({"a": TEXT}), "default": [{"a": "x"}, {"a": "x"}]},
    "keys-without-map": {"type": "array", "items": TEXT, "x-kubernetes-list-map-keys": ["a"]},
    "unique": {"type": "array", "items": TEXT, "uniqueItems": True},
    "either": {"x-kubernetes-int-or-string": True},
    "either-typed": {"type": "string", "x-kubernetes-int-or-string": True},
    "either-spelled": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "either-spelled-all": {
        "x-kubernetes-int-or-string": True,
        "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "a"}],
    },
    "either-other-order": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}, {"type": "integer"}]},
    "either-default": {"x-kubernetes-int-or-string": True, "default": 1.5},
    "either-default-text": {"x-kubernetes-int-or-string": True, "default": "50%"},
    "preserving-untyped": {"x-kubernetes-preserve-unknown-fields": True},
    "preserving-untyped-default": {"x-kubernetes-preserve-unknown-fields": True, "default": [1, "a", {}]},
    "embedded": {"type": "object", "x-kubernetes-embedded-resource": True},
    "embedded-preserving": BASES["embedded"],
    "embedded-default": {**BASES["embedded"], "default": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A"}}},
    "embedded-bare-default": {**BASES["embedded"], "default": {"metadata": {"name": "a", "uid": 1}}},
    "embedded-text": {"type": "string", "x-kubernetes-embedded-resource": True},
    "rule": {"type": "object", "x-kubernetes-validations": [{"rule": "has(self.metadata)"}]},
    "rule-bad": {"type": "string", "x-kubernetes-validations": [{"rule": "self.x == 1"}]},
    "rule-old": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    "rule-dear": {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches(self) && self.contains(self)"}]},
    "any-of-types": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "any-of": {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "("}]},
    "all-of-structural": {"type": "object", "allOf": [{"properties": {"b": {"type": "string", "description": "d", "default": "x"}}}]},
    "not-nullable": {"type": "string", "not": {"nullable": True}},
    "bad-pattern": {"type": "string", "pattern": "["},
    "references": {"$ref": "#/definitions/a"},
    "described": {"type": "string", "title": "t", "description": "d", "example": "e", "externalDocs": {"url": "u"}},
    "limits": {"type": "string", "minLength": 5, "maxLength": 1},
    "enum-twice": {"type": "string", "enum": ["a", "a"]},
    "enum-mixed": {"type": "string", "enum": ["a", 1, None]},
    "enum-empty": {"type": "string", "enum": []},
}


def place_cases() -> Iterator[Case]:
    for place, around in PLACES.items():
        for thing, schema in THINGS.items():
            yield Case(name=f"at-{place}-{thing}", steps=(create(of_root(around(schema))),))
