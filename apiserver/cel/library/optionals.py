"""Optional values (cel-go's optional types, first version), and the map insertion behind `transformMap`."""

from __future__ import annotations

from typing import Any

from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.standard import has_key
from apiserver.cel.values import NONE, Duration, OptionalValue

SINCE = 28
_TWO_VARIABLES_SINCE, _LISTS_SINCE = 32, 34


def _value(of: OptionalValue) -> Any:
    if not of.present:
        raise EvaluationError("optional.none() dereference")
    return of.value


def _is_zero(value: Any) -> bool:
    if value is None or isinstance(value, Duration):
        return value is None or value.nanoseconds == 0
    return isinstance(value, (bool, int, float, str, bytes, list, dict)) and not value


def _of_non_zero(value: Any) -> OptionalValue:
    return NONE if _is_zero(value) else OptionalValue(value)


def _unwrap(values: list[OptionalValue]) -> list[Any]:
    return [value.value for value in values if value.present]


def _insert(target: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """A map with one more entry; the accumulator of a loop belongs to the loop alone, so it is changed in place."""
    if has_key(target, key):
        from apiserver.cel.access import shown

        raise EvaluationError(f"insert failed: key {shown(key)} already exists")
    target[key] = value
    return target


def _insert_all(target: dict[Any, Any], added: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in added.items():
        _insert(target, key, value)
    return target


def overloads(minor: int) -> list[Overload]:
    """The functions of optional values."""
    found: list[Overload] = []
    if minor >= SINCE:
        found += [
            overload("optional_of optional.of(V): optional(V)", OptionalValue),
            overload("optional_ofNonZeroValue optional.ofNonZeroValue(V): optional(V)", _of_non_zero),
            overload("optional_none optional.none(): optional(V)", lambda: NONE),
            overload("optional_value optional(V).value(): V", _value),
            overload("optional_hasValue optional(V).hasValue(): bool", lambda of: of.present),
            overload("optional_or_optional optional(V).or(optional(V)): optional(V)"),
            overload("optional_orValue_value optional(V).orValue(V): V"),
            overload("select_optional_field _?._(dyn, string): optional(V)"),
            overload("list_optindex_optional_int _[?_](list(V), int): optional(V)"),
            overload("optional_list_optindex_optional_int _[?_](optional(list(V)), int): optional(V)"),
            overload("map_optindex_optional_value _[?_](map(K, V), K): optional(V)"),
            overload("optional_map_optindex_optional_value _[?_](optional(map(K, V)), K): optional(V)"),
            overload("optional_list_index_int _[_](optional(list(V)), int): optional(V)"),
            overload("optional_map_index_value _[_](optional(map(K, V)), K): optional(V)"),
        ]
    if minor >= _LISTS_SINCE:
        found += [
            overload("list_first list(V).first(): optional(V)", lambda values: OptionalValue(values[0]) if values else NONE),
            overload("list_last list(V).last(): optional(V)", lambda values: OptionalValue(values[-1]) if values else NONE),
            overload("optional_unwrap optional.unwrap(list(optional(V))): list(V)", _unwrap),
            overload("optional_unwrapOpt list(optional(V)).unwrapOpt(): list(V)", _unwrap),
        ]
    if minor >= _TWO_VARIABLES_SINCE:
        found += [
            overload("@mapInsert_map_key_value cel.@mapInsert(map(K, V), K, V): map(K, V)", _insert),
            overload("@mapInsert_map_map cel.@mapInsert(map(K, V), map(K, V)): map(K, V)", _insert_all),
        ]
    return found
