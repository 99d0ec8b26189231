"""Regular expressions as Go reads them (RE2): linear in the text, with Go's words for faults. google-re2 is loaded when first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from apiserver.cel.errors import EvaluationError

_KEPT_MAX = 1024  # compiled patterns; one that a program computes anew each time must not fill the memory
_PATTERN_LENGTH_MAX = 100_000
_MEMORY_MAX = 8 << 20  # bytes that one compiled pattern may take; RE2 refuses bigger ones


@lru_cache(maxsize=_KEPT_MAX)
def compiled(pattern: str) -> Any:
    """RE2's object for a pattern.

    Raises:
        EvaluationError: with Go's words for a pattern that is none.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_MAX
    if len(pattern) > _PATTERN_LENGTH_MAX:
        raise EvaluationError("error parsing regexp: expression too large")
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError):
        raise EvaluationError(fault(pattern) or "error parsing regexp") from None


_COMPILATION_WORK = 100_000  # about what compiling a pattern takes, in touched characters (`budget.WORK_MAX`)
_known: dict[str, None] = {}


def work_of(pattern: str) -> int:
    """The work that a computed pattern adds: nothing if it was seen before. Compiling takes long beside its cost in CEL."""
    if pattern in _known:
        return 0
    if len(_known) >= _KEPT_MAX:
        _known.clear()
    _known[pattern] = None
    return _COMPILATION_WORK


def searcher(pattern: str) -> Callable[[str], bool]:
    """A test whether a text has a place that the pattern fits."""
    search = compiled(pattern).search
    return lambda text: search(text) is not None


def fault(pattern: str) -> str:
    """Why a pattern is none, in Go's words; "" for a good one."""
    from apiserver.apiextensions import patterns

    return patterns.fault(pattern)
