"""Deployment, ReplicaSet, scheduler and garbage collector together on a server that fails, answers nothing, holds watches back and forgets
history, all from one seed; then it heals, and everything must be as asked for.

A checker sees every revision: no ReplicaSet ever has more pods than it was ever asked for at once (field case: no over-creation).
"""

from __future__ import annotations

import random

import pytest

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.errors import ConnectionFailed
from controllers.client.interface import DeleteOptions, Propagation
from controllers.client.resources import DEPLOYMENTS, NODES, PODS, REPLICA_SETS
from controllers.deployment.controller import DeploymentController
from controllers.garbagecollector.controller import GarbageCollector
from controllers.lib import pods as pod_facts
from controllers.replicaset.controller import ReplicaSetController
from controllers.scheduler.controller import Scheduler
from tests.controllers.fake_api import refused
from tests.controllers.virtual_clock import settle
from tests.controllers.world import World, ready, template

SEEDS = range(12)
STEPS = 40
VERBS = ["create", "delete", "get", "list", "watch", "patch", "update"]


class Simulation(World):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.api.raw_answers = {
            "/api": {"versions": ["v1"]},
            "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": VERBS}]},
            "/apis": {"groups": [{"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}]},
            "/apis/apps/v1": {
                "resources": [{"name": r.plural, "kind": r.kind, "namespaced": True, "verbs": VERBS} for r in (DEPLOYMENTS, REPLICA_SETS)]
            },
        }

    def hurt(self) -> None:
        """One fault, or the end of one."""
        fault = self.random.choice(["refuse", "lose", "lose answer", "break", "hold", "release", "compact", "none"])
        plural = self.random.choice(["pods", "replicasets", "deployments"])
        verb = self.random.choice(["create", "update", "patch", "delete", "list", "watch"])
        if fault == "refuse":
            code = self.random.choice([409, 429, 500, 503])
            reason = "Conflict" if code == 409 else ""
            self.api.fail(verb, plural, refused(code, reason, "simulated"), times=self.random.randint(1, 3))
        elif fault == "lose":
            self.api.fail(verb, plural, ConnectionFailed("simulated"), times=self.random.randint(1, 3))
        elif fault == "lose answer":
            self.api.lose_answer(verb, plural, times=self.random.randint(1, 3))
        elif fault == "break":
            self.api.break_watches()
        elif fault == "hold":
            self.api.hold_watches(plural)
        elif fault == "release":
            self.api.release_watches(plural)
        elif fault == "compact" and not self.api._held:
            self.api.compact()

    def heal(self) -> None:
        self.api._faults.clear()
        for plural in ("pods", "replicasets", "deployments"):
            self.api.release_watches(plural)
        self.api.break_watches()

    async def act(self) -> None:
        """What a user and a kubelet do."""
        action = self.random.choice(["scale", "image", "ready", "ready", "ready", "fail", "delete pod"])
        faults, self.api._faults = self.api._faults, []  # their requests are not the ones under test
        pods = self.api.all(PODS)
        if action == "scale":
            await self.api.patch(DEPLOYMENTS, "a", "d", {"spec": {"replicas": self.random.randint(0, 6)}})
        elif action == "image":
            image = f"i:{self.random.randint(1, 3)}"
            await self.api.patch(DEPLOYMENTS, "a", "d", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
        elif action == "ready":
            await self.make_ready()
        elif pods:
            pod = self.random.choice(pods)
            name = objects.name(pod)
            if action == "fail":
                await self.api.patch(PODS, "a", name, {"status": {"phase": "Failed"}}, subresource="status")
            else:
                await self.api.delete(PODS, "a", name)
        self.api._faults = faults

    async def make_ready(self) -> None:
        for pod in self.api.all(PODS):
            if pod_facts.node_name(pod) and pod_facts.is_active(pod) and not pod_facts.is_ready(pod):
                await self.api.patch(
                    PODS, "a", objects.name(pod), {"status": {"phase": "Running", "conditions": [ready(self.clock)]}}, subresource="status"
                )

    def check_history(self) -> None:
        """Replays every write: a ReplicaSet's active pods never exceed the most that it was ever asked for."""
        asked: dict[str, int] = {}
        active: dict[str, set[str]] = {}
        for revision, (_, plural), type_, obj in self.api.history:
            uid = objects.uid(obj)
            if plural == "replicasets":
                asked[uid] = max(asked.get(uid, 0), int(obj["spec"]["replicas"]))
            elif plural == "pods":
                owner = str((objects.controller_of(obj) or {}).get("uid"))
                members = active.setdefault(owner, set())
                if type_ == "DELETED" or not pod_facts.is_active(obj):
                    members.discard(uid)
                else:
                    members.add(uid)
                most = asked.get(owner, 0)
                assert len(members) <= most, f"revision {revision}: {len(members)} pods where {most} were asked for"


def deployment() -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "d"}},
            "template": template(app="d"),
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        },
    }


async def run(seed: int) -> Simulation:
    world = Simulation(seed)
    await world.api.create(
        NODES, "", {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "500"}}}
    )
    async with world.running(DeploymentController, ReplicaSetController, Scheduler, GarbageCollector):
        await world.api.create(DEPLOYMENTS, "a", deployment())
        for _ in range(STEPS):
            if world.random.random() < 0.5:
                world.hurt()
            if world.random.random() < 0.5:
                await world.act()
            await world.clock.advance(world.random.choice([0.01, 0.2, 2, 15]))
            await settle(100)
        world.heal()
        for _ in range(40):
            await world.advance(10)
            await world.make_ready()
        await world.advance(20)
        return world


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_everything_is_as_asked_for_once_the_server_has_healed(seed: int) -> None:
    world = await run(seed)
    world.check_history()
    (found,) = world.api.all(DEPLOYMENTS)
    wanted = found["spec"]["replicas"]
    image = found["spec"]["template"]["spec"]["containers"][0]["image"]
    live = [p for p in world.api.all(PODS) if pod_facts.is_active(p)]
    assert len(live) == wanted and all(p["spec"]["containers"][0]["image"] == image for p in live)
    assert found["status"].get("availableReplicas", 0) == wanted
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    old = [s for s in world.api.all(REPLICA_SETS) if s["spec"]["template"]["spec"]["containers"][0]["image"] != image]
    assert all(s["spec"]["replicas"] == 0 for s in old) and len(old) <= 2
    uids = {objects.uid(s) for s in world.api.all(REPLICA_SETS)}
    assert all((objects.controller_of(p) or {}).get("uid") in uids for p in world.api.all(PODS)), "the collector left an orphan"


@pytest.mark.slow
async def test_one_seed_is_one_history() -> None:
    first, second = await run(3), await run(3)
    assert [(r, k, t, o["metadata"]["name"]) for r, k, t, o in first.api.history] == [
        (r, k, t, o["metadata"]["name"]) for r, k, t, o in second.api.history
    ]


@pytest.mark.slow
async def test_deleting_the_deployment_leaves_nothing() -> None:
    world = Simulation(1)
    async with world.running(DeploymentController, ReplicaSetController, GarbageCollector):
        await world.api.create(DEPLOYMENTS, "a", deployment())
        await world.rest()
        assert len(world.api.all(PODS)) == 3
        await world.api.delete(DEPLOYMENTS, "a", "d", DeleteOptions(propagation=Propagation.BACKGROUND))
        world.api.fail("delete", "pods", refused(500, "InternalError", "simulated"), times=2)
        await world.advance(10)
        assert world.api.all(REPLICA_SETS) == [] and world.api.all(PODS) == []
