"""Each plugin on the smallest request that shows what it does; texts are those of a real kube-apiserver (golden area admission)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from apiserver.admission.interfaces import Operation
from apiserver.admission.plugins.always_pull_images import AlwaysPullImages
from apiserver.admission.plugins.default_ingress_class import DefaultIngressClass
from apiserver.admission.plugins.default_storage_class import DefaultStorageClass
from apiserver.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from apiserver.admission.plugins.extended_resource_toleration import ExtendedResourceToleration
from apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from apiserver.admission.plugins.persistent_volume_claim_resize import PersistentVolumeClaimResize
from apiserver.admission.plugins.priority import Priority
from apiserver.admission.plugins.runtime_class import RuntimeClass
from apiserver.admission.plugins.service_account import TOKEN_PATH, ServiceAccount
from apiserver.admission.plugins.storage_object_in_use_protection import StorageObjectInUseProtection
from apiserver.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from apiserver.machinery.status import StatusError
from tests.fakes.admission import container, pod, request, run
from tests.fakes.object_getter import FakeObjects

NOT_READY = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


async def no_sleep(seconds: float) -> None:
    assert seconds < 1


# NamespaceLifecycle


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_protected_namespaces_stay(name: str) -> None:
    plugin = NamespaceLifecycle(FakeObjects(), no_sleep)
    with pytest.raises(StatusError) as caught:
        await run(plugin, request("namespaces", None, namespace="", name=name))
    assert (caught.value.code, caught.value.message) == (403, f'namespaces "{name}" is forbidden: this namespace may not be deleted')
    await run(plugin, request("namespaces", None, namespace="", name="mine"))


async def test_nothing_is_made_without_its_namespace() -> None:
    plugin = NamespaceLifecycle(FakeObjects(), no_sleep)
    with pytest.raises(StatusError) as caught:
        await run(plugin, request("configmaps", {"metadata": {"name": "a"}}))
    assert (caught.value.code, caught.value.message) == (404, 'namespaces "ns" not found')
    await run(plugin, request("localsubjectaccessreviews", {}, group="authorization.k8s.io"))
    await run(plugin, request("configmaps", {"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}))


async def test_a_namespace_that_arrives_a_moment_later_is_waited_for() -> None:
    world = FakeObjects()

    async def sleep(seconds: float) -> None:
        world.add("", "namespaces", "ns")

    await run(NamespaceLifecycle(world, sleep), request("configmaps", {"metadata": {"name": "a"}}))


@pytest.mark.parametrize("fields", [{"status": {"phase": "Terminating"}}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}])
async def test_nothing_is_made_in_a_namespace_that_goes_away(fields: dict[str, Any]) -> None:
    world = FakeObjects()
    world.add("", "namespaces", "ns", **fields)
    with pytest.raises(StatusError) as caught:
        await run(NamespaceLifecycle(world, no_sleep), request("deployments", {"metadata": {"name": "late"}}, group="apps"))
    assert caught.value.message == (
        'deployments.apps "late" is forbidden: unable to create new content in namespace ns because it is being terminated'
    )
    assert caught.value.status["details"] == {
        "name": "late",
        "group": "apps",
        "kind": "deployments",
        "causes": [{"reason": "NamespaceTerminating", "message": "namespace ns is being terminated", "field": "metadata.namespace"}],
    }


# ServiceAccount


def accounts(**fields: Any) -> tuple[FakeObjects, ServiceAccount]:
    world = FakeObjects()
    world.add("", "serviceaccounts", "default", "ns", **fields)
    return world, ServiceAccount(world, random.Random(1), no_sleep)


async def test_a_pod_gets_the_default_account_and_its_token() -> None:
    _, plugin = accounts()
    made = await run(plugin, request("pods", pod(initContainers=[{"name": "i"}])))
    spec = made["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    [volume] = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-") and len(volume["name"]) == 21
    token, root, namespace = volume["projected"]["sources"]
    assert token == {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    assert root["configMap"]["name"] == "kube-root-ca.crt"
    assert namespace["downwardAPI"]["items"][0]["path"] == "namespace"
    mount = {"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}
    assert spec["containers"][0]["volumeMounts"] == [mount] == spec["initContainers"][0]["volumeMounts"]


async def test_a_pod_that_is_admitted_twice_gets_one_volume() -> None:
    _, plugin = accounts()
    once = await run(plugin, request("pods", pod()))
    twice = await run(plugin, request("pods", once))
    assert len(twice["spec"]["volumes"]) == 1 and len(twice["spec"]["containers"][0]["volumeMounts"]) == 1


@pytest.mark.parametrize(("of_account", "of_pod", "mounted"), [(False, None, False), (False, True, True), (True, False, False)])
async def test_the_pod_decides_on_the_token_before_the_account(of_account: bool, of_pod: bool | None, mounted: bool) -> None:
    _, plugin = accounts(automountServiceAccountToken=of_account)
    asked = pod()
    if of_pod is not None:
        asked["spec"]["automountServiceAccountToken"] = of_pod
    made = await run(plugin, request("pods", asked))
    assert ("volumes" in made["spec"]) == mounted


async def test_a_mount_of_the_owners_own_wins() -> None:
    _, plugin = accounts()
    own = {"name": "x", "mountPath": TOKEN_PATH}
    made = await run(plugin, request("pods", pod(containers=[container(volumeMounts=[own])])))
    assert made["spec"]["containers"][0]["volumeMounts"] == [own] and "volumes" not in made["spec"]


async def test_pull_secrets_come_from_the_account_unless_the_pod_has_some() -> None:
    _, plugin = accounts(imagePullSecrets=[{"name": "pull"}])
    assert (await run(plugin, request("pods", pod())))["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    own = [{"name": "own"}]
    assert (await run(plugin, request("pods", pod(imagePullSecrets=own))))["spec"]["imagePullSecrets"] == own


async def test_a_missing_account_refuses_the_pod() -> None:
    _, plugin = accounts()
    with pytest.raises(StatusError) as caught:
        await run(plugin, request("pods", pod("b", serviceAccountName="nobody")))
    why = 'error looking up service account ns/nobody: serviceaccount "nobody" not found'
    assert caught.value.message == f'pods "b" is forbidden: {why}'


async def test_the_default_account_is_waited_for() -> None:
    world = FakeObjects()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            world.add("", "serviceaccounts", "default", "ns")

    await run(ServiceAccount(world, random.Random(1), sleep), request("pods", pod(automountServiceAccountToken=False)))
    assert len(waits) == 3


async def test_an_account_may_allow_only_its_own_secrets() -> None:
    annotations = {"kubernetes.io/enforce-mountable-secrets": "true"}
    _, plugin = accounts(metadata={"annotations": annotations}, secrets=[{"name": "fine"}])
    volume = {"name": "v", "secret": {"secretName": "fine"}}
    await run(plugin, request("pods", pod(volumes=[volume])))
    volume = {"name": "v", "secret": {"secretName": "other"}}
    with pytest.raises(StatusError, match=r'volume with secret\.secretName="other" is not allowed'):
        await run(plugin, request("pods", pod(volumes=[volume])))


# DefaultTolerationSeconds


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"key": "x", "operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([NOT_READY | {"tolerationSeconds": 5}], [UNREACHABLE]),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoExecute"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
    ],
)
async def test_default_tolerations(given: list[dict[str, Any]], added: list[dict[str, Any]]) -> None:
    made = await run(DefaultTolerationSeconds(), request("pods", pod(tolerations=given)))
    assert made["spec"]["tolerations"] == given + added


# Priority


async def test_priority_comes_from_the_class() -> None:
    world = FakeObjects()
    world.add("scheduling.k8s.io", "priorityclasses", "high", value=1234, preemptionPolicy="Never")
    made = await run(Priority(world), request("pods", pod(priorityClassName="high")))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1234, "Never")
    made = await run(Priority(world), request("pods", pod()))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    made = await run(Priority(world), request("pods", pod(priorityClassName="system-node-critical")))
    assert made["spec"]["priority"] == 2000001000


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none-such"}, "no PriorityClass with name none-such was found"),
        (
            {"priority": 7},
            "the integer value of priority (7) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
    ],
)
async def test_priority_refusals(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(StatusError) as caught:
        await run(Priority(FakeObjects()), request("pods", pod("c", **spec)))
    assert caught.value.message == f'pods "c" is forbidden: {why}'


async def test_the_default_class_counts_for_pods_without_one_and_stays_the_only_one() -> None:
    world = FakeObjects()
    world.add("scheduling.k8s.io", "priorityclasses", "usual", value=10, globalDefault=True)
    made = await run(Priority(world), request("pods", pod()))
    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("usual", 10)
    second = {"metadata": {"name": "second"}, "value": 1, "globalDefault": True}
    with pytest.raises(StatusError, match="PriorityClass usual is already marked as default"):
        await run(Priority(world), request("priorityclasses", second, group="scheduling.k8s.io", namespace=""))
    same = {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True}
    await run(Priority(world), request("priorityclasses", same, same, group="scheduling.k8s.io", namespace=""))


async def test_an_update_without_priority_keeps_it() -> None:
    made = await run(Priority(FakeObjects()), request("pods", pod(), pod(priority=5, preemptionPolicy="Never")))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (5, "Never")


# the small ones


async def test_a_new_node_is_tainted_once() -> None:
    made = await run(TaintNodesByCondition(), request("nodes", {"metadata": {"name": "n"}}, namespace=""))
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert made["spec"]["taints"] == [taint]
    assert (await run(TaintNodesByCondition(), request("nodes", made, namespace="")))["spec"]["taints"] == [taint]


@pytest.mark.parametrize(("resource", "finalizer"), [("persistentvolumeclaims", "pvc"), ("persistentvolumes", "pv")])
async def test_claims_and_volumes_are_protected_once(resource: str, finalizer: str) -> None:
    obj = {"metadata": {"name": "a", "finalizers": ["x/y"]}}
    for _ in range(2):
        await run(StorageObjectInUseProtection(), request(resource, obj))
    assert obj["metadata"]["finalizers"] == ["x/y", f"kubernetes.io/{finalizer}-protection"]


async def test_the_newest_default_storage_class_is_taken_for_claims_that_name_none() -> None:
    world = FakeObjects()
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    world.add("storage.k8s.io", "storageclasses", "old", metadata={"annotations": default, "creationTimestamp": "2025-01-01T00:00:00Z"})
    world.add("storage.k8s.io", "storageclasses", "new", metadata={"annotations": default, "creationTimestamp": "2026-01-01T00:00:00Z"})
    world.add("storage.k8s.io", "storageclasses", "other", metadata={"creationTimestamp": "2027-01-01T00:00:00Z"})
    plugin = DefaultStorageClass(world)
    assert (await run(plugin, request("persistentvolumeclaims", {"spec": {}})))["spec"] == {"storageClassName": "new"}
    none = {"spec": {"storageClassName": ""}}
    assert (await run(plugin, request("persistentvolumeclaims", none)))["spec"] == {"storageClassName": ""}


async def test_the_default_ingress_class() -> None:
    world = FakeObjects()
    plugin = DefaultIngressClass(world)
    assert (await run(plugin, request("ingresses", {"spec": {}}, group="networking.k8s.io")))["spec"] == {}
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    world.add("networking.k8s.io", "ingressclasses", "nginx", metadata={"annotations": annotations})
    assert (await run(plugin, request("ingresses", {"spec": {}}, group="networking.k8s.io")))["spec"] == {"ingressClassName": "nginx"}
    old_way = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}}, "spec": {}}
    assert (await run(plugin, request("ingresses", old_way, group="networking.k8s.io")))["spec"] == {}


def claim(size: str, phase: str = "Bound", storage_class: str = "fast") -> dict[str, Any]:
    spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "a"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("new", "old", "why"),
    [
        (claim("2Gi"), claim("1Gi"), ""),
        (claim("1024Mi"), claim("1Gi"), ""),
        (claim("2Gi"), claim("1Gi", "Pending"), "Only bound persistent volume claims can be expanded"),
        (claim("2Gi", storage_class="slow"), claim("1Gi", storage_class="slow"), "only dynamically provisioned pvc can be resized"),
    ],
)
async def test_claims_grow_only_where_their_class_can(new: dict[str, Any], old: dict[str, Any], why: str) -> None:
    world = FakeObjects()
    world.add("storage.k8s.io", "storageclasses", "fast", allowVolumeExpansion=True)
    world.add("storage.k8s.io", "storageclasses", "slow")
    plugin = PersistentVolumeClaimResize(world)
    if not why:
        await run(plugin, request("persistentvolumeclaims", new, old))
        return
    with pytest.raises(StatusError, match=why):
        await run(plugin, request("persistentvolumeclaims", new, old))


async def test_a_runtime_class_gives_overhead_selector_and_tolerations() -> None:
    world = FakeObjects()
    toleration = {"key": "k", "operator": "Exists"}
    scheduling = {"nodeSelector": {"kind": "x"}, "tolerations": [toleration]}
    world.add("node.k8s.io", "runtimeclasses", "r", overhead={"podFixed": {"cpu": "50m"}}, scheduling=scheduling)
    made = await run(RuntimeClass(world), request("pods", pod(runtimeClassName="r", nodeSelector={"disk": "ssd"})))
    assert made["spec"]["overhead"] == {"cpu": "50m"}
    assert made["spec"]["nodeSelector"] == {"disk": "ssd", "kind": "x"}
    assert made["spec"]["tolerations"] == [toleration]
    for spec, why in (
        ({"runtimeClassName": "r", "nodeSelector": {"kind": "y"}}, "conflict: runtimeClass.scheduling.nodeSelector[kind] = x; "),
        ({"runtimeClassName": "absent"}, 'pod rejected: RuntimeClass "absent" not found'),
        ({"runtimeClassName": "r", "overhead": {"cpu": "1"}}, "pod rejected: Pod's Overhead doesn't match"),
        ({"overhead": {"cpu": "1"}}, "pod rejected: Pod Overhead set without corresponding RuntimeClass"),
    ):
        with pytest.raises(StatusError) as caught:
            await run(RuntimeClass(world), request("pods", pod("b", **spec)))
        assert caught.value.message.startswith(f'pods "b" is forbidden: {why}')


async def test_images_are_always_pulled_where_that_is_asked() -> None:
    made = await run(AlwaysPullImages(), request("pods", pod(containers=[container(imagePullPolicy="Never")])))
    assert made["spec"]["containers"][0]["imagePullPolicy"] == "Always"


async def test_pods_that_ask_for_devices_tolerate_their_taints() -> None:
    asks = container(requests={"example.com/gpu": "1", "cpu": "1"}, limits={"example.com/gpu": "1"})
    made = await run(ExtendedResourceToleration(), request("pods", pod(containers=[asks])))
    assert made["spec"]["tolerations"] == [{"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_subresources_and_other_operations_are_left_alone() -> None:
    from tests.fakes.admission import info

    assert not DefaultTolerationSeconds().handles(Operation.UPDATE, info("pods"), "status")
    assert not TaintNodesByCondition().handles(Operation.UPDATE, info("nodes"), "")
