"""Services whose addresses and ports are not what is remembered of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from apiserver.config import ServerConfig
from apiserver.service_repair import ServiceRepair
from storage import api as storage_api
from tests.apiserver.api import Api, running

RANGE = "10.0.0.0/28"
SERVICES = "/api/v1/namespaces/ns-a/services"
EVENTS = "/api/v1/namespaces/ns-a/events"


@pytest.fixture
async def api(server_config: ServerConfig) -> AsyncIterator[Api]:
    """Addresses are in the range of the flags alone."""
    update = {"service_cluster_ip_range": RANGE, "service_node_port_range": "30000-30009", "kubernetes_version": "1.32"}
    async with running(server_config.model_copy(update=update)) as found:
        await found.created("/api/v1/namespaces", {"metadata": {"name": "ns-a"}})
        yield found


def repair(api: Api) -> ServiceRepair:
    return ServiceRepair(api.server.registry, api.server.allocators)


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def key(name: str) -> bytes:
    return f"/registry/services/specs/ns-a/{name}".encode()


async def by_hand(api: Api, name: str, **spec: Any) -> None:
    """A service in the store that no server has given anything."""
    made = await api.created(SERVICES, service(name))
    [kv] = (await api.kv.range(storage_api.RangeRequest(key=key(name)))).kvs
    stored = orjson.loads(kv.value)
    ip = made["spec"]["clusterIP"]
    stored["spec"].update(spec)
    await api.kv.delete_range(storage_api.DeleteRangeRequest(key=f"/registry/ranges/serviceips/{ip}".encode()))
    await api.kv.put(storage_api.PutRequest(key=key(name), value=orjson.dumps(stored)))
    await api.server.objects.source.freshen()


async def claims(api: Api) -> dict[str, str]:
    answer = await api.kv.range(storage_api.RangeRequest(key=b"/registry/ranges/", range_end=b"/registry/ranges0"))
    return {kv.key.decode().removeprefix("/registry/ranges/"): kv.value.decode().rpartition("/")[2] for kv in answer.kvs}


async def told(api: Api) -> list[tuple[str, str, str]]:
    events = (await api.get(EVENTS)).json["items"]
    return sorted((event["involvedObject"]["name"], event["reason"], event["message"]) for event in events)


async def test_nothing_is_told_of_what_was_given(api: Api) -> None:
    await api.created(SERVICES, service("a", type="NodePort"))
    await api.created(SERVICES, service("b", clusterIP="None"))
    await api.created(SERVICES, service("c", type="ExternalName", externalName="c.example.com"))
    before = await claims(api)
    await repair(api).look()
    assert await claims(api) == before
    assert await told(api) == []


async def test_what_was_written_by_hand_is_allocated(api: Api) -> None:
    ports = [{"port": 80, "nodePort": 30005, "protocol": "TCP"}, {"port": 80, "nodePort": 30005, "protocol": "UDP"}]
    await by_hand(api, "a", clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"], type="NodePort", ports=ports)
    await repair(api).look()
    assert (await claims(api))["serviceips/10.0.0.9"] == "a"
    assert (await claims(api))["servicenodeports/30005"] == "a"
    assert await told(api) == [
        ("a", "ClusterIPNotAllocated", "Cluster IP [IPv4]:10.0.0.9 is not allocated; repairing"),
        ("a", "PortNotAllocated", "Port 30005 is not allocated; repairing"),
    ]
    await repair(api).look()
    assert len(await told(api)) == 2
    refused = await api.post(SERVICES, service("b", clusterIP="10.0.0.9"))
    assert "provided IP is already allocated" in refused.message


async def test_leaks_are_freed(api: Api) -> None:
    """Of services that were deleted or changed without their claims, the last ones with a node port too."""
    await api.created(SERVICES, service("a", type="NodePort", clusterIP="10.0.0.9", ports=[{"port": 1, "nodePort": 30001}]))
    await api.created(SERVICES, service("b", clusterIP="10.0.0.10"))
    await api.kv.delete_range(storage_api.DeleteRangeRequest(key=key("a")))
    [kv] = (await api.kv.range(storage_api.RangeRequest(key=key("b")))).kvs
    await api.kv.put(storage_api.PutRequest(key=key("b"), value=kv.value.replace(b"10.0.0.10", b"10.0.0.11")))
    await api.server.objects.source.freshen()
    await repair(api).look()
    assert await claims(api) == {"serviceips/10.0.0.1": "kubernetes", "serviceips/10.0.0.11": "b"}
    for name, ip in (("c", "10.0.0.9"), ("d", "10.0.0.10")):
        await api.created(SERVICES, service(name, clusterIP=ip))


async def test_what_cannot_be_put_right_is_told_and_left(api: Api) -> None:
    await api.created(SERVICES, service("owner", clusterIP="10.0.0.9", type="NodePort", ports=[{"port": 1, "nodePort": 30001}]))
    twice = [{"port": 80, "nodePort": 30001, "protocol": "TCP"}]
    await by_hand(api, "a", clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"], type="NodePort", ports=twice)
    await by_hand(api, "b", clusterIP="10.99.0.9", clusterIPs=["10.99.0.9"], type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    await by_hand(api, "c", clusterIP="ten", clusterIPs=["ten", "fd00::1"])
    stored = {name: (await api.get(f"{SERVICES}/{name}")).json for name in ("owner", "a", "b", "c")}
    doctor = repair(api)
    await doctor.look()
    expected = [
        ("a", "ClusterIPAlreadyAllocated", "Cluster IP [IPv4]:10.0.0.9 was assigned to multiple services; please recreate service"),
        ("a", "PortAlreadyAllocated", "Port 30001 was assigned to multiple services; please recreate service"),
        (
            "b",
            "ClusterIPOutOfRange",
            "Cluster IP [IPv4]:10.99.0.9 is not within the service CIDR 10.0.0.0/28; please recreate service",
        ),
        ("b", "PortOutOfRange", "Port 80 is not within the port range 30000-30009; please recreate service"),
        (
            "c",
            "ClusterIPNotValid",
            "Cluster IP fd00::1(IPv6) is of ip family that is no longer configured on cluster; please recreate service",
        ),
        ("c", "ClusterIPNotValid", "Cluster IP ten is not a valid IP; please recreate service"),
    ]
    assert await told(api) == expected
    assert {name: (await api.get(f"{SERVICES}/{name}")).json for name in stored} == stored
    assert (await claims(api))["serviceips/10.0.0.9"] == "owner"
    await doctor.look()
    assert await told(api) == expected
    events = (await api.get(EVENTS)).json["items"]
    assert {event["series"]["count"] for event in events} == {2}
    assert {event["reportingComponent"] for event in events} == {"ipallocator-repair-controller", "portallocator-repair-controller"}
    newer = (await api.get("/apis/events.k8s.io/v1/namespaces/ns-a/events")).json["items"]
    assert {(event["action"], event["regarding"]["kind"], event["type"]) for event in newer} == {
        ("ClusterIPAllocation", "Service", "Warning"),
        ("ClusterIPValidation", "Service", "Warning"),
        ("PortAllocation", "Service", "Warning"),
    }


async def test_the_address_of_a_second_service_is_in_use_when_the_first_goes(api: Api) -> None:
    await api.created(SERVICES, service("a", clusterIP="10.0.0.9"))
    await by_hand(api, "b", clusterIP="10.0.0.9", clusterIPs=["10.0.0.9"])
    assert (await api.delete(f"{SERVICES}/a")).status == 200
    await repair(api).look()
    assert (await claims(api))["serviceips/10.0.0.9"] == "b"
    assert "already allocated" in (await api.post(SERVICES, service("c", clusterIP="10.0.0.9"))).message


async def test_a_server_starts_over_a_service_with_an_address_that_is_none(api: Api) -> None:
    await by_hand(api, "a", clusterIP="ten", clusterIPs=["ten"])
    async with running(api.server.config, api.kv) as second:
        assert (await second.get(f"{SERVICES}/a")).json["spec"]["clusterIP"] == "ten"
        assert (await second.delete(f"{SERVICES}/a")).status == 200
