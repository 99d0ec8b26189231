"""The rules of a whole object, run in the order of the schema (apiextensions-apiserver ``schema/cel/validation.go``).

    rules = rules_of(root, minor)                     # None: there are none
    errors = rules.validate(new, old, warn)

What did not change is forgiven as far as rules say nothing of former values: a rule that fails on a value that is as it was (or in a part
that cannot be told apart from before, whose surroundings are as they were) is only warned of. All rules of an object share one budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apiserver import cel, long_runs
from apiserver.apiextensions.correlation import Correlation
from apiserver.apiextensions.nodes import RULES, Node
from apiserver.apiextensions.rules import compiled, durations
from apiserver.apiextensions.rules.compiled import CompiledRule, Outcome
from apiserver.apiextensions.rules.declared import declared
from apiserver.apiextensions.values import NOWHERE
from apiserver.long_runs import LongRunError
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError, child
from apiserver.machinery.objects import Object

#: cost units of all rules of one object, about a second of work
OBJECT_BUDGET = 10_000_000
#: bytes of a text that a messageExpression makes; a longer one is not shown
MESSAGE_BYTES_MAX = 5 * 1024
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

Warn = Callable[[str], None]


@dataclass(slots=True)
class _Run:
    """``budget`` below zero: no further rule runs. Without ``patient`` it ends with LongRunError where it takes long."""

    warn: Warn
    budget: int
    patient: bool = True
    errors: list[FieldError] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.budget < 0

    def evaluate(self, program: cel.Program, values: dict[str, Any]) -> Outcome:
        """Raises LongRunError."""
        if self.patient:
            return compiled.evaluate(program, values)
        allowed = long_runs.INLINE_COST_MAX - (OBJECT_BUDGET - self.budget)
        outcome = compiled.evaluate(program, values, max(allowed, 0))
        if outcome.over_limit:
            raise LongRunError()
        return outcome

    def stop(self, error: FieldError) -> None:
        self.errors.append(error)
        self.budget = -1


@dataclass(frozen=True, slots=True)
class _Before:
    """What a value was: ``correlation`` beside its former self, None where that is not known; then ``surrounding`` is the nearest part
    around it of which it is known."""

    correlation: Correlation | None = None
    surrounding: Correlation | None = None

    def unchanged(self) -> bool:
        nearest = self.correlation if self.correlation is not None else self.surrounding
        return nearest is not None and nearest.equal()

    def field(self, name: str) -> _Before:
        if self.correlation is None:
            return self
        if self.surrounding is None and name in ("apiVersion", "kind"):
            return _NOTHING
        return _Before(self.correlation.field(name), self.correlation)

    def item(self, position: int) -> _Before:
        return self if self.correlation is None else _Before(self.correlation.item(position), self.correlation)


_NOTHING = _Before()


def _no_warning(text: str) -> None:
    """Nobody is there to be warned."""


class Rules:
    """Of one schema and all below it. Programs are made at the first value that they are for."""

    __slots__ = ("_compiled", "additional", "fields", "items", "minor", "node")

    def __init__(self, node: Node, minor: int) -> None:
        self.node = node
        self.minor = minor
        self._compiled: list[CompiledRule] | None = None
        self.items = None if node.items is None else rules_of(node.items, minor)
        self.additional = None if node.additional is None else rules_of(node.additional, minor)
        self.fields = {name: found for name, sub in node.properties.items() if (found := rules_of(sub, minor)) is not None}

    def validate(self, new: Object, old: Object | None, warn: Warn, *, patient: bool = True) -> list[FieldError]:
        """Of a whole object of this schema. Raises LongRunError where it takes long and is not ``patient``."""
        began = time.perf_counter()
        run = _Run(warn, OBJECT_BUDGET, patient)
        before = _NOTHING if old is None else _Before(Correlation(new, old, self.node))
        self._walk(run, "", new, old, before)
        durations.evaluation.observe(time.perf_counter() - began)
        return run.errors

    def validate_default(self, path: str, value: Any, budget: int) -> tuple[list[FieldError], int]:
        """Of a default, which has to hold where it stayed as it was and where it comes to be; and what is left of ``budget``, below zero
        where it is used up."""
        stayed = _Run(_no_warning, budget)
        self._walk(stayed, path, value, value, _NOTHING)
        if stayed.errors:
            return stayed.errors, stayed.budget
        came = _Run(_no_warning, budget)
        self._walk(came, path, value, None, _NOTHING)
        return came.errors, min(stayed.budget, came.budget)

    @property
    def compiled(self) -> list[CompiledRule]:
        if self._compiled is None:
            seen = declared(self.node, is_root=self.node.embedded)
            self._compiled = [] if seen is None else compiled.compile_rules(self.node, seen, minor=self.minor)
        return self._compiled

    def _walk(self, run: _Run, path: str, new: Any, old: Any, before: _Before) -> None:
        if new is None:
            return
        if self.node.schema.get(RULES):
            self._run(run, path, new, old, before)
        if run.over:
            return
        if isinstance(new, dict):
            self._walk_object(run, path, new, old if isinstance(old, dict) else {}, before)
        elif isinstance(new, list) and self.items is not None:
            known = before.correlation if before.correlation is not None else Correlation(new, old, self.node)
            for position, item in enumerate(new):
                was = known.item(position)
                at = field_errors.index(path, position)
                self.items._walk(run, at, item, None if was is None else was.old, before.item(position))
                if run.over:
                    return

    def _walk_object(self, run: _Run, path: str, new: Object, old: Object, before: _Before) -> None:
        if self.additional is not None:
            for name, value in new.items():
                self.additional._walk(run, field_errors.key(path, name), value, old.get(name), before.field(name))
                if run.over:
                    return
        for name, rules in self.fields.items():
            if name in new:
                rules._walk(run, child(path, name), new[name], old.get(name), before.field(name))
                if run.over:
                    return

    # -- the rules of one value ----------------------------------------------------------------------------------------------------

    def _run(self, run: _Run, path: str, new: Any, old: Any, before: _Before) -> None:
        rules = self.compiled
        here, type_ = path or NOWHERE, self.node.type
        if run.budget <= 0:
            run.stop(field_errors.invalid(here, type_, _OUT_OF_BUDGET))
            return
        known = optional = {"self": new}
        if any(rule.uses_old_self for rule in rules):
            optional = {"self": new, "oldSelf": cel.NONE if old is None else cel.OptionalValue(old)}
            if old is not None:
                known = {"self": new, "oldSelf": old}
        for rule in rules:
            self._run_one(run, rule, path, new, old is not None, known, optional, before)
            if run.over:
                return

    def _run_one(
        self,
        run: _Run,
        rule: CompiledRule,
        path: str,
        new: Any,
        has_old: bool,
        known: dict[str, Any],
        optional: dict[str, Any],
        before: _Before,
    ) -> None:
        here, type_ = path or NOWHERE, self.node.type
        if rule.fault:
            run.errors.append(field_errors.invalid(here, type_, f"rule compile error: {rule.fault}"))
            return
        is_optional = bool(rule.said.get("optionalOldSelf"))
        if rule.program is None or (rule.uses_old_self and not has_old and not is_optional):
            return
        outcome = run.evaluate(rule.program, optional if is_optional else known)
        if outcome.cost > run.budget:
            run.stop(field_errors.invalid(here, type_, _OUT_OF_BUDGET))
            return
        run.budget -= outcome.cost
        if outcome.over_limit:
            why = f"'{outcome.error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.text}"
            run.stop(field_errors.invalid(here, type_, why))
        elif outcome.error:
            run.errors.append(field_errors.invalid(here, type_, _wording(outcome.error, rule)))
        elif outcome.value is not True:
            self._failed(run, rule, path, new, known, before)

    def _failed(self, run: _Run, rule: CompiledRule, path: str, new: Any, known: dict[str, Any], before: _Before) -> None:
        at = (child(path, rule.field_path) if rule.field_path else path) or NOWHERE
        forgiven = not rule.uses_old_self and before.unchanged()

        def add(error: FieldError) -> None:
            if forgiven:
                run.warn(error.text())
            else:
                run.errors.append(error)

        detail = ""
        if rule.message is not None:
            outcome, source = run.evaluate(rule.message, known), rule.said["messageExpression"]
            stop = ""
            if outcome.cost > run.budget:
                stop = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
            elif outcome.over_limit:
                stop = f'no further validation rules will be run due to call cost exceeds limit for messageExpression: "{source}"'
            if stop:
                add(field_errors.invalid(at, self.node.type, stop))
                run.budget = -1
                return
            run.budget -= outcome.cost
            detail = _message(outcome)
        add(_error(at, new, self.node.type, detail or rule.message_text, rule.said.get("reason")))


def rules_of(node: Node, minor: int) -> Rules | None:
    """None where there is no rule, here or below. ``minor``: of the Kubernetes version whose library the rules have."""
    return Rules(node, minor) if node.rules_below and declared(node, is_root=node.embedded) is not None else None


def _wording(error: str, rule: CompiledRule) -> str:
    if error.startswith("no such overload"):
        return f"'{error}': call arguments did not match a supported operator, function or macro signature for rule: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _message(outcome: Outcome) -> str:
    """What a messageExpression gives, "" where the message that stands beside it is to be used."""
    if outcome.error or not isinstance(outcome.value, str):
        return ""
    text = outcome.value.strip()
    return "" if len(text.encode()) > MESSAGE_BYTES_MAX or "\n" in text else text


def _error(path: str, value: Any, type_: str, detail: str, reason: str | None) -> FieldError:
    is_whole = type_ in ("object", "array")
    if reason == "FieldValueForbidden":
        return field_errors.forbidden(path, detail)
    if reason == "FieldValueRequired":
        return field_errors.required(path, detail)
    if reason == "FieldValueDuplicate":
        return field_errors.duplicate_unshown(path) if is_whole else field_errors.duplicate(path, value)
    return field_errors.invalid_unshown(path, detail) if is_whole else field_errors.invalid(path, value, detail)
