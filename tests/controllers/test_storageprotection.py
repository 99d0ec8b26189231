"""Claims and volumes go when nothing uses them, and not before."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery.objects import Object
from controllers.client.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from controllers.storageprotection import decision
from controllers.storageprotection.controller import ClaimProtectionController, VolumeProtectionController
from tests.controllers.world import World

PROTECTED = {"name": "c", "finalizers": [decision.CLAIM_FINALIZER]}


def pod(name: str, node: str, **volume: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "volumes": [{"name": "v", **volume}]}}


@pytest.mark.parametrize(
    ("user", "used"),
    [
        (pod("p", "n", persistentVolumeClaim={"claimName": "c"}), True),
        (pod("p", "", persistentVolumeClaim={"claimName": "c"}), False),
        (pod("p", "n", persistentVolumeClaim={"claimName": "other"}), False),
        (pod("p", "n", emptyDir={}), False),
    ],
)
def test_a_claim_is_used_by_placed_pods_that_name_it(user: Object, used: bool) -> None:
    assert decision.is_claim_used({"metadata": {"name": "c"}}, [user]) is used


def test_an_ephemeral_volume_uses_the_claim_named_after_pod_and_volume() -> None:
    assert decision.is_claim_used({"metadata": {"name": "p-v"}}, [pod("p", "n", ephemeral={"volumeClaimTemplate": {}})])


async def test_a_deleted_claim_goes_when_its_last_pod_has_gone() -> None:
    world = World()
    async with world.running(ClaimProtectionController):
        await world.api.create(PERSISTENT_VOLUME_CLAIMS, "a", {"metadata": PROTECTED})
        await world.api.create(PODS, "a", pod("p", "n", persistentVolumeClaim={"claimName": "c"}))
        await world.api.delete(PERSISTENT_VOLUME_CLAIMS, "a", "c")
        await world.rest()
        assert world.api.all(PERSISTENT_VOLUME_CLAIMS)
        await world.api.delete(PODS, "a", "p")
        await world.rest()
        assert not world.api.all(PERSISTENT_VOLUME_CLAIMS)


async def test_a_pod_that_the_cache_does_not_show_yet_keeps_its_claim() -> None:
    world = World()
    async with world.running(ClaimProtectionController):
        world.api.hold_watches("pods")
        await world.api.create(PERSISTENT_VOLUME_CLAIMS, "a", {"metadata": PROTECTED})
        await world.api.create(PODS, "a", pod("p", "n", persistentVolumeClaim={"claimName": "c"}))
        await world.api.delete(PERSISTENT_VOLUME_CLAIMS, "a", "c")
        await world.rest()
        assert world.api.all(PERSISTENT_VOLUME_CLAIMS)
        world.api.release_watches("pods")


async def test_a_volume_goes_unless_it_is_bound_and_gets_the_finalizer_it_lacks() -> None:
    world = World()
    async with world.running(VolumeProtectionController):
        for name in ("bound", "free"):
            await world.api.create(PERSISTENT_VOLUMES, "", {"metadata": {"name": name}})
        await world.rest()
        assert all(v["metadata"]["finalizers"] == [decision.VOLUME_FINALIZER] for v in world.api.all(PERSISTENT_VOLUMES))
        await world.api.patch(PERSISTENT_VOLUMES, "", "bound", {"status": {"phase": "Bound"}}, subresource="status")
        for name in ("bound", "free"):
            await world.api.delete(PERSISTENT_VOLUMES, "", name)
        await world.rest()
        assert [v["metadata"]["name"] for v in world.api.all(PERSISTENT_VOLUMES)] == ["bound"]
