"""Objects of custom resources: what the definition says of them holds at every verb."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import APPLY, JSON_PATCH, STRATEGIC, Api
from tests.apiserver.apiextensions.definitions import CRDS, GADGETS, NAME, SCHEMA, definition, established, gadget, version

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
SUBRESOURCES = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"},
}


def with_spec(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


async def test_status_and_the_rest_keep_out_of_each_others_way(api: Api) -> None:
    await established(api, definition(version(subresources={"status": {}})))
    made = await api.created(GADGETS, gadget(spec={"color": "red"}, status={"phase": "made up"}))
    assert "status" not in made
    assert made["metadata"]["generation"] == 1

    made["spec"], made["status"] = {"color": "blue"}, {"phase": "made up"}
    changed = (await api.put(f"{GADGETS}/g1", made)).json
    assert changed["metadata"]["generation"] == 2
    assert "status" not in changed

    changed["spec"], changed["status"] = {"color": "green"}, {"phase": "Ready"}
    changed["metadata"]["labels"] = {"a": "b"}
    answer = await api.put(f"{GADGETS}/g1/status", changed)
    assert answer.json["status"] == {"phase": "Ready"}
    assert answer.json["spec"] == {"color": "blue"}
    assert "labels" not in answer.json["metadata"]
    assert answer.json["metadata"]["generation"] == 2
    assert answer.json["metadata"]["resourceVersion"] != changed["metadata"]["resourceVersion"]


async def test_scale_is_a_view_of_the_paths_that_the_definition_names(api: Api) -> None:
    await established(api, definition(version(subresources=SUBRESOURCES)))
    made = await api.created(GADGETS, gadget(spec={"color": "red"}))
    absent = await api.get(f"{GADGETS}/g1/scale")
    assert (absent.status, absent.reason) == (500, "InternalError")
    assert absent.message == 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'

    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "g1", "namespace": "ns-a"}, "spec": {"replicas": 2}}
    assert (await api.put(f"{GADGETS}/g1/scale", scale)).status == 200
    await api.patch(f"{GADGETS}/g1/status", {"status": {"replicas": 1, "selector": "a=b"}})
    found = (await api.get(f"{GADGETS}/g1/scale")).json
    assert (found["kind"], found["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert (found["spec"], found["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "a=b"})
    table = (await api.get(f"{GADGETS}/g1/scale", headers=TABLE)).json
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["g1", 2, 1]
    refused = await api.patch(f"{GADGETS}/g1/scale", {"spec": {"replicas": -1}})
    assert refused.status == 422, refused.body
    assert "should be a non-negative integer" in refused.message


async def test_an_update_names_the_version_that_it_replaces(api: Api) -> None:
    await established(api, definition())
    made = await api.created(GADGETS, gadget())
    del made["metadata"]["resourceVersion"]
    refused = await api.put(f"{GADGETS}/g1", made)
    assert refused.status == 422
    assert refused.message == (
        'gadgets.demo.test "g1" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )


async def test_a_strategic_merge_patch_is_no_patch_of_custom_objects(api: Api) -> None:
    await established(api, definition())
    made = await api.created(GADGETS, gadget(spec={"color": "red"}))
    refused = await api.patch(f"{GADGETS}/g1", {"spec": {"color": "blue"}}, STRATEGIC)
    assert (refused.status, refused.reason) == (415, "UnsupportedMediaType")
    assert refused.message.endswith("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
    assert (await api.get(f"{GADGETS}/g1")).json == made
    for body, content_type, color in (
        ([{"op": "replace", "path": "/spec/color", "value": "blue"}], JSON_PATCH, "blue"),
        ({"spec": {"color": "green"}}, "application/merge-patch+json", "green"),
    ):
        assert (await api.patch(f"{GADGETS}/g1", body, content_type)).json["spec"]["color"] == color


async def test_only_what_the_definition_names_can_be_selected_by(api: Api) -> None:
    await established(api, definition(version(selectableFields=[{"jsonPath": ".spec.color"}])))
    await api.created(GADGETS, gadget("red", spec={"color": "red"}))
    await api.created(GADGETS, gadget("blue", spec={"color": "blue"}))
    refused = await api.get(GADGETS, query={"fieldSelector": "spec.size=1"})
    assert (refused.status, refused.message) == (400, "field label not supported: spec.size")
    found = await api.get(GADGETS, query={"fieldSelector": "spec.color=red"})
    assert [item["metadata"]["name"] for item in found.json["items"]] == ["red"]
    async with api.watch(GADGETS, fieldSelector="spec.color=red") as watch:
        assert (await watch.next())["object"]["metadata"]["name"] == "red"
        await api.patch(f"{GADGETS}/blue", {"spec": {"size": 1}})
        await api.patch(f"{GADGETS}/red", {"spec": {"color": "blue"}})
        event = await watch.next()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "red")


async def test_unknown_fields_are_pruned_and_told_of(api: Api) -> None:
    schema = {"type": "object", "properties": {**SCHEMA["properties"], "status": {"type": "object"}}}
    await established(api, definition(version(schema=schema)))
    answer = await api.post(GADGETS, gadget(spec={"color": "red", "extra": 1}, status={"kopf": {"progress": {}}}))
    assert answer.status == 201
    assert answer.json["spec"] == {"color": "red"}
    assert answer.json["status"] == {}
    assert '299 - "unknown field \\"spec.extra\\""' in answer.headers["warning"]
    assert (await api.get(f"{GADGETS}/g1")).json == answer.json


async def test_each_version_shows_the_same_object_and_has_its_own_columns(api: Api) -> None:
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    ]
    old = version("v1beta1", storage=False, deprecated=True, additionalPrinterColumns=columns[:1])
    await established(api, definition(version("v1", additionalPrinterColumns=columns), old))
    await api.created(GADGETS, gadget(spec={"color": "red", "size": 3}))
    beta = await api.get("/apis/demo.test/v1beta1/namespaces/ns-a/gadgets/g1")
    assert beta.json["apiVersion"] == "demo.test/v1beta1"
    assert beta.headers["warning"] == ['299 - "demo.test/v1beta1 Gadget is deprecated; use demo.test/v1 Gadget"']
    table = (await api.get(GADGETS, headers=TABLE)).json
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Color", "Size"]
    assert table["rows"][0]["cells"] == ["g1", "red", 3]
    table = (await api.get("/apis/demo.test/v1beta1/gadgets", headers=TABLE)).json
    assert table["rows"][0]["cells"] == ["g1", "red"]
    async with api.watch("/apis/demo.test/v1beta1/gadgets") as watch:
        assert (await watch.next())["object"]["apiVersion"] == "demo.test/v1beta1"
        await api.patch(f"{GADGETS}/g1", {"spec": {"size": 4}})
        event = await watch.next()
        assert (event["object"]["apiVersion"], event["object"]["spec"]["size"]) == ("demo.test/v1beta1", 4)
    # what is created in one version is read in the other
    await api.created("/apis/demo.test/v1beta1/namespaces/ns-a/gadgets", gadget("g2", "v1beta1"))
    assert (await api.get(f"{GADGETS}/g2")).json["apiVersion"] == "demo.test/v1"


async def test_an_update_without_changes_moves_an_object_to_the_storage_version_of_now(api: Api) -> None:
    both = version("v1", storage=True), version("v2", storage=False)
    await established(api, definition(*both))
    made = await api.created(GADGETS, gadget(spec={"color": "red"}))
    assert (await api.put(f"{GADGETS}/g1", made)).json["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    move = [{"op": "replace", "path": f"/spec/versions/{i}/storage", "value": bool(i)} for i in range(2)]
    moved = await api.patch(f"{CRDS}/{NAME}", move, JSON_PATCH)
    assert moved.json["status"]["storedVersions"] == ["v1", "v2"]
    written = (await api.put(f"{GADGETS}/g1", made)).json
    assert written["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    stored = api.server.objects.storages()["demo.test/gadgets"].get_now("ns-a/g1")
    assert stored is not None
    assert b'"demo.test/v2"' in stored.raw
    assert written["apiVersion"] == "demo.test/v1"


async def test_defaults_that_come_later_show_in_objects_that_were_there(api: Api) -> None:
    await established(api, definition(version(schema=with_spec(color={"type": "string"}))))
    await api.created(GADGETS, gadget(spec={}))
    schema = with_spec(color={"type": "string", "default": "blue"})
    patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
    assert (await api.patch(f"{CRDS}/{NAME}", patch, JSON_PATCH)).status == 200
    for path in (f"{GADGETS}/g1", GADGETS):
        found = (await api.get(path)).json
        assert found.get("items", [found])[0]["spec"] == {"color": "blue"}
    assert (await api.get(f"{GADGETS}/g1")).json["metadata"]["resourceVersion"]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_apply_owns_what_it_names_and_a_dry_run_stores_nothing(api: Api, dry_run: bool) -> None:
    await established(api, definition())
    query = {"fieldManager": "tool", **({"dryRun": "All"} if dry_run else {})}
    applied = await api.patch(f"{GADGETS}/g1", gadget(spec={"color": "red"}), APPLY, query=query)
    assert applied.status == 201, applied.body
    [entry] = applied.json["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("tool", "Apply", "demo.test/v1")
    assert entry["fieldsV1"] == {"f:spec": {"f:color": {}}}
    assert (await api.get(f"{GADGETS}/g1")).status == (404 if dry_run else 200)


async def test_cluster_scoped_objects_live_in_no_namespace(api: Api) -> None:
    await established(api, definition(scope="Cluster"))
    created = await api.post("/apis/demo.test/v1/gadgets", gadget())
    assert created.status == 201
    assert "namespace" not in created.json["metadata"]
    assert (await api.post(GADGETS, gadget("g2"))).body == b"404 page not found\n"


async def test_a_definition_with_a_conversion_webhook_says_that_it_cannot_convert(api: Api) -> None:
    body = definition(version("v1"), version("v2", storage=False))
    client = {"service": {"namespace": "ns-a", "name": "converter"}}
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    await established(api, body)
    assert (await api.post(GADGETS, gadget())).status == 201
    refused = await api.get("/apis/demo.test/v2/namespaces/ns-a/gadgets/g1")
    assert refused.status == 500
    assert refused.message.startswith("conversion webhook for demo.test/v1, Kind=Gadget failed")


async def test_objects_count_against_a_quota_and_go_with_their_namespace_by_deletecollection(api: Api) -> None:
    await established(api, definition())
    hard = {"count/gadgets.demo.test": "1"}
    await api.created("/api/v1/namespaces/ns-a/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    await api.patch("/api/v1/namespaces/ns-a/resourcequotas/q/status", {"status": {"hard": hard, "used": {"count/gadgets.demo.test": "0"}}})
    assert (await api.post(GADGETS, gadget("g1"))).status == 201
    refused = await api.post(GADGETS, gadget("g2"))
    assert refused.status == 403
    assert "exceeded quota: q, requested: count/gadgets.demo.test=1" in refused.message
    assert (await api.delete(GADGETS)).status == 200
    assert (await api.get(GADGETS)).json["items"] == []


async def test_other_users_need_rights_like_for_everything(api: Api) -> None:
    await established(api, definition())
    assert (await api.get(GADGETS, token="alice-token")).status == 403
    rule = {"apiGroups": ["demo.test"], "resources": ["gadgets"], "verbs": ["list"]}
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns-a"
    await api.created(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    await api.created(f"{rbac}/rolebindings", {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]})
    assert (await api.get(GADGETS, token="alice-token")).status == 200


async def test_finalizers_that_may_clash_are_warned_of(api: Api) -> None:
    await established(api, definition())
    body = gadget()
    body["metadata"]["finalizers"] = ["hold"]
    answer = await api.post(GADGETS, body)
    assert answer.status == 201
    why = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    expected = f'metadata.finalizers: \\"hold\\": {why}'
    assert answer.headers["warning"] == [f'299 - "{expected}"']
