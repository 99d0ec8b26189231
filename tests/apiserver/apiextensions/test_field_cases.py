"""Field cases of custom resources: what users of systems of this kind ran into. Each test names its case."""

from __future__ import annotations

import pytest

from tests.apiserver.api import JSON_PATCH, MERGE, STRATEGIC, Api
from tests.apiserver.apiextensions.definitions import (
    CRDS,
    GADGETS,
    NAME,
    SCHEMA,
    condition,
    definition,
    established,
    gadget,
    until,
    version,
)

CONFIG_MAPS = "/api/v1/namespaces/ns-a/configmaps"


async def test_f1_a_put_without_a_resource_version(api: Api) -> None:
    """Refused for a custom resource, unconditional for most built-in kinds."""
    await established(api, definition())
    await api.created(GADGETS, gadget(spec={"color": "red"}))
    answer = await api.put(f"{GADGETS}/g1", gadget(spec={"color": "blue"}))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0" in answer.message and "must be specified for an update" in answer.message
    assert (await api.get(f"{GADGETS}/g1")).json["spec"] == {"color": "red"}
    await api.created(CONFIG_MAPS, {"metadata": {"name": "cm-a"}})
    answer = await api.put(f"{CONFIG_MAPS}/cm-a", {"metadata": {"name": "cm-a"}, "data": {"k": "v"}})
    assert (answer.status, answer.json["data"]) == (200, {"k": "v"})


async def test_g1_a_strategic_merge_patch_of_a_custom_resource(api: Api) -> None:
    await established(api, definition())
    created = await api.created(GADGETS, gadget(spec={"color": "red"}))
    answer = await api.patch(f"{GADGETS}/g1", {"spec": {"color": "blue"}}, STRATEGIC)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
    assert answer.message == (
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
        "application/merge-patch+json, application/apply-patch+yaml"
    )
    assert (await api.get(f"{GADGETS}/g1")).json == created


async def test_i1_unknown_fields_are_pruned_and_told(api: Api) -> None:
    """As an operator's progress in a status that the schema does not know; not where the schema says to preserve them."""
    await established(api, definition())
    sent = gadget(spec={"color": "red", "extra": 1}, status={"kopf": {"progress": {"a": 1}}})
    answer = await api.post(GADGETS, sent)
    assert (answer.status, answer.json["spec"], answer.json["status"]) == (201, {"color": "red"}, {})
    assert '299 - "unknown field \\"spec.extra\\""' in answer.headers["warning"]
    assert (await api.get(f"{GADGETS}/g1")).json == answer.json
    keeping = {**SCHEMA, "properties": {**SCHEMA["properties"], "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    changed = await api.patch(
        f"{CRDS}/{NAME}", [{"op": "replace", "path": "/spec/versions/0", "value": version(schema=keeping)}], JSON_PATCH
    )
    assert changed.status == 200, changed.body

    async def kept() -> bool:
        """Whether the changed schema is in use yet."""
        probe = await api.post(GADGETS, {**sent, "metadata": {"name": "probe"}}, query={"dryRun": "All"})
        return bool(probe.json["status"])

    for _ in range(1000):
        if await kept():
            break
    answer = await api.post(GADGETS, {**sent, "metadata": {"name": "g2"}})
    assert (answer.json["spec"], answer.json["status"]) == ({"color": "red"}, {"kopf": {"progress": {"a": 1}}})


async def test_i2_defaults_need_pruning(api: Api) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string", "default": "red"}}}}}
    body = definition(version(schema=schema))
    body["spec"]["preserveUnknownFields"] = True
    answer = await api.post(CRDS, body)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema" in answer.message


async def test_j3_objects_are_taken_from_the_moment_on_that_their_definition_is_established(api: Api) -> None:
    """Before that they get 404, never anything else."""
    await api.created(CRDS, definition())
    early = await api.post(GADGETS, gadget("early"))
    assert early.status in (201, 404)
    answer = await until(api, f"{CRDS}/{NAME}", lambda found: condition(found, "Established").get("status") == "True")
    assert condition(answer, "NamesAccepted")["status"] == "True"
    assert answer.json["status"]["acceptedNames"]["plural"] == "gadgets"
    assert (await api.post(GADGETS, gadget())).status == 201
    listed = (await api.get("/apis/demo.test/v1")).json["resources"]
    assert "gadgets" in [resource["name"] for resource in listed]


async def test_j3_a_version_that_is_not_served_is_not_in_discovery(api: Api) -> None:
    await established(api, definition(version(), version("v2", storage=False, served=False)))
    assert (await api.get("/apis/demo.test/v1")).status == 200
    assert (await api.get("/apis/demo.test/v2")).status == 404
    assert [v["version"] for v in (await api.get("/apis/demo.test")).json["versions"]] == ["v1"]


@pytest.mark.parametrize("query", [{}, {"dryRun": "All"}])
async def test_j4_the_name_of_a_definition_is_that_of_its_plural_and_group(api: Api, query: dict[str, str]) -> None:
    body = definition()
    body["metadata"]["name"] = "wrong.demo.test"
    answer = await api.post(CRDS, body, query=query)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert 'metadata.name: Invalid value: "wrong.demo.test": must be spec.names.plural+"."+spec.group' in answer.message
    assert (await api.get(f"{CRDS}/wrong.demo.test")).status == 404


async def test_k1_the_status_is_apart_and_the_generation_counts_the_rest(api: Api) -> None:
    await established(api, definition(version(subresources={"status": {}})))
    created = await api.created(GADGETS, gadget(spec={"color": "red"}, status={"phase": "sent"}))
    assert "status" not in created and created["metadata"]["generation"] == 1
    changed = {**created, "spec": {"color": "blue"}, "status": {"phase": "sent"}}
    updated = (await api.put(f"{GADGETS}/g1", changed)).json
    assert updated["spec"] == {"color": "blue"} and "status" not in updated and updated["metadata"]["generation"] == 2
    metadata = {**updated["metadata"], "labels": {"a": "b"}}
    answer = await api.put(f"{GADGETS}/g1/status", {**updated, "metadata": metadata, "spec": {"color": "green"}, "status": {"phase": "x"}})
    assert answer.status == 200
    found = (await api.get(f"{GADGETS}/g1")).json
    assert (found["spec"], found["status"], found["metadata"]["generation"]) == ({"color": "blue"}, {"phase": "x"}, 2)
    assert "labels" not in found["metadata"]
    assert int(found["metadata"]["resourceVersion"]) > int(updated["metadata"]["resourceVersion"])


@pytest.mark.parametrize(("path", "code"), [(".metadata.labels", 422), (".status.sel", 201), (".spec.sel", 201)])
async def test_k3_where_the_selector_of_a_scale_may_be(api: Api, path: str, code: int) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": path}
    answer = await api.post(CRDS, definition(version(subresources={"scale": scale})))
    assert answer.status == code
    if code == 422:
        assert "should be a json path under either .spec or .status" in answer.message


async def test_d1_a_custom_resource_is_selected_by_its_name_alone(api: Api) -> None:
    await established(api, definition())
    answer = await api.get(GADGETS, query={"fieldSelector": "spec.color=red"})
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "field label not supported: spec.color" in answer.message
    assert (await api.get(GADGETS, query={"fieldSelector": "metadata.name=g1"})).status == 200


async def test_t1_integers_of_64_bits(api: Api) -> None:
    """Digit for digit, in answers and in the store; one more than the largest is refused."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer", "format": "int64"}}}}}
    await established(api, definition(version(schema=schema)))
    largest = 2**63 - 1
    await api.created(GADGETS, gadget(spec={"n": largest}))
    assert f'"n":{largest}'.encode() in (await api.get(f"{GADGETS}/g1")).body
    patched = await api.patch(f"{GADGETS}/g1", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert f'"n":{largest}'.encode() in patched.body
    tested = await api.patch(f"{GADGETS}/g1", [{"op": "test", "path": "/spec/n", "value": largest}], JSON_PATCH)
    assert tested.status == 200
    beyond = await api.post(
        GADGETS, b'{"apiVersion":"demo.test/v1","kind":"Gadget","metadata":{"name":"g2"},"spec":{"n":9223372036854775808}}'
    )
    assert beyond.status in (400, 422), beyond.body
