"""The group resource.k8s.io: what devices there are (slices, classes, taints) and who wants some (claims and their templates)."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.device_conversion import is_flat, structured
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import devices, resource_claims, resource_slices


class DeviceClassStrategy(Strategy):
    has_generation = True

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return resource_claims.device_class(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return resource_claims.device_class(new)


def _requests(spec: Object) -> Iterator[Object]:
    """Every request that says how many devices of which class it wants."""
    for request in objects.get(spec, "devices", "requests", default=()):
        if request.get("exactly") is not None:
            yield request["exactly"]
        elif request.get("deviceClassName"):  # of a version that says it flatly
            yield request
        yield from request.get("firstAvailable") or ()


def _comparable(obj: Object) -> Object:
    """The shape for which the rules are written, whichever version the object is in."""
    return structured(obj) if is_flat(obj) else obj


def _default_claim_spec(spec: Object) -> None:
    for request in _requests(spec):
        if not request.get("allocationMode"):
            request["allocationMode"] = "ExactCount"
        if request["allocationMode"] == "ExactCount" and not request.get("count"):
            request["count"] = 1
        for toleration in request.get("tolerations") or ():
            if not toleration.get("operator"):
                toleration["operator"] = "Equal"


class ResourceClaimStrategy(Strategy):
    def default(self, obj: Object) -> None:
        _default_claim_spec(obj.setdefault("spec", {}))
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return resource_claims.claim(_comparable(obj))

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return resource_claims.immutable_spec(_comparable(new), _comparable(old))

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return resource_claims.claim_status(_comparable(new), _comparable(old))


class ResourceClaimTemplateStrategy(Strategy):
    def default(self, obj: Object) -> None:
        _default_claim_spec(obj.setdefault("spec", {}).setdefault("spec", {}))

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return resource_claims.claim_template(_comparable(obj))

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return resource_claims.immutable_spec(_comparable(new), _comparable(old))


def _stamp_taints(context: StrategyContext, taints: list[Object]) -> None:
    for taint in taints:
        if taint.get("timeAdded") is None:
            taint["timeAdded"] = context.now


class ResourceSliceStrategy(Strategy):
    has_generation = True
    selectable_field_names = frozenset(("spec.nodeName", "spec.driver"))

    def _stamp(self, context: StrategyContext, obj: Object) -> None:
        for device in objects.get(obj, "spec", "devices", default=()):
            _stamp_taints(context, (device.get("basic") or device).get("taints") or [])

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        self._stamp(context, obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return resource_slices.slice_(_comparable(obj))

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        self._stamp(context, new)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return resource_slices.slice_(_comparable(new), _comparable(old))

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {f"spec.{field}": text(objects.get(obj, "spec", field)) for field in ("nodeName", "driver")}


class DeviceTaintRuleStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}
        self._stamp(context, obj)

    def _stamp(self, context: StrategyContext, obj: Object) -> None:
        taint = objects.get(obj, "spec", "taint")
        if taint is not None:
            _stamp_taints(context, [taint])

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return devices.taint_rule(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")
        self._stamp(context, new)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return devices.taint_rule(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return devices.taint_rule_status(new)


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("resource.k8s.io", "DeviceClass"): DeviceClassStrategy,
    ("resource.k8s.io", "DeviceTaintRule"): DeviceTaintRuleStrategy,
    ("resource.k8s.io", "ResourceClaim"): ResourceClaimStrategy,
    ("resource.k8s.io", "ResourceClaimTemplate"): ResourceClaimTemplateStrategy,
    ("resource.k8s.io", "ResourceSlice"): ResourceSliceStrategy,
}
