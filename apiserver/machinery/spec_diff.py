"""What changed between two objects, for the messages of refused updates."""

from __future__ import annotations

import json
from typing import Any

#: a message shows so many changed fields and no more, so that a wholly different spec does not fill the answer
_LINES_MAX = 20


def describe(old: Any, new: Any) -> str:
    """One pair of lines a changed field: ``-`` with the old value, ``+`` with the new one."""
    lines: list[str] = []
    _walk(old, new, "", lines)
    shown = lines[: 2 * _LINES_MAX]
    return "\n".join(shown) + ("\n" if shown else "")


def _walk(old: Any, new: Any, path: str, lines: list[str]) -> None:
    if old == new or (old in (None, [], {}) and new in (None, [], {})):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            _walk(old.get(key), new.get(key), f"{path}.{key}" if path else key, lines)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (was, now) in enumerate(zip(old, new)):
            _walk(was, now, f"{path}[{i}]", lines)
    else:
        lines.append(f"- {path}: {json.dumps(old)}")
        lines.append(f"+ {path}: {json.dumps(new)}")
