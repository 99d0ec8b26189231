"""The ranges and addresses of services as objects, from Kubernetes 1.33 on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from apiserver.config import ServerConfig
from apiserver.registry import service_addresses
from apiserver.service_repair import ServiceRepair
from storage import api as storage_api
from tests.apiserver.api import Api, running

SERVICES = "/api/v1/namespaces/ns-a/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
LABELS = {"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}


@pytest.fixture
async def api(server_config: ServerConfig) -> AsyncIterator[Api]:
    update = {"service_cluster_ip_range": "10.0.0.0/29", "service_node_port_range": "30000-30009"}
    async with running(server_config.model_copy(update=update)) as found:
        await found.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        yield found


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def cidr(name: str, *cidrs: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}}


def address(name: str, labels: dict[str, str], parent: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"parentRef": parent}}


async def names(api: Api) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.get(ADDRESSES)).json["items"]]


async def eventually(api: Api, path: str, wanted: Any) -> None:
    """The server does by itself what makes ``wanted`` true of the answer to a GET of ``path``."""
    async with asyncio.timeout(10):
        while not wanted(await api.get(path)):  # noqa: ASYNC110 - the server says nothing of what it does by itself
            await asyncio.sleep(0.01)


def repair(api: Api) -> ServiceRepair:
    return ServiceRepair(api.server.registry, api.server.allocators)


async def reasons(api: Api, namespace: str = "ns-a") -> list[tuple[str, str]]:
    events = (await api.get(f"/api/v1/namespaces/{namespace}/events")).json["items"]
    return sorted((event["involvedObject"]["name"], event["reason"]) for event in events)


async def test_a_new_cluster_has_the_default_range_and_the_address_of_its_service(api: Api) -> None:
    found = (await api.get(f"{CIDRS}/kubernetes")).json
    assert found["spec"] == {"cidrs": ["10.0.0.0/29"]}
    assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
    [condition] = found["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    own = (await api.get(f"{ADDRESSES}/10.0.0.1")).json
    assert own["metadata"]["labels"] == LABELS
    assert own["spec"] == {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}
    await repair(api).look()
    assert await reasons(api, "default") == []


async def test_an_address_comes_and_goes_with_its_service(api: Api) -> None:
    made = await api.created(SERVICES, service("a"))
    ip = made["spec"]["clusterIP"]
    found = (await api.get(f"{ADDRESSES}/{ip}")).json
    assert found["spec"]["parentRef"] == {"resource": "services", "namespace": "ns-a", "name": "a"}
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"], "one transaction"
    await api.created(SERVICES, service("b", clusterIP="None"))
    assert (await api.post(SERVICES, service("c"), query={"dryRun": "All"})).status == 201
    assert (await api.post(SERVICES, service("a"))).status == 409
    assert await names(api) == sorted(["10.0.0.1", ip])
    external = {"spec": {"type": "ExternalName", "externalName": "a.example.com", "clusterIP": None, "clusterIPs": None}}
    assert (await api.patch(f"{SERVICES}/a", external)).status == 200
    assert await names(api) == ["10.0.0.1"]
    assert (await api.patch(f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}})).status == 200
    assert len(await names(api)) == 2
    assert (await api.delete(f"{SERVICES}/a")).status == 200
    assert await names(api) == ["10.0.0.1"]


async def test_an_address_of_another_kind_of_parent_is_nobody_elses(api: Api) -> None:
    gateway = {"group": "gateway.networking.k8s.io", "resource": "gateways", "namespace": "ns-a", "name": "g"}
    await api.created(ADDRESSES, address("10.0.0.3", {}, gateway))
    refused = await api.post(SERVICES, service("a", clusterIP="10.0.0.3"))
    assert "failed to allocate IP 10.0.0.3: provided IP is already allocated" in refused.message
    for name in "bcde":
        await api.created(SERVICES, service(name))
    assert "range is full" in (await api.post(SERVICES, service("f"))).message
    await repair(api).look()
    assert "10.0.0.3" in await names(api)


async def test_what_is_missing_or_wrong_is_repaired(api: Api) -> None:
    await api.created(SERVICES, service("a", clusterIP="10.0.0.2"))
    await api.created(SERVICES, service("b", clusterIP="10.0.0.3"))
    assert (await api.delete(f"{ADDRESSES}/10.0.0.2")).status == 200
    await eventually(api, f"{ADDRESSES}/10.0.0.2", lambda answer: answer.status == 200)
    assert (await api.patch(f"{ADDRESSES}/10.0.0.3", {"metadata": {"labels": None}})).status == 200
    await eventually(api, f"{ADDRESSES}/10.0.0.3", lambda answer: answer.json["metadata"].get("labels") == LABELS)
    await eventually(api, "/api/v1/namespaces/ns-a/events", lambda answer: answer.json["items"])
    assert await reasons(api) == [("a", "ClusterIPNotAllocated")]


async def test_services_of_a_store_without_addresses_have_theirs_from_the_start(api: Api) -> None:
    made = await api.created(SERVICES, service("a"))
    await api.kv.delete_range(storage_api.DeleteRangeRequest(key=b"/registry/ipaddresses/", range_end=b"/registry/ipaddresses0"))
    async with running(api.server.config, api.kv) as second:
        assert sorted(await names(second)) == sorted(["10.0.0.1", made["spec"]["clusterIP"]])


async def test_orphans_are_removed_after_a_while(api: Api) -> None:
    gone = {"resource": "services", "namespace": "ns-a", "name": "gone"}
    for name, ip in (("old", "10.0.0.2"), ("new", "10.0.0.3")):
        await api.created(ADDRESSES, address(ip, LABELS, {**gone, "name": name}))
    await api.created(SERVICES, service("a", clusterIP="10.0.0.4"))
    await api.created(ADDRESSES, address("10.0.0.5", LABELS, {**gone, "name": "a"}))
    await api.created(ADDRESSES, address("10.0.0.6", LABELS, {"resource": "gateways", "name": "g"}))
    store = api.server.registry.stored("networking.k8s.io", "ipaddresses").storage
    found = await store.get("10.0.0.2")
    assert found is not None
    old = orjson.loads(orjson.dumps(found.decode()))
    old["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    await store.update("10.0.0.2", old, found.revision)
    await repair(api).look()
    assert sorted(await names(api)) == ["10.0.0.1", "10.0.0.3", "10.0.0.4"]
    assert {("10.0.0.2", "IPAddressNotAllocated"), ("10.0.0.5", "IPAddressWrongReference"), ("10.0.0.6", "IPAddressNotAllocated")} <= set(
        await reasons(api, "default")
    )


async def test_another_range_is_allocated_from_and_stays_while_it_is_in_use(api: Api) -> None:
    refused = await api.post(SERVICES, service("a", clusterIP="10.1.0.9"))
    assert "failed to allocate IP 10.1.0.9: the provided network does not match the current range" in refused.message
    await api.created(CIDRS, cidr("more", "10.1.0.0/24"))
    await eventually(
        api, f"{CIDRS}/more", lambda answer: answer.json["metadata"].get("finalizers") and answer.json.get("status", {}).get("conditions")
    )
    await api.created(SERVICES, service("a", clusterIP="10.1.0.9"))
    for name in "bcdef":
        await api.created(SERVICES, service(name))
    spilled = await api.created(SERVICES, service("g"))
    assert spilled["spec"]["clusterIP"].startswith("10.1.0.")
    assert (await api.delete(f"{SERVICES}/g")).status == 200
    assert (await api.delete(f"{CIDRS}/more")).status == 200
    await eventually(
        api, f"{CIDRS}/more", lambda answer: any(each["reason"] == "Terminating" for each in answer.json["status"]["conditions"])
    )
    assert "range is full" in (await api.post(SERVICES, service("g"))).message, "nothing new from a range that is to go"
    await repair(api).look()
    assert await reasons(api) == [], "what has an address of it keeps it"
    assert (await api.delete(f"{SERVICES}/a")).status == 200
    clock = api.server.env.clock
    api.server.env.clock = type(clock)(lambda: clock.now() + 11)
    await repair(api).look()
    assert (await api.get(f"{CIDRS}/more")).status == 404


async def test_the_default_range_is_made_again_and_one_of_other_flags_is_told(api: Api) -> None:
    config = api.server.config.model_copy(update={"service_cluster_ip_range": "10.9.0.0/24"})
    async with running(config, api.kv) as second:
        await repair(second).look()
        assert ("kubernetes", "KubernetesDefaultServiceCIDRInconsistent") in await reasons(second, "default")
        made = await second.created("/api/v1/namespaces/ns-a/services", service("a"))
        assert made["spec"]["clusterIP"].startswith("10.0.0."), "the object says where from"


async def test_versions_before_have_no_objects(server_config: ServerConfig) -> None:
    async with running(server_config.model_copy(update={"kubernetes_version": "1.32"})) as api:
        answer = await api.kv.range(storage_api.RangeRequest(key=b"/registry/ipaddresses/", range_end=b"/registry/ipaddresses0"))
        assert not answer.kvs
        assert not service_addresses.are_objects(api.server.registry)


@pytest.mark.parametrize(
    ("others", "ips", "goes"),
    [
        ([], [], True),
        ([], ["10.0.0.5"], False),
        ([], ["10.1.0.5"], True),
        ([["10.0.0.0/16"]], ["10.0.0.5"], True),
        ([["10.0.0.0/28"]], ["10.0.0.5"], True),
        ([["10.0.0.0/28"]], ["10.0.0.5", "10.0.0.20"], False),
        ([["fd00::/64"]], ["10.0.0.5"], False),
    ],
)
def test_whether_a_range_may_go(others: list[list[str]], ips: list[str], goes: bool) -> None:
    addresses = [address(ip, LABELS, {}) for ip in ips]
    assert service_addresses.may_go(cidr("a", "10.0.0.0/24"), [cidr("b", *other) for other in others], addresses) is goes


async def test_the_first_version_that_has_the_objects_serves_them(server_config: ServerConfig) -> None:
    async with running(server_config.model_copy(update={"kubernetes_version": "1.33"})) as api:
        assert (await api.get(f"{CIDRS}/kubernetes")).json["apiVersion"] == "networking.k8s.io/v1"
        assert await names(api) == ["10.96.0.1"]
        await repair(api).look()
        assert await reasons(api, "default") == []
