"""``dryRun=All`` of every write: the answer of the real one, and nothing of it done (field case L1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api

NS = "/api/v1/namespaces/ns-a"
CM = f"{NS}/configmaps"
PODS = f"{NS}/pods"
SERVICES = f"{NS}/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/ns-a/deployments"
DRY = {"dryRun": "All"}
POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}


async def test_no_write_of_an_object_does_anything(api: Api) -> None:
    created = await api.created(CM, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    changed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "2"}}
    async with api.watch(CM, resourceVersion=created["metadata"]["resourceVersion"]) as watch:
        for content_type in (MERGE, STRATEGIC, APPLY):
            answer = await api.patch(
                f"{CM}/a", changed, content_type, query={**DRY, "fieldManager": "m", **({"force": "true"} if content_type == APPLY else {})}
            )
            assert (answer.status, answer.json["data"]) == (200, {"k": "2"})
            assert any(e["manager"] == "m" for e in answer.json["metadata"]["managedFields"])
        answer = await api.patch(f"{CM}/a", [{"op": "add", "path": "/data/l", "value": "3"}], JSON_PATCH, query=DRY)
        assert answer.json["data"] == {"k": "1", "l": "3"}
        assert (await api.put(f"{CM}/a", changed, query=DRY)).json["data"] == {"k": "2"}
        assert (await api.delete(f"{CM}/a", query=DRY)).json["status"] == "Success"
        assert (await api.delete(f"{CM}/a", {"dryRun": ["All"], "propagationPolicy": "Foreground"})).json["metadata"]["deletionTimestamp"]
        assert [i["metadata"]["name"] for i in (await api.delete(CM, query=DRY)).json["items"]] == ["a"]
        made = await api.post(CM, {"metadata": {"name": "b"}}, query=DRY)
        assert (made.status, made.json["metadata"].get("resourceVersion")) == (201, None) and made.json["metadata"]["uid"]
        assert (await api.post(CM, {"metadata": {"generateName": "g-"}}, query=DRY)).json["metadata"]["name"].startswith("g-")
        assert (await api.post(CM, {"metadata": {"name": "a"}}, query=DRY)).status == 409
        applied = await api.patch(f"{CM}/c", {**changed, "metadata": {"name": "c"}}, APPLY, query={**DRY, "fieldManager": "m"})
        assert applied.status == 201
        await api.created(CM, {"metadata": {"name": "last"}})
        assert (await watch.next())["object"]["metadata"]["name"] == "last"
    assert (await api.get(f"{CM}/a")).json == created
    assert [i["metadata"]["name"] for i in (await api.get(CM)).json["items"]] == ["a", "last"]


async def test_no_address_is_taken(api: Api) -> None:
    body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    tried = (await api.post(SERVICES, body, query=DRY)).json["spec"]
    wanted = {**body, "spec": {**body["spec"], "clusterIP": tried["clusterIP"], "ports": [{"port": 80, "nodePort": 30777}]}}  # type: ignore[dict-item]
    tried = (await api.post(SERVICES, wanted, query=DRY)).json
    assert tried["kind"] == "Service", tried
    taken = await api.post(SERVICES, wanted)
    assert taken.status == 201, taken.body
    assert (
        await api.put(
            f"{SERVICES}/s", {**taken.json, "spec": {**taken.json["spec"], "ports": [{"port": 80, "nodePort": 30778}]}}, query=DRY
        )
    ).status == 200
    assert (await api.get(f"{SERVICES}/s")).json["spec"]["ports"][0]["nodePort"] == 30777
    other = {"metadata": {"name": "t"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30778}]}}
    assert (await api.post(SERVICES, other)).status == 201
    refused = await api.post(
        SERVICES, {**other, "metadata": {"name": "u"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30777}]}}
    )
    assert refused.status == 422


async def test_no_quota_is_used(api: Api) -> None:
    await api.created(f"{NS}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}})
    await api.patch(f"{NS}/resourcequotas/q/status", {"status": {"hard": {"count/configmaps": "1"}, "used": {"count/configmaps": "0"}}})
    for _ in range(3):
        assert (await api.post(CM, {"metadata": {"name": "a"}}, query=DRY)).status == 201
    assert (await api.get(f"{NS}/resourcequotas/q")).json["status"]["used"] == {"count/configmaps": "0"}
    assert (await api.post(CM, {"metadata": {"name": "a"}})).status == 201
    assert (await api.post(CM, {"metadata": {"name": "b"}}, query=DRY)).status == 403


async def test_subresources(api: Api) -> None:
    pod = await api.created(PODS, POD)
    deployment = await api.created(DEPLOYMENTS, DEPLOYMENT)
    assert (await api.post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}, query=DRY)).status == 201
    assert (await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}}, query=DRY)).json["status"]["phase"] == "Running"
    scaled = await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 7}}, query=DRY)
    assert scaled.json["spec"] == {"replicas": 7}
    container = {"ephemeralContainers": [{"name": "e", "image": "i"}]}
    assert (await api.patch(f"{PODS}/p/ephemeralcontainers", {"spec": container}, STRATEGIC, query=DRY)).status == 200
    assert (await api.delete(f"{PODS}/p", query=DRY)).status == 200
    assert (await api.get(f"{PODS}/p")).json == pod
    assert (await api.get(f"{DEPLOYMENTS}/d")).json == deployment


@pytest.mark.parametrize("value", ["Some", "", "All&dryRun=None"])
async def test_other_values_are_refused(api: Api, value: str) -> None:
    await api.created(CM, {"metadata": {"name": "a"}})
    for method, path, body in (
        ("POST", CM, {"metadata": {"name": "b"}}),
        ("PUT", f"{CM}/a", {"metadata": {"name": "a"}}),
        ("DELETE", f"{CM}/a", None),
    ):
        answer = await api.request(method, path, body, query=f"dryRun={value}")
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert answer.causes[0]["field"] == "dryRun" and 'supported values: "All"' in answer.causes[0]["message"]
    assert (await api.get(f"{CM}/a")).status == 200
