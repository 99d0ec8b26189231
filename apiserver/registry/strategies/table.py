"""Which strategy a resource has."""

from __future__ import annotations

from apiserver.registry.strategies import (
    admissionregistration,
    certificates,
    core,
    extension,
    networking,
    nodes,
    pods,
    rbac,
    scaling,
    services,
    storage,
    workloads,
)
from apiserver.registry.strategy import Strategy
from apiserver.resources.resource_info import ResourceInfo

STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    **admissionregistration.STRATEGIES,
    **certificates.STRATEGIES,
    **core.STRATEGIES,
    **extension.STRATEGIES,
    **networking.STRATEGIES,
    **nodes.STRATEGIES,
    **pods.STRATEGIES,
    **rbac.STRATEGIES,
    **scaling.STRATEGIES,
    **services.STRATEGIES,
    **storage.STRATEGIES,
    **workloads.STRATEGIES,
}


def strategy_for(info: ResourceInfo) -> Strategy:
    """The rules of a resource's kind; for kinds without rules of their own the base ones."""
    strategy = STRATEGIES.get((info.group, info.kind), Strategy)()
    strategy.has_status = info.has_status
    return strategy
