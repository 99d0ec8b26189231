"""Whether a node is alive. Pure: times are the caller's clock."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib import pods as pod_facts
from controllers.lib.clock import format_time

NEVER_UPDATED = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
#: the conditions that a silent node makes Unknown
JUDGED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class Heard:
    """What was last heard of a node, and when (monotonic seconds) it was heard that this changed."""

    heartbeat: str
    renewed: str
    at: float


def listen(before: Heard | None, node: Object, lease: Object | None, now: float) -> Heard:
    """A change of the Ready condition's heartbeat or of the lease's renewTime is a sign of life; so is a node's first appearance."""
    heartbeat = str((pod_facts.condition(node, "Ready") or {}).get("lastHeartbeatTime") or "")
    renewed = str(objects.get(lease, "spec", "renewTime", default=""))
    if before is not None and before.heartbeat == heartbeat and (before.renewed == renewed or not renewed):
        return before if before.renewed == renewed else Heard(heartbeat, renewed, before.at)
    return Heard(heartbeat, renewed, now)


def is_silent(heard: Heard, node: Object, now: float, *, grace: float, startup_grace: float) -> bool:
    """A node that never reported gets the longer grace of a start."""
    reported = pod_facts.condition(node, "Ready") is not None
    return now > heard.at + (grace if reported else startup_grace)


def silent_conditions(node: Object, now: datetime.datetime) -> list[Object] | None:
    """The conditions of a silent node, or None where they say so already."""
    conditions = [dict(c) for c in objects.get(node, "status", "conditions", default=[])]
    changed = False
    for type_ in JUDGED:
        found = next((c for c in conditions if c.get("type") == type_), None)
        if found is None:
            reason, message = NEVER_UPDATED
            created = objects.metadata(node).get("creationTimestamp") or format_time(now)
            conditions.append(
                {
                    "type": type_,
                    "status": "Unknown",
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": created,
                    "lastTransitionTime": format_time(now),
                }
            )
            changed = True
        elif found.get("status") != "Unknown":
            reason, message = STOPPED
            found.update(status="Unknown", reason=reason, message=message, lastTransitionTime=format_time(now))
            changed = True
    return conditions if changed else None


def ready_status(node: Object) -> str:
    """True, False or Unknown; a node without the condition is Unknown."""
    return str((pod_facts.condition(node, "Ready") or {}).get("status") or "Unknown")
