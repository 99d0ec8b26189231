"""Fields that a structural schema does not name are taken out of objects (apiextensions-apiserver ``schema/pruning``).

Worked example, for ``spec: {type: object, properties: {a: …}}``: of ``{"spec": {"a": 1, "b": 2}, "top": 3}`` ``{"spec": {"a": 1}}`` is
left, and the answer is ``["spec.b", "top"]``. Below ``x-kubernetes-preserve-unknown-fields`` unknown fields stay, and what is named there
is pruned again. ``apiVersion``, ``kind`` and ``metadata`` of the object and of embedded ones are not the schema's business.
"""

from __future__ import annotations

import copy
from typing import Any

import orjson

from apiserver.apiextensions import numbers
from apiserver.apiextensions.nodes import META_FIELDS, Node


def prune(obj: dict[str, Any], node: Node) -> list[str]:
    """Changes ``obj`` in place and answers the paths of what went, sorted."""
    gone: list[str] = []
    _prune(obj, node, "", gone)
    return sorted(gone)


def prune_defaults(node: Node) -> None:
    """Takes out of the defaults of a schema, which the node keeps as copies then, what the schema does not name; whole numbers become
    integers."""
    if node.has_default and isinstance(node.default, (dict, list, float)):
        node.default = orjson.loads(orjson.dumps(numbers.canonical(copy.deepcopy(node.default))))
        _prune(node.default, node, "", [])
    for below in (*node.properties.values(), node.additional, node.items):
        if below is not None:
            prune_defaults(below)


def _prune(value: Any, node: Node | None, path: str, gone: list[str]) -> None:
    if node is not None and node.preserve:
        _prune_named(value, node, path, gone)
    elif isinstance(value, dict):
        _prune_object(value, node, path, gone)
    elif isinstance(value, list):
        items = None if node is None else node.items
        for position, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(item, items, f"{path}[{position}]", gone)


def _prune_object(value: dict[str, Any], node: Node | None, path: str, gone: list[str]) -> None:
    unknown: list[str] = []
    for name, inner in value.items():
        if node is not None:
            if node.embedded and name in META_FIELDS:
                continue
            field = node.properties.get(name)
            if field is not None or node.has_additional:
                if isinstance(inner, (dict, list)):
                    _prune(inner, field or node.additional, _child(path, name), gone)
                continue
        unknown.append(name)
    for name in unknown:
        del value[name]
        if path or name not in META_FIELDS:
            gone.append(_child(path, name))


def _prune_named(value: Any, node: Node, path: str, gone: list[str]) -> None:
    """Where unknown fields stay: only what is named is looked into."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(inner, (dict, list)) or (node.embedded and name in META_FIELDS):
                continue
            field = node.properties.get(name)
            if field is not None or node.has_additional:
                _prune(inner, field or node.additional, _child(path, name), gone)
    elif isinstance(value, list) and node.items is not None:
        for position, item in enumerate(value):
            _prune_named(item, node.items, f"{path}[{position}]", gone)


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
