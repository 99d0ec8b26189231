"""Defaults in a definition must be what they would have to be in an object: of the right type, with known fields only, and where they
stand in metadata, good metadata (apiextensions-apiserver ``schema/defaulting/validation.go``)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from apiserver.apiextensions import correlation, embedded, numbers, pruning
from apiserver.apiextensions.embedded import sorted_keys
from apiserver.apiextensions.nodes import META_FIELDS, Node, Schema, root
from apiserver.apiextensions.values import ValueChecker
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError, child
from apiserver.machinery.types import Type

Surrounding = Callable[[Any], dict[str, Any]]


def validate(schema: Schema, path: str, meta: Type, checker: ValueChecker, *, require_pruned: bool, minor: int) -> list[FieldError]:
    """``checker`` is one that reads schemas as they stand (``converted=False``); ``meta`` is the type of ObjectMeta; ``minor`` is of the
    Kubernetes version whose library rules have."""
    errors: list[FieldError] = []
    walk = _Walk(meta, checker, require_pruned, errors, minor)
    top = root(schema)
    walk.visit(top, top, path, _as_object, inside_meta=False)
    return errors


def has_unpruned(schema: Schema) -> bool:
    """Whether a default has fields that its schema does not name."""
    return _has_unpruned(root(schema))


def _has_unpruned(node: Node) -> bool:
    if node.has_default and not _is_pruned(node):
        return True
    below = [*node.properties.values(), *(sub for sub in (node.additional, node.items) if sub is not None)]
    return any(_has_unpruned(sub) for sub in below)


def _is_pruned(node: Node) -> bool:
    pruned = copy.deepcopy(node.default)
    holder = Node({"type": "object"})
    holder.properties = {"default": node}
    pruning.prune({"default": pruned}, holder)
    return correlation.identical(pruned, node.default)


def _as_object(value: Any) -> dict[str, Any]:
    """The object around a default at the root of a kind or of an embedded object."""
    obj = dict(value) if isinstance(value, dict) else {}
    return {"kind": "Validation", "apiVersion": "validation/v1", **obj}


class _Walk:
    def __init__(self, meta: Type, checker: ValueChecker, require_pruned: bool, errors: list[FieldError], minor: int) -> None:
        self._meta = meta
        self._checker = checker
        self._require_pruned = require_pruned
        self._errors = errors
        self._minor = minor
        #: of the rules of all defaults together; below zero: no further default is looked at
        self._budget = 0
        self._has_budget = False

    def visit(self, node: Node, holder: Node, path: str, around: Surrounding, *, inside_meta: bool) -> None:
        """``holder`` is the object, the kind or an embedded one, that the node is part of; ``around`` makes one that holds a value here."""
        if self._budget < 0:
            return
        if node.embedded:
            inside_meta, holder, around = False, node, _as_object
        if node.has_default:
            default = numbers.canonical(copy.deepcopy(node.default))
            self._errors += (
                self._in_metadata(node, holder, default, child(path, "default"), around)
                if inside_meta
                else self._plain(node, default, child(path, "default"))
            )
        if node.items is not None:
            self.visit(node.items, holder, child(path, "items"), lambda value: around([value]), inside_meta=inside_meta)
        for name, field in node.properties.items():
            at = field_errors.key(child(path, "properties"), name)
            inside = inside_meta or (node.embedded and name in META_FIELDS)
            self.visit(field, holder, at, lambda value, name=name: around({name: value}), inside_meta=inside)  # type: ignore[misc]

    def _in_metadata(self, node: Node, holder: Node, default: Any, path: str, around: Surrounding) -> list[FieldError]:
        obj = around(copy.deepcopy(default))
        words = ""
        try:
            embedded.Coercion(self._meta, drop_invalid=False).walk(obj, holder, is_embedded=True)
        except embedded.CoercionError as error:
            words = error.error.text()
        if not words:
            found = embedded.validate(obj, holder, is_embedded=True)
            words = found[0].text() if len(found) == 1 else "[" + ", ".join(e.text() for e in found) + "]" if found else ""
        if words:
            return [field_errors.invalid(path, sorted_keys(default), f"must result in valid metadata: {words}")]
        return self._checker.check(default, node.schema, path=path) or self._by_rules(node, default, path)

    def _plain(self, node: Node, default: Any, path: str) -> list[FieldError]:
        errors: list[FieldError] = []
        if self._require_pruned and not _is_pruned(node):
            errors.append(field_errors.invalid(path, sorted_keys(default), "must not have unknown fields"))
        coerced = copy.deepcopy(default)
        try:
            embedded.Coercion(self._meta, drop_invalid=False).walk(coerced, node, path, is_embedded=node.embedded)
        except embedded.CoercionError as error:
            return [*errors, error.error]
        found = embedded.validate(coerced, node, path, is_embedded=node.embedded)
        return errors + (found or self._checker.check(coerced, node.schema, path=path) or self._by_rules(node, coerced, path))

    def _by_rules(self, node: Node, default: Any, path: str) -> list[FieldError]:
        if not node.rules_below:
            return []
        from apiserver.apiextensions.rules import evaluation

        if not self._has_budget:
            self._has_budget, self._budget = True, evaluation.OBJECT_BUDGET
        errors, self._budget = evaluation.Rules(node, self._minor).validate_default(path, default, self._budget)
        return errors
