"""``ExpressionChecker``: whether the expressions of an admission policy compile, in Kubernetes' words (kubernetes
``pkg/apis/admissionregistration/validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver import cel
from apiserver.admission import expressions
from apiserver.admission.expressions import Expression, compile_expression
from apiserver.admission.policies import constructions
from apiserver.admission.policies.validating import declared_type
from apiserver.machinery.field_errors import invalid
from apiserver.registry.validation.common import Errors

VARIABLES = "kubernetes.variables"


class ExpressionChecker:
    """Of one policy: variables are to be told in their order, before whatever may name them."""

    def __init__(self, spec: Mapping[str, Any], minor: int) -> None:
        params = spec.get("paramKind") is not None
        self._variables: dict[str, cel.Type] = {}
        variables = {"variables": cel.ObjectType(VARIABLES, self._variables, nulls=True)}
        self._whole = expressions.request_environment(minor, params=params, authorizer=True)
        self._composed = self._whole.extended(variables)
        self._message = expressions.request_environment(minor, params=params, authorizer=False).extended(variables)

    def variable(self, out: Errors, path: str, name: str, source: str) -> None:
        found = compile_expression(self._composed, source)
        _tell(out, path, found)
        self._variables[name] = declared_type(found.type)

    def condition(self, out: Errors, path: str, source: str) -> None:
        """One of ``matchConditions``, of a policy or of a webhook, which are looked at before any variable is."""
        _tell(out, path, compile_expression(self._whole, source.strip(), cel.BOOL))

    def validation(self, out: Errors, path: str, source: str) -> None:
        _tell(out, path, compile_expression(self._composed, source, cel.BOOL))

    def message(self, out: Errors, path: str, source: str) -> None:
        _tell(out, path, compile_expression(self._message, source, cel.STRING))

    def annotation(self, out: Errors, path: str, source: str) -> None:
        _tell(out, path, compile_expression(self._composed, source, cel.STRING, cel.NULL))

    def change(self, out: Errors, path: str, source: str, *, by_patch: bool) -> None:
        """The expression of a mutation."""
        _tell(out, path, constructions.compile_change(self._composed, source, by_patch=by_patch))


def _tell(out: Errors, path: str, found: Expression) -> None:
    if found.fault:
        out.append(invalid(path, found.source, found.fault))
