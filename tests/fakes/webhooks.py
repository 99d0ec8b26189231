"""The server around admission webhooks, and webhooks that answer what a test tells them to, without a network."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson

from apiserver.admission.interfaces import AdmissionAttributes
from apiserver.admission.metrics import WebhookMetrics
from apiserver.admission.webhooks.world import Conditions
from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from apiserver.outbound.kubeconfig import Users
from apiserver.registry import conversion
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable
from tests.fakes.object_getter import FakeObjects

#: From a review's ``request`` to its ``response``, or to the whole body of the answer.
Answer = Callable[[dict[str, Any]], "dict[str, Any] | bytes | Awaitable[dict[str, Any] | bytes]"]

TABLE = ResourceTable("1.34")


class FakeWebhookWorld:
    """Webhooks are registered by their URL with ``answers``; ``asked`` keeps the requests of the reviews, in order."""

    def __init__(self, getter: FakeObjects | None = None) -> None:
        self.getter = getter or FakeObjects()
        self.metrics = WebhookMetrics()
        self.generation = 0
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._observers: dict[str, Callable[[str, Object | None], None]] = {}
        self._uids = 0

    def configure(self, resource: str, name: str, *webhooks: dict[str, Any]) -> None:
        self._observers[resource](name, {"metadata": {"name": name}, "webhooks": list(webhooks)})

    def forget(self, resource: str, name: str) -> None:
        self._observers[resource](name, None)

    def observe(self, resource: str, changed: Callable[[str, Object | None], None]) -> None:
        self._observers[resource] = changed

    def equivalents(self, info: ResourceInfo) -> Sequence[ResourceInfo]:
        return [other for other in TABLE if other.storage_prefix == info.storage_prefix and other.api_version != info.api_version]

    async def converted(self, obj: Object, info: ResourceInfo, to: ResourceInfo) -> Object:
        return conversion.convert(objects.deep_copy(obj), to)

    def completed(self, obj: Object, info: ResourceInfo, subresource: str) -> Object:
        if not isinstance(obj.get("metadata"), dict):
            raise ValueError("json: cannot unmarshal into Go struct field")
        obj.pop("unknown", None)
        return obj

    def compile_conditions(self, conditions: Sequence[dict[str, Any]], name: str) -> Conditions:
        async def evaluate(attributes: AdmissionAttributes, seen: AdmissionAttributes) -> bool:
            return all(condition["expression"] == "true" for condition in conditions)

        return evaluate

    async def call(self, config: dict[str, Any], body: bytes, timeout_seconds: float, users: Users) -> bytes:
        review = orjson.loads(body)
        self.asked.append((config["url"], review["request"]))
        answer = self.answers[config["url"]](review["request"])
        found = await answer if isinstance(answer, Awaitable) else answer
        if isinstance(found, bytes):
            return found
        response = {"uid": review["request"]["uid"], **found}
        return orjson.dumps({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response})

    def new_uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"


def webhook(name: str, **more: Any) -> dict[str, Any]:
    """One that is about all pods, called at ``https://NAME``."""
    return {
        "name": name,
        "clientConfig": {"url": f"https://{name}"},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {},
        "objectSelector": {},
        **more,
    }


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """The response of a mutating webhook."""
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(list(operations))).decode()}
