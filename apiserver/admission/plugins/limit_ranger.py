"""LimitRanger: the LimitRanges of a namespace fill in requests and limits of containers, and bound them, pods and claims."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter, Operation
from apiserver.admission.plugin import POD, Plugin, forbidden, joined, new_object
from apiserver.machinery import objects, quantity
from apiserver.machinery.quantity import Quantity
from apiserver.machinery.quota.evaluators import spec_amounts
from apiserver.resources.facts import LAST_MINOR

#: the minor since which pods are summed up as the scheduler and quotas do it
SUMS_SINCE = 28
ANNOTATION = "kubernetes.io/limit-ranger"

Amounts: TypeAlias = dict[str, Quantity]


class LimitRanger(Plugin):
    name = "LimitRanger"
    operations = frozenset((Operation.CREATE, Operation.UPDATE))
    resources = frozenset((POD, ("", "persistentvolumeclaims")))
    subresources = frozenset(("", "resize"))

    def __init__(self, getter: ObjectGetter, minor: int = LAST_MINOR) -> None:
        """``minor``: the served Kubernetes version, which says how pods are summed up."""
        self._getter = getter
        self._sums_all = minor >= SUMS_SINCE

    async def admit(self, attributes: AdmissionAttributes) -> None:
        if attributes.info.resource != "pods" or not _changes_containers(attributes):
            return
        for limit_range in self._limit_ranges(attributes):
            _set_defaults(new_object(attributes), limit_range)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        if attributes.info.resource == "pods":
            if not _changes_containers(attributes):
                return
            check: Callable[[objects.Object, dict[str, Any]], list[str]] = functools.partial(pod_errors, sums_all=self._sums_all)
        else:
            check = claim_errors
        if attributes.old_object is not None and objects.is_being_deleted(attributes.old_object):
            return
        for limit_range in self._limit_ranges(attributes):
            if errors := check(new_object(attributes), limit_range):
                raise forbidden(attributes, joined(errors))

    def _limit_ranges(self, attributes: AdmissionAttributes) -> list[objects.Object]:
        return sorted(self._getter.list("", "limitranges", attributes.namespace), key=objects.name)


def _changes_containers(attributes: AdmissionAttributes) -> bool:
    """What a running pod has changes by a resize alone."""
    return attributes.operation is Operation.CREATE if not attributes.subresource else attributes.operation is Operation.UPDATE


def _limits(limit_range: objects.Object, kind: str) -> list[dict[str, Any]]:
    return [limit for limit in objects.get(limit_range, "spec", "limits", default=()) if limit.get("type") == kind]


def _set_defaults(pod: objects.Object, limit_range: objects.Object) -> None:
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for limit in _limits(limit_range, "Container"):
        requests |= limit.get("defaultRequest") or {}
        limits |= limit.get("default") or {}
    spec = pod.get("spec") or {}
    notes: list[str] = []
    for field, words in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            resources = dict(container.get("resources") or {})
            for part, defaults, word in (("requests", requests, "request"), ("limits", limits, "limit")):
                there = dict(resources.get(part) or {})
                added = sorted(defaults.keys() - there.keys())
                if added:
                    resources[part] = there | {name: defaults[name] for name in added}
                    notes.append(f"{', '.join(added)} {word} for {words} {container.get('name')}")
            container["resources"] = resources
    if notes:
        metadata = pod.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), ANNOTATION: "LimitRanger plugin set: " + "; ".join(notes)}


def pod_errors(pod: objects.Object, limit_range: objects.Object, *, sums_all: bool = True) -> list[str]:
    """What in a pod breaks a LimitRange, in the order of its items. ``sums_all``: a pod asks for what its containers ask for together,
    sidecars and its own word included; else only for that of which each of them says something."""
    errors: list[str] = []
    spec = pod.get("spec") or {}
    for limit in objects.get(limit_range, "spec", "limits", default=()):
        kind = limit.get("type")
        if kind == "Container":
            for field in ("containers", "initContainers"):
                for container in spec.get(field) or ():
                    errors += _errors(kind, limit, _amounts(container, "requests"), _amounts(container, "limits"))
        elif kind == "Pod":
            whole = (spec_amounts(spec, part) if sums_all else _pod_amounts(pod, part) for part in ("requests", "limits"))
            errors += _errors(kind, limit, *whole)
    return errors


def claim_errors(claim: objects.Object, limit_range: objects.Object) -> list[str]:
    """A claim has only requests."""
    errors: list[str] = []
    requests = _parsed(objects.get(claim, "spec", "resources", "requests", default={}))
    for limit in _limits(limit_range, "PersistentVolumeClaim"):
        for name, bound in sorted(_parsed(limit.get("min")).items()):
            errors += _minimum("PersistentVolumeClaim", name, bound, requests, {})
        for name, bound in sorted(_parsed(limit.get("max")).items()):
            what = f"maximum {name} usage per PersistentVolumeClaim is {bound}"
            if name not in requests:
                errors.append(f"{what}.  No request is specified")
            elif requests[name] > bound:
                errors.append(f"{what}, but request is {requests[name]}")
    return errors


def _parsed(amounts: dict[str, Any] | None) -> Amounts:
    return {name: quantity.of_json(amount) for name, amount in (amounts or {}).items()}


def _amounts(container: dict[str, Any], part: str) -> Amounts:
    return _parsed(objects.get(container, "resources", part, default={}))


def _pod_amounts(pod: objects.Object, part: str) -> Amounts:
    """The sum over containers of what all of them say; at least what any init container says."""
    spec = pod.get("spec") or {}
    containers = [_amounts(c, part) for c in spec.get("containers") or ()]
    said_by_all = set.intersection(*(set(c) for c in containers)) if containers else set()
    total = {name: _sum(name, (c[name] for c in containers)) for name in said_by_all}
    for container in spec.get("initContainers") or ():
        for name, amount in _amounts(container, part).items():
            if name not in total or amount > total[name]:
                total[name] = amount
    return total


def _sum(name: str, amounts: Iterable[Quantity]) -> Quantity:
    # in the precision and the format in which kube-apiserver counts them: millis of cpu, whole units of all else
    if name == "cpu":
        return Quantity(sum(amount.milli_value() for amount in amounts) * (quantity.NANOS // 1000))
    return Quantity(sum(amount.value() for amount in amounts) * quantity.NANOS)


def _errors(kind: str, limit: dict[str, Any], requests: Amounts, limits: Amounts) -> list[str]:
    errors: list[str] = []
    for name, bound in sorted(_parsed(limit.get("min")).items()):
        errors += _minimum(kind, name, bound, requests, limits)
    for name, bound in sorted(_parsed(limit.get("max")).items()):
        errors += _maximum(kind, name, bound, requests, limits)
    for name, bound in sorted(_parsed(limit.get("maxLimitRequestRatio")).items()):
        errors += _ratio(kind, name, bound, requests, limits)
    return errors


def _minimum(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> list[str]:
    what = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        return [f"{what}.  No request is specified"]
    if requests[name] < bound:
        return [f"{what}, but request is {requests[name]}"]
    if name in limits and limits[name] < bound:
        return [f"{what}, but limit is {limits[name]}"]
    return []


def _maximum(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> list[str]:
    what = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        return [f"{what}.  No limit is specified"]
    if limits[name] > bound:
        return [f"{what}, but limit is {limits[name]}"]
    if name in requests and requests[name] > bound:
        return [f"{what}, but request is {requests[name]}"]
    return []


def _ratio(kind: str, name: str, bound: Quantity, requests: Amounts, limits: Amounts) -> list[str]:
    what = f"{name} max limit to request ratio per {kind} is {bound}"
    if not requests.get(name):
        return [f"{what}, but no request is specified or request is 0"]
    if not limits.get(name):
        return [f"{what}, but no limit is specified or limit is 0"]
    ratio = limits[name].as_fraction() / requests[name].as_fraction()
    if ratio > bound.as_fraction():
        return [f"{what}, but provided ratio is {float(ratio):f}"]
    return []
