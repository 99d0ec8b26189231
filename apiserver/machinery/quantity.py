"""Quantities: ``100m``, ``1.5Gi``, ``12e6`` (apimachinery ``api/resource``), exactly.

A quantity is a whole number of nanos (10⁻⁹) and a format. What is finer than a nano is rounded away from zero; a binary amount is capped
at 2⁶³-1. The canonical text has no fraction, the largest suffix that keeps it exact, and the format that was written:

    "1.5"   -> "1500m"          "1536Mi" -> "1536Mi"        "1024Ki" -> "1Mi"
    "1.5Gi" -> "1536Mi"         "0.5Ki"  -> "512"           "1000k"  -> "1M"
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass
from fractions import Fraction

NANOS = 10**9
MAX_BINARY_NANOS = (2**63 - 1) * NANOS

#: digits before the suffix, and the size of a decimal exponent; Kubernetes has no such limit, and no use for what is beyond it
_DIGITS_MAX = 512
_EXPONENT_MAX = 512

_PARTS = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)").fullmatch
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)").fullmatch
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_SUFFIX = ("", *_BINARY)

_WRONG_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """The text is Kubernetes' message."""


class Format(enum.Enum):
    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """Equal and ordered by amount alone. ``text`` is kept only where Kubernetes keeps what was written."""

    nanos: int
    format: Format = Format.DECIMAL_SI
    text: str = ""

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in the format of the left unless that is zero."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)

    def __bool__(self) -> bool:
        return self.nanos != 0

    @property
    def sign(self) -> int:
        return (self.nanos > 0) - (self.nanos < 0)

    def value(self) -> int:
        """In whole units, rounded away from zero."""
        return _divide_away_from_zero(self.nanos, NANOS)

    def milli_value(self) -> int:
        """In thousandths, rounded away from zero."""
        return _divide_away_from_zero(self.nanos, NANOS // 1000)

    def rounded_up_to_milli(self) -> Quantity:
        """Away from zero to a thousandth, as the defaults of resource lists do; itself where it is one already."""
        unit = NANOS // 1000
        return self if self.nanos % unit == 0 else Quantity(_divide_away_from_zero(self.nanos, unit) * unit, self.format)

    def as_fraction(self) -> Fraction:
        return Fraction(self.nanos, NANOS)

    def __float__(self) -> float:
        return self.nanos / NANOS

    def __str__(self) -> str:
        """The canonical text."""
        if self.text:
            return self.text
        if not self.nanos:
            return "0"
        whole, rest = divmod(abs(self.nanos), NANOS)
        if self.format is Format.BINARY_SI and not rest and whole >= 1024:
            return self._binary(whole)
        return self._decimal()

    def _binary(self, whole: int) -> str:
        exponent = 0
        while exponent < 6 and whole % 1024 == 0:
            whole //= 1024
            exponent += 1
        return f"{'-' if self.nanos < 0 else ''}{whole}{_BINARY_SUFFIX[exponent]}"

    def _decimal(self) -> str:
        amount, exponent = self.nanos, -9
        while amount % 1000 == 0:
            amount //= 1000
            exponent += 3
        if self.format is Format.DECIMAL_EXPONENT or exponent not in _DECIMAL_SUFFIX:
            return f"{amount}e{exponent}" if exponent else str(amount)
        return f"{amount}{_DECIMAL_SUFFIX[exponent]}"


ZERO = Quantity(0)


def _divide_away_from_zero(amount: int, by: int) -> int:
    return -(-amount // by) if amount > 0 else amount // by


def _suffix(suffix: str) -> tuple[int, int, Format]:
    """(base, exponent, format) that a suffix stands for."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return 2, 10 * _BINARY[suffix], Format.BINARY_SI
    if match := _EXPONENT(suffix):
        if len(match[1]) > 10 or abs(exponent := int(match[1])) > _EXPONENT_MAX:
            raise QuantityError(_WRONG_NUMBER)
        return 10, exponent, Format.DECIMAL_EXPONENT
    raise QuantityError(_WRONG_SUFFIX)


def parse(text: str) -> Quantity:
    """The quantity of a text; ``QuantityError`` where it is none."""
    parts = _PARTS(text) if text else None
    if parts is None:
        raise QuantityError(_WRONG_FORM)
    sign, whole, fraction, suffix = parts[1], parts[2].lstrip("0"), parts[3] or "", parts[4]
    if not whole and parts[3] is None and not suffix:
        return ZERO
    base, exponent, form = _suffix(suffix)
    if len(whole) + len(fraction) > _DIGITS_MAX:
        raise QuantityError(_WRONG_NUMBER)
    unscaled = int((whole + fraction) or "0")
    if base == 2:
        amount = Fraction(unscaled * 2**exponent * NANOS, 10 ** len(fraction))
    else:
        scale = exponent - len(fraction) + 9
        amount = Fraction(unscaled * 10**scale) if scale >= 0 else Fraction(unscaled, 10**-scale)
    nanos = -(-amount.numerator // amount.denominator)
    if form is Format.BINARY_SI:
        nanos = min(nanos, MAX_BINARY_NANOS)
        if nanos < NANOS and fraction:
            form = Format.DECIMAL_SI
    kept = text if _keeps_text(whole or "0", fraction, exponent, form) else ""
    return Quantity(-nanos if sign == "-" else nanos, form, kept if nanos else "")


def _keeps_text(whole: str, fraction: str, exponent: int, form: Format) -> bool:
    """Whether Kubernetes takes a text to be canonical at the first look, and so answers with just what was written. Its look is a
    quick one: ``1.500`` and ``+5`` pass."""
    if form is Format.BINARY_SI:
        spare = 15 - len(whole) - exponent * 3 // 10 - 1
        return not fraction and spare >= 0 and int(whole) & 7 != 0
    scale = exponent - len(fraction)
    digits = whole + fraction
    return len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


@functools.lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """The text in which a quantity is stored and shown. ``QuantityError`` where it is none."""
    return str(parse(text))


def of_json(value: object) -> Quantity:
    """The quantity of a JSON value: a text or a number."""
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return parse(repr(value))
    raise QuantityError(_WRONG_FORM)
