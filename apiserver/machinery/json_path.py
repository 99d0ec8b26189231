"""The JSONPath of kubectl and of printer columns (client-go ``util/jsonpath``, the part inside of ``{}``).

    path = parse(".status.conditions[?(@.type==\"Ready\")].status")     JsonPathError for what is none
    path.find(obj)                                                      the values; PathError where a step cannot be taken

    .field  .*  ['field']  [0] [-1] [1:3] [::2] [*]  [0,2]  ['a','b']  ..  ..field  [?(@.a == "x")]  [?(@.a)]   \\. in a name is a dot

A field that is missing is no value; an index beyond a list's end, or one into what is no list, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_ENDS_FIELD = frozenset(" \t\r\n.,[]$@{}")
_SLICE = re.compile(r"^(-?\d*)(:-?\d*)?(:-?\d*)?$")
_KEY = re.compile(r"^'([^']*)'$")
_FILTER = re.compile(r"^([^!<>=]+)([!<>=]+)(.+?)$")
_NUMBER = re.compile(r"^[+-]?\d+(\.\d*)?$")
#: steps of one path: what a column or a field of a definition could need by far
STEPS_MAX = 256

Values = list[Any]
Step = Callable[[Values], Values]


class JsonPathError(ValueError):
    """The text is no JSONPath."""


class PathError(ValueError):
    """The path leads nowhere in this value."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    text: str
    steps: tuple[Step, ...]

    def find(self, value: Any) -> Values:
        """Raises PathError."""
        found = [value]
        for step in self.steps:
            found = step(found)
        return found


@lru_cache(maxsize=4096)
def parse(text: str) -> JsonPath:
    """Raises JsonPathError."""
    return JsonPath(text, tuple(_steps(text)))


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    at = 0
    while at < len(text):
        if len(steps) > STEPS_MAX:
            raise JsonPathError(f"more than {STEPS_MAX} steps")
        if text.startswith("[?(", at):
            end = text.find(")]", at)
            if end < 0:
                raise JsonPathError("unterminated filter")
            steps.append(_filter(text[at + 3 : end]))
            at = end + 2
        elif text.startswith("..", at):
            steps.append(_descend)
            at += 2
            if at < len(text) and text[at] not in _ENDS_FIELD:
                step, at = _field(text, at)
                steps.append(step)
        elif text[at] in " @$":
            at += 1
        elif text[at] == "[":
            end = text.find("]", at)
            if end < 0:
                raise JsonPathError("unterminated array")
            steps.extend(_array(text[at + 1 : end]))
            at = end + 1
        elif text[at] == ".":
            step, at = _field(text, at + 1)
            steps.append(step)
        elif text[at] in "\"'":
            literal, at = _quoted(text, at)
            steps.append(_literal(literal))
        elif text[at].isdigit() or text[at] in "+-":
            end = at + 1
            while end < len(text) and (text[end].isdigit() or text[end] == "."):
                end += 1
            if not _NUMBER.match(text[at:end]):
                raise JsonPathError(f"cannot parse number {text[at:end]}")
            number = text[at:end]
            steps.append(_literal(float(number) if "." in number else int(number)))
            at = end
        elif text[at].isalpha() or text[at] == "_":
            end = at
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            word = text[at:end]
            if word not in ("true", "false"):
                raise JsonPathError(f"unrecognized identifier {word}")
            steps.append(_literal(word == "true"))
            at = end
        else:
            raise JsonPathError(f"unrecognized character in action: {text[at]!r}")
    return steps


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote, end = text[at], at + 1
    out: list[str] = []
    while end < len(text) and text[end] != quote:
        if text[end] == "\\" and end + 1 < len(text):
            end += 1
        out.append(text[end])
        end += 1
    if end >= len(text):
        raise JsonPathError("unterminated quoted string")
    return "".join(out), end + 1


def _field(text: str, at: int) -> tuple[Step, int]:
    end, name = at, []
    while end < len(text) and text[end] not in _ENDS_FIELD:
        if text[end] == "\\" and end + 1 < len(text):
            end += 1
        name.append(text[end])
        end += 1
    found = "".join(name)
    return (_every if found == "*" else _of_field(found)), end


def _array(text: str) -> list[Step]:
    if text == "*":
        return [_every_item]
    parts = text.split(",")
    if len(parts) > 1:
        return [_union([_array(part.strip()) for part in parts])]
    key = _KEY.match(text)
    if key is not None:
        return _steps("." + key[1])
    match = _SLICE.match(text)
    if match is None or not text:
        raise JsonPathError(f"invalid array index {text}")
    start, stop, step = match.groups()
    return [_slice(_int(start), None if stop is None else _int(stop[1:]), stop is not None, _int(step[1:]) if step else None)]


def _int(text: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise JsonPathError(f"array index {text} is not a number") from error


def _filter(text: str) -> Step:
    match = _FILTER.match(text)
    if match is None:
        path = _steps(text)
        return _filtered(lambda item: bool(_run(path, item)))
    left, operator, right = _steps(match[1].strip()), match[2], _steps(match[3].strip())
    if operator not in _COMPARE:
        raise JsonPathError(f"unrecognized filter operator {operator}")
    return _filtered(lambda item: _compares(_run(left, item), operator, _run(right, item)))


def _run(steps: Iterable[Step], value: Any) -> Values:
    found = [value]
    for step in steps:
        found = step(found)
    return found


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _compares(left: Values, operator: str, right: Values) -> bool:
    if not left or not right:
        return False
    if len(left) > 1 or len(right) > 1:
        raise PathError("can only compare one element at a time")
    a, b = left[0], right[0]
    if _sort_of(a) != _sort_of(b):
        raise PathError("incompatible types for comparison")
    return bool(_COMPARE[operator](a, b))


def _sort_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    raise PathError("incompatible types for comparison")


# -- steps


def _literal(value: Any) -> Step:
    return lambda values: [value for _ in values]


def _of_field(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value] if name else list(values)


def _every(values: Values) -> Values:
    found: Values = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value[key] for key in sorted(value))
        elif isinstance(value, list):
            found.extend(value)
    return found


def _every_item(values: Values) -> Values:
    return [item for value in values if value is not None for item in _list(value)]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise PathError("not an array or a slice")
    return value


def _slice(start: int | None, stop: int | None, has_stop: bool, step: int | None) -> Step:
    def take(values: Values) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            items = _list(value)
            first = (start or 0) + (len(items) if (start or 0) < 0 else 0)
            if not has_stop:
                if not 0 <= first < len(items):
                    raise PathError(f"array index out of bounds: index {first}, length {len(items)}")
                found.append(items[first])
                continue
            last = len(items) if stop is None else stop + (len(items) if stop < 0 else 0)
            if first == last:
                continue
            if not 0 <= first < len(items) or not 0 <= last <= len(items) or first > last:
                raise PathError(f"array index out of bounds: index {first}, length {len(items)}")
            if step is not None and step <= 0:
                raise PathError("step must be > 0")
            found.extend(items[first : last : step or 1])
        return found

    return take


def _union(parts: list[list[Step]]) -> Step:
    return lambda values: [found for steps in parts for found in _each(steps, values)]


def _each(steps: list[Step], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


def _filtered(keeps: Callable[[Any], bool]) -> Step:
    return lambda values: [item for value in values if value is not None for item in _list(value) if keeps(item)]


def _descend(values: Values) -> Values:
    return [found for value in values for found in _below(value)]


def _below(value: Any) -> Iterator[Any]:
    """A container and all containers in it."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            yield current
            waiting.extend(current[key] for key in sorted(current, reverse=True))
        elif isinstance(current, list):
            yield current
            waiting.extend(reversed(current))
