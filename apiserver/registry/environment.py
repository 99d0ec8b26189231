"""What all registries of one server share: clock, randomness, admission, field managers, allocators."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from apiserver.admission.interfaces import AdmissionAttributes, no_annotation
from apiserver.authentication.user import UserInfo
from apiserver.authorization.authorizer import Authorizer
from apiserver.machinery import release
from apiserver.machinery.objects import Object
from apiserver.objectstore.kv_object_storage import KvObjectStorage
from apiserver.registry.conversion_metrics import ConversionMetrics
from apiserver.resources.resource_info import ResourceInfo

T = TypeVar("T")


class Admission(Protocol):
    """The chain of admission plugins."""

    async def admit(self, attributes: AdmissionAttributes) -> None: ...

    async def validate(self, attributes: AdmissionAttributes) -> None: ...


class NoAdmission:
    """Lets everything pass."""

    async def admit(self, attributes: AdmissionAttributes) -> None:
        return

    async def validate(self, attributes: AdmissionAttributes) -> None:
        return


class FieldManagers(Protocol):
    """Keeps ``metadata.managedFields``: who owns which field."""

    def update(self, info: ResourceInfo, subresource: str, live: Object | None, new: Object, manager: str, now: str) -> Object:
        """``new`` with its managedFields after a create or update by ``manager``; ``live`` is what it replaces. An object whose
        managedFields cannot be read starts afresh. Raises NeedsConversionError where a webhook has to be asked first, and nothing else."""

    def untracked(self, live: Object | None, new: Object) -> Object:
        """``new`` after a write that could not be tracked, since the webhook did not convert."""

    def apply(
        self, info: ResourceInfo, subresource: str, live: Object | None, applied: Object, manager: str, force: bool, now: str
    ) -> Object:
        """Server-side apply: the merged object, which shares parts with both arguments. Raises StatusError (400, 409 with
        the conflicts)."""


class Clock:
    """RFC 3339 seconds of now; the text of one second is made once."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._second = -1
        self._text = ""

    def now(self) -> float:
        return self._now()

    def text(self) -> str:
        second = int(self._now())
        if second != self._second:
            self._second = second
            self._text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        return self._text


@dataclass(slots=True, kw_only=True)
class Environment:
    admission: Admission = field(default_factory=NoAdmission)
    managers: FieldManagers | None = None
    clock: Clock = field(default_factory=Clock)
    random: random.Random = field(default_factory=random.SystemRandom)
    allocators: Any = None
    #: the storage of namespaces, whose objects' state every create in them rests on; None: there are none
    namespaces: KvObjectStorage | None = None
    #: raises 403 where the user may not create the named object, which a PUT or an apply is about to do; None: everybody may
    authorize_create: Callable[[UserInfo, ResourceInfo, str, str], None] | None = None
    #: of what is asked for beside the request itself (a deletion of what cannot be read)
    authorizer: Authorizer | None = None
    #: takes fields out of an object that the served Kubernetes does not have; None where it has all that defaults may set
    drop_unserved: Callable[[ResourceInfo, Object], None] | None = None
    #: POST of JSON to what the ``clientConfig`` of a conversion webhook names, within seconds
    call_webhook: Callable[[Mapping[str, Any], bytes, float], Awaitable[bytes]] | None = None
    conversion_metrics: ConversionMetrics = field(default_factory=ConversionMetrics)
    #: the schemas of the served Kubernetes, a ``SchemaSet``, for definitions of custom resources
    schemas: Any = None
    #: of Kubernetes 1.x whose rules hold for what is written
    minor: int = release.NEWEST

    async def settled(self, work: Callable[[], T]) -> T:
        """What ``work`` answers, for which conversion webhooks are asked where it needs them."""
        from apiserver.registry import remote_conversion

        return await remote_conversion.settled(self, work)


@dataclass(slots=True, kw_only=True)
class Write:
    """Who writes, and how. ``warn`` takes texts for ``Warning`` headers, ``annotate`` annotations of the audit event; ``options`` is the
    options object for admission. ``admitted``: admission has seen what the request carries (a Scale, a Binding, an Eviction), and is not
    asked again about the object that is written because of it."""

    user: UserInfo
    manager: str = ""
    dry_run: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    warn: Callable[[str], None] = lambda text: None
    annotate: Callable[[str, str], None] = no_annotation
    admitted: bool = False
