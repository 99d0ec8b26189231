"""One pod: which node, or why none. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.machinery.objects import Object
from controllers.scheduler import filters, scoring
from controllers.scheduler.cluster import Cluster

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Fits:
    node_name: str


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    message: str


def place(pod: Object, cluster: Cluster, namespaces: Callable[[Object | None], frozenset[str]], rng: random.Random) -> Fits | DoesNotFit:
    """The best node that passes every filter; among equally good ones any."""
    nodes = cluster.ready_nodes()
    if not nodes:
        return DoesNotFit(NO_NODES)
    request = filters.request_for(pod, cluster, namespaces)
    feasible = []
    refusals = []
    for info in nodes:
        refusal = filters.refusal_of(request, info)
        if refusal is None:
            feasible.append(info)
        else:
            refusals.append(refusal)
    if not feasible:
        return DoesNotFit(explain(refusals))
    if len(feasible) == 1:
        return Fits(feasible[0].name)
    totals = scoring.totals(request, feasible)
    best = max(totals)
    return Fits(rng.choice([info.name for info, total in zip(feasible, totals, strict=True) if total == best]))


def explain(refusals: list[filters.Refusal]) -> str:
    """``0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: …``: reasons counted, and sorted as text."""
    count = len(refusals)
    reasons = Counter(reason for refusal in refusals for reason in refusal.reasons)
    told = ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    victims = Counter(
        "No preemption victims found for incoming pod" if r.resolvable else "Preemption is not helpful for scheduling" for r in refusals
    )
    preemption = ", ".join(sorted(f"{n} {reason}" for reason, n in victims.items()))
    return f"0/{count} nodes are available: {told}. preemption: 0/{count} nodes are available: {preemption}."
