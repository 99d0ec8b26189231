"""Datadriven tests: a text file of commands and what they print.

    # a comment
    command argument key=value key=(a,b)
    more input lines
    ----
    expected output

A case ends with an empty line after its output; output that holds empty lines stands between two lines ``----`` at each end.
``pytest --rewrite`` writes what is printed now into the files; read the diff before committing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_SEPARATOR = "----"
_ARGUMENT = re.compile(r"(?P<key>[\w.-]+)(?:=(?P<value>\([^)]*\)|\S+))?")


@dataclass(kw_only=True)
class Case:
    """One command. ``arguments`` maps a key to its values, none for a bare word."""

    command: str
    arguments: dict[str, list[str]] = field(default_factory=dict)
    input: str = ""
    expected: str = ""
    line: int = 0

    def words(self) -> list[str]:
        """The bare words, in order."""
        return [key for key, values in self.arguments.items() if not values]

    def integer(self, key: str, default: int | None = None) -> int:
        if key not in self.arguments:
            assert default is not None, f"line {self.line}: {self.command} needs {key}="
            return default
        return int(self.arguments[key][0])

    def integers(self, key: str) -> list[int]:
        return [int(value) for value in self.arguments.get(key, [])]


@dataclass(kw_only=True)
class _Piece:
    """Text that is kept as it is, and the case after it."""

    text: str
    header: str = ""
    case: Case | None = None


def run(path: Path, handle: Callable[[Case], str], *, rewrite: bool) -> None:
    """Run the cases of a file in order. Raises AssertionError at the first that prints something else, unless ``rewrite``."""
    pieces = _parse(path.read_text(encoding="utf-8"))
    out: list[str] = []
    for piece in pieces:
        out.append(piece.text)
        if piece.case is None:
            continue
        actual = handle(piece.case).rstrip("\n")
        if not rewrite:
            assert actual == piece.case.expected, (
                f"{path}:{piece.case.line}: {piece.case.command}\nexpected:\n{piece.case.expected}\nactual:\n{actual}"
            )
        out.append(piece.header + _format_output(actual))
    if rewrite:
        path.write_text("".join(out), encoding="utf-8")


def _format_output(output: str) -> str:
    if not output:
        return f"{_SEPARATOR}\n"
    if "\n\n" in output:
        return f"{_SEPARATOR}\n{_SEPARATOR}\n{output}\n{_SEPARATOR}\n{_SEPARATOR}\n"
    return f"{_SEPARATOR}\n{output}\n"


def _parse(text: str) -> list[_Piece]:
    lines = text.splitlines(keepends=True)
    pieces: list[_Piece] = []
    kept: list[str] = []
    at = 0
    while at < len(lines):
        stripped = lines[at].strip()
        if not stripped or stripped.startswith("#"):
            kept.append(lines[at])
            at += 1
            continue
        start = at
        while at < len(lines) and lines[at].strip() != _SEPARATOR:
            at += 1
        assert at < len(lines), f"line {start + 1}: no {_SEPARATOR} after the command"
        header = lines[start:at]
        at += 1
        expected: list[str] = []
        if at < len(lines) and lines[at].strip() == _SEPARATOR:
            at += 1
            while [line.strip() for line in lines[at : at + 2]] != [_SEPARATOR, _SEPARATOR]:
                expected.append(lines[at])
                at += 1
            at += 2
        else:
            while at < len(lines) and lines[at].strip():
                expected.append(lines[at])
                at += 1
        command, _, rest = stripped.partition(" ")
        arguments: dict[str, list[str]] = {}
        for match in _ARGUMENT.finditer(rest):
            value = match["value"]
            arguments[match["key"]] = [] if value is None else [part.strip() for part in value.strip("()").split(",")]
        case = Case(
            command=command, arguments=arguments, input="".join(header[1:]), expected="".join(expected).rstrip("\n"), line=start + 1
        )
        pieces.append(_Piece(text="".join(kept), header="".join(header), case=case))
        kept = []
    pieces.append(_Piece(text="".join(kept)))
    return pieces
