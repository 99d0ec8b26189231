"""How much text the expressions of a policy or webhook configuration have. Compiling takes some 5 µs a character: what is long is compiled
beside the loop (``apiserver.long_runs``), so that one policy with ten thousand validations keeps nobody else waiting."""

from __future__ import annotations

from typing import Any

from apiserver.long_runs import LongRunError

#: of all expressions of one object that are compiled on the loop, about a twentieth of a second of work
INLINE_CHARACTERS_MAX = 10_000
_NAMES = frozenset(("expression", "messageExpression", "valueExpression"))


def characters(value: Any) -> int:
    """Of all expressions anywhere in a decoded object."""
    if isinstance(value, dict):
        return sum(len(inner) if name in _NAMES and isinstance(inner, str) else characters(inner) for name, inner in value.items())
    return sum(map(characters, value)) if isinstance(value, list) else 0


def check_patience(value: Any, *, patient: bool) -> None:
    """Raises LongRunError where compiling would take long and the caller is not ``patient``."""
    if not patient and characters(value) > INLINE_CHARACTERS_MAX:
        raise LongRunError()
