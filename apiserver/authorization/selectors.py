"""Selectors as attributes of a request: a list of only some objects may be allowed where a list of all is not (KEP-4601).

Requirements narrow what is asked for, and are joined by "and"; one that is not understood may therefore be left out, which asks for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiserver.machinery import field_errors, fields, labels, names
from apiserver.machinery.field_errors import FieldError

#: verbs whose selectors count
VERBS = frozenset(("list", "watch", "deletecollection"))
#: characters of a selector that is looked at; a longer one narrows nothing
SELECTOR_LENGTH_MAX = 64 * 1024

_LABEL_OPERATORS = {
    labels.Operator.EQUALS: "In",
    labels.Operator.DOUBLE_EQUALS: "In",
    labels.Operator.IN: "In",
    labels.Operator.NOT_EQUALS: "NotIn",
    labels.Operator.NOT_IN: "NotIn",
    labels.Operator.EXISTS: "Exists",
    labels.Operator.DOES_NOT_EXIST: "DoesNotExist",
}


@dataclass(frozen=True, slots=True)
class SelectorRequirement:
    """``operator``: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"key": self.key, "operator": self.operator}
        if self.values:
            out["values"] = list(self.values)
        return out


Requirements = tuple[SelectorRequirement, ...]


def field_requirements(text: str) -> Requirements:
    """Of a query's ``fieldSelector``; none where it cannot be parsed. Raises nothing."""
    try:
        return parse_fields(text) if len(text) <= SELECTOR_LENGTH_MAX else ()
    except fields.SelectorError:
        return ()


def label_requirements(text: str) -> Requirements:
    """Of a query's ``labelSelector``; none where it cannot be parsed."""
    try:
        return parse_labels(text) if len(text) <= SELECTOR_LENGTH_MAX else ()
    except labels.SelectorError:
        return ()


def parse_fields(text: str) -> Requirements:
    """Raises fields.SelectorError."""
    terms = fields.parse(text).terms
    return tuple(SelectorRequirement(term.field, "In" if term.equal else "NotIn", (term.value,)) for term in terms)


def parse_labels(text: str) -> Requirements:
    """Raises labels.SelectorError."""
    found = labels.parse(text).requirements
    return tuple(
        SelectorRequirement(each.key, _LABEL_OPERATORS[each.operator], tuple(each.values))
        for each in found
        if each.operator in _LABEL_OPERATORS
    )


def of_review(attributes: dict[str, Any]) -> tuple[Requirements, Requirements, list[str]]:
    """(field requirements, label requirements, what is wrong with them) of ``resourceAttributes`` in a review that passed ``errors_of``."""
    problems: list[str] = []
    found_fields: list[SelectorRequirement] = []
    found_labels: list[SelectorRequirement] = []
    selector = attributes.get("fieldSelector") or {}
    if selector.get("rawSelector"):
        try:
            found_fields += parse_fields(str(selector["rawSelector"]))
        except fields.SelectorError:
            problems.append("spec.resourceAttributes.fieldSelector ignored due to parse error")
    for requirement in selector.get("requirements") or ():
        made = _requirement(requirement)
        if made.operator not in ("In", "NotIn"):
            problems.append(f'fieldSelector.requirements: "{made.operator}" is not a valid field selector operator')
        elif len(made.values) != 1:
            problems.append("fieldSelectors do not yet support multiple values")
        else:
            found_fields.append(made)
    selector = attributes.get("labelSelector") or {}
    if selector.get("rawSelector"):
        try:
            found_labels += parse_labels(str(selector["rawSelector"]))
        except labels.SelectorError:
            problems.append("spec.resourceAttributes.labelSelector ignored due to parse error")
    for requirement in selector.get("requirements") or ():
        made = _requirement(requirement)
        if made.operator in ("In", "NotIn", "Exists", "DoesNotExist"):
            found_labels.append(made)
        else:
            problems.append(f'labelSelector.requirements: "{made.operator}" is not a valid label selector operator')
    return tuple(found_fields), tuple(found_labels), problems


def _requirement(requirement: dict[str, Any]) -> SelectorRequirement:
    values = tuple(str(value) for value in requirement.get("values") or ())
    return SelectorRequirement(str(requirement.get("key") or ""), str(requirement.get("operator") or ""), values)


def errors_of(attributes: dict[str, Any], path: str) -> list[FieldError]:
    """What is wrong with the selectors of a review's ``resourceAttributes``."""
    found: list[FieldError] = []
    for name in ("fieldSelector", "labelSelector"):
        selector = attributes.get(name)
        if selector is None:
            continue
        at = f"{path}.{name}"
        raw, requirements = selector.get("rawSelector") or "", selector.get("requirements") or []
        if raw and requirements:
            why = "may not specified at the same time as requirements"
            found.append(field_errors.invalid(f"{at}.rawSelector", raw, why))
        if not raw and not requirements:
            why = f"when {at} is specified, requirements or rawSelector is required"
            found.append(field_errors.required(f"{at}.requirements", why))
        for position, requirement in enumerate(requirements):
            found += _requirement_errors(requirement or {}, f"{at}.requirements[{position}]", name == "labelSelector")
    return found


def _requirement_errors(requirement: dict[str, Any], path: str, is_label: bool) -> list[FieldError]:
    found: list[FieldError] = []
    key, operator, values = requirement.get("key") or "", requirement.get("operator") or "", requirement.get("values") or []
    if operator in ("In", "NotIn") and not values:
        found.append(field_errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in ("Exists", "DoesNotExist") and values:
        found.append(field_errors.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    if is_label:
        found += [field_errors.invalid(f"{path}.key", key, why) for why in names.qualified_name(key)]
        for index, value in enumerate(values):
            found += [field_errors.invalid(f"{path}.values[{index}]", value, why) for why in names.label_value(str(value))]
    elif not key:
        found.insert(0, field_errors.required(f"{path}.key", "must be specified"))
    return found
