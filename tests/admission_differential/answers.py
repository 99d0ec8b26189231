"""What is compared of an answer: status, reason, message, causes; of an object all that no two servers must differ in."""

from __future__ import annotations

import re
from typing import Any

_VOLUME = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
_RECORD = re.compile(r"\((\d+)\)\. The object might have been modified")
#: what has changed is shown as Go values by the real server
_CHANGES = re.compile(r"(:\s+&core\.|\n).*", re.DOTALL)
_GENERATED = re.compile(r"\b(generated-)[a-z0-9]{5}\b")
#: which address is free is each server's own affair, and which uid an account of the token file has
_ALLOCATED = ("clusterIP", "clusterIPs", "uid")
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "deletionGracePeriodSeconds")


def compared(status: int, body: Any) -> dict[str, Any]:
    """Null, empty and missing are the same in an object; names that were made up are told alike."""
    if not isinstance(body, dict):
        return {"status": status}
    found: dict[str, Any] = {"status": status}
    if body.get("kind") == "Status":
        found["reason"] = body.get("reason", "")
        found["message"] = body.get("message", "")
        if causes := (body.get("details") or {}).get("causes"):
            found["causes"] = causes
    else:
        kept = {key: value for key, value in body.items() if key not in ("metadata", "apiVersion", "kind")}
        metadata = body.get("metadata") or {}
        if isinstance(spec := kept.get("spec"), dict):
            kept["spec"] = {key: value for key, value in spec.items() if key not in _ALLOCATED}
        kept |= {key: metadata[key] for key in _METADATA if key in metadata}
        found["object"] = _without_nothing(kept)
    told: dict[str, Any] = _alike(found)
    return told


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {key: _without_nothing(one) for key, one in value.items()}
        return {key: one for key, one in inner.items() if one is not None and one not in ({}, [], "")}
    if isinstance(value, list):
        return [_without_nothing(one) for one in value]
    return value


def _alike(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _alike(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_alike(one) for one in value]
    if isinstance(value, str):
        told = _CHANGES.sub("", _RECORD.sub("(<version>). The object might have been modified", _TIME.sub("<time>", value)))
        return _GENERATED.sub(r"\1<name>", _UID.sub("<uid>", _VOLUME.sub("kube-api-access-<name>", told)))
    return value
