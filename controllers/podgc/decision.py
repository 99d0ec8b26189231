"""Which pods are to be removed, and why. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts
from controllers.lib import taints

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class Why(enum.Enum):
    TERMINATED = "terminated"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled terminating"
    OUT_OF_SERVICE = "node out of service"


@dataclass(frozen=True, slots=True)
class Removal:
    pod: Object
    why: Why


def plan(pods: Sequence[Object], nodes: Mapping[str, Object], missing_nodes: Iterable[str], threshold: int) -> list[Removal]:
    """``missing_nodes`` are names that are known not to exist; ``threshold`` of finished pods, 0 keeps them all."""
    missing = frozenset(missing_nodes)
    out: list[Removal] = []
    for pod in pods:
        name = pod_facts.node_name(pod)
        if name and name in missing:
            out.append(Removal(pod, Why.ORPHANED))
        elif objects.is_being_deleted(pod) and not name:
            out.append(Removal(pod, Why.UNSCHEDULED))
        elif objects.is_being_deleted(pod) and name in nodes and is_out_of_service(nodes[name]):
            out.append(Removal(pod, Why.OUT_OF_SERVICE))
    chosen = {objects.uid(r.pod) for r in out}
    finished = [p for p in pods if pod_facts.is_terminal(p) and objects.uid(p) not in chosen]
    surplus = len(finished) - threshold if threshold > 0 else 0
    if surplus > 0:
        oldest = sorted(finished, key=lambda p: (str(objects.metadata(p).get("creationTimestamp") or ""), objects.name(p)))
        out += [Removal(p, Why.TERMINATED) for p in oldest[:surplus]]
    return out


def is_out_of_service(node: Object) -> bool:
    return not pod_facts.is_ready(node) and any(t.get("key") == OUT_OF_SERVICE for t in taints.of_node(node))


def node_names(pods: Iterable[Object]) -> set[str]:
    return {pod_facts.node_name(p) for p in pods} - {""}
