"""The words of a CEL source: one regular expression cuts them; string literals are decoded here."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = (
    r'[rR]"""(?s:.)*?"""|[rR]\'\'\'(?s:.)*?\'\'\'|[rR]"[^"\n\r]*"|[rR]\'[^\'\n\r]*\''
    rf'|"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r])*\"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
)
_TOKEN = re.compile(
    rf"""
    (?P<SPACE>[\t\ \r\n\f]+|//[^\n]*)
  | (?P<BYTES>[bB](?:{_STRING.replace(" ", "[ ]").replace("#", "[#]")}))
  | (?P<STRING>{_STRING.replace(" ", "[ ]").replace("#", "[#]")})
  | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<OPERATOR>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPES = re.compile(r"\\(?:([xX])([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A word: for operators and keywords `kind` is the text itself."""

    kind: str
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class LexicalFault:
    """Characters that begin no word."""

    text: str
    offset: int


END = "<EOF>"


def tokenize(source: str) -> tuple[list[Token], list[LexicalFault]]:
    """Cut a source into words (the last one is the end of the input) and the characters that fit nowhere."""
    tokens: list[Token] = []
    faults: list[LexicalFault] = []
    position, end = 0, len(source)
    match = _TOKEN.match
    while position < end:
        found = match(source, position)
        if found is None:
            stop = _fault_end(source, position)
            faults.append(LexicalFault(source[position:stop], position))
            position = stop
            continue
        kind = found.lastgroup
        assert kind is not None
        position = found.end()
        if kind == "SPACE":
            continue
        text = found.group()
        if kind == "OPERATOR" or text in _KEYWORDS:
            kind = text
        tokens.append(Token(kind, text, found.start()))
    tokens.append(Token(END, END, end))
    return tokens, faults


_ESCAPE_AT = re.compile(_ESCAPE).match
_ESCAPE_START = re.compile(r"\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?").match


def _fault_end(source: str, position: int) -> int:
    """Where the characters that begin no word end: behind the one with which ANTLR's lexer gives up, which it skips with them."""
    first = source[position]
    index = position + 1
    if first in "\"'":
        while index < len(source) and source[index] not in "\n\r":
            if source[index] == "\\":
                whole = _ESCAPE_AT(source, index)
                if whole is None:
                    begun = _ESCAPE_START(source, index)
                    assert begun is not None
                    index = begun.end()
                    break
                index = whole.end()
            else:
                index += 1
    elif first == "`":
        while index < len(source) and (source[index].isalnum() or source[index] in "_.-/ ") and source[index].isascii():
            index += 1
    elif first not in "=&|":
        return index
    return min(index + 1, len(source))


class UnescapeError(ValueError):
    """A literal whose escapes name no character."""


def unquote(text: str, is_bytes: bool) -> str:
    """The characters of a string literal; for bytes, escapes of bytes come as code points 0 to 255 marked by `unquote_bytes`."""
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    return _ESCAPES.sub(_unescape_text, body)


def unquote_bytes(text: str) -> bytes:
    """The bytes of a bytes literal (`text` without its `b`): characters as UTF-8, `\\x` and octal escapes as themselves."""
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    out = bytearray()
    position = 0
    for found in _ESCAPES.finditer(body):
        out += body[position : found.start()].encode("utf-8", "surrogatepass")
        position = found.end()
        if found.group(2):
            out.append(int(found.group(2), 16))
        elif found.group(5):
            out.append(int(found.group(5), 8))
        elif found.group(6) in _SIMPLE_ESCAPES:
            out += _SIMPLE_ESCAPES[found.group(6)].encode()
        else:
            raise UnescapeError("unable to unescape string")
    return bytes(out + body[position:].encode("utf-8", "surrogatepass"))


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width], raw


def _unescape_text(found: re.Match[str]) -> str:
    digits = found.group(2) or found.group(3) or found.group(4)
    if digits is not None:
        code = int(digits, 16)
    elif found.group(5) is not None:
        code = int(found.group(5), 8)
    elif found.group(6) in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[found.group(6)]
    else:
        raise UnescapeError("unable to unescape string")
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise UnescapeError("invalid unicode code point")
    return chr(code)
