"""``CompiledRule``: a rule as programs, or what is wrong with it (apiextensions-apiserver ``schema/cel/compilation.go``)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver import cel
from apiserver.apiextensions import field_paths
from apiserver.apiextensions.nodes import RULES, Node
from apiserver.apiextensions.rules import durations
from apiserver.apiextensions.rules.declared import Declared

#: cost units of one run of one expression, about a tenth of a second of work
RUN_COST_MAX = 1_000_000
SELF, OLD_SELF = "self", "oldSelf"
_TYPE_NAME = "selfType1"
_NO_INSTANCE = "instantiation failed"
_SCALARS = {
    "bool": cel.BOOL,
    "int": cel.INT,
    "double": cel.DOUBLE,
    "string": cel.STRING,
    "bytes": cel.BYTES,
    "timestamp": cel.TIMESTAMP,
    "duration": cel.DURATION,
    "dyn": cel.DYN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledRule:
    """``program`` is None where there is a ``fault``, ``message`` where there is no messageExpression or a ``message_fault``.
    ``field_path``: the field below the value that a failure names, "" for the value itself."""

    said: Mapping[str, Any]
    program: cel.Program | None = None
    fault: str = ""
    uses_old_self: bool = False
    cost_max: int = 0
    message: cel.Program | None = None
    message_fault: str = ""
    message_cost_max: int = 0
    field_path: str = ""

    @property
    def text(self) -> str:
        """The rule as errors tell it."""
        return str(self.said.get("message") or self.said.get("rule") or "").strip()

    @property
    def message_text(self) -> str:
        """Why a failed rule failed."""
        return self.text if self.said.get("message") else f"failed rule: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one run: a value or an ``error``; ``over_limit``: it was stopped at RUN_COST_MAX."""

    value: Any = None
    error: str = ""
    cost: int = 0
    over_limit: bool = False


def evaluate(program: cel.Program, values: Mapping[str, Any], cost_max: int = RUN_COST_MAX) -> Outcome:
    budget = cel.Budget(cost_max)
    try:
        return Outcome(value=program.evaluate(values, budget), cost=budget.used)
    except cel.CostExceededError as error:
        return Outcome(error=str(error), cost=budget.used, over_limit=True)
    except cel.EvaluationError as error:
        return Outcome(error=str(error), cost=budget.used)


def cel_type(seen: Declared, name: str) -> cel.Type:
    """``name`` is the type's where it is an object."""
    if seen.name == "object":
        return cel.ObjectType(name, lambda: {field: cel_type(sub, f"{name}.{field}") for field, sub in seen.fields.items()})
    if seen.name == "list":
        assert seen.element is not None
        return cel.list_of(cel_type(seen.element, f"{name}.@idx"), list_type=seen.list_type, keys=seen.list_keys)
    if seen.name == "map":
        assert seen.element is not None
        return cel.map_of(cel.STRING, cel_type(seen.element, f"{name}.@elem"))
    return _SCALARS[seen.name]


def compile_rules(node: Node, seen: Declared, *, minor: int, estimates: bool = False) -> list[CompiledRule]:
    """The rules of one schema, in its order. ``estimates``: with what they cost at most, which takes longer to find out."""
    began = time.perf_counter()
    type_ = cel_type(seen, _TYPE_NAME)
    plain = cel.Environment({SELF: type_, OLD_SELF: type_}, minor=minor)
    optional = cel.Environment({SELF: type_, OLD_SELF: cel.optional_of(type_)}, minor=minor)
    compile_one = _Compiler(node, seen, estimates)
    found = [compile_one(said, optional if said.get("optionalOldSelf") else plain) for said in node.schema.get(RULES) or ()]
    durations.compilation.observe(time.perf_counter() - began)
    return found


class _Compiler:
    def __init__(self, node: Node, seen: Declared, estimates: bool) -> None:
        self._node = node
        self._seen = seen
        self._estimates = estimates

    def __call__(self, said: Mapping[str, Any], environment: cel.Environment) -> CompiledRule:
        source = said.get("rule") or ""
        if not source.strip():
            return CompiledRule(said=said)
        program, fault = _compile(environment, source)
        if program is None:
            return CompiledRule(said=said, fault=f"program {fault}" if fault.startswith(_NO_INSTANCE) else fault)
        if program.result_type != cel.BOOL:
            return CompiledRule(said=said, fault="cel expression must evaluate to a bool")
        message, message_fault = None, ""
        if said.get("messageExpression"):
            message, message_fault = _compile(environment, said["messageExpression"])
            if message is not None and message.result_type != cel.STRING:
                message, message_fault = None, "must evaluate to a string"
            message_fault = message_fault and f"messageExpression {message_fault}"
        return CompiledRule(
            said=said,
            program=program,
            uses_old_self=OLD_SELF in program.variables,
            cost_max=self._cost(program),
            message=message,
            message_fault=message_fault,
            message_cost_max=0 if message is None else self._cost(message),
            field_path=self._field_path(said.get("fieldPath") or ""),
        )

    def _cost(self, program: cel.Program) -> int:
        return program.estimate(self._size).max if self._estimates else 0

    def _size(self, path: Sequence[str], _: cel.Type) -> cel.SizeEstimate | None:
        """How big the value at a path in an expression is at most, None where that is not known. Old and new selves are alike."""
        found = self._seen.at(path[1:]) if path else None
        return None if found is None else cel.SizeEstimate(0, found.size_max)

    def _field_path(self, said: str) -> str:
        if not said:
            return ""
        try:
            return field_paths.resolve(said, self._node).text
        except field_paths.FieldPathError:  # a definition that says so is refused nowadays
            return ""


def _compile(environment: cel.Environment, source: str) -> tuple[cel.Program | None, str]:
    try:
        return environment.compile(source), ""
    except cel.ProgramError as error:
        return None, f"{_NO_INSTANCE}: {error}"
    except cel.CompileError as error:
        return None, f"compilation failed: {error}"
