"""Schemas of the definitions: what stands in them is what a custom object can be asked about."""

from __future__ import annotations

import random
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
FORMATS = (
    *("bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10"),
    *("isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "date-time"),
    *("k8s-short-name", "k8s-long-name", "bson-object-id", "credit-card", "hex-color"),
)
PATTERNS = (
    "^[a-z]+$",
    "b",
    r"^\d{2,3}$",
    r"^\p{Lu}\w*$",
    r"(?i)^abc$",
    r"^[^/\s]+(/[^/\s]+)?$",
    r"\bfoo\b",
    r"^(a|b){0,3}$",
    r"^.$",
    r"^\S+$",
    "^$",
    r"(?s)^a.b$",
    r"(?m)^x$",
    r"^[[:alpha:]]+$",
    r"^\x41",
    r"\.",
    r"^\pN+$",
    r"a$",
    r"\z",
    r"^[\w.-]*$",
)


def obj(properties: dict[str, Schema] | None = None, **more: Any) -> Schema:
    return {"type": "object", **({"properties": properties} if properties is not None else {}), **more}


def listed(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def entries(value: Schema, **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": value, **more}


def keyed(properties: dict[str, Schema], *keys: str, **more: Any) -> Schema:
    required = [key for key in keys if "default" not in properties[key]]
    item = {"type": "object", "required": required, "properties": properties} if required else {"type": "object", "properties": properties}
    return listed({**item, **more}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def ruled(schema: Schema, *rules: Any) -> Schema:
    return {**schema, "x-kubernetes-validations": [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]}


def random_schema(source: random.Random, depth: int = 3) -> Schema:
    """A structural schema of an object, as far as chance keeps to the rules; a server may refuse it."""
    names = source.sample("abcdefgh", source.randint(2, 5))
    made = obj({name: _random(source, depth - 1) for name in names})
    if source.random() < 0.3:
        made["required"] = source.sample(names, 1)
    if source.random() < 0.15:
        made["minProperties"] = source.randint(0, 2)
    if source.random() < 0.15:
        made["maxProperties"] = source.randint(2, 4)
    if source.random() < 0.15:
        made |= PRESERVE
    if source.random() < 0.2:
        made[source.choice(("anyOf", "oneOf", "allOf"))] = [
            {"required": [name]} if source.random() < 0.5 else {"properties": {name: _constraint(source, made["properties"][name])}}
            for name in source.sample(names, 2)
        ]
    if source.random() < 0.1:
        made["not"] = {"required": [source.choice(names)]}
    if source.random() < 0.1:
        made["x-kubernetes-map-type"] = source.choice(("atomic", "granular"))
    return made


def _constraint(source: random.Random, of: Schema) -> Schema:
    choices: dict[str, list[Schema]] = {
        "string": [{"minLength": 2}, {"pattern": source.choice(PATTERNS)}, {"enum": ["a", "b"]}, {"maxLength": 1}],
        "integer": [{"minimum": 2}, {"maximum": 5}, {"enum": [1, 2]}, {"multipleOf": 2}],
        "number": [{"minimum": 0.5}, {"maximum": 5}, {"multipleOf": 0.5}, {"enum": [1, 1.5]}],
        "array": [{"minItems": 1}, {"maxItems": 1}],
        "object": [{"minProperties": 1}, {"maxProperties": 1}],
    }
    return source.choice(choices.get(of.get("type", ""), [{}]))


def _random(source: random.Random, depth: int) -> Schema:
    kinds = ["string", "integer", "number", "boolean", "int-or-string", "free", "embedded"]
    if depth > 0:
        kinds += ["object", "array", "map", "keyed", "set", "object", "array"]
    made = _of_kind(source, source.choice(kinds), depth)
    if source.random() < 0.15:
        made["nullable"] = True
    if source.random() < 0.2 and made.get("type") in ("string", "integer", "number", "boolean"):
        fit: dict[str, list[Any]] = {"string": ["a", "", "abc", "10"], "integer": [0, 4], "number": [1, 2.5], "boolean": [True, False]}
        made["default"] = source.choice(fit[made["type"]])
    return made


def _of_kind(source: random.Random, kind: str, depth: int) -> Schema:
    made: Schema
    if kind in ("string", "integer", "number"):
        made = {"type": kind}
        while source.random() < 0.4:
            made |= _constraint(source, made)
        if kind == "string" and source.random() < 0.4:
            made["format"] = source.choice(FORMATS)
        if kind != "string" and source.random() < 0.3:
            made["format"] = source.choice(("int32", "int64") if kind == "integer" else ("float", "double"))
        if kind != "string" and source.random() < 0.2 and "minimum" in made:
            made["exclusiveMinimum"] = True
        if kind != "string" and source.random() < 0.2 and "maximum" in made:
            made["exclusiveMaximum"] = True
        return made
    if kind == "boolean":
        return {"type": "boolean"}
    if kind == "int-or-string":
        made = {"x-kubernetes-int-or-string": True}
        if source.random() < 0.3:
            made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        if source.random() < 0.3:
            made |= source.choice(({"pattern": "^[0-9]+%$"}, {"minimum": 2}, {"maxLength": 3}, {"enum": [1, "a"]}, {"format": "int32"}))
        return made
    if kind == "free":
        return source.choice((dict(PRESERVE), {"type": "object", **PRESERVE}))
    if kind == "embedded":
        made = {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE}
        if source.random() < 0.4:
            made["properties"] = {"spec": _random(source, depth - 1)}
        return made
    if kind == "object":
        return random_schema(source, depth)
    if kind == "map":
        made = entries(_random(source, depth - 1))
    elif kind == "keyed":
        fields = {"k": dict(TEXT), "l": source.choice((dict(TEXT), dict(WHOLE), dict(FLAG))), "v": _random(source, depth - 1)}
        keys = source.choice((["k"], ["k", "l"]))
        if source.random() < 0.4:
            fields[keys[-1]]["default"] = {"string": "d", "integer": 1, "boolean": True}[fields[keys[-1]]["type"]]
        made = keyed(fields, *keys)
    elif kind == "set":
        made = listed(source.choice((dict(TEXT), dict(WHOLE), dict(NUMBER), dict(FLAG))), **{"x-kubernetes-list-type": "set"})
    else:
        made = listed(_random(source, depth - 1))
        if source.random() < 0.3:
            made["x-kubernetes-list-type"] = "atomic"
    low, high = ("minProperties", "maxProperties") if kind == "map" else ("minItems", "maxItems")
    if source.random() < 0.2:
        made[low] = source.randint(0, 2)
    if source.random() < 0.2:
        made[high] = source.randint(1, 3)
    return made


_CONSTRAINTS = frozenset(
    (
        *(
            "minLength",
            "maxLength",
            "pattern",
            "format",
            "enum",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ),
        *("minItems", "maxItems", "minProperties", "maxProperties", "anyOf", "oneOf", "allOf", "not", "x-kubernetes-validations"),
        *("required", "default", "nullable"),
    )
)
_KEYED = frozenset(("required", "default"))


def loosened(schema: Schema, *, keyed: bool = False) -> Schema:
    """The same types with nothing said of values, but for what the items of keyed lists need."""
    made: Schema = {}
    for name, said in schema.items():
        if name in _CONSTRAINTS and not (keyed and name in _KEYED):
            continue
        if name == "properties":
            said = {field: loosened(sub, keyed=keyed) for field, sub in said.items()}
        elif name == "items":
            said = loosened(said, keyed=schema.get("x-kubernetes-list-type") == "map")
        elif name == "additionalProperties":
            said = loosened(said)
        made[name] = said
    return made
