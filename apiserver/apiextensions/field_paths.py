"""Paths to fields of a schema, as CEL rules (``fieldPath``) and selectable fields name them: ``.spec.color``, ``.spec['x.y']``
(apiextensions-apiserver ``schema/cel/validation.go``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apiserver.apiextensions.nodes import Node

_DELIMITERS = ".[]"
_ESCAPES = {"\\'": "'", "\\\\": "\\"}


class FieldPathError(ValueError):
    """The text says what is wrong with the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundField:
    """``text`` is the path as field errors spell it; ``node`` is None where a map takes any value."""

    text: str
    root: str
    node: Node | None


def resolve(path: str, node: Node, *, brackets: bool = True) -> FoundField:
    """Raises FieldPathError. ``brackets``: whether ``['name']`` may stand for ``.name``."""
    text, root = "", ""
    current: Node | None = node
    tokens = _tokens(path)
    for token in tokens:
        if token == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            name = _unquoted(_next(tokens))
        elif token == ".":
            name = _next(tokens)
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
        if current is None:
            raise FieldPathError("does not refer to a valid field")
        if current.properties:
            text = f"{text}.{name}" if text else name
            if name not in current.properties:
                raise FieldPathError("does not refer to a valid field")
            current = current.properties[name]
        elif current.has_additional:
            text = f"{text}[{name}]"
            current = current.additional
        else:
            raise FieldPathError("does not refer to a valid field")
        root = root or text
        if token == "[":
            closing = _next(tokens)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
    return FoundField(text=text, root=root, node=current)


def _tokens(path: str) -> Iterator[str]:
    """Delimiters, and what is between them; a quoted text is one token."""
    position = 0
    while position < len(path):
        end = position
        if path[position] in _DELIMITERS:
            end = position + 1
        elif path[position] == "'":
            end = position + 1
            while end < len(path) and not (path[end] == "'" and path[end - 1] != "\\"):
                end += 1
            end = min(end + 1, len(path))
        else:
            while end < len(path) and path[end] not in _DELIMITERS:
                end += 1
        yield path[position:end]
        position = end


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return token


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    out, position, inside = [], 0, token[1:-1]
    while position < len(inside):
        pair = inside[position : position + 2]
        if inside[position] == "\\":
            if pair not in _ESCAPES:
                raise FieldPathError(f"invalid string literal: invalid escape sequence: {pair}")
            out.append(_ESCAPES[pair])
            position += 2
        else:
            out.append(inside[position])
            position += 1
    return "".join(out)
