"""Functions of strings (cel-go's ext.Strings: version 0 before Kubernetes 1.29, version 2 since)."""

from __future__ import annotations

import re
from typing import Any

from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import CostExceededError, EvaluationError
from apiserver.cel.library.formatting import format_string
from apiserver.cel.standard import format_double

_VERSION_2_SINCE = 29
RESULT_LENGTH_MAX = 10_000_000  # characters that one call may make: `replace` grows a text far beyond what its cost tells
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_TO_QUOTE = re.compile('[\a\b\f\n\r\t\v\\\\"\ud800-\udfff]')


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def last_index_of(text: str, part: str) -> int:
    return text.rfind(part) if part else len(text)


def last_index_of_from(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    """Replace the first `count` places, or all of them; an empty `old` stands between all characters and at both ends."""
    places = len(text) + 1 if not old else text.count(old)
    places = places if count < 0 else min(places, count)
    if len(text) + places * max(0, len(new) - len(old)) > RESULT_LENGTH_MAX:
        raise CostExceededError
    return text.replace(old, new, places)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """At most `limit` parts, the last one being the rest; without a separator, the characters."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not 0 <= end <= len(text):
        raise _out_of_range(end)
    return text[start:end]


def join(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            shown = format_double(part) if type(part) is float else str(part)
            raise EvaluationError(f"join: invalid input: {shown}")
    if sum(map(len, parts)) + len(separator) * len(parts) > RESULT_LENGTH_MAX:
        raise CostExceededError
    return separator.join(parts)


def quote(text: str) -> str:
    """The text as a string literal."""
    return '"' + _TO_QUOTE.sub(lambda found: _QUOTED.get(found.group(), "\ufffd"), text) + '"'


def overloads(minor: int) -> list[Overload]:
    """The functions that a version of Kubernetes has."""
    found = [
        overload("string_char_at_int string.charAt(int): string", char_at),
        overload("string_index_of_string string.indexOf(string): int", index_of),
        overload("string_index_of_string_int string.indexOf(string, int): int", index_of),
        overload("string_last_index_of_string string.lastIndexOf(string): int", last_index_of),
        overload("string_last_index_of_string_int string.lastIndexOf(string, int): int", last_index_of_from),
        overload("string_lower_ascii string.lowerAscii(): string", lambda text: text.translate(_LOWER)),
        overload("string_replace_string_string string.replace(string, string): string", replace),
        overload("string_replace_string_string_int string.replace(string, string, int): string", replace),
        overload("string_split_string string.split(string): list(string)", split),
        overload("string_split_string_int string.split(string, int): list(string)", split),
        overload("string_substring_int string.substring(int): string", substring),
        overload("string_substring_int_int string.substring(int, int): string", substring_between),
        overload("string_trim string.trim(): string", lambda text: text.strip(_SPACES)),
        overload("string_upper_ascii string.upperAscii(): string", lambda text: text.translate(_UPPER)),
        overload("list_join list(string).join(): string", join),
        overload("list_join_string list(string).join(string): string", join),
    ]
    if minor >= _VERSION_2_SINCE:
        found += [
            overload("string_format string.format(list(dyn)): string", format_string),
            overload("strings_quote strings.quote(string): string", quote),
        ]
    return found
