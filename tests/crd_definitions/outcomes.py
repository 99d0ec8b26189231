"""Answers in the form in which they are compared: without what no two servers have alike."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.crd_definitions.exchange import Reply

#: where a Go value lies in memory, as ``%#v`` shows it, and names of types that are made up anew each time
_ACCIDENTAL = re.compile(r"0xc[0-9a-f]{6,}|selfType\d+")
_NOW = re.compile(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
_TIMES = {"creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time"}


def causes(reply: Reply) -> list[Any]:
    body = reply.body
    return ((body.get("details") or {}).get("causes") or []) if isinstance(body, dict) and body.get("kind") == "Status" else []


def of(reply: Reply) -> dict[str, Any]:
    body = _plain(copy.deepcopy(reply.body))
    found: dict[str, Any] = {"code": reply.code, "body": body}
    if reply.warnings:
        found["warnings"] = [_ACCIDENTAL.sub("<any>", warning) for warning in reply.warnings]
    several = causes(reply)
    if len(several) > 1:
        # the causes say it again
        body["message"] = body["message"].partition(": [")[0]
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _ACCIDENTAL.sub("<any>", value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, one in value.items():
        if name in _TIMES and isinstance(one, str):
            found[name] = "<time>"
        elif name in ("uid", "resourceVersion") and isinstance(one, str) and one:
            found[name] = f"<{name}>"
        elif name == "managedFields" and isinstance(one, list):
            # they are ordered by time, of which a second may have passed
            found[name] = sorted(
                (_plain(entry) for entry in one), key=lambda entry: (entry.get("manager", ""), entry.get("subresource", ""))
            )
        elif name == "cells":
            found[name] = ["<time>" if isinstance(cell, str) and _NOW.match(cell) else cell for cell in one]
        else:
            found[name] = _plain(one)
    return found


def unordered(shown: dict[str, Any]) -> dict[str, Any]:
    """The outcome with causes in one order; those that come twice once."""
    body = shown["body"]
    found = {name: one for name, one in shown.items() if name != "any_order"}
    if isinstance(body, dict) and body.get("kind") == "Status" and (body.get("details") or {}).get("causes"):
        known = {(one.get("field", ""), one.get("reason", ""), one.get("message", "")): one for one in body["details"]["causes"]}
        found["body"] = {**body, "details": {**body["details"], "causes": [known[at] for at in sorted(known)]}}
    if "warnings" in shown:
        found["warnings"] = sorted(shown["warnings"])
    return found


def differ(theirs: list[Any], ours: list[Any]) -> list[tuple[int, Any, Any]]:
    """The steps in which they do, with both outcomes."""
    found = []
    for position, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        if their.get("unsteady"):
            continue
        if their.get("any_order"):
            their, our = unordered(their), unordered(our)
        if their != our:
            found.append((position, their, our))
    return found
