"""DaemonSets: a pod on each fitting node, and updates within their limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.machinery import objects
from apiserver.machinery.objects import Object
from controllers.client.interface import PatchType
from controllers.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from controllers.daemonset import decision, placement
from controllers.daemonset.controller import DaemonSetController
from controllers.daemonset.placement import Fit
from controllers.lib import pods as pod_facts
from tests.controllers.virtual_clock import VirtualClock
from tests.controllers.world import World, ready, template

FITS = Fit(should_run=True, may_stay=True)


def daemon_set(**spec: Any) -> Object:
    return {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template(app="d"), **spec}}


def node(name: str, *taints: tuple[str, str], **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [{"key": k, "effect": e} for k, e in taints]}}


class Cluster(World):
    async def nodes(self, *names: str) -> None:
        for name in names:
            await self.api.create(NODES, "", node(name))

    def placed(self) -> dict[str, str]:
        """node → image, of pods that are not on their way out"""
        found = [p for p in self.api.all(PODS) if not objects.is_being_deleted(p)]
        assert len({placement.target_node(p) for p in found}) == len(found), "two pods on a node"
        return {placement.target_node(p): p["spec"]["containers"][0]["image"] for p in found}

    def status(self) -> Object:
        found: Object = self.api.all(DAEMON_SETS)[0]["status"]
        return found

    async def make_ready(self) -> None:
        status = {"phase": "Running", "conditions": [ready(self.clock)]}
        for pod in self.api.all(PODS):
            if not pod_facts.is_ready(pod):
                await self.api.patch(PODS, "a", pod["metadata"]["name"], {"status": status}, subresource="status")
        await self.rest()

    async def set_image(self, image: str) -> None:
        wanted = {**template(app="d"), "spec": {"containers": [{"name": "c", "image": image}]}}
        await self.api.patch(DAEMON_SETS, "a", "d", {"spec": {"template": wanted}}, PatchType.MERGE)
        await self.rest()


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (node("n"), Fit(should_run=True, may_stay=True)),
        (node("n", ("node.kubernetes.io/unschedulable", "NoSchedule")), Fit(should_run=True, may_stay=True)),
        (node("n", ("node.kubernetes.io/not-ready", "NoExecute")), Fit(should_run=True, may_stay=True)),
        (node("n", ("own", "NoSchedule")), Fit(should_run=False, may_stay=True)),
        (node("n", ("own", "NoExecute")), placement.NO_FIT),
        (node("n", ("own", "PreferNoSchedule")), Fit(should_run=True, may_stay=True)),
    ],
)
def test_taints_that_befall_nodes_are_tolerated_and_others_not(one: Object, expected: Fit) -> None:
    assert placement.fit_of(daemon_set(), one) == expected


def test_selector_affinity_and_node_name_of_the_template_choose_nodes() -> None:
    chosen = template(app="d")
    chosen["spec"]["nodeSelector"] = {"disk": "ssd"}
    assert placement.fit_of(daemon_set(template=chosen), node("n")) == placement.NO_FIT
    assert placement.fit_of(daemon_set(template=chosen), node("n", disk="ssd")) == FITS
    named = {**template(app="d"), "spec": {"nodeName": "n", "containers": []}}
    assert placement.fit_of(daemon_set(template=named), node("n")) == FITS
    assert placement.fit_of(daemon_set(template=named), node("m")) == placement.NO_FIT


async def test_each_node_gets_one_pod_tied_to_it() -> None:
    world = Cluster()
    await world.nodes("n1", "n2")
    await world.api.create(DAEMON_SETS, "a", daemon_set())
    async with world.running(DaemonSetController):
        assert world.placed() == {"n1": "i:1", "n2": "i:1"}
        pod = world.api.all(PODS)[0]
        assert (
            pod["metadata"]["labels"][placement.REVISION_LABEL]
            == world.api.all(CONTROLLER_REVISIONS)[0]["metadata"]["labels"][placement.REVISION_LABEL]
        )
        assert world.status() == {
            "currentNumberScheduled": 2,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 2,
            "numberReady": 0,
            "observedGeneration": 1,
            "updatedNumberScheduled": 2,
            "numberUnavailable": 2,
        }
        await world.make_ready()
        assert (world.status()["numberReady"], world.status()["numberAvailable"]) == (2, 2)
        await world.nodes("n3")
        await world.rest()
        assert set(world.placed()) == {"n1", "n2", "n3"}


async def test_a_node_that_no_longer_fits_loses_its_pod_and_one_with_a_new_taint_keeps_it() -> None:
    world = Cluster()
    chosen = template(app="d")
    chosen["spec"]["nodeSelector"] = {"disk": "ssd"}
    for name in ("n1", "n2"):
        await world.api.create(NODES, "", node(name, disk="ssd"))
    await world.api.create(DAEMON_SETS, "a", daemon_set(template=chosen))
    async with world.running(DaemonSetController):
        assert set(world.placed()) == {"n1", "n2"}
        await world.api.patch(NODES, "", "n1", {"metadata": {"labels": {"disk": None}}})
        await world.api.patch(NODES, "", "n2", {"spec": {"taints": [{"key": "own", "effect": "NoSchedule"}]}})
        await world.rest()
        assert set(world.placed()) == {"n2"}
        assert (world.status()["desiredNumberScheduled"], world.status()["numberMisscheduled"]) == (0, 1)


async def test_a_deleted_pod_is_replaced_and_one_that_fails_again_and_again_more_slowly() -> None:
    world = Cluster()
    await world.nodes("n1")
    await world.api.create(DAEMON_SETS, "a", daemon_set())
    async with world.running(DaemonSetController):
        await world.api.delete(PODS, "a", world.api.all(PODS)[0]["metadata"]["name"])
        await world.rest()
        assert set(world.placed()) == {"n1"}
        for wait in (1.0, 2.0, 4.0):
            name = world.api.all(PODS)[0]["metadata"]["name"]
            await world.api.patch(PODS, "a", name, {"status": {"phase": "Failed"}}, subresource="status")
            await world.advance(wait - 0.1)
            assert [p["metadata"]["name"] for p in world.api.all(PODS)] == [name]
            await world.advance(0.2)
            assert [p["metadata"]["name"] for p in world.api.all(PODS)] != [name] and set(world.placed()) == {"n1"}
        assert world.events("FailedDaemonPod")


async def test_an_update_replaces_max_unavailable_at_a_time() -> None:
    world = Cluster()
    await world.nodes("n1", "n2", "n3")
    await world.api.create(DAEMON_SETS, "a", daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}))
    async with world.running(DaemonSetController):
        await world.make_ready()
        await world.set_image("i:2")
        assert sorted(world.placed().values()) == ["i:1", "i:1", "i:2"]
        await world.make_ready()
        assert sorted(world.placed().values()) == ["i:1", "i:2", "i:2"]
        await world.make_ready()
        await world.make_ready()
        assert set(world.placed().values()) == {"i:2"} and world.status()["updatedNumberScheduled"] == 3


async def test_on_delete_replaces_only_what_the_user_deletes() -> None:
    world = Cluster()
    await world.nodes("n1", "n2")
    await world.api.create(DAEMON_SETS, "a", daemon_set(updateStrategy={"type": "OnDelete"}))
    async with world.running(DaemonSetController):
        await world.make_ready()
        await world.set_image("i:2")
        assert world.placed() == {"n1": "i:1", "n2": "i:1"}
        await world.api.delete(PODS, "a", world.api.all(PODS)[0]["metadata"]["name"])
        await world.rest()
        assert sorted(world.placed().values()) == ["i:1", "i:2"]


async def test_with_surge_the_new_pod_is_available_before_the_old_one_goes() -> None:
    world = Cluster()
    await world.nodes("n1", "n2")
    await world.api.create(
        DAEMON_SETS, "a", daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    )
    async with world.running(DaemonSetController):
        await world.make_ready()
        await world.set_image("i:2")
        for _ in range(6):
            pods = world.api.all(PODS)
            assert len(pods) <= 3
            for name in ("n1", "n2"):
                assert any(placement.target_node(p) == name and pod_facts.is_ready(p) for p in pods)
            await world.make_ready()
        assert world.placed() == {"n1": "i:2", "n2": "i:2"}


async def test_a_late_watch_never_leads_to_two_pods_on_a_node() -> None:
    world = Cluster()
    await world.nodes("n1")
    world.api.hold_watches("pods")
    await world.api.create(DAEMON_SETS, "a", daemon_set())
    async with world.running(DaemonSetController):
        for number in range(3):
            await world.api.patch(DAEMON_SETS, "a", "d", {"metadata": {"labels": {"touched": str(number)}}})
            await world.rest()
        assert len(world.api.all(PODS)) == 1
        world.api.release_watches("pods")


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=8), st.integers(0, 4))
def test_a_replacement_step_keeps_the_limit_unless_what_goes_is_of_no_use(
    pods: list[tuple[bool, bool, bool]], max_unavailable: int
) -> None:
    clock = VirtualClock()
    by_node = {
        f"n{i}": [
            {
                "metadata": {"name": f"p{i}", "labels": {placement.REVISION_LABEL: "new" if new else "old"}},
                "spec": {"nodeName": f"n{i}"},
                "status": {"conditions": [ready(clock)] if good else []},
            }
        ]
        if there
        else []
        for i, (there, new, good) in enumerate(pods)
    }
    situation = decision.Situation(
        daemon_set=daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable}}),
        fits=dict.fromkeys(by_node, FITS),
        by_node=by_node,
        revision_hash="new",
        now=clock.now(),
    )
    plan = decision.plan_update(situation)
    assert not any(situation.is_new(p) for p in plan.delete)
    unavailable = sum(1 for there, _, good in pods if not (there and good))
    useful = sum(1 for p in plan.delete if situation.is_available(p))
    assert useful == 0 or unavailable + useful <= max(1, max_unavailable)
    old_unavailable = sum(1 for there, new, good in pods if there and not new and not good)
    assert len(plan.delete) - useful == old_unavailable
