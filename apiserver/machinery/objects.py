"""Readers of API objects in their JSON form. Nothing here changes its argument."""

# no "from __future__ import annotations": it would take the name of the function below
from typing import Any, TypeAlias

from apiserver.machinery import release

Object: TypeAlias = dict[str, Any]


def metadata(obj: Object) -> Object:
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def unstored_metadata(**fields: Any) -> Object:
    """``fields``, as metadata of what is shown and never stored: with a creation of ``null``, which apimachinery omits since v0.34."""
    return fields if release.since(34) else {**fields, "creationTimestamp": None}


def name(obj: Object) -> str:
    return str(metadata(obj).get("name") or "")


def namespace(obj: Object) -> str:
    return str(metadata(obj).get("namespace") or "")


def uid(obj: Object) -> str:
    return str(metadata(obj).get("uid") or "")


def resource_version(obj: Object) -> str:
    return str(metadata(obj).get("resourceVersion") or "")


def labels(obj: Object) -> dict[str, str]:
    return metadata(obj).get("labels") or {}


def annotations(obj: Object) -> dict[str, str]:
    return metadata(obj).get("annotations") or {}


def finalizers(obj: Object) -> list[str]:
    return metadata(obj).get("finalizers") or []


def owner_references(obj: Object) -> list[Object]:
    return metadata(obj).get("ownerReferences") or []


def controller_of(obj: Object) -> Object | None:
    """The owner reference with ``controller: true``, if there is one."""
    return next((o for o in owner_references(obj) if o.get("controller")), None)


def is_being_deleted(obj: Object) -> bool:
    return bool(metadata(obj).get("deletionTimestamp"))


def get(obj: Any, *path: str, default: Any = None) -> Any:
    """The value under nested keys, or ``default`` where a part is missing or null."""
    for part in path:
        if not isinstance(obj, dict):
            return default
        obj = obj.get(part)
    return default if obj is None else obj


def group_version(api_version: str) -> tuple[str, str]:
    """("apps", "v1") of ``apps/v1``; ("", "v1") of ``v1``."""
    group, _, version = api_version.rpartition("/")
    return group, version


def deep_copy(value: Any) -> Any:
    """A copy of a JSON value that shares no container with it."""
    if isinstance(value, dict):
        return {k: deep_copy(v) if isinstance(v, (dict, list)) else v for k, v in value.items()}
    if isinstance(value, list):
        return [deep_copy(v) if isinstance(v, (dict, list)) else v for v in value]
    return value
