"""Where a pod should run: nodes that are emptier, hold fewer of its siblings, and meet its preferences. Pure.

Each score is 0 … 100 over the nodes that passed the filters; kube-scheduler's default plugins and weights are the model, not the measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.machinery import objects
from controllers.lib import selectors, taints
from controllers.lib.node_matching import matches_term
from controllers.scheduler import affinity, resources
from controllers.scheduler.cluster import NodeInfo
from controllers.scheduler.filters import Request

MAX = 100


def least_allocated(request: Request, infos: Sequence[NodeInfo]) -> list[float]:
    """The free share of CPU and memory after the pod is there."""
    wanted = resources.requests_of(request.pod, scored=True)
    out = []
    for info in infos:
        shares = []
        for name in (resources.CPU, resources.MEMORY):
            has = info.allocatable.get(name, 0)
            left = has - info.scored.get(name, 0) - wanted.get(name, 0)
            shares.append(max(0.0, left / has) if has else 0.0)
        out.append(MAX * sum(shares) / len(shares))
    return out


def sibling_spread(request: Request, infos: Sequence[NodeInfo]) -> list[float]:
    """Fewer pods of the same controller are better (or, without a controller, of the same labels)."""
    pod = request.pod
    controller = objects.controller_of(pod)
    if controller is not None:
        return _inverted([info.siblings.get(str(controller.get("uid")), 0) for info in infos])
    namespace, labels = objects.namespace(pod), objects.labels(pod)
    if not labels:
        return _inverted([0 for _ in infos])
    return _inverted(
        [
            sum(1 for other in info.pods.values() if objects.namespace(other) == namespace and objects.labels(other) == labels)
            for info in infos
        ]
    )


def soft_spread(request: Request, infos: Sequence[NodeInfo]) -> list[float]:
    """``whenUnsatisfiable: ScheduleAnyway``: domains with fewer matching pods are better."""
    wanted = [
        c
        for c in objects.get(request.pod, "spec", "topologySpreadConstraints", default=[])
        if c.get("whenUnsatisfiable") == "ScheduleAnyway"
    ]
    if not wanted:
        return [0.0] * len(infos)
    totals = [0] * len(infos)
    for constraint in wanted:
        counts: dict[str, int] = {}
        for info in request.cluster.ready_nodes():
            value = info.labels().get(constraint["topologyKey"])
            if value is not None:
                counts[value] = counts.get(value, 0) + sum(
                    1
                    for other in info.pods.values()
                    if objects.namespace(other) == objects.namespace(request.pod)
                    and selectors.matches(constraint.get("labelSelector"), objects.labels(other))
                )
        most = max(counts.values(), default=0) + 1
        for position, info in enumerate(infos):
            value = info.labels().get(constraint["topologyKey"])
            totals[position] += counts.get(value, most) if value is not None else most
    return _inverted(totals)


def preferred_node_affinity(request: Request, infos: Sequence[NodeInfo]) -> list[float]:
    terms = objects.get(request.pod, "spec", "affinity", "nodeAffinity", affinity.PREFERRED, default=[])
    if not terms:
        return [0.0] * len(infos)
    return _scaled(
        [
            sum(int(t.get("weight") or 0) for t in terms if info.node is not None and matches_term(t["preference"], info.node))
            for info in infos
        ]
    )


def preferred_pod_affinity(request: Request, infos: Sequence[NodeInfo]) -> list[float]:
    if not affinity.preferred(request.pod, "podAffinity") and not affinity.preferred(request.pod, "podAntiAffinity"):
        return [0.0] * len(infos)
    sums = [affinity.preference(request.pod, info, request.cluster, request.namespaces) for info in infos]
    return _scaled([s - min(sums) for s in sums])


def preferred_taints(request: Request, infos: Sequence[NodeInfo]) -> list[float]:
    """Fewer taints PreferNoSchedule that the pod does not tolerate are better."""
    tolerations = objects.get(request.pod, "spec", "tolerations", default=[])
    counts = []
    for info in infos:
        assert info.node is not None
        soft = [t for t in taints.of_node(info.node) if t.get("effect") == taints.PREFER_NO_SCHEDULE]
        counts.append(sum(1 for t in soft if not any(taints.tolerates(tol, t) for tol in tolerations)))
    return _inverted(counts)


SCORES: tuple[tuple[Callable[[Request, Sequence[NodeInfo]], list[float]], float], ...] = (
    (least_allocated, 1.0),
    (sibling_spread, 2.0),
    (soft_spread, 2.0),
    (preferred_node_affinity, 2.0),
    (preferred_pod_affinity, 2.0),
    (preferred_taints, 3.0),
)


def totals(request: Request, infos: Sequence[NodeInfo]) -> list[float]:
    out = [0.0] * len(infos)
    for score, weight in SCORES:
        for position, value in enumerate(score(request, infos)):
            out[position] += weight * value
    return out


def _inverted(counts: Sequence[int]) -> list[float]:
    most = max(counts, default=0)
    return [MAX * (most - c) / most if most else float(MAX) for c in counts]


def _scaled(values: Sequence[int]) -> list[float]:
    most = max(values, default=0)
    return [MAX * v / most if most > 0 else 0.0 for v in values]
