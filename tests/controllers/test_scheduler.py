"""The scheduler: filters as tables, placement as properties, binding and telling over the fake API."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client.errors import ConnectionFailed
from controllers.client.resources import NODES, PODS
from controllers.lib import taints
from controllers.scheduler import decision, resources
from controllers.scheduler.cluster import Cluster
from controllers.scheduler.controller import Scheduler
from controllers.scheduler.decision import DoesNotFit, Fits
from tests.controllers.world import World


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: str = "110",
    node_taints: list[Object] | None = None,
    unschedulable: bool = False,
    **labels: str,
) -> Object:
    spec: Object = {"taints": node_taints or []}
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
    }


def pod(name: str = "p", *, cpu: str = "", memory: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Object:
    requests = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v}
    return {
        "metadata": {"name": name, "namespace": "a", "uid": name, "labels": labels or {}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
    }


def cluster_of(*nodes: Object, **placed: list[Object]) -> Cluster:
    cluster = Cluster()
    for one in nodes:
        cluster.set_node(one)
    for name, pods in placed.items():
        for other in pods:
            cluster.set_pod({**other, "spec": {**other["spec"], "nodeName": name}})
    return cluster


def place(new: Object, cluster: Cluster) -> Fits | DoesNotFit:
    return decision.place(new, cluster, lambda selector: frozenset({"a", "b"}), random.Random(1))


SELECT_APP = {"matchLabels": {"app": "x"}}


def pod_term(sort: str, key: str = "zone") -> Object:
    return {sort: {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": SELECT_APP, "topologyKey": key}]}}


def node_terms(*terms: Object) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("new", "target", "reason"),
    [
        (pod(cpu="5"), node("n"), "Insufficient cpu"),
        (pod(memory="9Gi"), node("n"), "Insufficient memory"),
        (pod(), node("n", pods="0"), "Too many pods"),
        (pod(), node("n", unschedulable=True), "node(s) were unschedulable"),
        (pod(tolerations=[{"key": taints.UNSCHEDULABLE, "operator": "Exists"}]), node("n", unschedulable=True), None),
        (pod(), node("n", node_taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), "node(s) had untolerated taint {k: v}"),
        (pod(), node("n", node_taints=[{"key": "k", "effect": "PreferNoSchedule"}]), None),
        (pod(tolerations=[{"operator": "Exists"}]), node("n", node_taints=[{"key": "k", "effect": "NoExecute"}]), None),
        (pod(nodeSelector={"disk": "ssd"}), node("n"), "node(s) didn't match Pod's node affinity/selector"),
        (pod(nodeSelector={"disk": "ssd"}), node("n", disk="ssd"), None),
        (pod(affinity=node_terms({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]})), node("n", zone="z"), None),
        (
            pod(affinity=node_terms({"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["3"]}]})),
            node("n", gen="3"),
            "node(s) didn't match Pod's node affinity/selector",
        ),
        (pod(affinity=node_terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]})), node("n"), None),
        (pod(affinity=node_terms({})), node("n"), "node(s) didn't match Pod's node affinity/selector"),
        (pod(affinity=node_terms({}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]})), node("n"), None),
        (pod(affinity=pod_term("podAffinity"), labels={"app": "y"}), node("n", zone="z"), "node(s) didn't match pod affinity rules"),
        (pod(affinity=pod_term("podAffinity"), labels={"app": "x"}), node("n", zone="z"), None),
        (pod(affinity=pod_term("podAffinity"), labels={"app": "x"}), node("n"), "node(s) didn't match pod affinity rules"),
    ],
)
def test_filters(new: Object, target: Object, reason: str | None) -> None:
    result = place(new, cluster_of(target))
    if reason is None:
        assert result == Fits("n")
    else:
        assert isinstance(result, DoesNotFit) and result.message.startswith(f"0/1 nodes are available: 1 {reason}. preemption: ")


def test_reasons_are_counted_and_sorted() -> None:
    cluster = cluster_of(node("a", cpu="1"), node("b", cpu="1", memory="1Gi"), node("c", unschedulable=True))
    result = place(pod(cpu="2", memory="2Gi"), cluster)
    assert result == DoesNotFit(
        "0/3 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable, 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    assert place(pod(), Cluster()) == DoesNotFit("no nodes available to schedule pods")


def test_host_ports_clash_by_protocol_and_address() -> None:
    def wants(name: str, **port: Any) -> Object:
        return pod(name, containers=[{"name": "c", "ports": [{"containerPort": 1, **port}]}])

    cluster = cluster_of(node("n"), n=[wants("q", hostPort=80)])
    assert isinstance(place(wants("p", hostPort=80), cluster), DoesNotFit)
    assert isinstance(place(wants("p", hostPort=80, hostIP="127.0.0.1"), cluster), DoesNotFit)
    assert place(wants("p", hostPort=80, protocol="UDP"), cluster) == Fits("n")
    assert place(wants("p", hostPort=81), cluster) == Fits("n")


def test_anti_affinity_holds_in_both_directions() -> None:
    away = pod("q", labels={"app": "x"}, affinity=pod_term("podAntiAffinity"))
    cluster = cluster_of(node("n", zone="1"), node("m", zone="2"), n=[away])
    assert place(pod("p", labels={"app": "x"}), cluster) == Fits("m")
    alone = cluster_of(node("n", zone="1"), n=[away])
    result = place(pod("p", labels={"app": "x"}), alone)
    assert isinstance(result, DoesNotFit) and "node(s) didn't satisfy existing pods anti-affinity rules" in result.message
    plain = cluster_of(node("n", zone="1"), n=[pod("q", labels={"app": "x"})])
    result = place(pod("p", affinity=pod_term("podAntiAffinity")), plain)
    assert isinstance(result, DoesNotFit) and "node(s) didn't match pod anti-affinity rules" in result.message


def test_topology_spread_keeps_the_skew() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECT_APP}
    new = pod("p", labels={"app": "x"}, topologySpreadConstraints=[constraint])
    cluster = cluster_of(node("a", zone="1"), node("b", zone="2"), node("c"), a=[pod("q", labels={"app": "x"})])
    assert place(new, cluster) == Fits("b")
    full = cluster_of(node("a", zone="1"), node("b", zone="2", unschedulable=True), node("c"), a=[pod("q", labels={"app": "x"})])
    result = place(new, full)
    assert isinstance(result, DoesNotFit)
    assert "1 node(s) didn't match pod topology spread constraints (missing required label)" in result.message
    assert "1 node(s) didn't match pod topology spread constraints," in result.message


def test_requests_count_init_containers_at_their_peak_and_sidecars_throughout() -> None:
    def container(cpu: str, **more: Any) -> Object:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    new: Object = {
        "spec": {
            "containers": [container("1"), container("500m")],
            "overhead": {"cpu": "100m"},
            "initContainers": [container("200m", restartPolicy="Always"), container("3")],
        }
    }
    assert resources.requests_of(new) == {"cpu": 3300}
    new["spec"]["initContainers"][1] = container("1")
    assert resources.requests_of(new) == {"cpu": 1800}


def test_preferences_and_emptiness_decide_among_nodes_that_fit() -> None:
    preferred = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
            ]
        }
    }
    assert place(pod(affinity=preferred), cluster_of(node("a"), node("b", disk="ssd"))) == Fits("b")
    assert place(pod(), cluster_of(node("a"), node("b"), a=[pod("q", cpu="3")])) == Fits("b")
    soft = [{"key": "k", "effect": "PreferNoSchedule"}]
    assert place(pod(), cluster_of(node("a", node_taints=soft), node("b"))) == Fits("b")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 6)), min_size=1, max_size=4),
    st.lists(st.integers(0, 3000), min_size=1, max_size=25),
    st.integers(0, 99),
)
def test_nodes_are_never_overfilled_and_a_refused_pod_fits_nowhere(sizes: list[tuple[int, int]], wants: list[int], seed: int) -> None:
    cluster = cluster_of(*(node(f"n{i}", cpu=str(cpu), pods=str(count)) for i, (cpu, count) in enumerate(sizes)))
    used = {f"n{i}": [0, 0] for i in range(len(sizes))}
    for number, want in enumerate(wants):
        new = pod(f"p{number}", cpu=f"{want}m")
        result = decision.place(new, cluster, lambda _: frozenset(), random.Random(seed))
        fitting = [f"n{i}" for i, (cpu, count) in enumerate(sizes) if used[f"n{i}"][0] + want <= cpu * 1000 and used[f"n{i}"][1] < count]
        if isinstance(result, DoesNotFit):
            assert not fitting
        else:
            assert result.node_name in fitting
            cluster.assume(new, result.node_name)
            used[result.node_name][0] += want
            used[result.node_name][1] += 1


def test_pods_that_leave_give_back_what_they_took() -> None:
    cluster = cluster_of(node("n"), n=[pod("q", cpu="3", memory="1Gi")])
    assert cluster.nodes["n"].requested == {"cpu": 3000, "memory": 2**30}
    gone = pod("q", cpu="3", memory="1Gi", nodeName="n")
    cluster.set_pod({**gone, "status": {"phase": "Succeeded"}})
    assert not any(cluster.nodes["n"].requested.values()) and cluster.nodes["n"].pods == {}


def new_pod(name: str, **more: Any) -> Object:
    made = pod(name, **more)
    del made["metadata"]["uid"]
    return made


async def test_pods_are_bound_and_spread_over_the_nodes() -> None:
    world = World()
    for name in ("n1", "n2"):
        await world.api.create(NODES, "", node(name))
    for number in range(6):
        await world.api.create(PODS, "a", new_pod(f"p{number}"))
    async with world.running(Scheduler):
        where = [p["spec"]["nodeName"] for p in world.api.all(PODS)]
        assert sorted(where) == ["n1"] * 3 + ["n2"] * 3
        assert world.events("Scheduled")[0]["message"].startswith("Successfully assigned a/p0 to n")


async def test_what_does_not_fit_is_told_once_and_placed_when_a_node_comes() -> None:
    world = World()
    await world.api.create(PODS, "a", new_pod("p", cpu="2"))
    async with world.running(Scheduler):
        condition = world.api.all(PODS)[0]["status"]["conditions"][0]
        assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
        assert condition["message"] == "no nodes available to schedule pods"
        await world.api.create(NODES, "", node("small", cpu="1"))
        await world.advance(2)
        condition = world.api.all(PODS)[0]["status"]["conditions"][0]
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert world.events("FailedScheduling")
        await world.api.create(NODES, "", node("large"))
        await world.advance(11)
        assert world.api.all(PODS)[0]["spec"]["nodeName"] == "large"


async def test_room_made_by_a_deleted_pod_is_used() -> None:
    world = World()
    await world.api.create(NODES, "", node("n", pods="1"))
    await world.api.create(PODS, "a", new_pod("p1", nodeName="n"))
    await world.api.create(PODS, "a", new_pod("p2"))
    async with world.running(Scheduler):
        assert "nodeName" not in world.api.all(PODS)[1]["spec"]
        await world.api.delete(PODS, "a", "p1")
        await world.advance(2)
        assert world.api.all(PODS)[0]["spec"]["nodeName"] == "n"


async def test_higher_priority_goes_first() -> None:
    world = World()
    for name, priority in (("low", 0), ("high", 1000)):
        await world.api.create(PODS, "a", new_pod(name, priority=priority))
    await world.api.create(NODES, "", node("n", pods="1"))
    async with world.running(Scheduler):
        placed = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in world.api.all(PODS)}
        assert placed == {"low": None, "high": "n"}


async def test_a_lost_binding_is_tried_again_and_never_counted_twice() -> None:
    world = World()
    await world.api.create(NODES, "", node("n", pods="2"))
    await world.api.create(PODS, "a", new_pod("p1"))
    world.api.fail("create", "pods", ConnectionFailed("away"))
    async with world.running(Scheduler):
        await world.advance(3)
        assert world.api.all(PODS)[0]["spec"]["nodeName"] == "n"
        await world.api.create(PODS, "a", new_pod("p2"))
        await world.rest()
        assert world.api.all(PODS)[1]["spec"]["nodeName"] == "n"


async def test_a_pod_that_breaks_the_decision_does_not_stop_the_others() -> None:
    world = World()
    await world.api.create(NODES, "", node("n"))
    await world.api.create(PODS, "a", new_pod("broken", cpu="nonsense"))
    await world.api.create(PODS, "a", new_pod("sound"))
    async with world.running(Scheduler):
        assert [p["spec"].get("nodeName") for p in world.api.all(PODS)] == [None, "n"]


async def test_gated_and_foreign_pods_are_left_alone() -> None:
    world = World()
    await world.api.create(NODES, "", node("n"))
    await world.api.create(PODS, "a", new_pod("gated", schedulingGates=[{"name": "g"}]))
    await world.api.create(PODS, "a", new_pod("foreign", schedulerName="other"))
    async with world.running(Scheduler):
        assert all("nodeName" not in p["spec"] for p in world.api.all(PODS))
        await world.api.patch(PODS, "a", "gated", {"spec": {"schedulingGates": None}})
        await world.rest()
        assert [p["spec"].get("nodeName") for p in world.api.all(PODS)] == [None, "n"]


async def test_a_batch_is_placed_with_one_request_a_pod() -> None:
    world = World()
    for number in range(5):
        await world.api.create(NODES, "", node(f"n{number}"))
    for number in range(100):
        await world.api.create(PODS, "a", new_pod(f"p{number:03}"))
    async with world.running(Scheduler):
        assert all(p["spec"].get("nodeName") for p in world.api.all(PODS))
        assert world.api.count("create", "pods") == 200  # each made once by the test and bound once


def test_siblings_are_counted_by_controller_until_they_go() -> None:
    owned: Object = {"ownerReferences": [{"uid": "r", "controller": True}]}
    cluster = Cluster()
    cluster.set_node(node("n"))
    first, second = pod("p", nodeName="n"), pod("q", nodeName="n")
    for one in (first, second):
        one["metadata"].update(owned)
        cluster.set_pod(one)
    assert cluster.nodes["n"].siblings == {"r": 2}
    cluster.set_pod({**first, "metadata": {**first["metadata"], "deletionTimestamp": "t"}})
    cluster.remove_pod(second)
    assert cluster.nodes["n"].siblings == {} and len(cluster.nodes["n"].pods) == 1
