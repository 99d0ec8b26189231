"""Which pods to make and which to delete: one pod on each fitting node, then the steps of an update. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.daemonset.placement import REVISION_LABEL, Fit, target_node
from controllers.lib import pods as pod_facts
from controllers.lib.int_or_percent import scaled

#: Creations or deletions of one sync; the rest waits for what the watch brings (``BurstReplicas``).
BURST_REPLICAS = 250


@dataclass(slots=True, kw_only=True)
class Plan:
    """``create`` are names of nodes. ``ended`` are those of the deleted pods that had failed or succeeded."""

    create: list[str] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    ended: list[Object] = field(default_factory=list)

    def bounded(self) -> Plan:
        return Plan(create=self.create[:BURST_REPLICAS], delete=self.delete[:BURST_REPLICAS], ended=self.ended[:BURST_REPLICAS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a decision is made from. ``fits`` holds every node, by name; ``by_node`` the set's pods by the node they are for."""

    daemon_set: Object
    fits: Mapping[str, Fit]
    by_node: Mapping[str, Sequence[Object]]
    revision_hash: str
    now: datetime.datetime

    def is_new(self, pod: Object) -> bool:
        return objects.labels(pod).get(REVISION_LABEL) == self.revision_hash

    def is_available(self, pod: Object) -> bool:
        return pod_facts.is_available(pod, min_ready_seconds(self.daemon_set), self.now)


def group_by_node(pods: Sequence[Object]) -> dict[str, list[Object]]:
    """Left out are pods that are gone but for their finalizers, since their node needs another, and adopted ones that are for no node."""
    out: dict[str, list[Object]] = {}
    for pod in pods:
        node_name = target_node(pod)
        if node_name and not (objects.is_being_deleted(pod) and pod_facts.is_terminal(pod)):
            out.setdefault(node_name, []).append(pod)
    return out


def min_ready_seconds(daemon_set: Object) -> int:
    return int(objects.get(daemon_set, "spec", "minReadySeconds", default=0))


def is_rolling(daemon_set: Object) -> bool:
    return bool(objects.get(daemon_set, "spec", "updateStrategy", "type", default="RollingUpdate") == "RollingUpdate")


def limits(daemon_set: Object, desired: int) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) of a rolling update over so many pods; one of them is at least 1."""
    if not is_rolling(daemon_set):
        return 0, 0
    spec = objects.get(daemon_set, "spec", "updateStrategy", "rollingUpdate", default={})
    surge = scaled(spec.get("maxSurge"), desired, round_up=True)
    unavailable = scaled(spec.get("maxUnavailable"), desired, round_up=True, default=1)
    return surge, (unavailable if surge or unavailable else 1)


def desired_count(situation: Situation) -> int:
    return sum(1 for fit in situation.fits.values() if fit.should_run)


def oldest_first(pods: Sequence[Object]) -> list[Object]:
    """Those that have a node before those that wait."""

    def key(pod: Object) -> tuple[bool, str, str]:
        return not pod_facts.node_name(pod), str(objects.metadata(pod).get("creationTimestamp") or ""), objects.name(pod)

    return sorted(pods, key=key)


def plan_keeping(situation: Situation, may_replace: Callable[[str], bool]) -> Plan:
    """One pod on each node that fits, none elsewhere. ``may_replace`` says whether a pod that ended on that node may go by now: one
    that fails again and again is made again more and more slowly."""
    surging = limits(situation.daemon_set, desired_count(situation))[0] > 0
    plan = Plan()
    for node_name in sorted(situation.fits):
        _keep_on_node(situation, node_name, plan, may_replace, surging)
    for node_name in sorted(set(situation.by_node) - set(situation.fits)):
        # the node is gone: those that never started would wait for ever; the others are the pod garbage collector's
        plan.delete += [p for p in situation.by_node[node_name] if not pod_facts.node_name(p) and not objects.is_being_deleted(p)]
    return plan


def _keep_on_node(situation: Situation, node_name: str, plan: Plan, may_replace: Callable[[str], bool], surging: bool) -> None:
    fit, pods = situation.fits[node_name], situation.by_node.get(node_name, ())
    staying = [p for p in pods if not objects.is_being_deleted(p)]
    if not fit.may_stay:
        plan.delete += staying
        return
    running = [p for p in staying if not pod_facts.is_terminal(p)]
    ended = [p for p in staying if pod_facts.is_terminal(p)]
    if ended and may_replace(node_name):
        plan.delete += ended
        plan.ended += ended
    if fit.should_run and (not pods or (surging and not staying)):
        plan.create.append(node_name)
    if len(running) > 1:
        plan.delete += _superfluous(situation, running, surging)


def _superfluous(situation: Situation, running: Sequence[Object], surging: bool) -> list[Object]:
    """Without surge the oldest stays. With it the oldest old and the oldest new one stay together until the new one is available, or the
    old one is of no use."""
    ordered = oldest_first(running)
    if not surging:
        return ordered[1:]
    new = [p for p in ordered if situation.is_new(p)]
    old = [p for p in ordered if not situation.is_new(p)]
    out = new[1:] + old[1:]
    if new and old and (not pod_facts.is_ready(old[0]) or situation.is_available(new[0])):
        out.append(old[0])
    return out


def plan_update(situation: Situation) -> Plan:
    """The next step of a rolling update."""
    surge, unavailable = limits(situation.daemon_set, desired_count(situation))
    return _plan_surge(situation, surge) if surge else _plan_replacement(situation, unavailable)


def _new_and_old(situation: Situation, node_name: str) -> tuple[Object | None, Object | None] | None:
    """None where there are two of a sort: keeping has to tidy up there first."""
    staying = [p for p in situation.by_node.get(node_name, ()) if not objects.is_being_deleted(p)]
    new = [p for p in staying if situation.is_new(p)]
    old = [p for p in staying if not situation.is_new(p)]
    if len(new) > 1 or len(old) > 1:
        return None
    return (new[0] if new else None), (old[0] if old else None)


def _plan_replacement(situation: Situation, max_unavailable: int) -> Plan:
    """Deletes old pods; keeping makes new ones. Those that are not available lose nothing and always go."""
    missing = 0
    useless: list[Object] = []
    candidates: list[Object] = []
    for node_name in sorted(n for n, fit in situation.fits.items() if fit.should_run):
        found = _new_and_old(situation, node_name)
        if found is None or (found[0] is None) == (found[1] is None):
            missing += 1
            continue
        new, old = found
        if new is not None:
            missing += not situation.is_available(new)
        elif old is not None and situation.is_available(old):
            candidates.append(old)
        elif old is not None:
            useless.append(old)
    return Plan(delete=useless + candidates[: max(0, max_unavailable - missing - len(useless))])


def _plan_surge(situation: Situation, max_surge: int) -> Plan:
    """Makes new pods beside old ones, and deletes an old one once the new one beside it is available."""
    surging = 0
    useless: list[str] = []
    candidates: list[str] = []
    plan = Plan()
    for node_name in sorted(n for n, fit in situation.fits.items() if fit.should_run):
        found = _new_and_old(situation, node_name)
        if found is None:
            surging += 1
            continue
        new, old = found
        if old is None:
            continue
        if new is None:
            (candidates if situation.is_available(old) else useless).append(node_name)
        elif situation.is_available(new):
            plan.delete.append(old)
        else:
            surging += 1
    plan.create = useless + candidates[: max(0, max_surge - surging)]
    return plan
