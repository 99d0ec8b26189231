"""Metrics of an autoscaler as autoscaling/v2 says them and as autoscaling/v1's annotations do (k8s.io/api autoscaling/v1 ``MetricSpec``).

Both know the same five sources; v2 puts name and selector into ``metric``, what is measured into ``describedObject``, and the numbers into
``target`` (or ``current``), which v1 spells as a field each: ``targetAverageValue``, ``currentValue`` ….
"""

from __future__ import annotations

from typing import Any

from apiserver.machinery.objects import Object

#: v1's name of a number, without "target" or "current" before it: v2's name
_NUMBERS = {"AverageUtilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
_SOURCES = ("object", "pods", "resource", "containerResource", "external")


def from_v1(metric: Any, side: str) -> Any:
    """``side``: "target" in a spec, "current" in a status. What is in v2's form already, or in none, stays as it is."""
    if not isinstance(metric, dict):
        return metric
    return {key: _from_v1(key, value, side) if key in _SOURCES and isinstance(value, dict) else value for key, value in metric.items()}


def to_v1(metric: Any, side: str) -> Any:
    if not isinstance(metric, dict):
        return metric
    return {key: _to_v1(key, value, side) if key in _SOURCES and isinstance(value, dict) else value for key, value in metric.items()}


def _from_v1(source: str, value: Object, side: str) -> Object:
    if "metric" in value or "describedObject" in value or (side in value and source != "object"):
        return value
    found = dict(value)
    numbers = {name: found.pop(f"{side}{old}") for old, name in _NUMBERS.items() if f"{side}{old}" in found}
    if source == "object":
        if "target" in found:
            found["describedObject"] = found.pop("target")
        if "averageValue" in found:
            numbers["averageValue"] = found.pop("averageValue")
            if _is_zero(numbers.get("value")):
                del numbers["value"]  # v1 has no way to leave it out
    if source in ("object", "pods", "external"):
        metric = {"name": found.pop("metricName", "")}
        selector = found.pop("metricSelector" if source == "external" else "selector", None)
        found["metric"] = {**metric, "selector": selector} if selector is not None else metric
    if side == "target":
        numbers = {"type": _type_of(numbers), **numbers}
    return {**found, side: numbers}


def _type_of(numbers: Object) -> str:
    if "averageUtilization" in numbers:
        return "Utilization"
    return "AverageValue" if "averageValue" in numbers else "Value"


def _is_zero(value: Any) -> bool:
    return value is None or str(value) == "0"


def _to_v1(source: str, value: Object, side: str) -> Object:
    found = dict(value)
    numbers = dict(found.pop(side, None) or {})
    numbers.pop("type", None)
    metric = found.pop("metric", None)
    if metric is not None:
        found["metricName"] = metric.get("name", "")
        if metric.get("selector") is not None:
            found["metricSelector" if source == "external" else "selector"] = metric["selector"]
    if source == "object":
        if "describedObject" in found:
            found["target"] = found.pop("describedObject")
        numbers.setdefault("value", "0")
        if "averageValue" in numbers:
            found["averageValue"] = numbers.pop("averageValue")
    for old, name in _NUMBERS.items():
        if name in numbers:
            found[f"{side}{old}"] = numbers[name]
    return found


def behavior_from_v1(behavior: Object) -> Object:
    """The annotation has Go's names of the fields (``ScaleUp``), since kube-apiserver writes there what it has in memory."""
    lowered: Object = _with_first_letter(behavior, str.lower)
    return lowered


def behavior_to_v1(behavior: Object) -> Object:
    raised: Object = _with_first_letter(behavior, str.upper)
    return raised


def _with_first_letter(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {change(key[:1]) + key[1:]: _with_first_letter(part, change) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_first_letter(part, change) for part in value]
    return value
