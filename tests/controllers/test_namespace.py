"""Namespaces that are deleted: emptied, told about, let go."""

from __future__ import annotations

from typing import Any

from apiserver.machinery.objects import Object
from controllers.client.errors import ConnectionFailed
from controllers.client.resources import CONFIG_MAPS, NAMESPACES, PODS
from controllers.lib import pods as pod_facts
from controllers.namespace.controller import NamespaceController
from tests.controllers.fake_api import refused
from tests.controllers.world import World


def listing(*resources: tuple[str, str]) -> Object:
    verbs = ["create", "delete", "deletecollection", "get", "list", "watch"]
    return {"resources": [{"name": name, "kind": kind, "namespaced": True, "verbs": verbs} for name, kind in resources]}


class Namespaces(World):
    def __init__(self, *, graceful_pods: bool = False) -> None:
        super().__init__(graceful_pods=graceful_pods)
        self.api.raw_answers = {
            "/api": {"versions": ["v1"]},
            "/api/v1": listing(("pods", "Pod"), ("configmaps", "ConfigMap")),
            "/apis": {"groups": [{"name": "g", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}]},
            "/apis/g/v1": listing(("things", "Thing")),
        }

    async def make(self, *names: str) -> None:
        for name in names:
            await self.api.create(NAMESPACES, "", {"metadata": {"name": name}})

    def conditions(self, name: str) -> dict[str, tuple[str, str, str]]:
        found = next(n for n in self.api.all(NAMESPACES) if n["metadata"]["name"] == name)
        return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found["status"].get("conditions", [])}

    def names(self) -> list[str]:
        return [n["metadata"]["name"] for n in self.api.all(NAMESPACES)]


async def test_all_in_it_goes_and_then_the_namespace_and_nothing_elsewhere() -> None:
    world = Namespaces()
    await world.make("a", "b")
    for namespace in ("a", "b"):
        await world.api.create(CONFIG_MAPS, namespace, {"metadata": {"name": "c"}})
        await world.api.create(PODS, namespace, {"metadata": {"name": "p"}, "spec": {}})
    async with world.running(NamespaceController):
        await world.api.delete(NAMESPACES, "", "a")
        await world.rest()
        assert world.names() == ["b"]
        assert [o["metadata"]["namespace"] for o in world.api.all(CONFIG_MAPS) + world.api.all(PODS)] == ["b", "b"]


async def test_what_holds_it_up_stands_in_its_conditions() -> None:
    world = Namespaces()
    await world.make("a")
    await world.api.create(CONFIG_MAPS, "a", {"metadata": {"name": "c", "finalizers": ["x/y"]}})
    async with world.running(NamespaceController):
        await world.api.delete(NAMESPACES, "", "a")
        await world.advance(10)
        found = world.conditions("a")
        assert found["NamespaceContentRemaining"] == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        assert found["NamespaceFinalizersRemaining"] == (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: x/y in 1 resource instances",
        )
        assert found["NamespaceDeletionDiscoveryFailure"][:2] == ("False", "ResourcesDiscovered")
        await world.api.patch(CONFIG_MAPS, "a", "c", {"metadata": {"finalizers": None}})
        await world.advance(6)
        assert world.names() == []


async def test_a_group_that_cannot_be_discovered_keeps_the_namespace() -> None:
    world = Namespaces()
    await world.make("a")
    works = world.api.raw_answers["/apis/g/v1"]
    world.api.raw_answers["/apis/g/v1"] = ConnectionFailed("away")
    async with world.running(NamespaceController):
        await world.api.delete(NAMESPACES, "", "a")
        await world.advance(20)
        status, reason, message = world.conditions("a")["NamespaceDeletionDiscoveryFailure"]
        assert (status, reason) == ("True", "DiscoveryFailed") and "g/v1: away" in message
        world.api.raw_answers["/apis/g/v1"] = works
        await world.advance(6)
        assert world.names() == []


async def test_pods_end_gracefully_before_the_rest_goes() -> None:
    world = Namespaces(graceful_pods=True)
    await world.make("a")
    await world.api.create(CONFIG_MAPS, "a", {"metadata": {"name": "c"}})
    await world.api.create(PODS, "a", {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}})
    async with world.running(NamespaceController):
        await world.api.delete(NAMESPACES, "", "a")
        await world.advance(2)
        assert len(world.api.all(CONFIG_MAPS)) == 1 and len(world.api.all(PODS)) == 1
        await world.api.patch(PODS, "a", "p", {"metadata": {"deletionGracePeriodSeconds": 0}})
        await world.advance(6)
        assert world.names() == []


async def test_content_that_the_server_refuses_to_delete_is_told() -> None:
    world = Namespaces()
    await world.make("a")
    await world.api.create(CONFIG_MAPS, "a", {"metadata": {"name": "c"}})
    world.api.fail("deletecollection", "configmaps", refused(403, "Forbidden", "a policy says no"), times=2)
    async with world.running(NamespaceController):
        await world.api.delete(NAMESPACES, "", "a")
        await world.rest()
        found: Any = world.conditions("a")["NamespaceDeletionContentFailure"]
        assert found[0] == "True" and "a policy says no" in found[2]
        await world.advance(6)
        assert world.names() == []


async def test_what_no_list_shows_keeps_the_namespace_when_its_deletion_fails() -> None:
    """Values that the server cannot read are missing in lists."""
    world = Namespaces()
    await world.make("a")
    world.api.fail("deletecollection", "configmaps", refused(500, "InternalError", "unable to transform key"), times=100)
    async with world.running(NamespaceController):
        await world.api.delete(NAMESPACES, "", "a")
        await world.advance(20)
        found: Any = world.conditions("a")["NamespaceDeletionContentFailure"]
        assert found[0] == "True" and "unable to transform key" in found[2]
        assert world.names() == ["a"]


def test_conditions_keep_their_times_while_they_hold() -> None:
    old = {"type": "T", "status": "True", "lastTransitionTime": "then", "message": "old"}
    (kept,) = pod_facts.with_condition([old], {"type": "T", "status": "True", "lastTransitionTime": "now", "message": "new"})
    assert kept == {"type": "T", "status": "True", "lastTransitionTime": "then", "message": "new"}
