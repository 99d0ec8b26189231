"""What the calls of functions cost at run time (cel-go's interpreter/runtimecost.go, Kubernetes' pkg/cel/library/cost.go).

A cost is a number, or a function of the arguments and the result. What is not named here costs 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from apiserver.cel.values import OptionalValue

STRING_FACTOR = 0.1  # traversing ten characters costs one
REGEX_FACTOR = 0.25  # four characters of a pattern are about one expression
LIST_BASE, MAP_BASE, STRUCT_BASE = 10, 30, 40
CHECK = 350_000  # one question to the authorizer: two fit into the budget of a call

Cost = Callable[[tuple[Any, ...], Any], int]


def traversal(size: int) -> int:
    """The cost of walking over so many characters."""
    return math.ceil(size * STRING_FACTOR)


def size_of(value: Any) -> int:
    """The size that costs are told from: characters, bytes, elements, entries; 1 for what has none."""
    kind = type(value)
    if kind is str or kind is list or kind is dict or kind is bytes or isinstance(value, (list, dict)):
        return len(value)
    if kind is OptionalValue and value.present:
        return size_of(value.value)
    return 1


def regex(text: int, pattern: int) -> int:
    """The cost of searching a text of one length for a pattern of another."""
    return math.ceil((1.0 + text) * STRING_FACTOR) * math.ceil(pattern * REGEX_FACTOR)


def equality(left: Any, right: Any) -> int:
    """The cost of `==`: by the smaller side."""
    return math.ceil(min(size_of(left), size_of(right)) * STRING_FACTOR)


def _of_first(factor: float) -> Cost:
    return lambda arguments, _: math.ceil(size_of(arguments[0]) * factor)


def _smaller(arguments: tuple[Any, ...], _: Any) -> int:
    return equality(arguments[0], arguments[1])


def _sum(arguments: tuple[Any, ...], _: Any) -> int:
    return math.ceil((size_of(arguments[0]) + size_of(arguments[1])) * STRING_FACTOR)


def _matches(arguments: tuple[Any, ...], _: Any) -> int:
    return regex(size_of(arguments[0]), size_of(arguments[1]))


def _contains(arguments: tuple[Any, ...], _: Any) -> int:
    return traversal(size_of(arguments[0])) * traversal(size_of(arguments[1]))


_FIRST = _of_first(STRING_FACTOR)

# by overload, as cel-go has them
BY_OVERLOAD: dict[str, Cost] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"), _FIRST),
    **dict.fromkeys(("strings_quote", "string_format"), _FIRST),
    "in_list": lambda arguments, _: size_of(arguments[1]),
    **dict.fromkeys(
        [f"{name}_{kind}" for name in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")]
        + ["equals", "not_equals"],
        _smaller,
    ),
    "add_string": _sum,
    "add_bytes": _sum,
    "matches_string": _matches,
    "contains_string": _contains,
}  # fmt: skip
# by function, as Kubernetes has them; these come first
BY_FUNCTION: dict[str, Cost | int] = {}


def cost_of(function: str, overload: str) -> Cost | int:
    """What a call costs; `overload` is "" where it is only known at run time."""
    found = BY_FUNCTION.get(function)
    if found is not None:
        return found
    return BY_OVERLOAD.get(overload, 1)
