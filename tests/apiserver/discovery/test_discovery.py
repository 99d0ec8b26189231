"""Discovery as clients ask for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastapi
import httpx
import pytest
import yaml

from apiserver.discovery import documents, index, routes
from apiserver.resources.resource_info import ResourceInfo, SubresourceInfo
from apiserver.resources.table import ResourceTable
from apiserver.schemas import protobuf

GOLDEN = Path(__file__).parents[2] / "golden" / "discovery.json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

#: the server of the transcripts still stored these in a beta version
STORED_AS_BETA_THEN = ("ingresses", "ingressclasses", "runtimeclasses", "customresourcedefinitions", "apiservices")

GADGETS = ResourceInfo(
    group="demo.test",
    version="v1",
    resource="gadgets",
    kind="Gadget",
    singular="gadget",
    short_names=("gd",),
    storage_version="v1",
    subresources=(
        SubresourceInfo(name="status", kind="Gadget", group="demo.test", version="v1"),
        SubresourceInfo(name="scale", kind="Scale", group="autoscaling", version="v1"),
    ),
    builtin=False,
)


def client(table: ResourceTable) -> httpx.AsyncClient:
    app = fastapi.FastAPI()
    app.include_router(routes.router(table))
    index.install(app, table)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:6443")


@pytest.fixture
def table() -> ResourceTable:
    return ResourceTable("1.37")


def golden_resource_lists() -> dict[str, dict[str, Any]]:
    scenarios = json.loads(GOLDEN.read_text())["scenarios"]
    steps = [step for scenario in scenarios if scenario["name"].startswith("resources-of-") for step in scenario["steps"]]
    return {step["do"].removeprefix("GET "): step["expect"]["body"] for step in steps}


@pytest.mark.parametrize("path", sorted(golden_resource_lists()))
async def test_what_a_real_server_listed_is_listed(table: ResourceTable, path: str) -> None:
    expected = golden_resource_lists()[path]
    async with client(table) as http:
        found = (await http.get(path)).json()
    assert {k: v for k, v in found.items() if k != "resources"} == {k: v for k, v in expected.items() if k != "resources"}
    by_name = {entry["name"]: entry for entry in found["resources"]}
    assert list(by_name) == sorted(by_name)
    for entry in expected["resources"]:
        ours = by_name[entry["name"]]
        for key in ("namespaced", "kind", "shortNames", "categories"):
            assert ours.get(key) == entry.get(key), entry["name"]
        assert set(entry["verbs"]) <= set(ours["verbs"]), entry["name"]
        if entry["name"] not in STORED_AS_BETA_THEN:
            assert ours.get("storageVersionHash") == entry.get("storageVersionHash"), entry["name"]


async def test_groups_are_listed_in_kubernetes_order_with_their_preferred_versions(table: ResourceTable) -> None:
    table.add(GADGETS)
    async with client(table) as http:
        groups = (await http.get("/apis/")).json()["groups"]
    names = [group["name"] for group in groups]
    assert names[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert names[-1] == "demo.test"
    autoscaling = groups[names.index("autoscaling")]
    assert autoscaling["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}
    assert [v["version"] for v in autoscaling["versions"]] == ["v2", "v1"]


async def test_the_core_group_tells_where_the_server_is(table: ResourceTable) -> None:
    async with client(table) as http:
        found = (await http.get("/api")).json()
    assert found == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


async def test_a_custom_resource_shows_at_once_and_goes_at_once(table: ResourceTable) -> None:
    async with client(table) as http:
        assert (await http.get("/apis/demo.test/v1")).text == "404 page not found\n"
        table.add(GADGETS)
        listed = (await http.get("/apis/demo.test/v1")).json()
        assert listed["resources"][0]["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
        assert [entry["name"] for entry in listed["resources"]] == ["gadgets", "gadgets/status", "gadgets/scale"]
        assert "group" not in listed["resources"][1]
        assert (listed["resources"][2]["group"], listed["resources"][2]["version"]) == ("autoscaling", "v1")
        table.remove(GADGETS)
        gone = await http.get("/apis/demo.test/v1")
    assert (gone.status_code, gone.text) == (404, "404 page not found\n")


async def test_aggregated_discovery_answers_with_its_own_media_type_and_an_etag(table: ResourceTable) -> None:
    table.add(GADGETS)
    async with client(table) as http:
        first = await http.get("/apis", headers={"Accept": AGGREGATED + ",application/json"})
        again = await http.get("/apis", headers={"Accept": AGGREGATED, "If-None-Match": first.headers["etag"]})
        table.remove(GADGETS)
        changed = await http.get("/apis", headers={"Accept": AGGREGATED, "If-None-Match": first.headers["etag"]})
    assert first.headers["content-type"] == AGGREGATED
    assert (again.status_code, again.content) == (304, b"")
    assert changed.status_code == 200
    items = {item["metadata"]["name"]: item for item in first.json()["items"]}
    assert items["demo.test"]["versions"] == [
        {
            "version": "v1",
            "resources": [
                {
                    "resource": "gadgets",
                    "responseKind": {"group": "demo.test", "version": "v1", "kind": "Gadget"},
                    "scope": "Namespaced",
                    "singularResource": "gadget",
                    "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
                    "shortNames": ["gd"],
                    "subresources": [
                        {
                            "subresource": "status",
                            "responseKind": {"group": "demo.test", "version": "v1", "kind": "Gadget"},
                            "verbs": ["get", "patch", "update"],
                        },
                        {
                            "subresource": "scale",
                            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                            "verbs": ["get", "patch", "update"],
                        },
                    ],
                }
            ],
            "freshness": "Current",
        }
    ]
    deployments = items["apps"]["versions"][0]["resources"][2]
    assert deployments["resource"] == "deployments"
    assert deployments["responseKind"] == {"group": "", "version": "", "kind": "Deployment"}


async def test_the_core_group_has_an_aggregated_form_too(table: ResourceTable) -> None:
    async with client(table) as http:
        found = (await http.get("/api", headers={"Accept": AGGREGATED.replace("v=v2", "v=v2beta1")})).json()
    assert found["apiVersion"] == "apidiscovery.k8s.io/v2beta1"
    assert [item["metadata"] for item in found["items"]] == [{}]
    pods = next(r for r in found["items"][0]["versions"][0]["resources"] if r["resource"] == "pods")
    eviction = next(s for s in pods["subresources"] if s["subresource"] == "eviction")
    assert eviction["responseKind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


async def test_a_server_without_an_aggregated_form_refuses_it_or_falls_back() -> None:
    async with client(ResourceTable("1.26")) as http:
        alone = await http.get("/apis", headers={"Accept": AGGREGATED})
        either = await http.get("/apis", headers={"Accept": AGGREGATED + ",application/json"})
        other = await http.get("/apis/apps/v1", headers={"Accept": "text/csv"})
    assert (alone.status_code, alone.json()["reason"]) == (406, "NotAcceptable")
    assert either.json()["kind"] == "APIGroupList"
    assert other.status_code == 406
    assert other.json()["message"].startswith("only the following media types are accepted: application/json, ")


async def test_the_aggregated_form_is_served_wherever_a_client_takes_it(table: ResourceTable) -> None:
    """Upstream looks for a clause of the aggregated form before it looks at the others."""
    async with client(table) as http:
        found = await http.get("/apis", headers={"Accept": AGGREGATED + ";q=0.1,*/*;q=0.5"})
    assert found.json()["kind"] == "APIGroupDiscoveryList"


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1"])
async def test_protobuf_and_yaml_say_what_json_says(table: ResourceTable, path: str) -> None:
    async with client(table) as http:
        as_json = (await http.get(path, headers={"Accept": "application/json"})).json()
        as_protobuf = await http.get(path, headers={"Accept": PROTOBUF})
        as_yaml = await http.get(path, headers={"Accept": "application/yaml"})
    assert as_protobuf.headers["content-type"] == PROTOBUF
    assert as_protobuf.content == protobuf.encode(as_json)
    assert as_yaml.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(as_yaml.content) == as_json


async def test_the_aggregated_form_in_protobuf(table: ResourceTable) -> None:
    accept = AGGREGATED.replace("application/json", PROTOBUF)
    async with client(table) as http:
        found = await http.get("/apis", headers={"Accept": f"{accept},{AGGREGATED}"})
        as_json = await http.get("/apis", headers={"Accept": AGGREGATED})
        again = await http.get("/apis", headers={"Accept": accept, "If-None-Match": found.headers["etag"]})
    assert found.headers["content-type"].startswith(f"{PROTOBUF};g=apidiscovery.k8s.io;")
    assert found.content == protobuf.encode(as_json.json())
    assert again.status_code == 304


async def test_whose_types_a_router_looks_at(table: ResourceTable) -> None:
    async with client(table) as http:
        for path, code in (("/api/v1", 406), ("/apis/apps/v1", 406), ("/apis", 200), ("/apis/apps", 200), ("/version", 406)):
            assert (await http.get(path, headers={"Accept": "application/*"})).status_code == code, path
        refused = await http.get("/apis/apps/v1", headers={"Accept": f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io"})
        version = await http.get("/version", headers={"Accept": PROTOBUF})
    assert refused.json()["message"].startswith("only the following media types are accepted: ")
    assert (version.status_code, version.headers["content-type"]) == (406, PROTOBUF)


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("POST", "/apis/apps/v1", 405, "MethodNotAllowed"),
        ("DELETE", "/apis/apps/v1", 405, "MethodNotAllowed"),
        ("GET", "/apis/apps/v1beta9", 404, "NotFound"),
        ("GET", "/api/v2", 404, "NotFound"),
    ],
)
async def test_what_is_not_there_or_not_allowed_is_a_status(table: ResourceTable, method: str, path: str, code: int, reason: str) -> None:
    async with client(table) as http:
        found = await http.request(method, path)
    assert (found.status_code, found.json()["reason"]) == (code, reason)


async def test_the_root_and_lost_paths_name_the_paths_there_are(table: ResourceTable) -> None:
    table.add(GADGETS)
    async with client(table) as http:
        root = await http.get("/")
        lost = await http.get("/nothing/here")
    assert (root.status_code, lost.status_code) == (200, 404)
    assert root.json() == lost.json()
    assert {"/api", "/api/v1", "/apis", "/apis/apps/v1", "/apis/demo.test", "/version"} <= set(root.json()["paths"])
    assert not any("{" in path for path in root.json()["paths"])


async def test_version_is_the_kubernetes_version() -> None:
    async with client(ResourceTable("1.30")) as http:
        found = (await http.get("/version")).json()
    assert (found["major"], found["minor"], found["gitVersion"]) == ("1", "30", "v1.30.0")
    assert all(isinstance(value, str) for value in found.values())


async def test_people_get_indented_answers(table: ResourceTable) -> None:
    async with client(table) as http:
        curl = await http.get("/api", headers={"User-Agent": "curl/8.0"})
        asked = await http.get("/apis?pretty=true")
        plain = await http.get("/apis?pretty=false", headers={"User-Agent": "curl/8.0"})
    assert curl.text.startswith('{\n  "kind"')
    assert asked.text.startswith('{\n  "kind"')
    assert plain.text.startswith('{"kind"')


def test_storage_version_hashes_are_those_of_every_cluster(table: ResourceTable) -> None:
    def of(group: str, resource: str) -> str:
        info = table.preferred(group, resource)
        assert info is not None
        return documents.storage_version_hash(table, info)

    assert of("", "pods") == "xPOwRZ+Yhw8="
    assert of("events.k8s.io", "events") == of("", "events") == "r2yiGXH7wu8="
    assert of("", "componentstatuses") == ""
