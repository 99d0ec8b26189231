"""Affinity and anti-affinity between pods, per topology domain. Pure.

A domain is a value of a node label (``topologyKey``), say all nodes of one zone. What matching pods a domain holds is counted once a pod,
over all nodes; the filter then only looks up each node's domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import selectors
from controllers.scheduler.cluster import Cluster, NodeInfo

Namespaces = Callable[[Object | None], frozenset[str]]
Domain = tuple[str, str]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True)
class Terms:
    """``affine[i]`` holds the domains in which a pod matches the i-th required term; ``forbidden`` those that its own anti-affinity
    forbids; ``forbidden_by_others`` those that pods already there forbid to it."""

    affinity: list[Object] = field(default_factory=list)
    affine: list[set[Domain]] = field(default_factory=list)
    #: no pod anywhere matches, but the new one itself does: the first of its group may go anywhere that has the label
    first_of_group: bool = False
    anti_affinity: list[Object] = field(default_factory=list)
    forbidden: set[Domain] = field(default_factory=set)
    forbidden_by_others: set[Domain] = field(default_factory=set)

    def affinity_allows(self, info: NodeInfo) -> bool:
        if not self.affinity:
            return True
        domains = [domain_of(info, term) for term in self.affinity]
        if any(domain is None for domain in domains):
            return False
        if self.first_of_group:
            return True
        return all(domain in affine for domain, affine in zip(domains, self.affine, strict=True))

    def anti_affinity_allows(self, info: NodeInfo) -> bool:
        return not any(domain_of(info, term) in self.forbidden for term in self.anti_affinity)

    def anti_affinity_of_others_allows(self, info: NodeInfo) -> bool:
        if not self.forbidden_by_others:
            return True
        labels = info.labels()
        return not any(labels.get(key) == value for key, value in self.forbidden_by_others)


def terms_of(pod: Object, cluster: Cluster, namespaces: Namespaces) -> Terms:
    out = Terms(affinity=required(pod, "podAffinity"), anti_affinity=required(pod, "podAntiAffinity"))
    for term in out.affinity:
        out.affine.append(set(_domains_with(term, pod, cluster, namespaces)))
    if out.affinity and not any(out.affine):
        out.first_of_group = all(term_matches(term, pod, pod, namespaces) for term in out.affinity)
    for term in out.anti_affinity:
        out.forbidden.update(_domains_with(term, pod, cluster, namespaces))
    for uid, other in cluster.anti_affine.items():
        info = cluster.nodes[cluster.node_of(uid)]
        for term in required(other, "podAntiAffinity"):
            domain = domain_of(info, term)
            if domain is not None and term_matches(term, other, pod, namespaces):
                out.forbidden_by_others.add(domain)
    return out


def required(pod: Object, sort: str) -> list[Object]:
    found: list[Object] = objects.get(pod, "spec", "affinity", sort, REQUIRED, default=[])
    return found


def preferred(pod: Object, sort: str) -> list[Object]:
    """Weighted terms."""
    found: list[Object] = objects.get(pod, "spec", "affinity", sort, PREFERRED, default=[])
    return found


def domain_of(info: NodeInfo, term: Object) -> Domain | None:
    key = str(term.get("topologyKey") or "")
    value = info.labels().get(key)
    return None if value is None else (key, value)


def term_matches(term: Object, owner: Object, pod: Object, namespaces: Namespaces) -> bool:
    """Whether ``pod`` is one that the term of ``owner`` speaks of. Without namespaces a term speaks of its owner's."""
    named = set(term.get("namespaces") or [])
    selector = term.get("namespaceSelector")
    if selector is not None:
        named |= namespaces(selector)
    elif not named:
        named = {objects.namespace(owner)}
    return objects.namespace(pod) in named and selectors.matches(term.get("labelSelector"), objects.labels(pod))


def _domains_with(term: Object, owner: Object, cluster: Cluster, namespaces: Namespaces) -> Iterator[Domain]:
    for info in cluster.nodes.values():
        domain = domain_of(info, term)
        if domain is not None and any(term_matches(term, owner, other, namespaces) for other in info.pods.values()):
            yield domain


def preference(pod: Object, info: NodeInfo, cluster: Cluster, namespaces: Namespaces) -> int:
    """The sum of weights of preferred terms that the node's domain meets, those of anti-affinity counted against it."""
    total = 0
    for sort, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for weighted in preferred(pod, sort):
            term = weighted["podAffinityTerm"]
            domain = domain_of(info, term)
            if domain is None:
                continue
            for other in cluster.nodes.values():
                if domain_of(other, term) == domain:
                    matching = sum(1 for p in other.pods.values() if term_matches(term, pod, p, namespaces))
                    total += sign * int(weighted.get("weight") or 0) * matching
    return total
