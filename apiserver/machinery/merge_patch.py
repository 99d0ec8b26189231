"""JSON Merge Patch (RFC 7386): members of objects are merged, null removes a member, everything else replaces."""

from __future__ import annotations

from typing import Any

from apiserver.machinery import go_json, status


def apply(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """``document`` after ``patch``, which must be an object (``StatusError`` 400). Neither is changed; the result shares with them
    what it can."""
    if not isinstance(patch, dict):
        kind = go_json.kind_of(patch)
        raise status.bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
    return _merge(document, patch)


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    out = dict(document)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            current = out.get(key)
            out[key] = _merge(current, value) if isinstance(current, dict) else _merge({}, value)
        elif isinstance(value, list):
            out[key] = _without_nulls(value)
        else:
            out[key] = value
    return out


def _without_nulls(items: list[Any]) -> list[Any]:
    """A list replaces as it is, except that objects in it lose their null members, as all that a merge patch adds does."""
    out = []
    for item in items:
        if isinstance(item, dict):
            item = _merge({}, item)
        elif isinstance(item, list):
            item = _without_nulls(item)
        out.append(item)
    return out
