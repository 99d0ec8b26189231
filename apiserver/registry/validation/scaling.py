"""HorizontalPodAutoscalers, PodDisruptionBudgets, PriorityClasses, RuntimeClasses, and the Scale subresource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from apiserver.registry.validation import quantities, scheduling
from apiserver.registry.validation.common import NOT_POSITIVE, Errors, checked, each, immutable, label_selector, labels, nonnegative
from apiserver.registry.validation.workloads import int_or_percent, not_more_than_100_percent

Part = Mapping[str, Any]

STABILIZATION_SECONDS_MAX = 3600
PERIOD_SECONDS_MAX = 1800
USER_PRIORITY_MAX = 1_000_000_000
SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_SOURCES = {"Object": "object", "External": "external", "Pods": "pods", "Resource": "resource", "ContainerResource": "containerResource"}
_NOTHING: Part = {}


def autoscaler(obj: Part, lowest: int = 1) -> list[FieldError]:
    """``lowest``: 0 for an object that has ``minReplicas: 0`` already."""
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    low, high = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if low is not None and low < lowest:
        out.append(invalid("spec.minReplicas", low, f"must be greater than or equal to {lowest}"))
    if high < 1:
        out.append(invalid("spec.maxReplicas", high, "must be greater than 0"))
    if low is not None and high < low:
        out.append(invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    _reference(out, "spec.scaleTargetRef", spec.get("scaleTargetRef") or _NOTHING)
    percentage = spec.get("targetCPUUtilizationPercentage")
    if percentage is not None and percentage < 1:
        # where autoscaling/v2, to which v1 is converted, has it
        out.append(invalid("spec.metrics[0].resource.target.averageUtilization", percentage, "must be greater than 0"))
    metrics = spec.get("metrics") or ()
    for i, metric in each(out, metrics):
        _metric(out, f"spec.metrics[{i}]", metric)
    if low == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        words = "must specify at least one Object or External metric to support scaling to zero replicas"
        out.append(forbidden("spec.metrics", words))
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or _NOTHING).get(direction)
        if rules is not None:
            _scaling_rules(out, f"spec.behavior.{direction}", rules)
    return out


def _reference(out: Errors, path: str, reference: Part) -> None:
    for field in ("kind", "name"):
        value = reference.get(field) or ""
        if not value:
            out.append(required(f"{path}.{field}"))
        else:
            checked(out, f"{path}.{field}", value, names.path_segment)


def _scaling_rules(out: Errors, path: str, rules: Part) -> None:
    window, select = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None and window < 0:
        out.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window is not None and window > STABILIZATION_SECONDS_MAX:
        words = f"must be less than or equal to {STABILIZATION_SECONDS_MAX}"
        out.append(invalid(f"{path}.stabilizationWindowSeconds", window, words))
    if select is not None and select not in ("Disabled", "Max", "Min"):
        out.append(not_supported(f"{path}.selectPolicy", select, ["Disabled", "Max", "Min"]))
    policies = rules.get("policies") or ()
    if not policies:
        out.append(required(f"{path}.policies", "must specify at least one Policy"))
    for i, policy in each(out, policies):
        at, kind = f"{path}.policies[{i}]", policy.get("type") or ""
        if kind not in ("Pods", "Percent"):
            out.append(not_supported(f"{at}.type", kind, ["Percent", "Pods"]))
        value, period = policy.get("value") or 0, policy.get("periodSeconds") or 0
        if value <= 0:
            out.append(invalid(f"{at}.value", value, NOT_POSITIVE))
        if period <= 0:
            out.append(invalid(f"{at}.periodSeconds", period, NOT_POSITIVE))
        if period > PERIOD_SECONDS_MAX:
            out.append(invalid(f"{at}.periodSeconds", period, f"must be less than or equal to {PERIOD_SECONDS_MAX}"))
    tolerance = rules.get("tolerance")
    if tolerance is not None:
        quantities.nonnegative_quantity(out, f"{path}.tolerance", tolerance)


def _metric(out: Errors, path: str, metric: Part) -> None:
    kind = metric.get("type") or ""
    if not kind:
        out.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in _METRIC_TYPES:
        out.append(not_supported(f"{path}.type", kind, list(_METRIC_TYPES)))
    present = [field for field in _SOURCES.values() if metric.get(field) is not None]
    if present:
        _metric_source(out, f"{path}.{present[0]}", present[0], metric[present[0]])
    expected = _SOURCES.get(kind)
    if expected is None:
        out.append(not_supported(f"{path}.type", kind, list(_METRIC_TYPES)))
    elif metric.get(expected) is None:
        out.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        for field in present:
            if field != expected:
                out.append(forbidden(f"{path}.{field}", "must populate the given metric source only"))


def _metric_source(out: Errors, path: str, field: str, source: Part) -> None:
    target = source.get("target") or _NOTHING
    if field == "object":
        _reference(out, f"{path}.describedObject", source.get("describedObject") or _NOTHING)
    if field in ("object", "external", "pods"):
        name = (source.get("metric") or _NOTHING).get("name") or ""
        if not name:
            out.append(required(f"{path}.metric.name", "must specify a metric name"))
        else:
            checked(out, f"{path}.metric.name", name, names.path_segment)
    else:
        if not source.get("name"):
            out.append(required(f"{path}.name", "must specify a resource name"))
        elif field == "containerResource":
            quantities.container_resource_name(out, f"{path}.name", source["name"])
    if field == "containerResource":
        if not source.get("container"):
            out.append(required(f"{path}.container", "must specify a container"))
        else:
            checked(out, f"{path}.container", source["container"], names.dns1123_label)
    _target(out, f"{path}.target", target)
    value, average, share = (target.get(f) for f in ("value", "averageValue", "averageUtilization"))
    if field == "object" and value is None and average is None:
        out.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    elif field == "external":
        if value is None and average is None:
            words = "must set either a target value for metric or a per-pod target"
            out.append(required(f"{path}.target.averageValue", words))
        if value is not None and average is not None:
            words = "may not set both a target value for metric and a per-pod target"
            out.append(forbidden(f"{path}.target.value", words))
    elif field == "pods" and average is None:
        out.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    elif field in ("resource", "containerResource"):
        if share is None and average is None:
            words = "must set either a target raw value or a target utilization"
            out.append(required(f"{path}.target.averageUtilization", words))
        if share is not None and average is not None:
            words = "may not set both a target raw value and a target utilization"
            out.append(forbidden(f"{path}.target.averageValue", words))


def _target(out: Errors, path: str, target: Part) -> None:
    kind = target.get("type") or ""
    if not kind:
        out.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        out.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if target.get(field) is not None and quantities.amount(target[field]) <= 0:
            out.append(invalid(f"{path}.{field}", str(target[field]), "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        out.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))


def autoscaler_status(new: Part) -> list[FieldError]:
    out: Errors = []
    for field in ("currentReplicas", "desiredReplicas"):
        nonnegative(out, f"status.{field}", (new.get("status") or _NOTHING).get(field))
    return out


def disruption_budget(obj: Part) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    available, unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
    if available is not None and unavailable is not None:
        out.append(invalid("spec", dict(spec), "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            int_or_percent(out, f"spec.{field}", spec[field])
            not_more_than_100_percent(out, f"spec.{field}", spec[field])
    label_selector(out, "spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        out.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, ["AlwaysAllow", "IfHealthyBudget"]))
    return out


def disruption_budget_status(new: Part) -> list[FieldError]:
    out: Errors = []
    for field in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        nonnegative(out, f"status.{field}", (new.get("status") or _NOTHING).get(field))
    return out


def priority_class(obj: Part) -> list[FieldError]:
    out: Errors = []
    name, value = (obj.get("metadata") or _NOTHING).get("name") or "", obj.get("value") or 0
    if name.startswith(SYSTEM_PREFIX):
        wrong = _not_a_system_class(name, value, bool(obj.get("globalDefault")))
        if wrong:
            words = f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {wrong}"
            out.append(forbidden("metadata.name", words))
    elif value > USER_PRIORITY_MAX:
        out.append(forbidden("value", f"maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"))
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        if policy:
            out.append(not_supported("preemptionPolicy", policy, ["PreemptLowerPriority", "Never"]))
        else:
            out.append(required("preemptionPolicy"))
    return out


def _not_a_system_class(name: str, value: int, is_default: bool) -> str:
    known = SYSTEM_CLASSES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    if is_default:
        return f"globalDefault of {name} PriorityClass must be false"
    return ""


def priority_class_update(new: Part, old: Part) -> list[FieldError]:
    out: Errors = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        out.append(forbidden("value", "may not be changed in an update."))
    immutable(out, "preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))
    return out


def runtime_class(obj: Part) -> list[FieldError]:
    out: Errors = []
    checked(out, "handler", obj.get("handler") or "", names.dns1123_label)
    if (overhead := obj.get("overhead")) is not None:
        quantities.resource_requirements(out, "overhead", {"limits": overhead.get("podFixed")})
    if (found := obj.get("scheduling")) is not None:
        labels(out, "scheduling.nodeSelector", found.get("nodeSelector"))
        tolerations = found.get("tolerations") or ()
        # the part stands twice in the paths of Kubernetes' errors too
        scheduling.tolerations(out, "scheduling.tolerations.tolerations", tolerations)
        seen: set[tuple[Any, ...]] = set()
        for i, toleration in each(out, tolerations):
            key = tuple(toleration.get(field) for field in ("key", "operator", "value", "effect"))
            if key in seen:
                out.append(duplicate(f"scheduling.tolerations[{i}]", dict(toleration)))
            seen.add(key)
    return out


def runtime_class_update(new: Part, old: Part) -> list[FieldError]:
    out = runtime_class(new)
    immutable(out, "handler", new.get("handler"), old.get("handler"))
    return out
