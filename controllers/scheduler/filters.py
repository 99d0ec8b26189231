"""Where a pod can run: each filter answers why not, in kube-scheduler's words. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import taints
from controllers.lib.node_matching import matches_node
from controllers.scheduler import affinity, resources, spreading
from controllers.scheduler.cluster import Cluster, NodeInfo, host_ports


@dataclass(frozen=True, slots=True)
class Refusal:
    """``resolvable``: evicting other pods could help, so that preemption would be considered."""

    reasons: tuple[str, ...]
    resolvable: bool = True


@dataclass(slots=True)
class Request:
    """A pod to place, with what is computed once for all nodes."""

    pod: Object
    cluster: Cluster
    namespaces: Callable[[Object | None], frozenset[str]]
    requests: resources.Amounts
    ports: list[tuple[str, str, int]]
    affinity: affinity.Terms
    spread: spreading.Constraints


def request_for(pod: Object, cluster: Cluster, namespaces: Callable[[Object | None], frozenset[str]]) -> Request:
    """``namespaces`` gives the names that a namespaceSelector selects."""
    return Request(
        pod,
        cluster,
        namespaces,
        resources.requests_of(pod),
        host_ports(pod),
        affinity.terms_of(pod, cluster, namespaces),
        spreading.constraints_of(pod, cluster),
    )


def node_unschedulable(request: Request, info: NodeInfo) -> Refusal | None:
    if not objects.get(info.node, "spec", "unschedulable", default=False):
        return None
    taint = {"key": taints.UNSCHEDULABLE, "effect": taints.NO_SCHEDULE}
    if any(taints.tolerates(t, taint) for t in _tolerations(request.pod)):
        return None
    return Refusal(("node(s) were unschedulable",), resolvable=False)


def node_name(request: Request, info: NodeInfo) -> Refusal | None:
    wanted = objects.get(request.pod, "spec", "nodeName", default="")
    return None if not wanted or wanted == info.name else Refusal(("node(s) didn't match the requested node name",), resolvable=False)


def taint_toleration(request: Request, info: NodeInfo) -> Refusal | None:
    assert info.node is not None
    found = taints.first_untolerated(taints.of_node(info.node), _tolerations(request.pod), (taints.NO_SCHEDULE, taints.NO_EXECUTE))
    if found is None:
        return None
    return Refusal((f"node(s) had untolerated taint {{{found.get('key')}: {found.get('value') or ''}}}",), resolvable=False)


def node_affinity(request: Request, info: NodeInfo) -> Refusal | None:
    assert info.node is not None
    if matches_node(request.pod, info.node):
        return None
    return Refusal(("node(s) didn't match Pod's node affinity/selector",), resolvable=False)


def node_ports(request: Request, info: NodeInfo) -> Refusal | None:
    for wanted in request.ports:
        if any(_ports_clash(wanted, used) for ports in info.ports.values() for used in ports):
            return Refusal(("node(s) didn't have free ports for the requested pod ports",))
    return None


def _ports_clash(left: tuple[str, str, int], right: tuple[str, str, int]) -> bool:
    return left[1:] == right[1:] and (left[0] == right[0] or "0.0.0.0" in (left[0], right[0]))


def node_resources(request: Request, info: NodeInfo) -> Refusal | None:
    reasons = []
    resolvable = True
    if len(info.pods) + 1 > info.allocatable.get(resources.PODS, 0):
        reasons.append("Too many pods")
    for name, wanted in request.requests.items():
        has = info.allocatable.get(name, 0)
        if wanted > has - info.requested.get(name, 0):
            reasons.append(f"Insufficient {name}")
            resolvable = resolvable and wanted <= has
    return Refusal(tuple(reasons), resolvable) if reasons else None


def pod_affinity(request: Request, info: NodeInfo) -> Refusal | None:
    terms = request.affinity
    if not terms.anti_affinity_of_others_allows(info):
        return Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",))
    if not terms.affinity_allows(info):
        return Refusal(("node(s) didn't match pod affinity rules",), resolvable=False)
    if not terms.anti_affinity_allows(info):
        return Refusal(("node(s) didn't match pod anti-affinity rules",))
    return None


def topology_spread(request: Request, info: NodeInfo) -> Refusal | None:
    reason = request.spread.refuses(info)
    if reason is None:
        return None
    return Refusal((reason,), resolvable="missing" not in reason)


FILTERS: tuple[Callable[[Request, NodeInfo], Refusal | None], ...] = (
    node_unschedulable,
    node_name,
    taint_toleration,
    node_affinity,
    node_ports,
    node_resources,
    topology_spread,
    pod_affinity,
)


def refusal_of(request: Request, info: NodeInfo) -> Refusal | None:
    """The first filter's that refuses the node; None where the pod can run there."""
    for one in FILTERS:
        found = one(request, info)
        if found is not None:
            return found
    return None


def _tolerations(pod: Object) -> list[Object]:
    found: list[Object] = objects.get(pod, "spec", "tolerations", default=[])
    return found
