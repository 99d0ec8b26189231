"""From the version in which objects are stored to the version in which they are served, and back.

Most kinds that are served in several versions look the same in all of them, so that only ``apiVersion`` changes; the others have a
function in ``_CONVERSIONS``. Functions get an object that they may take apart and answer the other form of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from apiserver.machinery.objects import Object
from apiserver.registry import autoscaler_metrics, device_conversion
from apiserver.resources.resource_info import ResourceInfo

Convert = Callable[[Object], Object]


def convert(obj: Object, to: ResourceInfo) -> Object:
    """``obj`` in the version of ``to``; it may be ``obj`` itself, changed."""
    version = obj["apiVersion"]
    if version == to.api_version:
        return obj
    function = _CONVERSIONS.get((version, to.api_version, to.kind))
    if function is not None:
        obj = function(obj)
    obj["apiVersion"] = to.api_version
    obj["kind"] = to.kind
    return obj


def _renamed(obj: Object, names: Mapping[str, str]) -> Object:
    return {names.get(field, field): value for field, value in obj.items()}


# -- events: one stored type, two views of it (k8s.io/api core/v1 and events/v1) ----------------------------------------------------

#: core/v1's field: events.k8s.io/v1's
EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_EVENT_FIELDS = {new: old for old, new in EVENT_FIELDS.items()}


#: core/v1 says them always, events.k8s.io/v1 only where they are something
_EMPTY_IN_CORE = ("reportingComponent", "reportingInstance")


def _event_of_its_group(obj: Object) -> Object:
    return _renamed({key: value for key, value in obj.items() if value or key not in _EMPTY_IN_CORE}, EVENT_FIELDS)


# -- autoscaling: v1 knows a target for the CPU alone; the rest of v2 travels in annotations ----------------------------------------

_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"


def _autoscaler_to_v1(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict(obj["metadata"].get("annotations") or {})
    metrics = list(spec.pop("metrics", None) or ())
    cpu = next((m for m in metrics if _cpu_utilization(m, "target") is not None), None)
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = _cpu_utilization(cpu, "target")
        metrics.remove(cpu)
    current = list(status.pop("currentMetrics", None) or ())
    current_cpu = next((m for m in current if _cpu_utilization(m, "current") is not None), None)
    if current_cpu is not None:
        status["currentCPUUtilizationPercentage"] = _cpu_utilization(current_cpu, "current")
    for key, value in (
        (_METRICS, [autoscaler_metrics.to_v1(metric, "target") for metric in metrics]),
        (_CURRENT_METRICS, [autoscaler_metrics.to_v1(metric, "current") for metric in current]),
        (_CONDITIONS, status.pop("conditions", None)),
        (_BEHAVIOR, autoscaler_metrics.behavior_to_v1(spec.pop("behavior", None) or {})),
    ):
        if value:
            annotations[key] = orjson.dumps(value).decode()
    return _with_parts(obj, spec, status, annotations)


def _autoscaler_to_v2(obj: Object) -> Object:
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = dict(obj["metadata"].get("annotations") or {})
    metrics = [autoscaler_metrics.from_v1(metric, "target") for metric in _list_in(annotations, _METRICS)]
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        wanted = {"type": "Utilization", "averageUtilization": target}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": wanted}})
    if metrics:
        spec["metrics"] = metrics
    if behavior := _value_in(annotations, _BEHAVIOR, dict):
        spec["behavior"] = autoscaler_metrics.behavior_from_v1(behavior)
    current = [autoscaler_metrics.from_v1(metric, "current") for metric in _list_in(annotations, _CURRENT_METRICS)]
    used = status.pop("currentCPUUtilizationPercentage", None)
    if used is not None and not any(_cpu_utilization(m, "current") is not None for m in current):
        current.insert(0, {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}})
    if current:
        status["currentMetrics"] = current
    if conditions := _list_in(annotations, _CONDITIONS):
        status["conditions"] = conditions
    return _with_parts(obj, spec, status, annotations)


def _with_parts(obj: Object, spec: Object, status: Object, annotations: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    found = {**obj, "metadata": metadata, "spec": spec}
    if status or "status" in obj:
        found["status"] = status
    return found


def _cpu_utilization(metric: Any, field: str) -> int | None:
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    utilization = (resource.get(field) or {}).get("averageUtilization")
    return None if utilization is None else int(utilization)


def _list_in(annotations: Object, key: str) -> list[Any]:
    return _value_in(annotations, key, list) or []


def _value_in(annotations: Object, key: str, kind: type) -> Any:
    """What an annotation holds, taken out of the annotations; None where a client wrote something else into it."""
    text = annotations.pop(key, None)
    if text is None:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, kind) else None


# -- flow control: a field has got another name -------------------------------------------------------------------------------------


def _renamed_shares(old: str, new: str) -> Convert:
    def function(obj: Object) -> Object:
        spec = dict(obj.get("spec") or {})
        if isinstance(spec.get("limited"), dict):
            spec["limited"] = _renamed(spec["limited"], {old: new})
        return {**obj, "spec": spec}

    return function


_FLOW = "flowcontrol.apiserver.k8s.io/"
_LEVEL = "PriorityLevelConfiguration"
_OLD_SHARES, _SHARES = "assuredConcurrencyShares", "nominalConcurrencyShares"

_CONVERSIONS: dict[tuple[str, str, str], Convert] = {
    ("v1", "events.k8s.io/v1", "Event"): _event_of_its_group,
    ("events.k8s.io/v1", "v1", "Event"): lambda obj: _renamed(obj, _CORE_EVENT_FIELDS),
    ("autoscaling/v2", "autoscaling/v1", "HorizontalPodAutoscaler"): _autoscaler_to_v1,
    ("autoscaling/v1", "autoscaling/v2", "HorizontalPodAutoscaler"): _autoscaler_to_v2,
}
for _old in ("v1beta1", "v1beta2"):
    for _new in ("v1beta3", "v1"):
        _CONVERSIONS[(_FLOW + _old, _FLOW + _new, _LEVEL)] = _renamed_shares(_OLD_SHARES, _SHARES)
        _CONVERSIONS[(_FLOW + _new, _FLOW + _old, _LEVEL)] = _renamed_shares(_SHARES, _OLD_SHARES)

# -- dynamic resources: two shapes ---------------------------------------------------------------------------------------------------

for _flat in device_conversion.FLAT_VERSIONS:
    for _structured in device_conversion.STRUCTURED_VERSIONS:
        for _kind in ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"):
            _CONVERSIONS[(f"resource.k8s.io/{_flat}", f"resource.k8s.io/{_structured}", _kind)] = device_conversion.structured
            _CONVERSIONS[(f"resource.k8s.io/{_structured}", f"resource.k8s.io/{_flat}", _kind)] = device_conversion.flat
