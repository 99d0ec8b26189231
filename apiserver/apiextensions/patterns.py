"""``pattern`` of schemas, with the meaning it has in Go (RE2): found anywhere in the text, in time linear in it.

google-re2 is RE2 itself; jsonschema-rs brings another linear engine that answers in a tenth of the time and means the same by most
patterns. ``for_json_schema`` rewrites those for it and answers None for the rest.
"""

from __future__ import annotations

import functools
import re
from typing import Any

#: compiled patterns that are kept: those of some hundred definitions in use
_KEPT_MAX = 2048

#: what RE2 calls a fault, and what Go's regexp does
_GO_WORDS = (
    ("missing )", "missing closing )"),
    ("missing ]", "missing closing ]"),
    ("unexpected )", "unexpected )"),
    ("invalid repetition size", "invalid repeat count"),
    ("bad repetition operator", "invalid nested repetition operator"),
    ("no argument for repetition operator", "missing argument to repetition operator"),
    ("invalid escape sequence", "invalid escape sequence"),
    ("invalid character class range", "invalid character class range"),
    ("invalid character class", "invalid character class"),
    ("invalid perl operator", "invalid or unsupported Perl syntax"),
    ("invalid named capture group", "invalid named capture"),
    ("duplicate capture group name", "duplicate capture group name"),
    ("trailing \\", "trailing backslash at end of expression"),
    ("invalid UTF-8", "invalid UTF-8"),
    ("pattern too large", "expression too large"),
)


@functools.lru_cache(maxsize=_KEPT_MAX)
def _compiled(pattern: str) -> Any:
    import re2  # only where a schema has patterns that the other engine does not know, or a value has failed

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


@functools.lru_cache(maxsize=_KEPT_MAX)
def fault(pattern: str) -> str:
    """Why a pattern is none, as Go's regexp says it; "" for a good one."""
    if wrong := _only_in_go(pattern):
        return f"error parsing regexp: {wrong}"
    import re2

    try:
        _compiled(pattern)
    except re2.error as error:
        said = error.args[0]
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        what, _, where = text.partition(": ")
        for ours, theirs in _GO_WORDS:
            if what.startswith(ours):
                closes = theirs.startswith(("missing closing )", "unexpected )"))
                shown = pattern if closes else where
                return f"error parsing regexp: {theirs}: `{shown}`" if shown else f"error parsing regexp: {theirs}: ``"
        return f"error parsing regexp: {text}"
    return ""


#: what RE2 reads otherwise than Go does, and what hides it: quoted text, other escapes, classes
_UNLIKE = re.compile(
    r"""\\Q.*?(?:\\E|$)
      |(?P<byte>\\C)
      |(?P<code>\\x\{[0-9A-Fa-f]*$)
      |\\.
      |\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]
      |\(\?P?<(?P<name>[^>]*)(?P<named>>?)
      |(?P<repeat>\{(?P<least>[0-9]+)(?:,(?P<most>[0-9]*))?\}\??)
    """,
    re.VERBOSE | re.DOTALL,
)
_CAPTURE = re.compile("[A-Za-z0-9_]+").fullmatch
#: RE2 takes a greater number for a text of its own
_REPEAT_READ_MAX = 10**8


def _only_in_go(pattern: str) -> str:
    """What Go's regexp has against a pattern that RE2 lets pass or words otherwise; "" where they agree."""
    for token in _UNLIKE.finditer(pattern):
        if token["byte"] or token["code"]:
            return f"invalid escape sequence: `{token[0]}`"
        if token["name"] is not None:
            if not token["named"] and not token["name"]:
                continue  # the end, before a name: no capture to Go, and worded alike
            if not token["named"]:
                return f"invalid named capture: `{pattern[token.start() :]}`"
            if not _CAPTURE(token["name"]):
                return f"invalid named capture: `{token[0]}`"
        if token["repeat"] and any(int(bound) >= _REPEAT_READ_MAX for bound in (token["least"], token["most"]) if bound):
            return f"invalid repeat count: `{token[0].removesuffix('?')}`"
    return ""


def matches(pattern: str, text: str) -> bool:
    """``fault(pattern)`` must be ""."""
    return _compiled(pattern).search(text) is not None


_TOKEN = re.compile(
    r"""(?P<escape>\\[dDwWsSntrf])
      |(?P<literal>\\[!-/:-@\[-`{-~])
      |(?P<group>\(\?:|\((?!\?)|\))
      |(?P<repeat>[*+?]\??|\{[0-9]+(?:,[0-9]*)?\}\??)
      |(?P<class>\[\^?\]?(?:[^\]\\\[]|\\[!-/:-@\[-`{-~]|\\[dwsntrf])+\])
      |(?P<plain>[.^$|]|[^\\()\[\]{}*+?])
    """,
    re.VERBOSE,
)
_SPACES = {"\\s": r"\t\n\f\r ", "\\S": r"^\t\n\f\r "}


@functools.lru_cache(maxsize=_KEPT_MAX)
def for_json_schema(pattern: str) -> str | None:
    """The same pattern for jsonschema-rs' linear engine, where it surely means the same; None where that is not sure."""
    if not pattern.isascii():
        return None
    out = []
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            return None
        text = token[0]
        if token["class"]:
            if "&&" in text or "--" in text or "~~" in text:
                return None  # operators between sets in the other engine
            text = text.replace("\\s", _SPACES["\\s"])
        elif text in _SPACES:
            text = f"[{_SPACES[text]}]"
        out.append(text)
        position = token.end()
    return "".join(out)
