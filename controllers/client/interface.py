"""``Api``: what controllers ask of the API server. ``rest.Client`` answers it over HTTP; tests have an in-memory one."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.machinery.objects import Object
from controllers.client import errors
from controllers.client.resources import Resource


class PatchType(enum.Enum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(enum.Enum):
    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """``type`` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR (``object`` is then a Status)."""

    type: str
    object: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Of lists and watches, with the API's meanings; ``metadata_only`` asks for PartialObjectMetadata."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    allow_watch_bookmarks: bool = False
    timeout_seconds: int = 0
    metadata_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """``uid`` and ``resource_version`` are preconditions: another object of that name is left alone (409)."""

    propagation: Propagation | None = None
    grace_period_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""

    def body(self) -> Object:
        out: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if self.propagation is not None:
            out["propagationPolicy"] = self.propagation.value
        if self.grace_period_seconds is not None:
            out["gracePeriodSeconds"] = self.grace_period_seconds
        preconditions = {k: v for k, v in (("uid", self.uid), ("resourceVersion", self.resource_version)) if v}
        if preconditions:
            out["preconditions"] = preconditions
        return out


LIST_DEFAULTS = ListOptions()
DELETE_DEFAULTS = DeleteOptions()


class Api(Protocol):
    """All raise ``StatusError`` for a refusal and ``errors.ConnectionFailed`` where no answer came."""

    async def get(self, resource: Resource, namespace: str, name: str, *, subresource: str = "", metadata_only: bool = False) -> Object: ...

    async def list(self, resource: Resource, namespace: str = "", options: ListOptions = LIST_DEFAULTS) -> Object:
        """One page: an object with ``items`` and ``metadata.continue`` where more follows."""
        ...

    async def create(self, resource: Resource, namespace: str, obj: Object, *, name: str = "", subresource: str = "") -> Object: ...

    async def update(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """PUT under the object's own namespace and name; its resourceVersion guards against lost updates."""
        ...

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType = PatchType.MERGE,
        *,
        subresource: str = "",
        field_manager: str = "",
    ) -> Object: ...

    async def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions = DELETE_DEFAULTS) -> Object: ...

    async def delete_collection(
        self, resource: Resource, namespace: str, options: DeleteOptions = DELETE_DEFAULTS, selection: ListOptions = LIST_DEFAULTS
    ) -> Object: ...

    def watch(self, resource: Resource, namespace: str = "", options: ListOptions = LIST_DEFAULTS) -> AsyncIterator[WatchEvent]:
        """Events after ``options.resource_version`` until the server ends the stream; close it with ``aclose``."""
        ...

    async def raw(self, method: str, path: str, *, accept: str = "application/json") -> Any:
        """The decoded answer of any path: discovery, version, health."""
        ...


async def list_all(api: Api, resource: Resource, namespace: str = "", options: ListOptions = LIST_DEFAULTS) -> tuple[list[Object], str]:
    """All pages of a list with the resourceVersion of the first. A token that expires midway starts over once, unpaged."""
    items: list[Object] = []
    version = ""
    token = ""
    while True:
        try:
            page = await api.list(
                resource,
                namespace,
                dataclasses.replace(options, continue_token=token, resource_version="" if token else options.resource_version),
            )
        except errors.StatusError as error:
            if token and errors.is_expired(error):
                page = await api.list(resource, namespace, dataclasses.replace(options, limit=0, continue_token="", resource_version=""))
                return list(page.get("items") or []), str((page.get("metadata") or {}).get("resourceVersion") or "")
            raise
        items.extend(page.get("items") or [])
        found = page.get("metadata") or {}
        version = version or str(found.get("resourceVersion") or "")
        token = str(found.get("continue") or "")
        if not token:
            return items, version
