"""Validating and mutating admission policies and their bindings: their shape, and whether their expressions compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from apiserver.registry.validation import webhooks
from apiserver.registry.validation.common import Errors, checked, each, label_selector

if TYPE_CHECKING:
    from apiserver.registry.validation.policy_expressions import ExpressionChecker

Part = Mapping[str, Any]

_NOTHING: Part = {}
_VALIDATION_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_ACTIONS = ("Audit", "Deny", "Warn")


def validating_policy(obj: Part, minor: int) -> list[FieldError]:
    """``minor``: of the Kubernetes version whose library expressions may use."""
    from apiserver.registry.validation.policy_expressions import ExpressionChecker

    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    checker = ExpressionChecker(spec, minor)
    _common(out, spec, checker)
    validations, audits = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not audits:
        words = "validations or auditAnnotations must contain at least one item"
        out.append(required("spec.validations", words))
        out.append(required("spec.auditAnnotations", words))
    for i, validation in each(out, validations):
        at = f"spec.validations[{i}]"
        if not (validation.get("expression") or "").strip():
            out.append(required(f"{at}.expression", "expression is not specified"))
        else:
            checker.validation(out, f"{at}.expression", validation["expression"])
        said = validation.get("messageExpression")
        if said is not None and not said.strip():
            words = "must be non-empty if specified"
            out.append(invalid(f"{at}.messageExpression", said, words))
        elif said:
            checker.message(out, f"{at}.messageExpression", said)
        message = validation.get("message") or ""
        if message and not message.strip():
            out.append(invalid(f"{at}.message", message, "message must be non-empty if specified"))
        elif "\n" in message.strip():
            out.append(invalid(f"{at}.message", message, "message must not contain line breaks"))
        elif "\n" in (validation.get("expression") or "").strip() and not message:
            out.append(required(f"{at}.message", "message must be specified if expression contains line breaks"))
        reason = validation.get("reason")
        if reason is not None and reason not in _VALIDATION_REASONS:
            out.append(not_supported(f"{at}.reason", reason, list(_VALIDATION_REASONS)))
    _audit_annotations(out, audits, (obj.get("metadata") or _NOTHING).get("name") or "", checker)
    return out


def _audit_annotations(out: Errors, annotations: Sequence[Part], name: str, checker: ExpressionChecker) -> None:
    seen: set[str] = set()
    for i, annotation in each(out, annotations):
        at, key = f"spec.auditAnnotations[{i}]", annotation.get("key") or ""
        if not key:
            out.append(required(f"{at}.key"))
        else:
            for message in names.qualified_name(f"{name}/{key}"):
                out.append(invalid(f"{at}.key", key, message))
        if not (annotation.get("valueExpression") or "").strip():
            out.append(required(f"{at}.valueExpression", "valueExpression is not specified"))
        else:
            checker.annotation(out, f"{at}.valueExpression", annotation["valueExpression"])
        if key in seen:
            out.append(duplicate(f"{at}.key", key))
        seen.add(key)


def mutating_policy(obj: Part, minor: int) -> list[FieldError]:
    from apiserver.registry.validation.policy_expressions import ExpressionChecker

    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    checker = ExpressionChecker(spec, minor)
    _common(out, spec, checker)
    mutations = spec.get("mutations") or ()
    if not mutations:
        out.append(required("spec.mutations", "mutations must contain at least one item"))
    for i, mutation in each(out, mutations):
        at, kind = f"spec.mutations[{i}]", mutation.get("patchType") or ""
        fields = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
        if not kind:
            out.append(required(f"{at}.patchType"))
        elif kind not in fields:
            out.append(not_supported(f"{at}.patchType", kind, list(fields)))
        for of_kind, field in fields.items():
            part = mutation.get(field)
            if of_kind == kind and part is None:
                out.append(required(f"{at}.{field}"))
            elif of_kind != kind and part is not None:
                out.append(forbidden(f"{at}.{field}", f"must not be set when patchType is {kind}"))
            elif part is not None and not (part.get("expression") or "").strip():
                out.append(required(f"{at}.{field}.expression", "expression is not specified"))
            elif part is not None:
                checker.change(out, f"{at}.{field}.expression", part["expression"], by_patch=field == "jsonPatch")
    if not spec.get("reinvocationPolicy"):
        out.append(required("spec.reinvocationPolicy"))
    elif spec["reinvocationPolicy"] not in ("IfNeeded", "Never"):
        out.append(not_supported("spec.reinvocationPolicy", spec["reinvocationPolicy"], ["IfNeeded", "Never"]))
    return out


def _common(out: Errors, spec: Part, checker: ExpressionChecker) -> None:
    policy = spec.get("failurePolicy")
    if policy is None:
        out.append(required("spec.failurePolicy"))
    elif policy not in ("Fail", "Ignore"):
        out.append(not_supported("spec.failurePolicy", policy, ["Fail", "Ignore"]))
    kind = spec.get("paramKind")
    if kind is not None:
        if not kind.get("apiVersion"):
            out.append(required("spec.paramKind.apiVersion"))
        if not kind.get("kind"):
            out.append(required("spec.paramKind.kind"))
    constraints = spec.get("matchConstraints")
    if constraints is None:
        out.append(required("spec.matchConstraints"))
    else:
        _match_resources(out, "spec.matchConstraints", constraints)
        if not constraints.get("resourceRules"):
            out.append(required("spec.matchConstraints.resourceRules"))
    conditions = spec.get("matchConditions") or ()
    webhooks.match_conditions(out, "spec.matchConditions", conditions, checker.condition)
    seen: set[str] = set()
    for i, variable in each(out, spec.get("variables") or ()):
        at, name = f"spec.variables[{i}]", variable.get("name") or ""
        if not name:
            out.append(required(f"{at}.name", "name is not specified"))
        elif name in seen:
            out.append(duplicate(f"{at}.name", name))
        else:
            checked(out, f"{at}.name", name, names.c_identifier)
            seen.add(name)
        if not (variable.get("expression") or "").strip():
            out.append(required(f"{at}.expression", "expression is not specified"))
        else:
            checker.variable(out, f"{at}.expression", name, variable["expression"])


def _match_resources(out: Errors, path: str, found: Part) -> None:
    policy = found.get("matchPolicy")
    if policy is None:
        out.append(required(f"{path}.matchPolicy"))
    elif policy not in ("Equivalent", "Exact"):
        out.append(not_supported(f"{path}.matchPolicy", policy, ["Equivalent", "Exact"]))
    for field in ("namespaceSelector", "objectSelector"):
        label_selector(out, f"{path}.{field}", found.get(field))
    for field in ("resourceRules", "excludeResourceRules"):
        for i, rule in each(out, found.get(field) or ()):
            webhooks.rule_with_operations(out, f"{path}.{field}[{i}]", rule)


def binding(obj: Part, *, validating: bool) -> list[FieldError]:
    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    name = spec.get("policyName") or ""
    if not name:
        out.append(required("spec.policyName"))
    else:
        checked(out, "spec.policyName", name, names.dns1123_subdomain)
    if (reference := spec.get("paramRef")) is not None:
        _param_ref(out, "spec.paramRef", reference)
    if (match := spec.get("matchResources")) is not None:
        _match_resources(out, "spec.matchResources", match)
    if validating:
        actions = list(spec.get("validationActions") or ())
        if not actions:
            out.append(required("spec.validationActions", "at least one validation action is required"))
        for i, action in each(out, actions):
            if action not in _ACTIONS:
                out.append(not_supported(f"spec.validationActions[{i}]", action, list(_ACTIONS)))
            if action in actions[:i]:
                out.append(duplicate(f"spec.validationActions[{i}]", action))
        if "Deny" in actions and "Warn" in actions:
            words = (
                "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers "
                "serves no purpose)"
            )
            out.append(invalid("spec.validationActions", actions, words))
    return out


def _param_ref(out: Errors, path: str, reference: Part) -> None:
    name, selector = reference.get("name") or "", reference.get("selector")
    if name:
        for message in names.path_segment(name):
            out.append(invalid(f"{path}.name", name, message))
        if selector is not None:
            out.append(forbidden(f"{path}.name", "name and selector are mutually exclusive"))
    elif selector is not None:
        label_selector(out, f"{path}.selector", selector)
    else:
        out.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if action is None:
        out.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        out.append(not_supported(f"{path}.parameterNotFoundAction", action, ["Allow", "Deny"]))
