"""What a pod asks for and a node has, as whole numbers: thousandths of CPUs, bytes, counts. Pure."""

from __future__ import annotations

from apiserver.machinery import objects, quantity
from apiserver.machinery.objects import Object
from controllers.lib.pods import is_sidecar

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

#: what a container without requests counts as for scoring, so that such pods spread too (kube-scheduler's defaults)
SCORED_CPU_DEFAULT = 100
SCORED_MEMORY_DEFAULT = 200 * 1024 * 1024

Amounts = dict[str, int]


def amount(name: str, value: object) -> int:
    """CPUs in thousandths, everything else in units; rounded up."""
    parsed = quantity.of_json(value)
    return parsed.milli_value() if name == CPU else parsed.value()


def amounts(values: Object | None) -> Amounts:
    return {name: amount(name, value) for name, value in (values or {}).items()}


def add(left: Amounts, right: Amounts, sign: int = 1) -> None:
    """Adds into ``left``."""
    for name, value in right.items():
        left[name] = left.get(name, 0) + sign * value


def requests_of(pod: Object, *, scored: bool = False) -> Amounts:
    """The sum of its containers and sidecars, or what an init container needs at its time if that is more; plus overhead.

    ``scored`` counts containers without CPU or memory requests as small ones.
    """
    spec = pod.get("spec") or {}
    total: Amounts = {}
    for container in spec.get("containers") or []:
        add(total, _container(container, scored))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or []:
        own = _container(container, scored)
        if is_sidecar(container):
            add(sidecars, own)
            own = {}
        _raise_to(peak, _sum(sidecars, own))
    add(total, sidecars)
    _raise_to(total, peak)
    add(total, amounts(spec.get("overhead")))
    return {name: value for name, value in total.items() if value}


def _container(container: Object, scored: bool) -> Amounts:
    out = amounts(objects.get(container, "resources", "requests"))
    if scored:
        out.setdefault(CPU, SCORED_CPU_DEFAULT)
        out.setdefault(MEMORY, SCORED_MEMORY_DEFAULT)
    return out


def _sum(left: Amounts, right: Amounts) -> Amounts:
    out = dict(left)
    add(out, right)
    return out


def _raise_to(target: Amounts, floor: Amounts) -> None:
    for name, value in floor.items():
        target[name] = max(target.get(name, 0), value)
