"""Field selectors of custom resources: what their definition makes selectable, in each version its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.apiserver.api import config_in, running
from tests.list_watch import outcomes
from tests.list_watch.__main__ import DEFINITIONS
from tests.list_watch.in_process import over
from tests.list_watch.outcomes import Server

GROUP = "/apis/demo.test/v1"
GADGETS = f"{GROUP}/namespaces/default/gadgets"
_PROPERTIES = {"color": {"type": "string"}, "size": {"type": "integer"}, "on": {"type": "boolean"}}


def version(name: str, storage: bool, *paths: str) -> dict[str, Any]:
    """The descriptions differ, since what all versions have in common may not be said version by version."""
    spec = {"type": "object", "description": f"of {name}", "properties": _PROPERTIES}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    fields = [{"jsonPath": path} for path in paths]
    return {"name": name, "served": True, "storage": storage, "schema": schema, "selectableFields": fields}


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.demo.test"},
    "spec": {
        "group": "demo.test",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [version("v1", True, ".spec.color", ".spec.on"), version("v2", False, ".spec.size")],
    },
}


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "demo.test/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


async def test_lists_and_watches_by_the_fields_of_a_definition(tmp_path: Path) -> None:
    """Field case D2; and D1 for what the definition does not name."""
    async with running(config_in(tmp_path)) as api:
        await api.created(DEFINITIONS, DEFINITION)
        await outcomes.until_served(Server(over(api), GROUP, "gadgets", "Gadget"))
        await api.created(GADGETS, gadget("a", color="red", size=1, on=True))
        await api.created(GADGETS, gadget("b", color="blue", size=2))

        async def names(selector: str, path: str = GADGETS) -> list[str]:
            answer = await api.get(path, query={"fieldSelector": selector})
            return [item["metadata"]["name"] for item in answer.json["items"]] if answer.status == 200 else [answer.message]

        assert await names("spec.color=red") == ["a"]
        assert await names("spec.color!=red,metadata.namespace=default") == ["b"]
        assert await names("spec.on=true") == ["a"]
        assert await names("spec.on=") == ["b"]
        assert await names("spec.size=2") == ["field label not supported: spec.size"]
        # the same objects, asked for in the other version, and in turns
        newer = GADGETS.replace("v1", "v2")
        assert await names("spec.size=2", newer) == ["b"]
        assert await names("spec.color=red", newer) == ["field label not supported: spec.color"]
        assert await names("spec.color=blue") == ["b"]
        revision = (await api.get(GADGETS)).json["metadata"]["resourceVersion"]
        asked: dict[str, Any] = {"resourceVersion": revision}
        async with (
            api.watch(GADGETS, **asked, fieldSelector="spec.color=red") as red,
            api.watch(newer, **asked, fieldSelector="spec.size=1") as small,
        ):
            await api.patch(f"{GADGETS}/a", {"spec": {"color": "blue"}})
            await api.patch(f"{GADGETS}/b", {"spec": {"size": 1}})
            await api.patch(f"{GADGETS}/b", {"spec": {"color": "red"}})
            reds, smalls = await red.take(2), await small.take(3)
        assert [(e["type"], e["object"]["metadata"]["name"], e["object"]["spec"]["color"]) for e in reds] == [
            ("DELETED", "a", "red"),
            ("ADDED", "b", "red"),
        ]
        assert [(e["type"], e["object"]["metadata"]["name"], e["object"]["apiVersion"]) for e in smalls] == [
            ("MODIFIED", "a", "demo.test/v2"),
            ("ADDED", "b", "demo.test/v2"),
            ("MODIFIED", "b", "demo.test/v2"),
        ]
