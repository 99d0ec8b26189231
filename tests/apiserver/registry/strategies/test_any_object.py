"""No object that its schema lets through makes a strategy fail: whatever comes, it is defaulted, checked and answered."""

from __future__ import annotations

import copy
import random
import zlib
from typing import Any

import pytest

from apiserver.machinery.objects import Object
from apiserver.machinery.status import StatusError
from apiserver.machinery.types import Shape, Type
from apiserver.registry.service_allocators import MemoryServiceAllocators
from apiserver.registry.strategies import strategy_for
from apiserver.registry.strategy import StrategyContext
from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas.decoding import decode
from tests.apiserver.registry.strategies.golden_steps import NOW, schemas, table

#: what is tried as a text: names, numbers, addresses, expressions, and much that is none of them
_TEXTS = (
    "", "a", "Not A Name", "x" * 300, "10.0.0.1", "10.0.0.0/8", "::1", "example.com/thing", "a.b.c", "80", "50%", "*/5 * * * *", "*",
    "Always", "RollingUpdate", "Localhost", "In", "Exists", "LoadBalancer", "ClusterIP", "None", "OnFailure", "Indexed", "/a/../b",
    "https://host/path?x=y", "../x", "limits.cpu", "metadata.labels['a']", "hugepages-2Mi", "Resource", "v1", "ä\u0000",
)  # fmt: skip
_QUANTITIES = ("0", "1", "-1", "100m", "1.5Gi", "1e3", "3n")
_INTEGERS = (-1, 0, 1, 2, 7, 80, 70000, 2**31 - 1)
_DEPTH_MAX = 10
_ROUNDS = 12

KINDS = sorted(table(), key=lambda info: (info.group, info.kind, info.version))


def _any_value(type_: Type, source: random.Random, depth: int) -> Any:
    shape = type_.shape
    if shape is Shape.STRUCT:
        fields = list(type_.fields)
        likely = 0.7 if depth < 3 else 0.45 if len(fields) < 30 else 0.25
        chosen = {f for f in fields if source.random() < likely} | set(type_.required) | ({"spec", "template"} & set(fields))
        return {f: _any_value(type_.fields[f], source, depth + 1) for f in fields if f in chosen} if depth < _DEPTH_MAX else {}
    if shape is Shape.LIST:
        assert type_.element is not None
        return [_any_value(type_.element, source, depth + 1) for _ in range(source.choice((0, 1, 1, 2)))] if depth < _DEPTH_MAX else []
    if shape is Shape.MAP:
        assert type_.element is not None
        keys = source.sample(("cpu", "memory", "a", "pods", "example.com/x", "bad key", "storage"), source.choice((0, 1, 2)))
        return {key: _any_value(type_.element, source, depth + 1) for key in keys}
    if shape is Shape.INTEGER:
        return source.choice(_INTEGERS)
    if shape is Shape.NUMBER:
        return source.choice((0.5, 2))
    if shape is Shape.BOOLEAN:
        return source.random() < 0.5
    if shape is Shape.INT_OR_STRING:
        return source.choice((*_INTEGERS[:6], *_TEXTS[:12]))
    if shape is Shape.QUANTITY:
        return source.choice(_QUANTITIES)
    if shape in (Shape.TIME, Shape.MICRO_TIME):
        return NOW if shape is Shape.TIME else "2024-01-02T03:04:05.000000Z"
    if shape is Shape.ANY:
        return {"a": 1}
    if type_.format == "byte":
        return "eA=="
    return source.choice((*type_.enum, *_TEXTS)) if type_.enum else source.choice(_TEXTS)


def _any_object(info: ResourceInfo, source: random.Random) -> Object:
    type_ = schemas().type_of(info.group, info.version, info.kind)
    obj = _any_value(type_, source, 0)
    metadata = {"name": "a", "labels": {"a": "b"}, **({"namespace": "ns"} if info.namespaced else {})}
    return decode(type_, {**obj, "apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}).obj


@pytest.mark.parametrize("info", KINDS, ids=lambda info: f"{info.kind}.{info.group}/{info.version}")
def test_no_object_breaks_its_strategy(info: ResourceInfo) -> None:
    source = random.Random(zlib.crc32(info.kind.encode()))
    strategy = strategy_for(info)
    rules = [strategy, *filter(None, (strategy.subresource(s.name) for s in info.subresources))]
    for _ in range(_ROUNDS):
        allocators = MemoryServiceAllocators("10.96.0.0/16,fd00::/112", "30000-32767", source)
        context = StrategyContext(namespace="ns", now=NOW, user="u", allocators=allocators, schemas=schemas())
        obj, other = copy.deepcopy(_any_object(info, source)), copy.deepcopy(_any_object(info, source))
        try:
            for new in (obj, other):
                strategy.default(new)
                once = copy.deepcopy(new)
                strategy.default(new)
                assert new == once, "defaulting again changes nothing"
                new["metadata"]["uid"] = "u-1"
                strategy.prepare_for_create(context, new)
                prepared = copy.deepcopy(new)
                errors = strategy.validate(context, new)
                assert all(error.text() and error.cause() for error in errors)
                strategy.warnings(new, None)
                assert set(strategy.selectable_fields(new)) <= strategy.selectable_field_names
                assert new == prepared, "checking changes nothing"
            kept = copy.deepcopy(obj)
            for rule in rules:
                new = copy.deepcopy(other)
                rule.prepare_for_update(context, new, obj)
                rule.validate_update(context, new, obj)
                rule.warnings(new, obj)
                rule.spec_changed(new, obj)
            status = copy.deepcopy(other)
            strategy.prepare_for_status_update(context, status, obj)
            strategy.validate_status_update(context, status, obj)
            assert obj == kept, "the old object stays as it was"
        except StatusError as error:
            assert error.code in (403, 422)


@pytest.mark.parametrize("info", KINDS, ids=lambda info: f"{info.kind}.{info.group}/{info.version}")
def test_an_update_that_changes_nothing_is_no_change(info: ResourceInfo) -> None:
    """Else every write of the same thing would be a new version and wake every watcher."""
    source = random.Random(zlib.crc32(info.kind.encode()) + 1)
    strategy = strategy_for(info)
    allocators = MemoryServiceAllocators("10.96.0.0/16,fd00::/112", "30000-32767", source)
    context = StrategyContext(namespace="ns", now=NOW, user="u", allocators=allocators, schemas=schemas())
    for _ in range(3):
        obj = copy.deepcopy(_any_object(info, source))
        try:
            strategy.default(obj)
            strategy.prepare_for_create(context, obj)
        except StatusError:
            continue
        again = copy.deepcopy(obj)
        strategy.default(again)
        strategy.prepare_for_update(context, again, obj)
        assert again == obj
        assert not strategy.spec_changed(again, obj)
