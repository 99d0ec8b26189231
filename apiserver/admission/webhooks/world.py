"""``WebhookWorld``: what webhooks need of the server around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from apiserver.admission.interfaces import AdmissionAttributes, ObjectGetter
from apiserver.admission.metrics import WebhookMetrics
from apiserver.machinery.objects import Object
from apiserver.outbound.kubeconfig import Users
from apiserver.resources.resource_info import ResourceInfo

#: Whether the conditions hold of a request, given as it came and as the webhook sees it. Raises ``ConditionError`` where they cannot be
#: evaluated.
Conditions = Callable[[AdmissionAttributes, AdmissionAttributes], Awaitable[bool]]


class ConditionError(Exception):
    """Why match conditions could not be evaluated."""


class WebhookWorld(Protocol):
    @property
    def metrics(self) -> WebhookMetrics: ...

    @property
    def getter(self) -> ObjectGetter: ...

    @property
    def generation(self) -> int:
        """Another one whenever other resources are served: what was found out about them has to be found out again."""

    def observe(self, resource: str, changed: Callable[[str, Object | None], None]) -> None:
        """Tell ``changed`` of each configuration that is there, by its name, and of each change of one; None: it is gone."""

    def equivalents(self, info: ResourceInfo) -> Sequence[ResourceInfo]:
        """The same stored objects as other groups and versions serve them."""

    async def converted(self, obj: Object, info: ResourceInfo, to: ResourceInfo) -> Object:
        """An object of ``info`` in the version of ``to``; the argument is not changed. Raises StatusError."""

    def completed(self, obj: Object, info: ResourceInfo, subresource: str) -> Object:
        """What a webhook made of an object: without what its kind does not have, with its defaults. ``obj`` is given away. Raises
        ValueError where it is none of its kind."""

    def compile_conditions(self, conditions: Sequence[dict[str, Any]], name: str) -> Conditions:
        """Of a webhook's ``matchConditions``; ``name`` is the webhook's."""

    async def call(self, config: dict[str, Any], body: bytes, timeout_seconds: float, users: Users) -> bytes:
        """POST to what a ``clientConfig`` names, as the one of ``users`` that is for it. Raises ``webhooks.client.CallError``."""

    def new_uid(self) -> str: ...
