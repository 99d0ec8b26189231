"""Stories of custom resources in several versions, with a conversion webhook."""

from __future__ import annotations

from typing import Any

from tests.fakes.webhook_server import http
from tests.webhook_differential.world import APPLY, MERGE, Story, World

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NS = "default"


def _schema(field: str, *more: str) -> dict[str, Any]:
    spec = {name: {"type": "string"} for name in (field, "common", *more)}
    status = {"type": "object", "properties": {"seen": {"type": "string"}}}
    properties = {"spec": {"type": "object", "properties": spec}, "status": status}
    return {"openAPIV3Schema": {"type": "object", "properties": properties}}


def convert(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    """``spec.old`` in v1 is ``spec.new`` in v2, and objects are labelled by the version that they are shown in."""
    old, new = ("old", "new") if api_version.endswith("v2") else ("new", "old")
    spec = dict(obj.get("spec") or {})
    if old in spec:
        spec[new] = spec.pop(old)
    metadata = dict(obj["metadata"])
    if "shown" in (metadata.get("labels") or {}):
        metadata["labels"] = {**metadata["labels"], "shown": api_version.rpartition("/")[2]}
    return {**obj, "apiVersion": api_version, "metadata": metadata, "spec": spec}


def converting(path: str, review: dict[str, Any]) -> dict[str, Any]:
    asked = review["request"]
    objects = [convert(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]]
    return {"result": {"status": "Success"}, "convertedObjects": objects}


def failing(path: str, review: dict[str, Any]) -> dict[str, Any]:
    return {"result": {"status": "Failure", "message": "out of order"}}


class Gadgets:
    """A definition of its own for each story."""

    def __init__(self, world: World, group: str, **facts: Any) -> None:
        self.world = world
        self.group = group
        self.name = f"gadgets.{group}"
        self.facts = facts

    def path(self, version: str, name: str = "", subresource: str = "") -> str:
        parts = [f"/apis/{self.group}/{version}/namespaces/{NS}/gadgets", name, subresource]
        return "/".join(part for part in parts if part)

    def body(self, version: str, name: str, **fields: Any) -> dict[str, Any]:
        metadata = {"name": name, **fields.pop("metadata", {})}
        return {"apiVersion": f"{self.group}/{version}", "kind": "Gadget", "metadata": metadata, **fields}

    def definition(self, storage: str = "v1", versions: tuple[str, ...] = ("v1", "v2"), served: tuple[str, ...] = ("v1", "v2")) -> Any:
        said = [
            {
                "name": name,
                "served": name in served,
                "storage": name == storage,
                "schema": _schema("old" if name == "v1" else "new"),
                "subresources": {"status": {}},
                **({"selectableFields": self.facts["selectable"][name]} if "selectable" in self.facts else {}),
            }
            for name in versions
        ]
        webhook = {"clientConfig": self.world.server.client_config, "conversionReviewVersions": ["v1"]}
        conversion = {"strategy": "Webhook", "webhook": webhook} if self.facts.get("webhook", True) else {"strategy": "None"}
        names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
        spec = {"group": self.group, "scope": "Namespaced", "names": names, "versions": said, "conversion": conversion}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        return {**kind, "metadata": {"name": self.name}, "spec": spec}

    async def defined(self) -> None:
        world = self.world
        world.webhook(converting)
        await self.gone()
        status, found = await world.quiet("POST", CRDS, self.definition())
        assert status == 201, found
        for version in ("v1", "v2"):
            await world.until(self.path(version), lambda status, found: status == 200)
        world.forget_reviews()

    async def redefine(self, **facts: Any) -> None:
        _, current = await self.world.quiet("GET", f"{CRDS}/{self.name}")
        wanted = {**self.definition(**facts)}
        wanted["metadata"] = current["metadata"]
        status, found = await self.world.quiet("PUT", f"{CRDS}/{self.name}", wanted)
        assert status == 200, found

    async def gone(self) -> None:
        world = self.world
        await world.quiet("DELETE", f"{CRDS}/{self.name}")
        await world.until(f"{CRDS}/{self.name}", lambda status, found: status == 404)

    async def apply(self, version: str, name: str, manager: str, force: bool = False, **fields: Any) -> Any:
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        return await self.world.do("PATCH", self.path(version, name) + query, self.body(version, name, **fields), APPLY)


async def managers_of_two_versions(world: World) -> None:
    """An apply at v2 of what was applied at v1: conflict, force, both agree, and what is applied no longer."""
    g = Gadgets(world, "managers.conv.test")
    await g.defined()
    await g.apply("v1", "a", "one", spec={"old": "1", "common": "c"})
    await g.apply("v2", "a", "two", spec={"new": "2"})
    await g.apply("v2", "a", "two", spec={"new": "1"})
    await g.apply("v2", "a", "two", force=True, spec={"new": "3"})
    await world.do("GET", g.path("v1", "a"))
    await g.apply("v1", "a", "one", spec={"old": "4"})
    await g.apply("v1", "a", "one", spec={"common": "c"})
    await g.apply("v2", "a", "one", spec={"common": "c"})
    await world.do("GET", g.path("v2", "a"))
    await g.apply("v2", "a", "two", spec={})
    await g.apply("v2", "a", "one", spec={})
    await g.gone()


async def one_manager_moves_to_the_next_version(world: World) -> None:
    g = Gadgets(world, "moves.conv.test")
    await g.defined()
    await g.apply("v1", "a", "m", spec={"old": "1", "common": "c"}, metadata={"labels": {"x": "y"}})
    await g.apply("v2", "a", "m", spec={"new": "1"}, metadata={"labels": {"x": "y"}})
    await g.apply("v2", "a", "m", spec={"common": "d"})
    await g.apply("v1", "b", "m", spec={"old": "1", "common": "c"})
    await g.apply("v2", "b", "m", spec={"new": "1", "common": "c"})
    await g.apply("v1", "b", "m", spec={"old": "2", "common": "c"})
    await g.gone()


async def updates_of_two_versions(world: World) -> None:
    """PUT and PATCH at v2 of fields that were applied, and updated, at v1."""
    g = Gadgets(world, "updates.conv.test")
    await g.defined()
    await world.do("POST", g.path("v1") + "?fieldManager=maker", g.body("v1", "a", spec={"old": "1", "common": "c"}))
    await g.apply("v1", "a", "applier", force=True, spec={"old": "1"})
    await world.do("PATCH", g.path("v2", "a") + "?fieldManager=patcher", {"spec": {"common": "d"}}, MERGE)
    await world.do("PATCH", g.path("v2", "a") + "?fieldManager=patcher", {"spec": {"new": "2"}}, MERGE)
    await world.do("PATCH", g.path("v1", "a") + "?fieldManager=patcher", {"spec": {"old": "3"}}, MERGE)
    await world.do("PATCH", g.path("v2", "a") + "?fieldManager=patcher", {"spec": {"new": None}}, MERGE)
    await world.do("PATCH", g.path("v2", "a", "status") + "?fieldManager=teller", {"status": {"seen": "yes"}}, MERGE)
    await world.do("PATCH", g.path("v1", "a", "status") + "?fieldManager=teller", {"status": {"seen": "no"}}, MERGE)
    await g.gone()


async def without_a_webhook(world: World) -> None:
    """Conversion None: the fields of the other version are pruned, and whom they belong to is told by name."""
    g = Gadgets(world, "none.conv.test", webhook=False)
    await g.defined()
    await g.apply("v1", "a", "one", spec={"old": "1", "common": "c"})
    await g.apply("v2", "a", "two", spec={"new": "2"})
    await world.do("GET", g.path("v1", "a"))
    await g.apply("v2", "a", "two", spec={"common": "d"})
    await g.apply("v2", "a", "one", spec={"common": "d"})
    await g.apply("v1", "a", "one", spec={"common": "c"}, force=True)
    await g.gone()


async def the_version_of_a_manager_is_served_no_longer(world: World) -> None:
    g = Gadgets(world, "unserved.conv.test")
    await g.defined()
    await g.apply("v1", "a", "one", spec={"old": "1", "common": "c"})
    await g.redefine(served=("v2",))
    await world.until(g.path("v1"), lambda status, found: status == 404)
    await world.do("PATCH", g.path("v2", "a") + "?fieldManager=patcher", {"spec": {"common": "d"}}, MERGE)
    await g.apply("v2", "a", "two", spec={"new": "2"})
    await g.apply("v2", "a", "one", spec={"new": "2"})
    await g.gone()


async def the_version_of_a_manager_is_gone(world: World) -> None:
    g = Gadgets(world, "dropped.conv.test")
    await g.defined()
    await g.apply("v1", "a", "one", spec={"old": "1", "common": "c"})
    await g.redefine(storage="v2")
    _, current = await world.quiet("GET", g.path("v2", "a"))
    await world.do("PUT", g.path("v2", "a") + "?fieldManager=migrator", current)
    name = f"{CRDS}/{g.name}"
    await world.until(name, lambda status, found: "v2" in found["status"]["storedVersions"])
    _, found = await world.quiet("PATCH", f"{name}/status", {"status": {"storedVersions": ["v2"]}}, MERGE)
    assert found["status"]["storedVersions"] == ["v2"], found
    await g.redefine(storage="v2", versions=("v2",))
    await world.until(g.path("v1"), lambda status, found: status == 404)
    await world.do("GET", g.path("v2", "a"))
    await world.do("PATCH", g.path("v2", "a") + "?fieldManager=patcher", {"spec": {"common": "d"}}, MERGE)
    await g.apply("v2", "a", "two", spec={"new": "2"})
    await g.apply("v2", "a", "one", force=True, spec={"new": "3"})
    await g.gone()


async def a_webhook_that_fails_while_managers_are_of_two_versions(world: World) -> None:
    g = Gadgets(world, "fails.conv.test")
    await g.defined()
    await g.apply("v2", "a", "two", spec={"new": "1", "common": "c"})
    world.webhook(failing)
    await world.do("GET", g.path("v1", "a"))
    await world.do("PATCH", g.path("v1", "a") + "?fieldManager=patcher", {"spec": {"common": "d"}}, MERGE)
    await g.apply("v1", "a", "one", spec={"common": "e"})
    await world.do("POST", g.path("v2"), g.body("v2", "b", spec={"new": "1"}))
    await world.do("POST", g.path("v1"), g.body("v1", "b", spec={"old": "1"}))
    await world.do("GET", g.path("v2"))
    world.webhook(converting)
    await g.gone()


async def an_apply_where_the_version_of_another_manager_is_gone(world: World) -> None:
    g = Gadgets(world, "applied.conv.test")
    await g.defined()
    await g.apply("v1", "a", "one", spec={"old": "1", "common": "c"})
    await g.redefine(storage="v2")
    _, current = await world.quiet("GET", g.path("v2", "a"))
    await world.quiet("PUT", g.path("v2", "a") + "?fieldManager=migrator", current)
    name = f"{CRDS}/{g.name}"
    await world.until(name, lambda status, found: "v2" in found["status"]["storedVersions"])
    await world.quiet("PATCH", f"{name}/status", {"status": {"storedVersions": ["v2"]}}, MERGE)
    await g.redefine(storage="v2", versions=("v2",))
    await world.until(g.path("v1"), lambda status, found: status == 404)
    await g.apply("v2", "a", "two", spec={"new": "2"})
    await g.apply("v2", "a", "one", spec={"new": "2"})
    foreign = [{"manager": "x", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}]
    _, current = await world.quiet("GET", g.path("v2", "a"))
    current["metadata"]["managedFields"] = foreign
    await world.do("PUT", g.path("v2", "a") + "?fieldManager=putter", current)
    await g.apply("v2", "a", "one", spec={"new": "5"}, force=True)
    await g.gone()


async def a_status_in_the_body_of_the_main_endpoint(world: World) -> None:
    """What the endpoint resets is taken out of the changes in its own version alone."""
    g = Gadgets(world, "resets.conv.test")
    await g.defined()
    await g.apply("v1", "a", "one", spec={"old": "1"})
    await world.do("PATCH", g.path("v1", "a", "status") + "?fieldManager=teller", {"status": {"seen": "yes"}}, MERGE)
    _, current = await world.quiet("GET", g.path("v2", "a"))
    current["status"] = {"seen": "no"}
    current["spec"]["common"] = "c"
    await world.do("PUT", g.path("v2", "a") + "?fieldManager=putter", current)
    await g.apply("v2", "a", "applier", spec={"common": "c"}, status={"seen": "perhaps"})
    await g.gone()


SELECTABLE = {"v1": [{"jsonPath": ".spec.old"}, {"jsonPath": ".spec.common"}], "v2": [{"jsonPath": ".spec.new"}]}


async def selection_in_each_version(world: World) -> None:
    g = Gadgets(world, "selected.conv.test", selectable=SELECTABLE)
    await g.defined()
    for name, value in (("a", "1"), ("b", "2"), ("c", "1")):
        labels = {"labels": {"shown": "v1", "value": value}}
        await world.do("POST", g.path("v1"), g.body("v1", name, spec={"old": value, "common": value}, metadata=labels))
    for version, query in (
        ("v1", "fieldSelector=spec.old%3D1"),
        ("v2", "fieldSelector=spec.new%3D1"),
        ("v2", "fieldSelector=spec.new%3D1,metadata.name%3Da"),
        ("v2", "fieldSelector=spec.new%21%3D1"),
        ("v2", "fieldSelector=spec.old%3D1"),
        ("v1", "fieldSelector=spec.new%3D1"),
        ("v2", "fieldSelector=spec.common%3D1"),
        ("v1", "labelSelector=shown%3Dv1"),
        ("v2", "labelSelector=shown%3Dv1"),
        ("v2", "labelSelector=shown%3Dv2"),
        ("v2", "labelSelector=shown%3Dv2&fieldSelector=spec.new%3D2"),
    ):
        await world.do("GET", f"{g.path(version)}?{query}")
    _, listed = await world.quiet("GET", g.path("v2"))
    since = listed["metadata"]["resourceVersion"]
    await world.quiet("PATCH", g.path("v1", "a"), {"spec": {"old": "2"}}, MERGE)
    await world.quiet("PATCH", g.path("v1", "b"), {"spec": {"old": "1"}}, MERGE)
    await world.quiet("PATCH", g.path("v2", "c"), {"spec": {"common": "9"}}, MERGE)
    await world.quiet("DELETE", g.path("v1", "c"))
    await world.watch(f"{g.path('v2')}?watch=1&resourceVersion={since}&fieldSelector=spec.new%3D1&timeoutSeconds=5", 4)
    await world.watch(f"{g.path('v1')}?watch=1&resourceVersion={since}&fieldSelector=spec.old%3D2&timeoutSeconds=5", 2)
    await world.watch(f"{g.path('v2')}?watch=1&resourceVersion={since}&labelSelector=shown%3Dv2&timeoutSeconds=5", 4)
    await world.do("DELETE", f"{g.path('v2')}?fieldSelector=spec.new%3D1")
    await world.do("GET", g.path("v2"))
    await g.gone()


async def selection_without_a_webhook(world: World) -> None:
    selectable = {"v1": [{"jsonPath": ".spec.common"}], "v2": [{"jsonPath": ".spec.new"}, {"jsonPath": ".spec.common"}]}
    g = Gadgets(world, "selectednone.conv.test", webhook=False, selectable=selectable)
    await g.defined()
    await world.do("POST", g.path("v1"), g.body("v1", "a", spec={"common": "1"}))
    await world.do("POST", g.path("v2"), g.body("v2", "b", spec={"common": "1", "new": "1"}))
    for version, query in (("v1", "spec.common%3D1"), ("v2", "spec.common%3D1"), ("v2", "spec.new%3D1"), ("v2", "spec.new%3D")):
        await world.do("GET", f"{g.path(version)}?fieldSelector={query}")
    await g.gone()


async def pages_of_a_selection(world: World) -> None:
    g = Gadgets(world, "pages.conv.test", selectable=SELECTABLE)
    await g.defined()
    for number in range(6):
        await world.quiet("POST", g.path("v1"), g.body("v1", f"g{number}", spec={"old": str(number % 2), "common": "c"}))
    query, token = f"{g.path('v2')}?fieldSelector=spec.new%3D1&limit=2", ""
    for _ in range(2):
        status, found = await world.quiet("GET", query + (f"&continue={token}" if token else ""))
        token = found["metadata"].get("continue", "")
        remaining = found["metadata"].get("remainingItemCount")
        names = [item["metadata"]["name"] for item in found["items"]]
        world.steps.append({"page": [status, names, bool(token), remaining]})
    state = f"{g.path('v2')}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    await world.watch(f"{state}&fieldSelector=spec.new%3D1&timeoutSeconds=5", 4)
    await g.gone()


async def reads_that_cannot_be_converted(world: World) -> None:
    g = Gadgets(world, "unconverted.conv.test")
    await g.defined()
    await world.quiet("POST", g.path("v1"), g.body("v1", "a", spec={"old": "1"}))
    answers: tuple[dict[str, Any], ...] = (
        {"result": {"status": "Failure", "message": "no"}},
        {"result": {"status": "Failure"}},
        {"result": {}},
        {"result": {"status": "Success"}},
        {"result": {"status": "Success"}, "convertedObjects": []},
        {"result": {"status": "Success"}, "convertedObjects": [{}]},
        {"result": {"status": "Success"}, "convertedObjects": [None]},
        {"result": {"status": "Success"}, "convertedObjects": ["x"]},
        {"result": {"status": "Success"}, "convertedObjects": "x"},
        {"result": "x"},
        {"uid": "other", "result": {"status": "Success"}, "convertedObjects": [{}]},
        {"result": {"status": "Success"}, "convertedObjects": [g.body("v1", "a")]},
        {"result": {"status": "Success"}, "convertedObjects": [g.body("v2", "b")]},
        {"result": {"status": "Success"}, "convertedObjects": [{**g.body("v2", "a"), "kind": "Other"}]},
        {"result": {"status": "Success"}, "convertedObjects": [{**g.body("v2", "a"), "metadata": None}]},
        {"result": {"status": "Success"}, "convertedObjects": [{**g.body("v2", "a"), "metadata": "x"}]},
    )
    for answer in answers:
        world.always(answer)
        await world.do("GET", g.path("v2", "a"))
        await world.do("PATCH", g.path("v2", "a"), {"spec": {"new": "2"}}, MERGE)
    for whole in (
        http(b"{"),
        http(b"[]"),
        http(b"{}"),
        http(b""),
        http(b"no", "500 Internal Server Error", "text/plain"),
        http(b"no", "404 Not Found", "text/plain"),
        http(b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}'),
        http(b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1","response":{}}'),
        http(b'{"kind":"ConversionReview","apiVersion":"other/v1","response":{}}'),
        http(b'{"kind":"Other","apiVersion":"apiextensions.k8s.io/v1","response":{}}'),
        http(b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":"x"}'),
        http(b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":1}}'),
        http(b'{"status":"Failure","message":"told"}', "500 Internal Server Error"),
        http(b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"told","code":418}', "418 Teapot"),
    ):
        world.always(whole)
        await world.do("GET", g.path("v2", "a"))
    world.webhook(converting)
    await world.do("GET", g.path("v2", "a"))
    await g.gone()


STORIES: tuple[Story, ...] = (
    managers_of_two_versions,
    one_manager_moves_to_the_next_version,
    updates_of_two_versions,
    without_a_webhook,
    the_version_of_a_manager_is_served_no_longer,
    the_version_of_a_manager_is_gone,
    a_webhook_that_fails_while_managers_are_of_two_versions,
    an_apply_where_the_version_of_another_manager_is_gone,
    a_status_in_the_body_of_the_main_endpoint,
    selection_in_each_version,
    selection_without_a_webhook,
    pages_of_a_selection,
    reads_that_cannot_be_converted,
)
