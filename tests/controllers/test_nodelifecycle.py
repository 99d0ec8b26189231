"""Nodes that fall silent and come back, by the controller's own clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.machinery.objects import Object
from controllers.client.resources import EVENTS, LEASES, NODES, PODS
from controllers.lib import pods as pod_facts
from controllers.lib import taints
from controllers.lib.context import ControllerContext
from controllers.nodelifecycle import tainting
from controllers.nodelifecycle.controller import NodeLifecycleController
from controllers.options import ManagerOptions
from tests.controllers.world import World, ready

OPTIONS = ManagerOptions(kubeconfig=Path("unused"))


def build(context: ControllerContext) -> NodeLifecycleController:
    return NodeLifecycleController(context, OPTIONS)


class Nodes(World):
    async def add(self, name: str, status: str = "True") -> None:
        await self.api.create(
            NODES,
            "",
            {
                "metadata": {"name": name},
                "spec": {},
                "status": {"conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": "h", "lastTransitionTime": "t"}]},
            },
        )
        await self.api.create(LEASES, "kube-node-lease", {"metadata": {"name": name}, "spec": {"renewTime": "0"}})

    async def renew(self, *names: str) -> None:
        """The stamp says nothing true: only that it changes counts."""
        for name in names:
            await self.api.patch(LEASES, "kube-node-lease", name, {"spec": {"renewTime": f"1999-{self.clock.monotonic()}"}})

    async def live(self, seconds: int, *names: str) -> None:
        for _ in range(seconds // 10):
            await self.renew(*names)
            await self.advance(10)

    async def run_pod(self, name: str, node: str, **spec: object) -> None:
        await self.api.create(
            PODS,
            "a",
            {
                "metadata": {"name": name},
                "spec": {"nodeName": node, **spec},
                "status": {"phase": "Running", "conditions": [ready(self.clock)]},
            },
        )

    def node(self, name: str) -> Object:
        return next(n for n in self.api.all(NODES) if n["metadata"]["name"] == name)

    def taints(self, name: str) -> set[tuple[str, str]]:
        return {(t["key"], t["effect"]) for t in taints.of_node(self.node(name))}

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        return {c["type"]: (c["status"], c.get("reason", "")) for c in self.node(name)["status"]["conditions"]}


async def test_a_lease_that_stops_makes_the_node_unknown_after_the_grace_period_and_not_before() -> None:
    """Field case Z3: what counts is when the controller saw the lease change, by its own clock."""
    nodes = Nodes()
    await nodes.add("n")
    await nodes.add("other")
    await nodes.run_pod("p", "n")
    async with nodes.running(build):
        await nodes.live(100, "n", "other")
        assert nodes.conditions("n")["Ready"][0] == "True" and nodes.taints("n") == set()
        await nodes.live(30, "other")
        assert nodes.conditions("n")["Ready"][0] == "True"
        await nodes.live(20, "other")
        assert nodes.conditions("n") == {
            "Ready": ("Unknown", "NodeStatusUnknown"),
            "MemoryPressure": ("Unknown", "NodeStatusNeverUpdated"),
            "DiskPressure": ("Unknown", "NodeStatusNeverUpdated"),
            "PIDPressure": ("Unknown", "NodeStatusNeverUpdated"),
        }
        assert nodes.taints("n") == {(taints.UNREACHABLE, "NoSchedule"), (taints.UNREACHABLE, "NoExecute")}
        assert nodes.taints("other") == set()
        assert nodes.events("NodeNotReady")


async def test_all_of_it_is_reversed_when_the_node_reports_again() -> None:
    nodes = Nodes()
    await nodes.add("n")
    await nodes.add("other")
    forgiving = [{"key": taints.UNREACHABLE, "operator": "Exists", "tolerationSeconds": 300}]
    await nodes.run_pod("p", "n", tolerations=forgiving)
    async with nodes.running(build):
        await nodes.live(60, "other")
        assert not pod_facts.is_ready(nodes.api.all(PODS)[0])
        await nodes.api.patch(
            NODES,
            "",
            "n",
            {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "h2", "lastTransitionTime": "t2"}]}},
            subresource="status",
        )
        await nodes.live(20, "n", "other")
        assert nodes.taints("n") == set()
        await nodes.live(400, "n", "other")
        assert len(nodes.api.all(PODS)) == 1, "the deletion is called off"
        assert nodes.events("TaintManagerEviction")[-1]["message"] == "Cancelling deletion of Pod a/p"


@pytest.mark.parametrize(
    ("tolerations", "gone_after"),
    [
        ([], 60),
        ([{"key": taints.UNREACHABLE, "operator": "Exists", "tolerationSeconds": 100}], 150),
        ([{"operator": "Exists"}], None),
    ],
)
async def test_pods_go_when_their_toleration_is_over(tolerations: list[Object], gone_after: int | None) -> None:
    nodes = Nodes()
    await nodes.add("n")
    await nodes.add("other")
    await nodes.run_pod("p", "n", tolerations=tolerations)
    async with nodes.running(build):
        await nodes.live(40, "other")
        assert len(nodes.api.all(PODS)) == 1
        if gone_after is None:
            await nodes.live(600, "other")
            assert len(nodes.api.all(PODS)) == 1
        else:
            await nodes.live(gone_after - 60, "other")
            assert len(nodes.api.all(PODS)) == 1
            await nodes.live(30, "other")
            assert nodes.api.all(PODS) == []


async def test_nodes_are_tainted_one_after_another_and_not_at_all_when_every_node_is_silent() -> None:
    nodes = Nodes()
    for number in range(5):
        await nodes.add(f"n{number}")
    async with nodes.running(build):
        await nodes.live(60, "n2", "n3", "n4")
        tainted = [n for n in ("n0", "n1") if (taints.UNREACHABLE, "NoExecute") in nodes.taints(n)]
        assert len(tainted) >= 1
        await nodes.live(40, "n2", "n3", "n4")
        assert all((taints.UNREACHABLE, "NoExecute") in nodes.taints(n) for n in ("n0", "n1"))
        await nodes.run_pod("p", "n4")
        await nodes.live(200)
        assert nodes.conditions("n4")["Ready"][0] == "Unknown"
        assert len(nodes.api.all(PODS)) == 1


async def test_a_cordoned_node_gets_its_taint_at_once() -> None:
    nodes = Nodes()
    await nodes.add("n")
    async with nodes.running(build):
        await nodes.api.patch(NODES, "", "n", {"spec": {"unschedulable": True}})
        await nodes.rest()
        assert nodes.taints("n") == {(taints.UNSCHEDULABLE, "NoSchedule")}
        await nodes.api.patch(NODES, "", "n", {"spec": {"unschedulable": None}})
        await nodes.rest()
        assert nodes.taints("n") == set()


async def test_a_node_that_never_reported_has_the_longer_grace_of_a_start() -> None:
    nodes = Nodes()
    await nodes.api.create(NODES, "", {"metadata": {"name": "n"}, "spec": {}})
    async with nodes.running(build):
        await nodes.advance(55)
        assert "status" not in nodes.node("n")
        await nodes.advance(15)
        assert nodes.conditions("n")["Ready"] == ("Unknown", "NodeStatusNeverUpdated")


def test_tolerated_time_is_the_shortest_of_the_tolerations_that_match() -> None:
    execute = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}, {"key": "c", "effect": "NoSchedule"}]
    pod = {
        "spec": {
            "tolerations": [
                {"key": "a", "operator": "Exists", "tolerationSeconds": 10},
                {"key": "b", "operator": "Exists", "tolerationSeconds": 5},
            ]
        }
    }
    assert tainting.seconds_tolerated(pod, execute) == 5
    assert tainting.seconds_tolerated({"spec": {"tolerations": pod["spec"]["tolerations"][:1]}}, execute) == 0
    assert tainting.seconds_tolerated({"spec": {"tolerations": [{"operator": "Exists"}]}}, execute) is None


async def test_nodes_that_come_and_go_are_told() -> None:
    nodes = Nodes()
    await nodes.add("n")
    async with nodes.running(build):
        await nodes.live(20, "n")
        await nodes.api.delete(NODES, "", "n")
        await nodes.advance(10)
        told = {e["reason"]: e["message"] for e in nodes.api.all(EVENTS) if e["involvedObject"]["kind"] == "Node"}
        assert told == {
            "RegisteredNode": "Node n event: Registered Node n in Controller",
            "RemovingNode": "Node n event: Removing Node n from Controller",
        }
