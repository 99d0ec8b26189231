"""``ExpressionChecker``: whether the expressions of an admission policy compile, in Kubernetes' words (kubernetes
``pkg/apis/admissionregistration/validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver import cel
from apiserver.admission import expressions
from apiserver.admission.expressions import Expression, compile_expression
from apiserver.admission.policies import constructions
from apiserver.admission.policies.validating import declared_type
from apiserver.machinery.field_errors import invalid
from apiserver.registry.validation.common import Errors

VARIABLES = "kubernetes.variables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The texts that the policy had before, by what they are for."""

    conditions: frozenset[str] = frozenset()
    validations: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()


NOTHING_KEPT = Kept()


def kept_expressions(spec: Mapping[str, Any]) -> Kept:
    """Of the spec of a stored policy."""

    def texts(field: str, name: str) -> frozenset[str]:
        return frozenset((each.get(name) or "").strip() for each in spec.get(field) or ())

    changes = [each.get("applyConfiguration") or each.get("jsonPatch") or {} for each in spec.get("mutations") or ()]
    return Kept(
        conditions=texts("matchConditions", "expression"),
        validations=texts("validations", "expression") | texts("variables", "expression"),
        messages=texts("validations", "messageExpression"),
        annotations=texts("auditAnnotations", "valueExpression"),
        changes=frozenset((each.get("expression") or "").strip() for each in changes),
    )


class _Environments:
    """Of one age of expressions."""

    def __init__(self, minor: int, params: bool, variables: Mapping[str, cel.Type]) -> None:
        """``variables`` empty: expressions may not speak of any."""
        self.whole = expressions.request_environment(minor, params=params, authorizer=True)
        self.composed = self.whole.extended(variables)
        self.message = expressions.request_environment(minor, params=params, authorizer=False).extended(variables)


class ExpressionChecker:
    """Of one policy, or of a webhook: variables are to be told in their order, before whatever may name them. ``minor``: of the Kubernetes
    version that is served; expressions that are not ``kept`` may use what the release before it has."""

    def __init__(self, spec: Mapping[str, Any], minor: int, *, kept: Kept = NOTHING_KEPT) -> None:
        params = spec.get("paramKind") is not None
        self._variables: dict[str, cel.Type] = {}
        # a validating policy without variables does not know the word, a mutating one does
        speaks = bool(spec.get("variables")) or "mutations" in spec
        variables = {"variables": cel.ObjectType(VARIABLES, self._variables, nulls=True)} if speaks else {}
        self._kept = kept
        self._new = _Environments(minor - 1, params, variables)
        self._stored = self._new if kept is NOTHING_KEPT else _Environments(minor, params, variables)

    def _of(self, source: str, kept: frozenset[str]) -> _Environments:
        return self._stored if source.strip() in kept else self._new

    def variable(self, out: Errors, path: str, name: str, source: str) -> None:
        found = compile_expression(self._of(source, self._kept.validations).composed, source)
        _tell(out, path, found)
        self._variables[name] = declared_type(found.type)

    def condition(self, out: Errors, path: str, source: str) -> None:
        """One of ``matchConditions``, of a policy or of a webhook, which are looked at before any variable is."""
        text = source.strip()
        _tell(out, path, compile_expression(self._of(text, self._kept.conditions).whole, text, cel.BOOL))

    def validation(self, out: Errors, path: str, source: str) -> None:
        _tell(out, path, compile_expression(self._of(source, self._kept.validations).composed, source, cel.BOOL))

    def message(self, out: Errors, path: str, source: str) -> None:
        _tell(out, path, compile_expression(self._of(source, self._kept.messages).message, source, cel.STRING))

    def annotation(self, out: Errors, path: str, source: str) -> None:
        found = compile_expression(self._of(source, self._kept.annotations).composed, source.strip(), cel.STRING, cel.NULL)
        if found.fault:
            out.append(invalid(path, source, found.fault))

    def change(self, out: Errors, path: str, source: str, *, by_patch: bool) -> None:
        """The expression of a mutation."""
        _tell(out, path, constructions.compile_change(self._of(source, self._kept.changes).composed, source, by_patch=by_patch))


def _tell(out: Errors, path: str, found: Expression) -> None:
    if found.fault:
        out.append(invalid(path, found.source, found.fault))
