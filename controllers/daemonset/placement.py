"""Which nodes a DaemonSet's pods run on, and the pod of a node (``daemonset_util.go``). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import DAEMON_SETS
from controllers.lib import pods as pod_facts
from controllers.lib import taints
from controllers.lib.node_matching import matches_node
from controllers.lib.pod_control import pod_from_template

REVISION_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"

#: What befalls nodes and does not concern their daemons.
TOLERATED: tuple[tuple[str, str], ...] = (
    (taints.NOT_READY, taints.NO_EXECUTE),
    (taints.UNREACHABLE, taints.NO_EXECUTE),
    (taints.DISK_PRESSURE, taints.NO_SCHEDULE),
    (taints.MEMORY_PRESSURE, taints.NO_SCHEDULE),
    (taints.PID_PRESSURE, taints.NO_SCHEDULE),
    (taints.UNSCHEDULABLE, taints.NO_SCHEDULE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """``should_run``: a pod belongs there. ``may_stay``: one that is there may go on, as where a taint came later that only keeps new
    pods away."""

    should_run: bool
    may_stay: bool


NO_FIT = Fit(should_run=False, may_stay=False)


def fit_of(daemon_set: Object, node: Object) -> Fit:
    pod = pod_for(daemon_set, objects.name(node), "")
    wanted = objects.get(daemon_set, "spec", "template", "spec", "nodeName", default="")
    if (wanted and wanted != objects.name(node)) or not _matches(daemon_set, node):
        return NO_FIT
    tolerations = pod["spec"]["tolerations"]
    if taints.first_untolerated(taints.of_node(node), tolerations, (taints.NO_SCHEDULE, taints.NO_EXECUTE)) is None:
        return Fit(should_run=True, may_stay=True)
    return Fit(should_run=False, may_stay=taints.first_untolerated(taints.of_node(node), tolerations, (taints.NO_EXECUTE,)) is None)


def _matches(daemon_set: Object, node: Object) -> bool:
    """By the template's own selector and affinity, before it is tied to a node."""
    return matches_node({"spec": objects.get(daemon_set, "spec", "template", "spec", default={})}, node)


def pod_for(daemon_set: Object, node_name: str, revision_hash: str) -> Object:
    """The pod for a node, not yet named."""
    pod = pod_from_template(daemon_set["spec"]["template"], daemon_set, DAEMON_SETS)
    labels = {**objects.labels(pod), REVISION_LABEL: revision_hash}
    generation = objects.annotations(daemon_set).get(GENERATION_ANNOTATION)
    if generation:
        labels[GENERATION_LABEL] = generation
    pod["metadata"]["labels"] = labels
    spec = pod["spec"]
    spec["affinity"] = _tied_to(node_name, spec.get("affinity") or {})
    spec["tolerations"] = _tolerations(spec)
    return pod


def _tied_to(node_name: str, affinity: Object) -> Object:
    """What the template requires of nodes has been looked at already; what it prefers means nothing for a single node, and stays."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
    }
    return {**affinity, "nodeAffinity": node_affinity}


def _tolerations(spec: Object) -> list[Object]:
    out: list[Object] = list(spec.get("tolerations") or [])
    wanted = [*TOLERATED]
    if spec.get("hostNetwork"):
        wanted.append((taints.NETWORK_UNAVAILABLE, taints.NO_SCHEDULE))
    for key, effect in wanted:
        new = {"key": key, "operator": "Exists", "effect": effect}
        if new not in out:
            out.append(new)
    return out


def target_node(pod: Object) -> str:
    """The node that a pod is on, or is tied to; "" where there is none."""
    placed = pod_facts.node_name(pod)
    if placed:
        return placed
    terms = objects.get(
        pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", default=[]
    )
    for term in terms:
        for field in term.get("matchFields") or []:
            if field.get("key") == "metadata.name" and field.get("operator") == "In" and len(field.get("values") or []) == 1:
                return str(field["values"][0])
    return ""
