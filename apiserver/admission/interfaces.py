"""``AdmissionAttributes`` and ``AdmissionPlugin``: a plugin mutates first, all plugins validate later; both may run twice for one
request (a lost compare re-runs the change)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Protocol

from apiserver.authentication.user import UserInfo
from apiserver.resources.resource_info import ResourceInfo


class Operation(enum.Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(slots=True, kw_only=True)
class AdmissionAttributes:
    """``object`` is the new object (None for DELETE) and may be changed in place by ``admit``; ``old_object`` never.
    ``options`` are the CreateOptions, UpdateOptions, PatchOptions or DeleteOptions of the request."""

    operation: Operation
    info: ResourceInfo
    subresource: str
    namespace: str
    name: str
    user: UserInfo
    object: dict[str, Any] | None
    old_object: dict[str, Any] | None
    dry_run: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class ObjectGetter(Protocol):
    """Reads of built-in objects that plugins need; from the watch caches, so they do not wait."""

    def get(self, group: str, resource: str, namespace: str, name: str) -> dict[str, Any] | None: ...

    def list(self, group: str, resource: str, namespace: str = "") -> list[dict[str, Any]]: ...


class AdmissionPlugin(Protocol):
    """Raises ``StatusError`` to refuse. Both methods are coroutines, since quota and webhooks wait."""

    name: str

    def handles(self, operation: Operation, info: ResourceInfo, subresource: str) -> bool: ...

    async def admit(self, attributes: AdmissionAttributes) -> None: ...

    async def validate(self, attributes: AdmissionAttributes) -> None: ...
