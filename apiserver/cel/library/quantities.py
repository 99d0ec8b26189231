"""Quantities such as `500m` and `2Gi` (Kubernetes' library/quantity.go, since 1.28)."""

from __future__ import annotations

from apiserver.cel import types
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError
from apiserver.cel.runtime_types import register
from apiserver.cel.values import INT_MAX, INT_MIN
from apiserver.machinery import quantity
from apiserver.machinery.quantity import NANOS, Quantity

SINCE = 28
register(Quantity, types.QUANTITY)


def parse(text: str) -> Quantity:
    """A quantity, or an error in Kubernetes' words."""
    try:
        return quantity.parse(text)
    except quantity.QuantityError as error:
        raise EvaluationError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _is_integer(of: Quantity) -> bool:
    return of.nanos % NANOS == 0 and INT_MIN <= of.nanos // NANOS <= INT_MAX


def _as_integer(of: Quantity) -> int:
    if not _is_integer(of):
        raise EvaluationError("cannot convert value to integer")
    return of.nanos // NANOS


def _whole(amount: int) -> Quantity:
    return Quantity(amount * NANOS, quantity.Format.DECIMAL_EXPONENT)


def overloads(minor: int) -> list[Overload]:
    """The functions, where the version has them."""
    if minor < SINCE:
        return []
    return [
        overload("string_to_quantity quantity(string): Quantity", parse),
        overload("is_quantity_string isQuantity(string): bool", _is_quantity),
        overload("quantity_sign sign(Quantity): int", lambda of: of.sign),
        overload("quantity_is_greater_than Quantity.isGreaterThan(Quantity): bool", lambda left, right: left > right),
        overload("quantity_is_less_than Quantity.isLessThan(Quantity): bool", lambda left, right: left < right),
        overload("quantity_compare_to Quantity.compareTo(Quantity): int", lambda left, right: int(left > right) - int(left < right)),
        overload("quantity_get_float Quantity.asApproximateFloat(): double", float),
        overload("quantity_get_int Quantity.asInteger(): int", _as_integer),
        overload("quantity_is_integer Quantity.isInteger(): bool", _is_integer),
        overload("quantity_add Quantity.add(Quantity): Quantity", lambda left, right: left + right),
        overload("quantity_add_int Quantity.add(int): Quantity", lambda left, right: left + _whole(right)),
        overload("quantity_sub Quantity.sub(Quantity): Quantity", lambda left, right: left - right),
        overload("quantity_sub_int Quantity.sub(int): Quantity", lambda left, right: left - _whole(right)),
    ]
