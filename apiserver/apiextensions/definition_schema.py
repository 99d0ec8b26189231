"""The rules for every schema in a definition, whether structural or not: what is not supported, where defaults may stand, list and map
types, the form of CEL rules (apiextensions-apiserver ``validation.go``)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apiserver.apiextensions import field_paths, go_form
from apiserver.apiextensions.nodes import (
    EMBEDDED,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    META_FIELDS,
    PRESERVE,
    RULES,
    Node,
    Schema,
)
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError, child, forbidden, invalid, key, not_supported, required

if TYPE_CHECKING:
    from apiserver.apiextensions.rules.definition_rules import RulePlace

Errors = list[FieldError]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NEWLINE = re.compile("[\n\r]").search
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOptions:
    """What an update may still do because the stored definition already does it."""

    require_valid_types: bool = True
    require_atomic_sets: bool = True
    require_good_list_keys: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """``no_defaults``: why no default may stand here, "" where it may. ``inside_meta``: in metadata, apiVersion or kind of an object.
    ``rules``: what the costs of rules depend on, None where rules are not looked at. ``uncorrelated``: the path of the list around this
    whose items are not known again after a change."""

    no_defaults: str = ""
    inside_meta: bool = False
    rules: RulePlace | None = None
    uncorrelated: str | None = None


@dataclass(slots=True)
class _Walk:
    options: SchemaOptions
    errors: Errors = field(default_factory=list)
    rule_errors: Errors = field(default_factory=list)


def validate(schema: Schema, path: str, options: SchemaOptions, rules: RulePlace | None = None) -> Errors:
    """``rules``: the place of the root for the check of what rules mean, None where they are not to be compiled."""
    walk = _Walk(options)
    _validate(walk, schema, path, _Place(rules=rules), is_root=True)
    return walk.errors + walk.rule_errors


def _validate(walk: _Walk, schema: Schema, path: str, place: _Place, *, is_root: bool = False) -> None:
    before = len(walk.errors)
    _standard(walk, schema, path, place)
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        walk.errors.append(forbidden(child(path, "uniqueItems"), detail))
    _structure(walk, schema, path, place, is_root)
    restricted = place if place.rules is None else dataclasses.replace(place, rules=None)
    for sub, at in _restricting(schema, path):
        _validate(walk, sub, at, restricted)
    _items(walk, schema, path, place)
    for name, dependency in (schema.get("dependencies") or {}).items():
        if isinstance(dependency, dict):
            _validate(walk, dependency, key(child(path, "dependencies"), name), restricted)
    if schema.get(PRESERVE) is False:
        walk.errors.append(invalid(child(path, PRESERVE), False, "must be true or undefined"))
    _map_type(walk, schema, path)
    _list_type(walk, schema, path)
    if walk.options.require_good_list_keys:
        walk.errors += list_key_faults(schema, path)
    said = schema.get(RULES) or ()
    for i, rule in enumerate(said):
        _rule(walk, schema, rule, field_errors.index(child(path, RULES), i))
    # a schema with faults, here or below, is not read as types, and what rules mean is not looked at
    if said and place.rules is not None and len(walk.errors) == before:
        from apiserver.apiextensions.rules import definition_rules

        walk.rule_errors += definition_rules.check(schema, path, place.rules, place.uncorrelated)


def _below(place: _Place, schema: Schema) -> _Place:
    return place if place.rules is None else dataclasses.replace(place, rules=place.rules.below(schema))


def _standard(walk: _Walk, schema: Schema, path: str, place: _Place) -> None:
    type_ = schema.get("type") or ""
    if walk.options.require_valid_types and type_ and type_ not in TYPES:
        walk.errors.append(not_supported(child(path, "type"), type_, list(TYPES)))
    if schema.get("default") is not None and place.no_defaults:
        walk.errors.append(forbidden(child(path, "default"), f"must not be set {place.no_defaults}"))
    for name in _UNSUPPORTED:
        said = schema.get(name)
        if said is not None and (said or name in ("additionalItems", "dependencies", "$ref")):
            walk.errors.append(forbidden(child(path, name), f"{name} is not supported"))
    if type_ == "null":
        walk.errors.append(forbidden(child(path, "type"), "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list) and schema["items"]:
        walk.errors.append(forbidden(child(path, "items"), "items must be a schema object and not an array"))
    if place.inside_meta and schema.get(EMBEDDED):
        walk.errors.append(forbidden(child(path, EMBEDDED), "must not be used inside of resource meta"))


def _structure(walk: _Walk, schema: Schema, path: str, place: _Place, is_root: bool) -> None:
    properties: dict[str, Schema] = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    inner = _below(place, schema)
    if additional is not None:
        at = child(path, "additionalProperties")
        if properties and additional is not True:
            walk.errors.append(forbidden(at, "additionalProperties and properties are mutual exclusive"))
        if isinstance(additional, dict):
            below = inner
            if place.inside_meta:
                below = dataclasses.replace(inner, no_defaults="inside additionalProperties applying to object metadata")
            _validate(walk, additional, at, below)
    for name, sub in properties.items():
        below = inner
        if name in META_FIELDS and (is_root or schema.get(EMBEDDED)):
            below = dataclasses.replace(inner, inside_meta=True)
            if is_root:
                below = dataclasses.replace(below, no_defaults=f"in top-level {name}")
        _validate(walk, sub, key(child(path, "properties"), name), below)


def _restricting(schema: Schema, path: str) -> Iterator[tuple[Schema, str]]:
    if schema.get("not") is not None:
        yield schema["not"], child(path, "not")
    for name in ("allOf", "oneOf", "anyOf"):
        for i, sub in enumerate(schema.get(name) or ()):
            yield sub, field_errors.index(child(path, name), i)
    for name, sub in (schema.get("definitions") or {}).items():
        yield sub, key(child(path, "definitions"), name)


def _items(walk: _Walk, schema: Schema, path: str, place: _Place) -> None:
    items = schema.get("items")
    if items is None:
        return
    place = _below(place, schema)
    if schema.get(LIST_TYPE) != "map" and place.uncorrelated is None:
        place = dataclasses.replace(place, uncorrelated=path)
    if isinstance(items, dict):
        _validate(walk, items, child(path, "items"), place)
    elif isinstance(items, list):
        for i, sub in enumerate(items):
            _validate(walk, sub, field_errors.index(child(path, "items"), i), place)


# --- x-kubernetes-map-type, x-kubernetes-list-type ---------------------------------------------------------------------------------


def _map_type(walk: _Walk, schema: Schema, path: str) -> None:
    said = schema.get(MAP_TYPE)
    if said is None:
        return
    _wants_type(walk, schema, path, "object", MAP_TYPE)
    if said not in ("atomic", "granular"):
        walk.errors.append(not_supported(child(path, MAP_TYPE), said, ["atomic", "granular"]))


def _wants_type(walk: _Walk, schema: Schema, path: str, wanted: str, because: str) -> bool:
    type_, detail = schema.get("type") or "", f"must be {wanted} if {because} is specified"
    if type_ == wanted:
        return True
    at = child(path, "type")
    walk.errors.append(invalid(at, type_, detail) if type_ else required(at, detail))
    return False


def _list_type(walk: _Walk, schema: Schema, path: str) -> None:
    said, keys, items = schema.get(LIST_TYPE), schema.get(LIST_MAP_KEYS) or [], schema.get("items")
    at = child(path, LIST_TYPE)
    if said is not None and _wants_type(walk, schema, path, "array", LIST_TYPE):
        if walk.options.require_atomic_sets and said == "set" and isinstance(items, dict):
            walk.errors += set_item_faults(items, child(path, "items"))
    if said is not None and said not in ("atomic", "set", "map"):
        walk.errors.append(not_supported(at, said, ["atomic", "set", "map"]))
    if keys and said != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        walk.errors.append(required(at, detail) if said is None else invalid(at, said, detail))
    if said != "map":
        return
    if not keys:
        walk.errors.append(required(child(path, LIST_MAP_KEYS), "must not be empty if x-kubernetes-list-type is map"))
    at = child(path, "items")
    if items is None:
        walk.errors.append(required(at, "must have a schema if x-kubernetes-list-type is map"))
    elif not isinstance(items, dict):
        walk.errors.append(invalid(at, go_form.items(items), "must only have a single schema if x-kubernetes-list-type is map"))
    elif items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        walk.errors.append(invalid(child(at, "type"), items.get("type") or "", detail))
    else:
        _list_keys(walk, keys, items, path)


def _list_keys(walk: _Walk, keys: list[str], items: Schema, path: str) -> None:
    properties, seen = items.get("properties") or {}, set()
    for name in keys:
        if name not in properties:
            walk.errors.append(invalid(child(path, LIST_MAP_KEYS), keys, "entries must all be names of item properties"))
        elif properties[name].get("type") in ("array", "object"):
            at = child(key(child(path, "items", "properties"), name), "type")
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            walk.errors.append(invalid(at, items.get("type") or "", detail))
        if name in seen:
            walk.errors.append(invalid(child(path, LIST_MAP_KEYS), keys, "must not contain duplicate entries"))
        seen.add(name)


def set_item_faults(items: Schema, path: str) -> Errors:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
        return [invalid(child(path, LIST_TYPE), items[LIST_TYPE], detail)]
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        return [invalid(child(path, MAP_TYPE), items.get(LIST_TYPE), detail)]
    return []


def list_key_faults(schema: Schema, path: str) -> Errors:
    """Items of sets and keyed lists are never null, and each has all of its keys."""
    said, items = schema.get(LIST_TYPE), schema.get("items")
    if said not in ("set", "map") or not isinstance(items, dict):
        return []
    errors: Errors = []
    at = child(path, "items")
    if items.get("nullable"):
        errors.append(forbidden(child(at, "nullable"), f"cannot be nullable when x-kubernetes-list-type is {said}"))
    if said == "set":
        return errors
    properties, always = items.get("properties") or {}, items.get("required") or ()
    why = "this property is in x-kubernetes-list-map-keys, so it"
    for name in schema.get(LIST_MAP_KEYS) or ():
        sub = properties.get(name)
        if sub is None:
            continue
        named = key(child(at, "properties"), name)
        if name not in always and sub.get("default") is None:
            errors.append(required(child(named, "default"), f"{why} must have a default or be a required property"))
        if sub.get("nullable"):
            errors.append(forbidden(child(named, "nullable"), f"{why} cannot be nullable"))
    return errors


# --- x-kubernetes-validations ------------------------------------------------------------------------------------------------------


def _rule(walk: _Walk, schema: Schema, rule: dict[str, Any], path: str) -> None:
    """The form of a rule; what it means is looked at by who compiles it."""
    text, message, expression = rule.get("rule") or "", rule.get("message") or "", rule.get("messageExpression") or ""
    errors = walk.errors
    if not text.strip():
        errors.append(required(child(path, "rule"), "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid(child(path, "message"), message, "must be non-empty if specified"))
    elif _NEWLINE(message.strip()):
        errors.append(invalid(child(path, "message"), message, "must not contain line breaks"))
    elif _NEWLINE(text.strip()) and not message.strip():
        errors.append(required(child(path, "message"), "message must be specified if rule contains line breaks"))
    if expression and not expression.strip():
        errors.append(required(child(path, "messageExpression"), "messageExpression must be non-empty if specified"))
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        errors.append(not_supported(child(path, "reason"), reason, list(REASONS)))
    where = rule.get("fieldPath") or ""
    at = child(path, "fieldPath")
    if where and not where.strip():
        errors.append(invalid(at, where, "must be non-empty if specified"))
    if _NEWLINE(where):
        errors.append(invalid(at, where, "must not contain line breaks"))
    if where and not _is_field(schema, where):
        errors.append(invalid(at, where, "must be a valid path"))


def _is_field(schema: Schema, path: str) -> bool:
    try:
        field_paths.resolve(path, Node(schema))
    except field_paths.FieldPathError:
        return False
    return True


# --- all schemas of a definition -----------------------------------------------------------------------------------------------------


def any_schema(schema: Schema | None, predicate: Callable[[Schema], bool]) -> bool:
    """Whether a schema, or one in it, is such a one."""
    return schema is not None and any(map(predicate, walk_schemas(schema)))


#: what is below a schema, in the order in which it is walked: one schema or several, a list or a mapping of them
_BELOW = (
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "properties",
    "additionalProperties",
    "patternProperties",
    "additionalItems",
    "definitions",
    "dependencies",
)
_MAPPINGS = frozenset(("properties", "patternProperties", "definitions", "dependencies"))
_BELOW_SET = frozenset(_BELOW)


def walk_schemas(schema: Schema) -> Iterator[Schema]:
    """A schema and all in it, depth first. Definitions have thousands, most of them with nothing below."""
    waiting = [schema]
    while waiting:
        current = waiting.pop()
        yield current
        if _BELOW_SET.isdisjoint(current):
            continue
        below: list[Any] = []
        for name in _BELOW:
            found = current.get(name)
            if found is None:
                continue
            if name in _MAPPINGS:
                below += found.values()
            elif isinstance(found, list):
                below += found
            else:
                below.append(found)
        waiting += [sub for sub in reversed(below) if isinstance(sub, dict)]
