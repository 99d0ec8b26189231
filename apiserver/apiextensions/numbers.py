"""Numbers of JSON as Go sees them: which floats are whole, and the form in which custom objects keep them."""

from __future__ import annotations

import math
from typing import Any

from apiserver.machinery import go_json

_SAFE_INTEGER_MAX = 2**53 - 1
_EPSILON = 1e-9
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def is_json_integer(value: float) -> bool:
    """Whole, or as near to it as go-openapi takes for whole; never beyond what a float holds exactly."""
    if not math.isfinite(value) or abs(value) > _SAFE_INTEGER_MAX:
        return False
    whole = float(math.trunc(value)) if value >= 0 else 0.0
    if value == whole or value == float(math.trunc(value)):
        return True
    difference = abs(value - whole)
    if value == 0 or whole == 0:
        return difference < _EPSILON * 5e-324
    return difference / (abs(value) + abs(whole)) < _EPSILON


class WholeFloat(int):
    """An integer that was written as a float: ``1.0`` is kept as ``1``, but until then its type is that of a float."""

    __slots__ = ()


def canonical(value: Any) -> Any:
    """The value with whole floats as integers (``1.0`` is written ``1``) and integers beyond 64 bits as floats; itself where nothing
    changes. Containers are changed in place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, (dict, list, int, float)):
                value[name] = canonical(inner)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            if isinstance(inner, (dict, list, int, float)):
                value[position] = canonical(inner)
    elif isinstance(value, float):
        found = go_json.whole(value)
        if found is not None:
            return WholeFloat(found)
    elif isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        return float(value)
    return value
