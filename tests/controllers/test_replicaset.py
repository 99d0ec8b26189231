"""ReplicaSets: the right number of pods, never too many, whatever the watch does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery.objects import Object
from controllers.client.errors import ConnectionFailed
from controllers.client.resources import PODS, REPLICA_SETS
from controllers.lib import pods as pod_facts
from controllers.lib.expectations import TIMEOUT_SECONDS
from controllers.replicaset import decision
from controllers.replicaset.controller import ReplicaSetController
from tests.controllers.fake_api import refused
from tests.controllers.world import World, ready, template


def replica_set(replicas: int, **spec: Any) -> Object:
    return {
        "metadata": {"name": "r"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "r"}}, "template": template(app="r"), **spec},
    }


def pod(
    name: str,
    *,
    node: str = "",
    phase: str = "Running",
    is_ready: bool = True,
    cost: int = 0,
    restarts: int = 0,
    created: str = "2024-05-01T10:00:00Z",
    since: str = "2024-05-01T10:00:00Z",
) -> Object:
    return {
        "metadata": {"name": name, "creationTimestamp": created, "annotations": {pod_facts.DELETION_COST: str(cost)}},
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "containerStatuses": [{"restartCount": restarts}],
            "conditions": [{"type": "Ready", "status": str(is_ready), "lastTransitionTime": since}],
        },
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("a"), pod("b", node="n")),
        (pod("a", node="n", phase="Pending"), pod("b", node="n")),
        (pod("a", node="n", is_ready=False), pod("b", node="n")),
        (pod("a", node="n", cost=-5), pod("b", node="n")),
        (pod("a", node="n", since="2024-05-01T11:00:00Z"), pod("b", node="n")),
        (pod("a", node="n", restarts=2), pod("b", node="n", restarts=1)),
        (pod("a", node="n", created="2024-05-01T11:00:00Z"), pod("b", node="n")),
    ],
)
def test_deletion_takes_first_what_loses_least(first: Object, second: Object) -> None:
    for order in ([first, second], [second, first]):
        assert decision.rank_for_deletion(order, order)[0] is first


def test_deletion_takes_from_the_fullest_node() -> None:
    mine = [pod("a", node="full"), pod("b", node="empty")]
    related = [*mine, pod("c", node="full")]
    assert decision.rank_for_deletion(mine, related)[0] is mine[0]
    assert decision.rank_for_deletion(mine, mine)[0] is mine[0]


@given(st.integers(0, 600), st.integers(0, 600))
def test_a_plan_moves_towards_the_wish_and_not_beyond(have: int, wish: int) -> None:
    pods = [pod(f"p{n}") for n in range(have)]
    plan = decision.plan_scale(replica_set(wish), pods, pods)
    after = have + plan.create - len(plan.delete)
    assert min(have, wish) <= after <= max(have, wish)
    assert (after == wish) or plan.create == decision.BURST_REPLICAS or len(plan.delete) == decision.BURST_REPLICAS
    assert len({p["metadata"]["name"] for p in plan.delete}) == len(plan.delete)


async def test_pods_are_made_with_labels_owner_and_events_and_counted_in_the_status() -> None:
    world = World()
    made = await world.api.create(REPLICA_SETS, "a", replica_set(3))
    async with world.running(ReplicaSetController):
        pods = world.api.all(PODS)
        assert len(pods) == 3
        assert all(p["metadata"]["labels"] == {"app": "r"} and p["metadata"]["name"].startswith("r-") for p in pods)
        assert {p["metadata"]["ownerReferences"][0]["uid"] for p in pods} == {made["metadata"]["uid"]}
        assert world.api.all(REPLICA_SETS)[0]["status"] == {"replicas": 3, "fullyLabeledReplicas": 3, "observedGeneration": 1}
        assert len(world.events("SuccessfulCreate")) == 3


async def test_scaling_down_deletes_unready_pods_first() -> None:
    world = World()
    await world.api.create(REPLICA_SETS, "a", replica_set(3))
    async with world.running(ReplicaSetController):
        kept = world.api.all(PODS)[1]["metadata"]["name"]
        await world.api.patch(PODS, "a", kept, {"status": {"phase": "Running", "conditions": [ready(world.clock)]}}, subresource="status")
        await world.api.patch(REPLICA_SETS, "a", "r", {"spec": {"replicas": 1}})
        await world.rest()
        assert [p["metadata"]["name"] for p in world.api.all(PODS)] == [kept]
        assert world.api.all(REPLICA_SETS)[0]["status"]["readyReplicas"] == 1


async def test_a_pod_that_ends_is_replaced() -> None:
    world = World()
    await world.api.create(REPLICA_SETS, "a", replica_set(2))
    async with world.running(ReplicaSetController):
        failed, deleted = (p["metadata"]["name"] for p in world.api.all(PODS))
        await world.api.patch(PODS, "a", failed, {"status": {"phase": "Failed"}}, subresource="status")
        await world.api.delete(PODS, "a", deleted)
        await world.rest()
        assert sum(1 for p in world.api.all(PODS) if pod_facts.is_active(p)) == 2


async def test_a_late_watch_never_leads_to_too_many_pods() -> None:
    world = World()
    world.api.hold_watches("pods")
    async with world.running(ReplicaSetController):
        await world.api.create(REPLICA_SETS, "a", replica_set(3))
        for _ in range(4):
            await world.advance(60)
            await world.api.patch(REPLICA_SETS, "a", "r", {"metadata": {"labels": {"touched": str(world.clock.monotonic())}}})
            await world.rest()
            assert len(world.api.all(PODS)) == 3
        world.api.release_watches("pods")
        await world.rest()
        assert len(world.api.all(PODS)) == 3


async def test_expectations_that_expire_ask_the_server_instead_of_the_cache() -> None:
    """Field case Z2, as are the watch that lags before it and the killed controller below."""
    world = World()
    world.api.hold_watches("pods")
    async with world.running(ReplicaSetController):
        await world.api.create(REPLICA_SETS, "a", replica_set(3))
        await world.rest()
        lists = world.api.count("list", "pods")
        await world.advance(TIMEOUT_SECONDS + 5)
        assert len(world.api.all(PODS)) == 3
        assert world.api.count("list", "pods") > lists


async def test_a_creation_without_an_answer_is_looked_up_before_another_is_made() -> None:
    world = World()
    async with world.running(ReplicaSetController):
        world.api.hold_watches("pods")
        create = world.api.create

        async def create_and_lose_the_answer(resource: Any, namespace: str, obj: Object, **more: Any) -> Object:
            answer = await create(resource, namespace, obj, **more)
            if resource == PODS:
                world.api.create = create  # type: ignore[method-assign]
                raise ConnectionFailed("broken pipe")
            return answer

        await create(REPLICA_SETS, "a", replica_set(2))
        world.api.create = create_and_lose_the_answer  # type: ignore[method-assign]
        await world.advance(5)
        assert len(world.api.all(PODS)) == 2
        world.api.release_watches("pods")
        await world.advance(5)
        assert len(world.api.all(PODS)) == 2


async def test_a_successor_of_a_killed_controller_goes_on_where_it_was() -> None:
    world = World()
    world.api.fail("create", "pods", ConnectionFailed("killed"), times=1)
    await world.api.create(REPLICA_SETS, "a", replica_set(3))
    async with world.running(ReplicaSetController):
        pass
    successor = World()
    successor.api = world.api
    successor.informers._api = world.api
    async with successor.running(ReplicaSetController):
        assert len(successor.api.all(PODS)) == 3


async def test_what_refuses_pods_stands_in_a_condition_and_an_event_and_goes_when_it_is_over() -> None:
    world = World()
    allowed = [False]

    def quota(resource: Any, obj: Object) -> None:
        if resource == PODS and not allowed[0]:
            raise refused(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q')

    world.api.admission = quota
    await world.api.create(REPLICA_SETS, "a", replica_set(10))
    async with world.running(ReplicaSetController):
        status = world.api.all(REPLICA_SETS)[0]["status"]
        assert status["replicas"] == 0
        assert status["conditions"][0]["type"] == "ReplicaFailure" and status["conditions"][0]["reason"] == "FailedCreate"
        assert status["conditions"][0]["message"] == 'pods "x" is forbidden: exceeded quota: q'
        assert world.events("FailedCreate")[0]["type"] == "Warning"
        assert world.api.count("create", "pods") <= 2  # a refusal is not repeated for each of the ten
        allowed[0] = True
        await world.advance(10)
        assert "conditions" not in world.api.all(REPLICA_SETS)[0]["status"] and len(world.api.all(PODS)) == 10


async def test_orphans_are_adopted_and_pods_that_no_longer_match_are_let_go_and_replaced() -> None:
    world = World()
    await world.api.create(PODS, "a", {"metadata": {"name": "lone", "labels": {"app": "r"}}, "spec": {}})
    await world.api.create(REPLICA_SETS, "a", replica_set(1))
    async with world.running(ReplicaSetController):
        assert [p["metadata"]["name"] for p in world.api.all(PODS)] == ["lone"]
        await world.api.patch(PODS, "a", "lone", {"metadata": {"labels": {"app": "gone"}}})
        await world.rest()
        pods = {p["metadata"]["name"]: p["metadata"].get("ownerReferences") for p in world.api.all(PODS)}
        assert len(pods) == 2 and pods["lone"] is None


async def test_a_ready_pod_becomes_available_after_min_ready_seconds() -> None:
    world = World()
    await world.api.create(REPLICA_SETS, "a", replica_set(1, minReadySeconds=30))
    async with world.running(ReplicaSetController):
        name = world.api.all(PODS)[0]["metadata"]["name"]
        await world.api.patch(PODS, "a", name, {"status": {"phase": "Running", "conditions": [ready(world.clock)]}}, subresource="status")
        await world.advance(20)
        assert "availableReplicas" not in world.api.all(REPLICA_SETS)[0]["status"]
        await world.advance(11)
        assert world.api.all(REPLICA_SETS)[0]["status"]["availableReplicas"] == 1
