"""Whether a schema is structural: every value has a type, and what restricts values says nothing of their structure
(apiextensions-apiserver ``schema/validation.go`` and ``schema/complete.go``).

A structural schema is read as a tree by types, properties and items; ``allOf``, ``anyOf``, ``oneOf`` and ``not`` only restrict what this
tree has already named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.apiextensions import go_form, patterns
from apiserver.apiextensions.nodes import EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE, RULES, Schema
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError, child, forbidden, invalid, key, required

Errors = list[FieldError]

_ROOT, _ITEM, _FIELD = "root", "item", "field"
_WITHOUT_TYPE = {
    _ROOT: "must not be empty at the root",
    _ITEM: "must not be empty for specified array items",
    _FIELD: "must not be empty for specified object fields",
}
_EITHER = [{"type": "integer"}, {"type": "string"}]
_NOT_SUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
#: what a schema below allOf, anyOf, oneOf and not may not say, and in which words
_FORBIDDEN_NESTED = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_MAP_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)
#: said of the metadata of a kind they do no harm
_HARMLESS_IN_METADATA = frozenset({"type", "default", "properties"})
#: a structural schema does not tell these, when empty, from ones that are not there
_NOTHING_WHEN_EMPTY = frozenset({"items", "enum", "allOf", "anyOf", "oneOf", "patternProperties", "dependencies", "definitions", "$ref"})


def unsupported(schema: Schema) -> str:
    """Why no structural schema can be made at all; "" where one can."""
    for sub in _all(schema):
        for name in _NOT_SUPPORTED:
            if sub.get(name) not in (None, "", {}, []) or (name == "additionalItems" and sub.get(name) is not None):
                return f"OpenAPIV3Schema '{name.removeprefix('$') if name == '$schema' else name}' is not supported"
        if isinstance(sub.get("items"), list) and sub["items"]:
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        if sub.get(PRESERVE) is False:
            return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return ""


def _all(schema: Schema) -> Iterator[Schema]:
    """The schema and all below it that a structural schema is made of."""
    yield schema
    for sub in (schema.get("items"), schema.get("additionalProperties"), schema.get("not")):
        if isinstance(sub, dict):
            yield from _all(sub)
    for name in ("allOf", "anyOf", "oneOf"):
        for sub in schema.get(name) or ():
            yield from _all(sub)
    for sub in (schema.get("properties") or {}).values():
        yield from _all(sub)


def validate(schema: Schema, path: str) -> Errors:
    """Everything that keeps the schema from being structural, in the order of the texts."""
    errors: Errors = []
    _invariants(schema, _ROOT, path, errors)
    _completeness(schema, schema, path, path, errors)
    return sorted(errors, key=FieldError.text)


# --- the tree --------------------------------------------------------------------------------------------------------------------


def _invariants(schema: Schema, level: str, path: str, errors: Errors) -> None:
    type_ = schema.get("type") or ""
    items = schema.get("items")
    if type_ == "array" and not items and not isinstance(items, dict):
        errors.append(required(child(path, "items"), "must be specified"))
    if isinstance(items, dict):
        _invariants(items, _ITEM, child(path, "items"), errors)
    properties: dict[str, Schema] = schema.get("properties") or {}
    for name, sub in properties.items():
        _invariants(sub, _FIELD, key(child(path, "properties"), name), errors)
    additional = schema.get("additionalProperties")
    if additional is not None:
        at = child(path, "additionalProperties")
        if level == _ROOT:
            errors.append(forbidden(at, "must not be used at the root"))
        if isinstance(additional, dict):
            _invariants(additional, _FIELD, at, errors)
    either, preserves, embedded = bool(schema.get(INT_OR_STRING)), bool(schema.get(PRESERVE)), bool(schema.get(EMBEDDED))
    for name, said in ((PRESERVE, preserves), (EMBEDDED, embedded)):
        if either and said:
            errors.append(invalid(child(path, name), True, "must be false if x-kubernetes-int-or-string is true"))
    _restrictions(schema, _is_either(schema), _begins_with_either(schema), path, errors)
    at = child(path, "type")
    if embedded and type_ != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(at, type_, detail) if type_ else required(at, detail))
    elif not type_ and not either and not preserves:
        errors.append(required(at, _WITHOUT_TYPE[level]))
    if embedded and additional is not None:
        errors.append(forbidden(child(path, "additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"))
    if level == _ROOT and type_ and type_ != "object":
        errors.append(invalid(at, type_, "must be object at the root"))
    _meta_fields(properties, level, level == _ROOT or embedded, child(path, "properties"), errors)
    if embedded and not preserves and not properties:
        detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        errors.append(required(child(path, "properties"), detail))


def _meta_fields(properties: dict[str, Schema], level: str, is_object: bool, path: str, errors: Errors) -> None:
    """``kind``, ``apiVersion`` and ``metadata`` of the kind or of an embedded object."""
    for name in ("kind", "apiVersion"):
        if is_object and name in properties and properties[name].get("type") != "string":
            errors.append(invalid(child(key(path, name), "type"), properties[name].get("type") or "", "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return
    at = key(path, "metadata")
    if is_object and metadata.get("type") != "object":
        errors.append(invalid(child(at, "type"), metadata.get("type") or "", "must be object"))
    if level == _ROOT:
        named = set(metadata.get("properties") or ())
        said = {name for name in go_form.said(metadata) - _HARMLESS_IN_METADATA if metadata[name] or name not in _NOTHING_WHEN_EMPTY}
        if said or not named <= {"name", "generateName"}:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(forbidden(at, detail))


def _is_either(schema: Schema) -> bool:
    return bool(schema.get("anyOf") == _EITHER)


def _begins_with_either(schema: Schema) -> bool:
    all_of: list[Schema] = schema.get("allOf") or []
    return bool(all_of) and bool(all_of[0].get("anyOf") == _EITHER)


# --- what only restricts ---------------------------------------------------------------------------------------------------------


def _restrictions(schema: Schema, skip_any_of: bool, skip_first_of_all: bool, path: str, errors: Errors) -> None:
    if not skip_any_of:
        for i, sub in enumerate(schema.get("anyOf") or ()):
            _nested(sub, False, field_errors.index(child(path, "anyOf"), i), errors)
    for i, sub in enumerate(schema.get("allOf") or ()):
        _nested(sub, skip_first_of_all and i == 0, field_errors.index(child(path, "allOf"), i), errors)
    for i, sub in enumerate(schema.get("oneOf") or ()):
        _nested(sub, False, field_errors.index(child(path, "oneOf"), i), errors)
    if schema.get("not") is not None:
        _nested(schema["not"], False, child(path, "not"), errors)
    pattern = schema.get("pattern")
    if pattern and (fault := patterns.fault(pattern)):
        errors.append(invalid(child(path, "pattern"), pattern, f"must be a valid regular expression, but isn't: {fault}"))


def _nested(schema: Schema, skip_any_of: bool, path: str, errors: Errors) -> None:
    _restrictions(schema, skip_any_of, False, path, errors)
    if isinstance(schema.get("items"), dict):
        _nested(schema["items"], False, child(path, "items"), errors)
    properties = schema.get("properties") or {}
    for name, sub in properties.items():
        _nested(sub, False, key(child(path, "properties"), name), errors)
    for name, detail in _FORBIDDEN_NESTED:
        if schema.get(name) not in (None, "", False, []) or (name in (LIST_TYPE, MAP_TYPE, "default") and schema.get(name) is not None):
            errors.append(forbidden(child(path, name), detail))
    if schema.get("additionalProperties") not in (None, False):
        errors.append(forbidden(child(path, "additionalProperties"), "must be undefined to be structural"))
    if "metadata" in properties:
        errors.append(forbidden(key(child(path, "properties"), "metadata"), "must not be specified in a nested context"))


def _completeness(restricting: Schema, tree: Schema, tree_path: str, path: str, errors: Errors) -> None:
    """Whatever a restriction speaks of, the tree has named."""
    for sub, at in _branches(restricting, path):
        _nested_completeness(sub, tree, tree_path, at, errors)


def _branches(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    if schema.get("not") is not None:
        yield schema["not"], child(path, "not")
    for name in ("allOf", "anyOf", "oneOf"):
        for i, sub in enumerate(schema.get(name) or ()):
            yield sub, field_errors.index(child(path, name), i)


def _nested_completeness(restricting: Schema, tree: Any, tree_path: str, path: str, errors: Errors) -> None:
    if not isinstance(tree, dict):
        errors.append(required(tree_path, f"because it is defined in {path}"))
        return
    _completeness(restricting, tree, tree_path, path, errors)
    if isinstance(restricting.get("items"), dict):
        _nested_completeness(restricting["items"], tree.get("items"), child(tree_path, "items"), child(path, "items"), errors)
    named = tree.get("properties") or {}
    for name, sub in (restricting.get("properties") or {}).items():
        tree_at, at = key(child(tree_path, "properties"), name), key(child(path, "properties"), name)
        _nested_completeness(sub, named.get(name), tree_at, at, errors)
