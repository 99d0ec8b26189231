"""A real cluster's snapshot opens, and every object comes out as that cluster's API showed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.apiserver import real_cluster
from tests.apiserver.api import config_in

#: not objects of the store but answers of the health checks
NOT_STORED = {"v1/componentstatuses"}
#: kinds of which objects came, went or were changed between the snapshot and the listing; what has the same resourceVersion is the same
CHANGED_SINCE = {"v1/events", "events.k8s.io/v1/events", "autoscaling/v1/horizontalpodautoscalers", "coordination.k8s.io/v1/leases"}
#: versions that only an older Kubernetes serves, each with what the same objects are listed under here
GONE_BY = {
    "1.25": {
        "extensions/v1beta1/ingresses": "networking.k8s.io/v1/ingresses",
        "discovery.k8s.io/v1beta1/endpointslices": "discovery.k8s.io/v1/endpointslices",
    },
    "1.37": {
        "extensions/v1beta1/ingresses": "networking.k8s.io/v1/ingresses",
        "discovery.k8s.io/v1beta1/endpointslices": "discovery.k8s.io/v1/endpointslices",
        "flowcontrol.apiserver.k8s.io/v1beta1/flowschemas": "flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "flowcontrol.apiserver.k8s.io/v1beta1/prioritylevelconfigurations": "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    },
}


def by_name(items: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): real_cluster.without_nulls(item) for item in items}


@pytest.mark.parametrize("kubernetes_version", ["1.25", "1.37"])
async def test_every_object_comes_out_as_the_real_api_listed_it(tmp_path: Path, kubernetes_version: str) -> None:
    config = config_in(tmp_path, read_only=True, load_everything=True, kubernetes_version=kubernetes_version)
    compared = 0
    async with real_cluster.served(config, tmp_path) as api:
        for key, items in real_cluster.listed().items():
            if key in NOT_STORED:
                continue
            moved = GONE_BY[kubernetes_version].get(key)
            answer = await api.get(real_cluster.path_of(moved or key))
            assert answer.status == 200, key
            ours, theirs = by_name(answer.json["items"]), by_name(items)
            if moved is not None:
                assert set(ours) == set(theirs), key
                continue
            if key in CHANGED_SINCE:
                same = [
                    name
                    for name in ours
                    if name in theirs and ours[name]["metadata"]["resourceVersion"] == theirs[name]["metadata"]["resourceVersion"]
                ]
                ours, theirs = ({name: side[name] for name in same} for side in (ours, theirs))
            assert ours == theirs, key
            compared += len(ours)
        census = api.server.census()
        assert {count.prefix: count.read for count in census.prefixes}["demo.example.com/gadgets"] == 1
        assert not census.unreadable
        assert dict(census.elsewhere) == {"masterleases": 1, "ranges": 2}
    assert compared > 230


async def test_nothing_is_written_by_a_server_that_only_reads(tmp_path: Path) -> None:
    config = config_in(tmp_path, read_only=True)
    async with real_cluster.served(config, tmp_path) as api:
        before = api.kv.local_revision()
        for method, path, body in (
            ("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}}),
            ("PATCH", "/api/v1/namespaces/shop", {"metadata": {"labels": {"a": "b"}}}),
            ("PUT", "/api/v1/namespaces/shop", {"metadata": {"name": "shop"}}),
            ("DELETE", "/api/v1/namespaces/shop", None),
            ("DELETE", "/api/v1/namespaces/shop/pods", None),
            ("POST", "/api/v1/namespaces/shop/pods?dryRun=All", {"metadata": {"name": "p"}}),
        ):
            answer = await api.request(method, path, body, content_type="application/merge-patch+json" if method == "PATCH" else "")
            assert (answer.status, answer.reason) == (405, "MethodNotAllowed"), (method, path)
            assert "--read-only" in answer.message
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        assert (await api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)).status == 201
        assert api.kv.local_revision() == before


async def test_a_write_turns_a_value_into_json_and_leaves_the_others(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    async with real_cluster.served(config, tmp_path) as api:
        answer = await api.patch("/apis/apps/v1/namespaces/shop/deployments/web", {"spec": {"replicas": 2}})
        assert answer.status == 200, answer.body
        assert answer.json["spec"]["template"]["spec"]["containers"], "the rest is kept"
        from storage import api as storage_api

        async def value_at(key: str) -> bytes:
            return (await api.kv.range(storage_api.RangeRequest(key=key.encode()))).kvs[0].value

        assert (await value_at("/registry/deployments/shop/web")).startswith(b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"')
        assert (await value_at("/registry/replicasets/shop/web-5f68686bb4")).startswith(b"k8s\0")
        assert (await value_at("/registry/ranges/serviceips")).startswith(b"k8s\0")
