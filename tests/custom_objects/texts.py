"""JSON texts from values, with numbers as they are to be written and with fields repeated."""

from __future__ import annotations

import json
import random
from typing import Any


class Raw(str):
    """Written as it is."""

    __slots__ = ()


def written(value: Any, source: random.Random | None = None, repeat: float = 0.0, escape: bool = True) -> str:
    """JSON; with ``source`` each field is repeated with the probability ``repeat``, with its own value or another one."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        parts = []
        for name, inner in value.items():
            field = json.dumps(name, ensure_ascii=escape)
            parts.append(f"{field}:{written(inner, source, repeat, escape)}")
            if source is not None and source.random() < repeat:
                other = written(source.choice((inner, None, 1, "again", {"q": 1})), source, 0, escape)
                parts.insert(source.randrange(len(parts) + 1), f"{field}:{other}")
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(item, source, repeat, escape) for item in value) + "]"
    return json.dumps(value, ensure_ascii=escape)
