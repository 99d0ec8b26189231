"""Taints and tolerations (API documentation of ``core/v1`` Taint, Toleration). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
DISK_PRESSURE = "node.kubernetes.io/disk-pressure"
PID_PRESSURE = "node.kubernetes.io/pid-pressure"
NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable"

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"


def of_node(node: Object) -> list[Object]:
    found: list[Object] = objects.get(node, "spec", "taints", default=[])
    return found


def same(left: Object, right: Object) -> bool:
    """Key and effect make a taint's identity."""
    return left.get("key") == right.get("key") and left.get("effect") == right.get("effect")


def tolerates(toleration: Object, taint: Object) -> bool:
    """An empty key with Exists tolerates everything; an empty effect every effect; Equal (the default) compares values."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    if not toleration.get("key"):
        return False
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def first_untolerated(node_taints: Iterable[Object], tolerations: list[Object], effects: tuple[str, ...]) -> Object | None:
    for taint in node_taints:
        if taint.get("effect") in effects and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def replaced(current: list[Object], add: Iterable[Object], remove: Iterable[Object]) -> list[Object]:
    """The taints without ``remove`` and with ``add``; one that is there already keeps its place and its timeAdded."""
    gone = list(remove)
    out = [t for t in current if not any(same(t, r) for r in gone)]
    out += [t for t in add if not any(same(t, o) for o in out)]
    return out
