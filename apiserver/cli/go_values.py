"""Values of flags as Go's flag packages take them, which people's manifests and scripts rely on. Pure."""

from __future__ import annotations

import argparse
from typing import Any

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def boolean(text: str) -> bool:
    """As ``strconv.ParseBool``. Raises ArgumentTypeError in its words."""
    if text not in _TRUE | _FALSE:
        raise argparse.ArgumentTypeError(f'strconv.ParseBool: parsing "{text}": invalid syntax')
    return text in _TRUE


def switch(text: str) -> str:
    """``true`` or ``false``, for flags that argparse shows with these choices."""
    return "true" if boolean(text) else "false"


class Accumulate(argparse.Action):
    """A list or a map whose flag may come several times: the first time it takes the default's place, then values are added."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        given = f"_{self.dest}_given"
        before = getattr(namespace, self.dest) if getattr(namespace, given, False) else None
        setattr(namespace, given, True)
        if before is None:
            merged = values
        elif isinstance(values, str):
            merged = f"{before},{values}"
        else:
            merged = {**before, **values} if isinstance(values, dict) else (*before, *values)
        setattr(namespace, self.dest, merged)
