"""Defaults of a structural schema, put where an object has nothing (apiextensions-apiserver ``schema/defaulting``)."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.apiextensions.nodes import Node

_CONTAINERS = (dict, list)


def default(value: Any, node: Node) -> None:
    """Changes ``value`` in place. A null counts as nothing unless the field is nullable; defaults are put in only below objects that are
    there, or that a default of their own has made."""
    if isinstance(value, dict):
        _default_object(value, node)
    elif isinstance(value, list) and node.items is not None:
        items = node.items
        for position, item in enumerate(value):
            if item is None and not items.nullable:
                value[position] = item = copy.deepcopy(items.default)
            if items.defaults_below and isinstance(item, _CONTAINERS):
                default(item, items)


def _default_object(value: dict[str, Any], node: Node) -> None:
    properties = node.properties
    for name, field in properties.items():
        if field.has_default and (name not in value or (value[name] is None and not field.nullable)):
            given = field.default
            value[name] = copy.deepcopy(given) if isinstance(given, _CONTAINERS) else given
        if field.defaults_below:
            inner = value.get(name)
            if isinstance(inner, _CONTAINERS):
                default(inner, field)
    additional = node.additional
    if additional is None or not (additional.has_default or additional.defaults_below):
        return
    for name, inner in value.items():
        if name in properties:
            continue
        if inner is None and not additional.nullable:
            value[name] = inner = copy.deepcopy(additional.default)
        if additional.defaults_below and isinstance(inner, _CONTAINERS):
            default(inner, additional)


def drop_nulls(value: Any, node: Node | None) -> None:
    """Takes out, in place, the nulls of fields that may not be null and have no default (Kubernetes: as if they had not been sent)."""
    if isinstance(value, dict):
        gone = []
        for name, inner in value.items():
            field = None if node is None else node.field(name)
            if inner is None:
                if field is not None and not field.nullable and not field.has_default:
                    gone.append(name)
            elif isinstance(inner, _CONTAINERS):
                drop_nulls(inner, field)
        for name in gone:
            del value[name]
    elif isinstance(value, list):
        items = None if node is None else node.items
        for inner in value:
            if isinstance(inner, _CONTAINERS):
                drop_nulls(inner, items)
