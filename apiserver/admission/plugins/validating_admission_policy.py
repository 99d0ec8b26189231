"""ValidatingAdmissionPolicy: what the stored policies and their bindings refuse, warn of and note (apiserver
``admission/plugin/policy/validating/dispatcher.go``)."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from apiserver.admission import rule_matching
from apiserver.admission.interfaces import AdmissionAttributes, Operation
from apiserver.admission.plugin import Plugin, forbidden
from apiserver.admission.policies import metrics, params
from apiserver.admission.policies.params import ConfigurationError
from apiserver.admission.policies.source import Binding, Hook, PolicyServices, PolicySource
from apiserver.authorization.authorizer import Authorizer
from apiserver.long_runs import LongRunError, patiently
from apiserver.machinery import status
from apiserver.machinery.objects import Object
from apiserver.request.unanswered import Unanswered
from apiserver.resources.resource_info import ResourceInfo

if TYPE_CHECKING:
    from apiserver.admission.policies.request_view import RequestView

KIND = "ValidatingAdmissionPolicy"
#: noted in the audit event of one request
FAILURES_NOTED_MAX = 50
_NOTE = "validation.policy.admission.k8s.io/validation_failure"
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
#: one run without any
_NO_PARAMETER: list[Object | None] = [None]
#: the labels of what ``validationActions`` do
_ENFORCEMENTS = {"Deny": "deny", "Warn": "warn", "Audit": "audit"}


@dataclass(slots=True)
class _Denial:
    policy: str
    binding: str
    message: str
    reason: str = ""

    def text(self) -> str:
        with_binding = f" with binding '{self.binding}'" if self.binding else ""
        return f"{KIND} '{self.policy}'{with_binding} denied request: {self.message}"


@dataclass(slots=True)
class _Outcome:
    """Of one request."""

    denials: list[_Denial] = field(default_factory=list)
    noted: list[dict[str, Any]] = field(default_factory=list)


class ValidatingAdmissionPolicy(Plugin):
    name = KIND
    operations = frozenset(Operation)
    subresources = None

    def __init__(self, services: PolicyServices, authorizer: Authorizer) -> None:
        self._objects = services.objects
        self._served = services.served
        self._authorizer = authorizer
        self._metrics = services.metrics
        self._source: PolicySource[Any] = PolicySource(
            services, "validatingadmissionpolicies", "validatingadmissionpolicybindings", _maker(services.minor)
        )

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool:
        return not rule_matching.is_exempt(info)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        hooks = self._source.concerned(attributes)
        if not hooks:
            return
        from apiserver.admission.policies.request_view import RequestView  # with it comes CEL

        outcome = _Outcome()
        view = RequestView(attributes, self._objects, self._served, self._authorizer)
        for hook, always in hooks:
            await self._ask(hook, always, attributes, view, outcome)
        if outcome.noted:
            attributes.annotate(_NOTE, json.dumps(outcome.noted[:FAILURES_NOTED_MAX], ensure_ascii=False, separators=(",", ":")))
        if outcome.denials:
            raise _refusal(attributes, outcome.denials[0])

    async def _ask(self, hook: Hook[Any], always: bool, attributes: AdmissionAttributes, view: RequestView, outcome: _Outcome) -> None:
        try:
            wanted = attributes.info if always else view.matched(hook)
            if wanted is None:
                return
            kind = hook.spec.get("paramKind")
            info = None if kind is None else params.kind_of_params(kind, self._served)
        except ConfigurationError as error:
            self._misconfigured(hook, "", f"failed to configure policy: {error}", outcome)
            return
        notes: dict[str, list[str]] = {}
        for binding in hook.bindings:
            try:
                await self._ask_binding(hook, binding, wanted, info, attributes, view, outcome, notes)
            except ConfigurationError as error:
                self._misconfigured(hook, binding.name, f"failed to configure binding: {error}", outcome)
        for key, texts in notes.items():
            attributes.annotate(f"{hook.name}/{key}", ", ".join(texts))

    def _misconfigured(self, hook: Hook[Any], binding: str, why: str, outcome: _Outcome) -> None:
        if not hook.ignores_failures:
            outcome.denials.append(_Denial(hook.name, binding, why))

    async def _ask_binding(
        self,
        hook: Hook[Any],
        binding: Binding,
        wanted: ResourceInfo,
        info: ResourceInfo | None,
        attributes: AdmissionAttributes,
        view: RequestView,
        outcome: _Outcome,
        notes: dict[str, list[str]],
    ) -> None:
        """Raises ConfigurationError."""
        if (binding.matcher is not None or binding.fault) and view.matched(binding) is None:
            return
        given = _NO_PARAMETER
        if info is not None:
            given = await params.collect(info, binding.spec.get("paramRef"), attributes.namespace, self._served)
            if not given:
                return
        values = view.known_values(wanted) or await view.values(wanted)
        policy = hook.compiled or await hook.ready()
        for one in given:
            try:
                judgement = policy.judge(values, one, patient=False)
            except (LongRunError, Unanswered):
                judgement = await patiently(functools.partial(_judge, policy, values, one))
            if judgement.conditions is not None:
                self._count_conditions(hook, attributes, judgement)
            for failure in judgement.failures:
                self._act(hook, binding, failure, attributes, outcome)
            for failure in judgement.ignored:
                self._count(hook, binding, failure, "allow", metrics.error_type(failure.message))
            for why in judgement.annotation_errors:
                outcome.denials.append(_Denial(hook.name, binding.name, why))
                self._metrics.validated.observe(0.0, hook.name, binding.name, metrics.error_type(why), "deny")
            for key, text in judgement.annotations:
                if text not in notes.setdefault(key, []):
                    notes[key].append(text)

    def _act(self, hook: Hook[Any], binding: Binding, failure: Any, attributes: AdmissionAttributes, outcome: _Outcome) -> None:
        actions = binding.spec.get("validationActions") or ()
        for action in actions:
            if action == "Deny":
                outcome.denials.append(_Denial(hook.name, binding.name, failure.message, failure.reason))
            elif action == "Warn":
                text = f"Validation failed for {KIND} '{hook.name}' with binding '{binding.name}': {failure.message}"
                attributes.warnings.append(text)
            else:
                outcome.noted.append(
                    {
                        "message": failure.message,
                        "policy": hook.name,
                        "binding": binding.name,
                        "expressionIndex": failure.position,
                        "validationActions": list(actions),
                    }
                )
            self._count(hook, binding, failure, _ENFORCEMENTS[action], metrics.error_type(failure.message))

    def _count(self, hook: Hook[Any], binding: Binding, failure: Any, enforcement: str, error: str) -> None:
        self._metrics.validated.observe(failure.seconds, hook.name, binding.name, error, enforcement)

    def _count_conditions(self, hook: Hook[Any], attributes: AdmissionAttributes, judgement: Any) -> None:
        labels = (hook.name, "policy", "validate", attributes.operation.value)
        self._metrics.conditions.observe(judgement.conditions.seconds, *labels)
        if judgement.conditions.error:
            self._metrics.condition_errors.observe(0.0, *labels)


def _judge(policy: Any, values: dict[str, Any], param: Object | None, patient: bool) -> Any:
    return policy.judge(values, param, patient=patient)


def _maker(minor: int) -> Callable[[Object], Any]:
    def make(spec: Object) -> Any:
        from apiserver.admission.policies.validating import ValidatingPolicy

        return ValidatingPolicy(spec, minor)

    return make


def _refusal(attributes: AdmissionAttributes, denial: _Denial) -> status.StatusError:
    text, reason = denial.text(), denial.reason or "Invalid"
    error = forbidden(attributes, text)
    error.status["reason"] = reason
    error.status["code"] = _CODES.get(reason, 422)
    error.status["details"].setdefault("causes", []).append({"message": text})
    return error
