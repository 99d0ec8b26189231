"""``AdmissionAttributes`` and ``AdmissionPlugin``: a plugin mutates first, all plugins validate later; both may run twice for one
request (a lost compare re-runs the change)."""

from __future__ import annotations

import enum
from collections.abc import Callable
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
class Reinvocation:
    """Of one request: plugins that let others change the object (webhooks, policies) set ``wanted`` when that happened, and all that
    change objects then run once more, with ``second`` set. ``memo`` is what each plugin keeps from the first time, by its name."""

    wanted: bool = False
    second: bool = False
    memo: dict[str, Any] = field(default_factory=dict)


def no_annotation(key: str, value: str) -> None:
    """Where there is no audit event."""


@dataclass(slots=True, kw_only=True)
class AdmissionAttributes:
    """``object`` is the new object (None for DELETE) and may be changed in place by ``admit``; ``old_object`` never. Both are of the
    subresource's kind where it has one of its own (Scale, Binding). ``options`` are the CreateOptions, UpdateOptions, PatchOptions or
    DeleteOptions of the request. ``annotate`` takes annotations for the audit event."""

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
    annotate: Callable[[str, str], None] = no_annotation
    reinvocation: Reinvocation | None = None


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
