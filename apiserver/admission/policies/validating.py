"""``ValidatingPolicy``: a compiled ValidatingAdmissionPolicy, and what it says of one request (apiserver
``admission/plugin/policy/validating``)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver import cel
from apiserver.admission import expressions
from apiserver.admission.expressions import (
    AUTHORIZER,
    NO_VARIABLES,
    REQUEST_RESOURCE_AUTHORIZER,
    Budget,
    Expression,
    OutOfBudgetError,
    Result,
    Variables,
    compile_expression,
    run,
)
from apiserver.admission.match_conditions import MatchConditions, Verdict
from apiserver.cel.types import Kind
from apiserver.machinery.objects import Object

#: bytes of a text that a messageExpression makes, and of an audit annotation's value
MESSAGE_BYTES_MAX = 5 * 1024
ANNOTATION_BYTES_MAX = 10 * 1024
_PLACEHOLDER = Result()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """``reason`` is "" where the policy could not tell. ``position``: of the expression in ``validations``; ``seconds`` of its run."""

    message: str
    reason: str = ""
    position: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Judgement:
    """``annotations``: values for the audit event; ``annotation_errors`` refuse whatever the binding's actions are. ``ignored``: what the
    policy could not tell and lets pass. ``conditions``: why its
    match conditions keep it from judging, None where they do not."""

    failures: list[Failure] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)
    annotation_errors: list[str] = field(default_factory=list)
    ignored: list[Failure] = field(default_factory=list)
    conditions: Verdict | None = None


#: of a policy that has nothing to say; not to be changed
PASSED = Judgement()


def compile_variables(spec: Object, environment: cel.Environment) -> tuple[dict[str, Expression], cel.Environment]:
    """The variables of a policy, each of which sees those before it, and the environment with all of them."""
    found: dict[str, Expression] = {}
    fields: dict[str, cel.Type] = {}
    # the type has the fields that are known by then
    environment = environment.extended({"variables": cel.ObjectType("kubernetes.variables", fields, nulls=True)})
    for said in spec.get("variables") or ():
        name = said.get("name") or ""
        found[name] = compile_expression(environment, said.get("expression") or "")
        fields[name] = declared_type(found[name].type)
    return found, environment


def declared_type(found: cel.Type) -> cel.Type:
    """Of what type a variable is to expressions that use it: objects and what is optional are of any."""
    if found.kind is Kind.LIST:
        return cel.list_of(declared_type(found.parameters[0]))
    if found.kind is Kind.MAP:
        return cel.map_of(*(declared_type(parameter) for parameter in found.parameters))
    return found if found.kind in _PLAIN else cel.DYN


_PLAIN = frozenset(
    (
        Kind.BOOL,
        Kind.BYTES,
        Kind.DOUBLE,
        Kind.DURATION,
        Kind.INT,
        Kind.NULL,
        Kind.STRING,
        Kind.TIMESTAMP,
        Kind.UINT,
    )
)


class ValidatingPolicy:
    """Of a stored ``spec``; ``minor`` is the Kubernetes version's."""

    def __init__(self, spec: Object, minor: int) -> None:
        params = spec.get("paramKind") is not None
        whole = expressions.request_environment(minor, params=params, authorizer=True)
        self._ignores = spec.get("failurePolicy") == "Ignore"
        self._variables, environment = compile_variables(spec, whole)
        # a message is for the one who was refused: what others may do is no part of it
        plain = expressions.request_environment(minor, params=params, authorizer=False)
        fields = {name: declared_type(found.type) for name, found in self._variables.items()}
        messages = plain.extended({"variables": cel.ObjectType("kubernetes.variables", fields, nulls=True)})
        self._conditions = MatchConditions(spec.get("matchConditions") or (), environment)
        self._has_conditions = bool(spec.get("matchConditions"))
        self._validations = list(spec.get("validations") or ())
        self._expressions = [compile_expression(environment, one.get("expression") or "", cel.BOOL) for one in self._validations]
        self._messages = [
            compile_expression(messages, one["messageExpression"], cel.STRING) if one.get("messageExpression") else None
            for one in self._validations
        ]
        self._annotations = [
            (one.get("key") or "", compile_expression(environment, one.get("valueExpression") or "", cel.STRING, cel.NULL))
            for one in spec.get("auditAnnotations") or ()
        ]
        self._no_messages = [] if any(self._messages) else [_PLACEHOLDER] * len(self._messages)
        #: where all validations hold there is nothing more to do
        self._quiet = not any(self._messages) and not self._annotations

    def judge(self, values: Mapping[str, Any], param: Object | None, *, patient: bool = True) -> Judgement:
        """``values`` as ``expressions.request_values`` makes them, of one request; with one parameter. Raises LongRunError where it takes
        long and is not ``patient``."""
        own = {**values, "params": param}
        if self._has_conditions:
            # kube-apiserver tells conditions nothing about the namespace
            verdict = self._conditions.judge(self._scope({**own, "namespaceObject": None}, patient), patient=patient)
            if not verdict.matches:
                return self._undecided(verdict.error, verdict) if verdict.error else Judgement(conditions=verdict)
        budget = Budget(expressions.POLICY_BUDGET, patient)
        scope = self._scope(own, patient)
        results, took = [], []
        try:
            for expression in self._expressions:
                began = time.perf_counter()
                results.append(run(expression, scope, budget))
                took.append(time.perf_counter() - began)
        except OutOfBudgetError as error:
            return self._undecided(str(error))
        if self._quiet and all(result.value is True for result in results):
            return PASSED
        judgement = Judgement()
        # messages and annotations are for others than the user: what that one may do is no part of them
        plain = {name: value for name, value in own.items() if name not in (AUTHORIZER, REQUEST_RESOURCE_AUTHORIZER)}
        texts, over = self._texts(plain, budget, patient)
        for position, result in enumerate(results):
            self._add(judgement, position, result, took[position], texts, over)
        try:
            self._annotate(plain, judgement, patient)
        except OutOfBudgetError as error:
            return self._undecided(str(error))
        return judgement

    def _scope(self, values: dict[str, Any], patient: bool) -> dict[str, Any]:
        """``values`` with variables that see them, which each stage computes for itself."""
        values["variables"] = Variables(self._variables, values, patient=patient) if self._variables else NO_VARIABLES
        return values

    def _undecided(self, why: str, conditions: Verdict | None = None) -> Judgement:
        failure = [Failure(message=why)]
        if self._ignores:
            return Judgement(ignored=[] if conditions is not None else failure, conditions=conditions)
        return Judgement(failures=failure, conditions=conditions)

    def _texts(self, values: dict[str, Any], budget: Budget, patient: bool) -> tuple[list[Result], str]:
        if self._no_messages:
            return self._no_messages, ""
        scope = self._scope(dict(values), patient)
        try:
            return [_PLACEHOLDER if one is None else run(one, scope, budget) for one in self._messages], ""
        except OutOfBudgetError as error:
            return [], str(error)

    def _add(self, judgement: Judgement, position: int, result: Result, seconds: float, texts: list[Result], over: str) -> None:
        said = self._validations[position]
        if result.error or over:
            message = result.error or f"failed messageExpression: {over}"
            failure = Failure(message=message, position=position, seconds=seconds)
            (judgement.ignored if self._ignores else judgement.failures).append(failure)
            return
        if result.value is True:
            return
        message = _text(texts[position]) or (said.get("message") or "").strip()
        judgement.failures.append(
            Failure(
                message=message or f"failed expression: {(said.get('expression') or '').strip()}",
                reason=said.get("reason") or "Invalid",
                position=position,
                seconds=seconds,
            )
        )

    def _annotate(self, values: dict[str, Any], judgement: Judgement, patient: bool) -> None:
        if not self._annotations:
            return
        budget = Budget(expressions.POLICY_BUDGET, patient)
        scope = self._scope(dict(values), patient)
        for key, expression in self._annotations:
            result = run(expression, scope, budget)
            if result.error:
                if not self._ignores:
                    judgement.annotation_errors.append(result.error)
            elif isinstance(result.value, str) and result.value.strip():
                judgement.annotations.append((key, _cut(result.value.strip())))


def _text(result: Result) -> str:
    text = result.value.strip() if isinstance(result.value, str) else ""
    return "" if len(text.encode()) > MESSAGE_BYTES_MAX or "\n" in text else text


def _cut(text: str) -> str:
    raw = text.encode()
    return text if len(raw) <= ANNOTATION_BYTES_MAX else raw[:ANNOTATION_BYTES_MAX].decode(errors="ignore")
