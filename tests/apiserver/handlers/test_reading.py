"""GET and LIST: versions, paging, selectors, forms of answers."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import yaml

from tests.apiserver.api import Api

CM = "/api/v1/namespaces/ns-a/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def make(api: Api, *names: str, **more: Any) -> None:
    for name in names:
        await api.created(CM, {"metadata": {"name": name}, **more})


async def names_of(api: Api, **query: Any) -> list[str]:
    return [i["metadata"]["name"] for i in (await api.get(CM, query=query)).json["items"]]


async def test_lists_are_sorted_and_leave_out_what_their_kind_says(api: Api) -> None:
    await make(api, "b", "a", "a-1")
    answer = (await api.get(CM)).json
    assert (answer["kind"], answer["apiVersion"]) == ("ConfigMapList", "v1")
    assert [i["metadata"]["name"] for i in answer["items"]] == ["a", "a-1", "b"]
    assert all(set(i) == {"metadata"} for i in answer["items"])


async def test_an_empty_list_has_items(api: Api) -> None:
    """Field case PY-K3."""
    assert (await api.get("/api/v1/namespaces/absent/configmaps")).json["items"] == []


async def test_pages_show_one_moment(api: Api) -> None:
    await make(api, "a", "b", "c")
    first = (await api.get(CM, query={"limit": 2})).json
    assert first["metadata"]["remainingItemCount"] == 1
    await make(api, "aa", "d")
    await api.delete(f"{CM}/c")
    second = (await api.get(CM, query={"limit": 2, "continue": first["metadata"]["continue"]})).json
    assert [i["metadata"]["name"] for i in second["items"]] == ["c"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


async def test_pages_of_a_selection(api: Api) -> None:
    for n in range(10):
        await api.created(CM, {"metadata": {"name": f"cm-{n}", "labels": {"parity": "odd" if n % 2 else "even"}}})
    found: list[str] = []
    query: dict[str, Any] = {"limit": 2, "labelSelector": "parity=odd"}
    while True:
        page = (await api.get(CM, query=query)).json
        assert "remainingItemCount" not in page["metadata"]  # unknown without looking at all
        found += [i["metadata"]["name"] for i in page["items"]]
        await make(api, f"noise-{len(found)}")  # later pages come from the store's history
        if "continue" not in page["metadata"]:
            break
        query["continue"] = page["metadata"]["continue"]
    assert found == ["cm-1", "cm-3", "cm-5", "cm-7", "cm-9"]


async def test_an_expired_page_can_be_gone_on_from(api: Api) -> None:
    """Field case C2."""
    await make(api, "a", "b", "c")
    first = (await api.get(CM, query={"limit": 2})).json
    await make(api, "bb")
    await api.kv.compact(int((await api.get(CM)).json["metadata"]["resourceVersion"]))
    expired = await api.get(CM, query={"limit": 2, "continue": first["metadata"]["continue"]})
    assert (expired.status, expired.reason) == (410, "Expired")
    assert "The provided continue parameter is too old" in expired.message
    again = await api.get(CM, query={"limit": 2, "continue": expired.json["metadata"]["continue"]})
    assert [i["metadata"]["name"] for i in again.json["items"]] == ["bb", "c"]
    assert int(again.json["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def test_an_exact_version_shows_that_moment(api: Api) -> None:
    await make(api, "a")
    version = (await api.get(CM)).json["metadata"]["resourceVersion"]
    await api.delete(f"{CM}/a")
    await make(api, "b")
    assert await names_of(api, resourceVersion=version, resourceVersionMatch="Exact") == ["a"]
    assert await names_of(api, resourceVersion=version, resourceVersionMatch="NotOlderThan") == ["b"]
    assert await names_of(api, resourceVersion=version) == ["b"]
    assert await names_of(api, resourceVersion=version, limit=5) == ["a"]
    assert await names_of(api, resourceVersion="0") == ["b"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
        ({"resourceVersionMatch": "Never", "resourceVersion": "1"}, 422),
        ({"continue": "x", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"}, 422),
        ({"continue": "TOKEN", "resourceVersion": "7"}, 400),
        ({"continue": "not a token"}, 400),
        ({"resourceVersion": "None"}, 400),
        ({"resourceVersion": "-1"}, 400),
        ({"limit": "many"}, 400),
        ({"limit": "99999999999999999999"}, 400),
        ({"timeoutSeconds": "soon"}, 400),
        ({"labelSelector": "a in b"}, 400),
        ({"labelSelector": "=" * 5000}, 400),
        ({"fieldSelector": "spec.x=y"}, 400),
        ({"watch": "1", "resourceVersion": "None"}, 422),
        ({"timeout": "abc"}, 400),
    ],
)
async def test_queries_that_make_no_sense(api: Api, query: dict[str, str], code: int) -> None:
    """Field cases A4, C3, AA1 and the rest of bad input."""
    await make(api, "a", "b")
    if query.get("continue") == "TOKEN":
        page = await api.get(CM, query={"limit": 1})
        query = {**query, "continue": page.json["metadata"]["continue"]}
    answer = await api.get(CM, query=query)
    assert answer.status == code
    assert answer.json["kind"] == "Status"
    assert answer.reason == {400: "BadRequest", 422: "Invalid"}[code]


async def test_a_negative_limit_is_none(api: Api) -> None:
    await make(api, "a", "b")
    assert await names_of(api, limit=-5) == ["a", "b"]


@pytest.mark.parametrize("query", [{}, {"limit": "5"}])
async def test_a_version_of_the_future_times_out(api: Api, query: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case C4."""
    monkeypatch.setattr("apiserver.objectstore.event_source.EventSource.wait_for.__defaults__", (0.01,))
    current = (await api.get(CM)).json["metadata"]["resourceVersion"]
    answer = await api.get(CM, query={"resourceVersion": "9999", **query})
    assert (answer.status, answer.reason) == (504, "Timeout")
    assert answer.message == f"Timeout: Too large resource version: 9999, current: {current}"
    assert answer.causes[0]["reason"] == "ResourceVersionTooLarge"
    assert answer.json["details"]["retryAfterSeconds"] == 1


async def test_unknown_field_selectors_are_named(api: Api) -> None:
    """Field case D1."""
    pods = await api.get("/api/v1/namespaces/ns-a/pods", query={"fieldSelector": "spec.bogus=x"})
    assert (pods.status, pods.message) == (400, "field label not supported: spec.bogus")


async def test_forms(api: Api) -> None:
    await make(api, "a", data={"k": "v"})
    table = await api.get(CM, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"})
    assert [(r["cells"][0], r["object"]["kind"]) for r in table.json["rows"]] == [("a", "PartialObjectMetadata")]
    metadata = await api.get(CM, headers={"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"})
    assert (metadata.json["kind"], set(metadata.json["items"][0])) == ("PartialObjectMetadataList", {"kind", "apiVersion", "metadata"})
    as_yaml = await api.get(f"{CM}/a", headers={"accept": "application/yaml"})
    assert as_yaml.headers["content-type"] == ["application/yaml"]
    assert yaml.safe_load(as_yaml.body)["data"] == {"k": "v"}
    pretty = await api.get(f"{CM}/a", query={"pretty": "true"})
    assert pretty.body.startswith(b"{\n  ")
    refused = await api.get(CM, headers={"accept": "text/csv"})
    assert (refused.status, refused.reason) == (406, "NotAcceptable")
    assert refused.message.startswith("only the following media types are accepted: application/json, ")


async def test_large_answers_are_compressed_for_those_who_take_it(api: Api) -> None:
    for n in range(4):
        await make(api, f"big-{n}", data={"k": "v" * 200_000})
    plain = await api.get(CM)
    packed = await api.get(CM, headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == ["gzip"]
    assert len(packed.body) < len(plain.body) / 10
    assert json.loads(gzip.decompress(packed.body)) == plain.json
    assert plain.headers["content-length"] == [str(len(plain.body))]
    small = await api.get(f"{CM}?x=1", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in small.headers


async def test_every_built_in_resource_can_be_listed_in_both_forms(api: Api) -> None:
    for info in api.server.table:
        if "list" not in info.verbs or info.resource == "componentstatuses":
            continue
        base = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
        answer = await api.get(f"{base}/{info.resource}")
        assert answer.status == 200, (info.resource, answer.body)
        assert answer.json["kind"] == info.list_kind
        table = await api.get(f"{base}/{info.resource}", headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
        assert table.status == 200 and table.json.get("columnDefinitions"), (info.group, info.resource, table.body[:200])


async def test_paths_that_nothing_serves(api: Api) -> None:
    for path in ("/api/v1/gadgets", "/apis/apps/v1/gadgets", f"{CM}/x/status", "/api/v1/namespaces/ns-a/nodes"):
        answer = await api.get(path)
        assert (answer.status, answer.message) == (404, "the server could not find the requested resource")
    assert (await api.get("/apis/nosuch.example/v1/things")).body == b"404 page not found\n"
    assert "/apis" in (await api.get("/nosuchpath")).json["paths"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", f"{CM}/a"), ("PUT", CM), ("PATCH", CM), ("POST", "/api/v1/configmaps"), ("OPTIONS", CM), ("DELETE", "/api/v1/pods")],
)
async def test_methods_that_a_path_does_not_have(api: Api, method: str, path: str) -> None:
    answer = await api.request(method, path, {} if method != "DELETE" else None)
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")


async def test_a_scale_has_a_table_of_its_own(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/default/deployments"
    await api.created(path, {"metadata": {"name": "web"}, "spec": spec})
    table = (await api.get(f"{path}/web/scale", headers={"accept": TABLE})).json
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["web", 3, 0]
    assert table["metadata"]["resourceVersion"] == table["rows"][0]["object"]["metadata"]["resourceVersion"]


async def test_flow_schemas_are_listed_in_the_order_in_which_they_are_asked(api: Api) -> None:
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    for name, precedence in (("a", 900), ("b", 800), ("c", 800)):
        level = {"priorityLevelConfiguration": {"name": "global-default"}, "matchingPrecedence": precedence}
        await api.created(path, {"metadata": {"name": name}, "spec": level})
    table = (await api.get(path, headers={"accept": TABLE})).json
    names = [row["cells"][0] for row in table["rows"]]
    assert [name for name in names if name in "abc"] == ["b", "c", "a"]
