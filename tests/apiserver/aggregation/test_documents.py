"""APIServices: those of this server itself, the condition of the others, and discovery and OpenAPI with what they serve."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from apiserver.aggregation import documents
from tests.apiserver.aggregation.conftest import (
    AGGREGATED,
    API_SERVICES,
    NAME,
    Keys,
    api_service,
    condition,
    condition_with,
    external_service,
    until,
)
from tests.apiserver.api import Api
from tests.fakes.extension_server import GROUP, ROOT, SCHEMA, ExtensionServer

LABEL = "kube-aggregator.kubernetes.io/automanaged"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(*versions: str, served: bool = True) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    found = [{"name": v, "served": served, "storage": n == 0, "schema": schema} for n, v in enumerate(versions)]
    names = {"plural": "gadgets", "kind": "Gadget"}
    spec = {"group": "demo.test", "names": names, "scope": "Cluster", "versions": found}
    return {"metadata": {"name": "gadgets.demo.test"}, "spec": spec}


async def test_every_built_in_version_has_an_api_service_with_its_priority(api: Api) -> None:
    found = {item["metadata"]["name"]: item for item in (await api.get(API_SERVICES)).json["items"]}
    assert "v1.apiregistration.k8s.io" not in found
    apps = found["v1.apps"]
    assert apps["spec"] == {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}
    assert apps["metadata"]["labels"] == {LABEL: "onstart"}
    local = {"type": "Available", "status": "True", "reason": "Local", "message": "Local APIServices are always available"}
    assert apps["status"]["conditions"][0].items() >= local.items()
    assert found["v1."]["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert {name: found[name]["spec"]["versionPriority"] for name in ("v1.autoscaling", "v2.autoscaling")} == {
        "v1.autoscaling": 15,
        "v2.autoscaling": 30,
    }


async def test_a_deleted_api_service_of_a_built_in_version_hides_it_from_discovery_and_nothing_else(api: Api) -> None:
    """As a real kube-apiserver does it: not made anew before the next start, and the requests are answered all the same."""

    async def listed(*, aggregated: bool) -> list[str]:
        if aggregated:
            items = (await api.get("/apis", headers={"accept": AGGREGATED})).json["items"]
            return [v["version"] for g in items if g["metadata"]["name"] == "autoscaling" for v in g["versions"]]
        groups = (await api.get("/apis")).json["groups"]
        return [v["version"] for g in groups if g["name"] == "autoscaling" for v in g["versions"]]

    before = (await api.get("/apis/autoscaling")).json
    assert await listed(aggregated=True) == await listed(aggregated=False) == ["v2", "v1"]
    await api.delete(f"{API_SERVICES}/v2.autoscaling")
    assert await listed(aggregated=True) == await listed(aggregated=False) == ["v1"]
    group = (await api.get("/apis/autoscaling")).json
    assert group["preferredVersion"]["version"] == "v1" and len(group["versions"]) == 1
    assert (await api.get("/apis/autoscaling/v2")).status == 200
    assert (await api.get("/apis/autoscaling/v2/horizontalpodautoscalers")).status == 200
    await api.delete(f"{API_SERVICES}/v1.autoscaling")
    assert await listed(aggregated=True) == await listed(aggregated=False) == []
    assert (await api.get("/apis/autoscaling")).json == before, "nobody hides the group's own document any more"
    again = {"group": "autoscaling", "version": "v2", "groupPriorityMinimum": 17500, "versionPriority": 30}
    await api.created(API_SERVICES, {"metadata": {"name": "v2.autoscaling"}, "spec": again})
    assert await listed(aggregated=True) == await listed(aggregated=False) == ["v2"]


async def test_the_order_in_discovery_is_that_of_the_stored_priorities(api: Api) -> None:
    async def order() -> tuple[str, str]:
        groups = (await api.get("/apis")).json["groups"]
        return groups[1]["name"], next(g["preferredVersion"]["version"] for g in groups if g["name"] == "autoscaling")

    assert await order() == ("apps", "v2")
    await api.patch(f"{API_SERVICES}/v1.autoscaling", {"spec": {"groupPriorityMinimum": 19000, "versionPriority": 100}})
    assert await order() == ("autoscaling", "v1")
    await api.patch(f"{API_SERVICES}/v1.autoscaling", {"spec": {"groupPriorityMinimum": 17500, "versionPriority": 15}})
    assert await order() == ("apps", "v2")


async def test_the_api_service_of_a_definition_comes_back_when_somebody_deletes_or_changes_it(api: Api) -> None:
    async def as_it_was() -> bool:
        found = await api.get(f"{API_SERVICES}/v1.demo.test")
        return found.status == 200 and found.json["metadata"]["uid"] != uid and found.json["spec"]["versionPriority"] == 100

    uid = ""
    await api.created(CRDS, definition("v1"))
    await until(as_it_was)
    uid = (await api.get(f"{API_SERVICES}/v1.demo.test")).json["metadata"]["uid"]
    await api.delete(f"{API_SERVICES}/v1.demo.test")
    await until(as_it_was)
    uid = ""
    await api.patch(f"{API_SERVICES}/v1.demo.test", {"spec": {"versionPriority": 7}})
    await until(as_it_was)


async def test_the_versions_of_a_definition_have_one_as_long_as_they_are_served(api: Api) -> None:
    async def names() -> set[str]:
        return {i["metadata"]["name"] for i in (await api.get(API_SERVICES)).json["items"] if "demo.test" in i["metadata"]["name"]}

    async def become(*wanted: str) -> None:
        async def check() -> bool:
            return await names() == set(wanted)

        await until(check)

    made = await api.created(CRDS, definition("v1", "v1beta1"))
    await become("v1.demo.test", "v1beta1.demo.test")
    found = (await api.get(f"{API_SERVICES}/v1.demo.test")).json
    assert found["spec"] == {"group": "demo.test", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}
    assert found["metadata"]["labels"] == {LABEL: "true"}
    # one that is taken away or changed comes back
    await api.delete(f"{API_SERVICES}/v1.demo.test")
    await become("v1.demo.test", "v1beta1.demo.test")
    await api.patch(f"{API_SERVICES}/v1.demo.test", {"spec": {"versionPriority": 7}})

    async def mended() -> bool:
        return bool((await api.get(f"{API_SERVICES}/v1.demo.test")).json["spec"]["versionPriority"] == 100)

    await until(mended)
    # one whose label is another is somebody else's
    await api.patch(f"{API_SERVICES}/v1beta1.demo.test", {"metadata": {"labels": {LABEL: None}}, "spec": {"versionPriority": 7}})
    await api.delete(f"{CRDS}/{made['metadata']['name']}")
    await become("v1beta1.demo.test")
    assert (await api.get(f"{API_SERVICES}/v1beta1.demo.test")).json["spec"]["versionPriority"] == 7


SERVICES = "/api/v1/namespaces/ns-a/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/ns-a/endpointslices"


async def test_the_condition_tells_what_is_missing_step_by_step(api: Api, keys: Keys) -> None:
    await api.created(API_SERVICES, api_service(keys, 443))
    where = 'service/zoo in "ns-a"'
    assert (await condition_with(api, "ServiceNotFound"))["message"] == f"{where} is not present"
    port = {"name": "https", "port": 8443, "targetPort": 8443}
    await api.created(SERVICES, {"metadata": {"name": "zoo"}, "spec": {"ports": [port]}})
    assert (await condition_with(api, "ServicePortError"))["message"] == f"{where} is not listening on port 443"
    await api.patch(f"{SERVICES}/zoo", {"spec": {"ports": [{**port, "port": 443}]}})
    assert (await condition_with(api, "EndpointsNotFound"))["message"] == f"cannot find endpointslices for {where}"
    endpoints: dict[str, Any] = {
        "metadata": {"name": "zoo-1", "labels": {"kubernetes.io/service-name": "zoo"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}}],
        "ports": [{"name": "https", "port": 8443}],
    }
    await api.created(SLICES, endpoints)
    found = await condition_with(api, "MissingEndpoints")
    assert found["message"] == f'endpointslices for {where} have no addresses with port name "https"'
    assert found["status"] == "False"


async def test_a_server_that_goes_and_comes_back_is_noticed(api: Api, zoo: ExtensionServer, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await condition(api)
    assert (before["status"], before["message"]) == ("True", "all checks passed")
    zoo.behaviour.answers_garbage = True
    await api.patch(f"{SERVICES}/zoo", {"metadata": {"labels": {"look": "now"}}})
    after = await condition_with(api, "FailedDiscoveryCheck")
    assert after["status"] == "False"
    groups = (await api.get("/apis", headers={"accept": AGGREGATED})).json["items"]
    assert [g["metadata"]["name"] for g in groups].count(GROUP) == 1
    zoo.behaviour.answers_garbage = False
    assert (await condition_with(api, "Passed"))["status"] == "True"
    metrics = (await api.get("/metrics")).body.decode()
    assert f'aggregator_unavailable_apiservice{{name="{NAME}"}} 0' in metrics
    assert f'aggregator_unavailable_apiservice_total{{name="{NAME}",reason="FailedDiscoveryCheck"}} 1' in metrics


@pytest.mark.parametrize("aggregated", [True, False])
async def test_discovery_has_the_resources_of_the_other_server(api: Api, extension: ExtensionServer, keys: Keys, aggregated: bool) -> None:
    extension.behaviour.aggregated = aggregated
    await api.created(SERVICES, external_service())
    await api.created(API_SERVICES, api_service(keys, extension.port))

    async def found() -> Any:
        groups = (await api.get("/apis", headers={"accept": AGGREGATED})).json["items"]
        mine = [g for g in groups if g["metadata"]["name"] == GROUP and g["versions"][0]["freshness"] == "Current"]
        return mine and mine[0]

    resource = (await until(found))["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["singularResource"]) == ("ferrets", "Namespaced", "ferret")
    assert resource["responseKind"]["kind"] == "Ferret"
    assert resource["shortNames"] == ["fer"]
    await api.created(CRDS, definition("v1"))

    async def with_gadgets() -> list[str]:
        names = [group["name"] for group in (await api.get("/apis")).json["groups"]]
        return names if "demo.test" in names else []

    names = await until(with_gadgets)
    # 2000 is below all of Kubernetes' own, and above custom resources
    assert names[0] == "apiregistration.k8s.io"
    assert names[-2:] == [GROUP, "demo.test"]
    group = (await api.get(f"/apis/{GROUP}")).json
    assert group["preferredVersion"] == {"groupVersion": f"{GROUP}/v1alpha1", "version": "v1alpha1"}
    assert (await api.get(ROOT)).json["resources"][0]["name"] == "ferrets"


async def test_a_group_with_versions_here_and_there_is_one(api: Api, zoo: ExtensionServer) -> None:
    made = definition("v1")
    made["metadata"]["name"] = f"gadgets.{GROUP}"
    made["spec"]["group"] = GROUP
    await api.created(CRDS, made)

    async def versions() -> list[str]:
        found = [v["version"] for v in (await api.get(f"/apis/{GROUP}")).json["versions"]]
        return found if len(found) > 1 else []

    assert await until(versions) == ["v1", "v1alpha1"]  # 100 before 10
    assert (await api.get(f"/apis/{GROUP}/v1/gadgets")).status == 200
    groups = (await api.get("/apis", headers={"accept": AGGREGATED})).json["items"]
    found = next(g for g in groups if g["metadata"]["name"] == GROUP)
    assert [v["resources"][0]["resource"] for v in found["versions"]] == ["gadgets", "ferrets"]


@pytest.mark.parametrize("version_3", [True, False])
async def test_openapi_has_the_schemas_of_the_other_server(api: Api, extension: ExtensionServer, keys: Keys, version_3: bool) -> None:
    extension.behaviour.openapi_v3 = version_3
    await api.created(SERVICES, external_service())
    await api.created(API_SERVICES, api_service(keys, extension.port))

    async def url() -> str:
        return str((await api.get("/openapi/v3")).json["paths"].get(ROOT[1:], {}).get("serverRelativeURL", ""))

    found = await until(url)
    assert found.startswith(f"/openapi/v3{ROOT}?hash=")
    path, _, query = found.partition("?")
    document = (await api.get(path, query=query)).json
    schema = document["components"]["schemas"][SCHEMA]
    assert schema["properties"]["spec"]["properties"]["color"]["description"] == "Color of the fur."
    operation = document["paths"][f"{ROOT}/namespaces/{{namespace}}/ferrets/{{name}}"]["get"]
    assert operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"] == f"#/components/schemas/{SCHEMA}"
    if version_3:
        swagger = (await api.get("/openapi/v2")).json
        assert SCHEMA in swagger["definitions"]
        assert "/elsewhere" not in swagger["paths"]
        protobuf = await api.get("/openapi/v2", headers={"accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})
        assert protobuf.status == 200
        assert SCHEMA.encode() in protobuf.body


async def test_what_cannot_be_read_is_stale_and_the_rest_is_whole(api: Api, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PAUSE_SECONDS", 0.05)
    await api.created(API_SERVICES, api_service(keys, 443))

    async def stale() -> Any:
        groups = (await api.get("/apis", headers={"accept": AGGREGATED})).json["items"]
        return groups if any(g["metadata"]["name"] == GROUP for g in groups) else None

    groups = await until(stale)
    found = next(g for g in groups if g["metadata"]["name"] == GROUP)
    assert found["versions"] == [{"version": "v1alpha1", "freshness": "Stale"}]
    assert len(groups) > 15
    await api.delete(f"{API_SERVICES}/{NAME}")
    await asyncio.sleep(0)
    assert GROUP not in [g["name"] for g in (await api.get("/apis")).json["groups"]]


async def test_documents_that_make_no_sense_spoil_nothing(api: Api, zoo: ExtensionServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document is asked for in each of its forms, while the other server's cannot be encoded in some of them."""
    nonsense = {
        "paths": {f"{ROOT}/x": {"get": {"responses": {"200": {"schema": 5}}, "parameters": [1, {"in": 3}], "tags": {"a": [None]}}}},
        "definitions": {"Odd": {"type": {"no": "type"}, "required": 7}},
    }
    known = api.server.aggregator._documents._known[NAME]  # type: ignore[union-attr]
    known.swagger = orjson.dumps(nonsense)
    known.openapi_v3 = ""
    api.server.table.generation += 1
    old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    for path, accept in (
        ("/openapi/v2", "application/json"),
        ("/openapi/v2", old),
        ("/openapi/v3", "application/json"),
        ("/apis", AGGREGATED),
        ("/apis", AGGREGATED.replace("application/json", "application/vnd.kubernetes.protobuf")),
    ):
        answer = await api.get(path, headers={"accept": accept})
        assert answer.status == 200, (path, accept, answer.body[:300])
    assert (await api.get(f"/openapi/v3{ROOT}")).status in (200, 503)
    assert "io.k8s.api.core.v1.Pod" in (await api.get("/openapi/v2")).json["definitions"]
