"""Facts of pods that several controllers ask for (``pkg/api/v1/pod``, ``controller_utils``). Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.lib.clock import format_time, parse_time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def phase(pod: Object) -> str:
    return str(objects.get(pod, "status", "phase", default="Pending"))


def is_terminal(pod: Object) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Counts towards a controller's replicas: neither finished nor on its way out."""
    return not is_terminal(pod) and not objects.is_being_deleted(pod)


def is_sidecar(init_container: Object) -> bool:
    """An init container that runs on beside the main ones."""
    return init_container.get("restartPolicy") == "Always"


def node_name(pod: Object) -> str:
    return str(objects.get(pod, "spec", "nodeName", default=""))


def condition(obj: Object, type_: str) -> Object | None:
    return next((c for c in objects.get(obj, "status", "conditions", default=[]) if c.get("type") == type_), None)


def is_ready(pod: Object) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.get("status") == "True"


def is_available(pod: Object, min_ready_seconds: int, now: datetime.datetime) -> bool:
    """Ready, and that for at least so many seconds."""
    return seconds_until_available(pod, min_ready_seconds, now) == 0.0


def seconds_until_available(pod: Object, min_ready_seconds: int, now: datetime.datetime) -> float | None:
    """0 when available; the seconds that are left of ``min_ready_seconds``; None when the pod is not ready."""
    found = condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return None
    if min_ready_seconds <= 0:
        return 0.0
    since = parse_time(found.get("lastTransitionTime"))
    if since is None:
        return None
    return max(0.0, min_ready_seconds - (now - since).total_seconds())


def restarts(pod: Object) -> int:
    return max((int(s.get("restartCount") or 0) for s in objects.get(pod, "status", "containerStatuses", default=[])), default=0)


def ready_since(pod: Object) -> datetime.datetime | None:
    found = condition(pod, "Ready")
    return parse_time(found.get("lastTransitionTime")) if found is not None and found.get("status") == "True" else None


def deletion_cost(pod: Object) -> int:
    text = objects.annotations(pod).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def with_condition(conditions: Iterable[Object], new: Object) -> list[Object]:
    """The conditions with ``new`` in the place of its type, or at the end. The time of transition stays while the status does."""
    out: list[Object] = []
    placed = False
    for old in conditions:
        if old.get("type") != new["type"]:
            out.append(old)
            continue
        placed = True
        if old.get("status") == new.get("status") and old.get("lastTransitionTime"):
            out.append({**new, "lastTransitionTime": old["lastTransitionTime"]})
        else:
            out.append(new)
    return out if placed else [*out, new]


def new_condition(type_: str, status: bool | str, now: datetime.datetime, reason: str = "", message: str = "") -> Object:
    text = status if isinstance(status, str) else ("True" if status else "False")
    out: Object = {"type": type_, "status": text, "lastTransitionTime": format_time(now)}
    if reason:
        out["reason"] = reason
    if message:
        out["message"] = message
    return out
