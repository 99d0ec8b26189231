"""Values at run time: plain JSON and these classes for what JSON does not have.

bool, int, float, str, bytes, list, dict and None are themselves. `Uint` is an unsigned integer, `Timestamp` and `Duration` count
nanoseconds, `OptionalValue` may hold nothing, a type is its `types.Type`. `SetList` and `MapList` are lists whose schema says that
order does not matter (`x-kubernetes-list-type`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
NANOSECONDS = 1_000_000_000
TIMESTAMP_MIN = -62_135_596_800 * NANOSECONDS  # 0001-01-01T00:00:00Z
TIMESTAMP_MAX = 253_402_300_799 * NANOSECONDS + NANOSECONDS - 1  # the last nanosecond of the year 9999


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment: nanoseconds since 1970 in UTC, and how far from UTC it was written (seconds; only its text shows that)."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in nanoseconds."""

    nanoseconds: int


class OptionalValue:
    """A value, or the absence of one (`NONE`)."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any, present: bool = True) -> None:
        self.value = value
        self.present = present

    def __repr__(self) -> str:
        return f"optional.of({self.value!r})" if self.present else "optional.none()"


NONE = OptionalValue(None, False)


class SetList(list[Any]):
    """A list of `x-kubernetes-list-type: set`: equal in any order, and addition leaves out what is there."""

    __slots__ = ()


class MapList(list[Any]):
    """A list of `x-kubernetes-list-type: map`: equal in any order, and addition replaces the elements with the same keys."""

    __slots__ = ("keys",)

    def __init__(self, elements: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(elements)
        self.keys = keys

    def key_of(self, element: Any) -> Hashable:
        """The key of one element, or None where it has none."""
        if not isinstance(element, dict):
            return None
        return tuple(_hashable(element.get(key)) for key in self.keys)


def _hashable(value: Any) -> Hashable:
    """A stand-in for a value in a Python set: equal values have equal stand-ins, and true is not 1."""
    kind = type(value)
    if kind is bool:
        return ("bool", value)
    if kind is dict:
        return ("map", frozenset((_hashable(key), _hashable(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(_hashable(item) for item in value))
    if kind is OptionalValue:
        return ("optional", value.present, _hashable(value.value))
    assert isinstance(value, Hashable), f"a CEL value of {kind}"
    return value


hashable = _hashable


def equal(left: Any, right: Any) -> bool:
    """CEL's `==`: numbers by value whatever their type, everything else only with its own kind."""
    kind = type(left)
    if kind is str or kind is bool or left is None:
        return kind is type(right) and bool(left == right)
    if kind is int or kind is float or kind is Uint:
        other = type(right)
        if kind is float or other is float:
            return (other is int or other is float or other is Uint) and float(left) == float(right)
        return (other is int or other is Uint) and bool(left == right)
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right)
    if isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(right):
            return False
        for key, value in left.items():  # noqa: SIM110 - a loop takes half the time of all()
            if key not in right or not equal(value, right[key]):
                return False
        return True
    if kind is OptionalValue:
        if type(right) is not OptionalValue or left.present is not right.present:
            return False
        return not left.present or equal(left.value, right.value)
    return kind is type(right) and bool(left == right)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, MapList):
        by_key = {left.key_of(element): element for element in left}
        return all((key := left.key_of(element)) in by_key and equal(by_key[key], element) for element in right)
    if isinstance(left, SetList):
        return {_hashable(element) for element in left} == {_hashable(element) for element in right}
    for a, b in zip(left, right):  # noqa: SIM110 - as above
        if not equal(a, b):
            return False
    return True


def contains(container: list[Any], value: Any) -> bool:
    """Whether a list has an element equal to the value."""
    kind = type(value)
    if kind is str:
        return value in container
    for element in container:  # noqa: SIM110 - as above
        if equal(element, value):
            return True
    return False


def add_lists(left: list[Any], right: list[Any]) -> list[Any]:
    """`+` of two lists; the left one says how (Kubernetes: set and map lists merge)."""
    if isinstance(left, SetList):
        seen = {_hashable(element) for element in left}
        return SetList([*left, *(element for element in right if _hashable(element) not in seen)])
    if isinstance(left, MapList):
        merged = {left.key_of(element): element for element in left}
        for element in right:
            merged[left.key_of(element)] = element
        return MapList(list(merged.values()), left.keys)
    return [*left, *right]
