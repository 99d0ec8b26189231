"""Arithmetic of resource lists: names to quantities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from apiserver.machinery import quantity
from apiserver.machinery.quantity import Quantity

Amounts: TypeAlias = dict[str, Quantity]

ONE = Quantity(quantity.NANOS)


def parsed(amounts: Mapping[str, Any] | None) -> Amounts:
    return {name: quantity.of_json(amount) for name, amount in (amounts or {}).items()}


def to_json(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def add(one: Amounts, other: Amounts) -> Amounts:
    out = dict(one)
    for name, amount in other.items():
        out[name] = out[name] + amount if name in out else amount
    return out


def maximum(one: Amounts, other: Amounts) -> Amounts:
    out = dict(one)
    for name, amount in other.items():
        if name not in out or amount > out[name]:
            out[name] = amount
    return out


def increase(new: Amounts, old: Amounts) -> Amounts:
    """What ``new`` has beyond ``old``; what shrank counts as no change, since the quota controller gives it back."""
    out: Amounts = {}
    for name, amount in new.items():
        difference = amount - old[name] if name in old else amount
        out[name] = difference if difference.sign > 0 else Quantity(0)
    return out


def masked(amounts: Amounts, names: Iterable[str]) -> Amounts:
    wanted = set(names)
    return {name: amount for name, amount in amounts.items() if name in wanted}


def without_zeros(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if amount}


def shown(amounts: Amounts) -> str:
    """``cpu=1,memory=2Gi``, by name."""
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
