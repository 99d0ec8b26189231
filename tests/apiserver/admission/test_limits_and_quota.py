"""LimitRanger and ResourceQuota; texts are those of a real kube-apiserver (golden area admission, field cases R1 and R2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.admission.plugins.limit_ranger import LimitRanger
from apiserver.admission.plugins.resource_quota import ResourceQuota
from apiserver.machinery import objects, status
from apiserver.machinery.objects import Object
from apiserver.machinery.quota.evaluators import PodEvaluator
from apiserver.machinery.status import StatusError
from tests.fakes.admission import container, pod, request, run
from tests.fakes.object_getter import FakeObjects


def limit_range(*limits: dict[str, Any]) -> LimitRanger:
    world = FakeObjects()
    world.add("", "limitranges", "a", "ns", spec={"limits": list(limits)})
    return LimitRanger(world)


async def test_limit_ranges_fill_in_what_containers_leave_out() -> None:
    defaults = {"default": {"cpu": "500m", "memory": "64Mi"}, "defaultRequest": {"cpu": "100m", "memory": "64Mi"}}
    containers = [container("c"), container("e", requests={"cpu": "300m", "memory": "1Mi"})]
    made = await run(limit_range({"type": "Container", **defaults}), request("pods", pod(containers=containers)))
    first, second = (c["resources"] for c in made["spec"]["containers"])
    assert first == {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}
    assert second == {"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"cpu": "300m", "memory": "1Mi"}}
    assert made["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container c; "
        "cpu, memory limit for container c; cpu, memory limit for container e"
    }


BOUNDS = (
    {"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "100m"}, "maxLimitRequestRatio": {"cpu": "2"}},
    {"type": "Pod", "max": {"cpu": "1500m"}},
)


@pytest.mark.parametrize(
    ("containers", "why"),
    [
        (
            [("1", "2")],
            "[maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Pod is 1500m, but limit is 2]",
        ),
        ([("50m", "100m")], "minimum cpu usage per Container is 100m, but request is 50m"),
        ([("100m", "300m")], "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"),
        ([("800m", "800m"), ("900m", "900m")], "maximum cpu usage per Pod is 1500m, but limit is 1700m"),
    ],
)
async def test_limit_range_refusals(containers: list[tuple[str, str]], why: str) -> None:
    made = [container(f"c{n}", {"cpu": asked}, {"cpu": bound}) for n, (asked, bound) in enumerate(containers)]
    with pytest.raises(StatusError) as caught:
        await run(limit_range(*BOUNDS), request("pods", pod(containers=made)))
    assert caught.value.message == f'pods "a" is forbidden: {why}'


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("5Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
        ("2Gi", ""),
    ],
)
async def test_claims_are_bounded(size: str, why: str) -> None:
    plugin = limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}})
    claim = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": size}}}}
    if not why:
        await run(plugin, request("persistentvolumeclaims", claim))
        return
    with pytest.raises(StatusError) as caught:
        await run(plugin, request("persistentvolumeclaims", claim))
    assert caught.value.message == f'persistentvolumeclaims "c" is forbidden: {why}'


@pytest.mark.parametrize(("minor", "told"), [(27, ""), (28, "maximum cpu usage per Pod is 1, but limit is 1200m")])
async def test_a_pod_is_bounded_by_the_sum_of_its_containers_and_sidecars(minor: int, told: str) -> None:
    world = FakeObjects()
    world.add("", "limitranges", "a", "ns", spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}}]})
    sidecar = {**container("s", limits={"cpu": "400m"}), "restartPolicy": "Always"}
    made = pod(containers=[container(limits={"cpu": "800m"})], initContainers=[sidecar])
    try:
        await run(LimitRanger(world, minor), request("pods", made))
        found = ""
    except StatusError as error:
        found = error.message
    assert found == (f'pods "a" is forbidden: {told}' if told else "")


async def test_a_pod_is_bounded_when_it_is_resized() -> None:
    small, big = (pod(containers=[container(requests={"cpu": cpu}, limits={"cpu": cpu})]) for cpu in ("500m", "2"))
    plugin = limit_range({"type": "Container", "max": {"cpu": "1"}})
    await run(plugin, request("pods", big, small))
    await run(plugin, request("pods", small, big, subresource="resize"))
    with pytest.raises(StatusError) as caught:
        await run(plugin, request("pods", big, small, subresource="resize"))
    assert caught.value.message == 'pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2'


class World:
    """Quotas in a cache, and the store behind it that may be newer."""

    def __init__(self) -> None:
        self.cache = FakeObjects()
        self.stored: dict[str, Object] = {}
        self.writes = 0
        self.lag = False
        self.plugin = ResourceQuota(self.cache, self, lambda: 1_700_000_000.0)

    def quota(self, name: str, hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> None:
        zero = dict.fromkeys(hard, "0")
        state = {"hard": hard, "used": zero | used if used is not None else zero}
        self.stored[name] = self.cache.add("", "resourcequotas", name, "ns", spec={"hard": hard, **spec}, status=state)

    def used(self, name: str = "q") -> dict[str, str]:
        used: dict[str, str] = self.stored[name]["status"]["used"]
        return used

    def rival_charges(self, used: dict[str, str], name: str = "q") -> None:
        """Another API server."""
        self._store(self.stored[name], used)

    def _store(self, quota: Object, used: dict[str, str]) -> Object:
        new = objects.deep_copy(quota)
        new["status"]["used"] = used
        new["metadata"]["resourceVersion"] = str(int(quota["metadata"]["resourceVersion"]) + 1)
        self.stored[objects.name(quota)] = new
        if not self.lag:
            self.cache.put("", "resourcequotas", new)
        stored: Object = new
        return stored

    async def update_used(self, quota: Object, used: dict[str, str]) -> Object:
        await asyncio.sleep(0)
        name = objects.name(quota)
        if name not in self.stored:
            raise status.not_found("", "resourcequotas", name)
        if objects.resource_version(self.stored[name]) != objects.resource_version(quota):
            self.cache.put("", "resourcequotas", self.stored[name])
            raise status.conflict("", "resourcequotas", name, status.MODIFIED)
        self.writes += 1
        return self._store(quota, used)

    async def create(self, resource: str, obj: Object, **more: Any) -> str:
        """What a create is refused with, "" where it is let through."""
        try:
            await run(self.plugin, request(resource, obj, **more))
        except StatusError as error:
            return error.message
        return ""


def config_map(name: str) -> Object:
    return {"metadata": {"name": name}}


@pytest.mark.parametrize("counted", ["count/configmaps", "configmaps"])
async def test_objects_are_counted_to_the_limit(counted: str) -> None:
    world = World()
    world.quota("q", {counted: "2"})
    assert await world.create("configmaps", config_map("a")) == ""
    assert await world.create("configmaps", config_map("b")) == ""
    refusal = await world.create("configmaps", config_map("c"))
    assert refusal == f'configmaps "c" is forbidden: exceeded quota: q, requested: {counted}=1, used: {counted}=2, limited: {counted}=2'
    assert world.used() == {counted: "2"}


async def test_kinds_of_groups_are_counted_under_their_full_name() -> None:
    world = World()
    world.quota("q", {"count/deployments.apps": "0"})
    assert await world.create("deployments", config_map("a")) == ""
    assert "exceeded quota: q" in await world.create("deployments", config_map("a"), group="apps")


async def test_compute_is_summed_and_refused_by_what_is_too_much() -> None:
    world = World()
    world.quota("q", {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"})
    good = container(requests={"cpu": "600m"}, limits={"memory": "100Mi"})
    assert await world.create("pods", pod("a", containers=[good])) == ""
    assert world.used() == {"pods": "1", "requests.cpu": "600m", "limits.memory": "100Mi"}
    told = await world.create("pods", pod("b", containers=[good]))
    assert told.endswith("exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1")
    much = container(requests={"cpu": "400m"}, limits={"memory": "1Gi"})
    told = await world.create("pods", pod("b", containers=[much]))
    assert told.endswith("exceeded quota: q, requested: limits.memory=1Gi, used: limits.memory=100Mi, limited: limits.memory=1Gi")


async def test_what_a_quota_bounds_must_be_said() -> None:
    world = World()
    world.quota("q", {"limits.cpu": "1", "requests.memory": "1Gi"})
    told = await world.create("pods", pod("a", containers=[container("c"), container("b", requests={"memory": "1"})]))
    assert told == 'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: b,c; requests.memory for: c'


async def test_dry_runs_are_checked_and_not_charged() -> None:
    world = World()
    world.quota("q", {"configmaps": "1"})
    assert await world.create("configmaps", config_map("a"), dry_run=True) == ""
    assert (world.writes, world.used()) == (0, {"configmaps": "0"})
    world.quota("q", {"configmaps": "0"})
    assert "exceeded" in await world.create("configmaps", config_map("a"), dry_run=True)


async def test_services_are_charged_for_ports_and_only_for_what_changes() -> None:
    world = World()
    world.quota("q", {"services": "1", "services.nodeports": "1"})
    node_port = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    plain = {"metadata": {"name": "s"}, "spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}
    assert await world.create("services", plain) == ""
    assert world.used() == {"services": "1", "services.nodeports": "0"}
    assert await world.create("services", node_port, old=plain) == ""
    assert world.used() == {"services": "1", "services.nodeports": "1"}
    assert await world.create("services", plain, old=node_port) == ""
    assert world.used() == {"services": "1", "services.nodeports": "1"}
    assert "requested: services=1" in await world.create("services", plain | {"metadata": {"name": "t"}})


async def test_claims_are_charged_by_class() -> None:
    world = World()
    of_fast = "fast.storageclass.storage.k8s.io/requests.storage"
    world.quota("q", {"requests.storage": "10Gi", of_fast: "1Gi"})
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "2Gi"}}}
    assert f"requested: {of_fast}=2Gi" in await world.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec})
    assert await world.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": spec | {"storageClassName": "slow"}}) == ""
    assert world.used() == {"requests.storage": "2Gi", of_fast: "0"}


async def test_a_quota_that_was_not_counted_yet_refuses() -> None:
    world = World()
    world.quota("q", {"configmaps": "5"})
    world.stored["q"]["status"]["used"] = {}
    told = await world.create("configmaps", config_map("a"))
    assert told == 'configmaps "a" is forbidden: status unknown for quota: q, resources: configmaps'


@pytest.mark.parametrize(
    ("scope", "of_pod", "concerned"),
    [
        ({"scopes": ["BestEffort"]}, {}, True),
        ({"scopes": ["NotBestEffort"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True),
        ({"scopes": ["NotTerminating"]}, {"activeDeadlineSeconds": 5}, False),
        ({"scopes": ["PriorityClass"]}, {"priorityClassName": "high"}, True),
        ({"scopes": ["PriorityClass"]}, {}, False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, {}, False),
    ],
)
async def test_scopes(scope: dict[str, Any], of_pod: dict[str, Any], concerned: bool) -> None:
    world = World()
    world.quota("q", {"pods": "0"}, **scope)
    assert (await world.create("pods", pod(**of_pod)) != "") == concerned


@pytest.mark.parametrize(("operator", "values", "concerned"), [("In", ["high"], True), ("NotIn", ["high"], False), ("Exists", [], True)])
async def test_scope_selectors(operator: str, values: list[str], concerned: bool) -> None:
    world = World()
    requirement = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    world.quota("q", {"pods": "0"}, scopeSelector={"matchExpressions": [requirement]})
    assert (await world.create("pods", pod(priorityClassName="high")) != "") == concerned


async def test_of_many_at_once_only_so_many_get_through_as_the_quota_allows() -> None:
    world = World()
    world.quota("q", {"configmaps": "3"})
    world.lag = True
    answers = await asyncio.gather(*(world.create("configmaps", config_map(f"c{n}")) for n in range(10)))
    assert answers.count("") == 3
    assert world.used() == {"configmaps": "3"}


async def test_a_lost_compare_is_tried_again_on_what_the_rival_left() -> None:
    world = World()
    world.quota("q", {"configmaps": "2"})
    world.lag = True
    world.rival_charges({"configmaps": "1"})
    assert await world.create("configmaps", config_map("a")) == ""
    assert world.used() == {"configmaps": "2"}
    world.quota("q", {"configmaps": "2"})
    world.rival_charges({"configmaps": "2"})
    assert "exceeded quota" in await world.create("configmaps", config_map("b"))


async def test_two_quotas_must_both_agree() -> None:
    world = World()
    world.quota("p", {"configmaps": "5"})
    world.quota("q", {"configmaps": "0"})
    assert "exceeded quota: q" in await world.create("configmaps", config_map("a"))
    assert world.used("p") == {"configmaps": "0"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [container(requests={"cpu": "1"}), container("d", requests={"cpu": "500m"})]}, "1500m"),
        ({"containers": [container(requests={"cpu": "1"})], "initContainers": [container(requests={"cpu": "3"})]}, "3"),
        ({"containers": [container(requests={"cpu": "1"})], "overhead": {"cpu": "250m"}}, "1250m"),
        (
            {
                "containers": [container(requests={"cpu": "1"})],
                "initContainers": [
                    container("side", requests={"cpu": "1"}, restartPolicy="Always"),
                    container("init", requests={"cpu": "2"}),
                ],
            },
            "3",
        ),
        ({"containers": [container(requests={"cpu": "1"})], "resources": {"requests": {"cpu": "4"}}}, "4"),
    ],
)
def test_what_a_pod_asks_for(spec: dict[str, Any], cpu: str) -> None:
    used = PodEvaluator().usage({"spec": spec}, 0)
    assert str(used["requests.cpu"]) == cpu == str(used["cpu"])


def test_a_pod_that_is_over_counts_only_as_an_object() -> None:
    over = {"status": {"phase": "Succeeded"}, "spec": {"containers": [container(requests={"cpu": "1"})]}}
    assert set(PodEvaluator().usage(over, 0)) == {"count/pods"}
    stuck = {"metadata": {"deletionTimestamp": "2023-11-14T22:13:20Z", "deletionGracePeriodSeconds": 30}, "spec": over["spec"]}
    assert "pods" in PodEvaluator().usage(stuck, 1_700_000_029)
    assert "pods" not in PodEvaluator().usage(stuck, 1_700_000_031)
