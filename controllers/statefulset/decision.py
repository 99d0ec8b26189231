"""Which pods to make, delete or mend now, and the status that follows (``stateful_set_control.go``). Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts
from controllers.lib.int_or_percent import scaled
from controllers.statefulset import identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    ordinal: int
    revision: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    pod: Object
    #: it has ended and is made again under its name
    recreate: bool = False
    #: its ordinal is no longer wanted: its claims may go with it
    condemned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mend:
    """A pod whose labels, volumes or claims may not be what they should be; mending one that is as it should be writes nothing."""

    pod: Object


Action = Create | Delete | Mend


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    replicas: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0


@dataclass(slots=True, kw_only=True)
class Plan:
    """``counts`` are those after the actions."""

    actions: list[Action] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    current: Object
    update: Object

    @property
    def current_name(self) -> str:
        return objects.name(self.current)

    @property
    def update_name(self) -> str:
        return objects.name(self.update)


def replicas_wanted(stateful_set: Object) -> int:
    return int(objects.get(stateful_set, "spec", "replicas", default=1))


def first_ordinal(stateful_set: Object) -> int:
    return int(objects.get(stateful_set, "spec", "ordinals", "start", default=0))


def is_monotonic(stateful_set: Object) -> bool:
    return bool(objects.get(stateful_set, "spec", "podManagementPolicy", default="OrderedReady") != "Parallel")


def is_rolling(stateful_set: Object) -> bool:
    return bool(objects.get(stateful_set, "spec", "updateStrategy", "type", default="RollingUpdate") == "RollingUpdate")


def partition(stateful_set: Object) -> int:
    """Ordinals from the first plus this on are updated."""
    return int(objects.get(stateful_set, "spec", "updateStrategy", "rollingUpdate", "partition", default=0))


def max_unavailable(stateful_set: Object) -> int:
    value = objects.get(stateful_set, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable", default=1)
    return max(1, scaled(value, replicas_wanted(stateful_set), round_up=True, default=1))


def min_ready_seconds(stateful_set: Object) -> int:
    return int(objects.get(stateful_set, "spec", "minReadySeconds", default=0))


def is_running_and_ready(pod: Object) -> bool:
    return pod_facts.phase(pod) == "Running" and pod_facts.is_ready(pod)


def _is_running_and_available(stateful_set: Object, pod: Object, now: datetime.datetime) -> bool:
    return pod_facts.phase(pod) == "Running" and pod_facts.is_available(pod, min_ready_seconds(stateful_set), now)


class _Planner:
    """One pass over the ordinals; stops where a set that keeps the order has to wait."""

    def __init__(self, stateful_set: Object, pods: Sequence[Object], revisions: Revisions, now: datetime.datetime) -> None:
        self._set, self._revisions, self._now = stateful_set, revisions, now
        self._monotonic = is_monotonic(stateful_set)
        self._actions: list[Action] = []
        self._counts = counts_of(stateful_set, pods, revisions, now)
        by_ordinal = {ordinal: pod for pod in pods if (ordinal := identity.ordinal_of(stateful_set, pod)) is not None}
        start = first_ordinal(stateful_set)
        wanted = range(start, start + replicas_wanted(stateful_set))
        self._replicas = {ordinal: by_ordinal.get(ordinal) for ordinal in wanted}
        self._condemned = [by_ordinal[ordinal] for ordinal in sorted(by_ordinal, reverse=True) if ordinal not in wanted]

    def plan(self) -> Plan:
        # each returns whether to go on
        if self._fill() and self._shrink() and is_rolling(self._set):
            self._update()
        return Plan(actions=self._actions, counts=self._counts)

    def _fill(self) -> bool:
        """From the lowest ordinal up; one that has ended stops everything until it is gone, also in a Parallel set."""
        ended = [pod for pod in self._replicas.values() if pod is not None and pod_facts.is_terminal(pod)]
        for ordinal, pod in self._replicas.items():
            if pod is None:
                self._create(ordinal)
                if self._monotonic:
                    return False
                continue
            if pod_facts.is_terminal(pod):
                if not objects.is_being_deleted(pod):
                    self._actions.append(Delete(pod=pod, recreate=True))
                if self._monotonic:
                    return False
                continue
            if self._monotonic and (objects.is_being_deleted(pod) or not _is_running_and_available(self._set, pod, self._now)):
                self._mend(pod)
                return False
            self._mend(pod)
        return not ended

    def _create(self, ordinal: int) -> None:
        revision = self._revision_for(ordinal)
        self._actions.append(Create(ordinal=ordinal, revision=revision))
        counts = self._counts
        self._counts = replace(
            counts,
            replicas=counts.replicas + 1,
            current=counts.current + (objects.name(revision) == self._revisions.current_name),
            updated=counts.updated + (objects.name(revision) == self._revisions.update_name),
        )

    def _revision_for(self, ordinal: int) -> Object:
        """Pods below the partition come back as they were."""
        if is_rolling(self._set) and ordinal < first_ordinal(self._set) + partition(self._set):
            return self._revisions.current
        return self._revisions.update

    def _mend(self, pod: Object) -> None:
        if objects.is_being_deleted(pod):
            return
        if identity.claim_templates(self._set) or not identity.has_identity(self._set, pod):
            self._actions.append(Mend(pod=pod))

    def _shrink(self) -> bool:
        """From the highest ordinal down. The first unhealthy one may go though it is not ready: nobody will mend it."""
        unhealthy = next(
            (
                pod
                for pod in [*self._replicas.values(), *reversed(self._condemned)]
                if pod is not None and (objects.is_being_deleted(pod) or not is_running_and_ready(pod))
            ),
            None,
        )
        for pod in self._condemned:
            if objects.is_being_deleted(pod):
                if self._monotonic:
                    return False
                continue
            if self._monotonic and pod is not unhealthy and not _is_running_and_available(self._set, pod, self._now):
                return False
            self._delete(pod, condemned=True)
            if self._monotonic:
                return False
        return True

    def _delete(self, pod: Object, *, condemned: bool) -> None:
        self._actions.append(Delete(pod=pod, condemned=condemned))
        revision, counts = identity.revision_of(pod), self._counts
        self._counts = replace(
            counts,
            current=counts.current - (revision == self._revisions.current_name),
            updated=counts.updated - (revision == self._revisions.update_name),
        )

    def _update(self) -> None:
        """Replaces old pods from the highest ordinal down; waits where maxUnavailable of those it has passed are missing or not healthy.
        What is broken further down does not hold it up: it may be what the update is to mend."""
        lowest = first_ordinal(self._set) + partition(self._set)
        missing = 0
        for ordinal in sorted(self._replicas, reverse=True):
            if ordinal < lowest or missing >= max_unavailable(self._set):
                return
            pod = self._replicas[ordinal]
            if pod is None:
                missing += 1  # a Parallel set is just making it
                continue
            if identity.revision_of(pod) != self._revisions.update_name and not objects.is_being_deleted(pod):
                self._delete(pod, condemned=False)
                missing += 1
            elif not self._is_healthy(pod):
                missing += 1

    def _is_healthy(self, pod: Object) -> bool:
        return not objects.is_being_deleted(pod) and _is_running_and_available(self._set, pod, self._now)


def plan(stateful_set: Object, pods: Sequence[Object], revisions: Revisions, now: datetime.datetime) -> Plan:
    """``pods`` are the set's own, ended ones and those on their way out too."""
    return _Planner(stateful_set, pods, revisions, now).plan()


def counts_of(stateful_set: Object, pods: Sequence[Object], revisions: Revisions, now: datetime.datetime) -> Counts:
    staying = [pod for pod in pods if not objects.is_being_deleted(pod)]
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    return Counts(
        replicas=len(pods),
        ready=len(ready),
        available=sum(1 for pod in ready if _is_running_and_available(stateful_set, pod, now)),
        current=sum(1 for pod in staying if identity.revision_of(pod) == revisions.current_name),
        updated=sum(1 for pod in staying if identity.revision_of(pod) == revisions.update_name),
    )


def status_of(stateful_set: Object, counts: Counts, revisions: Revisions, collision_count: int | None) -> Object:
    """Counters of zero are left out as Kubernetes' encoding does, but for ``replicas`` and ``availableReplicas``."""
    current, current_name = counts.current, revisions.current_name
    if is_rolling(stateful_set) and counts.updated == counts.replicas == counts.ready and counts.replicas == replicas_wanted(stateful_set):
        # the update is complete: what was new is what is
        current, current_name = counts.updated, revisions.update_name
    status: Object = {"replicas": counts.replicas, "availableReplicas": counts.available}
    rest = {
        "observedGeneration": int(objects.metadata(stateful_set).get("generation") or 0),
        "readyReplicas": counts.ready,
        "currentReplicas": max(0, current),
        "updatedReplicas": max(0, counts.updated),
        "currentRevision": current_name,
        "updateRevision": revisions.update_name,
    }
    status.update({k: v for k, v in rest.items() if v})
    if collision_count is not None:
        status["collisionCount"] = collision_count
    conditions = objects.get(stateful_set, "status", "conditions", default=[])
    if conditions:
        status["conditions"] = conditions
    return status


def seconds_until_more_available(stateful_set: Object, pods: Sequence[Object], now: datetime.datetime) -> float | None:
    waits = [w for w in (pod_facts.seconds_until_available(p, min_ready_seconds(stateful_set), now) for p in pods) if w]
    return min(waits, default=None)
