"""What extends or steers the API server itself: APIServices, CustomResourceDefinitions, flow control."""

from __future__ import annotations

import copy

from apiserver.machinery import go_json, objects
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.strategies.admissionregistration import HTTPS_PORT
from apiserver.registry.strategies.parts import keep, local_condition
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import extension, flow_control

_PRECEDENCE = 1000
_SHARES = 30


class ApiServiceStrategy(Strategy):
    name_rule = "path_segment"
    standard_finalizers = False

    def default(self, obj: Object) -> None:
        service = objects.get(obj, "spec", "service")
        if service is not None and service.get("port") is None:
            service["port"] = HTTPS_PORT
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        """One without a service is served by this server, and therefore available."""
        obj["status"] = {}
        if objects.get(obj, "spec", "service") is None:
            obj["status"] = {"conditions": [local_condition(context.now)]}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return extension.api_service(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return extension.api_service(new)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return extension.api_service_status(new)


class CustomResourceDefinitionStrategy(Strategy):
    """What a definition must be is said in ``apiextensions.definition_validation``; here: defaults and the stored versions."""

    standard_finalizers = False

    has_generation = True
    allow_unconditional_update = False

    def begin_deletion(self, obj: Object, now: str) -> bool:
        from apiserver.apiextensions import cleanup

        return cleanup.begin(obj, now)

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind") or ""
        if not names.get("singular") and kind:
            names["singular"] = go_json.lower(kind)
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        webhook = spec["conversion"].get("webhook")
        if webhook is not None and not any(value is not None for value in webhook.values()):
            del spec["conversion"]["webhook"]  # has no place in the internal form, which holds what is in it alone
        service = objects.get(spec["conversion"], "webhook", "clientConfig", "service")
        if service is not None and service.get("port") is None:
            service["port"] = HTTPS_PORT
        if "preserveUnknownFields" in spec and not spec["preserveUnknownFields"]:
            del spec["preserveUnknownFields"]
        status = obj.setdefault("status", {})
        accepted = status.setdefault("acceptedNames", {})
        accepted.setdefault("plural", "")
        accepted.setdefault("kind", "")
        status.setdefault("conditions", None)
        stored = _storage_version(obj)
        if not status.get("storedVersions") and stored is not None:
            status["storedVersions"] = [stored]

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        stored = _storage_version(obj)
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": None if stored is None else [stored],
        }

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        from apiserver.apiextensions.definition_validation import validate_definition  # only where definitions are written

        return validate_definition(obj, None, context.schemas)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        """A new storage version joins those in which objects may be stored."""
        keep(new, old, "status")
        name, stored = _storage_version(new), objects.get(new, "status", "storedVersions", default=())
        if name is not None and name not in stored:
            new["status"] = {**(new.get("status") or {}), "storedVersions": [*stored, name]}

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        from apiserver.apiextensions.definition_validation import validate_definition

        return validate_definition(new, old, context.schemas)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        from apiserver.apiextensions.definition_validation import validate_status_update

        return validate_status_update(new)

    def canonicalize(self, obj: Object) -> None:
        from apiserver.apiextensions import internal_form

        internal_form.drop_empty(obj)

    def spec_changed(self, new: Object, old: Object) -> bool:
        """What says nothing in a schema, an empty list for one, is no change."""
        if new.get("spec") == old.get("spec"):
            return False
        from apiserver.apiextensions import internal_form

        settled = {"spec": copy.deepcopy(new.get("spec"))}
        internal_form.drop_empty(settled)
        return bool(settled["spec"] != old.get("spec"))

    def warnings(self, new: Object, old: Object | None) -> list[str]:
        from apiserver.apiextensions import definition_warnings

        return definition_warnings.warnings(new, old)


def _storage_version(definition: Object) -> str | None:
    """The first that says so; a bad definition may have none, or one without a name."""
    versions = objects.get(definition, "spec", "versions", default=())
    return next((version.get("name") or "" for version in versions if version.get("storage")), None)


class FlowSchemaStrategy(Strategy):
    has_generation = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = _PRECEDENCE
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return flow_control.flow_schema(obj)

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return flow_control.flow_schema(new)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return flow_control.conditions(new)


class PriorityLevelConfigurationStrategy(FlowSchemaStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("type") == "Exempt":
            exempt = spec.get("exempt")
            if exempt is None:
                exempt = spec["exempt"] = {}
            for field in ("nominalConcurrencyShares", "lendablePercent"):
                if exempt.get(field) is None:
                    exempt[field] = 0
        limited = spec.get("limited")
        if limited is not None:
            if limited.get("nominalConcurrencyShares") is None:
                limited["nominalConcurrencyShares"] = _SHARES
            if limited.get("lendablePercent") is None:
                limited["lendablePercent"] = 0
            queuing = objects.get(limited, "limitResponse", "queuing")
            if queuing is not None:
                for field, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                    if not queuing.get(field):
                        queuing[field] = value
        obj.setdefault("status", {})

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return flow_control.priority_level(obj)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return flow_control.priority_level(new)


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    ("apiregistration.k8s.io", "APIService"): ApiServiceStrategy,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): CustomResourceDefinitionStrategy,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): FlowSchemaStrategy,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): PriorityLevelConfigurationStrategy,
}
