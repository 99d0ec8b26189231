"""The first designs of the group resource.k8s.io (v1alpha1, v1alpha2), and what was left of them in 1.31: claims of a class, whose
driver allocates."""

from __future__ import annotations

from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.strategies.parts import keep
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import first_resource_claims as rules
from apiserver.registry.validation.resource_claims import immutable_spec


class _WithStatus(Strategy):
    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")


class ClaimStrategy(_WithStatus):
    def default(self, obj: Object) -> None:
        super().default(obj)
        obj["spec"].setdefault("allocationMode", "WaitForFirstConsumer")

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rules.claim(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return immutable_spec(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rules.claim_status(new, old)


class ClaimTemplateStrategy(Strategy):
    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {}).setdefault("spec", {}).setdefault("allocationMode", "WaitForFirstConsumer")

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rules.claim_template(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return immutable_spec(new, old)


class ClassStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rules.resource_class(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rules.resource_class(new)


class PodSchedulingStrategy(_WithStatus):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rules.pod_scheduling(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rules.pod_scheduling(new)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rules.pod_scheduling_status(new)


class ClaimParametersStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rules.claim_parameters(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rules.claim_parameters(new)


class ClassParametersStrategy(Strategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rules.class_parameters(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rules.class_parameters(new)


class SliceStrategy(Strategy):
    selectable_field_names = frozenset(("nodeName", "driverName"))

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return rules.resource_slice(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return rules.resource_slice(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {field: obj.get(field) or "" for field in ("nodeName", "driverName")}


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("resource.k8s.io", "PodScheduling"): PodSchedulingStrategy,
    ("resource.k8s.io", "PodSchedulingContext"): PodSchedulingStrategy,
    ("resource.k8s.io", "ResourceClaim"): ClaimStrategy,
    ("resource.k8s.io", "ResourceClaimParameters"): ClaimParametersStrategy,
    ("resource.k8s.io", "ResourceClaimTemplate"): ClaimTemplateStrategy,
    ("resource.k8s.io", "ResourceClass"): ClassStrategy,
    ("resource.k8s.io", "ResourceClassParameters"): ClassParametersStrategy,
    ("resource.k8s.io", "ResourceSlice"): SliceStrategy,
}
