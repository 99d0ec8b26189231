"""Deployments: the arithmetic as properties, rollouts end to end with the real ReplicaSet controller over the fake API."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from controllers.deployment import facts, revisions, rolling, status
from controllers.deployment.controller import DeploymentController
from controllers.deployment.revisions import Sets
from controllers.replicaset.controller import ReplicaSetController
from tests.controllers.world import World, ready, template

NOW = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)


def deployment(replicas: int, *, surge: int | str = "25%", unavailable: int | str = "25%", **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "d"}},
            "template": template(app="d"),
            "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
            **spec,
        },
    }


def replica_set(name: str, size: int, available: int = 0, /, **annotations: str) -> Object:
    return {
        "metadata": {"name": name, "uid": name, "annotations": annotations, "creationTimestamp": "2024-05-01T10:00:00Z"},
        "spec": {"replicas": size, "template": template(app="d")},
        "status": {"replicas": size, "availableReplicas": available},
    }


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (1, "25%", "25%", (1, 0)),
        (4, "25%", "25%", (1, 1)),
        (10, "25%", "25%", (3, 2)),
        (3, 0, 0, (0, 1)),
        (3, "0%", "10%", (0, 1)),
        (3, 2, 1, (2, 1)),
    ],
)
def test_fenceposts(replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]) -> None:
    assert facts.fenceposts(deployment(replicas, surge=surge, unavailable=unavailable)) == expected


AMOUNT = st.one_of(st.integers(0, 5), st.integers(0, 100).map(lambda p: f"{p}%"))


@settings(deadline=None)
@given(st.integers(0, 12), AMOUNT, AMOUNT, st.lists(st.integers(0, 6), min_size=1, max_size=3), st.integers(0, 2**32))
def test_a_rollout_stays_within_surge_and_unavailable_and_ends(
    replicas: int, surge: int | str, unavailable: int | str, old: list[int], seed: int
) -> None:
    """Pods become available and fail in any order; in the end all that can are, and only the new set has replicas."""
    rng = random.Random(seed)
    wanted = deployment(replicas, surge=surge, unavailable=unavailable)
    max_surge, max_unavailable = facts.fenceposts(wanted)
    sizes = {"new": 0, **{f"old{n}": size for n, size in enumerate(old)}}
    available = {name: rng.randint(0, size) for name, size in sizes.items()}
    limit = max(replicas + max_surge, sum(sizes.values()))
    for step in range(400):
        sets = Sets(
            replica_set("new", sizes["new"], available["new"]), tuple(replica_set(n, sizes[n], available[n]) for n in sizes if n != "new")
        )
        total_available = sum(available.values())
        for change in rolling.plan_growth(wanted, sets) or rolling.plan_shrinkage(wanted, sets):
            name = change.replica_set["metadata"]["name"]
            sizes[name] = change.replicas
            available[name] = min(available[name], change.replicas)
        assert sum(sizes.values()) <= limit, "more replicas asked for than surge allows"
        limit = max(replicas + max_surge, min(limit, sum(sizes.values())))
        floor = replicas - min(max_unavailable, replicas)
        assert sum(available.values()) >= min(total_available, floor), "a step took available pods below what must stay"
        name = rng.choice(sorted(sizes))
        if step < 200 and available[name] and rng.random() < 0.2:
            available[name] -= 1
        elif available[name] < sizes[name]:
            available[name] += 1
        if step >= 200:
            available["new"] = sizes["new"]  # from now on new pods come up
    assert sizes == {"new": replicas, **{f"old{n}": 0 for n in range(len(old))}}


@given(st.integers(0, 30), st.integers(2, 15), st.integers(0, 15))
def test_scaling_in_the_middle_of_a_rollout_shares_exactly(replicas: int, new: int, old: int) -> None:
    wanted = deployment(replicas, surge=2, unavailable=1)
    annotations = {facts.DESIRED_REPLICAS: str(new + old - 2), facts.MAX_REPLICAS: str(new + old)}
    sets = Sets(replica_set("new", new, **annotations), (replica_set("old", old, **annotations),))
    sizes = {"new": new, "old": old}
    for step in rolling.plan_scaling(wanted, sets):
        sizes[step.replica_set["metadata"]["name"]] = step.replicas
    assert all(size >= 0 for size in sizes.values())
    if old == 0:
        assert sizes["new"] == replicas
    else:
        assert sum(sizes.values()) == (replicas + 2 if replicas else 0)


def test_scaling_in_proportion() -> None:
    annotations = {facts.DESIRED_REPLICAS: "10", facts.MAX_REPLICAS: "13"}
    sets = Sets(replica_set("new", 5, **annotations), (replica_set("old", 8, **annotations),))
    plan = rolling.plan_scaling(deployment(15, surge=3, unavailable=2), sets)
    assert {p.replica_set["metadata"]["name"]: p.replicas for p in plan} == {"old": 11, "new": 7}


def test_revisions_rise_and_what_was_is_kept_in_the_history() -> None:
    new = replica_set("new", 1, **{facts.REVISION: "1"})
    old = replica_set("old", 0, **{facts.REVISION: "2"})
    annotations = revisions.annotations_of_new(deployment(1), new, revisions.next_revision(Sets(new, (old,))))
    assert annotations[facts.REVISION] == "3" and annotations[facts.REVISION_HISTORY] == "1"


def test_history_beyond_the_limit_goes_lowest_revision_first_but_never_sets_with_pods() -> None:
    old = [replica_set(f"r{n}", 0, **{facts.REVISION: str(n)}) for n in (3, 1, 2)] + [replica_set("busy", 1, **{facts.REVISION: "0"})]
    found = revisions.to_clean_up(deployment(1, revisionHistoryLimit=1), Sets(None, tuple(old)))
    assert [s["metadata"]["name"] for s in found] == ["r1", "r2"]


def test_a_rollout_without_progress_times_out_and_a_paused_one_does_not() -> None:
    wanted = deployment(2, progressDeadlineSeconds=60)
    progressing = status.new_condition("Progressing", "True", "ReplicaSetUpdated", "m", NOW)
    stuck: Any = {"conditions": [progressing], "replicas": 1, "updatedReplicas": 1}
    sets = Sets(replica_set("new", 2), ())
    sets.new["status"] = {"replicas": 1}  # type: ignore[index]
    early = status.rollout({**wanted, "status": stuck}, sets, NOW + datetime.timedelta(seconds=60))
    assert status.condition(early, "Progressing") == stuck["conditions"][0]
    late = status.rollout({**wanted, "status": stuck}, sets, NOW + datetime.timedelta(seconds=61))
    found = status.condition(late, "Progressing")
    assert found is not None and (found["status"], found["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert found["message"] == 'ReplicaSet "new" has timed out progressing.'


class Cluster(World):
    """Pods become ready on demand."""

    async def make_ready(self) -> None:
        for pod in self.api.all(PODS):
            name = pod["metadata"]["name"]
            if not pod["status"].get("conditions"):
                running = {"status": {"phase": "Running", "conditions": [ready(self.clock)]}}
                await self.api.patch(PODS, "a", name, running, subresource="status")
        await self.rest()

    def deployment(self) -> Object:
        return self.api.all(DEPLOYMENTS)[0]

    def sizes(self) -> list[int]:
        return [s["spec"]["replicas"] for s in facts.by_creation(self.api.all(REPLICA_SETS))]

    async def roll_out(self, *, steps: int = 20) -> None:
        for _ in range(steps):
            await self.advance(1)
            await self.make_ready()

    async def set_image(self, image: str) -> None:
        await self.advance(1)
        await self.api.patch(DEPLOYMENTS, "a", "d", {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
        await self.rest()


BOTH = (DeploymentController, ReplicaSetController)


async def test_a_deployment_becomes_available_with_the_conditions_that_say_so() -> None:
    cluster = Cluster()
    await cluster.api.create(DEPLOYMENTS, "a", deployment(3))
    async with cluster.running(*BOTH):
        found = cluster.deployment()
        assert found["metadata"]["annotations"] == {facts.REVISION: "1"}
        assert found["status"]["unavailableReplicas"] == 3 and found["status"]["updatedReplicas"] == 3
        await cluster.make_ready()
        conditions = {c["type"]: (c["status"], c["reason"]) for c in cluster.deployment()["status"]["conditions"]}
        assert conditions == {"Available": ("True", "MinimumReplicasAvailable"), "Progressing": ("True", "NewReplicaSetAvailable")}
        (replica_set,) = cluster.api.all(REPLICA_SETS)
        assert replica_set["metadata"]["annotations"] == {facts.REVISION: "1", facts.DESIRED_REPLICAS: "3", facts.MAX_REPLICAS: "4"}
        assert [e["message"] for e in cluster.events("ScalingReplicaSet")] == [
            f"Scaled up replica set {replica_set['metadata']['name']} from 0 to 3"
        ]


async def test_a_new_image_rolls_out_and_undo_brings_the_old_set_back_with_a_higher_revision() -> None:
    cluster = Cluster()
    await cluster.api.create(DEPLOYMENTS, "a", deployment(4))
    async with cluster.running(*BOTH):
        await cluster.roll_out(steps=2)
        await cluster.set_image("i:2")
        await cluster.roll_out()
        assert cluster.sizes() == [0, 4] and len(cluster.api.all(PODS)) == 4
        assert {p["spec"]["containers"][0]["image"] for p in cluster.api.all(PODS)} == {"i:2"}
        await cluster.set_image("i:1")
        await cluster.roll_out()
        assert cluster.sizes() == [4, 0]
        old, _ = facts.by_creation(cluster.api.all(REPLICA_SETS))
        assert old["metadata"]["annotations"][facts.REVISION] == "3" and old["metadata"]["annotations"][facts.REVISION_HISTORY] == "1"
        assert cluster.deployment()["metadata"]["annotations"][facts.REVISION] == "3"


async def test_pods_that_never_become_ready_hold_the_rollout_and_the_deadline_tells() -> None:
    cluster = Cluster()
    await cluster.api.create(DEPLOYMENTS, "a", deployment(4, progressDeadlineSeconds=60))
    async with cluster.running(*BOTH):
        await cluster.roll_out(steps=2)
        await cluster.set_image("broken")
        await cluster.advance(30)
        assert cluster.sizes() == [3, 2]
        await cluster.advance(60)
        assert cluster.sizes() == [3, 2]
        progressing = status.condition(cluster.deployment()["status"], "Progressing")
        assert progressing is not None and progressing["reason"] == "ProgressDeadlineExceeded"


async def test_a_paused_deployment_scales_but_does_not_roll_until_resumed() -> None:
    cluster = Cluster()
    await cluster.api.create(DEPLOYMENTS, "a", deployment(2))
    async with cluster.running(*BOTH):
        await cluster.roll_out(steps=2)
        await cluster.api.patch(DEPLOYMENTS, "a", "d", {"spec": {"paused": True}})
        await cluster.set_image("i:2")
        await cluster.api.patch(DEPLOYMENTS, "a", "d", {"spec": {"replicas": 5}})
        await cluster.rest()
        assert cluster.sizes() == [5]
        progressing = status.condition(cluster.deployment()["status"], "Progressing")
        assert progressing is not None and (progressing["status"], progressing["reason"]) == ("Unknown", "DeploymentPaused")
        await cluster.api.patch(DEPLOYMENTS, "a", "d", {"spec": {"paused": None}})
        await cluster.roll_out()
        assert cluster.sizes() == [0, 5]


async def test_recreate_waits_for_the_old_pods_to_end() -> None:
    cluster = Cluster(graceful_pods=True)
    await cluster.api.create(DEPLOYMENTS, "a", deployment(2, strategy={"type": "Recreate"}))
    async with cluster.running(*BOTH):
        for pod in cluster.api.all(PODS):
            await cluster.api.create(PODS, "a", {"target": {"name": "n"}}, name=pod["metadata"]["name"], subresource="binding")
        await cluster.roll_out(steps=2)
        await cluster.set_image("i:2")
        assert cluster.sizes() == [0]
        for pod in cluster.api.all(PODS):
            assert pod["metadata"]["deletionTimestamp"]
            await cluster.advance(5)
            assert cluster.sizes() == [0], "an old pod still ends"
            await cluster.api.patch(PODS, "a", pod["metadata"]["name"], {"metadata": {"deletionGracePeriodSeconds": 0}})
        await cluster.rest()
        assert cluster.sizes() == [0, 2]


async def test_a_name_taken_by_another_raises_the_collision_count() -> None:
    cluster = Cluster()
    stored = await cluster.api.create(DEPLOYMENTS, "a", deployment(1))
    wanted = revisions.new_replica_set(stored, Sets(None, ()))
    await cluster.api.create(
        REPLICA_SETS,
        "a",
        {
            "metadata": {"name": wanted["metadata"]["name"]},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"x": "y"}}, "template": template(x="y")},
        },
    )
    async with cluster.running(*BOTH):
        await cluster.advance(5)
        assert cluster.deployment()["status"]["collisionCount"] == 1
        assert len(cluster.api.all(PODS)) == 1


async def test_an_orphaned_set_with_the_template_is_adopted_instead_of_made_anew() -> None:
    cluster = Cluster()
    await cluster.api.create(
        REPLICA_SETS,
        "a",
        {
            "metadata": {"name": "left", "labels": {"app": "d"}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": template(app="d", **{"pod-template-hash": "x"})},
        },
    )
    await cluster.api.create(DEPLOYMENTS, "a", deployment(1))
    async with cluster.running(*BOTH):
        (found,) = cluster.api.all(REPLICA_SETS)
        assert found["metadata"]["ownerReferences"][0]["name"] == "d"
