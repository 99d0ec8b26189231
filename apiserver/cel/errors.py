"""The three ways a CEL expression fails, all below `CelError`.

CelError
├── CompileError        the source is wrong: syntax, names, types (`issues` tells where)
├── EvaluationError     this input makes the program fail: "no such key: x", "division by zero", …
└── CostExceededError   the work would go over the budget
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_ISSUES_MAX = 100  # cel-go reports the first hundred and counts the rest
_SNIPPET_LENGTH_MAX = 16_384  # a longer line is not repeated below its error


class CelError(Exception):
    """Whatever CEL refuses."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault of a source text; `line` counts from 1 and `column` from 0, in code points; both are -1 where there is no place."""

    line: int
    column: int
    message: str


class CompileError(CelError):
    """A source that is no program. `str()` has the form of cel-go: each issue with its line and a marker below its column."""

    def __init__(self, issues: Sequence[Issue], source: str) -> None:
        self.issues = tuple(sorted(issues, key=lambda issue: (issue.line, issue.column)))
        self.source = source
        super().__init__(_display(self.issues, source))


class ProgramError(CompileError):
    """A source that checks but whose constants cannot be computed: `int('x')`. cel-go tells this when it builds the program."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__((Issue(-1, -1, message),), source)
        self.args = (message,)


class EvaluationError(CelError):
    """A program that fails on its input."""


class CostExceededError(CelError):
    """A program that was stopped because its cost went over the budget."""

    def __init__(self, message: str = "operation cancelled: actual cost limit exceeded") -> None:
        super().__init__(message)


def _display(issues: Sequence[Issue], source: str) -> str:
    lines = source.split("\n")
    texts = [_display_issue(issue, lines) for issue in issues[:_ISSUES_MAX]]
    if len(issues) > _ISSUES_MAX:
        texts.append(f"{len(issues) - _ISSUES_MAX} more errors were truncated")
    return "\n".join(texts)


def _display_issue(issue: Issue, lines: Sequence[str]) -> str:
    text = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
    if not 1 <= issue.line <= len(lines):
        return text
    line = lines[issue.line - 1].replace("\t", " ")
    if len(line.encode("utf-8", "surrogatepass")) > _SNIPPET_LENGTH_MAX:
        return text
    dots = "".join("．" if ord(char) > 127 else "." for char in line[: issue.column])
    wide = issue.column < len(line) and ord(line[issue.column]) > 127
    return f"{text}\n | {line}\n | {dots}{'＾' if wide else '^'}"
