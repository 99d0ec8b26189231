"""The definitions, each of a kind of its own in the group ``custom.demo.test``."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.custom_objects.schemas import (
    FLAG,
    FORMATS,
    NUMBER,
    PATTERNS,
    PRESERVE,
    TEXT,
    WHOLE,
    Schema,
    entries,
    keyed,
    listed,
    loosened,
    obj,
    random_schema,
    ruled,
)

GROUP = "custom.demo.test"
#: a field of kinds that become strict, which tells whether they have
MARKER = "marker"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """``schemas``: by version, of which the first one is stored. ``more`` stands in every version, ``first`` in the first."""

    plural: str
    schemas: dict[str, Schema]
    namespaced: bool = True
    more: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.plural[0].upper() + self.plural[1:-1]

    def path(self, version: str = "v1") -> str:
        return f"/apis/{GROUP}/{version}/" + ("namespaces/default/" if self.namespaced else "") + self.plural

    def definition(self) -> dict[str, Any]:
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced" if self.namespaced else "Cluster",
                "names": {"plural": self.plural, "singular": self.plural[:-1], "kind": self.kind, "listKind": f"{self.kind}List"},
                "versions": [
                    {
                        "name": name,
                        "served": True,
                        "storage": position == 0,
                        "schema": {"openAPIV3Schema": schema},
                        **self.more,
                        **(self.first if position == 0 else {}),
                    }
                    for position, (name, schema) in enumerate(self.schemas.items())
                ],
            },
        }


STATUS: dict[str, Any] = {"subresources": {"status": {}}}
SCALE: dict[str, Any] = {
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
}

_VALUES = obj(
    {
        "text": {**TEXT, "minLength": 2, "maxLength": 5},
        "choice": {**TEXT, "enum": ["a", "b", ""]},
        "count": {**WHOLE, "minimum": 1, "maximum": 10},
        "small": {**WHOLE, "format": "int32"},
        "large": {**WHOLE, "format": "int64"},
        "even": {**WHOLE, "multipleOf": 2, "exclusiveMinimum": True, "minimum": 0},
        "ratio": {**NUMBER, "minimum": 0.5, "maximum": 2.5, "exclusiveMaximum": True},
        "single": {**NUMBER, "format": "float"},
        "double": {**NUMBER, "format": "double"},
        "step": {**NUMBER, "multipleOf": 0.1},
        "tenth": {**NUMBER, "multipleOf": 2.5},
        "numbers": {"type": "number", "enum": [1, 1.5, 100]},
        "flag": dict(FLAG),
        "port": {"x-kubernetes-int-or-string": True},
        "limit": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        },
        "maybe": {**TEXT, "nullable": True},
        "maybeobject": {**obj({"a": TEXT, "b": {**TEXT, "nullable": True}}), "nullable": True},
        "maybelist": {**listed({**WHOLE, "nullable": True}), "nullable": True},
        "list": listed(WHOLE, minItems=1, maxItems=3),
        "unique": listed(TEXT, **{"x-kubernetes-list-type": "set"}),
        "table": entries({**WHOLE, "maximum": 5}, minProperties=1, maxProperties=2),
        "deep": obj({"a": obj({"b": obj({"c": dict(WHOLE)}, required=["c"])}, required=["b"])}),
        "either": obj({"x": TEXT, "y": WHOLE}, oneOf=[{"required": ["x"]}, {"required": ["y"]}]),
        "any": obj({"x": TEXT, "y": WHOLE}, anyOf=[{"properties": {"x": {"minLength": 3}}}, {"properties": {"y": {"minimum": 3}}}]),
        "all": obj({"x": TEXT, "y": WHOLE}, allOf=[{"properties": {"x": {"pattern": "^a"}}}, {"required": ["y"]}]),
        "not": obj({"x": TEXT, "y": WHOLE}, **{"not": {"required": ["x", "y"]}}),
        "wild": dict(PRESERVE),
        "open": {**obj({"known": WHOLE, "inner": obj({"k": TEXT})}), **PRESERVE},
        "closed": obj({}),
        "bare": {"type": "object"},
    }
)
_FORMS = obj({f"f{name.replace('-', '')}{i}": {**TEXT, "format": name} for i, name in enumerate(FORMATS)})
_MATCHES = obj({f"p{i}": {**TEXT, "pattern": text} for i, text in enumerate(PATTERNS)})
_DEFAULTS = obj(
    {
        "a": {**WHOLE, "default": 1},
        "n": {**WHOLE, "default": 1, "nullable": True},
        "t": {**TEXT, "default": ""},
        "o": obj({"x": {**TEXT, "default": "X"}, "y": {**FLAG, "default": False}}, default={}),
        "p": obj({"x": {**TEXT, "default": "X"}, "y": {**NUMBER, "default": 1.5}}),
        "q": obj({"x": {**TEXT, "default": "X"}, "z": obj({"w": {**WHOLE, "default": 2}}, default={"w": 3})}, default={"x": "Y"}),
        "l": listed(obj({"x": {**WHOLE, "default": 7}, "y": TEXT}), default=[{"y": "d"}, {}]),
        "ln": listed({**WHOLE, "default": 5}),
        "lnn": listed({**WHOLE, "default": 5, "nullable": True}),
        "m": entries(obj({"x": {**WHOLE, "default": 7}})),
        "mn": entries({**TEXT, "default": "dm"}),
        "r": {**TEXT, "default": "given", "minLength": 3},
        "k": keyed({"name": TEXT, "port": {**WHOLE, "default": 80}, "v": {**TEXT, "default": "v"}}, "name", "port"),
        "e": {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE},
        "w": {**PRESERVE, "default": {"free": [1, {"a": None}]}},
        "u": {"x-kubernetes-int-or-string": True, "default": 5},
    },
    required=["r"],
)
_EMBEDDED = obj(
    {
        "free": {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE},
        "known": obj({"spec": obj({"a": WHOLE}), "kind": {**TEXT, "enum": ["Pod", "Foo"]}}, **{"x-kubernetes-embedded-resource": True}),
        "list": listed({"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE}),
        "map": entries({"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE}),
        "named": obj(
            {"metadata": obj({"name": {**TEXT, "pattern": "^x"}}), "data": entries(TEXT)},
            **{"x-kubernetes-embedded-resource": True},
        ),
    }
)
_LISTS = obj(
    {
        "set": listed(TEXT, **{"x-kubernetes-list-type": "set"}),
        "numbers": listed(NUMBER, **{"x-kubernetes-list-type": "set"}),
        "atomicset": listed(obj({"a": WHOLE}, **{"x-kubernetes-map-type": "atomic"}), **{"x-kubernetes-list-type": "set"}),
        "atomic": listed(obj({"a": TEXT}), **{"x-kubernetes-list-type": "atomic"}),
        "plain": listed(obj({"a": TEXT})),
        "keyed": keyed({"name": TEXT, "v": TEXT, "inner": obj({"p": TEXT, "q": WHOLE})}, "name"),
        "ports": keyed({"port": WHOLE, "protocol": {**TEXT, "default": "TCP"}, "name": TEXT}, "port", "protocol"),
        "flags": keyed({"on": FLAG, "tags": listed(TEXT, **{"x-kubernetes-list-type": "set"}), "n": NUMBER}, "on"),
        "nested": keyed({"id": WHOLE, "sub": keyed({"id": TEXT, "w": {**WHOLE, "default": 1}}, "id")}, "id"),
        "granular": obj({"a": TEXT, "b": obj({"c": TEXT})}, **{"x-kubernetes-map-type": "granular"}),
        "whole": obj({"a": TEXT, "b": obj({"c": TEXT})}, **{"x-kubernetes-map-type": "atomic"}),
        "labels": entries(TEXT),
        "boxes": entries(obj({"a": TEXT, "l": listed(TEXT, **{"x-kubernetes-list-type": "set"})})),
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", **PRESERVE},
        "replicas": {**WHOLE, "format": "int32"},
        "size": {**WHOLE, "default": 3},
        "null": {**TEXT, "nullable": True},
    }
)
_SHORT: Schema = {**TEXT, "maxLength": 20}
_RULES = obj(
    {
        "low": dict(WHOLE),
        "high": dict(WHOLE),
        "fixed": ruled(_SHORT, {"rule": "self == oldSelf", "message": "fixed is immutable"}),
        "grows": ruled(WHOLE, {"rule": "self >= oldSelf", "messageExpression": "oldSelf > 5 ? 'from above five' : 'from below'"}),
        "once": ruled(
            _SHORT,
            {
                "rule": "oldSelf.hasValue() || self != 'late'",
                "optionalOldSelf": True,
                "message": "not late at first",
                "reason": "FieldValueForbidden",
            },
        ),
        "when": {**_SHORT, "format": "date-time"},
        "lasts": ruled({**_SHORT, "format": "duration"}, "self <= duration('1h')"),
        "day": {**_SHORT, "format": "date"},
        "bytes": ruled({**_SHORT, "format": "byte"}, "size(self) < 5"),
        "port": ruled({"x-kubernetes-int-or-string": True}, "type(self) == int ? self > 0 : self.endsWith('%')"),
        "quantity": ruled(_SHORT, "isQuantity(self) && quantity(self).isGreaterThan(quantity('1Ki'))"),
        "ip": ruled(_SHORT, {"rule": "isIP(self) && ip(self).family() == 4", "reason": "FieldValueRequired"}),
        "url": ruled(_SHORT, "url(self).getScheme() == 'https'"),
        "tags": ruled(
            listed(_SHORT, maxItems=5, **{"x-kubernetes-list-type": "set"}),
            {"rule": "self.all(t, t.startsWith('t'))", "messageExpression": "'bad: ' + self[0]"},
            {"rule": "oldSelf.all(t, t in self)", "message": "tags stay", "reason": "FieldValueDuplicate"},
        ),
        "items": {
            **keyed(
                {"name": _SHORT, "value": ruled(WHOLE, "self < 10", {"rule": "self >= oldSelf", "message": "value shrinks"})},
                "name",
            ),
            "maxItems": 5,
        },
        "plain": listed(ruled(obj({"a": WHOLE, "b": WHOLE}), {"rule": "self.a <= self.b", "fieldPath": ".b"}), maxItems=5),
        "table": entries(ruled(WHOLE, "self > 0", {"rule": "self != oldSelf + 1", "message": "no step of one"}), maxProperties=5),
        "box": ruled(
            obj({"x": {**WHOLE, "default": 1}, "y": {**_SHORT, "nullable": True}, "z": ruled(_SHORT, "self.matches('^[a-z]*$')")}),
            {"rule": "!has(self.y) || self.y != 'bad'", "fieldPath": ".y", "reason": "FieldValueInvalid"},
            {"rule": "self.x / (self.x - 5) < 100"},
        ),
        "free": {"type": "object", **PRESERVE},
        "embedded": ruled(
            {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE},
            {"rule": "self.metadata.name.startsWith('x')", "message": "embedded name"},
        ),
        "costly": listed(listed({**TEXT, "maxLength": 10}, maxItems=20), maxItems=20),
    },
    **{
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
                "messageExpression": "'%d > %d'.format([self.low, self.high])",
            },
            {"rule": "!has(oldSelf.high) || has(self.high)", "message": "high stays", "fieldPath": ".high"},
            {"rule": "!has(self.when) || self.when < timestamp('2030-01-01T00:00:00Z')", "message": "when"},
        ]
    },
)
_STATUS = obj(
    {
        "phase": {**TEXT, "enum": ["Pending", "Ready"]},
        "replicas": {**WHOLE, "format": "int32"},
        "selector": dict(TEXT),
        "conditions": keyed({"type": TEXT, "status": TEXT, "at": {**TEXT, "format": "date-time"}}, "type", required=["type", "status"]),
        "seen": listed(TEXT, **{"x-kubernetes-list-type": "set"}),
    }
)


def _whole(spec: Schema, **more: Any) -> Schema:
    return obj({"spec": spec, "status": _STATUS}, **more)


KINDS: tuple[Kind, ...] = (
    Kind(plural="values", schemas={"v1": _whole(_VALUES)}, more=SCALE),
    Kind(plural="forms", schemas={"v1": _whole(obj({"forms": _FORMS, "matches": _MATCHES}))}),
    Kind(plural="defaults", schemas={"v1": _whole(_DEFAULTS)}, more=STATUS),
    Kind(plural="embeds", schemas={"v1": _whole(_EMBEDDED)}),
    Kind(plural="lists", schemas={"v1": _whole(_LISTS)}, more=SCALE),
    Kind(
        plural="rules",
        schemas={
            "v1": _whole(
                _RULES,
                **{
                    "x-kubernetes-validations": [
                        {"rule": "self.metadata.name.size() < 40", "message": "long name"},
                        {"rule": "!has(self.status) || !has(self.status.phase) || has(self.spec)", "message": "a phase needs a spec"},
                    ]
                },
            )
        },
        more=STATUS,
    ),
    Kind(plural="globals", namespaced=False, schemas={"v1": {**obj({"spec": obj({"a": WHOLE}), "data": entries(TEXT)}), **PRESERVE}}),
    Kind(
        plural="pairs",
        schemas={
            "v1": obj({"spec": obj({"color": TEXT, "n": {**WHOLE, "default": 1}, "old": TEXT, "keep": obj({"a": WHOLE})})}),
            "v2": obj({"spec": obj({"color": {**TEXT, "minLength": 2}, "n": {**WHOLE, "default": 2}, "new": TEXT, "flag": FLAG})}),
        },
        first={"selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.n"}]},
        more={
            "additionalPrinterColumns": [
                {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                {"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ],
        },
    ),
)


def random_kind(seed: int) -> Kind:
    """One with a random schema, which a server may refuse."""
    source = random.Random(f"schema {seed}")
    return Kind(plural=f"random{seed}s", schemas={"v1": obj({"spec": random_schema(source), "status": random_schema(source, 1)})})


def kind_to_tighten(seed: int) -> tuple[Kind, Kind]:
    """A kind whose schema says nothing of values, and what it is to become."""
    source = random.Random(f"tighten {seed}")
    spec = source.choice((_VALUES, _RULES, _LISTS, _FORMS, _DEFAULTS, _EMBEDDED, random_schema(source), random_schema(source)))
    schema = _whole(spec)
    schema["properties"] |= {MARKER: {**TEXT, "enum": ["tight"]}}
    more = source.choice((STATUS, {}))
    plural = f"ratchet{seed}s"
    return Kind(plural=plural, schemas={"v1": loosened(schema)}, more=more), Kind(plural=plural, schemas={"v1": schema}, more=more)
