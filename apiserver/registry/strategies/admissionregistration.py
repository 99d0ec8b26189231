"""The group admissionregistration.k8s.io: webhook configurations, admission policies and their bindings."""

from __future__ import annotations

from typing import ClassVar

from apiserver.admission import expression_texts
from apiserver.machinery.field_errors import FieldError
from apiserver.machinery.objects import Object
from apiserver.registry.strategies.parts import keep
from apiserver.registry.strategy import Strategy, StrategyContext
from apiserver.registry.validation import admission_policies, webhooks
from apiserver.resources.facts import LAST_MINOR
from apiserver.resources.table import minor_of

_GROUP = "admissionregistration.k8s.io"
_TIMEOUT_SECONDS = 10
HTTPS_PORT = 443


class WebhookConfigurationStrategy(Strategy):
    has_generation = True
    standard_finalizers = False
    mutating: ClassVar[bool] = False

    def default(self, obj: Object) -> None:
        for hook in obj.get("webhooks") or ():
            for field, value in (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", _TIMEOUT_SECONDS)):
                if hook.get(field) is None:
                    hook[field] = value
            for field in ("namespaceSelector", "objectSelector"):
                if hook.get(field) is None:
                    hook[field] = {}
            if self.mutating and hook.get("reinvocationPolicy") is None:
                hook["reinvocationPolicy"] = "Never"
            _default_rules(hook.get("rules"))
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None and service.get("port") is None:
                service["port"] = HTTPS_PORT

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        expression_texts.check_patience(obj.get("webhooks"), patient=context.patient)
        return webhooks.configuration(obj, None, _compiles(context, obj))

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        expression_texts.check_patience(new.get("webhooks"), patient=context.patient)
        return webhooks.configuration(new, old, _compiles(context, new))

    def spec_changed(self, new: Object, old: Object) -> bool:
        return bool(new.get("webhooks") != old.get("webhooks"))


def _default_rules(rules: list[Object] | None) -> None:
    for rule in rules or ():
        if rule.get("scope") is None:
            rule["scope"] = "*"


class MutatingWebhookConfigurationStrategy(WebhookConfigurationStrategy):
    mutating = True


def _compiles(context: StrategyContext, obj: Object) -> webhooks.Compiles | None:
    """None where there is no condition: CEL is loaded where somebody uses it."""
    if not any(hook.get("matchConditions") for hook in obj.get("webhooks") or ()):
        return None
    from apiserver.registry.validation.policy_expressions import ExpressionChecker

    return ExpressionChecker({}, _minor(context)).condition


def _minor(context: StrategyContext) -> int:
    return LAST_MINOR if context.schemas is None else minor_of(context.schemas.kubernetes_version)


def _default_match(match: Object | None) -> None:
    if match is None:
        return
    if match.get("matchPolicy") is None:
        match["matchPolicy"] = "Equivalent"
    for field in ("namespaceSelector", "objectSelector"):
        if match.get(field) is None:
            match[field] = {}
    for field in ("resourceRules", "excludeResourceRules"):
        _default_rules(match.get(field))


class PolicyStrategy(Strategy):
    has_generation = True
    standard_finalizers = False
    allow_unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("failurePolicy") is None:
            spec["failurePolicy"] = "Fail"
        _default_match(spec.get("matchConstraints"))


class ValidatingAdmissionPolicyStrategy(PolicyStrategy):
    def default(self, obj: Object) -> None:
        super().default(obj)
        obj.setdefault("status", {})

    def prepare_for_create(self, context: StrategyContext, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_update(self, context: StrategyContext, new: Object, old: Object) -> None:
        keep(new, old, "status")

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        expression_texts.check_patience(obj.get("spec"), patient=context.patient)
        return admission_policies.validating_policy(obj, _minor(context))

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        expression_texts.check_patience(new.get("spec"), patient=context.patient)
        return admission_policies.validating_policy(new, _minor(context), old)

    def validate_status_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return admission_policies.policy_status(new)


class MutatingAdmissionPolicyStrategy(PolicyStrategy):
    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        expression_texts.check_patience(obj.get("spec"), patient=context.patient)
        return admission_policies.mutating_policy(obj, _minor(context))

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        expression_texts.check_patience(new.get("spec"), patient=context.patient)
        return admission_policies.mutating_policy(new, _minor(context), old)


class PolicyBindingStrategy(Strategy):
    has_generation = True
    standard_finalizers = False
    allow_unconditional_update = False
    validating: ClassVar[bool] = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        _default_match(spec.get("matchResources"))
        reference = spec.get("paramRef")
        if reference is not None and reference.get("parameterNotFoundAction") is None:
            reference["parameterNotFoundAction"] = "Deny"

    def validate(self, context: StrategyContext, obj: Object) -> list[FieldError]:
        return admission_policies.binding(obj, validating=self.validating)

    def validate_update(self, context: StrategyContext, new: Object, old: Object) -> list[FieldError]:
        return admission_policies.binding(new, validating=self.validating)


class MutatingPolicyBindingStrategy(PolicyBindingStrategy):
    validating = False


STRATEGIES: dict[tuple[str, str], type[Strategy]] = {
    (_GROUP, "ValidatingWebhookConfiguration"): WebhookConfigurationStrategy,
    (_GROUP, "MutatingWebhookConfiguration"): MutatingWebhookConfigurationStrategy,
    (_GROUP, "ValidatingAdmissionPolicy"): ValidatingAdmissionPolicyStrategy,
    (_GROUP, "ValidatingAdmissionPolicyBinding"): PolicyBindingStrategy,
    (_GROUP, "MutatingAdmissionPolicy"): MutatingAdmissionPolicyStrategy,
    (_GROUP, "MutatingAdmissionPolicyBinding"): MutatingPolicyBindingStrategy,
}
