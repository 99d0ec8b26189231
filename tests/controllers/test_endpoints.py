"""Endpoints and EndpointSlices follow the pods of their Services."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client.resources import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from controllers.endpoints import endpoints, slices
from controllers.endpoints.backends import backends_of
from controllers.endpoints.controller import EndpointsController, EndpointSliceController
from tests.controllers.world import World, ready

SERVICE: Object = {
    "metadata": {"name": "s", "namespace": "a", "uid": "s", "labels": {"l": "1"}},
    "spec": {
        "selector": {"app": "x"},
        "clusterIP": "10.0.0.1",
        "ports": [{"name": "web", "port": 80, "targetPort": "http"}, {"name": "raw", "port": 81}],
    },
}


def pod(name: str, ip: str, *, is_ready: bool = True, port: int = 8080, going: bool = False, phase: str = "Running") -> Object:
    metadata: Object = {"name": name, "namespace": "a", "uid": name, "labels": {"app": "x"}}
    if going:
        metadata["deletionTimestamp"] = "t"
    return {
        "metadata": metadata,
        "spec": {"nodeName": "n", "containers": [{"ports": [{"name": "http", "containerPort": port}]}]},
        "status": {"phase": phase, "podIP": ip, "conditions": [{"type": "Ready", "status": str(is_ready)}]},
    }


def test_ready_addresses_stand_apart_and_named_ports_are_looked_up() -> None:
    pods = [
        pod("a", "10.0.0.3"),
        pod("b", "10.0.0.2", is_ready=False),
        pod("c", "10.0.0.4", port=9090),
        pod("d", "", is_ready=False),
        pod("e", "10.0.0.5", phase="Failed"),
        pod("f", "10.0.0.6", going=True),
    ]
    first, second = endpoints.subsets_of(SERVICE, backends_of(SERVICE, pods))
    assert [a["ip"] for a in first["addresses"]] == ["10.0.0.3"] and [a["ip"] for a in first["notReadyAddresses"]] == ["10.0.0.2"]
    assert first["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}, {"name": "raw", "port": 81, "protocol": "TCP"}]
    assert [a["ip"] for a in second["addresses"]] == ["10.0.0.4"] and second["ports"][0]["port"] == 9090


def test_slices_tell_ready_serving_and_terminating() -> None:
    pods = [pod("a", "10.0.0.3"), pod("b", "10.0.0.4", going=True), pod("c", "10.0.0.5", is_ready=False)]
    (made,) = slices.plan(SERVICE, backends_of(SERVICE, pods), [], {"n": "z"}).create
    told = {e["targetRef"]["name"]: tuple(e["conditions"][k] for k in ("ready", "serving", "terminating")) for e in made["endpoints"]}
    assert told == {"a": (True, True, False), "b": (False, True, True), "c": (False, False, False)}
    assert made["endpoints"][0]["zone"] == "z" and made["metadata"]["labels"]["kubernetes.io/service-name"] == "s"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "s"


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sets(st.integers(0, 250), max_size=240), min_size=1, max_size=4))
def test_slices_hold_exactly_the_pods_within_their_limit_and_stay_put(rounds: list[set[int]]) -> None:
    current: dict[str, Object] = {}
    made = 0
    where: dict[str, str] = {}
    for chosen in rounds:
        backends = backends_of(SERVICE, [pod(f"p{n}", f"10.1.{n // 200}.{n % 200 + 1}") for n in sorted(chosen)])
        plan = slices.plan(SERVICE, backends, list(current.values()), {})
        for gone in plan.delete:
            del current[gone["metadata"]["name"]]
        for changed in plan.update:
            current[changed["metadata"]["name"]] = changed
        for new in plan.create:
            made += 1
            new["metadata"]["name"] = f"s-{made}"
            current[f"s-{made}"] = new
        listed = [e["targetRef"]["uid"] for one in current.values() for e in one["endpoints"]]
        assert sorted(listed) == sorted(f"p{n}" for n in chosen)
        assert all(len(one["endpoints"]) <= slices.ENDPOINTS_MAX for one in current.values())
        now = {e["targetRef"]["uid"]: name for name, one in current.items() for e in one["endpoints"]}
        assert all(now[uid] == name for uid, name in where.items() if uid in now), "an endpoint moved without need"
        where = now
        again = slices.plan(SERVICE, backends, list(current.values()), {})
        assert not (again.create or again.update or again.delete), "a plan that is carried out leaves nothing to do"


async def test_both_follow_readiness_and_go_with_the_service() -> None:
    world = World()
    made = dict(SERVICE)
    made["metadata"] = {"name": "s", "labels": {"l": "1"}}
    await world.api.create(SERVICES, "a", made)
    async with world.running(EndpointsController, EndpointSliceController):
        assert world.api.all(ENDPOINTS)[0]["subsets"] == []
        assert world.api.all(ENDPOINT_SLICES)[0]["endpoints"] == []
        new = pod("p", "10.0.0.9", is_ready=False)
        del new["metadata"]["uid"]
        await world.api.create(PODS, "a", new)
        await world.advance(1)
        assert world.api.all(ENDPOINTS)[0]["subsets"][0]["notReadyAddresses"][0]["ip"] == "10.0.0.9"
        await world.api.patch(PODS, "a", "p", {"status": {"conditions": [ready(world.clock)]}}, subresource="status")
        await world.advance(1)
        assert world.api.all(ENDPOINTS)[0]["subsets"][0]["addresses"][0]["targetRef"]["name"] == "p"
        listed = [e["conditions"]["ready"] for one in world.api.all(ENDPOINT_SLICES) for e in one["endpoints"]]
        assert listed == [True]
        await world.api.delete(PODS, "a", "p")
        await world.advance(1)
        assert world.api.all(ENDPOINTS)[0]["subsets"] == []
        await world.api.delete(SERVICES, "a", "s")
        await world.advance(1)
        assert world.api.all(ENDPOINTS) == [] and world.api.all(ENDPOINT_SLICES) == []


async def test_endpoints_of_a_service_without_selector_are_left_to_their_maker() -> None:
    world = World()
    await world.api.create(SERVICES, "a", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}})
    await world.api.create(ENDPOINTS, "a", {"metadata": {"name": "s"}, "subsets": [{"addresses": [{"ip": "1.2.3.4"}]}]})
    async with world.running(EndpointsController, EndpointSliceController):
        await world.advance(1)
        assert world.api.all(ENDPOINTS)[0]["subsets"] == [{"addresses": [{"ip": "1.2.3.4"}]}]
