"""The group networking.k8s.io."""

from __future__ import annotations

from apiserver.machinery import objects
from apiserver.machinery.field_errors import FieldError, invalid
from apiserver.machinery.objects import Object
from apiserver.registry.strategies.parts import keep, text
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import networking


class IngressStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        status = obj.setdefault("status", {})
        if status.get("loadBalancer") is None:
            status["loadBalancer"] = {}

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return networking.ingress_create(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return networking.ingress(new)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return networking.ingress_status(new, old)

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        annotation = "kubernetes.io/ingress.class"
        if old is None and annotation in objects.annotations(new):
            return [f"annotation \"{annotation}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []


class IngressClassStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        parameters = objects.get(obj, "spec", "parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return networking.ingress_class(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return networking.ingress_class_update(new, old)


class NetworkPolicyStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("podSelector") is None:
            spec["podSelector"] = {}
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in (rule or {}).get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return networking.network_policy(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return networking.network_policy(new)


class IpAddressStrategy(Strategy):
    name_rule = "path_segment"
    selectable_field_names = frozenset(("spec.parentRef.resource", "spec.parentRef.name", "spec.parentRef.namespace"))

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        name = objects.name(obj)
        errors = [invalid("metadata.name", name, message) for message in networking.ip_address_name(name)]
        return errors + networking.ip_address(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return networking.ip_address_update(new, old)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        parent = objects.get(obj, "spec", "parentRef", default={})
        return {f"spec.parentRef.{field}": text(parent.get(field)) for field in ("resource", "name", "namespace")}


class ServiceCidrStrategy(Strategy):
    def default(self, obj: Object) -> None:
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return networking.service_cidr(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return networking.service_cidr_update(new, old)


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("networking.k8s.io", "Ingress"): IngressStrategy,
    ("networking.k8s.io", "IngressClass"): IngressClassStrategy,
    ("networking.k8s.io", "NetworkPolicy"): NetworkPolicyStrategy,
    ("networking.k8s.io", "IPAddress"): IpAddressStrategy,
    ("networking.k8s.io", "ServiceCIDR"): ServiceCidrStrategy,
}
