"""Label selectors: kubectl's text form, the LabelSelector of objects, and matching (apimachinery ``labels``).

    selector    = [ requirement { "," requirement } ]
    requirement = [ "!" ] key | key operator value
    operator    = "=" | "==" | "!=" | ">" | "<" | "in" "(" values ")" | "notin" "(" values ")"

``key!=value`` and ``key notin (…)`` also match where the key is absent. All requirements have to match.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.machinery import field_errors, go_json, names, release
from apiserver.machinery.field_errors import FieldError

#: parsed selectors kept; controllers and kubectl send the same few over and over
_PARSED_MAX = 1024
#: longer texts are parsed anew each time, so that the cache stays small
_PARSED_TEXT_MAX = 512


class SelectorError(ValueError):
    """The text is Kubernetes' message; answered as a 400."""


class Operator(enum.Enum):
    """The value is how the text form and its errors name the operator."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_BINARY = tuple(o.value for o in Operator)[:7]
_SET = (Operator.IN, Operator.NOT_IN)
_EXACT = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS)
_PRESENCE = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_ORDER = (Operator.GREATER_THAN, Operator.LESS_THAN)
_POSITIVE = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)
_SHOWN = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """Built with ``requirement``, which checks it."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        operator = self.operator
        if operator in _POSITIVE:
            return value is not None and value in self.values
        if operator in (Operator.NOT_IN, Operator.NOT_EQUALS):
            return value is None or value not in self.values
        if operator in _PRESENCE:
            return (value is not None) == (operator is Operator.EXISTS)
        if value is None:
            return False
        try:
            found, bound = go_json.parse_int(value), go_json.parse_int(self.values[0])
        except go_json.GoError:
            return False
        return found > bound if operator is Operator.GREATER_THAN else found < bound

    def __str__(self) -> str:
        operator = self.operator
        if operator is Operator.EXISTS:
            return self.key
        if operator is Operator.DOES_NOT_EXIST:
            return "!" + self.key
        values = ",".join(sorted(self.values))
        if operator in _SET:
            return f"{self.key} {operator.value} ({values})"
        return f"{self.key}{_SHOWN.get(operator, operator.value)}{values}"


class Selector:
    """All requirements together, sorted by key. Immutable. ``EVERYTHING`` has none; ``NOTHING`` matches no object at all."""

    __slots__ = ("_equal", "_nothing", "_rest", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda r: r.key))
        self._nothing = nothing
        self._equal = tuple((r.key, r.values[0]) for r in self.requirements if r.operator in _POSITIVE and len(r.values) == 1)
        self._rest = tuple(r for r in self.requirements if not (r.operator in _POSITIVE and len(r.values) == 1))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self._nothing:
            return False
        found = labels or {}
        for key, value in self._equal:
            if found.get(key) != value:
                return False
        return not self._rest or all(requirement.matches(found) for requirement in self._rest)

    @property
    def empty(self) -> bool:
        """Whether the selector does not restrict anything."""
        return not self._nothing and not self.requirements

    def exact_value(self, key: str) -> str | None:
        """The one value that ``key`` must have, if the selector says so."""
        for requirement in self.requirements:
            if requirement.key == key:
                one = requirement.operator in _POSITIVE and len(requirement.values) == 1
                return requirement.values[0] if one else None
        return None

    def __str__(self) -> str:
        return ",".join(str(r) for r in self.requirements)

    def __repr__(self) -> str:
        return "labels.NOTHING" if self._nothing else f"labels.Selector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.requirements == other.requirements and self._nothing == other._nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self._nothing))


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def _joined(errors: Sequence[FieldError]) -> str:
    texts = list(dict.fromkeys(e.text() for e in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def requirement(key: str, operator: Operator, values: Sequence[str] = ()) -> Requirement:
    """A checked requirement."""
    errors: list[FieldError] = []
    if messages := names.qualified_name(key):
        errors.append(field_errors.invalid("key", key, "; ".join(messages)))
    shown = list(values)
    if operator in _SET and not values:
        errors.append(field_errors.invalid("values", shown, "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in _EXACT and len(values) != 1:
        errors.append(field_errors.invalid("values", shown, "exact-match compatibility requires one single value"))
    elif operator in _PRESENCE and values:
        errors.append(field_errors.invalid("values", shown, "values set must be empty for exists and does not exist"))
    elif operator in _ORDER:
        if len(values) != 1:
            errors.append(field_errors.invalid("values", shown, "for 'Gt', 'Lt' operators, exactly one value is required"))
        for i, value in enumerate(values):
            try:
                go_json.parse_int(value)
            except go_json.GoError:
                path = field_errors.index("values", i)
                errors.append(field_errors.invalid(path, value, "for 'Gt', 'Lt' operators, the value must be an integer"))
    for i, value in enumerate(values):
        if messages := names.label_value(value):
            path = field_errors.key(field_errors.index("values", i), key)
            errors.append(field_errors.invalid(path, value, "; ".join(messages)))
    if errors:
        raise SelectorError(_joined(errors))
    return Requirement(key, operator, tuple(values))


# --- the text form ---------------------------------------------------------------------------------------------------------------

_SPACE = " \t\r\n"
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n\0]+))\0?")
_END = ""
_OPERATORS = {
    "in": Operator.IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
    "notin": Operator.NOT_IN,
    "!=": Operator.NOT_EQUALS,
}

#: of one selector: no object has as many labels, and each costs time that others wait for
REQUIREMENTS_MAX = 5000


def _tokens(text: str) -> list[tuple[str, bool]]:
    """(text, whether it is a word), ended by ("", False)."""
    out: list[tuple[str, bool]] = []
    position = 0
    while match := _TOKEN.match(text, position):
        out.append((match[1] or match[2], match[1] is None))
        position = match.end()
    out.append((_END, False))
    return out


class _Parser:
    """A recursive descent over the tokens; ``in`` and ``notin`` are words wherever a key or value may stand."""

    def __init__(self, text: str) -> None:
        self._items = _tokens(text)
        self._position = 0

    def _next(self) -> tuple[str, bool]:
        item = self._items[self._position]
        self._position += 1
        return item

    def _peek(self) -> tuple[str, bool]:
        return self._items[self._position]

    def parse(self) -> list[Requirement]:
        out: list[Requirement] = []
        while True:
            text, word = self._peek()
            if not (word or text == "!"):
                if text == _END:
                    return out
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                out.append(self._requirement())
            except SelectorError as e:
                raise SelectorError(f"unable to parse requirement: {e}") from e
            text, _ = self._next()
            if text == _END:
                return out
            if text != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            if len(out) >= REQUIREMENTS_MAX:
                raise SelectorError(f"more than {REQUIREMENTS_MAX} requirements")
            text, word = self._peek()
            if not (word or text == "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key, word = self._next()
        absent = key == "!" and not word
        if absent:
            key, word = self._next()
        if not word:
            raise SelectorError(f"found '{key}', expected: identifier")
        if messages := names.qualified_name(key):
            raise SelectorError(field_errors.invalid("<nil>", key, "; ".join(messages)).text())
        text, word = self._peek()
        if not word and text in (_END, ","):
            return requirement(key, Operator.DOES_NOT_EXIST if absent else Operator.EXISTS)
        if absent:
            return requirement(key, Operator.DOES_NOT_EXIST)
        text, word = self._next()
        operator = _OPERATORS.get(text)
        if operator is None:
            raise SelectorError(f"found '{text}', expected: {', '.join(_BINARY)}")
        values = self._set() if operator in _SET else self._exact()
        return requirement(key, operator, sorted(values))

    def _exact(self) -> set[str]:
        text, word = self._peek()
        if not word and text in (_END, ","):
            return {""}
        text, word = self._next()
        if not word:
            raise SelectorError(f"found '{text}', expected: identifier")
        return {text}

    def _set(self) -> set[str]:
        text, word = self._next()
        if word or text != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        text, word = self._peek()
        if not word and text == ")":
            self._next()
            return {""}
        if not word and text != ",":
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._list()
        self._next()  # the closing parenthesis, which _list has seen
        return values

    def _list(self) -> set[str]:
        """Values between commas, where nothing between two commas is the empty value."""
        values: set[str] = set()
        while True:
            text, word = self._next()
            following, following_word = self._peek() if text != _END else (_END, False)
            if word:
                values.add(text)
                if not following_word and following == ")":
                    return values
                if following_word or following != ",":
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
            elif text == ",":
                if not values:
                    values.add("")
                if not following_word and following in (")", ","):
                    values.add("")
                    if following == ")":
                        return values
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")


@functools.lru_cache(maxsize=_PARSED_MAX)
def _parse_cached(text: str) -> Selector:
    return Selector(_Parser(text).parse())


def parse(text: str) -> Selector:
    """The selector of a text like ``app=web,tier in (a, b),!canary``; ``SelectorError`` where it does not parse."""
    if not text:
        return EVERYTHING
    return _parse_cached(text) if len(text) <= _PARSED_TEXT_MAX else Selector(_Parser(text).parse())


def from_mapping(labels: Mapping[str, str] | None) -> Selector:
    """What matches exactly these labels, unchecked: the selector of a Service or ReplicationController."""
    return Selector(Requirement(k, Operator.EQUALS, (v,)) for k, v in (labels or {}).items())


# --- the LabelSelector of objects ------------------------------------------------------------------------------------------------

_OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """The selector of a LabelSelector object: None selects nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    exact = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    if not exact and not expressions:
        return EVERYTHING
    out = [requirement(key, Operator.EQUALS, [value]) for key, value in exact.items()]
    for expression in expressions:
        operator = _OBJECT_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise SelectorError(f"{go_json.quote(expression.get('operator', ''))} is not a valid label selector operator")
        out.append(requirement(expression.get("key", ""), operator, expression.get("values") or []))
    return Selector(out)


def validate_labels(labels: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Keys must be qualified names, values label values; all errors stand at the map itself."""
    errors: list[FieldError] = []
    for key, value in (labels or {}).items():
        for message in names.qualified_name(key):
            errors.append(field_errors.invalid(path, key, message))
        for message in names.label_value(value):
            errors.append(field_errors.invalid(path, value, message))
    return errors


def validate_label_selector(selector: Mapping[str, Any] | None, path: str, *, allow_invalid_values: bool = False) -> list[FieldError]:
    """The checks of a LabelSelector in an object. ``allow_invalid_values`` is for updates of what was stored before values were
    checked, which is done since 1.26 (apimachinery v0.26 ``ValidateLabelSelectorRequirement``)."""
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels"), field_errors.child(path, "matchLabels"))
    for i, expression in enumerate(selector.get("matchExpressions") or []):
        at = field_errors.index(field_errors.child(path, "matchExpressions"), i)
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                where = field_errors.child(at, "values")
                errors.append(field_errors.required(where, "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                where = field_errors.child(at, "values")
                errors.append(field_errors.forbidden(where, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        else:
            errors.append(field_errors.invalid(field_errors.child(at, "operator"), operator, "not a valid selector operator"))
        key = expression.get("key", "")
        errors += [field_errors.invalid(field_errors.child(at, "key"), key, m) for m in names.qualified_name(key)]
        if not allow_invalid_values and release.since(26):
            for position, value in enumerate(values):
                where = field_errors.index(field_errors.child(at, "values"), position)
                errors += [field_errors.invalid(where, value, m) for m in names.label_value(value)]
    return errors
