"""`string.format(arguments)`: the clauses `%s %d %f %e %b %o %x %X`, as cel-go's ext.Strings has them (numbers in the American way)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from apiserver.cel import times
from apiserver.cel.errors import CostExceededError, EvaluationError
from apiserver.cel.runtime_types import name_of, type_name
from apiserver.cel.standard import format_double
from apiserver.cel.types import Kind, Type
from apiserver.cel.values import Duration, Timestamp, Uint
from apiserver.machinery import go_json

_DEFAULT_PRECISION = 6
_PRECISION_MAX = 1_000  # digits after the point; cel-go has no limit here, but no double has more of them that are not zero
_LENGTH_MAX = 10_000_000
_BAD_PRECISION = "could not parse formatting clause: error while parsing precision: "
_STRING_FAULT = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {}"
)
_FIXED_FAULT = "fixed-point clause can only be used on doubles, was given {}"
_SCIENTIFIC_FAULT = "scientific clause can only be used on doubles, was given {}"
_CLAUSE_FAULTS = {
    "s": _STRING_FAULT,
    "d": "decimal clause can only be used on integers, was given {}",
    "f": _FIXED_FAULT,
    "e": _SCIENTIFIC_FAULT,
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
_ACCEPTED = {
    "d": {Kind.INT, Kind.UINT},
    "f": {Kind.DOUBLE, Kind.STRING},
    "e": {Kind.DOUBLE, Kind.STRING},
    "b": {Kind.INT, Kind.UINT, Kind.BOOL},
    "x": {Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES},
    "X": {Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES},
    "o": {Kind.INT, Kind.UINT},
    "s": {
        Kind.LIST, Kind.MAP, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING, Kind.TIMESTAMP, Kind.BYTES, Kind.DURATION,
        Kind.TYPE, Kind.NULL,
    },
}  # fmt: skip
_NUMBERS_IN_WORDS = frozenset({"NaN", "Infinity", "-Infinity"})
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_PRECISION = re.compile(r"\.([0-9]*)")


class FormatError(Exception):
    """A format string that cannot be followed; `argument` is the argument at fault, if one is."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


Clause = tuple[str, "int | None"]


def clauses(text: str, count: int, fit: Callable[[int, Clause], str]) -> str:
    """Go through a format string: `fit(index, clause)` gives what stands for each clause.

    Raises:
        FormatError: with cel-go's words.
    """
    parts: list[str] = []
    position = used = length = 0
    while position < len(text):
        percent = text.find("%", position)
        if percent < 0:
            parts.append(text[position:])
            break
        parts.append(text[position:percent])
        position = percent + 1
        if text[position : position + 1] == "%":
            parts.append("%")
            position += 1
            continue
        if used >= count:
            raise FormatError(f"index {used} out of range")
        if position >= len(text):
            raise FormatError("unexpected end of string")
        precision: int | None = None
        found = _PRECISION.match(text, position)
        if found is not None:
            position = found.end()
            if position >= len(text):
                raise FormatError(
                    "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"
                )
            if not found[1]:
                raise FormatError(_BAD_PRECISION + 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax')
            precision = min(int(found[1][:10]), _PRECISION_MAX)
        letter = text[position]
        position += 1
        if letter not in _CLAUSE_FAULTS:
            shown = letter if letter.isascii() else chr(letter.encode()[0])
            raise FormatError(f'could not parse formatting clause: unrecognized formatting clause "{shown}"')
        made = fit(used, (letter, precision))
        length += len(made)
        if length > _LENGTH_MAX:
            raise CostExceededError
        parts.append(made)
        used += 1
    return "".join(parts)


def format_string(text: str, arguments: list[Any]) -> str:
    """`text.format(arguments)`."""

    def fit(index: int, clause: Clause) -> str:
        return _formatted(arguments[index], *clause)

    try:
        return clauses(text, len(arguments), fit)
    except FormatError as error:
        raise EvaluationError(str(error)) from None


def fault_of_types(text: str, arguments: Sequence[Type]) -> tuple[str, int | None] | None:
    """What is wrong with a format string for arguments of these types, and which argument is; None where nothing is."""
    requested = 0

    def fit(index: int, clause: Clause) -> str:
        nonlocal requested
        requested += 1
        of = arguments[index]
        if of.kind is not Kind.DYN and of.kind not in _ACCEPTED[clause[0]]:
            message = _CLAUSE_FAULTS[clause[0]].format(type_name(of))
            raise FormatError(f"error during formatting: {message}", index)
        return ""

    try:
        clauses(text, len(arguments), fit)
    except FormatError as error:
        return str(error), error.argument
    if len(arguments) > requested:
        return f"too many arguments supplied to string.format (expected {requested}, got {len(arguments)})", None
    return None


def _formatted(value: Any, letter: str, precision: int | None) -> str:
    made: str | None
    if letter == "s":
        return _string(value)
    if letter in "fe":
        made = _double(value, letter, _DEFAULT_PRECISION if precision is None else precision)
    elif letter == "d":
        made = str(int(value)) if _is_integer(value) else None
    elif letter == "b":
        made = format(int(value), "b") if _is_integer(value) or type(value) is bool else None
    elif letter == "o":
        made = format(int(value), "o") if _is_integer(value) else None
    else:
        made = _hex(value, letter)
    if made is None:
        raise FormatError("error during formatting: " + _CLAUSE_FAULTS[letter].format(name_of(value)))
    return made


def _is_integer(value: Any) -> bool:
    return type(value) is int or type(value) is Uint


def _hex(value: Any, letter: str) -> str | None:
    if _is_integer(value):
        return format(int(value), letter)
    if type(value) is str:
        value = value.encode("utf-8", "replace")
    if type(value) is not bytes:
        return None
    text = value.hex()
    return text.upper() if letter == "X" else text


def _double(value: Any, letter: str, precision: int) -> str | None:
    if type(value) is str and value in _NUMBERS_IN_WORDS:
        value = float(value)
    if type(value) is not float:
        return None
    if math.isnan(value) or math.isinf(value):
        shown = "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
        return shown if letter == "f" else shown.rjust(precision)
    if letter == "f":
        return f"{value:,.{precision}f}"
    # the precision of `%.3e` is taken for a width, and there are always six digits
    mantissa, _, exponent = f"{value:.{_DEFAULT_PRECISION}e}".partition("e")
    return _scientific(mantissa, int(exponent), precision)


def _scientific(mantissa: str, exponent: int, width: int) -> str:
    digits = f"{abs(exponent):02d}".translate(_SUPERSCRIPTS)
    return f"{mantissa}×10{'⁻' if exponent < 0 else ''}{digits}".rjust(width)


def _string(value: Any) -> str:
    """`%s`."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(_inner(item) for item in value) + "]"
    if isinstance(value, dict):
        return _map(value)
    made = _plain(value)
    if made is None:
        raise FormatError("error during formatting: " + _STRING_FAULT.format(name_of(value)))
    return made


def _plain(value: Any) -> str | None:
    """A scalar as `string()` gives it."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return format_double(value)
    if kind is bytes:
        try:
            return str(value.decode("utf-8"))
        except UnicodeDecodeError:
            raise FormatError("error during formatting: could not convert argument to string") from None
    if kind is Timestamp:
        return times.format_timestamp(value)
    if kind is Duration:
        return times.format_duration(value)
    return type_name(value) if isinstance(value, Type) else None


def _inner(value: Any) -> str:
    """A value within a list or a map: strings are quoted, doubles have six digits."""
    kind = type(value)
    if kind is str:
        return go_json.quote(value)
    if kind is bytes:
        return "b" + go_json.quote(_plain(value) or "")
    if kind is float:
        if math.isnan(value) or math.isinf(value):
            return f'"{format_double(value)}"'
        return f"{value:.{_DEFAULT_PRECISION}f}"
    if kind is Timestamp:
        return f'timestamp("{times.format_timestamp(value)}")'
    if kind is Duration:
        return f'duration("{times.format_duration(value)}")'
    if value is None or isinstance(value, (list, dict)):
        return _string(value)
    made = _plain(value)
    if made is None:
        raise FormatError(f"error during formatting: no formatting function for {name_of(value)}")
    return made


def _map(value: dict[Any, Any]) -> str:
    entries = []
    for key, item in value.items():
        if type(key) not in (str, bool, int, Uint):
            raise FormatError(f"error during formatting: no formatting function for map key of type {name_of(key)}")
        entries.append((_inner(key), _inner(item)))
    entries.sort(key=lambda entry: entry[0])
    return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"
