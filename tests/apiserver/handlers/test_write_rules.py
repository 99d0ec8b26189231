"""Rules of writes that were found to differ from a real server's by running the same requests on both."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.authentication.user import UserInfo
from apiserver.machinery import status
from apiserver.objectstore.statuses import TooLargeError
from apiserver.resources.resource_info import ResourceInfo
from tests.apiserver.api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api

CM = "/api/v1/namespaces/ns-a/configmaps"
PODS = "/api/v1/namespaces/ns-a/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns-a/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/ns-a/deployments"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": "u-1"}
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


def cm(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}


async def test_what_a_client_says_of_the_life_of_a_new_object_is_neither_kept_nor_owned(api: Api) -> None:
    said = {
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 3,
        "uid": "x",
        "creationTimestamp": "2020-01-01T00:00:00Z",
    }
    created = await api.created(CM, cm(**said))
    assert "managedFields" not in created["metadata"]
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds"} & created["metadata"].keys()
    assert created["metadata"]["uid"] != "x" and not created["metadata"]["creationTimestamp"].startswith("2020")


async def test_a_resource_version_that_is_no_number_says_none_on_create(api: Api) -> None:
    assert (await api.post(CM, cm(resourceVersion="abc"))).status == 201


async def test_a_resource_version_on_create_is_refused_after_all_else(api: Api) -> None:
    answer = await api.post(CM, {"metadata": {"name": "BAD", "resourceVersion": "12"}})
    assert answer.status == 422


async def test_owner_references_that_stand_twice_are_taken_out_with_a_warning(api: Api) -> None:
    created = await api.post(CM, cm(ownerReferences=[OWNER, OWNER]))
    assert created.json["metadata"]["ownerReferences"] == [OWNER]
    assert "contains duplicate entries; API server dedups" in created.headers["warning"][0]
    patched = await api.patch(f"{CM}/a", {"metadata": {"ownerReferences": [OWNER, {**OWNER, "controller": True}, OWNER]}})
    assert patched.json["metadata"]["ownerReferences"] == [OWNER, {**OWNER, "controller": True}]
    assert "contains duplicate entries after mutating admission happens" in patched.headers["warning"][0]


async def test_the_uid_of_a_put_is_a_precondition(api: Api) -> None:
    created = await api.created(CM, cm())
    answer = await api.put(f"{CM}/a", cm(uid="other"))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns-a/a, '
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, "
        f"UID in object meta: {created['metadata']['uid']}"
    )


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC, APPLY])
async def test_the_uid_in_a_patch_is_a_change_of_it(api: Api, content_type: str) -> None:
    await api.created(CM, cm())
    answer = await api.patch(f"{CM}/a", cm(uid="other"), content_type, query={"fieldManager": "m"})
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert [c["field"] for c in answer.causes] == ["metadata.uid"]


async def test_a_put_that_creates(api: Api) -> None:
    """A version does not hinder it, a uid does: there is none that has it."""
    spec = {"spec": {"holderIdentity": "x"}}
    assert (await api.put(f"{LEASES}/l", {"metadata": {"name": "l", "resourceVersion": "5"}, **spec})).status == 201
    answer = await api.put(f"{LEASES}/m", {"metadata": {"name": "m", "uid": "x"}, **spec})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message.endswith("UID in precondition: x, UID in object meta: ")
    assert (await api.get(f"{LEASES}/m")).status == 404


async def test_an_apply_that_creates(api: Api) -> None:
    answer = await api.patch(f"{CM}/a", cm(uid="x"), APPLY, query={"fieldManager": "m"})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message.endswith("uid mismatch: the provided object specified uid x, and no existing object was found")
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a"}}
    answer = await api.patch(f"{CM}/a", nameless, APPLY, query={"fieldManager": "m"})
    assert (answer.status, answer.message) == (
        400,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    )
    assert (await api.patch(f"{CM}/a", cm(resourceVersion="1"), APPLY, query={"fieldManager": "m"})).status == 201
    # an object that is there has the name already
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}}
    assert (await api.patch(f"{CM}/a", nameless, APPLY, query={"fieldManager": "m"})).status == 200


async def test_who_may_update_but_not_create_creates_nothing_by_put_or_apply(api: Api) -> None:
    asked: list[tuple[str, str, str]] = []

    def refuse(user: UserInfo, resource: ResourceInfo, namespace: str, name: str) -> None:
        asked.append((resource.resource, namespace, name))
        raise status.forbidden(resource.group, resource.resource, name, "no")

    await api.created(CM, {"metadata": {"name": "there"}})
    api.server.env.authorize_create = refuse
    assert (await api.patch(f"{CM}/a", cm(), APPLY, query={"fieldManager": "m"})).status == 403
    assert (await api.put(f"{LEASES}/l", {"metadata": {"name": "l"}})).status == 403
    assert asked == [("configmaps", "ns-a", "a"), ("leases", "ns-a", "l")]
    assert (await api.put(f"{CM}/there", {"metadata": {"name": "there"}, "data": {"k": "v"}})).status == 200
    assert (await api.post(CM, {"metadata": {"name": "posted"}})).status == 201


@pytest.mark.parametrize("forgetting", [[], [{}]])
async def test_managed_fields_are_forgotten_by_an_empty_list(api: Api, forgetting: list[Any]) -> None:
    await api.created(CM, {**cm(), "data": {"k": "1"}})
    for write in (api.put, api.patch):
        answer = await write(f"{CM}/a", {**cm(managedFields=forgetting), "data": {"k": "2"}})
        assert "managedFields" not in answer.json["metadata"]
    # nothing is tracked from then on, until an apply
    assert "managedFields" not in (await api.patch(f"{CM}/a", {"data": {"k": "3"}})).json["metadata"]
    applied = await api.patch(f"{CM}/a", {**cm(), "data": {"l": "1"}}, APPLY, query={"fieldManager": "m"})
    assert [e["manager"] for e in applied.json["metadata"]["managedFields"]] == ["m", "before-first-apply"]


@pytest.mark.parametrize("entries", [[], [{"manager": "x"}]])
async def test_an_applied_configuration_has_no_managed_fields(api: Api, entries: list[Any]) -> None:
    """Field case H2."""
    answer = await api.patch(f"{CM}/a", cm(managedFields=entries), APPLY, query={"fieldManager": "m"})
    assert (answer.status, answer.message) == (400, "metadata.managedFields must be nil")


async def test_an_object_that_outgrows_the_store_loses_its_managed_fields_first(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case S3."""
    storage = api.server.registry.storage("", "configmaps")
    limit = 2_500

    def limited(inner: Any) -> Any:
        async def write(path: str, value: Any, *rest: Any) -> Any:
            if len(str(value)) > limit:
                raise TooLargeError("etcdserver: request is too large")
            return await inner(path, value, *rest)

        return write

    monkeypatch.setattr(storage, "create", limited(storage.create))
    monkeypatch.setattr(storage, "update", limited(storage.update))
    data = {f"key-{i}": "v" for i in range(100)}
    created = await api.post(CM, {**cm(), "data": data})
    assert created.status == 201 and "managedFields" not in created.json["metadata"]
    await api.created(CM, {"metadata": {"name": "b"}, "data": {"k": "v"}})
    for write in (api.put, api.patch):
        grown = await write(f"{CM}/b", {"metadata": {"name": "b"}, "data": data})
        assert grown.status == 200 and "managedFields" not in grown.json["metadata"]
    assert (await api.post(CM, {"metadata": {"name": "c"}, "data": {"k": "v" * limit}})).status == 413
    assert (await api.patch(f"{CM}/b", {"data": {"k": "v" * limit}})).status == 413
    applied = await api.patch(
        f"{CM}/b", {"apiVersion": "v1", "kind": "ConfigMap", "data": data}, APPLY, query={"fieldManager": "m", "force": "true"}
    )
    assert applied.status == 413


# -- deletion


async def test_a_deletion_that_stopped_half_way_goes_on(api: Api) -> None:
    pod = {**POD, "metadata": {"name": "p", "finalizers": ["x/y"]}, "spec": {**POD["spec"], "nodeName": "n1"}}
    await api.created(PODS, pod)
    assert (await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})).json["metadata"]["deletionGracePeriodSeconds"] == 0
    more = await api.delete(f"{PODS}/p", {"propagationPolicy": "Foreground"})
    assert more.json["metadata"]["finalizers"] == ["x/y", "foregroundDeletion"]
    less = await api.delete(f"{PODS}/p", {"propagationPolicy": "Background"})
    assert less.json["metadata"]["finalizers"] == ["x/y"]


async def test_a_negative_grace_period_is_one_second(api: Api) -> None:
    await api.created(PODS, {**POD, "spec": {**POD["spec"], "nodeName": "n1"}})
    assert (await api.delete(f"{PODS}/p", {"gracePeriodSeconds": -5})).json["metadata"]["deletionGracePeriodSeconds"] == 1


async def test_a_deletion_that_waits_is_accepted_where_dependents_are_to_go(api: Api) -> None:
    await api.created(CM, cm(finalizers=["x/y"]))
    assert (await api.delete(f"{CM}/a", {"orphanDependents": False})).status == 202
    assert (await api.delete(f"{CM}/a", {"orphanDependents": True})).status == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (b"[]", "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct"),
        (b'{"kind": "Pod", "apiVersion": "v1"}', 'no kind "Pod" is registered for version "v1"'),
        (
            b'{"gracePeriodSeconds": "x"}',
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (
            b'{"gracePeriodSeconds": 1.5}',
            "json: cannot unmarshal number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (b'{"dryRun": "All"}', "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string"),
    ],
)
async def test_bodies_of_deletes_that_are_no_options(api: Api, body: bytes, message: str) -> None:
    await api.created(CM, cm())
    for path in (f"{CM}/a", CM):
        answer = await api.delete(path, body)
        assert (answer.status, answer.reason) == (400, "BadRequest")
        assert answer.message.startswith(message)
    assert (await api.get(f"{CM}/a")).status == 200
    assert (await api.delete(f"{CM}/a", b"null")).status == 200


async def test_a_collection_is_deleted_by_pages(api: Api) -> None:
    """Field case X2, with a limit."""
    for i in range(5):
        await api.created(CM, {"metadata": {"name": f"c{i}", "labels": {"tier": "web"}}})
    version = (await api.get(CM)).json["metadata"]["resourceVersion"]
    first = (await api.delete(CM, query={"labelSelector": "tier=web", "limit": "2"})).json
    assert [item["metadata"]["name"] for item in first["items"]] == ["c0", "c1"]
    assert first["metadata"]["resourceVersion"] == version
    second = (await api.delete(CM, query={"labelSelector": "tier=web", "limit": "2", "continue": first["metadata"]["continue"]})).json
    assert [item["metadata"]["name"] for item in second["items"]] == ["c2", "c3"]
    left = (await api.get(CM, query={"labelSelector": "tier=web"})).json
    assert [item["metadata"]["name"] for item in left["items"]] == ["c4"]
    answer = await api.delete(CM, query={"resourceVersionMatch": "Exact"})
    assert (answer.status, answer.reason) == (422, "Invalid")


# -- patches


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        (MERGE, b"[1]", "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (MERGE, b"{", "error decoding patch: unexpected end of JSON input"),
        (MERGE, b"null", "Invalid JSON Patch"),
        (JSON_PATCH, b"{}", "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (STRATEGIC, b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (STRATEGIC, b"{", "unexpected end of JSON input"),
        (APPLY, b"null", "invalid object type: /, Kind="),
        (APPLY, b"", "invalid object type: /, Kind="),
        (MERGE, b'{"apiVersion": null}', "the name of the object (a based on URL) was undeterminable: name must be provided"),
        (STRATEGIC, b'{"$patch": "delete"}', "the name of the object (a based on URL) was undeterminable: name must be provided"),
    ],
)
async def test_patches_that_are_none(api: Api, content_type: str, body: bytes, message: str) -> None:
    await api.created(CM, cm())
    query = {"fieldManager": "m"} if content_type == APPLY else {}
    answer = await api.patch(f"{CM}/a", body, content_type, query=query)
    assert (answer.status, answer.reason, answer.message) == (400, "BadRequest", message)


async def test_a_refused_patch_shows_what_it_made_and_a_strategic_one_itself(api: Api) -> None:
    await api.created(CM, cm())
    merged = await api.patch(f"{CM}/a", {"data": {"k": 1}})
    assert merged.status == 422
    assert r'"{\"apiVersion\":\"v1\",\"data\":{\"k\":1},\"kind\":\"ConfigMap\",' in merged.causes[0]["message"]
    for body, shown in (
        ({"metadata": {"labels": "x"}}, 'Invalid value: "map[metadata:map[labels:x]]": cannot restore map from string'),
        ({"metadata": {"finalizers": 7}}, 'Invalid value: "map[metadata:map[finalizers:7]]": cannot restore slice from int64'),
        ({"data": [1]}, 'Invalid value: "map[data:[1]]": cannot restore map from slice'),
    ):
        strategic = await api.patch(f"{CM}/a", body, STRATEGIC)
        assert (strategic.status, strategic.causes[0]["message"]) == (422, shown)
    await api.created(DEPLOYMENTS, DEPLOYMENT)
    replicas = await api.patch(f"{DEPLOYMENTS}/d", {"spec": {"replicas": "x"}}, STRATEGIC)
    assert replicas.causes[0]["message"] == 'Invalid value: "map[spec:map[replicas:x]]": unrecognized type: int32'


async def test_a_patch_changes_no_kind(api: Api) -> None:
    await api.created(CM, cm())
    other = await api.patch(f"{CM}/a", {"kind": "Secret"})
    assert other.status == 422
    assert other.causes[0]["message"].endswith("converting (v1.Secret) to (core.ConfigMap): unknown conversion")
    unknown = await api.patch(f"{CM}/a", {"apiVersion": "v2"})
    assert 'no kind "ConfigMap" is registered for version "v2"' in unknown.causes[0]["message"]
    assert (await api.patch(f"{CM}/a", {"kind": None, "data": {"k": "1"}})).json["kind"] == "ConfigMap"
    for body in ({"kind": "Secret"}, {"apiVersion": "v2"}, None):
        kept = await api.patch(f"{CM}/a", b"null" if body is None else body, STRATEGIC)
        assert (kept.status, kept.json["kind"], kept.json["apiVersion"]) == (200, "ConfigMap", "v1")


# -- scale and binding


async def test_an_apply_of_a_scale_owns_the_replicas_of_its_parent(api: Api) -> None:
    await api.patch(f"{DEPLOYMENTS}/d", {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 2}}, APPLY, query={"fieldManager": "m1"})
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 8}}
    conflict = await api.patch(f"{DEPLOYMENTS}/d/scale", scale, APPLY, query={"fieldManager": "m2"})
    assert (conflict.status, conflict.message) == (409, 'Apply failed with 1 conflict: conflict with "m1": .spec.replicas')
    forced = await api.patch(f"{DEPLOYMENTS}/d/scale", scale, APPLY, query={"fieldManager": "m2", "force": "true"})
    assert (forced.status, forced.json["spec"]) == (200, {"replicas": 8})
    entries = {(e["manager"], e.get("subresource", "")): e for e in (await api.get(f"{DEPLOYMENTS}/d")).json["metadata"]["managedFields"]}
    assert entries["m2", "scale"]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert (entries["m2", "scale"]["operation"], entries["m2", "scale"]["apiVersion"]) == ("Apply", "apps/v1")
    assert "f:replicas" not in entries["m1", ""]["fieldsV1"]["f:spec"]


async def test_an_update_of_a_scale_takes_the_replicas(api: Api) -> None:
    await api.post(DEPLOYMENTS, DEPLOYMENT, query={"fieldManager": "maker"})
    before = (await api.get(f"{DEPLOYMENTS}/d")).json
    same = await api.put(f"{DEPLOYMENTS}/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 1}}, query={"fieldManager": "s"})
    assert same.json["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 4}}, query={"fieldManager": "s"})
    entries = {e["manager"]: e for e in (await api.get(f"{DEPLOYMENTS}/d")).json["metadata"]["managedFields"]}
    assert (entries["s"]["subresource"], entries["s"]["fieldsV1"]) == ("scale", {"f:spec": {"f:replicas": {}}})
    assert "f:replicas" not in entries["maker"]["fieldsV1"]["f:spec"]
    wrong = await api.put(f"{DEPLOYMENTS}/d/scale", {"metadata": {"name": "d", "uid": "x"}, "spec": {"replicas": 5}})
    assert (wrong.status, wrong.reason) == (409, "Conflict")
    stale = await api.put(f"{DEPLOYMENTS}/d/scale", {"metadata": {"name": "d", "resourceVersion": "1"}, "spec": {"replicas": 5}})
    assert (stale.status, stale.reason) == (409, "Conflict")


@pytest.mark.parametrize(
    ("binding", "code", "message"),
    [
        ({"metadata": {"name": "q"}, "target": {"name": "n"}}, 400, "name in URL does not match name in Binding object"),
        (
            {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "n"}},
            422,
            'Binding "p" is invalid: target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
        ({"metadata": {"name": "p"}, "target": {"kind": "Node"}}, 422, 'Binding "p" is invalid: target.name: Required value'),
    ],
)
async def test_bindings_that_are_none(api: Api, binding: dict[str, Any], code: int, message: str) -> None:
    await api.created(PODS, POD)
    answer = await api.post(f"{PODS}/p/binding", binding)
    assert (answer.status, answer.message) == (code, message)


async def test_a_binding_has_preconditions_and_no_owner(api: Api) -> None:
    created = await api.created(PODS, POD)
    wrong = await api.post(f"{PODS}/p/binding", {"metadata": {"name": "p", "uid": "x"}, "target": {"name": "n"}})
    assert (wrong.status, wrong.reason) == (409, "Conflict")
    right = {"name": "p", "uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"]}
    assert (await api.post(f"{PODS}/p/binding", {"metadata": right, "target": {"name": "n"}})).status == 201
    bound = (await api.get(f"{PODS}/p")).json
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["managedFields"] == created["metadata"]["managedFields"]
    assert (await api.post("/api/v1/namespaces/ns-a/bindings", {"target": {"name": "n"}})).message == "Name parameter required."


# -- status

ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"


@pytest.mark.parametrize(("path", "body", "kept"), [(PODS, POD, set()), (DEPLOYMENTS, DEPLOYMENT, {"labels"})])
async def test_a_status_update_of_an_old_kind_may_write_metadata(api: Api, path: str, body: dict[str, Any], kept: set[str]) -> None:
    await api.created(path, body)
    name = body["metadata"]["name"]
    said = {"labels": {"l": "1"}, "annotations": {"a": "1"}, "finalizers": ["x/y"]}
    answer = await api.patch(f"{path}/{name}/status", {"metadata": said, "spec": {"paused": True}}, query={"fieldManager": "s"})
    assert answer.status == 200, answer.body
    metadata = answer.json["metadata"]
    assert {field for field in said if metadata.get(field) != said[field]} == kept
    assert "paused" not in answer.json["spec"]
    (entry,) = (e for e in metadata["managedFields"] if e["manager"] == "s")
    assert entry["subresource"] == "status"
    assert {f"f:{field}" for field in said.keys() - kept} == entry["fieldsV1"]["f:metadata"].keys()


async def test_a_status_update_of_a_pod_keeps_its_owners(api: Api) -> None:
    await api.created(PODS, POD)
    answer = await api.patch(f"{PODS}/p/status", {"metadata": {"ownerReferences": [OWNER]}})
    assert "ownerReferences" not in answer.json["metadata"]


async def test_a_status_update_of_a_later_kind_keeps_metadata(api: Api) -> None:
    spec = {"attacher": "csi.test", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
    await api.created(ATTACHMENTS, {"metadata": {"name": "a", "labels": {"l": "0"}}, "spec": spec})
    body = {"metadata": {"labels": {"l": "1"}, "finalizers": ["x/y"]}, "status": {"attached": True}}
    answer = await api.patch(f"{ATTACHMENTS}/a/status", body, query={"fieldManager": "s"})
    assert answer.status == 200, answer.body
    metadata = answer.json["metadata"]
    assert metadata["labels"] == {"l": "0"} and "finalizers" not in metadata
    assert "f:metadata" not in next(e for e in metadata["managedFields"] if e["manager"] == "s")["fieldsV1"]


# -- applies that change nothing


async def test_an_apply_that_changes_nothing_is_told_from_one_that_does(api: Api) -> None:
    """Field case H3; that it was seen before is remembered of the version in which it was."""
    body, query = {**DEPLOYMENT, "metadata": {"name": "d", "finalizers": []}}, {"fieldManager": "m"}
    path = f"{DEPLOYMENTS}/d"
    first = (await api.patch(path, body, APPLY, query=query)).json
    async with api.watch(DEPLOYMENTS, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        for _ in range(3):
            assert (await api.patch(path, body, APPLY, query=query)).json == first
        await api.patch(path, {"spec": {"paused": True}})
        assert (await watch.next())["object"]["spec"]["paused"] is True
    grown = {**body, "spec": {**body["spec"], "replicas": 4}}
    assert (await api.patch(path, grown, APPLY, query=query)).json["spec"]["replicas"] == 4  # what is defaulted is nobody's


async def test_what_changed_meanwhile_is_applied_again(api: Api) -> None:
    query = {"fieldManager": "m", "force": "true"}
    body = {**cm(), "data": {"k": "1"}}
    for _ in range(3):
        await api.patch(f"{CM}/a", body, APPLY, query=query)
    await api.patch(f"{CM}/a", {"data": {"k": "2"}})
    for _ in range(2):
        assert (await api.patch(f"{CM}/a", body, APPLY, query=query)).json["data"] == {"k": "1"}
    await api.patch(f"{CM}/a", {"data": {"k": "2"}})
    unforced = await api.patch(f"{CM}/a", body, APPLY, query={"fieldManager": "m"})
    assert unforced.status == 409
    other = await api.patch(f"{CM}/a", {**cm(), "data": {"k": "2"}}, APPLY, query={"fieldManager": "n"})
    assert [e["manager"] for e in other.json["metadata"]["managedFields"] if e["operation"] == "Apply"] == ["n"]
    await api.delete(f"{CM}/a")
    again = await api.patch(f"{CM}/a", body, APPLY, query=query)
    assert again.status == 201


async def test_an_unchanged_apply_is_asked_of_admission_each_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"fieldManager": "m"}
    for _ in range(3):
        await api.patch(f"{CM}/a", {**cm(), "data": {"k": "1"}}, APPLY, query=query)

    async def refuse(attributes: Any) -> None:
        raise status.forbidden("", "configmaps", "a", "not now")

    monkeypatch.setattr(api.server.env.admission, "validate", refuse)
    assert (await api.patch(f"{CM}/a", {**cm(), "data": {"k": "1"}}, APPLY, query=query)).status == 403
