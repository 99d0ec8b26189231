"""What a migration says of itself, and what is sent to migrate an object. Pure."""

from __future__ import annotations

from typing import Any

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.resources import Resource

RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"
_REASONS = {
    RUNNING: "StorageVersionMigrationInProgress",
    SUCCEEDED: "StorageVersionMigrationSucceeded",
    FAILED: "StorageVersionMigrationFailed",
}


def is_over(migration: Object) -> bool:
    """A migration ends once."""
    found = objects.get(migration, "status", "conditions", default=())
    return any(c.get("type") in (SUCCEEDED, FAILED) and c.get("status") == "True" for c in found)


def group_and_plural(migration: Object) -> tuple[str, str]:
    said = objects.get(migration, "spec", "resource", default={})
    return said.get("group") or "", said.get("resource") or ""


def with_condition(migration: Object, type: str, message: str, now: str, resource_version: str = "") -> Object:
    """The migration with a condition that is true; one that is over runs no more. ``resource_version``: of the state that is migrated."""
    status = dict(migration.get("status") or {})
    before = {c.get("type"): c for c in status.get("conditions") or ()}
    wanted: dict[str, Any] = {type: _condition(before.get(type), type, "True", _REASONS[type], message, now)}
    if type != RUNNING and RUNNING in before:
        wanted[RUNNING] = _condition(before[RUNNING], RUNNING, "False", before[RUNNING].get("reason") or _REASONS[RUNNING], "", now)
    status["conditions"] = [wanted.pop(name, c) for name, c in before.items()] + list(wanted.values())
    if resource_version:
        status["resourceVersion"] = resource_version
    return {**migration, "status": status}


def _condition(before: Any, type: str, status: str, reason: str, message: str, now: str) -> Object:
    since = before["lastTransitionTime"] if before is not None and before.get("status") == status else now
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def is_newer(version: str, than: str) -> bool:
    """Whether an object was written after the state that is migrated: it is stored as it should be. Versions are numbers to whoever reads
    the API server's own."""
    return version.isdecimal() and than.isdecimal() and int(version) > int(than)


def patch(resource: Resource, obj: Object) -> Object:
    """An apply of nothing. uid and version let it meet this very object: one that was written or made anew meanwhile needs no migration."""
    metadata = obj["metadata"]
    said = {"uid": metadata.get("uid", ""), "resourceVersion": metadata.get("resourceVersion", "")}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": said}


def stored_version(definition: Object) -> str:
    """The version in which the objects of a definition are stored; "" for one that says none."""
    versions = objects.get(definition, "spec", "versions", default=())
    return next((str(version["name"]) for version in versions if version.get("storage")), "")


def same_definition(before: Object, after: Object) -> bool:
    """Whether a definition is as it was when its objects began to be migrated."""
    return all(before["metadata"].get(field) == after["metadata"].get(field) for field in ("uid", "generation"))
