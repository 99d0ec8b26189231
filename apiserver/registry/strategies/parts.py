"""What several strategies do alike."""

from __future__ import annotations

from typing import Any

from apiserver.machinery.objects import Object


def keep(new: Object, old: Object, *fields: str) -> None:
    """Give ``new`` the old values of these fields: none where the old object had none."""
    for field in fields:
        if field in old:
            new[field] = old[field]
        else:
            new.pop(field, None)


def text(value: Any) -> str:
    """A field's value as a field selector compares it; "" for what is missing."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    return "" if value is None else str(value)


def local_condition(now: str) -> Object:
    """Of an APIService without a service: this server serves it."""
    return {
        "type": "Available",
        "status": "True",
        "reason": "Local",
        "message": "Local APIServices are always available",
        "lastTransitionTime": now,
    }
