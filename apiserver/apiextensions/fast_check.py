"""Two compiled yes-or-no questions about custom objects, each answered in some microseconds of native code.

``form_check``: would decoding leave the object exactly as it is? No unknown fields, no nulls that go away, whole numbers as integers,
metadata in its canonical form.

``value_check``: does every value fit its schema? A yes must be true; a no may be cautious, since ``values`` then looks closely. Rules
whose JSON schema counterpart means something else by a hair are answered with no, and where a no would turn into a yes, below ``not`` and
``oneOf``, the whole rule is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jsonschema_rs

from apiserver.apiextensions import formats, patterns
from apiserver.apiextensions.nodes import INT_OR_STRING, Node, Schema
from apiserver.apiextensions.values import FLOAT32_MAX, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from apiserver.machinery.types import Type
from apiserver.schemas import validators

#: the engine without back-tracking: long strings cost linear time
_LINEAR = jsonschema_rs.RegexOptions()
_NEVER: Schema = {"not": {}}

Check = Callable[[Any], bool]


def _compiled(schema: Schema, checks: Mapping[str, Callable[[str], bool]]) -> Check:
    # draft 4 is the last in which 1.0 is not an integer, and in which exclusiveMinimum is a boolean, as in definitions
    is_valid = jsonschema_rs.Draft4Validator(
        schema, formats=dict(checks), validate_formats=True, ignore_unknown_formats=False, pattern_options=_LINEAR
    ).is_valid

    def check(value: Any) -> bool:
        try:
            return bool(is_valid(value))
        except ValueError:  # nested deeper than the native code follows
            return False

    return check


# --- form ------------------------------------------------------------------------------------------------------------------------

_INTEGER: Schema = {"type": "integer", "minimum": INT64_MIN, "maximum": INT64_MAX}
_NUMBER: Schema = {"anyOf": [_INTEGER, {"type": "number", "not": {"multipleOf": 1}}]}
_SCALARS: dict[str, Schema] = {"string": {"type": "string"}, "boolean": {"type": "boolean"}, "integer": _INTEGER, "number": _NUMBER}
_REFERENCE = "#/definitions/"
#: a value of which nothing is known and nothing is pruned
_FREE: Schema = {
    "anyOf": [
        {"type": ["string", "boolean", "null"]},
        _NUMBER,
        {"type": "array", "items": {"$ref": _REFERENCE + "free"}},
        {"type": "object", "additionalProperties": {"$ref": _REFERENCE + "free"}},
    ]
}
#: a value of which nothing is known, so that every field in it goes
_BARE: Schema = {
    "anyOf": [
        {"type": ["string", "boolean", "null"]},
        _NUMBER,
        {"type": "array", "items": {"$ref": _REFERENCE + "bare"}},
        {"type": "object", "maxProperties": 0},
    ]
}
_FREE_REFERENCE: Schema = {"$ref": _REFERENCE + "free"}
_BARE_REFERENCE: Schema = {"$ref": _REFERENCE + "bare"}
_META_REFERENCE: Schema = {"$ref": _REFERENCE + "meta"}


def form_check(root: Node, meta: Type, *, pruned: bool) -> Check:
    """``meta`` is the type of ObjectMeta. Without ``pruned`` (``preserveUnknownFields``) unknown fields and nulls stay."""
    strict_meta = validators.strict_schema(meta)
    definitions = {**strict_meta.pop("definitions", {}), "free": _FREE, "bare": _BARE, "meta": strict_meta}
    schema = _form(root) if pruned else _unpruned(root)
    return _compiled({**schema, "definitions": definitions}, {})


def _form(node: Node) -> Schema:
    if node.preserve:
        return _named_form(node)
    scalar = _SCALARS.get(node.type)
    if scalar is not None:
        schema: Schema = scalar
    elif node.type == "array":
        schema = {"type": "array", "items": _BARE_REFERENCE if node.items is None else _form(node.items)}
    elif node.type == "object" or node.embedded:
        additional: Any = False
        if node.has_additional:
            additional = _BARE_REFERENCE if node.additional is None else _form(node.additional)
        schema = {"type": "object", "additionalProperties": additional, "properties": _fields(node)}
    elif node.int_or_string:
        schema = {"anyOf": [_SCALARS["string"], _INTEGER]}
    else:
        schema = _NEVER
    return {"anyOf": [schema, {"type": "null"}]} if node.nullable else schema


def _fields(node: Node) -> dict[str, Schema]:
    fields = {name: _form(field) for name, field in node.properties.items()}
    if node.embedded:
        fields |= {"apiVersion": _SCALARS["string"], "kind": _SCALARS["string"], "metadata": _META_REFERENCE}
    return fields


def _named_form(node: Node) -> Schema:
    """Where unknown fields stay. Of nothing in particular, anything may stand there, but null only where that is said."""
    if not node.properties and not node.has_additional and node.items is None and not node.embedded:
        return _FREE_REFERENCE if node.nullable else {"allOf": [_FREE_REFERENCE, {"not": {"type": "null"}}]}
    additional = _FREE_REFERENCE
    if node.has_additional:
        additional = _BARE_REFERENCE if node.additional is None else _form(node.additional)
    alternatives: list[Schema] = [{"type": "object", "additionalProperties": additional, "properties": _fields(node)}]
    if not node.embedded and node.type != "object":
        alternatives += [{"type": ["string", "boolean"]}, _NUMBER]
        alternatives.append({"type": "array", "items": _FREE_REFERENCE if node.items is None else _named_form(node.items)})
    if node.nullable:
        alternatives.append({"type": "null"})
    return {"anyOf": alternatives}


def _unpruned(root: Node) -> Schema:
    if root.embedded_below and any(field.embedded_below for field in root.properties.values()):
        return _NEVER
    fields = {"apiVersion": _SCALARS["string"], "kind": _SCALARS["string"], "metadata": _META_REFERENCE}
    return {"type": "object", "additionalProperties": _FREE_REFERENCE, "properties": fields}


# --- values ----------------------------------------------------------------------------------------------------------------------


def value_check(schema: Schema, minor: int) -> Check:
    """Of Kubernetes 1.``minor``, which decides the formats that are known."""
    builder = _ValueSchema(minor)
    built, _ = builder.build(schema)
    return _compiled(built, builder.checks)


class _ValueSchema:
    """``checks``: the string formats, and the patterns that need RE2 itself, by the names under which the built schema has them."""

    def __init__(self, minor: int) -> None:
        self._minor = minor
        self.checks: dict[str, Callable[[str], bool]] = {}

    def build(self, schema: Schema) -> tuple[Schema, bool]:
        """The JSON schema (draft 4), and whether it is exact: whether its no is true as well."""
        type_ = schema.get("type") or ""
        types = ["integer", "string"] if schema.get(INT_OR_STRING) else [type_] if type_ else []
        rules: list[Schema] = []
        out: Schema = {"type": types[0] if len(types) == 1 else types} if types else {}
        exact = self._add_scalar_rules(schema, types, out, rules)
        exact = self._add_container_rules(schema, out) and exact
        exact = self._add_combinations(schema, rules) and exact
        if rules:
            out["allOf"] = rules
        choices = schema.get("enum")
        if choices:
            choices = [choice for choice in choices if choice is not None]
            if not choices or any(isinstance(choice, (dict, list)) for choice in choices):
                return _NEVER, False
            out["enum"] = choices
            exact = False  # numbers are compared leniently
        elif schema.get("nullable") and out:
            out = {"anyOf": [out, {"type": "null"}]}
        return out, exact

    def _add_scalar_rules(self, schema: Schema, types: list[str], out: Schema, rules: list[Schema]) -> bool:
        exact = True
        for name in ("maxLength", "minLength"):
            if schema.get(name) is not None:
                out[name] = schema[name]
        if schema.get("pattern"):
            rules.append(self._pattern(schema["pattern"]))
        format_ = schema.get("format") or ""
        if format_ and formats.is_recognized("" if len(types) > 1 else "".join(types), format_, self._minor):
            exact = self._add_format(format_, types, rules)
        return self._add_number_rules(schema, types, out, rules) and exact

    def _add_number_rules(self, schema: Schema, types: list[str], out: Schema, rules: list[Schema]) -> bool:
        exact = "integer" not in types  # of floats near an integer nothing is said here
        is_integer = types == ["integer"]
        for name in ("minimum", "maximum", "multipleOf"):
            limit = schema.get(name)
            if limit is None:
                continue
            whole = float(limit).is_integer() and abs(limit) < 2**53
            if (is_integer or name == "multipleOf") and not (whole and (name != "multipleOf" or limit > 0)):
                rules.append({"not": {"type": "number"}})
                exact = False
            elif not whole and not is_integer:
                # whole numbers are compared with the bound cut to a whole one
                rules.append({"not": {"type": "integer"}})
                out[name] = limit
                exact = False
            else:
                out[name] = int(limit)
                if name == "multipleOf":
                    exact = False
                    if not is_integer:  # of floats too large to be exact upstream says that they are no multiple
                        rules.append({"anyOf": [{"not": {"type": "number"}}, {"type": "integer"}]})
        for name, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if schema.get(name) and bound in out:
                out[name] = True
        return exact

    def _pattern(self, pattern: str) -> Schema:
        if patterns.fault(pattern):
            return {"not": {"type": "string"}}
        rewritten = patterns.for_json_schema(pattern)
        if rewritten is not None:
            return {"pattern": rewritten}
        name = f"re2 {len(self.checks)}"
        self.checks[name] = lambda value: patterns.matches(pattern, value)
        return {"format": name}

    def _add_format(self, format_: str, types: list[str], rules: list[Schema]) -> bool:
        if format_ == "int32":
            rules.append({"minimum": INT32_MIN, "maximum": INT32_MAX})
        elif format_ == "float":
            rules.append({"minimum": -FLOAT32_MAX, "maximum": FLOAT32_MAX})
        check = formats.check_of(format_, self._minor)
        if check is not None:
            name = f"known {formats.normalized(format_)}"
            self.checks[name] = check
            rules.append({"format": name})
            if not types:
                rules.append({"type": ["string", "null"]})  # a format without a type is one
                return False
        return True

    def _add_container_rules(self, schema: Schema, out: Schema) -> bool:
        exact = True
        for name in ("minItems", "maxItems", "minProperties", "maxProperties"):
            if schema.get(name) is not None:
                out[name] = schema[name]
        if schema.get("required"):
            out["required"] = list(dict.fromkeys(schema["required"]))
        if schema.get("uniqueItems"):
            out["not"] = {"type": "array"}
            exact = False
        if isinstance(schema.get("items"), dict):
            out["items"], one = self.build(schema["items"])
            exact = exact and one
        if schema.get("properties"):
            out["properties"] = {}
            for field, sub in schema["properties"].items():
                out["properties"][field], one = self.build(sub)
                exact = exact and one
        additional = schema.get("additionalProperties")
        if additional is False:
            out["additionalProperties"] = False
        elif isinstance(additional, dict):
            out["additionalProperties"], one = self.build(additional)
            exact = exact and one
        return exact

    def _add_combinations(self, schema: Schema, rules: list[Schema]) -> bool:
        """A null is held against none of them."""
        found: list[Schema] = []
        exact = True
        for name in ("allOf", "anyOf", "oneOf"):
            built = [self.build(sub) for sub in schema.get(name) or ()]
            if not built:
                continue
            branches_exact = all(one for _, one in built)
            exact = exact and branches_exact
            found.append(_NEVER if name == "oneOf" and not branches_exact else {name: [sub for sub, _ in built]})
        if schema.get("not") is not None:
            sub, sub_exact = self.build(schema["not"])
            exact = exact and sub_exact
            found.append({"not": sub} if sub_exact else _NEVER)
        if found:
            nullable = schema.get("nullable") or not schema.get("type")
            rules.extend([{"anyOf": [{"type": "null"}, {"allOf": found}]}] if nullable else found)
        return exact
