"""Quotas: what is used is counted by the rules of admission, given back when it goes, and never counted from half a picture."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.machinery.objects import Object
from controllers.client.interface import PatchType
from controllers.client.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, RESOURCE_QUOTAS, SERVICES
from controllers.resourcequota import decision
from controllers.resourcequota.controller import RESYNC_SECONDS, ResourceQuotaController
from controllers.resourcequota.counted_resources import DISCOVERY_SECONDS
from tests.controllers.world import World

VERBS = ["create", "delete", "get", "list", "watch"]
NOW = 1_714_557_600.0


def quota(name: str = "q", *, scopes: tuple[str, ...] = (), **hard: str) -> Object:
    spec: Object = {"hard": hard}
    if scopes:
        spec["scopes"] = list(scopes)
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, *, cpu: str = "", phase: str = "Running", **spec: Any) -> Object:
    resources = {"resources": {"requests": {"cpu": cpu}}} if cpu else {}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", **resources}], **spec}, "status": {"phase": phase}}


class Counted(World):
    def __init__(self) -> None:
        super().__init__()
        self.api.raw_answers = {
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": [{"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}]},
            "/api/v1": {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": VERBS}]},
            "/apis/apps/v1": {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": VERBS}]},
        }

    def used(self, name: str = "q") -> Object:
        found = next(q for q in self.api.all(RESOURCE_QUOTAS) if q["metadata"]["name"] == name)
        used: Object = found.get("status", {}).get("used", {})
        return used


@pytest.mark.parametrize(
    ("hard", "expected"),
    [
        (["pods"], [decision.PODS]),
        (["requests.nvidia.com/gpu", "count/pods"], [decision.PODS]),
        (["gold.storageclass.storage.k8s.io/requests.storage"], [decision.CLAIMS]),
        (["services.nodeports", "configmaps"], [("", "configmaps"), decision.SERVICES]),
        (["count/widgets.example.com"], [("example.com", "widgets")]),
        (["nonsense"], []),
    ],
)
def test_the_names_of_a_quota_say_what_is_to_be_counted(hard: list[str], expected: list[tuple[str, str]]) -> None:
    assert decision.counted_resources(hard) == expected


def test_usage_sums_what_runs_and_leaves_out_what_has_ended() -> None:
    pods = [pod("a", cpu="300m"), pod("b", cpu="0.5"), pod("c", cpu="2", phase="Succeeded")]
    hard = {"pods": "10", "requests.cpu": "4", "count/pods": "9", "limits.memory": "1Gi"}
    status = decision.status_of(quota(**hard), lambda _: pods, NOW)
    assert status == {"hard": hard, "used": {"pods": "2", "requests.cpu": "800m", "count/pods": "3", "limits.memory": "0"}}


def test_a_scope_counts_only_its_pods() -> None:
    pods = [pod("a"), pod("b", cpu="1"), pod("c", activeDeadlineSeconds=5)]
    counted = {
        scope: decision.status_of(quota(scopes=(scope,), pods="9"), lambda _: pods, NOW)["used"]["pods"]
        for scope in ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating")
    }
    assert counted == {"BestEffort": "2", "NotBestEffort": "1", "Terminating": "1", "NotTerminating": "2"}


def test_what_the_server_does_not_have_keeps_its_last_count_and_is_not_made_up() -> None:
    known = {
        **quota(**{"count/widgets.example.com": "3", "count/gadgets.example.com": "3"}),
        "status": {"used": {"count/widgets.example.com": "2", "pods": "7"}},
    }
    assert decision.status_of(known, lambda _: None, NOW)["used"] == {"count/widgets.example.com": "2"}


@pytest.mark.parametrize(
    ("change", "gives"),
    [
        ({"status": {"phase": "Succeeded"}}, True),
        ({"status": {"phase": "Running", "podIP": "1.2.3.4"}}, False),
        ({"metadata": {"name": "a", "labels": {"x": "y"}}}, False),
        ({"spec": {"containers": [{"name": "c"}], "activeDeadlineSeconds": 3}}, True),
    ],
)
def test_only_changes_of_what_is_used_lead_to_a_count(change: Object, gives: bool) -> None:
    old = pod("a")
    assert decision.gives_back(decision.PODS, old, {**old, **change}, NOW) is gives


async def test_a_new_quota_is_counted_whatever_it_counts() -> None:
    world = Counted()
    await world.api.create(PODS, "a", pod("p", cpu="250m"))
    await world.api.create(PODS, "other", pod("p", cpu="1"))
    await world.api.create(CONFIG_MAPS, "a", {"metadata": {"name": "c"}})
    await world.api.create(DEPLOYMENTS, "a", {"metadata": {"name": "d"}})
    async with world.running(ResourceQuotaController):
        await world.api.create(RESOURCE_QUOTAS, "a", quota(**{"configmaps": "3", "count/deployments.apps": "2", "requests.cpu": "1"}))
        await world.rest()
        assert world.used() == {"configmaps": "1", "count/deployments.apps": "1", "requests.cpu": "250m"}


async def test_what_goes_or_ends_is_given_back_and_what_comes_is_left_to_admission() -> None:
    world = Counted()
    await world.api.create(RESOURCE_QUOTAS, "a", quota(pods="5", services="2", **{"services.nodeports": "4"}))
    for name in ("p", "r"):
        await world.api.create(PODS, "a", pod(name))
    await world.api.create(SERVICES, "a", {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}})
    async with world.running(ResourceQuotaController):
        assert world.used() == {"pods": "2", "services": "1", "services.nodeports": "2"}
        await world.api.delete(PODS, "a", "p")
        await world.api.patch(PODS, "a", "r", {"status": {"phase": "Failed"}}, subresource="status")
        await world.api.patch(SERVICES, "a", "s", {"spec": {"type": "ClusterIP"}}, PatchType.MERGE)
        await world.advance(1)
        assert world.used() == {"pods": "0", "services": "1", "services.nodeports": "0"}
        await world.api.create(PODS, "a", pod("new"))
        await world.rest()
        assert world.used()["pods"] == "0"
        await world.advance(RESYNC_SECONDS + 1)
        assert world.used()["pods"] == "1"


async def test_a_changed_wish_is_counted_anew() -> None:
    world = Counted()
    await world.api.create(RESOURCE_QUOTAS, "a", quota(pods="5"))
    await world.api.create(PODS, "a", pod("p"))
    async with world.running(ResourceQuotaController):
        found = world.api.all(RESOURCE_QUOTAS)[0]
        await world.api.update(RESOURCE_QUOTAS, {**found, "spec": {"hard": {"count/pods": "2"}}})
        await world.rest()
        assert world.api.all(RESOURCE_QUOTAS)[0]["status"] == {"hard": {"count/pods": "2"}, "used": {"count/pods": "1"}}


async def test_a_charge_that_the_cache_has_not_seen_is_not_overwritten() -> None:
    world = Counted()
    await world.api.create(RESOURCE_QUOTAS, "a", quota(pods="5"))
    await world.api.create(PODS, "a", pod("old"))
    async with world.running(ResourceQuotaController):
        world.api.hold_watches("resourcequotas")
        charged = world.api.all(RESOURCE_QUOTAS)[0]
        charged["status"]["used"] = {"pods": "2"}
        await world.api.update(RESOURCE_QUOTAS, charged, subresource="status")
        await world.api.delete(PODS, "a", "old")
        await world.rest()
        assert world.used() == {"pods": "2"}
        await world.api.create(PODS, "a", pod("charged"))
        world.api.release_watches("resourcequotas")
        await world.advance(1)
        assert world.used() == {"pods": "1"}


async def test_a_resource_that_comes_later_is_counted_then() -> None:
    world = Counted()
    deployments = world.api.raw_answers.pop("/apis/apps/v1")
    world.api.raw_answers["/apis/apps/v1"] = {"resources": []}
    await world.api.create(RESOURCE_QUOTAS, "a", quota(**{"count/deployments.apps": "2"}))
    async with world.running(ResourceQuotaController):
        assert world.used() == {}
        world.api.raw_answers["/apis/apps/v1"] = deployments
        await world.advance(DISCOVERY_SECONDS + 1)
        assert world.used() == {"count/deployments.apps": "0"}
