"""Which taints a node's conditions call for, when pods must go because of them, and how fast zones may lose nodes. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import taints
from controllers.nodelifecycle.health import ready_status

#: (condition, its status) → taint key
_BY_CONDITION = {
    ("Ready", "False"): taints.NOT_READY,
    ("Ready", "Unknown"): taints.UNREACHABLE,
    ("MemoryPressure", "True"): taints.MEMORY_PRESSURE,
    ("DiskPressure", "True"): taints.DISK_PRESSURE,
    ("PIDPressure", "True"): taints.PID_PRESSURE,
    ("NetworkUnavailable", "True"): taints.NETWORK_UNAVAILABLE,
}
_OURS = frozenset({*_BY_CONDITION.values(), taints.UNSCHEDULABLE})


def no_schedule(node: Object, now_text: str) -> list[Object] | None:
    """All taints of the node with the NoSchedule ones that its conditions call for; None where they are right."""
    wanted = {
        _BY_CONDITION[c.get("type"), c.get("status")]
        for c in objects.get(node, "status", "conditions", default=[])
        if (c.get("type"), c.get("status")) in _BY_CONDITION
    }
    if objects.get(node, "spec", "unschedulable", default=False):
        wanted.add(taints.UNSCHEDULABLE)
    current = taints.of_node(node)
    have = {t.get("key") for t in current if t.get("effect") == taints.NO_SCHEDULE and t.get("key") in _OURS}
    if have == wanted:
        return None
    add = [{"key": key, "effect": taints.NO_SCHEDULE, "timeAdded": now_text} for key in sorted(wanted - have)]
    remove = [{"key": key, "effect": taints.NO_SCHEDULE} for key in have - wanted]
    return taints.replaced(current, add, remove)


def no_execute(node: Object, now_text: str) -> list[Object] | None:
    """All taints of the node with the NoExecute one that its Ready condition calls for; None where they are right."""
    status = ready_status(node)
    wanted = {"False": taints.NOT_READY, "Unknown": taints.UNREACHABLE}.get(status)
    return _with_no_execute(node, wanted, now_text)


def _with_no_execute(node: Object, wanted: str | None, now_text: str) -> list[Object] | None:
    current = taints.of_node(node)
    ours = (taints.NOT_READY, taints.UNREACHABLE)
    have = {t.get("key") for t in current if t.get("effect") == taints.NO_EXECUTE and t.get("key") in ours}
    if have == ({wanted} if wanted else set()):
        return None
    add = [{"key": wanted, "effect": taints.NO_EXECUTE, "timeAdded": now_text}] if wanted and wanted not in have else []
    return taints.replaced(current, add, [{"key": key, "effect": taints.NO_EXECUTE} for key in have if key != wanted])


def only_removes(node: Object, new_taints: Sequence[Object]) -> bool:
    """Whether the change takes taints away and adds none: that needs no rate limit."""
    return all(any(taints.same(n, t) for t in taints.of_node(node)) for n in new_taints)


def seconds_tolerated(pod: Object, node_taints: Iterable[Object]) -> float | None:
    """How long the pod may stay under the node's NoExecute taints: 0 not at all, None for ever."""
    tolerations = objects.get(pod, "spec", "tolerations", default=[])
    limits = []
    for taint in node_taints:
        if taint.get("effect") != taints.NO_EXECUTE:
            continue
        matching = [t for t in tolerations if taints.tolerates(t, taint)]
        if not matching:
            return 0.0
        limits += [max(0.0, float(t["tolerationSeconds"])) for t in matching if t.get("tolerationSeconds") is not None]
    return min(limits, default=None)


class ZoneState(enum.Enum):
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


def zone_of(node: Object) -> str:
    labels = objects.labels(node)
    region = labels.get("topology.kubernetes.io/region", "")
    zone = labels.get("topology.kubernetes.io/zone", "")
    return f"{region}:{zone}" if region or zone else ""


def zone_state(nodes: Sequence[Object], unhealthy_threshold: float) -> ZoneState:
    not_ready = sum(1 for n in nodes if ready_status(n) != "True")
    if nodes and not_ready == len(nodes):
        return ZoneState.FULL_DISRUPTION
    if not_ready > 2 and not_ready / len(nodes) >= unhealthy_threshold:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def tainting_rate(state: ZoneState, size: int, *, rate: float, secondary_rate: float, large: int) -> float:
    """New NoExecute taints a second; in a small zone that is mostly silent none."""
    if state is ZoneState.PARTIAL_DISRUPTION:
        return secondary_rate if size > large else 0.0
    return rate
