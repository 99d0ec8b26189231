"""Functions of lists: Kubernetes' own (isSorted, sum, min, max, indexOf, …), cel-go's ext.Lists (since 1.34) and ext.Sets (since 1.29)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import CostExceededError, EvaluationError
from apiserver.cel.runtime_types import runtime_type
from apiserver.cel.standard import _int, _uint
from apiserver.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, Uint, contains, equal, hashable

_SETS_SINCE, _LISTS_SINCE, _INCLUDES_SINCE = 29, 34, 37
COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE = ("int", "uint", "double", "duration")
LENGTH_MAX = 1_000_000  # elements that one call may make
_NO_OVERLOAD = "no such overload"


def _ordered(left: Any, right: Any) -> int:
    """Minus one, zero or one."""
    kind, other = type(left), type(right)
    numbers = (int, Uint, float)
    if not (kind is other or (kind in numbers and other in numbers)) or kind not in (*numbers, bool, str, bytes, Timestamp, Duration):
        raise EvaluationError(_NO_OVERLOAD)
    if left != left or right != right:
        raise EvaluationError("NaN values cannot be ordered")
    return int(left > right) - int(left < right)


def is_sorted(values: list[Any]) -> bool:
    return all(_ordered(values[index - 1], values[index]) <= 0 for index in range(1, len(values)))


def _sum(name: str) -> Any:
    def total(values: list[Any]) -> Any:
        if name == "double":
            return sum(values, 0.0)
        if name == "duration":
            nanoseconds = 0
            for value in values:
                nanoseconds += value.nanoseconds
                if not INT_MIN <= nanoseconds <= INT_MAX:
                    raise EvaluationError("integer overflow")
            return Duration(nanoseconds)
        check = _int if name == "int" else _uint
        result = 0
        for value in values:
            result = int(check(result + int(value)))
        return check(result)

    return total


def _extreme(name: str, wanted: int) -> Any:
    def choose(values: list[Any]) -> Any:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        result = values[0]
        for value in values[1:]:
            if _ordered(result, value) == wanted:
                result = value
        return result

    return choose


def index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index, value in enumerate(values) if equal(value, wanted)), -1)


def last_index_of(values: list[Any], wanted: Any) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if equal(values[index], wanted)), -1)


def _includes(target: Any, wanted: Any) -> bool:
    return contains(target, wanted) if isinstance(target, list) else equal(target, wanted)


# --- ext.Lists -------------------------------------------------------------------------------------------------------------------


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return values[start:end]


def _flatten(values: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for value in values:
        if isinstance(value, list) and depth:
            flat += _flatten(value, depth - 1)
        else:
            flat.append(value)
        if len(flat) > LENGTH_MAX:
            raise CostExceededError
    return flat


def _range(count: int) -> list[int]:
    if count > LENGTH_MAX:
        raise CostExceededError
    return list(range(count))


def _distinct(values: list[Any]) -> list[Any]:
    seen: set[Any] = set()
    kept = []
    for value in values:
        key = hashable(value)
        if value != value or key not in seen:
            seen.add(key)
            kept.append(value)
    return kept


def _sort(values: list[Any]) -> list[Any]:
    return _sort_by_keys(values, values)


def _sort_by_keys(values: list[Any], keys: list[Any]) -> list[Any]:
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    first = runtime_type(keys[0])
    if first.name not in COMPARABLE:
        raise EvaluationError("list elements must be comparable")
    if any(runtime_type(key) != first for key in keys):
        raise EvaluationError("list elements must have the same type")
    return [values[index] for index in sorted(range(len(values)), key=keys.__getitem__)]


# --- ext.Sets --------------------------------------------------------------------------------------------------------------------


def _hashed(values: list[Any]) -> set[Any]:
    return {hashable(value) for value in values}


def _sets_contain(values: list[Any], part: list[Any]) -> bool:
    return _hashed(part) <= _hashed(values)


def _sets_equivalent(left: list[Any], right: list[Any]) -> bool:
    return _hashed(left) == _hashed(right)


def _sets_intersect(left: list[Any], right: list[Any]) -> bool:
    return not _hashed(left).isdisjoint(_hashed(right))


def _own() -> Iterator[Overload]:
    for name in COMPARABLE:
        yield overload(f"list_{name}_is_sorted_bool list({name}).isSorted(): bool", is_sorted)
        yield overload(f"list_{name}_max_{name} list({name}).max(): {name}", _extreme("max", -1))
        yield overload(f"list_{name}_min_{name} list({name}).min(): {name}", _extreme("min", 1))
    for name in _SUMMABLE:
        yield overload(f"list_{name}_sum_{name} list({name}).sum(): {name}", _sum(name))
    yield overload("list_a_index_of_int list(A).indexOf(A): int", index_of)
    yield overload("list_a_last_index_of_int list(A).lastIndexOf(A): int", last_index_of)


def overloads(minor: int) -> list[Overload]:
    """The functions that a version of Kubernetes has."""
    found = list(_own())
    if minor >= _INCLUDES_SINCE:
        found.append(overload("list_includes_dyn_dyn dyn.includes(dyn): bool", _includes))
    if minor >= _SETS_SINCE:
        found += [
            overload("list_sets_contains_list sets.contains(list(T), list(T)): bool", _sets_contain),
            overload("list_sets_equivalent_list sets.equivalent(list(T), list(T)): bool", _sets_equivalent),
            overload("list_sets_intersects_list sets.intersects(list(T), list(T)): bool", _sets_intersect),
        ]
    if minor >= _LISTS_SINCE:
        found += [
            overload("list_slice list(T).slice(int, int): list(T)", _slice),
            overload("list_flatten list(list(T)).flatten(): list(T)", _flatten),
            overload("list_flatten_int list(dyn).flatten(int): list(dyn)", _flatten),
            overload("lists_range lists.range(int): list(int)", _range),
            overload("list_reverse list(T).reverse(): list(T)", lambda values: values[::-1]),
            overload("list_distinct list(T).distinct(): list(T)", _distinct),
        ]
        for name in COMPARABLE:
            full = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}.get(name, name)
            found.append(overload(f"list_{full}_sort list({name}).sort(): list({name})", _sort))
            found.append(
                overload(
                    f"list_{full}_sortByAssociatedKeys list(T).@sortByAssociatedKeys(list({name})): list(T)", _sort_by_keys
                )
            )  # fmt: skip
    return found
