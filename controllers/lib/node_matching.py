"""Whether a pod's node selector and required node affinity allow a node. Pure."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import selectors


def matches_node(pod: Object, node: Object) -> bool:
    """``nodeSelector`` and the required node affinity: any of its terms, all of a term's expressions; an empty term matches nothing."""
    labels = objects.labels(node)
    wanted = objects.get(pod, "spec", "nodeSelector", default={})
    if any(labels.get(k) != v for k, v in wanted.items()):
        return False
    required = objects.get(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(matches_term(term, node) for term in required.get("nodeSelectorTerms") or [])


def matches_term(term: Object, node: Object) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    by_field = {"metadata.name": objects.name(node)}
    return all(selectors.matches_requirement(e, objects.labels(node)) for e in expressions) and all(
        selectors.matches_requirement(f, by_field) for f in fields
    )
