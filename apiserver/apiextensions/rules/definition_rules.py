"""What is wrong with the rules of a definition: texts that do not compile, that look at what cannot be known, that may cost too much
(apiextensions-apiserver ``validation.go``, ``cel_validation.go``).

A rule costs what one run costs at most, times how often its schema can stand in one object: the product of the bounds of the lists and
maps around it, or, where one of them has none, as often as the shortest such value fits into a request.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apiserver.apiextensions import go_form
from apiserver.apiextensions.nodes import EMBEDDED, RULES, Node, Schema
from apiserver.apiextensions.rules import compiled
from apiserver.apiextensions.rules.compiled import CompiledRule
from apiserver.apiextensions.rules.declared import REQUEST_BYTES_MAX, Declared, declared
from apiserver.machinery import field_errors
from apiserver.machinery.field_errors import FieldError, child, forbidden, internal, invalid

#: of one rule, of all rules of a version
RULE_COST_MAX = 10_000_000
SCHEMA_COST_MAX = 100_000_000
_UINT64_MAX = 2**64 - 1
_EXPENSIVE_SHOWN_MAX = 4
_ADVICE = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"


@dataclass(slots=True, kw_only=True)
class RuleCosts:
    """Of one version. ``forgives_each``: a single rule may cost what it likes, since the schema is as it was."""

    minor: int
    forgives_each: bool = False
    total: int = 0
    expensive: list[tuple[int, str]] = field(default_factory=list)

    def observe(self, path: str, cost: int) -> None:
        self.total = min(self.total + cost, _UINT64_MAX)
        if cost >= SCHEMA_COST_MAX // 100:
            self.expensive = sorted([*self.expensive, (cost, path)], key=lambda one: -one[0])[:_EXPENSIVE_SHOWN_MAX]

    def errors(self, path: str) -> list[FieldError]:
        """Of all rules together; ``path`` is the schema's."""
        if self.total <= SCHEMA_COST_MAX:
            return []
        shared = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        found = [forbidden(at, shared) for _, at in self.expensive]
        return [*found, forbidden(path, _exceeds(what, self.total, SCHEMA_COST_MAX))]


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePlace:
    """Where a schema stands: ``cardinality``: how often it can be there in an object, None where nothing bounds it."""

    costs: RuleCosts
    cardinality: int | None = 1
    is_root: bool = False

    def below(self, schema: Schema) -> RulePlace:
        """For what is in ``schema``, which stands here."""
        factor = _elements_max(schema)
        cardinality = None if self.cardinality is None or factor is None else min(self.cardinality * factor, _UINT64_MAX)
        return RulePlace(costs=self.costs, cardinality=cardinality)


def _elements_max(schema: Schema) -> int | None:
    type_ = schema.get("type")
    if type_ == "array":
        limit = schema.get("maxItems")
    elif type_ == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    else:
        return 1
    return None if limit is None else max(int(limit), 0)


def check(schema: Schema, path: str, place: RulePlace, uncorrelated: str | None) -> list[FieldError]:
    """The errors of the rules of one schema. ``uncorrelated``: the path of the list around it whose items have no former selves."""
    node = Node(schema)
    at = child(path, RULES)
    seen = declared(node, is_root=place.is_root or bool(schema.get(EMBEDDED)))
    if seen is None:
        why = "failed to construct type information for x-kubernetes-validations rules"
        return [internal(at, f"internal error: {why}: unable to convert structural schema to CEL declarations")]
    errors: list[FieldError] = []
    for i, rule in enumerate(compiled.compile_rules(node, seen, minor=place.costs.minor, estimates=True)):
        errors += _check(rule, seen, field_errors.index(at, i), place, uncorrelated)
    return errors


def _check(rule: CompiledRule, seen: Declared, path: str, place: RulePlace, uncorrelated: str | None) -> list[FieldError]:
    errors: list[FieldError] = []
    costs, said, at = place.costs, rule.said, child(path, "rule")
    cardinality = REQUEST_BYTES_MAX // (seen.json_bytes_min + 1) if place.cardinality is None else place.cardinality
    cost = min(rule.cost_max * cardinality, _UINT64_MAX)
    if cost > RULE_COST_MAX and not costs.forgives_each:
        errors.append(forbidden(at, _exceeds("estimated rule cost", cost, RULE_COST_MAX)))
    costs.observe(at, cost)
    if rule.fault:
        errors.append(invalid(at, go_form.rule(said), rule.fault))
    of_message = child(path, "messageExpression")
    if rule.message_fault:
        errors.append(invalid(of_message, go_form.rule(said), rule.message_fault))
    elif rule.message is not None:
        if rule.message_cost_max > RULE_COST_MAX and not costs.forgives_each:
            errors.append(forbidden(of_message, _exceeds("estimated messageExpression cost", rule.message_cost_max, RULE_COST_MAX)))
        costs.observe(of_message, rule.message_cost_max)
    if rule.uses_old_self:
        if uncorrelated is not None:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            errors.append(invalid(at, said.get("rule") or "", why))
    elif said.get("optionalOldSelf") is not None:
        why = "may not be set if oldSelf is not used in rule"
        errors.append(invalid(child(path, "optionalOldSelf"), said["optionalOldSelf"], why))
    return errors


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        words = "more than 100x"
    elif factor < 1.5:
        words = f"{factor:f}x"
    else:
        words = f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {words} {_ADVICE}"
