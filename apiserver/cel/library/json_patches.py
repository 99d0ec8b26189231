"""`jsonpatch.escapeKey(text)`: a key as a step of a JSON pointer. Kubernetes gives it to mutating admission policies."""

from __future__ import annotations

from apiserver.cel.declarations import Overload, overload

_STEPS = str.maketrans({"/": "~1", "~": "~0"})


def overloads() -> list[Overload]:
    """The function; the environment of mutations asks for it."""
    return [overload("string_jsonpatch_escapeKey_string jsonpatch.escapeKey(string): string", lambda key: key.translate(_STEPS))]
