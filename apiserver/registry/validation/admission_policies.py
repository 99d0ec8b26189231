"""Validating and mutating admission policies and their bindings: their shape, and whether their expressions compile (kubernetes
``pkg/apis/admissionregistration/validation``).

What an update leaves as it was may use all that this server's libraries have; what is new only what the release before had too, so that
an upgrade can be taken back. Match conditions are looked at only where something but metadata changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apiserver.machinery import names
from apiserver.machinery.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from apiserver.registry.validation import webhooks
from apiserver.registry.validation.common import Errors, checked, each, equal, label_selector

if TYPE_CHECKING:
    from apiserver.registry.validation.policy_expressions import ExpressionChecker

Part = Mapping[str, Any]

_NOTHING: Part = {}
_VALIDATION_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
#: what a mutating policy may be about: at a deletion there is nothing to change
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
AUDIT_ANNOTATIONS_MAX = 20
ANNOTATION_EXPRESSION_BYTES_MAX = 5 * 1024
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*").fullmatch
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function"),
        *("if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_LINE_BREAK = re.compile(r"[\n\r]").search


def validating_policy(obj: Part, minor: int, old: Part | None = None) -> list[FieldError]:
    """``minor``: of the Kubernetes version that is served. ``old``: what is replaced."""
    from apiserver.registry.validation.policy_expressions import ExpressionChecker, kept_expressions

    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    checker = ExpressionChecker(spec, minor, kept=kept_expressions((old or _NOTHING).get("spec") or _NOTHING))
    _common(out, spec, checker, old)
    validations, audits = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not audits:
        words = "validations or auditAnnotations must contain at least one item"
        out.append(required("spec.validations", words))
        out.append(required("spec.auditAnnotations", words))
    for i, validation in each(out, validations):
        _validation(out, f"spec.validations[{i}]", validation, checker)
    if len(audits) > AUDIT_ANNOTATIONS_MAX:
        words = f"must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations"
        out.append(invalid("spec.auditAnnotations", list(audits), words))
    _audit_annotations(out, audits, (obj.get("metadata") or _NOTHING).get("name") or "", checker)
    return out


def _validation(out: Errors, at: str, validation: Part, checker: ExpressionChecker) -> None:
    if not (validation.get("expression") or "").strip():
        out.append(required(f"{at}.expression", "expression is not specified"))
    else:
        checker.validation(out, f"{at}.expression", validation["expression"])
    said = validation.get("messageExpression") or ""
    if said and not said.strip():
        out.append(invalid(f"{at}.messageExpression", said, "must be non-empty if specified"))
    elif said:
        checker.message(out, f"{at}.messageExpression", said)
    message = validation.get("message") or ""
    if message and not message.strip():
        out.append(invalid(f"{at}.message", message, "must be non-empty if specified"))
    elif _LINE_BREAK(message.strip()):
        out.append(invalid(f"{at}.message", message, "must not contain line breaks"))
    reason = validation.get("reason")
    if reason is not None and reason not in _VALIDATION_REASONS:
        out.append(not_supported(f"{at}.reason", reason, list(_VALIDATION_REASONS)))


def _audit_annotations(out: Errors, annotations: Sequence[Part], name: str, checker: ExpressionChecker) -> None:
    seen: set[str] = set()
    for i, annotation in each(out, annotations):
        at, key = f"spec.auditAnnotations[{i}]", annotation.get("key") or ""
        if name:
            checked(out, f"{at}.key", f"{name}/{key}", names.qualified_name)
        else:
            out.append(invalid(f"{at}.key", key, "requires metadata.name be non-empty"))
        source = annotation.get("valueExpression") or ""
        if not source.strip():
            out.append(required(f"{at}.valueExpression", "valueExpression is not specified"))
        elif len(source.strip().encode()) > ANNOTATION_EXPRESSION_BYTES_MAX:
            words = f"must not exceed {ANNOTATION_EXPRESSION_BYTES_MAX} bytes in length"
            out.append(required(f"{at}.valueExpression", words))
        else:
            checker.annotation(out, f"{at}.valueExpression", source)
        if key in seen:
            out.append(duplicate(f"{at}.key", key))
        seen.add(key)


def mutating_policy(obj: Part, minor: int, old: Part | None = None) -> list[FieldError]:
    """The same of a mutating policy."""
    from apiserver.registry.validation.policy_expressions import ExpressionChecker, kept_expressions

    out: Errors = []
    spec = obj.get("spec") or _NOTHING
    checker = ExpressionChecker(spec, minor, kept=kept_expressions((old or _NOTHING).get("spec") or _NOTHING))
    _common(out, spec, checker, old, _MUTATING_OPERATIONS)
    mutations = spec.get("mutations") or ()
    if not mutations:
        out.append(required("spec.mutations", "mutations must contain at least one item"))
    for i, mutation in each(out, mutations):
        _mutation(out, f"spec.mutations[{i}]", mutation, checker)
    if not spec.get("reinvocationPolicy"):
        out.append(required("spec.reinvocationPolicy"))
    elif spec["reinvocationPolicy"] not in ("IfNeeded", "Never"):
        out.append(not_supported("spec.reinvocationPolicy", spec["reinvocationPolicy"], ["IfNeeded", "Never"]))
    return out


_FIELD_OF_PATCH = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


def _mutation(out: Errors, at: str, mutation: Part, checker: ExpressionChecker) -> None:
    kind = mutation.get("patchType") or ""
    own = _FIELD_OF_PATCH.get(kind)
    if not kind:
        out.append(required(f"{at}.patchType"))
        return
    if own is None:
        out.append(not_supported(f"{at}.patchType", kind, list(_FIELD_OF_PATCH)))
        return
    said = mutation.get(own)
    if said is None:
        out.append(required(f"{at}.{own}", f"must be specified when patchType is {kind}"))
    elif not (source := (said.get("expression") or "").strip()):
        out.append(required(f"{at}.{own}.expression"))
    else:
        checker.change(out, f"{at}.{own}.expression", source, by_patch=own == "jsonPatch")
    for other in _FIELD_OF_PATCH.values():
        if other != own and mutation.get(other) is not None:
            out.append(invalid(f"{at}.{other}", f"{{{other}}}", f"must not be specified when patchType is {kind}"))


def _common(out: Errors, spec: Part, checker: ExpressionChecker, old: Part | None, operations: Sequence[str] = ()) -> None:
    policy = spec.get("failurePolicy")
    if policy is None:
        out.append(required("spec.failurePolicy"))
    elif policy not in ("Fail", "Ignore"):
        out.append(not_supported("spec.failurePolicy", policy, ["Fail", "Ignore"]))
    if (kind := spec.get("paramKind")) is not None:
        _param_kind(out, kind)
    constraints = spec.get("matchConstraints")
    if constraints is None:
        out.append(required("spec.matchConstraints"))
    else:
        _match_resources(out, "spec.matchConstraints", constraints)
        if not constraints.get("resourceRules"):
            out.append(required("spec.matchConstraints.resourceRules"))
        _operations(out, "spec.matchConstraints", constraints, operations)
    if old is None or not equal(spec, old.get("spec") or _NOTHING):
        webhooks.match_conditions(out, "spec.matchConditions", spec.get("matchConditions") or (), checker.condition)
    for i, variable in each(out, spec.get("variables") or ()):
        at, name = f"spec.variables[{i}]", variable.get("name") or ""
        if not name.strip():
            out.append(required(f"{at}.name", "name is not specified"))
        elif not _IDENTIFIER(name) or name in _RESERVED:
            out.append(invalid(f"{at}.name", name, "must be a valid CEL identifier"))
        if not (variable.get("expression") or "").strip():
            out.append(required(f"{at}.expression", "expression is not specified"))
        else:
            checker.variable(out, f"{at}.expression", name, variable["expression"])


def _param_kind(out: Errors, said: Part) -> None:
    api_version, kind = said.get("apiVersion") or "", said.get("kind") or ""
    at = "spec.paramKind.apiVersion"
    if not api_version:
        out.append(required(at))
    elif api_version.count("/") > 1:
        out.append(invalid(at, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        group, _, version = api_version.rpartition("/")
        if group and (messages := names.dns1123_subdomain(group)):
            out.append(invalid(at, group, ",".join(messages)))
        if not version:
            out.append(invalid(at, api_version, "version must be specified"))
        elif messages := names.dns1035_label(version):
            out.append(invalid(at, version, ",".join(messages)))
    if not kind:
        out.append(required("spec.paramKind.kind"))
    elif messages := names.dns1035_label(kind.lower()):
        out.append(invalid("spec.paramKind.kind", kind, "may have mixed case, but should otherwise match: " + ",".join(messages)))


def _match_resources(out: Errors, path: str, found: Part) -> None:
    policy = found.get("matchPolicy")
    if policy is None:
        out.append(required(f"{path}.matchPolicy"))
    elif policy not in ("Equivalent", "Exact"):
        out.append(not_supported(f"{path}.matchPolicy", policy, ["Equivalent", "Exact"]))
    for field in ("namespaceSelector", "objectSelector"):
        if found.get(field) is None:
            out.append(required(f"{path}.{field}"))
        else:
            label_selector(out, f"{path}.{field}", found[field])
    for field in ("resourceRules", "excludeResourceRules"):
        for i, rule in each(out, found.get(field) or ()):
            at, said = f"{path}.{field}[{i}]", list(rule.get("resourceNames") or ())
            for j, name in each(out, said):
                checked(out, f"{at}.resourceNames[{j}]", name, names.path_segment)
                if name in said[:j]:
                    out.append(duplicate(f"{at}.resourceNames[{j}]", name))
            webhooks.rule_with_operations(out, at, rule)


def _operations(out: Errors, path: str, found: Part, supported: Sequence[str]) -> None:
    """``supported`` empty: all that a rule may name. Upstream tells no position here."""
    for rule in found.get("resourceRules") or () if supported else ():
        for operation in rule.get("operations") or ():
            if operation not in supported:
                out.append(not_supported(f"{path}.resourceRules.operations", operation, list(supported)))


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
        _operations(out, "spec.matchResources", match, () if validating else _MUTATING_OPERATIONS)
    if validating:
        actions = list(spec.get("validationActions") or ())
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
        if not actions:
            out.append(required("spec.validationActions", "at least one validation action is required"))
    return out


def policy_status(obj: Part) -> list[FieldError]:
    """What a client writes through ``/status``."""
    out: Errors = []
    status = obj.get("status") or _NOTHING
    for i, warning in each(out, (status.get("typeChecking") or _NOTHING).get("expressionWarnings") or ()):
        at = f"status.typeChecking.expressionWarnings[{i}]"
        if not warning.get("warning"):
            out.append(required(f"{at}.warning"))
        if not (warning.get("fieldRef") or "").strip():
            out.append(required(f"{at}.fieldRef"))
    return out


def _param_ref(out: Errors, path: str, reference: Part) -> None:
    name, selector = reference.get("name") or "", reference.get("selector")
    both = "name and selector are mutually exclusive"
    if name:
        checked(out, f"{path}.name", name, names.path_segment)
        if selector is not None:
            out.append(forbidden(f"{path}.name", both))
    if selector is not None:
        label_selector(out, f"{path}.selector", selector)
        if name:
            out.append(forbidden(f"{path}.selector", both))
    if not name and selector is None:
        out.append(required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    if not action:
        out.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        out.append(not_supported(f"{path}.parameterNotFoundAction", action, ["Deny", "Allow"]))
