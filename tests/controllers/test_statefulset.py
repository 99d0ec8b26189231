"""StatefulSets: the order, the identity, updates and claims."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.interface import DeleteOptions, PatchType
from controllers.client.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from controllers.statefulset import claims, decision, identity
from controllers.statefulset.controller import StatefulSetController
from tests.controllers.fake_api import refused
from tests.controllers.world import World, ready, template

CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def stateful_set(replicas: int, **spec: Any) -> Object:
    return {
        "metadata": {"name": "w"},
        "spec": {
            "replicas": replicas,
            "serviceName": "s",
            "selector": {"matchLabels": {"app": "w"}},
            "template": template(app="w"),
            **spec,
        },
    }


class Cluster(World):
    def names(self) -> list[str]:
        return [p["metadata"]["name"] for p in self.api.all(PODS)]

    def images(self) -> dict[str, str]:
        return {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in self.api.all(PODS)}

    def status(self) -> Object:
        found: Object = self.api.all(STATEFUL_SETS)[0]["status"]
        return found

    async def make_ready(self, *names: str) -> None:
        for name in names:
            await self.api.patch(PODS, "a", name, {"status": {"phase": "Running", "conditions": [ready(self.clock)]}}, subresource="status")
        await self.rest()

    async def make_all_ready(self) -> None:
        for _ in range(20):
            waiting = [p["metadata"]["name"] for p in self.api.all(PODS) if not decision.is_running_and_ready(p)]
            if not waiting:
                return
            await self.make_ready(*waiting)
        raise AssertionError("pods keep coming")

    async def change(self, **spec: Any) -> None:
        await self.api.patch(STATEFUL_SETS, "a", "w", {"spec": spec}, PatchType.MERGE)
        await self.rest()

    async def set_image(self, image: str) -> None:
        await self.change(template={**template(app="w"), "spec": {"containers": [{"name": "c", "image": image}]}})


async def test_pods_come_one_after_the_other_with_their_identity() -> None:
    world = Cluster()
    made = await world.api.create(STATEFUL_SETS, "a", stateful_set(3))
    async with world.running(StatefulSetController):
        assert world.names() == ["w-0"]
        await world.make_ready("w-0")
        assert world.names() == ["w-0", "w-1"]
        await world.make_ready("w-1")
        assert world.names() == ["w-0", "w-1", "w-2"]
        await world.make_ready("w-2")
        pod = world.api.all(PODS)[2]
        revision = world.api.all(CONTROLLER_REVISIONS)[0]
        assert pod["metadata"]["labels"] == {
            "app": "w",
            identity.POD_NAME_LABEL: "w-2",
            identity.POD_INDEX_LABEL: "2",
            identity.REVISION_LABEL: revision["metadata"]["name"],
        }
        assert pod["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("w-2", "s")
        name = revision["metadata"]["name"]
        assert revision["revision"] == 1
        assert world.status() == {
            "replicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "currentReplicas": 3,
            "updatedReplicas": 3,
            "observedGeneration": 1,
            "currentRevision": name,
            "updateRevision": name,
        }
        assert [e["message"] for e in world.events("SuccessfulCreate")] == [
            f"create Pod w-{n} in StatefulSet w successful" for n in range(3)
        ]


async def test_a_parallel_set_waits_for_nobody() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(3, podManagementPolicy="Parallel", ordinals={"start": 5}))
    async with world.running(StatefulSetController):
        assert world.names() == ["w-5", "w-6", "w-7"]
        await world.change(replicas=1)
        assert world.names() == ["w-5"]


async def test_scaling_down_takes_the_highest_first_and_one_at_a_time() -> None:
    world = Cluster(graceful_pods=True)
    await world.api.create(STATEFUL_SETS, "a", stateful_set(3))
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        for pod in world.api.all(PODS):  # pods with a node end only when their kubelet says so
            await world.api.create(PODS, "a", {"target": {"name": "n"}}, name=pod["metadata"]["name"], subresource="binding")
        await world.change(replicas=1)
        going = {p["metadata"]["name"] for p in world.api.all(PODS) if objects.is_being_deleted(p)}
        assert going == {"w-2"}
        await world.api.delete(PODS, "a", "w-2", DeleteOptions(grace_period_seconds=0))
        await world.rest()
        assert {p["metadata"]["name"] for p in world.api.all(PODS) if objects.is_being_deleted(p)} == {"w-1"}


async def test_scaling_down_waits_while_a_lower_pod_is_not_ready() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(3))
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        await world.api.patch(PODS, "a", "w-0", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, subresource="status")
        await world.change(replicas=1)
        assert world.names() == ["w-0", "w-1", "w-2"]
        await world.make_ready("w-0")
        assert world.names() == ["w-0"]


async def test_an_update_goes_from_the_highest_down_and_waits_for_each() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(3))
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        await world.set_image("i:2")
        assert world.images() == {"w-0": "i:1", "w-1": "i:1", "w-2": "i:2"}
        assert world.status()["updatedReplicas"] == 1 and world.status()["currentRevision"] != world.status()["updateRevision"]
        await world.make_ready("w-2")
        assert world.images() == {"w-0": "i:1", "w-1": "i:2", "w-2": "i:2"}
        await world.make_all_ready()
        assert set(world.images().values()) == {"i:2"}
        assert world.status()["currentRevision"] == world.status()["updateRevision"]
        assert world.status()["currentReplicas"] == 3
        assert [r["revision"] for r in world.api.all(CONTROLLER_REVISIONS)].count(2) == 1


async def test_a_partition_keeps_lower_pods_as_they_were_even_when_they_are_made_again() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}))
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        await world.set_image("i:2")
        await world.make_all_ready()
        assert world.images() == {"w-0": "i:1", "w-1": "i:1", "w-2": "i:2"}
        await world.api.delete(PODS, "a", "w-1")
        await world.rest()
        await world.make_all_ready()
        assert world.images() == {"w-0": "i:1", "w-1": "i:1", "w-2": "i:2"}
        await world.change(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
        await world.make_all_ready()
        assert set(world.images().values()) == {"i:2"}


async def test_on_delete_updates_only_what_the_user_deletes() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(2, updateStrategy={"type": "OnDelete"}))
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        await world.set_image("i:2")
        assert world.images() == {"w-0": "i:1", "w-1": "i:1"}
        await world.api.delete(PODS, "a", "w-0")
        await world.rest()
        assert world.images() == {"w-0": "i:2", "w-1": "i:1"}


async def test_a_parallel_update_with_max_unavailable_takes_that_many_at_once() -> None:
    world = Cluster()
    await world.api.create(
        STATEFUL_SETS,
        "a",
        stateful_set(
            4, podManagementPolicy="Parallel", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}
        ),
    )
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        await world.set_image("i:2")
        assert world.images() == {"w-0": "i:1", "w-1": "i:1", "w-2": "i:2", "w-3": "i:2"}


async def test_going_back_makes_the_old_revision_the_newest_and_history_is_cut() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(1, revisionHistoryLimit=1))
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        for image in ("i:2", "i:1", "i:3", "i:4"):
            await world.set_image(image)
            await world.make_all_ready()
        kept = {image_of(r): r["revision"] for r in world.api.all(CONTROLLER_REVISIONS)}
        assert kept == {"i:3": 4, "i:4": 5}


def image_of(revision: Object) -> str:
    return str(revision["data"]["spec"]["template"]["spec"]["containers"][0]["image"])


async def test_a_pod_that_ended_is_made_again_under_its_name() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(1))
    async with world.running(StatefulSetController):
        before = world.api.all(PODS)[0]["metadata"]["uid"]
        await world.api.patch(PODS, "a", "w-0", {"status": {"phase": "Failed"}}, subresource="status")
        await world.rest()
        assert world.names() == ["w-0"] and world.api.all(PODS)[0]["metadata"]["uid"] != before
        assert world.events("RecreatingFailedPod")


async def test_a_refused_pod_is_told_and_tried_again() -> None:
    world = Cluster()
    world.api.fail("create", "pods", refused(403, "Forbidden", "exceeded quota"))
    await world.api.create(STATEFUL_SETS, "a", stateful_set(1))
    async with world.running(StatefulSetController):
        await world.advance(1)
        assert world.names() == ["w-0"]
        assert "exceeded quota" in world.events("FailedCreate")[0]["message"]


async def test_claims_are_made_once_and_outlive_their_pods() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(1, volumeClaimTemplates=[CLAIM]))
    async with world.running(StatefulSetController):
        claim = world.api.all(PERSISTENT_VOLUME_CLAIMS)[0]
        assert claim["metadata"]["name"] == "data-w-0" and claim["metadata"]["labels"] == {"app": "w"}
        assert "ownerReferences" not in claim["metadata"]
        assert world.api.all(PODS)[0]["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-w-0"}}]
        await world.make_all_ready()
        await world.change(replicas=0)
        assert not world.names() and world.api.all(PERSISTENT_VOLUME_CLAIMS) == [claim]


async def test_claims_of_a_scaled_down_ordinal_are_given_to_its_pod() -> None:
    world = Cluster()
    await world.api.create(
        STATEFUL_SETS,
        "a",
        stateful_set(
            2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete", "whenDeleted": "Delete"}
        ),
    )
    async with world.running(StatefulSetController):
        await world.make_all_ready()
        owners = {c["metadata"]["name"]: c["metadata"]["ownerReferences"][0]["kind"] for c in world.api.all(PERSISTENT_VOLUME_CLAIMS)}
        assert owners == {"data-w-0": "StatefulSet", "data-w-1": "StatefulSet"}
        pod = world.api.all(PODS)[1]
        await world.change(replicas=1)
        given = world.api.all(PERSISTENT_VOLUME_CLAIMS)[1]["metadata"]["ownerReferences"]
        assert [(o["kind"], o["uid"]) for o in given] == [("Pod", pod["metadata"]["uid"])]


@pytest.mark.parametrize("foreign", [[], [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "other"}]])
def test_a_policy_that_is_taken_back_takes_only_its_own_owner_away(foreign: list[Object]) -> None:
    owner = {"metadata": {"name": "w", "uid": "set"}, "spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}}
    claim: Object = {"metadata": {"name": "data-w-0", **({"ownerReferences": foreign} if foreign else {})}}
    pod = {"metadata": {"name": "w-0", "uid": "pod"}}
    owned = claims.with_owners(owner, pod, claim, condemned=False)
    assert len(objects.owner_references(owned)) == len(foreign) + 1
    back = claims.with_owners({**owner, "spec": {}}, pod, owned, condemned=False)
    assert back == claim


async def test_an_orphan_with_name_and_labels_is_adopted_and_mended() -> None:
    world = Cluster()
    await world.api.create(
        PODS,
        "a",
        {
            "metadata": {"name": "w-0", "labels": {"app": "w"}},
            "spec": {"containers": []},
            "status": {"phase": "Running", "conditions": [ready(world.clock)]},
        },
    )
    await world.api.create(PODS, "a", {"metadata": {"name": "stranger", "labels": {"app": "w"}}})
    await world.api.create(STATEFUL_SETS, "a", stateful_set(1, updateStrategy={"type": "OnDelete"}))
    async with world.running(StatefulSetController):
        found = {p["metadata"]["name"]: p["metadata"] for p in world.api.all(PODS)}
        assert objects.controller_of({"metadata": found["w-0"]}) is not None
        assert found["w-0"]["labels"][identity.POD_NAME_LABEL] == "w-0"
        assert "ownerReferences" not in found["stranger"]


async def test_min_ready_seconds_hold_up_the_next_pod() -> None:
    world = Cluster()
    await world.api.create(STATEFUL_SETS, "a", stateful_set(2, minReadySeconds=10))
    async with world.running(StatefulSetController):
        await world.make_ready("w-0")
        assert world.names() == ["w-0"] and world.status()["availableReplicas"] == 0
        await world.advance(11)
        assert world.names() == ["w-0", "w-1"]
        assert world.status()["availableReplicas"] == 1
