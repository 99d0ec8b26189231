"""StorageVersionMigrations (storagemigration ``validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.machinery.field_errors import FieldError, invalid, required
from apiserver.registry.validation import conditions
from apiserver.registry.validation.common import IMMUTABLE, NEGATIVE, Errors

Part = Mapping[str, Any]

_NOTHING: Part = {}


def migration(obj: Part) -> list[FieldError]:
    resource = (obj.get("spec") or _NOTHING).get("resource") or _NOTHING
    needed = ["resource", "version"] if "version" in resource else ["resource"]
    return [required(f"spec.resource.{field}", f"{field} is required") for field in needed if not resource.get(field)]


def update(new: Part, old: Part) -> list[FieldError]:
    out = migration(new)
    now, was = ((obj.get("spec") or _NOTHING).get("resource") or _NOTHING for obj in (new, old))
    for field in ("group", "version", "resource"):
        if (now.get(field) or "") != (was.get(field) or ""):
            out.append(invalid(field, now.get(field) or "", IMMUTABLE))
    return out


def status_update(new: Part, old: Part) -> list[FieldError]:
    """A migration ends once, in success or in failure, and then runs no more."""
    out: Errors = []
    status, was = new.get("status") or _NOTHING, old.get("status") or _NOTHING
    version, before = status.get("resourceVersion") or "", was.get("resourceVersion") or ""
    path = "status.resourceVersion"
    if version and not version.removeprefix("-").isdecimal():
        words = f'failed to parse resource version "{version}": strconv.ParseInt: parsing "{version}": invalid syntax'
        out.append(invalid(path, version, words))
    elif version.startswith("-"):
        out.append(invalid(path, int(version), NEGATIVE))
    found = status.get("conditions") or ()
    conditions.conditions(out, "status.conditions", found)
    if before and version != before:
        out.append(invalid(path, version, "resourceVersion cannot be updated"))
    true = {c.get("type") for c in found if c.get("status") == "True"}
    was_true = {c.get("type") for c in was.get("conditions") or () if c.get("status") == "True"}
    refusals = []
    if {"Succeeded", "Failed"} <= true:
        refusals.append("Both success and failed conditions cannot be true at the same time")
    for kind, word in (("Succeeded", "success"), ("Failed", "failed")):
        if {kind, "Running"} <= true:
            refusals.append(f"Running condition cannot be true when {word} condition is true")
    for kind, word in (("Succeeded", "Success"), ("Failed", "Failed")):
        if kind in was_true and kind not in true:
            refusals.append(f"{word} condition cannot be set to false once it is true")
    out += [invalid("status.conditions", list(found), words) for words in refusals]
    return out
