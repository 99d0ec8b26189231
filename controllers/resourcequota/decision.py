"""What a quota's namespace uses. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.machinery.quantity import ZERO
from apiserver.machinery.quota.amounts import Amounts, add, masked, parsed, to_json
from apiserver.machinery.quota.evaluators import Evaluator, attributes_classes, evaluator_for, scopes_of

GroupResource = tuple[str, str]

PODS: GroupResource = ("", "pods")
SERVICES: GroupResource = ("", "services")
CLAIMS: GroupResource = ("", "persistentvolumeclaims")

#: resources of which quotas know more than their number
MEASURED = (PODS, SERVICES, CLAIMS)
#: the same, but looked at only where a quota is about them
DEVICE_CLAIMS: GroupResource = ("resource.k8s.io", "resourceclaims")
#: kinds whose number has had a name of its own since before ``count/…``
_ALIASES = {name: ("", name) for name in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")}


def counted_resources(hard: Iterable[str]) -> list[GroupResource]:
    """The resources whose objects have to be looked at for these names, sorted; one that no server may have is among them too.

    >>> counted_resources(["count/deployments.apps", "secrets", "requests.cpu"])
    [('', 'pods'), ('', 'secrets'), ('apps', 'deployments')]
    """
    names = list(hard)
    found = {one for one in (*MEASURED, DEVICE_CLAIMS) if evaluator_for(*one).matching_resources(names)}
    for name in names:
        if name in _ALIASES:
            found.add(_ALIASES[name])
        elif name.startswith("count/"):
            plural, _, group = name.removeprefix("count/").partition(".")
            found.add((group, plural))
    return sorted(found)


def hard_of(quota: Object) -> Object:
    found: Object = objects.get(quota, "spec", "hard", default={})
    return found


def usage(quota: Object, evaluator: Evaluator, found: Iterable[Object], now: float) -> Amounts:
    """What objects of one resource use of what the quota bounds; zero of what they could use and do not.

    ``now`` in seconds since the epoch.
    """
    names = evaluator.matching_resources(hard_of(quota))
    scopes = scopes_of(quota)
    total: Amounts = dict.fromkeys(names, ZERO)
    for obj in found:
        if all(evaluator.in_scope(scope, obj) for scope in scopes):
            total = add(total, masked(evaluator.usage(obj, now), names))
    return total


def status_of(quota: Object, objects_of: Callable[[GroupResource], Iterable[Object] | None], now: float) -> Object:
    """The status; ``objects_of`` gives the namespace's objects of a resource, or None where the server has no such resource: what was
    known to be used of it stays."""
    hard = hard_of(quota)
    used: Amounts = parsed(objects.get(quota, "status", "used", default={}))
    for one in counted_resources(hard):
        found = objects_of(one)
        if found is not None:
            used |= usage(quota, evaluator_for(*one), found, now)
    return {"hard": dict(hard), "used": to_json(masked(used, hard))}


def gives_back(resource: GroupResource, old: Object, new: Object, now: float) -> bool:
    """Whether a change of an object lets it use other amounts, or moves it between scopes, which admission does not charge."""
    evaluator = evaluator_for(*resource)
    if evaluator.usage(old, now) != evaluator.usage(new, now):
        return True
    if resource == CLAIMS:
        return attributes_classes(old) != attributes_classes(new)
    deadlines = [objects.get(pod, "spec", "activeDeadlineSeconds") is None for pod in (old, new)]
    return resource == PODS and deadlines[0] != deadlines[1]
