"""Claims and volumes: what suits, and that a volume never serves two."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery.objects import Object
from controllers.client.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from controllers.persistentvolume import decision
from controllers.persistentvolume.controller import PersistentVolumeController
from tests.controllers.world import World


def volume(
    name: str, storage: str = "2Gi", storage_class: str = "manual", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any
) -> Object:
    return {
        "metadata": {"name": name, "labels": {"tier": name}},
        "spec": {"capacity": {"storage": storage}, "accessModes": list(modes), "storageClassName": storage_class, **spec},
    }


def claim(name: str = "c", storage: str = "1Gi", storage_class: str = "manual", **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": "a", "uid": f"uid-{name}"},
        "status": {"phase": "Pending"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": storage}},
            **spec,
        },
    }


def reserved(name: str, uid: str = "") -> Object:
    return {"claimRef": {"namespace": "a", "name": name, **({"uid": uid} if uid else {})}}


@pytest.mark.parametrize(
    ("candidate", "fits"),
    [
        (volume("v"), True),
        (volume("v", "1Gi"), True),
        (volume("v", "1023Mi"), False),
        (volume("v", storage_class="other"), False),
        (volume("v", modes=("ReadOnlyMany",)), False),
        (volume("v", modes=("ReadOnlyMany", "ReadWriteOnce")), True),
        (volume("v", volumeMode="Block"), False),
        (volume("v", **reserved("c")), True),
        (volume("v", **reserved("c", "uid-c")), True),
        (volume("v", **reserved("c", "earlier")), False),
        (volume("v", **reserved("d")), False),
    ],
)
def test_what_suits_a_claim(candidate: Object, fits: bool) -> None:
    assert decision.suits(candidate, claim()) is fits


def test_the_smallest_that_suits_is_taken_and_a_reserved_one_before_it() -> None:
    volumes = [volume("big", "9Gi"), volume("small", "1Gi"), volume("kept", "20Gi", **reserved("c"))]
    assert decision.find(claim(), volumes) is volumes[2]
    assert decision.find(claim(), volumes[:2]) is volumes[1]
    assert decision.find(claim(selector={"matchLabels": {"tier": "big"}}), volumes[:2]) is volumes[0]
    assert decision.find(claim(storage="50Gi"), volumes) is None


class Stored(World):
    def claim(self, name: str = "c") -> Object:
        return next(c for c in self.api.all(PERSISTENT_VOLUME_CLAIMS) if c["metadata"]["name"] == name)

    def phases(self) -> dict[str, str]:
        return {v["metadata"]["name"]: v.get("status", {}).get("phase", "") for v in self.api.all(PERSISTENT_VOLUMES)}

    async def make(self, *made: Object) -> None:
        for one in made:
            if "capacity" in one["spec"]:
                await self.api.create(PERSISTENT_VOLUMES, "", one)
            else:
                await self.api.create(PERSISTENT_VOLUME_CLAIMS, "a", one)
        await self.advance(1)


async def test_a_claim_is_bound_and_its_volume_released_with_it() -> None:
    world = Stored()
    async with world.running(PersistentVolumeController):
        await world.make(volume("v"))
        assert world.phases() == {"v": "Available"}
        await world.make(claim())
        found = world.claim()
        assert found["spec"]["volumeName"] == "v"
        assert found["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
        assert found["metadata"]["annotations"] == {decision.BIND_COMPLETED: "yes", decision.BOUND_BY_CONTROLLER: "yes"}
        reference = world.api.all(PERSISTENT_VOLUMES)[0]["spec"]["claimRef"]
        assert (reference["namespace"], reference["name"], reference["uid"]) == ("a", "c", found["metadata"]["uid"])
        assert world.phases() == {"v": "Bound"}
        await world.api.delete(PERSISTENT_VOLUME_CLAIMS, "a", "c")
        await world.advance(1)
        assert world.phases() == {"v": "Released"}
        await world.make(claim())  # another claim of that name does not get the data of the first
        assert "volumeName" not in world.claim()["spec"]


async def test_two_claims_never_share_a_volume() -> None:
    world = Stored()
    async with world.running(PersistentVolumeController):
        world.api.hold_watches("persistentvolumes")
        await world.make(volume("v"), claim("c"), claim("d"))
        world.api.release_watches("persistentvolumes")
        await world.advance(30)
        assert sorted(c["status"]["phase"] for c in world.api.all(PERSISTENT_VOLUME_CLAIMS)) == ["Bound", "Pending"]
        await world.make(volume("w"))
        assert {c["spec"]["volumeName"] for c in world.api.all(PERSISTENT_VOLUME_CLAIMS)} == {"v", "w"}


async def test_a_claim_that_lost_its_volume_says_so() -> None:
    world = Stored()
    async with world.running(PersistentVolumeController):
        await world.make(volume("v"), claim())
        await world.api.delete(PERSISTENT_VOLUMES, "", "v")
        await world.advance(1)
        assert world.claim()["status"]["phase"] == "Lost" and world.events("ClaimLost")


async def test_a_volume_that_nothing_here_can_wipe_fails_instead_of_being_given_out_again() -> None:
    world = Stored()
    async with world.running(PersistentVolumeController):
        await world.make(volume("v", persistentVolumeReclaimPolicy="Delete"), claim())
        await world.api.delete(PERSISTENT_VOLUME_CLAIMS, "a", "c")
        await world.advance(1)
        assert world.phases() == {"v": "Failed"} and world.events("VolumeFailedDelete")


async def test_a_claim_that_waits_for_its_consumer_gets_a_volume_that_its_node_can_reach() -> None:
    world = Stored()
    for name in ("n1", "n2"):
        await world.api.create(NODES, "", {"metadata": {"name": name, "labels": {"host": name}}})
    await world.api.create(
        STORAGE_CLASSES,
        "",
        {"metadata": {"name": "manual"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
    )
    async with world.running(PersistentVolumeController):
        for name in ("n1", "n2"):
            term = {"matchExpressions": [{"key": "host", "operator": "In", "values": [name]}]}
            await world.make(volume(f"on-{name}", nodeAffinity={"required": {"nodeSelectorTerms": [term]}}))
        await world.make(claim())
        assert world.claim()["status"]["phase"] == "Pending" and world.events("WaitForFirstConsumer")
        await world.api.create(
            PODS,
            "a",
            {
                "metadata": {"name": "p"},
                "spec": {"nodeName": "n2", "volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "c"}}]},
            },
        )
        await world.advance(1)
        assert world.claim()["spec"]["volumeName"] == "on-n2"


async def test_a_claim_without_volume_and_class_is_told_why() -> None:
    world = Stored()
    async with world.running(PersistentVolumeController):
        await world.make(claim(storage_class=""))
        assert world.events("FailedBinding")
        await world.make(claim("d", storage_class="nowhere"))
        assert 'storageclass.storage.k8s.io "nowhere" not found' in world.events("ProvisioningFailed")[0]["message"]
