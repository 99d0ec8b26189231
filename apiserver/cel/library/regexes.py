"""`find` and `findAll`: what a regular expression finds in a text (Kubernetes' library/regex.go)."""

from __future__ import annotations

from typing import Any

from apiserver.cel import regex
from apiserver.cel.declarations import Overload, overload
from apiserver.cel.errors import EvaluationError


def _compiled(pattern: str) -> Any:
    try:
        return regex.compiled(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found.group() if found is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """The first `limit` matches, or all of them; an empty match right after another one does not count, as in Go."""
    search = _compiled(pattern).search
    found: list[str] = []
    position, end_before = 0, -1
    while position <= len(text) and (limit < 0 or len(found) < limit):
        match = search(text, position)
        if match is None:
            break
        start, end = match.span()
        if start == end:
            if start != end_before:
                found.append("")
            position = end + 1
        else:
            found.append(match.group())
            position = end
        end_before = end
    return found


def overloads(minor: int) -> list[Overload]:
    """The functions; all versions have them."""
    return [
        overload("string_find_string string.find(string): string", find),
        overload("string_find_all_string string.findAll(string): list(string)", find_all),
        overload("string_find_all_string_int string.findAll(string, int): list(string)", find_all),
    ]
