"""A server of an older Kubernetes shows and keeps only fields that this version has, whatever sets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apiserver.schemas.pruning import drop_unknown
from apiserver.schemas.schema_set import SchemaSet
from tests.apiserver.api import APPLY, STRATEGIC, config_in, running
from tests.fakes.memory_kv import MemoryKV

PODS = "/api/v1/namespaces/ns-a/pods"
JOBS = "/apis/batch/v1/namespaces/ns-a/jobs"
SCALERS = "/apis/autoscaling/v1/namespaces/ns-a/horizontalpodautoscalers"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
CONTAINERS = [{"name": "c", "image": "i"}]


async def test_what_defaults_and_status_know_of_later_versions_is_left_out(tmp_path: Path) -> None:
    job = {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}}
    async with running(config_in(tmp_path, kubernetes_version="1.25")) as api:
        await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        await api.created("/api/v1/namespaces/ns-a/serviceaccounts", {"metadata": {"name": "default"}})
        made = await api.created(JOBS, job)
        assert made["spec"]["completionMode"] == "NonIndexed" and "podReplacementPolicy" not in made["spec"]
        pod = await api.created(PODS, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}})
        await api.patch(f"{PODS}/p/status", {"status": {"hostIP": "10.0.0.1"}}, STRATEGIC)
        read = (await api.get(f"{PODS}/p")).json
        assert read["status"]["hostIP"] == "10.0.0.1" and "hostIPs" not in read["status"]
        # what is read can be sent back, by the strictest means
        for path, obj in ((f"{JOBS}/j", made), (f"{PODS}/p", pod)):
            applied: dict[str, Any] = {k: obj[k] for k in ("apiVersion", "kind")} | {"metadata": {"name": obj["metadata"]["name"]}}
            answer = await api.patch(path, applied, APPLY, query={"fieldManager": "m", "fieldValidation": "Strict"})
            assert answer.status == 200, answer.body


@pytest.mark.parametrize(
    ("version", "targets", "created"),
    [
        ("1.25", "<unknown>/80%", {"creationTimestamp": None}),
        ("1.30", "cpu: <unknown>/80%", {"creationTimestamp": None}),
        ("1.34", "cpu: <unknown>/80%", {}),
    ],
)
async def test_answers_have_the_form_of_their_release(tmp_path: Path, version: str, targets: str, created: dict[str, Any]) -> None:
    """What an autoscaler watches is named since 1.30, and a creation that never was is no longer ``null`` since 1.34."""
    scaler = {"scaleTargetRef": {"kind": "Deployment", "name": "w"}, "maxReplicas": 3}
    async with running(config_in(tmp_path, kubernetes_version=version)) as api:
        await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        await api.created(SCALERS, {"metadata": {"name": "s"}, "spec": {**scaler, "targetCPUUtilizationPercentage": 80}})
        for group_version in ("v1", "v2"):
            table = (await api.get(SCALERS.replace("v1", group_version, 1), headers=TABLE)).json
            assert table["rows"][0]["cells"][2] == targets
        status = (await api.get("/api/v1/componentstatuses/etcd-0")).json
        assert status["metadata"] == {"name": "etcd-0", **created}
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        async with api.watch("/api/v1/namespaces/ns-a/secrets", timeoutSeconds=3, **query) as watch:
            bookmark = (await watch.next())["object"]["metadata"]
        assert {k: v for k, v in bookmark.items() if k not in ("resourceVersion", "annotations")} == created


async def test_what_a_later_version_has_written_can_be_changed(tmp_path: Path) -> None:
    kv = MemoryKV()
    async with running(config_in(tmp_path, kubernetes_version="1.37"), kv) as api:
        await api.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        await api.created("/api/v1/namespaces/ns-a/serviceaccounts", {"metadata": {"name": "default"}})
        await api.created(PODS, {"metadata": {"name": "p"}, "spec": {"containers": CONTAINERS}})
        changed = await api.patch(f"{PODS}/p/status", {"status": {"hostIP": "10.0.0.1"}}, STRATEGIC)
        assert "hostIPs" in changed.json["status"]
    async with running(config_in(tmp_path, kubernetes_version="1.25"), kv) as api:
        applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}
        answer = await api.patch(f"{PODS}/p", applied, APPLY, query={"fieldManager": "m", "fieldValidation": "Strict"})
        assert answer.status == 200 and "hostIPs" not in answer.json["status"], answer.body


def test_open_parts_of_an_object_keep_everything() -> None:
    type_ = SchemaSet.load("1.25").type_of("", "v1", "Pod")
    pod = {
        "metadata": {"name": "p", "labels": {"any": "thing"}, "managedFields": [{"fieldsV1": {"f:spec": {"f:x": {}}}}]},
        "spec": {"containers": [{"name": "c", "later": 1}], "later": {}, "nodeSelector": {"a": "b"}},
    }
    drop_unknown(type_, pod)
    assert pod == {
        "metadata": {"name": "p", "labels": {"any": "thing"}, "managedFields": [{"fieldsV1": {"f:spec": {"f:x": {}}}}]},
        "spec": {"containers": [{"name": "c"}], "nodeSelector": {"a": "b"}},
    }
