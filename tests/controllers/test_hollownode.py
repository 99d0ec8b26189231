"""Hollow nodes: the Node and its heartbeats, and the life of pods from arrival to removal."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.machinery.objects import Object
from controllers.client.errors import ConnectionFailed
from controllers.client.resources import EVENTS, LEASES, NODES, PODS
from controllers.hollownode import HollowNode, HollowNodeOptions, pod_status
from controllers.hollownode.workload import PREFIX, Workload, workload_of
from controllers.lib import pods as pod_facts
from tests.controllers.fake_api import FakeApi
from tests.controllers.virtual_clock import VirtualClock, settle

OPTIONS = HollowNodeOptions(names=("n",), kubeconfig=Path("unused"))


class Kubelet:
    def __init__(self, api: FakeApi | None = None, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.api = api or FakeApi(self.clock, graceful_pods=True)
        self.node = HollowNode("n", self.api, OPTIONS, version="v1.30.0", clock=self.clock, rng=random.Random(1))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Kubelet]:
        task = asyncio.create_task(self.node.run())
        await settle(300)
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def add(self, name: str = "p", annotations: dict[str, str] | None = None, **spec: Any) -> None:
        metadata = {"name": name, "annotations": {PREFIX + k: v for k, v in (annotations or {}).items()}}
        whole = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], **spec}
        await self.api.create(PODS, "a", {"metadata": metadata, "spec": whole})
        await settle(200)

    async def after(self, seconds: float, name: str = "p") -> Object:
        await self.clock.advance(seconds)
        await settle(200)
        return self.pod(name)

    def pod(self, name: str = "p") -> Object:
        return next(p for p in self.api.all(PODS) if p["metadata"]["name"] == name)

    def reasons(self) -> list[str]:
        return [e["reason"] for e in self.api.all(EVENTS) if e["involvedObject"]["kind"] == "Pod"]


async def test_a_node_registers_renews_its_lease_and_takes_its_conditions_back() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        (node,) = kubelet.api.all(NODES)
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n" and node["status"]["nodeInfo"]["kubeletVersion"] == "v1.30.0"
        assert pod_facts.is_ready(node) and node["status"]["capacity"]["pods"] == "110"
        before = kubelet.api.all(LEASES)[0]["spec"]["renewTime"]
        await kubelet.clock.advance(11)
        lease = kubelet.api.all(LEASES)[0]
        assert lease["spec"]["renewTime"] > before and lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
        await kubelet.api.patch(NODES, "", "n", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, subresource="status")
        await kubelet.clock.advance(11)
        assert pod_facts.is_ready(kubelet.api.all(NODES)[0])


async def test_a_node_waits_for_a_server_that_is_away_and_comes_back_when_its_node_is_deleted() -> None:
    kubelet = Kubelet()
    kubelet.api.fail("create", "nodes", ConnectionFailed("away"), times=2)
    async with kubelet.running():
        assert kubelet.api.all(NODES) == []
        await kubelet.clock.advance(3)
        assert len(kubelet.api.all(NODES)) == 1
        await kubelet.api.delete(NODES, "", "n")
        await kubelet.clock.advance(11)
        assert len(kubelet.api.all(NODES)) == 1


async def test_a_pod_is_created_runs_and_becomes_ready_with_a_kubelets_events() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add()
        creating = kubelet.pod()["status"]
        assert creating["phase"] == "Pending" and "podIP" not in creating
        assert creating["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
        running = (await kubelet.after(0.2))["status"]
        assert running["phase"] == "Running" and running["podIP"] and running["hostIP"] and running["startTime"]
        assert running["containerStatuses"][0]["ready"] and pod_facts.is_ready(kubelet.pod())
        assert all(c.get("reason") is None for c in running["conditions"])
        assert kubelet.reasons() == ["Pulled", "Created", "Started"]


async def test_pods_of_a_node_have_different_addresses() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        for number in range(5):
            await kubelet.add(f"p{number}")
        await kubelet.clock.advance(1)
        assert len({p["status"]["podIP"] for p in kubelet.api.all(PODS)}) == 5


async def test_readiness_waits_for_the_probes_delay_and_for_gates() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add(
            containers=[{"name": "c", "image": "i", "readinessProbe": {"initialDelaySeconds": 5}}],
            readinessGates=[{"conditionType": "x/y"}],
        )
        assert not pod_facts.is_ready(await kubelet.after(4))
        waiting = await kubelet.after(2)
        assert waiting["status"]["containerStatuses"][0]["ready"]
        condition = pod_facts.condition(waiting, "Ready")
        assert condition is not None and condition["reason"] == "ReadinessGatesNotReady"
        conditions = [*waiting["status"]["conditions"], {"type": "x/y", "status": "True"}]
        await kubelet.api.patch(PODS, "a", "p", {"status": {"conditions": conditions}}, subresource="status")
        assert pod_facts.is_ready(await kubelet.after(0.1))
        assert pod_facts.condition(kubelet.pod(), "x/y") is not None


@pytest.mark.parametrize(
    ("policy", "annotations", "phase", "restarts"),
    [
        ("Never", {}, "Succeeded", 0),
        ("OnFailure", {}, "Succeeded", 0),
        ("Never", {"exit-code": "3"}, "Failed", 0),
        ("OnFailure", {"exit-code": "1"}, "Running", 1),
        ("Always", {"run-seconds": "1"}, "Running", 1),
        ("Always", {}, "Running", 0),
    ],
)
async def test_containers_complete_fail_and_restart(policy: str, annotations: dict[str, str], phase: str, restarts: int) -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add(annotations=annotations, restartPolicy=policy)
        assert (await kubelet.after(0.9))["status"]["phase"] == "Running"
        status = (await kubelet.after(1.6))["status"]
        assert status["phase"] == phase and status["containerStatuses"][0]["restartCount"] == restarts
        if phase == "Failed":
            assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


async def test_a_container_that_crashes_again_and_again_backs_off() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add(annotations={"exit-code": "1", "run-seconds": "1"}, restartPolicy="Always")
        status = (await kubelet.after(4))["status"]["containerStatuses"][0]
        assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff" and status["lastState"]["terminated"]["exitCode"] == 1
        await kubelet.after(120)
        assert 3 <= kubelet.pod()["status"]["containerStatuses"][0]["restartCount"] <= 5
        assert "BackOff" in kubelet.reasons()


async def test_init_containers_run_one_after_another_and_sidecars_stay() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        init = [{"name": "one", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}, {"name": "two", "image": "i"}]
        await kubelet.add(initContainers=init)
        status = (await kubelet.after(0.12))["status"]
        assert status["phase"] == "Pending" and status["initContainerStatuses"][0]["state"].get("running")
        assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
        status = (await kubelet.after(1))["status"]
        assert status["phase"] == "Running" and pod_facts.is_ready(kubelet.pod())
        assert [next(iter(s["state"])) for s in status["initContainerStatuses"]] == ["terminated", "running", "terminated"]


async def test_a_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add(restartPolicy="Never", initContainers=[{"name": "one", "image": "i", "command": ["sh", "-c", "exit 2"]}])
        assert (await kubelet.after(2))["status"]["phase"] == "Failed"


async def test_a_deleted_pod_stops_within_its_grace_and_then_goes() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add(annotations={"stop-seconds": "5"})
        await kubelet.after(1)
        await kubelet.api.delete(PODS, "a", "p")
        stopping = await kubelet.after(4)
        assert stopping["metadata"]["deletionTimestamp"] and stopping["status"]["containerStatuses"][0]["state"].get("running")
        await kubelet.clock.advance(2)
        await settle(200)
        assert kubelet.api.all(PODS) == [] and "Killing" in kubelet.reasons()


async def test_an_image_that_cannot_be_pulled_and_a_deadline() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add("bad", annotations={"pull-error": "true"})
        await kubelet.add("late", activeDeadlineSeconds=5)
        bad = await kubelet.after(2, "bad")
        assert bad["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
        late = await kubelet.after(4, "late")
        assert late["status"]["phase"] == "Failed" and late["status"]["reason"] == "DeadlineExceeded"


async def test_a_node_that_is_started_again_goes_on_with_its_pods() -> None:
    first = Kubelet()
    async with first.running():
        await first.add()
        before = (await first.after(1))["status"]
    second = Kubelet(first.api, first.clock)
    async with second.running():
        await second.clock.advance(20)
        after = second.pod()["status"]
        assert (after["podIP"], after["containerStatuses"]) == (before["podIP"], before["containerStatuses"])


@pytest.mark.parametrize(
    ("command", "policy", "expected"),
    [
        (["sleep", "30"], "Never", Workload(30.0)),
        (["sh", "-c", "sleep 2; exit 3"], "Never", Workload(2.0, 3)),
        (["sh", "-c", "while true; do sleep 5; done"], "Always", Workload(None)),
        (["sleep", "infinity"], "Never", Workload(None)),
        (["false"], "OnFailure", Workload(1.0, 1)),
        (["nginx"], "Always", Workload(None)),
        (["perl", "-Mbignum=bpi"], "Never", Workload(1.0)),
        (["sh", "-c", "exit 1"], "Always", Workload(1.0, 1)),
    ],
)
def test_commands_are_understood(command: list[str], policy: str, expected: Workload) -> None:
    assert workload_of({"spec": {"restartPolicy": policy}}, {"command": command}, default_seconds=1.0) == expected


async def test_a_node_tells_what_it_becomes() -> None:
    kubelet = Kubelet()

    def told() -> list[str]:
        return [e["reason"] for e in kubelet.api.all(EVENTS) if e["involvedObject"]["kind"] == "Node"]

    async with kubelet.running():
        first = ["Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"]
        assert sorted(told()) == sorted(first)
        await kubelet.api.patch(NODES, "", "n", {"spec": {"unschedulable": True}})
        await kubelet.clock.advance(11)
        await settle(200)
        assert sorted(told()) == sorted([*first, "NodeNotSchedulable"])
        await kubelet.api.patch(NODES, "", "n", {"spec": {"unschedulable": None}})
        await kubelet.api.patch(NODES, "", "n", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, subresource="status")
        await kubelet.clock.advance(11)
        await settle(200)
        ready = next(e for e in kubelet.api.all(EVENTS) if e["reason"] == "NodeReady")
        assert ready["count"] == 2 and ready["message"] == "Node n status is now: NodeReady" and told().count("NodeSchedulable") == 1


async def test_an_ephemeral_container_joins_a_running_pod_and_ends_with_it() -> None:
    kubelet = Kubelet()
    async with kubelet.running():
        await kubelet.add()
        await kubelet.after(5)
        added = [{"name": "shell", "image": "busybox"}, {"name": "quick", "image": "busybox", "command": ["sleep", "2"]}]
        await kubelet.api.patch(PODS, "a", "p", {"spec": {"ephemeralContainers": added}})
        states = {s["name"]: s for s in (await kubelet.after(5))["status"]["ephemeralContainerStatuses"]}
        assert "running" in states["shell"]["state"] and not states["shell"]["ready"]
        assert states["quick"]["state"]["terminated"]["exitCode"] == 0
        assert pod_facts.is_ready(kubelet.pod())
        await kubelet.api.delete(PODS, "a", "p")
        await settle(200)
        await kubelet.clock.advance(40)
        await settle(200)
        assert kubelet.api.all(PODS) == []


@pytest.mark.parametrize(("version", "told"), [("v1.25.16", False), ("v1.27.0", False), ("v1.28.0", True), ("v1.37.0", True), ("?", True)])
def test_an_older_node_does_not_report_fields_that_its_server_refuses(version: str, told: bool) -> None:
    status = {"hostIP": "1.2.3.4", "hostIPs": [{"ip": "1.2.3.4"}]}
    assert pod_status.known_to(version, status) == (status if told else {"hostIP": "1.2.3.4"})
