"""Expressions in CEL that look at a request: match conditions of webhooks, everything in admission policies (apiserver
``admission/plugin/cel``).

    environment = request_environment(minor, params=True, authorizer=True)
    conditions = [compile_expression(environment, source, cel.BOOL) for source in …]       # once for a stored configuration
    values = request_values(attributes, …)                                                 # once for a request
    result = run(conditions[0], values, budget)                                            # a value, or why there is none

``object`` and ``oldObject`` are seen as they stand in JSON, without types. A fault of an expression is kept beside it and becomes an error
of every run: what to do about it is said by the configuration's failure policy.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver import cel
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.questions import UserQuestions
from apiserver.admission.rule_matching import kind_of
from apiserver.cel import types as cel_types
from apiserver.long_runs import INLINE_COST_MAX, LongRunError
from apiserver.machinery.objects import Object
from apiserver.resources.resource_info import ResourceInfo

#: cost units of all expressions of one kind for one policy's binding (validations, audit annotations, one mutation); of match conditions
POLICY_BUDGET = 10_000_000
CONDITIONS_BUDGET = 2_500_000
#: of one run of one expression, about a tenth of a second of work
RUN_COST_MAX = 1_000_000
#: what a run takes that costs nothing, in the same units: many small ones are long, too
_RUN_COST = 20
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
AUTHORIZER, REQUEST_RESOURCE_AUTHORIZER = "authorizer", "authorizer.requestResource"

_TEXTS = cel.list_of(cel.STRING)
_TEXT_MAP = cel.map_of(cel.STRING, cel.STRING)
_KIND = cel.ObjectType("kubernetes.GroupVersionKind", dict.fromkeys(("group", "version", "kind"), cel.STRING))
_RESOURCE = cel.ObjectType("kubernetes.GroupVersionResource", dict.fromkeys(("group", "version", "resource"), cel.STRING))
_USER = cel.ObjectType(
    "kubernetes.UserInfo", {"username": cel.STRING, "uid": cel.STRING, "groups": _TEXTS, "extra": cel.map_of(cel.STRING, _TEXTS)}
)
_REQUEST = cel.ObjectType(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": cel.STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": cel.STRING,
        "name": cel.STRING,
        "namespace": cel.STRING,
        "operation": cel.STRING,
        "userInfo": _USER,
        "dryRun": cel.BOOL,
        "options": cel.DYN,
    },
)
_NAMESPACE = cel.ObjectType(
    "kubernetes.Namespace",
    {
        "metadata": cel.ObjectType(
            "kubernetes.NamespaceMetadata",
            {
                **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), cel.STRING),
                **dict.fromkeys(("labels", "annotations"), _TEXT_MAP),
                **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), cel.TIMESTAMP),
                **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), cel.INT),
                "finalizers": _TEXTS,
            },
        ),
        "spec": cel.ObjectType("kubernetes.NamespaceSpec", {"finalizers": _TEXTS}),
        "status": cel.ObjectType(
            "kubernetes.NamespaceStatus",
            {
                "phase": cel.STRING,
                "conditions": cel.list_of(
                    cel.ObjectType(
                        "kubernetes.NamespaceCondition",
                        {
                            **dict.fromkeys(("status", "type", "message", "reason"), cel.STRING),
                            "lastTransitionTime": cel.TIMESTAMP,
                        },
                    )
                ),
            },
        ),
    },
)
#: what policies see of a namespace's metadata
_NAMESPACE_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)


class OutOfBudgetError(Exception):
    """No further expression of this request is run."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


@dataclass(slots=True)
class Budget:
    """Cost units that are left. Without ``patient`` what takes long ends with LongRunError."""

    left: int
    patient: bool = True
    spent: int = 0

    def spend(self, cost: int) -> None:
        """Raises OutOfBudgetError and LongRunError."""
        self.spent += cost + _RUN_COST
        if not self.patient and self.spent > INLINE_COST_MAX:
            raise LongRunError()
        if cost > self.left:
            self.left = -1
            raise OutOfBudgetError()
        self.left -= cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """``program`` is None where the text is none, for a reason (``fault``)."""

    source: str
    program: cel.Program | None = None
    fault: str = ""

    @property
    def type(self) -> cel.Type:
        """Of its values; of a faulty one anything may be said."""
        return cel.DYN if self.program is None else self.program.result_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Of one run; ``error`` is "" where there is a value."""

    value: Any = None
    error: str = ""


@functools.lru_cache(maxsize=64)
def request_environment(minor: int, *, params: bool, authorizer: bool) -> cel.Environment:
    """What a request's expressions may name."""
    variables = {"object": cel.DYN, "oldObject": cel.DYN, "namespaceObject": _NAMESPACE, "request": _REQUEST}
    if params:
        variables["params"] = cel.DYN
    if authorizer:
        variables[AUTHORIZER] = cel.AUTHORIZER
        variables[REQUEST_RESOURCE_AUTHORIZER] = cel_types.RESOURCE_CHECK
    return cel.Environment(variables, minor=minor)


def compile_expression(environment: cel.Environment, source: str, *allowed: cel.Type) -> Expression:
    """``allowed``: the types of which a value may be; none: any."""
    try:
        program = environment.compile(source)
    except cel.ProgramError as error:
        return Expression(source=source, fault=f"program instantiation failed: {error}")
    except cel.CompileError as error:
        return Expression(source=source, fault=f"compilation failed: {error}")
    found = program.result_type
    if allowed and found not in allowed:
        if len(allowed) == 1:
            return Expression(source=source, fault=f"must evaluate to {allowed[0]} but got {found}")
        names = " ".join("null_type" if one == cel.NULL else str(one) for one in allowed)
        return Expression(source=source, fault=f"must evaluate to one of [{names}] but got {found}")
    return Expression(source=source, program=program)


class Variables(dict[str, Any]):
    """``variables`` of a policy: each is computed when an expression first asks for it, and then kept. ``cost`` is what they took since
    it was last set to 0."""

    def __init__(self, expressions: Mapping[str, Expression], values: Mapping[str, Any], *, patient: bool = True) -> None:
        super().__init__()
        self._patient = patient
        self._expressions = expressions
        self._values = values
        self._errors: dict[str, str] = {}
        self.cost = 0

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __iter__(self) -> Iterator[str]:
        return iter(self._expressions)

    def __len__(self) -> int:
        return len(self._expressions)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self._expressions else default

    def __missing__(self, name: str) -> Any:
        expression = self._expressions[name]
        error = self._errors.get(name, "")
        if not error and expression.program is None:
            error = f'composited variable "{name}" fails to compile: {expression.fault}'
        if not error:
            ran = run_program(expression.program, self._values, self._patient)
            self.cost += ran.cost
            if not ran.error:
                self[name] = ran.value
                return ran.value
            error = f'composited variable "{name}" fails to evaluate: {ran.error}'
        self._errors[name] = error
        raise cel.EvaluationError(error)


#: what most expressions answer
_TRUE = Result(value=True)
#: of a policy that has none
NO_VARIABLES = Variables({}, {})


@dataclass(slots=True)
class Ran:
    value: Any = None
    error: str = ""
    cost: int = 0


def run_program(program: cel.Program | None, values: Mapping[str, Any], patient: bool) -> Ran:
    """One run, stopped at RUN_COST_MAX whatever is left of the request's budget. Raises LongRunError."""
    assert program is not None
    budget = cel.Budget(RUN_COST_MAX if patient else INLINE_COST_MAX)
    try:
        value = program.evaluate(values, budget)
    except cel.CostExceededError as error:
        if not patient:
            raise LongRunError() from error
        return Ran(None, str(error), budget.used)
    except cel.EvaluationError as error:
        return Ran(None, str(error), budget.used)
    return Ran(value, "", budget.used)


def run(expression: Expression, values: Mapping[str, Any], budget: Budget) -> Result:
    """Raises OutOfBudgetError and LongRunError."""
    if expression.program is None:
        return Result(error=f"compilation error: {expression.fault}")
    ran = run_program(expression.program, values, budget.patient)
    variables = values.get("variables")
    if isinstance(variables, Variables) and variables.cost:
        cost, variables.cost = variables.cost, 0
        budget.spend(cost)
    budget.spend(ran.cost)
    if ran.error:
        return Result(error=f"expression '{expression.source}' resulted in error: {ran.error}")
    return _TRUE if ran.value is True else Result(value=ran.value)


# --- what a request is to expressions ---------------------------------------------------------------------------------------------------


def request_values(
    attributes: AdmissionAttributes,
    *,
    wanted: ResourceInfo | None = None,
    obj: Object | None = None,
    old: Object | None = None,
    namespace: Object | None = None,
    params: Object | None = None,
    authorizer: UserQuestions | None = None,
) -> dict[str, Any]:
    """``wanted``: the resource as the rule that matched names it, where that is not the request's own; ``obj`` and ``old`` are of its
    version. ``authorizer``: of expressions that may ask what the user may do."""
    values: dict[str, Any] = {
        "object": obj,
        "oldObject": old,
        "request": _request(attributes, attributes.info if wanted is None else wanted),
        "namespaceObject": None if namespace is None else _namespace(namespace),
        "params": params,
    }
    if authorizer is not None:
        values[AUTHORIZER] = authorizer.authorizer
        values[REQUEST_RESOURCE_AUTHORIZER] = authorizer.request_resource
    return values


def _request(attributes: AdmissionAttributes, wanted: ResourceInfo) -> dict[str, Any]:
    """An AdmissionRequest in JSON: what is empty and may be left out is."""
    info, user = attributes.info, attributes.user
    request: dict[str, Any] = {
        "uid": "",
        "kind": _named("kind", kind_of(wanted, attributes.subresource)),
        "resource": _named("resource", (wanted.group, wanted.version, wanted.resource)),
        "requestKind": _named("kind", kind_of(info, attributes.subresource)),
        "requestResource": _named("resource", (info.group, info.version, info.resource)),
        "operation": attributes.operation.value,
        "userInfo": _present({"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": _lists(user.extra)}),
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }
    request |= _present(
        {
            "subResource": attributes.subresource,
            "requestSubResource": attributes.subresource,
            "name": attributes.name,
            "namespace": attributes.namespace,
        }
    )
    return request


def _named(what: str, parts: Sequence[str]) -> dict[str, str]:
    return dict(zip(("group", "version", what), parts, strict=True))


def _lists(extra: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: list(texts) for name, texts in extra.items()}


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _namespace(namespace: Object) -> Object:
    metadata = namespace.get("metadata") or {}
    seen = {name: metadata[name] for name in _NAMESPACE_METADATA if metadata.get(name) is not None}
    return {"metadata": seen, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}
