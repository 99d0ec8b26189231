"""Which strategy a resource has."""

from __future__ import annotations

from apiserver.registry.strategies import core, nodes, pods, rbac, services, workloads
from apiserver.registry.strategy import Strategy
from apiserver.resources.resource_info import ResourceInfo

_STRATEGIES: dict[tuple[str, str], type[Strategy]] = {}
for _module in (core, nodes, pods, rbac, services, workloads):
    _STRATEGIES.update(_module.STRATEGIES)


def strategy_for(info: ResourceInfo) -> Strategy:
    """The rules of a resource's kind; for kinds without rules of their own the base ones."""
    strategy = _STRATEGIES.get((info.group, info.kind), Strategy)()
    strategy.has_status = info.has_status
    return strategy
