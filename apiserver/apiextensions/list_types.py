"""Sets and keyed lists have no item twice (apiextensions-apiserver ``schema/listtype``)."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.apiextensions.embedded import sorted_keys
from apiserver.apiextensions.nodes import Node
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError

_CONTAINERS = (dict, list)


def validate(value: Any, node: Node, path: str = "") -> list[FieldError]:
    errors: list[FieldError] = []
    _validate(value, node, path, errors)
    return errors


def _validate(value: Any, node: Node, path: str, errors: list[FieldError]) -> None:
    if isinstance(value, list):
        if node.list_type == "set":
            errors += [field_errors.duplicate(field_errors.index(path, i), sorted_keys(value[i])) for i in _repeated(value)]
        elif node.list_type == "map":
            errors += _validate_keyed(value, node, path)
        if node.items is not None and node.items.lists_below:
            for position, item in enumerate(value):
                if isinstance(item, _CONTAINERS):
                    _validate(item, node.items, field_errors.index(path, position), errors)
    elif isinstance(value, dict):
        additional = node.additional
        if additional is not None and additional.lists_below:
            for name, inner in value.items():
                if isinstance(inner, _CONTAINERS):
                    _validate(inner, additional, field_errors.key(path, name), errors)
        for name, field in node.properties.items():
            if field.lists_below:
                inner = value.get(name)
                if isinstance(inner, _CONTAINERS):
                    _validate(inner, field, field_errors.child(path, name), errors)


def _validate_keyed(value: list[Any], node: Node, path: str) -> list[FieldError]:
    for position, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            at = field_errors.index(path, position)
            return [field_errors.invalid(at, sorted_keys(item), "must be an object for an array of list-type map")]
    if len(value) <= 1:
        return []
    keys = [{name: item[name] for name in sorted(node.list_map_keys) if name in item} if item else {} for item in value]
    return [field_errors.duplicate(field_errors.index(path, i), keys[i]) for i in _repeated(keys)]


def _repeated(items: list[Any]) -> list[int]:
    """Where an item stands for the second time; further ones are not told."""
    seen: dict[Any, int] = {}
    found = []
    for position, item in enumerate(items):
        mark = orjson.dumps(item, option=orjson.OPT_SORT_KEYS) if isinstance(item, _CONTAINERS) else (type(item), item)
        times = seen[mark] = seen.get(mark, 0) + 1
        if times == 2:
            found.append(position)
    return found
