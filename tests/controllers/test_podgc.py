"""Pods that nothing else removes."""

from __future__ import annotations

from apiserver.machinery.objects import Object
from controllers.client.resources import NODES, PODS
from controllers.podgc import decision
from controllers.podgc.controller import PodGarbageCollector
from controllers.podgc.decision import Why
from tests.controllers.world import World


def pod(name: str, *, node: str = "", phase: str = "Running", going: bool = False, created: str = "") -> Object:
    metadata: Object = {"name": name, "uid": name, "creationTimestamp": created}
    if going:
        metadata["deletionTimestamp"] = "t"
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


def test_each_sort_of_pod_is_found_and_no_other() -> None:
    lost = {
        "spec": {"taints": [{"key": decision.OUT_OF_SERVICE, "effect": "NoExecute"}]},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }
    pods = [
        pod("stays", node="n"),
        pod("orphan", node="gone"),
        pod("never", going=True),
        pod("waits"),
        pod("ending", node="n", going=True),
        pod("stuck", node="lost", going=True),
        pod("runs", node="lost"),
        *(pod(f"done{i}", node="n", phase="Succeeded", created=str(i)) for i in range(4)),
    ]
    found = decision.plan(pods, {"n": {}, "lost": lost}, {"gone"}, threshold=3)
    assert {r.pod["metadata"]["name"]: r.why for r in found} == {
        "orphan": Why.ORPHANED,
        "never": Why.UNSCHEDULED,
        "stuck": Why.OUT_OF_SERVICE,
        "done0": Why.TERMINATED,
    }
    assert [r.pod["metadata"]["name"] for r in decision.plan(pods, {"n": {}, "lost": {}}, (), threshold=0)] == ["never"]


async def test_pods_of_a_deleted_node_go_after_the_quarantine_and_not_when_it_comes_back() -> None:
    world = World(graceful_pods=True)
    for name in ("n1", "n2"):
        await world.api.create(NODES, "", {"metadata": {"name": name}})
        await world.api.create(PODS, "a", {"metadata": {"name": f"on-{name}"}, "spec": {"nodeName": name}})
    async with world.running(lambda context: PodGarbageCollector(context, 100)):
        for name in ("n1", "n2"):
            await world.api.delete(NODES, "", name)
        await world.advance(39)
        await world.api.create(NODES, "", {"metadata": {"name": "n1"}})
        assert len(world.api.all(PODS)) == 2
        await world.advance(42)
        assert [p["metadata"]["name"] for p in world.api.all(PODS)] == ["on-n1"]
        failed = [o for _, _, type_, o in world.api.history if o["kind"] == "Pod" and (o.get("status") or {}).get("phase") == "Failed"]
        assert failed and failed[0]["metadata"]["name"] == "on-n2"
