"""Names of JSON properties in expressions: what is no CEL identifier is escaped as Kubernetes does (`__dot__`, `__namespace__`, …)."""

from __future__ import annotations

import re
from functools import lru_cache

_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPES = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_ESCAPABLE = re.compile(r"[a-zA-Z_.\-/][a-zA-Z0-9_.\-/]*").fullmatch
_TO_ESCAPE = re.compile(r"__|[.\-/]")
_ESCAPED = re.compile(r"__([^_]+)__")


def escape(name: str) -> str | None:
    """The identifier that stands for a property; None for a name that none can stand for, as it has other characters."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _ESCAPABLE(name):
        return None
    return _TO_ESCAPE.sub(lambda found: _ESCAPES[found.group()], name)


def unescape(identifier: str) -> str | None:
    """The property that an identifier stands for; None for one that no property is escaped to."""
    if "__" not in identifier:
        return identifier
    known = True

    def plain(found: re.Match[str]) -> str:
        nonlocal known
        inner = found[1]
        if inner in _UNESCAPES:
            return _UNESCAPES[inner]
        known = known and inner in _RESERVED and found.group() == identifier
        return inner

    text = _ESCAPED.sub(plain, identifier)
    return text if known else None


@lru_cache(maxsize=4096)
def json_name(identifier: str) -> str:
    """The key in JSON of a field by its name in expressions."""
    found = unescape(identifier)
    return identifier if found is None else found
