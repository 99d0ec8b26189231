"""What one object of a resource uses: ``Evaluator`` for each resource that quota knows more of than its number."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.machinery import objects, quantity
from apiserver.machinery.quantity import Quantity
from apiserver.machinery.quota.amounts import ONE, Amounts, add, maximum, parsed

Scope = dict[str, Any]
"""A ScopedResourceSelectorRequirement: ``scopeName``, ``operator``, ``values``"""

#: kinds whose number has had a name of its own since before ``count/…``
_ALIASES = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")


def count_name(group: str, resource: str) -> str:
    """``count/deployments.apps``."""
    return f"count/{resource}.{group}" if group else f"count/{resource}"


class Evaluator:
    """The number of objects; the base of the others."""

    def __init__(self, group: str, resource: str) -> None:
        self.count = count_name(group, resource)
        self._names = {self.count} | ({resource} if not group and resource in _ALIASES else set())

    def charges(self, subresource: str, *, update: bool) -> bool:
        """Whether a create, or an update, can make an object use more. Of most kinds only the creation can."""
        return not subresource and not update

    def matching_resources(self, names: Iterable[str]) -> list[str]:
        """Those of a quota's resources that this kind of object can use."""
        return [name for name in names if self.matches(name)]

    def matches(self, name: str) -> bool:
        return name in self._names

    def usage(self, obj: objects.Object, now: float) -> Amounts:
        """``now``: seconds since the epoch."""
        return dict.fromkeys(self._names, ONE)

    def missing(self, obj: objects.Object, required: Iterable[str]) -> str:
        """What the object must say, because a quota bounds it, and does not; "" where nothing is missing."""
        return ""

    def in_scope(self, scope: Scope, obj: objects.Object) -> bool:
        """Only pods and claims have scopes: a quota with scopes is not about other objects."""
        return False


class ServiceEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__("", "services")
        self._names |= {"services", "services.nodeports", "services.loadbalancers"}

    def charges(self, subresource: str, *, update: bool) -> bool:
        return not subresource

    def usage(self, obj: objects.Object, now: float) -> Amounts:
        spec = obj.get("spec") or {}
        ports = spec.get("ports") or []
        node_ports, load_balancers = 0, 0
        if spec.get("type") == "NodePort":
            node_ports = len(ports)
        elif spec.get("type") == "LoadBalancer":
            load_balancers = 1
            # without allocation only ports that were asked for count
            allocates = spec.get("allocateLoadBalancerNodePorts") is not False
            node_ports = len(ports) if allocates else sum(bool(p.get("nodePort")) for p in ports)
        return {
            self.count: ONE,
            "services": ONE,
            "services.nodeports": ONE * node_ports,
            "services.loadbalancers": ONE * load_balancers,
        }


class ClaimEvaluator(Evaluator):
    _CLASS = ".storageclass.storage.k8s.io/"

    def __init__(self) -> None:
        super().__init__("", "persistentvolumeclaims")
        self._names |= {"persistentvolumeclaims", "requests.storage"}

    def charges(self, subresource: str, *, update: bool) -> bool:
        # its status tells how much was allocated, and which attributes it has by now; it is never refused
        return not subresource or (update and subresource == "status")

    def in_scope(self, scope: Scope, obj: objects.Object) -> bool:
        return scope.get("scopeName") == "VolumeAttributesClass" and _selects_any(scope, attributes_classes(obj))

    def matches(self, name: str) -> bool:
        if name in self._names:
            return True
        return name.endswith((f"{self._CLASS}requests.storage", f"{self._CLASS}persistentvolumeclaims"))

    def usage(self, obj: objects.Object, now: float) -> Amounts:
        used: Amounts = {self.count: ONE, "persistentvolumeclaims": ONE}
        annotation = objects.annotations(obj).get("volume.beta.kubernetes.io/storage-class")
        storage_class = annotation or str(objects.get(obj, "spec", "storageClassName", default=""))
        if storage_class:
            used[f"{storage_class}{self._CLASS}persistentvolumeclaims"] = ONE
        asked = objects.get(obj, "spec", "resources", "requests", "storage")
        if asked is not None:
            amount = quantity.of_json(asked)
            allocated = objects.get(obj, "status", "allocatedResources", "storage")
            if allocated is not None:
                # while it shrinks back from what could not be had, what is allocated counts
                amount = max(amount, quantity.of_json(allocated))
            if amount.nanos % quantity.NANOS:
                amount = Quantity(amount.value() * quantity.NANOS, amount.format)
            used["requests.storage"] = amount
            if storage_class:
                used[f"{storage_class}{self._CLASS}requests.storage"] = amount
        return used


def attributes_classes(claim: objects.Object) -> set[str]:
    """The classes that a claim names, has, or is on its way to."""
    status = claim.get("status") or {}
    named = (
        objects.get(claim, "spec", "volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        objects.get(status, "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    )
    return {str(name) for name in named if name}


#: devices that "all of a class" count as (upstream's AllocationResultsMaxSize)
_ALL_DEVICES = 32


class DeviceClaimEvaluator(Evaluator):
    """Of ResourceClaims: the devices of each class that they may come to hold."""

    _CLASS = ".deviceclass.resource.k8s.io/devices"

    def __init__(self) -> None:
        super().__init__("resource.k8s.io", "resourceclaims")

    def matches(self, name: str) -> bool:
        return name in self._names or name.endswith(self._CLASS)

    def usage(self, obj: objects.Object, now: float) -> Amounts:
        total: dict[str, int] = {}
        for request in objects.get(obj, "spec", "devices", "requests", default=()):
            # of alternatives the most that any of them takes of a class; a request of the first versions is the exact one itself
            most: dict[str, int] = {}
            for one in request.get("firstAvailable") or (request.get("exactly") or request,):
                name = str(one.get("deviceClassName") or "")
                count = _ALL_DEVICES if one.get("allocationMode") == "All" else int(one.get("count") or 1)
                most[name] = max(most.get(name, 0), count)
            for name, count in most.items():
                total[name] = total.get(name, 0) + count
        return {self.count: ONE, **{f"{name}{self._CLASS}": ONE * count for name, count in total.items() if name}}


#: quotas of these make every container say them (a mistake of old that is kept for those who rely on it)
_MUST_BE_SAID = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_COMPUTE = _MUST_BE_SAID | {"ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "pods"}
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


class PodEvaluator(Evaluator):
    def __init__(self) -> None:
        super().__init__("", "pods")
        self._names |= _COMPUTE

    def charges(self, subresource: str, *, update: bool) -> bool:
        return subresource == "resize" if update else not subresource

    def matches(self, name: str) -> bool:
        return name in self._names or name.startswith(_HUGE_PAGES) or (name.startswith("requests.") and not _is_native(name))

    def usage(self, obj: objects.Object, now: float) -> Amounts:
        used: Amounts = {self.count: ONE}
        if is_over(obj, now):
            return used
        return add(used, {"pods": ONE, **_compute_names(*pod_amounts(obj))})

    def missing(self, obj: objects.Object, required: Iterable[str]) -> str:
        wanted = set(required) & _MUST_BE_SAID
        if not wanted:
            return ""
        spec = obj.get("spec") or {}
        lacking: dict[str, set[str]] = {}
        pod_level = spec.get("resources") or {}
        said_by_pod = _compute_names(parsed(pod_level.get("requests")), parsed(pod_level.get("limits")))
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            resources = container.get("resources") or {}
            said = _compute_names(parsed(resources.get("requests")), parsed(resources.get("limits")))
            for name in wanted - said.keys() - said_by_pod.keys():
                lacking.setdefault(name, set()).add(str(container.get("name")))
        if not lacking:
            return ""
        return "must specify " + "; ".join(f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))

    def in_scope(self, scope: Scope, obj: objects.Object) -> bool:
        spec = obj.get("spec") or {}
        match scope.get("scopeName"):
            case "Terminating":
                return spec.get("activeDeadlineSeconds") is not None
            case "NotTerminating":
                return spec.get("activeDeadlineSeconds") is None
            case "BestEffort":
                return is_best_effort(spec)
            case "NotBestEffort":
                return not is_best_effort(spec)
            case "PriorityClass":
                return _selects_any(scope, {str(spec["priorityClassName"])} if spec.get("priorityClassName") else set())
            case "CrossNamespacePodAffinity":
                return _crosses_namespaces(spec)
        return False


def is_over(pod: objects.Object, now: float) -> bool:
    """Whether a pod has ended, or should have ended by now: then only its being there counts."""
    if objects.get(pod, "status", "phase") in ("Failed", "Succeeded"):
        return True
    metadata = objects.metadata(pod)
    deleted_at, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not deleted_at or grace is None:
        return False
    return now > datetime.datetime.fromisoformat(str(deleted_at)).timestamp() + float(grace)


def pod_amounts(pod: objects.Object) -> tuple[Amounts, Amounts]:
    """(requests, limits) of a pod: containers and sidecars run together; an init container runs beside the sidecars that started
    before it, so the larger of the two counts; then the overhead. What is said for the whole pod overrides cpu and memory. Of a container
    that is resized the most of what it asks for, was promised and has counts."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    states = {c.get("name"): c for field in ("initContainerStatuses", "containerStatuses") for c in status.get(field) or ()}
    totals: list[Amounts] = []
    for part in ("requests", "limits"):
        total = spec_amounts(spec, part, states)
        overhead = parsed(spec.get("overhead"))
        # an overhead bounds nothing where no container is bounded
        totals.append(add(total, overhead if part == "requests" else {n: a for n, a in overhead.items() if n in total}))
    return totals[0], totals[1]


def spec_amounts(spec: Mapping[str, Any], part: str, states: Mapping[Any, Any] | None = None) -> Amounts:
    """The ``requests`` or ``limits`` of a pod without its overhead; ``states``: of its containers by name, where they count too."""
    states = states or {}
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = add(running, _container_amounts(container, states, part))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _container_amounts(container, states, part)
        if container.get("restartPolicy") == "Always":
            running, sidecars = add(running, own), add(sidecars, own)
            starting = maximum(starting, sidecars)
        else:
            starting = maximum(starting, add(sidecars, own))
    return maximum(running, starting) | parsed(objects.get(spec, "resources", part, default={}))


def _container_amounts(container: Mapping[str, Any], states: Mapping[Any, Any], part: str) -> Amounts:
    found = parsed(objects.get(container, "resources", part, default={}))
    state = states.get(container.get("name"))
    if state:
        found = maximum(found, parsed(objects.get(state, "resources", part, default={})))
        if part == "requests":
            found = maximum(found, parsed(state.get("allocatedResources")))
    return found


def _compute_names(requests: Amounts, limits: Amounts) -> Amounts:
    """Under the names that quotas use: ``cpu`` and ``requests.cpu`` are the same."""
    out: Amounts = {}
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in requests:
            out[name] = out[f"requests.{name}"] = requests[name]
        if name in limits:
            out[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            out[name] = out[f"requests.{name}"] = amount
        elif not _is_native(name):
            out[f"requests.{name}"] = amount
    return out


def is_best_effort(spec: dict[str, Any]) -> bool:
    """No container, and not the pod, asks for or bounds cpu or memory (quality of service class BestEffort)."""
    holders = [spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for holder in holders:
        for part in ("requests", "limits"):
            amounts = parsed(objects.get(holder, "resources", part, default={}))
            if any(amounts.get(name) for name in ("cpu", "memory")):
                return False
    return True


def _selects_any(scope: Scope, names: set[str]) -> bool:
    """Whether a scope's operator holds of one of the names, or of there being none."""
    values = set(scope.get("values") or ())
    match scope.get("operator"):
        case "In":
            return bool(names & values)
        case "NotIn":
            return not names or bool(names - values)
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
    return False


def _crosses_namespaces(spec: dict[str, Any]) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = objects.get(spec, "affinity", kind, default={})
        terms = list(affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [weighted.get("podAffinityTerm") or {} for weighted in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def scopes_of(quota: objects.Object) -> list[Scope]:
    spec = quota.get("spec") or {}
    plain: list[Scope] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return plain + list(objects.get(spec, "scopeSelector", "matchExpressions", default=()))


_SPECIAL: dict[tuple[str, str], Evaluator] = {
    ("", "pods"): PodEvaluator(),
    ("", "services"): ServiceEvaluator(),
    ("", "persistentvolumeclaims"): ClaimEvaluator(),
    ("resource.k8s.io", "resourceclaims"): DeviceClaimEvaluator(),
}


def evaluator_for(group: str, resource: str) -> Evaluator:
    """Kept: one for each kind of object."""
    key = (group, resource)
    found = _SPECIAL.get(key)
    if found is None:
        found = _SPECIAL[key] = Evaluator(group, resource)
    return found
