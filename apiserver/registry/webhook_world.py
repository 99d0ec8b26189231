"""What admission webhooks see of the server: configurations from the watch caches, the other versions of a resource, and the way out
(``admission.webhooks.world.WebhookWorld``)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from apiserver.admission import rule_matching
from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.metrics import WebhookMetrics
from apiserver.admission.webhooks.world import ConditionError, Conditions
from apiserver.long_runs import patiently
from apiserver.machinery import names
from apiserver.machinery.objects import Object
from apiserver.objectstore.interface import StoredObject
from apiserver.outbound.kubeconfig import NO_USERS, Users
from apiserver.registry.registry import CachedObjects, Registry
from apiserver.registry.served_objects import ServedObjects
from apiserver.resources.resource_info import ResourceInfo
from apiserver.schemas.schema_set import SchemaSet

if TYPE_CHECKING:
    from apiserver.outbound.service_endpoints import Place
    from apiserver.webhooks.client import WebhookClient

GROUP = "admissionregistration.k8s.io"
_USER_AGENT = "kube-apiserver-admission"


class WebhookCalls:
    """The way out: one client for all webhooks of a server, made at the first call. ``given``: addresses of services by flag."""

    def __init__(self, cached: CachedObjects, given: Mapping[str, Place], source: random.Random) -> None:
        self._cached = cached
        self._given = given
        self._source = source
        self._client: WebhookClient | None = None

    async def call(self, config: Mapping[str, Any], body: bytes, timeout_seconds: float, users: Users = NO_USERS) -> bytes:
        """POST to what a ``clientConfig`` names, as the one of ``users`` that is for it. Raises ``webhooks.client.CallError``."""
        from apiserver.webhooks import client
        from apiserver.webhooks.addresses import ServiceAddresses

        if self._client is None:
            addresses = ServiceAddresses(self._cached, self._given, self._source)
            self._client = client.WebhookClient(addresses.resolve, _USER_AGENT)
        called = client.client_config(config)
        return await self._client.post(called, body, timeout_seconds, users.of(called.host, called.port))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


class RegistryWebhooks:
    """Implements ``WebhookWorld``."""

    def __init__(
        self,
        registry: Registry,
        schemas: SchemaSet,
        cached: CachedObjects,
        served: ServedObjects,
        calls: WebhookCalls,
        source: random.Random,
        metrics: WebhookMetrics | None = None,
    ) -> None:
        self.getter = cached
        self.metrics = metrics or WebhookMetrics()
        self._registry = registry
        self._schemas = schemas
        self._served = served
        self._calls = calls
        self._source = source

    @property
    def generation(self) -> int:
        return self._registry.table.generation

    def observe(self, resource: str, changed: Callable[[str, Object | None], None]) -> None:
        def observer(new: StoredObject | None, old: StoredObject | None) -> None:
            found = new or old
            assert found is not None
            changed(found.name, None if new is None else new.decode())

        self._registry.storage(GROUP, resource).cache.observe(observer)

    def equivalents(self, info: ResourceInfo) -> Sequence[ResourceInfo]:
        return self._served.equivalents(info)

    async def converted(self, obj: Object, info: ResourceInfo, to: ResourceInfo) -> Object:
        return await self._served.converted(obj, info, to)

    def completed(self, obj: Object, info: ResourceInfo, subresource: str) -> Object:
        group, version, kind = rule_matching.kind_of(info, subresource)
        api_version = f"{group}/{version}" if group else version
        if self._schemas.has_kind(group, version, kind):
            obj = self._schemas.kind(group, version, kind).decode(obj).obj
        said = obj.get("metadata")
        obj = {**obj, "kind": kind, "apiVersion": api_version, "metadata": dict(said) if isinstance(said, dict) else {}}
        store = self._registry.store(info.group, info.version, info.resource)
        if store is not None and kind == info.kind:
            store.strategy.default(obj)
        return obj

    def compile_conditions(self, conditions: Sequence[dict[str, Any]], name: str) -> Conditions:
        from apiserver.admission import expressions
        from apiserver.admission.match_conditions import MatchConditions
        from apiserver.admission.questions import UserQuestions

        environment = expressions.request_environment(self._registry.table.minor, params=False, authorizer=True)
        compiled = MatchConditions(conditions, environment)

        async def evaluate(attributes: AdmissionAttributes, seen: AdmissionAttributes) -> bool:
            authorizer = self._registry.env.authorizer
            asking = None if authorizer is None else UserQuestions(authorizer, attributes)
            values = expressions.request_values(attributes, wanted=seen.info, obj=seen.object, old=seen.old_object, authorizer=asking)
            verdict = await patiently(lambda patient: compiled.judge(values, patient=patient))
            if verdict.error:
                raise ConditionError(verdict.error)
            return verdict.matches

        return evaluate

    async def call(self, config: dict[str, Any], body: bytes, timeout_seconds: float, users: Users) -> bytes:
        return await self._calls.call(config, body, timeout_seconds, users)

    def new_uid(self) -> str:
        return names.new_uid(self._source)
