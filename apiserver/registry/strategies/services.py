"""Services, Endpoints, EndpointSlices. New services get their cluster IPs and node ports from ``context.allocators``."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.defaults import services as defaults
from apiserver.registry.strategies import service_allocation
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import addresses, services

_HEADLESS_LABEL = "service.kubernetes.io/headless"


class ServiceStrategy(Strategy):
    name_rule = "service"
    selectable_field_names = frozenset(("spec.clusterIP", "spec.type"))

    def default(self, obj: Object) -> None:
        defaults.default_service(obj)

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        spec = obj["spec"]
        service_allocation.same_cluster_ips(spec, {})
        if context.allocators is not None:
            service_allocation.allocate(context, obj, {})

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return services.create(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")
        spec, had = new["spec"], old.get("spec") or {}
        service_allocation.patch_allocated(spec, had)
        service_allocation.same_cluster_ips(spec, had)
        if context.allocators is not None:
            service_allocation.allocate(context, new, had)
        service_allocation.drop_unused(new, had)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return services.update(new, old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return services.status_update(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": text(spec.get("clusterIP")), "spec.type": text(spec.get("type"))}


class EndpointsStrategy(Strategy):
    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        defaults.default_endpoints(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return addresses.endpoints(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return addresses.endpoints(new)


class EndpointSliceStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        defaults.default_endpoint_slice(obj)

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return addresses.endpoint_slice(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return addresses.endpoint_slice_update(new, old)

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Its labels count, except the one that says that the service is headless."""
        if any(new.get(field) != old.get(field) for field in ("endpoints", "ports", "addressType")):
            return True
        have, had = ({k: v for k, v in objects.labels(o).items() if k != _HEADLESS_LABEL} for o in (new, old))
        return have != had


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("", "Service"): ServiceStrategy,
    ("", "Endpoints"): EndpointsStrategy,
    ("discovery.k8s.io", "EndpointSlice"): EndpointSliceStrategy,
}
