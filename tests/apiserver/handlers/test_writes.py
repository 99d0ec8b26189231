"""Create, update, patch, delete: what is stored, what is refused, and in which words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api

CM = "/api/v1/namespaces/ns-a/configmaps"
PODS = "/api/v1/namespaces/ns-a/pods"
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_create_answers_what_is_stored(api: Api) -> None:
    created = await api.post(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert created.status == 201
    assert created.body == (await api.get(f"{CM}/a")).body
    metadata = created.json["metadata"]
    assert metadata["namespace"] == "ns-a"
    assert metadata["uid"] and metadata["creationTimestamp"] and metadata["resourceVersion"]


async def test_a_resource_version_in_a_create_is_an_odd_but_known_error(api: Api) -> None:
    """Field case E3."""
    answer = await api.post(CM, {"metadata": {"name": "a", "resourceVersion": "12"}})
    assert (answer.status, answer.reason) == (500, "")
    assert answer.message == "resourceVersion should not be set on objects to be created"


async def test_a_stale_update_is_a_conflict(api: Api) -> None:
    """Field case F2."""
    first = await api.created(CM, {"metadata": {"name": "cm-a"}, "data": {"v": "1"}})
    first["data"] = {"v": "2"}
    assert (await api.put(f"{CM}/cm-a", first)).status == 200
    first["data"] = {"v": "3"}
    answer = await api.put(f"{CM}/cm-a", first)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "cm-a": the object has been modified; please apply your changes to the latest '
        "version and try again"
    )
    assert (await api.get(f"{CM}/cm-a")).json["data"] == {"v": "2"}


async def test_an_update_that_changes_nothing_keeps_the_version(api: Api) -> None:
    created = await api.created(CM, {"metadata": {"name": "a"}, "data": {"v": "1"}})
    again = await api.put(f"{CM}/a", {"data": {"v": "1"}, "metadata": {"name": "a"}})
    assert again.json["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_a_delete_minds_its_preconditions(api: Api) -> None:
    """Field case F3."""
    old = await api.created(CM, {"metadata": {"name": "a"}})
    await api.delete(f"{CM}/a")
    new = await api.created(CM, {"metadata": {"name": "a"}})
    answer = await api.delete(f"{CM}/a", {"preconditions": {"uid": old["metadata"]["uid"]}})
    assert answer.status == 409
    assert old["metadata"]["uid"] in answer.message and new["metadata"]["uid"] in answer.message
    answer = await api.delete(f"{CM}/a", {"preconditions": {"resourceVersion": "1"}})
    assert answer.status == 409
    assert (await api.get(f"{CM}/a")).status == 200


async def test_finalizers_make_a_delete_two_phased(api: Api) -> None:
    """Field cases O1 and O2."""
    created = await api.created(CM, {"metadata": {"name": "a", "finalizers": ["x/y"]}})
    async with api.watch(CM, resourceVersion=created["metadata"]["resourceVersion"]) as watch:
        first = await api.delete(f"{CM}/a")
        assert first.status == 200
        assert first.json["metadata"]["deletionGracePeriodSeconds"] == 0
        second = await api.delete(f"{CM}/a")
        assert second.json["metadata"]["deletionTimestamp"] == first.json["metadata"]["deletionTimestamp"]
        more = await api.patch(f"{CM}/a", {"metadata": {"finalizers": ["x/y", "z/w"]}})
        assert more.status == 422
        assert "no new finalizers can be added if the object is being deleted" in more.message
        last = await api.patch(f"{CM}/a", {"metadata": {"finalizers": None}})
        assert last.status == 200
        events = await watch.take(2)
    assert [e["type"] for e in events] == ["MODIFIED", "DELETED"]
    assert (await api.get(f"{CM}/a")).status == 404


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
async def test_propagation_policies_are_finalizers(api: Api, policy: str, finalizer: str) -> None:
    await api.created(CM, {"metadata": {"name": "a"}})
    answer = await api.delete(f"{CM}/a", {"propagationPolicy": policy})
    assert answer.json["metadata"]["finalizers"] == [finalizer]
    assert (await api.get(f"{CM}/a")).status == 200


async def test_orphan_and_foreground_exclude_each_other(api: Api) -> None:
    """Field case O3."""
    answer = await api.post(CM, {"metadata": {"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}})
    assert answer.status == 422
    assert "finalizer orphan and foregroundDeletion cannot be both set" in answer.message
    await api.created(CM, {"metadata": {"name": "a"}})
    answer = await api.delete(f"{CM}/a", {"orphanDependents": True, "propagationPolicy": "Orphan"})
    assert answer.status == 422
    assert "orphanDependents and deletionPropagation cannot be both set" in answer.message


async def test_a_pod_on_a_node_gets_its_grace(api: Api) -> None:
    await api.created(PODS, {**POD, "spec": {**POD["spec"], "nodeName": "n1"}})
    first = await api.delete(f"{PODS}/p")
    assert first.json["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})
    assert shorter.json["metadata"]["deletionGracePeriodSeconds"] == 5
    longer = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 60})
    assert longer.json["metadata"]["deletionGracePeriodSeconds"] == 5
    assert (await api.delete(f"{PODS}/p", query={"gracePeriodSeconds": "0"})).status == 200
    assert (await api.get(f"{PODS}/p")).status == 404


async def test_a_pod_that_runs_nowhere_goes_at_once(api: Api) -> None:
    await api.created(PODS, POD)
    assert (await api.delete(f"{PODS}/p")).json["kind"] == "Pod"
    assert (await api.get(f"{PODS}/p")).status == 404


async def test_generated_names_are_tried_again_when_taken(api: Api) -> None:
    class Loaded:
        """Answers the same name twice."""

        def __init__(self) -> None:
            self.letters = ["aaaaa", "aaaaa", "bbbbb"]

        def choices(self, alphabet: str, k: int) -> list[str]:
            return list(self.letters.pop(0))

        def getrandbits(self, bits: int) -> int:
            return len(self.letters)

    api.server.env.random = Loaded()  # type: ignore[assignment]
    names = [(await api.created(CM, {"metadata": {"generateName": "pre-"}}))["metadata"]["name"] for _ in range(2)]
    assert names == ["pre-aaaaa", "pre-bbbbb"]


async def test_concurrent_patches_of_one_object_all_count(api: Api) -> None:
    """Each lost compare is tried again against the newest version."""
    await api.created(CM, {"metadata": {"name": "a"}})
    answers = await asyncio.gather(*(api.patch(f"{CM}/a", {"data": {f"k{n}": "v"}}) for n in range(20)))
    assert {a.status for a in answers} == {200}
    assert len((await api.get(f"{CM}/a")).json["data"]) == 20


async def test_two_creators_of_one_name(api: Api) -> None:
    """Field case Y1: one wins."""
    answers = await asyncio.gather(*(api.post(CM, {"metadata": {"name": "lock"}}) for _ in range(2)))
    assert sorted(a.status for a in answers) == [201, 409]
    assert next(a for a in answers if a.status == 409).reason == "AlreadyExists"


async def test_a_dry_run_stores_nothing(api: Api) -> None:
    """Field case L1."""
    created = await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    dry = {"dryRun": "All"}
    patched = await api.patch(f"{CM}/a", {"data": {"k": "w"}}, query=dry)
    assert patched.json["data"] == {"k": "w"}
    assert (await api.post(CM, {"metadata": {"name": "b"}}, query=dry)).status == 201
    assert (await api.delete(f"{CM}/a", query=dry)).status == 200
    assert (await api.get(f"{CM}/a")).json == created
    assert (await api.get(f"{CM}/b")).status == 404
    refused = await api.post(CM, {"metadata": {"name": "b"}}, query={"dryRun": "Some"})
    assert refused.status == 422
    assert 'supported values: "All"' in refused.message


async def test_a_dry_run_of_a_service_keeps_no_address(api: Api) -> None:
    services = "/api/v1/namespaces/ns-a/services"
    body: dict[str, Any] = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    dry = await api.post(services, body, query={"dryRun": "All"})
    address = dry.json["spec"]["clusterIP"]
    real = await api.post(services, {**body, "spec": {**body["spec"], "clusterIP": address}})
    assert real.status == 201
    other = await api.post(services, {"metadata": {"name": "t"}, "spec": {**body["spec"], "clusterIP": address}})
    assert other.status == 422
    await api.delete(f"{services}/s")
    again = await api.post(services, {"metadata": {"name": "t"}, "spec": {**body["spec"], "clusterIP": address}})
    assert again.status == 201


async def test_delete_collection_minds_selector_options_and_body(api: Api) -> None:
    """Field case X2."""
    for name, tier in (("a", "web"), ("b", "web"), ("c", "db")):
        await api.created(CM, {"metadata": {"name": name, "labels": {"tier": tier}}})
    options = {"propagationPolicy": "Background", "dryRun": ["All"]}
    answer = await api.delete(CM, options, query={"labelSelector": "tier=web"})
    assert (answer.status, answer.json["kind"], len(answer.json["items"])) == (200, "ConfigMapList", 2)
    assert len((await api.get(CM)).json["items"]) == 3
    del options["dryRun"]
    await api.delete(CM, options, query={"labelSelector": "tier=web"})
    assert [i["metadata"]["name"] for i in (await api.get(CM)).json["items"]] == ["c"]


async def test_absent_objects(api: Api) -> None:
    """Field case X3."""
    gone = await api.delete(f"{CM}/none")
    assert (gone.status, gone.message) == (404, 'configmaps "none" not found')
    assert gone.json["details"] == {"name": "none", "kind": "configmaps"}
    assert (await api.patch(f"{CM}/none", {})).status == 404
    applied = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}\ndata: {k: v}\n"
    assert (await api.patch(f"{CM}/none", applied, APPLY, query={"fieldManager": "m"})).status == 201


async def test_the_same_apply_twice_is_one_write(api: Api) -> None:
    """Field case H3."""
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, finalizers: []}\ndata: {k: v}\n"
    first = await api.patch(f"{CM}/a", body, APPLY, query={"fieldManager": "m"})
    second = await api.patch(f"{CM}/a", body, APPLY, query={"fieldManager": "m"})
    assert (first.status, second.status) == (201, 200)
    assert first.json == second.json


async def test_apply_and_update_of_one_name_are_two_owners(api: Api) -> None:
    """Field cases H2 and H4."""
    await api.post(CM, {"metadata": {"name": "a"}, "data": {"k": "1"}}, query={"fieldManager": "tool"})
    body = b"apiVersion: v1\nkind: ConfigMap\ndata: {k: '2'}\n"
    answer = await api.patch(f"{CM}/a", body, APPLY, query={"fieldManager": "tool"})
    assert (answer.status, answer.reason) == (409, "Conflict")
    with_managed = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {managedFields: [{manager: x}]}\n"
    refused = await api.patch(f"{CM}/a", with_managed, APPLY, query={"fieldManager": "m"})
    assert (refused.status, refused.message) == (400, "metadata.managedFields must be nil")


async def test_a_writer_without_a_name_is_known_by_its_user_agent(api: Api) -> None:
    answer = await api.post(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}}, headers={"user-agent": "robot/1.2 (x)"})
    assert answer.json["metadata"]["managedFields"][0]["manager"] == "robot"


@pytest.mark.parametrize(
    ("method", "path", "body", "text"),
    [
        ("PUT", f"{CM}/cm-a", {"metadata": {"name": "cm-b"}}, "the name of the object (cm-b) does not match the name on the URL (cm-a)"),
        (
            "POST",
            CM,
            {"metadata": {"name": "x", "namespace": "ns-b"}},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ("POST", CM, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, "Secret in version"),
    ],
)
async def test_names_and_kinds_that_disagree_with_the_url(api: Api, method: str, path: str, body: Any, text: str) -> None:
    """Field case V4."""
    answer = await api.request(method, path, body)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert text in answer.message


async def test_patch_types_are_told_by_content_type_alone(api: Api) -> None:
    await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert (await api.patch(f"{CM}/a", [{"op": "replace", "path": "/data/k", "value": "w"}], JSON_PATCH)).status == 200
    assert (await api.patch(f"{CM}/a", {"data": {"k": None}}, MERGE)).json.get("data") is None
    assert (await api.patch(f"{CM}/a", {"data": {"z": "1"}}, STRATEGIC)).json["data"] == {"z": "1"}
    refused = await api.patch(f"{CM}/a", {"data": {}}, "application/json")
    assert (refused.status, refused.reason) == (415, "UnsupportedMediaType")
    assert "accepted media types include: application/json-patch+json, " in refused.message  # field case V3


async def test_status_is_written_through_its_own_endpoint_alone(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/ns-a/deployments"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}}
    created = await api.created(path, {"metadata": {"name": "d"}, "spec": spec, "status": {"replicas": 7}})
    assert created["metadata"]["generation"] == 1
    assert not created.get("status", {}).get("replicas")
    body = {"spec": {"replicas": 9}, "status": {"replicas": 2}}
    updated = await api.patch(f"{path}/d/status", body)
    assert (updated.json["status"]["replicas"], updated.json["spec"]["replicas"]) == (2, 1)
    assert updated.json["metadata"]["generation"] == 1
    changed = await api.patch(f"{path}/d", body)
    assert (changed.json["spec"]["replicas"], changed.json["metadata"]["generation"]) == (9, 2)


async def test_scale_is_a_view_of_replicas(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/ns-a/deployments"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}}
    created = await api.created(path, {"metadata": {"name": "d"}, "spec": spec})
    scaled = await api.patch(f"{path}/d/scale", {"spec": {"replicas": 4}})
    assert (scaled.json["kind"], scaled.json["apiVersion"], scaled.json["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 4})
    assert scaled.json["metadata"]["uid"] == created["metadata"]["uid"]
    assert (await api.get(f"{path}/d")).json["spec"]["replicas"] == 4
    refused = await api.patch(f"{path}/d/scale", {"spec": {"replicas": -1}})
    assert refused.causes == [
        {"reason": "FieldValueInvalid", "message": "Invalid value: -1: must be greater than or equal to 0", "field": "spec.replicas"}
    ]


async def test_a_pod_is_bound_once(api: Api) -> None:
    await api.created(PODS, POD)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await api.post(f"{PODS}/p/binding", binding)).status == 201
    pod = (await api.get(f"{PODS}/p")).json
    assert pod["spec"]["nodeName"] == "n1"
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]
    again = await api.post(f"{PODS}/p/binding", binding)
    assert (again.status, again.reason) == (409, "Conflict")


async def test_evictions_spend_the_disruption_budget(api: Api) -> None:
    budgets = "/apis/policy/v1/namespaces/ns-a/poddisruptionbudgets"
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    await api.created(budgets, budget)
    await api.patch(
        f"{budgets}/b/status",
        {"status": {"disruptionsAllowed": 1, "observedGeneration": 1, "expectedPods": 2, "currentHealthy": 2, "desiredHealthy": 1}},
    )
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    for name in ("p1", "p2"):
        metadata = {"name": name, "labels": {"app": "x"}}
        await api.created(PODS, {"metadata": metadata, "spec": {**POD["spec"], "nodeName": "n1"}})
        assert (await api.patch(f"{PODS}/{name}/status", ready)).status == 200
    assert (await api.post(f"{PODS}/p1/eviction", {"metadata": {"name": "p1"}})).status == 201
    refused = await api.post(f"{PODS}/p2/eviction", {"metadata": {"name": "p2"}})
    assert (refused.status, refused.reason) == (429, "TooManyRequests")
    assert refused.causes[0]["reason"] == "DisruptionBudget"
    assert "deletionTimestamp" not in (await api.get(f"{PODS}/p2")).json["metadata"]


async def test_a_namespace_goes_when_it_is_finalized(api: Api) -> None:
    await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-b"}})
    first = await api.delete("/api/v1/namespaces/ns-b")
    assert (first.status, first.json["status"]["phase"], first.json["spec"]["finalizers"]) == (200, "Terminating", ["kubernetes"])
    late = await api.post("/api/v1/namespaces/ns-b/configmaps", {"metadata": {"name": "late"}})
    assert (late.status, late.reason) == (403, "Forbidden")
    done = await api.put("/api/v1/namespaces/ns-b/finalize", {"metadata": {"name": "ns-b"}, "spec": {"finalizers": []}})
    assert done.status == 200
    assert (await api.get("/api/v1/namespaces/ns-b")).status == 404


async def test_protected_namespaces(api: Api) -> None:
    """Field case N4."""
    answer = await api.delete("/api/v1/namespaces/default")
    assert answer.status == 403
    assert "this namespace may not be deleted" in answer.message
    assert (await api.delete("/api/v1/namespaces")).status == 405


async def test_logs_of_hollow_pods_say_what_they_are(api: Api) -> None:
    await api.created(PODS, {**POD, "spec": {**POD["spec"], "nodeName": "n1"}})
    answer = await api.get(f"{PODS}/p/log")
    assert answer.status == 501
    assert "hollow" in answer.message


async def test_events_expire_with_a_lease_of_the_store(api: Api) -> None:
    reference = {"kind": "Pod", "name": "p", "namespace": "ns-a"}
    for name in ("e1", "e2"):
        await api.created("/api/v1/namespaces/ns-a/events", {"metadata": {"name": name}, "involvedObject": reference})
    leases = [await api.kv.lease_time_to_live(lease, keys=True) for lease in await api.kv.leases()]
    (left,) = [lease for lease in leases if not lease.keys[0].startswith(b"/registry/masterleases/")]
    assert left.keys == (b"/registry/events/ns-a/e1", b"/registry/events/ns-a/e2")
    assert left.granted_ttl_seconds >= 3600
