"""Small objects of each kind, and the steps that a registry takes with a strategy, for tests."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.machinery.objects import Object
from apiserver.registry.service_allocators import MemoryServiceAllocators
from apiserver.registry.strategies import strategy_for
from apiserver.registry.strategy import Strategy, StrategyContext
from tests.apiserver.registry.strategies.golden_steps import NOW, schemas, table

CONTAINER: Object = {"name": "c", "image": "nginx:1.25"}


def context(allocators: MemoryServiceAllocators | None = None, *, dry_run: bool = False) -> StrategyContext:
    return StrategyContext(namespace="ns", now=NOW, user="ann", allocators=allocators, dry_run=dry_run, schemas=schemas())


def rules(kind: str, group: str = "", version: str = "v1") -> Strategy:
    info = table().by_kind(group, version, kind)
    assert info is not None, kind
    return strategy_for(info)


def of(spec: Any = None, *, api_version: str = "v1", **fields: Any) -> Object:
    obj: Object = {"apiVersion": api_version, "metadata": {"name": "a", "namespace": "ns", "uid": "u-1"}, **copy.deepcopy(fields)}
    if spec is not None:
        obj["spec"] = copy.deepcopy(spec)
    return obj


def created(strategy: Strategy, obj: Object, allocators: MemoryServiceAllocators | None = None) -> Object:
    """The object as it would be stored; it must be right."""
    obj = copy.deepcopy(obj)
    errors = create_errors(strategy, obj, allocators)
    assert not errors, errors
    return obj


def create_errors(strategy: Strategy, obj: Object, allocators: MemoryServiceAllocators | None = None) -> list[str]:
    """The refusals of a create, each as its line in a message; ``obj`` is left as prepared."""
    strategy.default(obj)
    strategy.prepare_for_create(context(allocators), obj)
    return [error.text() for error in strategy.validate(context(allocators), obj)]


def update_errors(strategy: Strategy, new: Object, old: Object, allocators: MemoryServiceAllocators | None = None) -> list[str]:
    """The refusals of an update, with ``new`` left as prepared; the old object must stay as it is."""
    kept = copy.deepcopy(old)
    strategy.default(new)
    strategy.prepare_for_update(context(allocators), new, old)
    errors = [error.text() for error in strategy.validate_update(context(allocators), new, old)]
    assert old == kept
    return errors


def changed(obj: Object, **spec: Any) -> Object:
    """A copy with other fields in its spec."""
    new = copy.deepcopy(obj)
    new["spec"].update(copy.deepcopy(spec))
    return new
