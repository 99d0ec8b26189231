"""What kinds of objects use of quotas beyond their number, which scopes they are in, and many requests at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from apiserver.admission.configuration import LimitedResource
from apiserver.admission.plugins.resource_quota import ResourceQuota
from apiserver.machinery.objects import Object
from apiserver.machinery.quota.amounts import to_json
from apiserver.machinery.quota.evaluators import evaluator_for, pod_amounts
from controllers.resourcequota import decision
from tests.apiserver.admission.test_limits_and_quota import World
from tests.apiserver.api import MERGE, config_in, running
from tests.fakes.admission import container, pod

CLAIMS = evaluator_for("", "persistentvolumeclaims")


def claim(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, size: str = "1Gi") -> Object:
    return {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": size}}, **(spec or {})}, "status": status or {}}


@pytest.mark.parametrize(
    ("operator", "values", "silver", "gold", "both", "none"),
    [
        ("In", ["gold"], False, True, True, False),
        ("NotIn", ["gold"], True, False, True, True),
        ("Exists", [], True, True, True, False),
        ("DoesNotExist", [], False, False, False, True),
    ],
)
def test_claims_are_in_the_scope_of_their_attributes(
    operator: str, values: list[str], silver: bool, gold: bool, both: bool, none: bool
) -> None:
    scope = {"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}
    changing = claim({"volumeAttributesClassName": "gold"}, {"currentVolumeAttributesClassName": "silver"})
    asked = [
        claim({"volumeAttributesClassName": "silver"}),
        claim(status={"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}),
        changing,
        claim(),
    ]
    assert [CLAIMS.in_scope(scope, one) for one in asked] == [silver, gold, both, none]
    assert not CLAIMS.in_scope({"scopeName": "PriorityClass", "operator": "Exists"}, changing)


async def test_a_claim_that_comes_into_a_scope_by_its_status_is_charged_and_not_refused() -> None:
    world = World()
    selector = {"matchExpressions": [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]}
    world.quota("q", {"persistentvolumeclaims": "0", "requests.storage": "1Gi"}, scopeSelector=selector)
    gold = claim({"volumeAttributesClassName": "gold"})
    assert "exceeded quota: q" in await world.create("persistentvolumeclaims", gold)
    assert await world.create("persistentvolumeclaims", claim()) == ""
    assert "exceeded quota: q" in await world.create("persistentvolumeclaims", gold, old=claim())
    current = claim(status={"currentVolumeAttributesClassName": "gold"})
    assert await world.create("persistentvolumeclaims", current, old=claim(), subresource="status") == ""
    assert world.used() == {"persistentvolumeclaims": "1", "requests.storage": "1Gi"}


def test_what_is_allocated_to_a_claim_counts_while_it_is_more() -> None:
    for allocated, counted in (("3Gi", "3Gi"), ("1Mi", "1Gi")):
        assert to_json(CLAIMS.usage(claim(status={"allocatedResources": {"storage": allocated}}), 0))["requests.storage"] == counted


async def test_a_pod_that_is_resized_is_charged_with_its_growth() -> None:
    world = World()
    world.quota("q", {"requests.cpu": "2", "pods": "1"}, {"requests.cpu": "1", "pods": "1"})
    small, big = (pod("p", containers=[container(requests={"cpu": cpu})]) for cpu in ("1", "1500m"))
    assert await world.create("pods", big, old=small) == "", "updates of the pod itself are free"
    assert world.used()["requests.cpu"] == "1"
    assert await world.create("pods", big, old=small, subresource="resize") == ""
    assert world.used() == {"requests.cpu": "1500m", "pods": "1"}
    huge = pod("p", containers=[container(requests={"cpu": "3"})])
    told = await world.create("pods", huge, old=big, subresource="resize")
    assert told.endswith("exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=1500m, limited: requests.cpu=2")
    assert await world.create("pods", small, old=big, subresource="resize") == "", "the controller gives back what it no longer uses"


def test_a_pod_counts_the_most_of_what_it_asks_for_was_promised_and_has() -> None:
    made = pod("p", containers=[container(requests={"cpu": "1", "memory": "1Gi"})])
    state = {"name": "c", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}, "allocatedResources": {"memory": "2Gi"}}
    requests, limits = pod_amounts({**made, "status": {"containerStatuses": [state, {"name": "other"}]}})
    assert (to_json(requests), to_json(limits)) == ({"cpu": "3", "memory": "2Gi"}, {"cpu": "4"})


def test_device_claims_use_devices_of_their_classes() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "gpu", "count": 2}},
        {"name": "b", "exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
        {"name": "c", "firstAvailable": [{"deviceClassName": "gpu", "count": 3}, {"deviceClassName": "gpu"}, {"deviceClassName": "npu"}]},
        {"name": "d", "deviceClassName": "gpu"},
    ]
    evaluator = evaluator_for("resource.k8s.io", "resourceclaims")
    used = to_json(evaluator.usage({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}, 0))
    suffix = "deviceclass.resource.k8s.io/devices"
    assert used == {"count/resourceclaims.resource.k8s.io": "1", f"gpu.{suffix}": "6", f"nic.{suffix}": "32", f"npu.{suffix}": "1"}
    assert evaluator.matching_resources([*used, "pods"]) == list(used)


async def test_what_is_limited_is_covered_by_a_quota_whose_scope_it_is_in() -> None:
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    limited = (LimitedResource(group="", resource="pods", match_scopes=(scope,)),)
    world = World()
    world.plugin = ResourceQuota(world.cache, world, lambda: 0.0, limited)
    high = pod("p", priorityClassName="high")
    told = "insufficient quota to match these scopes: [{PriorityClass In [high]}]"
    assert (await world.create("pods", high)).endswith(told)
    # its other scope keeps the quota from counting the pod, and yet the wanted scope is covered
    both = {"matchExpressions": [scope, {"scopeName": "Terminating", "operator": "Exists"}]}
    world.quota("q", {"pods": "0"}, scopeSelector=both)
    assert await world.create("pods", high) == ""
    assert await world.create("pods", pod("q", priorityClassName="low")) == ""


async def test_many_at_once_take_what_there_is_and_no_more(tmp_path: Path) -> None:
    root = "/api/v1/namespaces/ns"
    async with running(config_in(tmp_path)) as api:
        await api.created("/api/v1/namespaces", {"metadata": {"name": "ns"}})
        await api.created(f"{root}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "10"}}})
        counted = {"status": {"hard": {"configmaps": "10"}, "used": {"configmaps": "0"}}}
        assert (await api.patch(f"{root}/resourcequotas/q/status", counted, MERGE)).status == 200

        async def create(number: int, name: str, query: Any = None) -> int:
            return (await api.post(f"{root}/configmaps", {"metadata": {"name": name or f"c{number}"}}, query=query)).status

        dry = await asyncio.gather(*(create(number, "", {"dryRun": "All"}) for number in range(32)))
        assert set(dry) == {201}, "a dry run takes nothing"
        invalid = await asyncio.gather(*(create(number, "Not Valid") for number in range(32)))
        assert set(invalid) == {422}, "nor does what is refused before it is charged"
        answers = await asyncio.gather(*(create(number, "") for number in range(32)))
        assert (answers.count(201), answers.count(403)) == (10, 22)
        assert len((await api.get(f"{root}/configmaps")).json["items"]) == 10
        assert (await api.get(f"{root}/resourcequotas/q")).json["status"]["used"] == {"configmaps": "10"}


def test_the_controller_looks_at_what_a_quota_is_about() -> None:
    devices = "gpu.deviceclass.resource.k8s.io/devices"
    assert decision.counted_resources([devices]) == [decision.DEVICE_CLAIMS]
    assert decision.counted_resources(["requests.storage"]) == [decision.CLAIMS]
    held = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"exactly": {"deviceClassName": "gpu", "count": 2}}]}}}
    status = decision.status_of({"spec": {"hard": {devices: "5"}}}, lambda one: [held, held], 0)
    assert status["used"] == {devices: "4"}
    moved = claim({"volumeAttributesClassName": "gold"})
    assert decision.gives_back(decision.CLAIMS, claim(), moved, 0) and not decision.gives_back(decision.CLAIMS, moved, moved, 0)
