"""What the calls of functions cost at run time (cel-go's interpreter/runtimecost.go, Kubernetes' pkg/cel/library/cost.go).

A cost is a number, or a function of the arguments and the result. What is not named here costs 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
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
    if kind is str or kind is list or kind is dict or kind is bytes:
        return len(value)
    if kind is OptionalValue:
        return size_of(value.value) if value.present else 1
    return len(value) if isinstance(value, Sized) else 1


def regex(text: int, pattern: int) -> int:
    """The cost of searching a text of one length for a pattern of another."""
    return math.ceil((1.0 + text) * STRING_FACTOR) * math.ceil(pattern * REGEX_FACTOR)


def equality(left: Any, right: Any) -> int:
    """The cost of `==` and `!=`: by the smaller side."""
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


# --- Kubernetes' libraries and cel-go's extensions -------------------------------------------------------------------------------

_ALLOCATION = 1 + LIST_BASE  # a call, and the list that it makes


def _traversed(value: Any) -> int:
    """The cost of walking over a value with all that it holds."""
    kind = type(value)
    if kind is str:
        return int(len(value.encode("utf-8", "surrogatepass")) * STRING_FACTOR)
    if kind is bytes:
        return int(len(value) * STRING_FACTOR)
    if isinstance(value, list):
        return sum(_traversed(item) for item in value)
    if isinstance(value, dict):
        return sum(_traversed(key) + _traversed(item) for key, item in value.items())
    return 1


def _sets(factor: int) -> Cost:
    return lambda arguments, _: 1 + len(arguments[0]) * len(arguments[1]) * factor


def _compared(position: int) -> Cost:
    """Sorting and telling apart: all with all."""

    def cost(arguments: tuple[Any, ...], _: Any) -> int:
        values = arguments[position]
        factor = 2.0 + (STRING_FACTOR if values and type(values[0]) in (str, bytes) else 0.0)
        return int(len(values) ** 2 * factor) + _ALLOCATION

    return cost


def _flattened(arguments: tuple[Any, ...], _: Any) -> int:
    return int(len(arguments[0]) * (arguments[1] if len(arguments) == 2 else 1)) + _ALLOCATION


def _selector(arguments: tuple[Any, ...], _: Any) -> int:
    return selector(size_of(arguments[1]))


def selector(length: int) -> int:
    """The cost of reading a selector of this length: a struct and a list for each two characters at worst."""
    return LIST_BASE + traversal(length) + math.ceil(math.ceil(length * 0.5) * float(LIST_BASE + STRUCT_BASE))


def _contained(masks: bool) -> Cost:
    def cost(arguments: tuple[Any, ...], _: Any) -> int:
        network = size_of(arguments[0])
        total = math.ceil((network + network) * STRING_FACTOR)
        if masks:
            total += traversal(network) + 1
        if type(arguments[1]) is str:
            total += traversal(len(arguments[1]))
        return total

    return cost


def _validated(arguments: tuple[Any, ...], _: Any) -> int:
    return regex(size_of(arguments[1]), arguments[0].pattern_size)


def _ip(arguments: tuple[Any, ...], _: Any) -> int:
    return traversal(len(arguments[0])) if type(arguments[0]) is str else 1


BY_OVERLOAD |= {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), lambda _, result: len(result) + _ALLOCATION),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flattened),
    "list_distinct": _compared(0),
}
for _name in ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes"):
    BY_OVERLOAD[f"list_{_name}_sort"] = _compared(0)
    BY_OVERLOAD[f"list_{_name}_sortByAssociatedKeys"] = _compared(1)

# by function, as Kubernetes has them; these come before the overloads
BY_FUNCTION: dict[str, Cost | int] = {
    "check": CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), lambda arguments, _: _traversed(arguments[0])),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _FIRST),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _of_first(2 * STRING_FACTOR)),
    "join": lambda _, result: math.ceil(size_of(result) * (2 * STRING_FACTOR)),
    **dict.fromkeys(("find", "findAll"), _matches),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _FIRST),
    "ip": _ip,
    "containsIP": _contained(False),
    "containsCIDR": _contained(True),
    "validate": _validated,
}


def cost_of(function: str, overload: str) -> Cost | int:
    """What a call costs; `overload` is "" where it is only known at run time."""
    found = BY_FUNCTION.get(function)
    if found is not None:
        return found
    return BY_OVERLOAD.get(overload, 1)
