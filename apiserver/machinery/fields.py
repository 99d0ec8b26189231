r"""Field selectors: ``metadata.name=web,status.phase!=Running`` (apimachinery ``fields``).

Terms are joined by commas; ``=`` and ``==`` are the same. In a value ``\,``, ``\=`` and ``\\`` stand for the characters themselves. A
field that an object does not have counts as "".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

METADATA_NAME = "metadata.name"
METADATA_NAMESPACE = "metadata.namespace"

_PARSED_MAX = 1024
_PARSED_TEXT_MAX = 512


class SelectorError(ValueError):
    """The text is Kubernetes' message; answered as a 400."""


@dataclass(frozen=True, slots=True)
class Term:
    field: str
    equal: bool
    value: str

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


@dataclass(frozen=True, slots=True)
class Selector:
    """All terms together, in the order of their texts. ``EVERYTHING`` has none."""

    terms: tuple[Term, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(term.field, "") == term.value) == term.equal for term in self.terms)

    @property
    def empty(self) -> bool:
        return not self.terms

    def exact_value(self, field: str) -> str | None:
        """The one value that ``field`` must have, if the selector says so."""
        return next((t.value for t in self.terms if t.equal and t.field == field), None)

    def transform(self, change: Callable[[str, str], tuple[str, str]]) -> Selector:
        """The selector with each (field, value) changed; a term of which nothing is left is dropped."""
        changed = (Term(field, t.equal, value) for t in self.terms for field, value in [change(t.field, t.value)])
        return Selector(tuple(t for t in changed if t.field or t.value))

    def __str__(self) -> str:
        return ",".join(str(t) for t in self.terms)


EVERYTHING = Selector()


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def unescape(value: str) -> str:
    if not any(c in value for c in "\\,="):
        return value
    out: list[str] = []
    characters = iter(value)
    for c in characters:
        if c == "\\":
            following = next(characters, "")
            if following not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{following}")
            out.append(following)
        elif c in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(c)}")
        else:
            out.append(c)
    return "".join(out)


def _split(text: str) -> list[str]:
    """The terms between commas that no backslash stands before."""
    out, start, escaped = [], 0, False
    for i, c in enumerate(text):
        if escaped:
            escaped = False
        elif c == "\\":
            escaped = True
        elif c == ",":
            out.append(text[start:i])
            start = i + 1
    return [*out, text[start:]]


def _term(part: str, text: str) -> Term:
    for i, c in enumerate(part):
        if c == "!" and part.startswith("!=", i):
            return Term(part[:i], False, unescape(part[i + 2 :]))
        if c == "=":
            width = 2 if part.startswith("==", i) else 1
            return Term(part[:i], True, unescape(part[i + width :]))
    raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")


def _parse(text: str) -> Selector:
    """A term of nothing (``=``) restricts nothing, as in Kubernetes."""
    terms = (_term(part, text) for part in sorted(_split(text)) if part)
    return Selector(tuple(term for term in terms if term.field or term.value))


_parse_cached = functools.lru_cache(maxsize=_PARSED_MAX)(_parse)


def parse(text: str) -> Selector:
    """The selector of a text; ``SelectorError`` where it does not parse."""
    if not text:
        return EVERYTHING
    return _parse_cached(text) if len(text) <= _PARSED_TEXT_MAX else _parse(text)
