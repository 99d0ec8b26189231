"""Topology spread constraints that must hold (``whenUnsatisfiable: DoNotSchedule``). Pure.

With maxSkew 1 over zones that hold 3, 2 and 2 matching pods, a new one may go to the second or third zone: 3 + 1 − 2 would be too much.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import selectors
from controllers.lib.node_matching import matches_node
from controllers.scheduler.cluster import Cluster, NodeInfo

UNSATISFIED = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = f"{UNSATISFIED} (missing required label)"


@dataclass(slots=True)
class Constraint:
    key: str
    max_skew: int
    matches_itself: bool
    #: matching pods by value of the label, over the nodes that count
    counts: dict[str, int] = field(default_factory=dict)
    min_domains: int = 1

    def smallest(self) -> int:
        if len(self.counts) < self.min_domains:
            return 0
        return min(self.counts.values(), default=0)


@dataclass(slots=True)
class Constraints:
    hard: list[Constraint] = field(default_factory=list)

    def refuses(self, info: NodeInfo) -> str | None:
        labels = info.labels()
        for constraint in self.hard:
            value = labels.get(constraint.key)
            if value is None:
                return MISSING_LABEL
            skew = constraint.counts.get(value, 0) + (1 if constraint.matches_itself else 0) - constraint.smallest()
            if skew > constraint.max_skew:
                return UNSATISFIED
        return None


def constraints_of(pod: Object, cluster: Cluster) -> Constraints:
    wanted = [
        c
        for c in objects.get(pod, "spec", "topologySpreadConstraints", default=[])
        if (c.get("whenUnsatisfiable") or "DoNotSchedule") == "DoNotSchedule"
    ]
    if not wanted:
        return Constraints()
    keys = [c["topologyKey"] for c in wanted]
    nodes = [info for info in cluster.ready_nodes() if all(k in info.labels() for k in keys)]
    out = Constraints()
    for one in wanted:
        selector = _with_match_label_keys(one, pod)
        constraint = Constraint(
            one["topologyKey"],
            int(one.get("maxSkew") or 1),
            selectors.matches(selector, objects.labels(pod)),
            min_domains=int(one.get("minDomains") or 1),
        )
        for info in nodes:
            assert info.node is not None
            if (one.get("nodeAffinityPolicy") or "Honor") == "Honor" and not matches_node(pod, info.node):
                continue
            value = info.labels()[constraint.key]
            matching = sum(
                1
                for other in info.pods.values()
                if objects.namespace(other) == objects.namespace(pod)
                and not objects.is_being_deleted(other)
                and selectors.matches(selector, objects.labels(other))
            )
            constraint.counts[value] = constraint.counts.get(value, 0) + matching
        out.hard.append(constraint)
    return out


def _with_match_label_keys(constraint: Object, pod: Object) -> Object | None:
    selector: Object | None = constraint.get("labelSelector")
    keys = [k for k in constraint.get("matchLabelKeys") or [] if k in objects.labels(pod)]
    if selector is None or not keys:
        return selector
    extra = [{"key": k, "operator": "In", "values": [objects.labels(pod)[k]]} for k in keys]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *extra]}
