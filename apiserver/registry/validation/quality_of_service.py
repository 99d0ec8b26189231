"""The quality of service class of a pod (core ``helper/qos``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apiserver.registry.validation.quantities import amount

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed where every container has limits for CPU and memory equal to its requests, BestEffort where none says anything
    of them, else Burstable."""
    resources = spec.get("resources") or {}
    guaranteed, anything = True, False
    for part in [resources] if resources.get("limits") or resources.get("requests") else _of_containers(spec):
        requests = {k: v for k, v in (part.get("requests") or {}).items() if k in _COMPUTE}
        limits = {k: v for k, v in (part.get("limits") or {}).items() if k in _COMPUTE and amount(v) > 0}
        anything = anything or bool(limits) or any(amount(v) > 0 for v in requests.values())
        # a request that is left out is the limit, one of zero is none
        if len(limits) != len(_COMPUTE) or any(amount(requests.get(k, v)) != amount(v) for k, v in limits.items()):
            guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _of_containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            yield container.get("resources") or {}
