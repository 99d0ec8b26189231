"""Budgets: what may be evicted, and that nothing spent is given back by an older count."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery.objects import Object
from controllers.client.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, Resource
from controllers.disruption import decision
from controllers.disruption.controller import DisruptionController
from tests.controllers.world import World, ready

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


def budget(**spec: Any) -> Object:
    return {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec}}


class Guarded(World):
    async def pod(self, name: str, *, owner: Object | None = None, is_ready: bool = True, app: str = "x") -> Object:
        metadata: Object = {"name": name, "labels": {"app": app}}
        if owner is not None:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ]
        conditions = [ready(self.clock)] if is_ready else []
        return await self.api.create(PODS, "a", {"metadata": metadata, "status": {"phase": "Running", "conditions": conditions}})

    def status(self) -> Object:
        found: Object = self.api.all(POD_DISRUPTION_BUDGETS)[0]["status"]
        return found

    def numbers(self) -> tuple[int, int, int, int]:
        """expected, desired, healthy, allowed"""
        found = self.status()
        return found["expectedPods"], found["desiredHealthy"], found["currentHealthy"], found["disruptionsAllowed"]

    async def evict(self, name: str) -> None:
        """What the eviction subresource writes, but for the deletion."""
        found = self.api.all(POD_DISRUPTION_BUDGETS)[0]
        found["status"]["disruptionsAllowed"] -= 1
        found["status"]["disruptedPods"] = {name: self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        await self.api.update(POD_DISRUPTION_BUDGETS, found, subresource="status")


@pytest.mark.parametrize(
    ("spec", "scale", "pods", "expected", "desired"),
    [
        ({"minAvailable": 2}, 0, 3, 3, 2),
        ({"minAvailable": "50%"}, 5, 3, 5, 3),
        ({"maxUnavailable": 1}, 4, 3, 4, 3),
        ({"maxUnavailable": "30%"}, 4, 4, 4, 2),
        ({"maxUnavailable": 9}, 4, 4, 4, 0),
        ({}, 0, 2, 2, 0),
    ],
)
def test_what_a_budget_expects_and_needs(spec: Object, scale: int, pods: int, expected: int, desired: int) -> None:
    assert decision.needs_of(budget(**spec), [{}] * pods, scale) == decision.Needs(expected=expected, desired_healthy=desired)


async def test_only_ready_pods_of_the_selector_count() -> None:
    world = Guarded()
    await world.api.create(POD_DISRUPTION_BUDGETS, "a", budget(minAvailable=1))
    for name in ("p", "q"):
        await world.pod(name)
    await world.pod("unready", is_ready=False)
    await world.pod("other", app="y")
    async with world.running(DisruptionController):
        assert world.numbers() == (3, 1, 2, 1)
        assert world.status()["observedGeneration"] == 1
        condition = world.status()["conditions"][0]
        assert (condition["type"], condition["status"], condition["reason"]) == ("DisruptionAllowed", "True", "SufficientPods")
        await world.api.delete(PODS, "a", "p")
        await world.rest()
        assert world.numbers() == (2, 1, 1, 0)
        assert world.status()["conditions"][0]["reason"] == "InsufficientPods"


async def test_the_size_of_the_deployment_counts_once_and_as_it_is_wished() -> None:
    world = Guarded()
    deployment = await world.api.create(DEPLOYMENTS, "a", {"metadata": {"name": "d"}, "spec": {"replicas": 4}})
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": deployment["metadata"]["uid"], "controller": True}
    sets = [
        await world.api.create(REPLICA_SETS, "a", {"metadata": {"name": n, "ownerReferences": [owner]}, "spec": {"replicas": 2}})
        for n in ("r1", "r2")
    ]
    for number, one in enumerate([*sets, *sets]):
        await world.pod(f"p{number}", owner=one)
    await world.api.create(POD_DISRUPTION_BUDGETS, "a", budget(maxUnavailable=1))
    async with world.running(DisruptionController):
        assert world.numbers() == (4, 3, 4, 1)
        await world.api.patch(DEPLOYMENTS, "a", "d", {"spec": {"replicas": 6}})
        await world.rest()
        assert world.numbers() == (6, 5, 4, 0)


async def test_custom_resources_are_asked_for_their_scale() -> None:
    world = Guarded()
    world.api.raw_answers = {
        "/api": {"versions": []},
        "/apis": {"groups": [{"name": "example.com", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}]},
        "/apis/example.com/v1": {"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["get"]}]},
    }
    widget = await world.api.create(WIDGETS, "a", {"metadata": {"name": "w"}, "spec": {"replicas": 2}})
    for name in ("p", "q"):
        await world.pod(name, owner=widget)
    await world.api.create(POD_DISRUPTION_BUDGETS, "a", budget(minAvailable="50%"))
    async with world.running(DisruptionController):
        assert world.numbers() == (2, 1, 2, 1)


async def test_pods_of_an_unknown_controller_may_not_be_disrupted() -> None:
    world = Guarded()
    await world.pod("p", owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "gone", "uid": "u"}})
    await world.api.create(POD_DISRUPTION_BUDGETS, "a", budget(maxUnavailable=1))
    async with world.running(DisruptionController):
        assert world.status()["disruptionsAllowed"] == 0
        assert world.status()["conditions"][0]["reason"] == "SyncFailed"
        assert world.events("NoControllers")


async def test_an_evicted_pod_counts_as_gone_until_its_deletion_fails_to_come() -> None:
    world = Guarded()
    await world.api.create(POD_DISRUPTION_BUDGETS, "a", budget(minAvailable=1))
    for name in ("p", "q", "r"):
        await world.pod(name)
    async with world.running(DisruptionController):
        assert world.numbers() == (3, 1, 3, 2)
        await world.evict("p")
        await world.rest()
        assert world.numbers() == (3, 1, 2, 1) and "p" in world.status()["disruptedPods"]
        await world.advance(decision.DELETION_SECONDS + 1)
        assert world.numbers() == (3, 1, 3, 2) and "disruptedPods" not in world.status()
        assert world.events("NotDeleted")


async def test_a_count_never_overwrites_an_eviction_that_it_has_not_seen() -> None:
    world = Guarded()
    await world.api.create(POD_DISRUPTION_BUDGETS, "a", budget(minAvailable=1))
    for name in ("p", "q", "r"):
        await world.pod(name)
    async with world.running(DisruptionController):
        world.api.hold_watches("poddisruptionbudgets")
        await world.evict("p")
        await world.pod("s")
        await world.rest()
        assert world.status()["disruptionsAllowed"] == 1 and "p" in world.status()["disruptedPods"]
        world.api.release_watches("poddisruptionbudgets")
        await world.advance(1)
        assert world.numbers() == (4, 1, 3, 2)
