"""Which tolerations say more than others (Kubernetes ``pkg/util/tolerations``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Toleration = dict[str, Any]


def merged(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Both, in order, without those that another one covers; of equal ones the first stays."""
    everything = [*first, *second]
    kept: list[Toleration] = []
    for position, one in enumerate(everything):
        if any(covers(other, one) for other in kept):
            continue
        if any(not is_equal(other, one) and covers(other, one) for other in everything[position + 1 :]):
            continue
        kept.append(one)
    return kept


def within(tolerations: Sequence[Toleration], allowed: Sequence[Toleration]) -> bool:
    """Whether each toleration is covered by an allowed one; everything is, where none is named."""
    return not allowed or all(any(covers(wide, one) for wide in allowed) for one in tolerations)


def covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether what ``narrow`` tolerates ``wide`` does too, at least as long."""
    if is_equal(wide, narrow):
        return True
    if wide.get("key") and wide["key"] != narrow.get("key"):
        return False
    if wide.get("effect") and wide["effect"] != narrow.get("effect"):
        return False
    if wide.get("effect") == "NoExecute" and (seconds := wide.get("tolerationSeconds")) is not None:
        own = narrow.get("tolerationSeconds")
        if own is None or own > seconds:
            return False
    if wide.get("operator") == "Exists":
        return True
    return (narrow.get("operator") or "Equal") == (wide.get("operator") or "Equal") and (narrow.get("value") or "") == (
        wide.get("value") or ""
    )


def is_equal(one: Toleration, other: Toleration) -> bool:
    return all((one.get(field) or "") == (other.get(field) or "") for field in ("key", "operator", "value", "effect")) and one.get(
        "tolerationSeconds"
    ) == other.get("tolerationSeconds")
