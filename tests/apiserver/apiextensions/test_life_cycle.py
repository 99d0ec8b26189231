"""Definitions come, change and go: names, conditions, what is served."""

from __future__ import annotations

from typing import Any

from tests.apiserver.api import JSON_PATCH, Api
from tests.apiserver.apiextensions.definitions import (
    CRDS,
    GADGETS,
    NAME,
    condition,
    definition,
    established,
    gadget,
    until,
    version,
)


async def test_objects_are_served_once_the_definition_is_established(api: Api) -> None:
    assert (await api.post(GADGETS, gadget())).status == 404
    made = await established(api, definition(shortNames=["gd"], categories=["all"]))
    assert made["status"]["acceptedNames"] == {
        "plural": "gadgets",
        "singular": "gadget",
        "kind": "Gadget",
        "listKind": "GadgetList",
        "shortNames": ["gd"],
        "categories": ["all"],
    }
    assert made["status"]["storedVersions"] == ["v1"]
    answer = await api.post(GADGETS, gadget(spec={"color": "red"}))
    assert answer.status == 201, answer.body
    assert answer.json["metadata"]["generation"] == 1
    assert (await api.get(f"{GADGETS}/g1")).json["spec"] == {"color": "red"}
    assert [item["kind"] for item in (await api.get("/apis/demo.test/v1/gadgets")).json["items"]] == ["Gadget"]


async def test_an_empty_definition_goes_at_once(api: Api) -> None:
    await established(api, definition())
    answer = await api.delete(f"{CRDS}/{NAME}")
    assert answer.status == 200
    assert answer.json["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert condition(answer, "Terminating")["reason"] == "InstanceDeletionPending"
    await until(api, f"{CRDS}/{NAME}", lambda found: found.status == 404)
    gone = await until(api, "/apis/demo.test/v1/gadgets", lambda found: found.status == 404)
    assert gone.body == b"404 page not found\n"
    assert (await api.get("/apis/demo.test")).status == 404


async def test_a_definition_waits_for_the_finalizers_of_its_objects(api: Api) -> None:
    await established(api, definition())
    held = gadget("held")
    held["metadata"]["finalizers"] = ["demo.test/hold"]
    await api.created(GADGETS, held)
    await api.created(GADGETS, gadget("free"))
    await api.delete(f"{CRDS}/{NAME}")
    await until(api, GADGETS, lambda found: [bool(i["metadata"].get("deletionTimestamp")) for i in found.json["items"]] == [True])
    await until(api, f"{CRDS}/{NAME}", lambda crd: condition(crd, "Terminating")["reason"] == "InstanceDeletionInProgress")
    refused = await api.post(GADGETS, gadget("late"))
    assert refused.status == 403
    assert refused.message == ('gadgets.demo.test "late" is forbidden: create not allowed while custom resource definition is terminating')
    verbs = (await api.get("/apis/demo.test/v1")).json["resources"][0]["verbs"]
    assert verbs == ["delete", "deletecollection", "get", "list", "watch"]
    assert (await api.patch(f"{GADGETS}/held", {"metadata": {"finalizers": None}})).status == 200
    await until(api, f"{CRDS}/{NAME}", lambda found: found.status == 404)


async def test_a_definition_that_comes_again_starts_without_objects(api: Api) -> None:
    await established(api, definition())
    await api.created(GADGETS, gadget())
    await api.delete(f"{CRDS}/{NAME}")
    await until(api, f"{CRDS}/{NAME}", lambda found: found.status == 404)
    await established(api, definition())
    assert (await api.get(GADGETS)).json["items"] == []
    assert (await api.post(GADGETS, gadget())).status == 201


async def test_names_belong_to_whoever_came_first(api: Api) -> None:
    await established(api, definition(shortNames=["gd"]))
    await api.created(CRDS, definition(plural="gadgetz", kind="Gadget", shortNames=["gd"], singular="gadgetz"))
    path = f"{CRDS}/gadgetz.demo.test"
    refused = await until(api, path, lambda answer: bool(condition(answer, "NamesAccepted")))
    assert condition(refused, "NamesAccepted") | {"lastTransitionTime": ""} == {
        "type": "NamesAccepted",
        "status": "False",
        "reason": "ListKindConflict",
        "message": '"GadgetList" is already in use',
        "lastTransitionTime": "",
    }
    assert condition(refused, "Established")["reason"] == "NotAccepted"
    assert (await api.get("/apis/demo.test/v1/gadgetz")).status == 404
    # the first one goes, the second one gets what it asked for
    await api.delete(f"{CRDS}/{NAME}")
    accepted = await until(api, path, lambda answer: condition(answer, "Established").get("status") == "True")
    assert condition(accepted, "NamesAccepted")["reason"] == "NoConflicts"
    assert (await api.get("/apis/demo.test/v1/gadgetz")).status == 200


async def test_watches_of_an_old_shape_end_and_new_ones_see_the_new(api: Api) -> None:
    await established(api, definition())
    await api.created(GADGETS, gadget())
    async with api.watch(GADGETS) as watch:
        assert (await watch.next())["type"] == "ADDED"
        more = {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string", "default": "blue"}}}},
        }
        patch: list[Any] = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": more}]
        assert (await api.patch(f"{CRDS}/{NAME}", patch, JSON_PATCH)).status == 200
        assert await watch.next() is None
        assert watch.ended
    await api.created(GADGETS, gadget("g2", spec={}))
    async with api.watch(GADGETS) as watch:
        first, second = await watch.take(2)
        assert "spec" not in first["object"]
        assert second["object"]["spec"] == {"color": "blue"}


async def test_a_version_that_is_served_no_more_is_gone(api: Api) -> None:
    await established(api, definition(version("v1"), version("v2", storage=False)))
    assert (await api.get("/apis/demo.test/v2/gadgets")).status == 200
    patch = [{"op": "replace", "path": "/spec/versions/1/served", "value": False}]
    await api.patch(f"{CRDS}/{NAME}", patch, JSON_PATCH)
    assert (await api.get("/apis/demo.test/v2/gadgets")).body == b"404 page not found\n"
    assert [v["version"] for v in (await api.get("/apis/demo.test")).json["versions"]] == ["v1"]


async def test_groups_of_the_project_need_an_approval(api: Api) -> None:
    body = definition()
    body["metadata"] = {"name": "gadgets.demo.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}}
    body["spec"]["group"] = "demo.k8s.io"
    await api.created(CRDS, body)
    name = "KubernetesAPIApprovalPolicyConformant"
    found = await until(api, f"{CRDS}/gadgets.demo.k8s.io", lambda answer: bool(condition(answer, name)))
    assert condition(found, name)["reason"] == "UnapprovedAnnotation"


async def test_a_version_that_is_stored_but_not_served_can_be_written_and_has_no_hash(api: Api) -> None:
    await established(api, definition(version("v1", served=False), version("v2", storage=False)))
    [resource] = (await api.get("/apis/demo.test/v2")).json["resources"]
    assert "storageVersionHash" not in resource
    made = await api.created("/apis/demo.test/v2/namespaces/ns-a/gadgets", gadget("g1", "v2"))
    assert made["apiVersion"] == "demo.test/v2"
    stored = api.server.objects.storages()["demo.test/gadgets"].get_now("ns-a/g1")
    assert stored is not None
    assert b'"demo.test/v1"' in stored.raw
    await api.delete(f"{CRDS}/{NAME}")
    await until(api, f"{CRDS}/{NAME}", lambda found: found.status == 404)


async def test_nothing_is_kept_of_definitions_that_went(api: Api) -> None:
    for _ in range(3):
        await established(api, definition())
        await api.created(GADGETS, gadget())
        await api.delete(f"{CRDS}/{NAME}")
        await until(api, f"{CRDS}/{NAME}", lambda found: found.status == 404)
    assert "demo.test/gadgets" not in api.server.objects.storages()
    assert api.server.table.lookup("demo.test", "v1", "gadgets") is None
    assert not api.server.schemas.has_kind("demo.test", "v1", "Gadget")
    assert api.server.table.versions("demo.test") == []
