"""Field cases about the form of answers: tables of custom resources, and Accept headers that cannot be met."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.config import ServerConfig
from tests.apiserver.api import Api, running

CM = "/api/v1/namespaces/ns-a/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/demo.test/v1/namespaces/default/gadgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def define_gadgets(api: Api, *columns: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if columns:
        version["additionalPrinterColumns"] = list(columns)
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"}
    spec = {"group": "demo.test", "scope": "Namespaced", "names": names, "versions": [version]}
    await api.created(CRDS, {"metadata": {"name": "gadgets.demo.test"}, "spec": spec})
    for _ in range(500):
        if (await api.get(GADGETS)).status == 200:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the definition was not established")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [((), ["Name", "Age"]), (({"name": "Color", "type": "string", "jsonPath": ".spec.color"},), ["Name", "Color"])],
    ids=["none", "one"],
)
async def test_u1_columns_of_custom_resources(api: Api, columns: tuple[dict[str, Any], ...], shown: list[str]) -> None:
    await define_gadgets(api, *columns)
    gadget = {"apiVersion": "demo.test/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"color": "red"}}
    made = await api.created(GADGETS, gadget)
    table = (await api.get(GADGETS, headers={"accept": TABLE})).json
    assert [column["name"] for column in table["columnDefinitions"]] == shown
    assert all(column["description"] for column in table["columnDefinitions"] if column["name"] in ("Name", "Age"))
    [row] = table["rows"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    whole = (await api.get(GADGETS, headers={"accept": TABLE}, query={"includeObject": "Object"})).json
    assert whole["rows"][0]["object"]["spec"] == {"color": "red"}
    bare = (await api.get(GADGETS, headers={"accept": TABLE}, query={"includeObject": "None"})).json
    assert bare["rows"][0]["object"] is None
    version = made["metadata"]["resourceVersion"]
    async with api.watch(GADGETS, headers={"accept": TABLE}, resourceVersion=version) as watch:
        for color in ("blue", "green"):
            await api.patch(f"{GADGETS}/g", {"spec": {"color": color}})
        first, second = await watch.take(2)
    assert [event["object"]["kind"] for event in (first, second)] == ["Table", "Table"]
    assert first["object"]["columnDefinitions"] and not second["object"].get("columnDefinitions")


async def test_u2_accept_headers_that_cannot_be_met(server_config: ServerConfig, api: Api) -> None:
    served = await api.get("/apis", headers={"accept": AGGREGATED})
    assert (served.status, served.json["kind"]) == (200, "APIGroupDiscoveryList")
    assert served.headers["content-type"] == ["application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"]
    refused = await api.get(CM, headers={"accept": "text/csv"})
    assert refused.status == 406
    assert refused.message.startswith("only the following media types are accepted: application/json")
    older = server_config.model_copy(update={"kubernetes_version": "1.25"})
    async with running(older) as without:
        assert (await without.get("/apis", headers={"accept": AGGREGATED})).status == 406
        fallback = await without.get("/apis", headers={"accept": f"{AGGREGATED},application/json"})
        assert (fallback.status, fallback.json["kind"]) == (200, "APIGroupList")


async def test_w3_a_watch_of_old_events_is_refused_too(server_config: ServerConfig, api: Api) -> None:
    """Events stand in no cache upstream, where such a watch was silent."""
    path = "/api/v1/namespaces/default/events"
    target = {"kind": "Pod", "namespace": "default", "name": "p"}
    first = await api.created(path, {"metadata": {"name": "e"}, "involvedObject": target, "reason": "a"})
    for reason in "bcd":
        await api.patch(f"{path}/e", {"reason": reason})
    now = (await api.get(path)).json["metadata"]["resourceVersion"]
    await api.kv.compact(int(now))
    async with running(server_config, api.kv) as again, again.watch(path, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        event = await watch.next()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_aa1_timeouts_in_the_request(api: Api) -> None:
    bad = await api.get(CM, query={"timeout": "abc"})
    assert (bad.status, bad.reason) == (400, "BadRequest")
    assert bad.message.startswith("invalid timeout specified in the request URL")
    assert (await api.get(CM, query={"timeout": "10m"})).status == 200
    # what is past its deadline is told in filters/test_handler_chain.py
