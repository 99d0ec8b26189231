"""Events: core/v1 checks little, events.k8s.io/v1 all (core ``validation/events.go``).

Errors carry core/v1's field names in both versions, as they do in Kubernetes, where both are one internal type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, invalid, required
from apiserver.registry.conversion import EVENT_FIELDS
from apiserver.registry.validation.common import Errors, checked, immutable

Part = Mapping[str, Any]

NAME_LENGTH_MAX = 128
NOTE_LENGTH_MAX = 1024
_NOTHING: Part = {}
_MISMATCH = "does not match event.namespace"
_UNSET = "needs to be unset"
_UNCHANGED = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime", "action",
    "related", "reportingComponent", "reportingInstance",
)  # fmt: skip

#: what Go shows of a field that is not set, where that is not ""
_EMPTY: dict[str, Any] = {
    "involvedObject": {}, "source": {}, "count": 0, "related": None, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None,
}  # fmt: skip


def create(obj: Part) -> list[FieldError]:
    out: Errors = []
    _any_version(out, obj)
    if _is_core(obj):
        return out
    if name := (obj.get("metadata") or _NOTHING).get("name"):
        checked(out, "metadata.name", name, names.dns1123_subdomain)
    _series(out, obj)
    if not obj.get("eventTime"):
        out.append(required("eventTime"))
    kind = obj.get("type") or ""
    if kind not in ("Normal", "Warning"):
        out.append(invalid("type", "", f"has invalid value: {kind}"))
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if _field(obj, field):
            out.append(invalid(field, "", _UNSET))
    if any((_field(obj, "source") or _NOTHING).values()):
        out.append(invalid("source", "", _UNSET))
    return out


def update(new: Part, old: Part) -> list[FieldError]:
    """In events.k8s.io/v1 only the series of an event may change."""
    out: Errors = []
    _any_version(out, new)
    if _is_core(new):
        return out
    if new.get("series") != old.get("series"):
        _series(out, new)
    for field in _UNCHANGED:
        empty = _EMPTY.get(field, "")
        immutable(out, _shown(field), _field(new, field) or empty, _field(old, field) or empty)
    return out


def _is_core(obj: Part) -> bool:
    return bool(obj.get("apiVersion", "v1") == "v1")


def _field(obj: Part, field: str) -> Any:
    return obj.get(field) if _is_core(obj) else obj.get(EVENT_FIELDS.get(field, field))


def _shown(field: str) -> str:
    return "reportingController" if field == "reportingComponent" else field


def _any_version(out: Errors, obj: Part) -> None:
    """An event stands in its object's namespace; one about an object without a namespace in ``default``. Newer events, which have
    a time in microseconds, must say who reports what."""
    namespace = (obj.get("metadata") or _NOTHING).get("namespace") or ""
    about = (_field(obj, "involvedObject") or _NOTHING).get("namespace") or ""
    if not obj.get("eventTime"):
        if about != namespace and not (not about and namespace == "default"):
            out.append(invalid("involvedObject.namespace", about, _MISMATCH))
        return
    if not about and namespace not in ("default", "kube-system"):
        out.append(invalid("involvedObject.namespace", about, _MISMATCH))
    controller = _field(obj, "reportingComponent") or ""
    if not controller:
        out.append(required("reportingController"))
    checked(out, "reportingController", controller, names.qualified_name)
    for field in ("reportingInstance", "action", "reason"):
        value = obj.get(field) or ""
        if not value:
            out.append(required(field))
        elif names.byte_length(value) > NAME_LENGTH_MAX:
            out.append(invalid(field, "", f"can have at most {NAME_LENGTH_MAX} characters"))
    if names.byte_length(_field(obj, "message") or "") > NOTE_LENGTH_MAX:
        out.append(invalid("message", "", f"can have at most {NOTE_LENGTH_MAX} characters"))


def _series(out: Errors, obj: Part) -> None:
    series = obj.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        out.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        out.append(required("series.lastObservedTime"))
