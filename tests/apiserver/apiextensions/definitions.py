"""Definitions for tests: the gadgets of ``demo.test``, and how to wait for what a server does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.apiserver.api import Answer, Api

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/demo.test/v1/namespaces/ns-a/gadgets"
NAME = "gadgets.demo.test"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "color": {"type": "string"},
                "size": {"type": "integer", "minimum": 0},
                "replicas": {"type": "integer"},
            },
        },
        "status": {
            "type": "object",
            "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}


def version(name: str = "v1", *, storage: bool = True, served: bool = True, schema: Any = SCHEMA, **facts: Any) -> dict[str, Any]:
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **facts}


def definition(*versions: dict[str, Any], scope: str = "Namespaced", plural: str = "gadgets", kind: str = "Gadget", **names: Any) -> Any:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.demo.test"},
        "spec": {
            "group": "demo.test",
            "names": {"plural": plural, "kind": kind, **names},
            "scope": scope,
            "versions": list(versions) or [version()],
        },
    }


def gadget(name: str = "g1", api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": f"demo.test/{api_version}", "kind": "Gadget", "metadata": {"name": name}, **fields}


async def until(api: Api, path: str, holds: Callable[[Answer], bool]) -> Answer:
    """Ask until an answer is as wanted; the server works between the questions."""
    async with asyncio.timeout(5):
        while True:
            answer = await api.get(path)
            if holds(answer):
                return answer
            await asyncio.sleep(0)


def condition(answer: Answer, type: str) -> dict[str, Any]:
    found = [c for c in answer.json["status"].get("conditions") or () if c["type"] == type]
    return found[0] if found else {}


async def established(api: Api, body: Any) -> Any:
    created = await api.created(CRDS, body)
    path = f"{CRDS}/{created['metadata']['name']}"
    return (await until(api, path, lambda answer: condition(answer, "Established").get("status") == "True")).json
