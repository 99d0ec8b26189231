"""What Go says where it fails to read: the texts that Kubernetes passes on from ``strconv``, ``encoding/json`` and ``base64``."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any

MAX_UINT64 = 2**64 - 1
MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

#: what Go's decoder first wants to know of a document
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

_DIGITS = re.compile("[0-9]+").fullmatch
_SIGNED_DIGITS = re.compile("[+-]?[0-9]+").fullmatch
_BASE64_URL = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
#: a number of more digits is out of range whatever they are; int() of a very long text would take quadratic time
_DIGITS_MAX = 25


class GoError(ValueError):
    """The text is what Go's error says."""


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}


def quote(text: str) -> str:
    """Go's ``%q``: printable characters as they are, others by their number."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(c) or (c if is_printable(c) else _by_number(c)) for c in text) + '"'


def quote_all(texts: Iterable[str]) -> str:
    """As ``%q`` shows a slice of strings."""
    return f"[{' '.join(map(quote, texts))}]"


def is_printable(character: str) -> bool:
    """``unicode.IsPrint``: of the spaces it knows one alone, as Python does."""
    return character.isprintable()


def _by_number(character: str) -> str:
    number_ = ord(character)
    if number_ < 0x80:
        return f"\\x{number_:02x}"
    if 0xD800 <= number_ < 0xE000:
        return "\ufffd"
    return f"\\u{number_:04x}" if number_ < 0x10000 else f"\\U{number_:08x}"


def parse_uint(text: str) -> int:
    """``strconv.ParseUint(text, 10, 64)``."""
    if not _DIGITS(text):
        raise GoError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    if len(text.lstrip("0")) > _DIGITS_MAX or (value := int(text)) > MAX_UINT64:
        raise GoError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return value


def parse_int(text: str) -> int:
    """``strconv.ParseInt(text, 10, 64)``."""
    if not _SIGNED_DIGITS(text):
        raise GoError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    if len(text.lstrip("+-0")) > _DIGITS_MAX or not MIN_INT64 <= (value := int(text)) <= MAX_INT64:
        raise GoError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return value


def decode_raw_base64_url(text: str) -> bytes:
    """``base64.RawURLEncoding``: no padding; line ends are skipped; the bits beyond the last byte do not count."""
    data = text.encode("utf-8", "surrogatepass")
    kept = bytearray()
    for position, byte in enumerate(data):
        if byte in b"\r\n":
            continue
        if byte not in _BASE64_URL:
            raise GoError(f"illegal base64 data at input byte {position}")
        kept.append(byte)
    if len(kept) % 4 == 1:
        raise GoError(f"illegal base64 data at input byte {len(data) - 1}")
    return base64.urlsafe_b64decode(bytes(kept) + b"=" * (-len(kept) % 4))


def _shown_byte(data: bytes, position: int) -> str:
    byte = data[position : position + 1]
    if not byte:
        return ""
    if byte == b"'":
        return r"'\''"
    if byte == b'"':
        return "'\"'"
    if byte[0] >= 0x80:
        return f"'\\x{byte[0]:02x}'"
    return "'" + quote(byte.decode("ascii"))[1:-1] + "'"


def decode_json(data: bytes) -> Any:
    """The value of a JSON text. ``GoError`` says what ``encoding/json`` would in the common cases."""
    try:
        text = data.decode("utf-8", "surrogateescape")
        value = json.loads(text, parse_constant=_no_constant)
        # what is no UTF-8, and half of a surrogate pair, which only an escape can write, is no character: Go reads U+FFFD
        return value if text.isascii() and "\\u" not in text else _without_surrogates(value)
    except json.JSONDecodeError as e:
        position = len(e.doc[: e.pos].encode("utf-8", "surrogateescape"))
        shown = _shown_byte(data, position)
        if not shown:
            raise GoError("unexpected end of JSON input") from e
        if e.msg == "Extra data":
            raise GoError(f"invalid character {shown} after top-level value") from e
        raise GoError(_no_value(data, position, shown)) from e
    except (RecursionError, ValueError) as e:
        raise GoError("exceeded max depth") from e


_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}


def _no_value(data: bytes, position: int, shown: str) -> str:
    """A value that does not begin, or that begins like one of the three words and is none."""
    literal = _LITERALS.get(data[position : position + 1])
    if literal is None:
        return f"invalid character {shown} looking for beginning of value"
    for offset, wanted in enumerate(literal):
        found = data[position + offset : position + offset + 1]
        if not found:
            return "unexpected end of JSON input"
        if found[0] != wanted:
            return f"invalid character {_shown_byte(data, position + offset)} in literal {literal.decode()} (expecting '{chr(wanted)}')"
    raise AssertionError("a whole word is a value")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(name, name, 0)


def kind_of(value: Any) -> str:
    """The word for a JSON value in "cannot unmarshal … into"."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "object"
    return "null"


def lower(text: str) -> str:
    """Go's ``strings.ToLower``: character by character, each to one."""
    return text.lower() if text.isascii() else "".join(character.lower()[0] for character in text)


def shown(value: Any) -> str:
    """Go's ``%v`` of a JSON value."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{shown(value[k])}" for k in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(shown, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    return number(value) if isinstance(value, float) else str(value)


def whole(value: float) -> int | None:
    """The integer of 64 bits that Go reads where it has written a float, None where it reads a float again. It writes the shortest digits
    that tell the float, and zeros behind them: 2**60 + 0.0 comes back as 1152921504606847000."""
    if not value.is_integer() or abs(value) > 2.0**63:
        return None
    found = int(value)
    if abs(found) > 2**53:
        import decimal  # not needed to start

        found = int(decimal.Decimal(repr(value)))
    return found if -(2**63) <= found < 2**63 else None


def written(value: float) -> str:
    """A float as Go writes it in JSON: the shortest digits that tell it, with an exponent below 1e-6 and from 1e21 on."""
    import decimal  # not needed to start

    size = abs(value)
    exact = decimal.Decimal(repr(value))
    if value == 0 or 1e-6 <= size < 1e21:
        text = f"{exact:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits, exponent = f"{exact.normalize():e}".split("e")
    return f"{digits}e{exponent[0]}{exponent[1:].lstrip('0').zfill(1)}" if exponent[0] == "-" else f"{digits}e+{exponent.lstrip('+')}"


def number(value: int | float) -> str:
    """Go's ``%v`` of a number: of a float the shortest digits that tell it, with an exponent from a million on and below 1e-4."""
    if isinstance(value, int):
        return str(value)
    import decimal  # not needed to start

    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        return str(value)
    power = len(digits) + exponent - 1
    text, minus = "".join(map(str, digits)), "-" if sign else ""
    if not -4 <= power < 6:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{fraction}e{power:+03d}"
    if power < 0:
        return f"{minus}0.{'0' * (-power - 1)}{text}"
    whole, fraction = text[: power + 1].ljust(power + 1, "0"), text[power + 1 :]
    return f"{minus}{whole}.{fraction}" if fraction else minus + whole


def shown_in_syntax(value: Any) -> str:
    """Go's ``%#v`` of a JSON value."""
    if isinstance(value, dict):
        return "map[string]interface {}{" + ", ".join(f"{quote(k)}:{shown_in_syntax(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(shown_in_syntax, value)) + "}"
    if value is None:
        return "interface {}(nil)"
    return quote(value) if isinstance(value, str) else shown(value)


def type_name(value: Any) -> str:
    """Go's ``%T`` of a JSON value, integers being int64."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    if value is None:
        return "<nil>"
    return {bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")
