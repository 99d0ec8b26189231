"""autoscaling, policy, scheduling.k8s.io and node.k8s.io: small kinds that say how pods are scaled, disrupted, ranked and run."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.strategies.parts import keep
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import scaling

_CPU_UTILIZATION = 80
_SCALE_UP: dict[str, Any] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}],
}
#: without a window: the controller's flag says it
_SCALE_DOWN: dict[str, Any] = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


class HorizontalPodAutoscalerStrategy(Strategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("minReplicas") is None:
            spec["minReplicas"] = 1
        if obj.get("apiVersion") == "autoscaling/v1":
            other_metrics = objects.annotations(obj).get("autoscaling.alpha.kubernetes.io/metrics")
            if spec.get("targetCPUUtilizationPercentage") is None and not other_metrics:
                spec["targetCPUUtilizationPercentage"] = _CPU_UTILIZATION
            _zero(obj, "currentReplicas", "desiredReplicas")
            return
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": _CPU_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        behavior = spec.get("behavior")
        if behavior is not None:
            for direction, defaults in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
                given = {k: v for k, v in (behavior.get(direction) or {}).items() if v is not None}
                behavior[direction] = {**copy.deepcopy(defaults), **given}
        _zero(obj, "desiredReplicas")

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj.pop("status", None)
        self.default(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return scaling.autoscaler(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return scaling.autoscaler(new, lowest=0 if objects.get(old, "spec", "minReplicas") == 0 else 1)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return scaling.autoscaler_status(new)


def _zero(obj: Object, *fields: str) -> None:
    """Counts that Go writes even when they are 0."""
    status = obj.setdefault("status", {})
    for field in fields:
        if status.get(field) is None:
            status[field] = 0


class PodDisruptionBudgetStrategy(Strategy):
    has_generation = True
    allow_unconditional_update = False
    # its validation looks at the spec alone
    name_rule = "path_segment"
    standard_finalizers = False

    def default(self, obj: Object) -> None:
        _zero(obj, "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj.pop("status", None)
        self.default(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return scaling.disruption_budget(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return scaling.disruption_budget(new)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return scaling.disruption_budget_status(new)


class PriorityClassStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"
        obj.setdefault("value", 0)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return scaling.priority_class(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return scaling.priority_class_update(new, old)

    def why_never_deleted(self, name: str) -> str:
        return "this is a system priority class and cannot be deleted" if name in scaling.SYSTEM_CLASSES else ""

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Nothing that matters may change."""
        return False


class RuntimeClassStrategy(Strategy):
    standard_finalizers = False

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return scaling.runtime_class(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return scaling.runtime_class_update(new, old)


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("autoscaling", "HorizontalPodAutoscaler"): HorizontalPodAutoscalerStrategy,
    ("policy", "PodDisruptionBudget"): PodDisruptionBudgetStrategy,
    ("scheduling.k8s.io", "PriorityClass"): PriorityClassStrategy,
    ("node.k8s.io", "RuntimeClass"): RuntimeClassStrategy,
}
