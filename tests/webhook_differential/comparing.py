"""What was recorded, and where two tellings of a story differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.webhook_differential import conversions
from tests.webhook_differential.world import Story

STORIES: dict[str, tuple[Story, ...]] = {"conversion": conversions.STORIES}
_FILES = {"conversion": "recorded-crd-1.36.json", "admission": "recorded-1.20.json"}
#: the release that answers as what was recorded, or as near to it as there is
RELEASES = {"conversion": "1.36", "admission": "1.25"}


def file_of(area: str) -> Path:
    return Path(__file__).parent / _FILES[area]


def recorded(area: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file_of(area).read_text())
    return found


def differences(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """One line for each place where two values differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from differences(theirs.get(key), ours.get(key), f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for position, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            did = f"({one['did']})" if isinstance(one, dict) and "did" in one else ""
            yield from differences(one, other, f"{path}[{position}]{did}")
    elif theirs != ours:
        yield f"{path}\n    theirs {json.dumps(theirs, ensure_ascii=False)}\n    ours   {json.dumps(ours, ensure_ascii=False)}"
